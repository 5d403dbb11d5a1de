//! The arguments of calls with structures: messages in parts, and epoll.

use crate::ast::Arg;
use crate::calls::{Args, Request};
use crate::stack::{Message, Op, Value};

type Understood<T> = Result<T, (String, String)>;

/// Events of epoll beside those of poll(2).
const EPOLL_BITS: [(&str, i64); 9] = [
    ("EPOLLIN", 0x1),
    ("EPOLLPRI", 0x2),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLLET", 1 << 31),
    ("0", 0),
];

/// Flags of calls that write. With `MSG_ZEROCOPY` the same is sent; that a buffer is free again, which the socket
/// reports in its error queue, cannot be read by a script.
const WRITE_FLAGS: [&str; 6] = [
    "MSG_ZEROCOPY",
    "MSG_DONTWAIT",
    "MSG_NOSIGNAL",
    "MSG_FASTOPEN",
    "MSG_MORE",
    "MSG_EOR",
];

impl Args<'_> {
    /// A call that writes parts, with its flags at `flags`.
    pub(crate) fn writes(&self, parts: Vec<usize>, flags: usize) -> Understood<Request> {
        let names = self.symbols(flags);
        let message = Message {
            parts,
            more: names.contains(&"MSG_MORE"),
            record: names.contains(&"MSG_EOR"),
        };
        let op = if names.contains(&"MSG_FASTOPEN") {
            Op::FastOpen(message)
        } else {
            Op::Write(message)
        };
        self.with_flags(op, flags, &WRITE_FLAGS)
    }

    /// `[{..., 40}, {..., 20}]`
    pub(crate) fn parts(&self, arg: Option<&Arg>) -> Understood<Vec<usize>> {
        let Some(Arg::List(list)) = arg else {
            return self.wrong("write the parts as [{..., 40}, {..., 20}]");
        };
        let part = |arg: &Arg| match arg {
            Arg::Parts(of) => match of.as_slice() {
                [_, Arg::Int(n)] => self.bounded(*n),
                _ => self.wrong("a part is {..., 40}"),
            },
            _ => self.wrong("a part is {..., 40}"),
        };
        let parts: Vec<usize> = list.iter().map(part).collect::<Result<_, _>>()?;
        let all = i64::try_from(parts.iter().sum::<usize>()).unwrap_or(i64::MAX);
        self.bounded(all)?;
        Ok(parts)
    }

    /// `{msg_name(...)=..., msg_iov(2)=[{..., 40}, {..., 20}], msg_flags=0}`
    pub(crate) fn message(&self, i: usize) -> Understood<Vec<usize>> {
        let help = "write {msg_name(...)=..., msg_iov(1)=[{..., 40}], msg_flags=0}";
        let Some(Arg::Fields(fields)) = self.get(i) else {
            return self.wrong(help);
        };
        let mut parts = None;
        for (name, value) in fields {
            match name.split('(').next() {
                Some("msg_iov") => parts = Some(self.parts(Some(value))?),
                Some("msg_name" | "msg_flags") => {}
                _ => return self.wrong(&format!("{name} is not supported; {help}")),
            }
        }
        match parts {
            Some(parts) => Ok(parts),
            None => self.wrong(help),
        }
    }

    /// `epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, fd=4})`
    pub(crate) fn watch(&self) -> Understood<Request> {
        let how = match self.symbols(1).as_slice() {
            ["EPOLL_CTL_ADD"] => 1,
            ["EPOLL_CTL_DEL"] => 2,
            ["EPOLL_CTL_MOD"] => 3,
            _ => {
                return self.wrong("supported: EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL");
            }
        };
        let (events, data) = match self.get(3) {
            Some(arg @ Arg::Fields(_)) => self.epoll_event(arg)?,
            _ if how == 2 => (0, 0),
            _ => return self.wrong("the event is {events=EPOLLIN, fd=4}"),
        };
        Ok(Request::Watch {
            fd: self.int(0)?,
            how,
            target: self.int(2)?,
            events,
            data,
        })
    }

    /// `epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0)`, or a list of events.
    pub(crate) fn wait(&self) -> Understood<Request> {
        let expected = match self.get(1) {
            Some(Arg::List(list)) => list
                .iter()
                .map(|e| self.epoll_event(e))
                .collect::<Result<Vec<_>, _>>()?,
            Some(arg @ Arg::Fields(_)) => vec![self.epoll_event(arg)?],
            _ => Vec::new(),
        };
        let most = self.size(2)?;
        let asked = self.expecting(Op::Wait(most), Value::Events(expected))?;
        Ok(asked.waits(self.int(3)? != 0))
    }

    fn epoll_event(&self, arg: &Arg) -> Understood<(i64, i64)> {
        let Arg::Fields(fields) = arg else {
            return self.wrong("an event is {events=EPOLLIN, fd=4}");
        };
        let (mut events, mut data) = (0, 0);
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("events", bits) => events = self.bits_of(bits, &EPOLL_BITS)?,
                ("fd" | "ptr" | "u32" | "u64", Arg::Int(n)) => data = *n,
                _ => return self.wrong("fields are events, and fd, ptr, u32 or u64"),
            }
        }
        Ok((events, data))
    }
}

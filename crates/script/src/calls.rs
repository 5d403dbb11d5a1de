//! Calls of a script, in the terms of a stack.

use crate::ast::{Arg, Call};
use crate::stack::{Op, Value};

/// Functions that are supported.
pub(crate) const NAMES: [&str; 27] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "read",
    "recv",
    "recvfrom",
    "write",
    "send",
    "sendto",
    "close",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "fcntl",
    "ioctl",
    "poll",
    "readv",
    "writev",
    "recvmsg",
    "sendmsg",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
];

/// O_NONBLOCK, and O_RDWR as F_GETFL gives it.
pub(crate) const O_NONBLOCK: i64 = 0x800;
pub(crate) const O_RDWR: i64 = 2;

/// Bits of poll(2).
pub(crate) const POLL_BITS: [(&str, i64); 8] = [
    ("POLLIN", 0x1),
    ("POLLPRI", 0x2),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDHUP", 0x2000),
    ("0", 0),
];

/// A call that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A new socket; it does not block.
    Socket { nonblocking: bool, multipath: bool },
    /// Of a socket of the script. What `accept` gives does not block with `nonblocking`; with `dont_wait` this call
    /// does not.
    Op {
        fd: i64,
        op: Op,
        dont_wait: bool,
        nonblocking: bool,
        expected: Option<Value>,
    },
    /// F_GETFL, or F_SETFL with whether it shall block.
    Flags { fd: i64, set: Option<bool> },
    /// A new epoll.
    Epoll,
    /// A change of what epoll watches, with the number of the socket.
    Watch {
        fd: i64,
        how: i64,
        target: i64,
        events: i64,
        data: i64,
    },
    /// SIOCINQ and its kin, with the value that is expected.
    Poll {
        /// Socket, events, events that are expected.
        list: Vec<(i64, i64, i64)>,
        timeout: i64,
    },
}

/// Understands a call; the error says what is wrong with it, and the remedy.
pub(crate) fn understand(call: &Call, v6: bool) -> Result<Request, (String, String)> {
    let mut request = with_buffer(call, v6)?;
    if let Request::Op { op, .. } = &mut request
        && matches!(op, Op::Read(_) | Op::Write(_) | Op::FastOpen(_))
        && call.args.get(1) == Some(&Arg::Null)
    {
        *op = Op::NoBuffer(Box::new(op.clone()));
    }
    Ok(request)
}

/// The same, where buffers are `...`.
fn with_buffer(call: &Call, v6: bool) -> Result<Request, (String, String)> {
    let a = Args(&call.args, &call.name);
    match call.name.as_str() {
        "socket" => {
            let family = a.symbols(0);
            let unknown = |f: &str| f == "AF_INET" || f == "AF_INET6";
            if !matches!(a.get(0), Some(Arg::Dots)) && !family.iter().any(|f| unknown(f)) {
                return a.wrong("the family is ..., and follows --ip_version");
            }
            let kind = a.symbols(1);
            if !kind.contains(&"SOCK_STREAM") {
                return a.wrong("sockets are of type SOCK_STREAM, with SOCK_NONBLOCK if wanted");
            }
            let protocol = a.symbols(2);
            let multipath = protocol.contains(&"IPPROTO_MPTCP");
            let known = multipath || protocol.contains(&"IPPROTO_TCP");
            if !matches!(a.get(2), Some(Arg::Int(0))) && !known {
                return a.wrong("the protocol is IPPROTO_TCP or IPPROTO_MPTCP");
            }
            let nonblocking = kind.contains(&"SOCK_NONBLOCK");
            let _ = v6;
            Ok(Request::Socket {
                nonblocking,
                multipath,
            })
        }
        "bind" => a.op(Op::Bind),
        "connect" => a.op(Op::Connect),
        "listen" => a.op(Op::Listen(a.int(1)?)),
        "accept" => a.op(Op::Accept),
        "accept4" => {
            let nonblocking = a.symbols(3).contains(&"SOCK_NONBLOCK");
            Ok(match a.op(Op::Accept)? {
                Request::Op { fd, op, .. } => Request::Op {
                    fd,
                    op,
                    dont_wait: false,
                    nonblocking,
                    expected: None,
                },
                other => other,
            })
        }
        "read" => a.op(Op::Read(vec![a.size(2)?])),
        "readv" => a.op(Op::Read(a.parts(a.get(1))?)),
        "recv" | "recvfrom" => a.with_flags(Op::Read(vec![a.size(2)?]), 3, &["MSG_DONTWAIT"]),
        "recvmsg" => a.with_flags(Op::Read(a.message(1)?), 2, &["MSG_DONTWAIT"]),
        "write" => a.writes(vec![a.size(2)?], usize::MAX),
        "writev" => a.writes(a.parts(a.get(1))?, usize::MAX),
        "send" | "sendto" => a.writes(vec![a.size(2)?], 3),
        "sendmsg" => a.writes(a.message(1)?, 2),
        "epoll_create" | "epoll_create1" => Ok(Request::Epoll),
        "epoll_ctl" => a.watch(),
        "epoll_wait" => a.wait(),
        "close" => a.op(Op::Close),
        "shutdown" => match a.symbols(1).as_slice() {
            ["SHUT_RD"] => a.op(Op::Shutdown(true, false)),
            ["SHUT_WR"] => a.op(Op::Shutdown(false, true)),
            ["SHUT_RDWR"] => a.op(Op::Shutdown(true, true)),
            _ => a.wrong("the second argument is SHUT_RD, SHUT_WR or SHUT_RDWR"),
        },
        "setsockopt" => {
            let value = a.value(3)?;
            a.op(Op::Set(a.name(2)?, value))
        }
        "getsockopt" => a.expecting(Op::Get(a.name(2)?), a.value(3)?),
        "ioctl" => {
            let name = a.name(1)?;
            if !["SIOCINQ", "SIOCOUTQ", "SIOCOUTQNSD"].contains(&name.as_str()) {
                return a.wrong("supported: SIOCINQ, SIOCOUTQ, SIOCOUTQNSD");
            }
            a.expecting(Op::Count(name), a.value(2)?)
        }
        "fcntl" => match a.symbols(1).as_slice() {
            ["F_GETFL"] => Ok(Request::Flags {
                fd: a.int(0)?,
                set: None,
            }),
            ["F_SETFL"] => Ok(Request::Flags {
                fd: a.int(0)?,
                set: Some(a.symbols(2).contains(&"O_NONBLOCK")),
            }),
            _ => a.wrong("supported: F_GETFL, F_SETFL"),
        },
        _ => a.poll(),
    }
}

/// A value of `IP_MTU_DISCOVER` (linux/in.h).
fn constant(names: &[String]) -> Option<Value> {
    let all = [
        "IP_PMTUDISC_DONT",
        "IP_PMTUDISC_WANT",
        "IP_PMTUDISC_DO",
        "IP_PMTUDISC_PROBE",
        "IP_PMTUDISC_INTERFACE",
        "IP_PMTUDISC_OMIT",
    ];
    let [name] = names else {
        return None;
    };
    let at = all.iter().position(|n| n == name)?;
    Some(Value::Int(at as i64))
}

impl Request {
    /// The same call, which waits or returns at once.
    pub(crate) fn waits(self, waits: bool) -> Self {
        match self {
            Self::Op {
                fd,
                op,
                nonblocking,
                expected,
                ..
            } => Self::Op {
                fd,
                op,
                dont_wait: !waits,
                nonblocking,
                expected,
            },
            other => other,
        }
    }
}

/// The arguments of a call, and its name.
pub(crate) struct Args<'a>(&'a [Arg], &'a str);

impl Args<'_> {
    pub(crate) fn get(&self, i: usize) -> Option<&Arg> {
        self.0.get(i)
    }

    pub(crate) fn wrong<T>(&self, help: &str) -> Result<T, (String, String)> {
        let message = format!("these arguments of {} are not supported", self.1);
        Err((message, help.to_owned()))
    }

    pub(crate) fn int(&self, i: usize) -> Result<i64, (String, String)> {
        match self.get(i) {
            Some(Arg::Int(n)) => Ok(*n),
            _ => self.wrong(&format!("argument {} is a number", i + 1)),
        }
    }

    pub(crate) fn size(&self, i: usize) -> Result<usize, (String, String)> {
        self.bounded(self.int(i)?)
    }

    /// A number of bytes.
    pub(crate) fn bounded(&self, n: i64) -> Result<usize, (String, String)> {
        match usize::try_from(n) {
            Ok(n) if n <= 1 << 26 => Ok(n),
            _ => self.wrong("sizes are 0 to 67108864 bytes"),
        }
    }

    pub(crate) fn symbols(&self, i: usize) -> Vec<&str> {
        match self.get(i) {
            Some(Arg::Symbols(names)) => names.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    fn name(&self, i: usize) -> Result<String, (String, String)> {
        match self.symbols(i).as_slice() {
            [name] => Ok((*name).to_owned()),
            _ => self.wrong(&format!("argument {} is a name", i + 1)),
        }
    }

    pub(crate) fn op(&self, op: Op) -> Result<Request, (String, String)> {
        Ok(Request::Op {
            fd: self.int(0)?,
            op,
            dont_wait: false,
            nonblocking: false,
            expected: None,
        })
    }

    pub(crate) fn expecting(&self, op: Op, expected: Value) -> Result<Request, (String, String)> {
        Ok(match self.op(op)? {
            Request::Op { fd, op, .. } => Request::Op {
                fd,
                op,
                dont_wait: false,
                nonblocking: false,
                expected: Some(expected),
            },
            other => other,
        })
    }

    pub(crate) fn with_flags(
        &self,
        op: Op,
        at: usize,
        known: &[&str],
    ) -> Result<Request, (String, String)> {
        let flags = self.symbols(at);
        if let Some(flag) = flags.iter().find(|f| !known.contains(f)) {
            let help = format!("{flag} is not supported; supported: {}", known.join(", "));
            return self.wrong(&help);
        }
        Ok(match self.op(op)? {
            Request::Op { fd, op, .. } => Request::Op {
                fd,
                op,
                dont_wait: flags.contains(&"MSG_DONTWAIT"),
                nonblocking: false,
                expected: None,
            },
            other => other,
        })
    }

    /// The value of a socket option.
    fn value(&self, i: usize) -> Result<Value, (String, String)> {
        let arg = match self.get(i) {
            Some(Arg::List(list)) if list.len() == 1 => list.first(),
            other => other,
        };
        let number = |fields: &[(String, Arg)], name: &str| {
            fields.iter().find_map(|(n, v)| match v {
                Arg::Int(v) if n == name => Some(*v),
                _ => None,
            })
        };
        match arg {
            // What the kernel gives is signed.
            Some(Arg::Int(n)) => Ok(Value::Int(match u32::try_from(*n) {
                Ok(n) => i64::from(n.cast_signed()),
                Err(_) => *n,
            })),
            Some(Arg::Text(text)) => Ok(Value::Text(text.clone())),
            Some(Arg::Symbols(names)) => self
                .error_number(names)
                .or_else(|| constant(names))
                .map_or_else(|| self.wrong("values are numbers, in brackets"), Ok),
            Some(Arg::Fields(f)) => {
                let on = number(f, "onoff").or(number(f, "l_onoff"));
                let secs = number(f, "linger").or(number(f, "l_linger"));
                match (on, secs) {
                    (Some(on), Some(secs)) => Ok(Value::Linger(on != 0, secs)),
                    _ => self.wrong("SO_LINGER takes {onoff=1, linger=0}"),
                }
            }
            _ => self.wrong("values are numbers in brackets, or texts in quotation marks"),
        }
    }

    /// SO_ERROR gives the number of an error, whose name a script may write.
    fn error_number(&self, names: &[String]) -> Option<Value> {
        match names {
            [name] if name.starts_with('E') => Some(Value::Text(name.clone())),
            _ => None,
        }
    }

    fn poll(&self) -> Result<Request, (String, String)> {
        let Some(Arg::List(entries)) = self.get(0) else {
            return self.wrong("write poll([{fd=3, events=POLLIN, revents=POLLIN}], 1, 0)");
        };
        let mut list = Vec::new();
        for entry in entries {
            let Arg::Fields(fields) = entry else {
                return self.wrong("entries are {fd=3, events=POLLIN, revents=POLLIN}");
            };
            let (mut fd, mut events, mut revents) = (None, 0, 0);
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("fd", Arg::Int(n)) => fd = Some(*n),
                    ("events", bits) => events = self.bits(bits)?,
                    ("revents", bits) => revents = self.bits(bits)?,
                    _ => return self.wrong("fields are fd, events and revents"),
                }
            }
            let Some(fd) = fd else {
                return self.wrong("an entry needs fd");
            };
            list.push((fd, events, revents));
        }
        let timeout = self.int(2)?;
        Ok(Request::Poll { list, timeout })
    }

    fn bits(&self, arg: &Arg) -> Result<i64, (String, String)> {
        self.bits_of(arg, &POLL_BITS)
    }

    pub(crate) fn bits_of(
        &self,
        arg: &Arg,
        known: &[(&str, i64)],
    ) -> Result<i64, (String, String)> {
        let names = match arg {
            Arg::Int(n) => return Ok(*n),
            Arg::Symbols(names) => names,
            _ => return self.wrong("events are names such as POLLIN|POLLOUT"),
        };
        let mut bits = 0;
        for name in names {
            match known.iter().find(|(n, _)| n == name) {
                Some((_, bit)) => bits |= bit,
                None => return self.wrong(&format!("{name} is not supported")),
            }
        }
        Ok(bits)
    }
}

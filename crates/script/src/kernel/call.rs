//! Calls of the kernel, without blocking.

use std::mem::{size_of, zeroed};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, socklen_t};

use crate::assertion::FIELDS;
use crate::stack::{Message, Op, Reply, Setup, Value, Watch};

/// Options of sockets: name, level, number.
const OPTIONS: [(&str, c_int, c_int); 33] = [
    ("SO_REUSEADDR", libc::SOL_SOCKET, libc::SO_REUSEADDR),
    ("SO_REUSEPORT", libc::SOL_SOCKET, libc::SO_REUSEPORT),
    ("SO_SNDBUF", libc::SOL_SOCKET, libc::SO_SNDBUF),
    ("SO_SNDBUFFORCE", libc::SOL_SOCKET, libc::SO_SNDBUFFORCE),
    ("SO_RCVBUF", libc::SOL_SOCKET, libc::SO_RCVBUF),
    ("SO_RCVBUFFORCE", libc::SOL_SOCKET, libc::SO_RCVBUFFORCE),
    ("SO_RCVLOWAT", libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    ("SO_KEEPALIVE", libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    ("SO_LINGER", libc::SOL_SOCKET, libc::SO_LINGER),
    ("SO_ERROR", libc::SOL_SOCKET, libc::SO_ERROR),
    ("SO_OOBINLINE", libc::SOL_SOCKET, libc::SO_OOBINLINE),
    ("SO_PRIORITY", libc::SOL_SOCKET, libc::SO_PRIORITY),
    (
        "SO_MAX_PACING_RATE",
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
    ),
    ("TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY),
    ("TCP_CORK", libc::IPPROTO_TCP, libc::TCP_CORK),
    ("TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG),
    ("TCP_CONGESTION", libc::IPPROTO_TCP, libc::TCP_CONGESTION),
    ("TCP_QUICKACK", libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    ("TCP_FASTOPEN", libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
    (
        "TCP_FASTOPEN_CONNECT",
        libc::IPPROTO_TCP,
        libc::TCP_FASTOPEN_CONNECT,
    ),
    (
        "TCP_DEFER_ACCEPT",
        libc::IPPROTO_TCP,
        libc::TCP_DEFER_ACCEPT,
    ),
    (
        "TCP_USER_TIMEOUT",
        libc::IPPROTO_TCP,
        libc::TCP_USER_TIMEOUT,
    ),
    ("TCP_KEEPIDLE", libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    ("TCP_KEEPINTVL", libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    ("TCP_KEEPCNT", libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    ("TCP_SYNCNT", libc::IPPROTO_TCP, libc::TCP_SYNCNT),
    ("TCP_LINGER2", libc::IPPROTO_TCP, libc::TCP_LINGER2),
    (
        "TCP_NOTSENT_LOWAT",
        libc::IPPROTO_TCP,
        libc::TCP_NOTSENT_LOWAT,
    ),
    (
        "TCP_WINDOW_CLAMP",
        libc::IPPROTO_TCP,
        libc::TCP_WINDOW_CLAMP,
    ),
    ("IP_TOS", libc::IPPROTO_IP, libc::IP_TOS),
    ("IPV6_TCLASS", libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    ("IP_MTU_DISCOVER", libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    ("SO_ZEROCOPY", libc::SOL_SOCKET, libc::SO_ZEROCOPY),
];

fn name_of(e: Errno) -> String {
    format!("{e:?}")
}

fn refused() -> String {
    name_of(Errno::last())
}

pub(super) fn socket(v6: bool, multipath: bool) -> Result<OwnedFd, String> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let protocol = if multipath {
        libc::IPPROTO_MPTCP
    } else {
        libc::IPPROTO_TCP
    };
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(family, kind, protocol) };
    owned(fd)
}

pub(super) fn accept(listener: BorrowedFd<'_>) -> Result<OwnedFd, String> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let none = std::ptr::null_mut();
    // SAFETY: the address is not requested.
    let fd = unsafe { libc::accept4(listener.as_raw_fd(), none, std::ptr::null_mut(), flags) };
    owned(fd)
}

fn owned(fd: c_int) -> Result<OwnedFd, String> {
    if fd < 0 {
        return Err(refused());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An address for the kernel, and its length.
fn address(ip: IpAddr, port: u16) -> (libc::sockaddr_storage, socklen_t) {
    // SAFETY: all zeros is a valid address of no family.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    let pointer = &raw mut storage;
    let length = match ip {
        IpAddr::V4(ip) => {
            // SAFETY: the storage is large enough and aligned for every family.
            let a = unsafe { &mut *pointer.cast::<libc::sockaddr_in>() };
            a.sin_family = libc::AF_INET as libc::sa_family_t;
            a.sin_port = port.to_be();
            a.sin_addr.s_addr = u32::from_ne_bytes(ip.octets());
            size_of::<libc::sockaddr_in>()
        }
        IpAddr::V6(ip) => {
            // SAFETY: as above.
            let a = unsafe { &mut *pointer.cast::<libc::sockaddr_in6>() };
            a.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            a.sin6_port = port.to_be();
            a.sin6_addr.s6_addr = ip.octets();
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as socklen_t)
}

fn value_of(n: isize) -> Reply {
    if n >= 0 {
        return Reply::Value(n as i64);
    }
    match Errno::last() {
        Errno::EAGAIN => Reply::Blocks("EAGAIN"),
        Errno::EINPROGRESS => Reply::Blocks("EINPROGRESS"),
        Errno::EALREADY => Reply::Blocks("EALREADY"),
        e => Reply::Error(name_of(e)),
    }
}

pub(super) fn call(fd: BorrowedFd<'_>, op: &Op, setup: &Setup) -> Reply {
    let raw = fd.as_raw_fd();
    let quiet = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    match op {
        Op::Bind => bind(raw, setup),
        Op::Listen(backlog) => {
            let backlog = c_int::try_from(*backlog).unwrap_or(c_int::MAX);
            // SAFETY: no memory is passed.
            value_of(unsafe { libc::listen(raw, backlog) } as isize)
        }
        Op::Connect => {
            if setup.bind_port.is_some() {
                // Fails when it is bound already.
                bind(raw, setup);
            }
            let (to, length) = address(setup.remote(), setup.connect_port);
            // SAFETY: pointer and length are those of `to`.
            value_of(unsafe { libc::connect(raw, (&raw const to).cast(), length) } as isize)
        }
        Op::NoBuffer(op) => without_buffer(raw, op, setup),
        Op::Read(parts) => {
            let mut parts = Parts::new(parts);
            let mut header = parts.header();
            // SAFETY: the header has pointers and lengths of living buffers.
            value_of(unsafe { libc::recvmsg(raw, &raw mut header, quiet) })
        }
        Op::Write(message) => send(raw, message, quiet, None),
        Op::FastOpen(message) => {
            let to = address(setup.remote(), setup.connect_port);
            send(raw, message, quiet | libc::MSG_FASTOPEN, Some(to))
        }
        Op::Wait(most) => wait(raw, *most),
        Op::Shutdown(read, write) => {
            let how = match (read, write) {
                (true, false) => libc::SHUT_RD,
                (false, _) => libc::SHUT_WR,
                (true, true) => libc::SHUT_RDWR,
            };
            // SAFETY: no memory is passed.
            value_of(unsafe { libc::shutdown(raw, how) } as isize)
        }
        Op::Set(name, value) => set(raw, name, value),
        Op::Get(name) => get(raw, name),
        Op::Count(name) => count(raw, name),
        Op::Accept | Op::Close | Op::Watch(_) => Reply::Error("EBADF".to_owned()),
    }
}

/// A call with NULL instead of a buffer.
fn without_buffer(raw: c_int, op: &Op, setup: &Setup) -> Reply {
    let none = std::ptr::null_mut();
    let quiet = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: without memory the kernel refuses what needs some.
    value_of(match op {
        Op::Read(parts) => unsafe { libc::recv(raw, none, parts.iter().sum(), quiet) },
        Op::FastOpen(message) => {
            let (to, length) = address(setup.remote(), setup.connect_port);
            let flags = quiet | flags_of(message) | libc::MSG_FASTOPEN;
            let (n, to) = (message.total(), (&raw const to).cast());
            // SAFETY: pointer and length are those of `to`.
            unsafe { libc::sendto(raw, none, n, flags, to, length) }
        }
        Op::Write(message) => {
            let flags = quiet | flags_of(message);
            // SAFETY: as above.
            unsafe { libc::send(raw, none, message.total(), flags) }
        }
        _ => return Reply::Error("EFAULT".to_owned()),
    })
}

fn flags_of(message: &Message) -> c_int {
    let more = if message.more { libc::MSG_MORE } else { 0 };
    let record = if message.record { libc::MSG_EOR } else { 0 };
    more | record
}

/// Buffers of a call, and what points to them.
struct Parts {
    buffers: Vec<Vec<u8>>,
    vectors: Vec<libc::iovec>,
}

impl Parts {
    fn new(lengths: &[usize]) -> Self {
        let buffers = lengths.iter().map(|n| vec![0; *n]).collect();
        Self {
            buffers,
            vectors: Vec::new(),
        }
    }

    /// A header that is valid while these live and are not changed.
    fn header(&mut self) -> libc::msghdr {
        let vector = |b: &mut Vec<u8>| libc::iovec {
            iov_base: b.as_mut_ptr().cast(),
            iov_len: b.len(),
        };
        self.vectors = self.buffers.iter_mut().map(vector).collect();
        // SAFETY: all zeros is a header without address, parts and control data.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = self.vectors.as_mut_ptr();
        header.msg_iovlen = self.vectors.len() as _;
        header
    }
}

fn send(
    raw: c_int,
    message: &Message,
    flags: c_int,
    to: Option<(libc::sockaddr_storage, socklen_t)>,
) -> Reply {
    let mut parts = Parts::new(&message.parts);
    let mut header = parts.header();
    let mut to = to;
    if let Some((address, length)) = &mut to {
        header.msg_name = (&raw mut *address).cast();
        header.msg_namelen = *length;
    }
    // SAFETY: the header has pointers and lengths of living buffers and of `to`.
    value_of(unsafe { libc::sendmsg(raw, &raw const header, flags | flags_of(message)) })
}

/// A new epoll.
pub(super) fn epoll() -> Result<OwnedFd, String> {
    // SAFETY: no memory is passed.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

pub(super) fn watch(epoll: BorrowedFd<'_>, target: BorrowedFd<'_>, watch: &Watch) -> Reply {
    let mut event = libc::epoll_event {
        events: watch.events as u32,
        u64: watch.data as u64,
    };
    let (epoll, target) = (epoll.as_raw_fd(), target.as_raw_fd());
    let how = watch.how as c_int;
    // SAFETY: the event lives during the call.
    value_of(unsafe { libc::epoll_ctl(epoll, how, target, &raw mut event) } as isize)
}

fn wait(raw: c_int, most: usize) -> Reply {
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most.clamp(1, 1024)];
    let length = c_int::try_from(events.len()).unwrap_or(1);
    // SAFETY: pointer and length are those of `events`.
    let n = unsafe { libc::epoll_wait(raw, events.as_mut_ptr(), length, 0) };
    if n < 0 {
        return Reply::Error(refused());
    }
    let n = usize::try_from(n).unwrap_or(0);
    let came = events.iter().take(n);
    Reply::Events(came.map(|e| (i64::from(e.events), e.u64 as i64)).collect())
}

fn bind(raw: c_int, setup: &Setup) -> Reply {
    let (to, length) = address(setup.local(), setup.local_port());
    // SAFETY: pointer and length are those of `to`.
    value_of(unsafe { libc::bind(raw, (&raw const to).cast(), length) } as isize)
}

fn find(name: &str) -> Result<(c_int, c_int), Reply> {
    let found = OPTIONS.iter().find(|(n, ..)| *n == name);
    found
        .map(|(_, level, number)| (*level, *number))
        .ok_or_else(|| {
            let names = OPTIONS.map(|(n, ..)| n);
            Reply::Unsupported(format!(
                "the socket option {name} is not supported: supported are {}",
                names.join(", ")
            ))
        })
}

fn set(raw: c_int, name: &str, value: &Value) -> Reply {
    let (level, number) = match find(name) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let set = |pointer: *const c_void, length: usize| {
        // SAFETY: callers pass pointer and length of a living value.
        value_of(
            unsafe { libc::setsockopt(raw, level, number, pointer, length as socklen_t) } as isize,
        )
    };
    match value {
        Value::Int(n) => {
            let n = *n as c_int;
            set((&raw const n).cast(), size_of::<c_int>())
        }
        Value::Text(text) => set(text.as_ptr().cast(), text.len()),
        Value::Linger(on, secs) => {
            let linger = libc::linger {
                l_onoff: c_int::from(*on),
                l_linger: *secs as c_int,
            };
            set((&raw const linger).cast(), size_of::<libc::linger>())
        }
        Value::Events(_) => Reply::Error("EINVAL".to_owned()),
    }
}

/// Gives a socket a congestion control; the error is the name of what the kernel answers.
pub(super) fn set_congestion(fd: BorrowedFd<'_>, name: &str) -> Result<(), String> {
    let value = Value::Text(name.to_owned());
    match set(fd.as_raw_fd(), "TCP_CONGESTION", &value) {
        Reply::Error(refusal) => Err(refusal),
        _ => Ok(()),
    }
}

fn get(raw: c_int, name: &str) -> Reply {
    let (level, number) = match find(name) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let mut bytes = [0_u8; 64];
    let mut length = bytes.len() as socklen_t;
    let pointer = bytes.as_mut_ptr().cast();
    // SAFETY: pointer and length are those of `bytes`.
    let done = unsafe { libc::getsockopt(raw, level, number, pointer, &raw mut length) };
    if done < 0 {
        return Reply::Error(refused());
    }
    if name == "TCP_CONGESTION" {
        let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
        return Reply::Got(Value::Text(String::from_utf8_lossy(text).into_owned()));
    }
    let n = bytes.first_chunk().map_or(0, |b| c_int::from_ne_bytes(*b));
    if name == "SO_ERROR" && n != 0 {
        return Reply::Got(Value::Text(name_of(Errno::from_raw(n))));
    }
    Reply::Got(Value::Int(i64::from(n)))
}

fn count(raw: c_int, name: &str) -> Reply {
    let request = match name {
        "SIOCINQ" => libc::FIONREAD,
        "SIOCOUTQ" => libc::TIOCOUTQ,
        // linux/sockios.h.
        _ => 0x894b,
    };
    let mut n: c_int = 0;
    // SAFETY: these requests write an int.
    match unsafe { libc::ioctl(raw, request as _, &raw mut n) } {
        0 => Reply::Got(Value::Int(i64::from(n))),
        _ => Reply::Error(refused()),
    }
}

pub(super) fn poll(fd: BorrowedFd<'_>) -> i64 {
    let events = libc::POLLIN | libc::POLLPRI | libc::POLLOUT | libc::POLLRDHUP;
    let mut entry = libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut entry, 1, 0) };
    i64::from(entry.revents)
}

/// A field of `TCP_INFO`; `None` if this kernel does not have it.
pub(super) fn info(fd: BorrowedFd<'_>, field: &str) -> Option<i64> {
    let (_, offset, size) = FIELDS.iter().find(|(name, ..)| *name == field)?;
    let mut bytes = [0_u8; 320];
    let mut length = bytes.len() as socklen_t;
    let pointer = bytes.as_mut_ptr().cast();
    // SAFETY: pointer and length are those of `bytes`.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            pointer,
            &raw mut length,
        )
    };
    if done < 0 || offset + size > length as usize {
        return None;
    }
    let at = bytes.get(*offset..*offset + *size)?;
    let byte = i64::from(*at.first()?);
    Some(match (field, size) {
        ("snd_wscale", _) => byte & 0xf,
        ("rcv_wscale", _) => byte >> 4,
        ("delivery_rate_app_limited", _) => byte & 1,
        (_, 1) => byte,
        (_, 4) => i64::from(u32::from_ne_bytes(*at.first_chunk()?)),
        _ => i64::try_from(u64::from_ne_bytes(*at.first_chunk()?)).unwrap_or(i64::MAX),
    })
}

//! What a runner needs of a stack.

use std::net::IpAddr;

use gargalo_units::{Duration, Instant};
use thiserror::Error;

use crate::ast::mptcp::Manage;

/// How a script is run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// How early or late a packet or a call may be.
    pub tolerance: Duration,
    /// Length of a tick of the stack's timestamp clock, if timestamps are compared.
    pub tick: Option<Duration>,
    /// MTU of the device in bytes.
    pub mtu: u32,
    /// Port of the stack's socket; `None`: 8080 where it listens, otherwise chosen by the stack.
    pub bind_port: Option<u16>,
    /// Port of the other end.
    pub connect_port: u16,
    /// First address of the stack, if the script gives one.
    pub local_ip: Option<IpAddr>,
    /// First address of the other end, if the script gives one.
    pub remote_ip: Option<IpAddr>,
    /// Name of the congestion control of the stack's connections.
    pub congestion: String,
    /// Options of our stack: key and value.
    pub gargalo: Vec<(String, String)>,
    /// Options of our Multipath TCP: key and value.
    pub mptcp: Vec<(String, String)>,
    /// The script configures the path manager.
    pub manages: bool,
    /// A segment that is expected is one segment of the stack, however long it is.
    pub strict_segments: bool,
    /// What the stack sends before the last event and no event expects is a fault also at the end.
    pub strict_end: bool,
}

/// Addresses of either end.
pub const ADDRESSES: u8 = 4;

impl Setup {
    /// Address number `n`, from 0, of the stack or of the other end.
    pub fn address(&self, of_other_end: bool, n: u8) -> IpAddr {
        nth(self.bases()[usize::from(of_other_end)], n)
    }
    /// The first addresses of the stack and of the other end: those of the script, or RFC 1918's, RFC 5737's and RFC
    /// 4193's.
    pub fn bases(&self) -> [IpAddr; 2] {
        let usual = if self.v6 {
            [
                IpAddr::from([0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1]),
                IpAddr::from([0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1]),
            ]
        } else {
            [IpAddr::from([192, 168, 0, 1]), IpAddr::from([192, 0, 2, 1])]
        };
        let given = [self.local_ip, self.remote_ip];
        [0, 1].map(|i| {
            given[i]
                .filter(|ip| ip.is_ipv6() == self.v6)
                .unwrap_or(usual[i])
        })
    }
    /// The first address of the stack.
    pub fn local(&self) -> IpAddr {
        self.address(false, 0)
    }
    /// The first address of the other end.
    pub fn remote(&self) -> IpAddr {
        self.address(true, 0)
    }
    /// The number of an address of the other end.
    pub fn number_of_remote(&self, address: IpAddr) -> Option<u8> {
        (0..ADDRESSES).find(|n| self.address(true, *n) == address)
    }
    /// The number of an address of the stack.
    pub fn number_of_local(&self, address: IpAddr) -> Option<u8> {
        (0..ADDRESSES).find(|n| self.address(false, *n) == address)
    }
    /// Port that a socket is bound to.
    pub fn local_port(&self) -> u16 {
        self.bind_port.unwrap_or(8080)
    }
}

/// The address that is `n` above another in its last octet.
pub fn nth(base: IpAddr, n: u8) -> IpAddr {
    match base {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            IpAddr::from([a, b, c, d.wrapping_add(n)])
        }
        IpAddr::V6(ip) => {
            let mut octets = ip.octets();
            octets[15] = octets[15].wrapping_add(n);
            IpAddr::from(octets)
        }
    }
}

/// A socket of a stack.
pub type Handle = usize;

/// A call, without the number of its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Binds to the first address of the stack.
    Bind,
    /// Listens, with this backlog.
    Listen(i64),
    /// Accepts a connection of a listener.
    Accept,
    /// Connects to the other end.
    Connect,
    /// Reads into buffers of these sizes in bytes.
    Read(Vec<usize>),
    /// Writes a message to a connection.
    Write(Message),
    /// Opens with a message (MSG_FASTOPEN, RFC 7413).
    FastOpen(Message),
    /// One of these three with NULL instead of a buffer.
    NoBuffer(Box<Op>),
    /// Changes what epoll watches.
    Watch(Watch),
    /// Asks for at most so many sockets that are ready (epoll_wait).
    Wait(usize),
    /// Closes the socket.
    Close,
    /// Shuts down reading, writing.
    Shutdown(bool, bool),
    /// Sets an option.
    Set(String, Value),
    /// Asks for an option.
    Get(String),
    /// Bytes that can be read (SIOCINQ), bytes not acknowledged (SIOCOUTQ), bytes not sent (SIOCOUTQNSD).
    Count(String),
}

/// What is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Bytes of each part.
    pub parts: Vec<usize>,
    /// MSG_MORE: more data follows soon, so what does not fill a segment may wait.
    pub more: bool,
    /// MSG_EOR: a record ends with the message.
    pub record: bool,
}

impl Message {
    /// Bytes in all.
    pub fn total(&self) -> usize {
        self.parts.iter().sum()
    }

    /// The content after the first `n` bytes.
    #[must_use]
    pub fn after(&self, mut n: usize) -> Self {
        let rest = self.parts.iter().map(|part| {
            let gone = n.min(*part);
            n -= gone;
            part - gone
        });
        Self {
            parts: rest.collect(),
            ..*self
        }
    }
}

/// A change of what epoll watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// EPOLL_CTL_ADD is 1, EPOLL_CTL_DEL 2 and EPOLL_CTL_MOD 3.
    pub how: i64,
    /// The socket to watch.
    pub target: Handle,
    /// Events to watch, with EPOLLET and EPOLLONESHOT.
    pub events: i64,
    /// The data that is reported with them.
    pub data: i64,
}

/// The value of a socket option, or what a call returns beside its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, the value of most options.
    Int(i64),
    /// A name: of a congestion control, or of an error (SO_ERROR).
    Text(String),
    /// `SO_LINGER`: on, seconds.
    Linger(bool, i64),
    /// Of epoll_wait: events and data of each socket.
    Events(Vec<(i64, i64)>),
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The result, not negative, such as a number of bytes.
    Value(i64),
    /// A new socket.
    Socket(Handle),
    /// The value of an option.
    Got(Value),
    /// Events and data of each socket that is ready (epoll).
    Events(Vec<(i64, i64)>),
    /// The name of an error number.
    Error(String),
    /// Nothing now: EAGAIN or, of connect, EINPROGRESS or EALREADY, if the socket does not block.
    Blocks(&'static str),
    /// This stack cannot do it; why, and what to do.
    Unsupported(String),
}

/// Readiness of a socket, bits of poll(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness(pub i64);

/// Why a stack cannot go on.
#[derive(Debug, Error)]
pub enum StackError {
    /// A setting or option that the stack does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The system refused something.
    #[error("{0}")]
    System(String),
}

/// A datagram of the stack.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When it was seen.
    pub at: Instant,
    /// How much earlier it may have been sent, because the process that looks did not run.
    pub doubt: Duration,
    /// The whole datagram, IP header included.
    pub bytes: Vec<u8>,
}

/// A stack that a script is run on.
pub trait Stack {
    /// The time of the stack's clock, which is virtual for our stack and real for the kernel.
    fn now(&self) -> Instant;

    /// Goes on until `until`, or until the stack sends a datagram, which is returned. With `busy` it
    /// may return earlier, so that calls that block are tried again.
    ///
    /// # Errors
    /// When the device fails.
    fn wait(&mut self, until: Instant, busy: bool) -> Result<Option<Sent>, StackError>;

    /// Gives the stack a datagram.
    ///
    /// # Errors
    /// When the device fails.
    fn receive(&mut self, datagram: Vec<u8>) -> Result<(), StackError>;

    /// A socket of TCP, or of Multipath TCP.
    fn socket(&mut self, multipath: bool) -> Reply;

    /// A new epoll.
    fn epoll(&mut self) -> Reply;

    /// Calls a function of a socket, without blocking.
    fn call(&mut self, socket: Handle, op: &Op) -> Reply;

    /// The readiness that poll(2) would report.
    fn poll(&mut self, socket: Handle) -> Readiness;

    /// Changes a setting of the system.
    ///
    /// # Errors
    /// When the stack does not have it.
    fn set(&mut self, name: &str, value: &str) -> Result<(), StackError>;

    /// Configures the path manager of Multipath TCP.
    ///
    /// # Errors
    /// When the stack cannot do it.
    fn manage(&mut self, manage: &Manage) -> Result<(), StackError>;

    /// The queue of the device is `fq`: senders pace.
    ///
    /// # Errors
    /// When the stack cannot do it.
    fn pace(&mut self) -> Result<(), StackError>;

    /// Sets a parameter of a module of the kernel.
    ///
    /// # Errors
    /// When the stack does not have it, or takes another value.
    fn set_parameter(&mut self, module: &str, name: &str, value: &str) -> Result<(), StackError>;

    /// A field of `TCP_INFO`, in the kernel's units; `None` if the stack does not have it.
    fn info(&mut self, socket: Handle, field: &str) -> Option<i64>;
}

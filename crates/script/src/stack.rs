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
    /// Congestion control.
    pub congestion: String,
    /// Options of our stack: key and value.
    pub gargalo: Vec<(String, String)>,
    /// Options of our Multipath TCP: key and value.
    pub mptcp: Vec<(String, String)>,
    /// The script configures the path manager.
    pub manages: bool,
}

/// Addresses of either end.
pub const ADDRESSES: u8 = 4;

impl Setup {
    /// Address number `n`, from 0, of the stack (RFC 1918, RFC 4193) or of the other end (RFC 5737, RFC 4193).
    pub fn address(v6: bool, of_other_end: bool, n: u8) -> IpAddr {
        match (v6, of_other_end) {
            (false, false) => IpAddr::from([192, 168, 0, 1 + n]),
            (false, true) => IpAddr::from([192, 0, 2, 1 + n]),
            (true, false) => IpAddr::from([0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1 + u16::from(n)]),
            (true, true) => IpAddr::from([0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1 + u16::from(n)]),
        }
    }
    /// The first address of the stack.
    pub fn local(&self) -> IpAddr {
        Self::address(self.v6, false, 0)
    }
    /// The first address of the other end.
    pub fn remote(&self) -> IpAddr {
        Self::address(self.v6, true, 0)
    }
    /// The number of an address of the other end.
    pub fn number_of_remote(&self, address: IpAddr) -> Option<u8> {
        (0..ADDRESSES).find(|n| Self::address(self.v6, true, *n) == address)
    }
    /// The number of an address of the stack.
    pub fn number_of_local(&self, address: IpAddr) -> Option<u8> {
        (0..ADDRESSES).find(|n| Self::address(self.v6, false, *n) == address)
    }
    /// Port that a socket is bound to.
    pub fn local_port(&self) -> u16 {
        self.bind_port.unwrap_or(8080)
    }
}

/// A socket of a stack.
pub type Handle = usize;

/// A call, without the number of its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// To the address of the stack.
    Bind,
    /// With a backlog.
    Listen(i64),
    /// A connection of a listener.
    Accept,
    /// To the other end.
    Connect,
    /// At most so many bytes.
    Read(usize),
    /// So many bytes.
    Write(usize),
    /// Opens with so many bytes (MSG_FASTOPEN, RFC 7413).
    FastOpen(usize),
    /// Gives the socket back.
    Close,
    /// Ends reading, writing.
    Shutdown(bool, bool),
    /// Sets an option.
    Set(String, Value),
    /// Asks for an option.
    Get(String),
    /// Bytes that can be read (SIOCINQ), bytes not acknowledged (SIOCOUTQ), bytes not sent (SIOCOUTQNSD).
    Count(String),
}

/// The value of a socket option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Int(i64),
    /// A name.
    Text(String),
    /// `SO_LINGER`: on, seconds.
    Linger(bool, i64),
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A number.
    Value(i64),
    /// A new socket.
    Socket(Handle),
    /// The value of an option.
    Got(Value),
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
    /// The datagram.
    pub bytes: Vec<u8>,
}

/// A stack that a script is run on.
pub trait Stack {
    /// The time.
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

    /// Calls a function of a socket, without blocking.
    fn call(&mut self, socket: Handle, op: &Op) -> Reply;

    /// What poll(2) would say.
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

    /// A field of `TCP_INFO`, in the kernel's units; `None` if the stack does not have it.
    fn info(&mut self, socket: Handle, field: &str) -> Option<i64>;
}

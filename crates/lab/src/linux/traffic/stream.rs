//! The interface that both kinds of stacks offer to applications.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use gargalo_units::{Ecn, Instant};

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes were read.
    Bytes(u64),
    /// The peer has closed its direction.
    End,
}

/// A byte stream that never blocks: [`io::ErrorKind::WouldBlock`] when it would have to.
pub trait Stream {
    /// Writes; returns the number of bytes accepted.
    ///
    /// # Errors
    /// When nothing can be accepted now, or the connection is over.
    fn write(&mut self, data: &Bytes) -> io::Result<usize>;
    /// Reads the available data and passes it to `sink`.
    ///
    /// # Errors
    /// When no data is available now, or the connection was aborted.
    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<Received>;
    /// Closes this direction: no more data will be written.
    ///
    /// # Errors
    /// When the connection is over.
    fn shutdown(&mut self) -> io::Result<()>;
}

/// The source of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The socket at which it arrived.
    pub local: SocketAddr,
    /// The sender's address.
    pub remote: SocketAddr,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// The UDP sockets of an end of a flow.
pub trait Datagrams {
    /// Sends a datagram from one of the sockets.
    ///
    /// # Errors
    /// When the system refuses it.
    fn send(
        &mut self,
        data: &[u8],
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<()>;
    /// Passes the next datagram to `sink`; `false`: there is none.
    ///
    /// # Errors
    /// When the system refuses.
    fn receive(&mut self, sink: &mut dyn FnMut(Arrival, &[u8])) -> io::Result<bool>;
    /// Adds a socket.
    ///
    /// # Errors
    /// When the address is in use, or is not one of the host's.
    fn bind(&mut self, local: SocketAddr) -> io::Result<()>;
}

/// The events that an end of a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Data from the peer.
    pub read: bool,
    /// Space in the send buffer.
    pub write: bool,
    /// This time; [`Instant::MAX`]: no timer.
    pub until: Instant,
    /// No event: the flow is over.
    pub over: bool,
}

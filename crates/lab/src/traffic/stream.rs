//! What the two kinds of stacks offer to applications.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use gargalo_units::{Ecn, Instant};

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes.
    Bytes(u64),
    /// The peer has closed its direction.
    End,
}

/// A byte stream that never blocks: [`io::ErrorKind::WouldBlock`] when it would have to.
pub trait Stream {
    /// Writes; how many bytes were taken.
    ///
    /// # Errors
    /// When nothing can be taken now, or the connection is over.
    fn write(&mut self, data: &Bytes) -> io::Result<usize>;
    /// Reads what is there and shows it to `sink`.
    ///
    /// # Errors
    /// When nothing is there now, or the connection ended in disorder.
    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<Received>;
    /// Nothing more will be written.
    ///
    /// # Errors
    /// When the connection is over.
    fn shutdown(&mut self) -> io::Result<()>;
}

/// Whence a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The socket at which it arrived.
    pub local: SocketAddr,
    /// Who sent it.
    pub remote: SocketAddr,
    /// Its mark.
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
    /// Shows the next datagram to `sink`; `false`: none is there.
    ///
    /// # Errors
    /// When the system refuses.
    fn receive(&mut self, sink: &mut dyn FnMut(Arrival, &[u8])) -> io::Result<bool>;
    /// Adds a socket.
    ///
    /// # Errors
    /// When the address is taken, or not the host's.
    fn bind(&mut self, local: SocketAddr) -> io::Result<()>;
}

/// What an end of a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Data from the peer.
    pub read: bool,
    /// Room for data to it.
    pub write: bool,
    /// This time; [`Instant::MAX`]: none.
    pub until: Instant,
    /// Nothing: it is over.
    pub over: bool,
}

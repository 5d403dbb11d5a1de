//! Sockets of our stack as applications see them.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use gargalo_host::{ConnectionId, Host, UdpId};
use gargalo_tcp::State;
use gargalo_units::{Ecn, Instant};

use crate::traffic::{Datagrams, Received, Stream};

/// Bytes read at once.
const READ: u64 = 256 << 10;

/// A connection of our stack's as applications see it.
pub(super) struct HostStream<'a> {
    pub(super) host: &'a mut Host,
    pub(super) id: ConnectionId,
    pub(super) now: Instant,
}

impl HostStream<'_> {
    /// Why nothing more will come.
    fn ending(&self) -> io::Result<Received> {
        use gargalo_tcp::Error as Tcp;
        let Some(state) = self.host.state(self.id) else {
            return Ok(Received::End);
        };
        match self.host.error(self.id) {
            Some(Tcp::Refused) => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(Tcp::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            Some(Tcp::TimedOut) => Err(io::ErrorKind::TimedOut.into()),
            Some(_) => Err(io::ErrorKind::ConnectionAborted.into()),
            None if has_ended(state) => Ok(Received::End),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// The peer's direction was open and is closed.
fn has_ended(state: State) -> bool {
    let opening = matches!(state, State::Listen | State::SynSent | State::SynReceived);
    !opening && !state.may_receive()
}

impl Stream for HostStream<'_> {
    fn write(&mut self, data: &Bytes) -> io::Result<usize> {
        match self.host.write(self.id, data.clone()) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<Received> {
        match self.host.read(self.id, READ) {
            Some(data) => {
                sink(&data);
                Ok(Received::Bytes(data.len() as u64))
            }
            None => self.ending(),
        }
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.host.close(self.now, self.id);
        Ok(())
    }
}

/// A UDP socket of our stack's as applications see it.
pub(super) struct HostDatagrams<'a> {
    pub(super) host: &'a mut Host,
    pub(super) id: UdpId,
    pub(super) peer: SocketAddr,
}

impl Datagrams for HostDatagrams<'_> {
    fn send(&mut self, data: &[u8], ecn: Ecn) -> io::Result<()> {
        let data = Bytes::copy_from_slice(data);
        self.host
            .send_udp(self.id, self.peer, data, ecn)
            .map_err(|e| io::Error::other(e.to_string()))
    }

    fn receive(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<Option<Ecn>> {
        while let Some((from, data, ecn)) = self.host.recv_udp(self.id) {
            if from == self.peer {
                sink(&data);
                return Ok(Some(ecn));
            }
        }
        Ok(None)
    }
}

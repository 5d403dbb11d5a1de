//! Sockets of our stack as applications see them.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use gargalo_host::{ConnectionId, Host, SocketError, UdpId};
use gargalo_tcp::State;
use gargalo_units::{Ecn, Instant};

use crate::linux::traffic::{Arrival, Datagrams, Received, Stream};

/// Most bytes read at once.
const READ: u64 = 256 << 10;

/// A connection of our stack as applications see it.
pub(super) struct HostStream<'a> {
    pub(super) host: &'a mut Host,
    pub(super) id: ConnectionId,
    pub(super) now: Instant,
}

impl HostStream<'_> {
    /// The reason why no more data will arrive.
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

/// Whether the peer has closed its direction.
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

/// UDP sockets of our stack as applications see them.
pub(super) struct HostDatagrams<'a> {
    pub(super) host: &'a mut Host,
    pub(super) sockets: &'a mut Vec<(SocketAddr, UdpId)>,
}

impl Datagrams for HostDatagrams<'_> {
    fn send(
        &mut self,
        data: &[u8],
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<()> {
        let own = self.sockets.iter().find(|(address, _)| *address == local);
        let Some((_, id)) = own else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let data = Bytes::copy_from_slice(data);
        let sent = self.host.send_udp(*id, remote, data, ecn);
        sent.map_err(|e| match e {
            SocketError::Full => io::ErrorKind::WouldBlock.into(),
            other => io::Error::other(other.to_string()),
        })
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Arrival, &[u8])) -> io::Result<bool> {
        for &(local, id) in self.sockets.iter() {
            if let Some((remote, data, ecn)) = self.host.recv_udp(id) {
                sink(Arrival { local, remote, ecn }, &data);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn bind(&mut self, local: SocketAddr) -> io::Result<()> {
        let bound = self.host.bind_udp(local);
        let id = bound.map_err(|e| io::Error::other(e.to_string()))?;
        self.sockets.push((local, id));
        Ok(())
    }
}

//! UDP sockets (RFC 768) with bounded queues.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use gargalo_units::Ecn;
use gargalo_wire::ip::{self, Addresses};
use gargalo_wire::tcp::Payload;
use gargalo_wire::udp::{self, Datagram};

use crate::host::EventSource;
use crate::{Host, HostEvent, SocketError, UdpId};

/// The overhead that a queue counts per datagram.
const OVERHEAD: u64 = 256;

/// A queue of datagrams, bounded in bytes.
#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<(T, u64)>,
    bytes: u64,
    most: u64,
}

impl<T> Queue<T> {
    fn new(most: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            most,
        }
    }
    /// Appends a datagram; `false` if there is no room. A single datagram of any length always fits.
    fn push(&mut self, item: T, len: u64) -> bool {
        let cost = len + OVERHEAD;
        if self.bytes > 0 && self.bytes + cost > self.most {
            return false;
        }
        self.bytes += cost;
        self.waiting.push_back((item, cost));
        true
    }
    fn pop(&mut self) -> Option<T> {
        let (item, cost) = self.waiting.pop_front()?;
        self.bytes -= cost;
        Some(item)
    }
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// A UDP socket, with the datagrams to be read and to be sent.
#[derive(Debug)]
struct Socket {
    local: SocketAddr,
    received: Queue<(SocketAddr, Bytes, Ecn)>,
    to_send: Queue<(SocketAddr, Bytes, Ecn)>,
    /// The address last reported as unreachable.
    unreachable: Option<SocketAddr>,
    is_readable: bool,
    /// It is in the queue of those with events.
    is_eventful: bool,
    /// It is in the queue of sockets with something to send.
    is_ready: bool,
}

/// The UDP sockets of a host.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    all: BTreeMap<UdpId, Socket>,
    by_local: BTreeMap<SocketAddr, UdpId>,
    ready: VecDeque<UdpId>,
    next: u64,
}

impl Sockets {
    /// The socket of an address and port: bound to exactly this address, else to any of its family, else to `[::]`
    /// for both families.
    fn find(&self, local: SocketAddr) -> Option<UdpId> {
        let any_v4 = IpAddr::from([0; 4]);
        let any_v6 = IpAddr::from([0; 16]);
        let any = if local.is_ipv4() { any_v4 } else { any_v6 };
        [local.ip(), any, any_v6]
            .iter()
            .find_map(|ip| self.by_local.get(&SocketAddr::new(*ip, local.port())))
            .copied()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn event(&mut self, id: UdpId) -> Option<HostEvent> {
        let socket = self.all.get_mut(&id)?;
        if let Some(remote) = socket.unreachable.take() {
            return Some(HostEvent::UdpUnreachable { socket: id, remote });
        }
        if std::mem::take(&mut socket.is_readable) {
            return Some(HostEvent::UdpReadable(id));
        }
        socket.is_eventful = false;
        None
    }
}

impl Host {
    /// Binds a socket. An unspecified address means any of its family, `[::]` any of both families; with port zero
    /// the host chooses one (see [`udp_local_addr`](Self::udp_local_addr)).
    ///
    /// # Errors
    /// When the address is not ours or taken.
    pub fn bind_udp(&mut self, local: SocketAddr) -> Result<UdpId, SocketError> {
        let ip = local.ip();
        if !ip.is_unspecified() && !self.config.addresses.contains(&ip) {
            return Err(SocketError::NotOurs { address: ip });
        }
        let local = if local.port() == 0 {
            self.free_udp_port(ip)?
        } else if self.udp.by_local.contains_key(&local) {
            return Err(SocketError::InUse { local });
        } else {
            local
        };
        let id = UdpId(self.udp.next);
        self.udp.next += 1;
        let most = self.config.udp_buffer.get();
        let socket = Socket {
            local,
            received: Queue::new(most),
            to_send: Queue::new(most),
            unreachable: None,
            is_readable: false,
            is_eventful: false,
            is_ready: false,
        };
        self.udp.all.insert(id, socket);
        self.udp.by_local.insert(local, id);
        Ok(id)
    }

    /// A free port; it depends on the seed and on the number of sockets so far.
    fn free_udp_port(&mut self, ip: IpAddr) -> Result<SocketAddr, SocketError> {
        let (first, last) = self.config.ephemeral_ports;
        let count = u64::from(last - first) + 1;
        let offset = self.secrets.udp_port_offset(self.udp.next);
        (0..count)
            .map(|i| first + (offset.wrapping_add(i) % count) as u16)
            .map(|port| SocketAddr::new(ip, port))
            .find(|local| !self.udp.by_local.contains_key(local))
            .ok_or(SocketError::NoPortLeft)
    }

    /// Closes a socket; queued datagrams are lost.
    pub fn close_udp(&mut self, id: UdpId) {
        if let Some(socket) = self.udp.all.remove(&id) {
            self.udp.by_local.remove(&socket.local);
        }
    }

    /// The address and port of a socket.
    pub fn udp_local_addr(&self, id: UdpId) -> Option<SocketAddr> {
        self.udp.all.get(&id).map(|s| s.local)
    }

    /// Queues a datagram. It is sent with DF set.
    ///
    /// # Errors
    /// When the socket is unknown, the address cannot be reached, the datagram exceeds the MTU or the
    /// queue is full.
    pub fn send_udp(
        &mut self,
        id: UdpId,
        to: SocketAddr,
        data: Bytes,
        ecn: Ecn,
    ) -> Result<(), SocketError> {
        let addresses = self.udp_addresses(id, to)?;
        let headers = u64::from(addresses.header_len()) + udp::HEADER_LEN as u64;
        let length = headers + data.len() as u64;
        let mtu = self.config.mtu;
        if length > u64::from(mtu) {
            return Err(SocketError::TooLong { length, mtu });
        }
        let socket = self.udp.all.get_mut(&id).ok_or(SocketError::Unknown)?;
        let len = data.len() as u64;
        if !socket.to_send.push((to, data, ecn), len) {
            return Err(SocketError::Full);
        }
        if !socket.is_ready {
            socket.is_ready = true;
            self.udp.ready.push_back(id);
        }
        Ok(())
    }

    fn udp_addresses(&self, id: UdpId, remote: SocketAddr) -> Result<Addresses, SocketError> {
        let socket = self.udp.all.get(&id).ok_or(SocketError::Unknown)?;
        if remote.ip().is_unspecified() || remote.port() == 0 {
            return Err(SocketError::BadRemote { remote });
        }
        let from = match socket.local.ip() {
            ip if ip.is_unspecified() => self.source_for(remote.ip()),
            ip => Some(ip),
        };
        from.and_then(|from| Addresses::new(from, remote.ip()))
            .ok_or(SocketError::NoRoute { remote })
    }

    /// The next received datagram: source, payload, and the ECN field of its packet.
    pub fn recv_udp(&mut self, id: UdpId) -> Option<(SocketAddr, Bytes, Ecn)> {
        self.udp.all.get_mut(&id)?.received.pop()
    }

    /// A datagram for one of our addresses; `quoted` is what an ICMP error would quote.
    pub(crate) fn on_udp(&mut self, header: &ip::Header, datagram: &Datagram, quoted: &[u8]) {
        let local = SocketAddr::new(header.addresses.dst(), datagram.dst_port);
        let Some(id) = self.udp.find(local) else {
            self.stats.udp_unreachable += 1;
            self.refuse_udp(header, quoted);
            return;
        };
        let Some(socket) = self.udp.all.get_mut(&id) else {
            return;
        };
        let remote = SocketAddr::new(header.addresses.src(), datagram.src_port);
        let data = datagram.payload.bytes().cloned().unwrap_or_default();
        let was_empty = socket.received.is_empty();
        let len = data.len() as u64;
        if !socket.received.push((remote, data, header.ecn), len) {
            self.stats.udp_dropped += 1;
            return;
        }
        self.stats.udp_received += 1;
        if was_empty {
            socket.is_readable = true;
            self.tell_udp(id);
        }
    }

    /// Processes a port unreachable error for a destination of this socket.
    pub(crate) fn on_udp_unreachable(&mut self, local: SocketAddr, remote: SocketAddr) -> bool {
        let Some(id) = self.udp.find(local) else {
            return false;
        };
        if let Some(socket) = self.udp.all.get_mut(&id) {
            socket.unreachable = Some(remote);
        }
        self.tell_udp(id);
        true
    }

    fn tell_udp(&mut self, id: UdpId) {
        if let Some(socket) = self.udp.all.get_mut(&id)
            && !socket.is_eventful
        {
            socket.is_eventful = true;
            self.event_sources.push_back(EventSource::Udp(id));
        }
    }

    /// Appends the next datagram of a socket; sockets are served in turn.
    pub(crate) fn send_next_udp(&mut self, out: &mut Vec<u8>) -> bool {
        while let Some(id) = self.udp.ready.pop_front() {
            let Some(socket) = self.udp.all.get_mut(&id) else {
                continue;
            };
            let Some((to, data, ecn)) = socket.to_send.pop() else {
                socket.is_ready = false;
                continue;
            };
            let src_port = socket.local.port();
            self.udp.ready.push_back(id);
            let Ok(addresses) = self.udp_addresses(id, to) else {
                continue;
            };
            let header = ip::Header {
                ttl: self.config.ttl,
                ecn,
                ..ip::Header::new(addresses)
            };
            let datagram = Datagram {
                src_port,
                dst_port: to.port(),
                payload: Payload::real(data),
            };
            if header.emit_udp(&datagram, out).is_ok() {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_counts_bytes_and_overhead_and_takes_one_of_any_length() {
        let mut q = Queue::new(1000);
        assert!(q.push('a', 5000));
        assert!(!q.push('b', 0));
        assert_eq!(q.pop(), Some('a'));
        for c in "abc".chars() {
            assert!(q.push(c, 0));
        }
        assert!(!q.push('d', 0));
        assert_eq!((q.pop(), q.bytes), (Some('a'), 512));
    }
}

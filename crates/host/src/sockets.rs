//! The application's calls about TCP.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use gargalo_tcp::{Chunk, Ending, Endpoint, Error, State};
use gargalo_units::Instant;
use gargalo_wire::ip::Addresses;

use crate::config::is_unicast;
use crate::connection::{Connection, Origin, Path, Tuple};
use crate::transport::Transport;
use crate::{ConnectionId, Host, ListenerId, SocketError, SocketOptions};

impl Host {
    /// Opens a listener. An unspecified address means any of its family; `[::]` means any of both families, except
    /// where a more specific listener has the port.
    ///
    /// # Errors
    /// When the address is not ours or taken, the port zero, or the congestion control refuses.
    pub fn listen(
        &mut self,
        local: SocketAddr,
        options: SocketOptions,
    ) -> Result<ListenerId, SocketError> {
        if local.port() == 0 {
            return Err(SocketError::NoPort);
        }
        let ip = local.ip();
        if !ip.is_unspecified() && !self.config.addresses.contains(&ip) {
            return Err(SocketError::NotOurs { address: ip });
        }
        self.check_options(local, &options)?;
        self.listeners
            .add(local, options)
            .ok_or(SocketError::InUse { local })
    }

    /// Gives a listener other options, for the connections whose SYN arrives from now on. Unlike a listener that is
    /// closed and opened again, it keeps those that are half open.
    ///
    /// # Errors
    /// When the congestion control refuses; nothing changes then. A listener that was closed is ignored.
    pub fn set_listener_options(
        &mut self,
        id: ListenerId,
        options: SocketOptions,
    ) -> Result<(), SocketError> {
        let Some(local) = self.listeners.get(id).map(|l| l.local) else {
            return Ok(());
        };
        self.check_options(local, &options)?;
        self.listeners.set_options(id, options);
        Ok(())
    }

    /// Reports an invalid configuration now, not at the first connection.
    fn check_options(&self, local: SocketAddr, options: &SocketOptions) -> Result<(), SocketError> {
        let probe = Tuple {
            addresses: pair(local.ip(), local.ip())?,
            local_port: local.port(),
            remote_port: 0,
        };
        self.parts(&probe, options)?;
        if let Some(mptcp) = &options.mptcp {
            self.check_multipath(mptcp)?;
        }
        Ok(())
    }

    /// Closes a listener. Half-open connections are removed; open ones that were not reported to the application
    /// are reset.
    pub fn close_listener(&mut self, id: ListenerId) {
        if !self.listeners.remove(id) {
            return;
        }
        for slot in self.table.occupied() {
            let Some(c) = self.table.slot_mut(slot) else {
                continue;
            };
            if c.origin == Origin::HalfOpen(id) || c.origin == Origin::Queued(id) {
                c.origin = Origin::Accepted;
                c.is_released = true;
                c.transport.abort(self.now);
                self.on_changed(slot);
            }
        }
    }

    /// Opens a connection: the SYN is returned by [`poll_transmit`](Self::poll_transmit). Without `local`,
    /// or with an unspecified address or port zero in it, the host chooses (RFC 6056 §3.3.3).
    ///
    /// # Errors
    /// When there is no way to the remote address, the local one is not ours or taken, or the congestion
    /// control refuses.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: &SocketOptions,
    ) -> Result<ConnectionId, SocketError> {
        self.now = self.now.max(now);
        let tuple = self.choose(local, remote)?;
        let transport = match &options.mptcp {
            Some(mptcp) => self.connect_multipath(&tuple, options, mptcp)?,
            None => {
                let isn = self.secrets.isn(&tuple, self.now);
                let (config, controller) = self.parts(&tuple, options)?;
                let init = self.init_fast(&tuple, isn, options, false);
                Transport::Tcp(Endpoint::connect(config, controller, init, self.now))
            }
        };
        let id = self
            .admit(&tuple, transport, Origin::Active, options.dscp)
            .ok_or(SocketError::NoPortLeft)?;
        self.stats.opened += 1;
        self.on_changed(id.slot);
        Ok(id)
    }

    /// Whether the SYN of a connection will show a Fast Open cookie, and so may carry data.
    pub fn shows_cookie(&self, id: ConnectionId) -> bool {
        let remote = self.table.get(id).map(|c| c.path.tuple.addresses.dst());
        remote.is_some_and(|remote| self.knows_cookie(remote))
    }

    /// Whether a host has granted a Fast Open cookie.
    pub fn knows_cookie(&self, remote: IpAddr) -> bool {
        self.cookies.contains_key(&remote)
    }

    fn choose(
        &mut self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Result<Tuple, SocketError> {
        let to = remote.ip();
        if !is_unicast(&to) || remote.port() == 0 {
            return Err(SocketError::BadRemote { remote });
        }
        if self.config.addresses.contains(&to) {
            return Err(SocketError::Ourselves { remote });
        }
        let from = match local.map(|l| l.ip()).filter(|ip| !ip.is_unspecified()) {
            Some(ip) if self.config.addresses.contains(&ip) => ip,
            Some(address) => return Err(SocketError::NotOurs { address }),
            None => self.source_for(to).ok_or(SocketError::NoRoute { remote })?,
        };
        let addresses = Addresses::new(from, to).ok_or(SocketError::NoRoute { remote })?;
        let mut tuple = Tuple {
            addresses,
            local_port: local.map_or(0, |l| l.port()),
            remote_port: remote.port(),
        };
        if tuple.local_port == 0 {
            self.choose_port(&mut tuple)?;
        } else if self.table.find(&tuple).is_some() {
            return Err(SocketError::InUse {
                local: tuple.local(),
            });
        }
        Ok(tuple)
    }

    /// Our first address of the family.
    pub(crate) fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        let of_family = |a: &&IpAddr| a.is_ipv4() == to.is_ipv4();
        self.config.addresses.iter().find(of_family).copied()
    }

    /// RFC 6056 §3.3.3, algorithm 3: starts at an offset that depends on the remote address, and advances by one
    /// with every connection.
    fn choose_port(&mut self, tuple: &mut Tuple) -> Result<(), SocketError> {
        let (first, last) = self.config.ephemeral_ports;
        let count = u64::from(last - first) + 1;
        let offset = self.secrets.port_offset(tuple) % count;
        for _ in 0..count {
            let n = offset.wrapping_add(self.ports_taken) % count;
            self.ports_taken = self.ports_taken.wrapping_add(1);
            // Below `count`, so that the sum is at most `last`.
            tuple.local_port = first + n as u16;
            let port = tuple.local_port;
            if self.table.find(tuple).is_none()
                && !self.listeners.has_port(port)
                && !self.table.is_multipath_port(port)
            {
                return Ok(());
            }
        }
        Err(SocketError::NoPortLeft)
    }

    /// Writes content; returns how much the send buffer took: 0 when it is full or the connection accepts no data.
    /// If that is not all, [`HostEvent::Writable`](crate::HostEvent) follows.
    pub fn write(&mut self, id: ConnectionId, data: Bytes) -> usize {
        self.write_with(id, data, Ending::Plain)
    }

    /// The same, with what follows the data; Multipath TCP does not use that.
    pub fn write_with(&mut self, id: ConnectionId, data: Bytes, ending: Ending) -> usize {
        let Some(c) = self.table.get_mut(id) else {
            return 0;
        };
        let taken = c.transport.write(data, ending);
        self.on_changed(id.slot);
        taken
    }

    /// How many bytes [`write`](Self::write) would take now.
    pub fn write_room(&self, id: ConnectionId) -> u64 {
        self.table.get(id).map_or(0, |c| c.transport.write_room())
    }

    /// Whether an application that waits for room should write: as [`Endpoint::is_writable`].
    pub fn is_writable(&self, id: ConnectionId) -> bool {
        let c = self.table.get(id);
        c.is_some_and(|c| match &c.transport {
            Transport::Tcp(e) => e.is_writable(),
            Transport::Mptcp(m) => m.connection.write_room() > 0,
        })
    }

    /// Whether ICMP errors that report a smaller path MTU are ignored from now on (Linux: `IP_MTU_DISCOVER` with
    /// `IP_PMTUDISC_DONT`, `IP_PMTUDISC_INTERFACE` or `IP_PMTUDISC_OMIT`); of the first path only, if there are
    /// several.
    pub fn set_keeps_mtu(&mut self, id: ConnectionId, keeps: bool) {
        self.set_path(id, |path| path.keeps_mtu = keeps);
    }

    /// Differentiated services codepoint of the packets from now on, 0 to 63 (RFC 2474); of the first path only, if
    /// there are several.
    pub fn set_dscp(&mut self, id: ConnectionId, dscp: u8) {
        self.set_path(id, |path| path.header.dscp = dscp & 0x3f);
    }

    /// Changes the first path of a connection, also where it is one of several.
    fn set_path(&mut self, id: ConnectionId, set: impl Fn(&mut Path)) {
        if let Some(c) = self.table.get_mut(id) {
            let tuple = c.path.tuple;
            set(&mut c.path);
            if let Some(path) = c.path_mut(&tuple) {
                set(path);
            }
        }
    }

    /// The present DSCP of a connection; `None` if there is no such connection.
    pub fn dscp(&self, id: ConnectionId) -> Option<u8> {
        self.table.get(id).map(|c| c.path.header.dscp)
    }

    /// Reads at most `max` bytes, in order and each once; `None` when nothing is ready. Reading opens
    /// the receive window.
    pub fn read(&mut self, id: ConnectionId, max: u64) -> Option<Bytes> {
        let c = self.table.get_mut(id)?;
        let chunk = c.transport.read(max)?;
        self.on_changed(id.slot);
        Some(match chunk {
            Chunk::Real(bytes) => bytes,
            // Datagrams carry real bytes; a gap between them would read as zeros.
            Chunk::Synthetic(n) => Bytes::from(vec![0; usize::try_from(n).unwrap_or(0)]),
        })
    }

    /// Closes our direction: a FIN follows what was written. The peer's stays open.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.now = self.now.max(now);
        if let Some(c) = self.table.get_mut(id) {
            c.transport.close(self.now);
            self.on_changed(id.slot);
        }
    }

    /// Ends the connection at once; the peer gets a reset.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.now = self.now.max(now);
        if let Some(c) = self.table.get_mut(id) {
            c.transport.abort(self.now);
            self.on_changed(id.slot);
        }
    }

    /// Releases a connection: there are no more events or reads, and the id is invalid from now on. A connection
    /// that is still open is closed, delivers the written data and may wait [`HostConfig::orphan_timeout`] for the
    /// peer's FIN; with data that was not read, or arrives later, it is reset instead (RFC 1122 §4.2.2.13).
    /// TIME-WAIT is kept.
    ///
    /// [`HostConfig::orphan_timeout`]: crate::HostConfig::orphan_timeout
    pub fn release(&mut self, id: ConnectionId) {
        let (now, timeout) = (self.now, self.config.orphan_timeout);
        let Some(c) = self.table.get_mut(id) else {
            return;
        };
        if let Origin::Queued(listener) = c.origin {
            c.origin = Origin::Accepted;
            self.listeners.on_taken(listener);
        }
        let Some(c) = self.table.get_mut(id) else {
            return;
        };
        c.is_released = true;
        match c.transport.state() {
            State::Closed | State::TimeWait => {}
            _ if c.transport.readable() > 0 => c.transport.abort(now),
            _ => {
                c.transport.close(now);
                c.orphan(now, timeout);
            }
        }
        self.on_changed(id.slot);
    }

    /// State of the connection; DATA_FIN counts as FIN.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.table.get(id).map(|c| c.transport.state())
    }

    /// Why the connection ended, if it did not end in order.
    pub fn error(&self, id: ConnectionId) -> Option<Error> {
        self.table.get(id)?.transport.error()
    }

    /// Bytes ready to be read.
    pub fn readable(&self, id: ConnectionId) -> u64 {
        self.table.get(id).map_or(0, |c| c.transport.readable())
    }

    /// Bytes written that the peer has not acknowledged.
    pub fn unacknowledged(&self, id: ConnectionId) -> u64 {
        let c = self.table.get(id);
        c.map_or(0, |c| c.transport.unacknowledged())
    }

    /// Counters of the connection, summed over its subflows.
    pub fn tcp_stats(&self, id: ConnectionId) -> Option<gargalo_tcp::Stats> {
        self.table.get(id).map(|c| c.transport.stats())
    }

    /// The endpoint of a TCP connection; `None` for one with Multipath TCP.
    pub fn endpoint(&self, id: ConnectionId) -> Option<&Endpoint> {
        match &self.table.get(id)?.transport {
            Transport::Tcp(endpoint) => Some(endpoint),
            Transport::Mptcp(_) => None,
        }
    }

    /// The endpoint of a TCP connection, for its notices and samples. The host checks afterwards whether it has
    /// data to send.
    pub fn endpoint_mut(&mut self, id: ConnectionId) -> Option<&mut Endpoint> {
        match self.transport_mut(id)? {
            Transport::Tcp(endpoint) => Some(endpoint),
            Transport::Mptcp(_) => None,
        }
    }

    /// A connection that was opened with [`SocketOptions::mptcp`], whether the peer supports Multipath TCP or not.
    /// `None` for one that was TCP from its first segment on.
    pub fn multipath(&self, id: ConnectionId) -> Option<&gargalo_mptcp::Connection> {
        match &self.table.get(id)?.transport {
            Transport::Mptcp(m) => Some(&m.connection),
            Transport::Tcp(_) => None,
        }
    }

    /// The same, for notices, samples, addresses and backups. The host checks afterwards whether it has data to
    /// send.
    pub fn multipath_mut(&mut self, id: ConnectionId) -> Option<&mut gargalo_mptcp::Connection> {
        match self.transport_mut(id)? {
            Transport::Mptcp(m) => Some(&mut m.connection),
            Transport::Tcp(_) => None,
        }
    }

    fn transport_mut(&mut self, id: ConnectionId) -> Option<&mut Transport> {
        let c = self.table.get_mut(id)?;
        if !c.is_ready {
            c.is_ready = true;
            self.ready.push_back(id.slot);
        }
        Some(&mut c.transport)
    }

    /// Our address and port; those of the first subflow.
    pub fn local_addr(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.table.get(id).map(|c| c.path.tuple.local())
    }

    /// The peer's address and port; those of the first subflow.
    pub fn remote_addr(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.table.get(id).map(|c| c.path.tuple.remote())
    }

    /// The path MTU that the connection assumes, in bytes.
    pub fn path_mtu(&self, id: ConnectionId) -> Option<u32> {
        self.table.get(id).map(|c: &Connection| c.path.mtu)
    }
}

fn pair(a: IpAddr, b: IpAddr) -> Result<Addresses, SocketError> {
    Addresses::new(a, b).ok_or(SocketError::NotOurs { address: a })
}

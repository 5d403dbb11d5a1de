//! Multipath TCP at a host: opening of connections, joins, and the tuples of subflows.

use std::net::IpAddr;
use std::sync::Arc;

use gargalo_mptcp::crypto::Key;
use gargalo_mptcp::{ConfigError, Connection, ResetReason};
use gargalo_units::{Ecn, Instant, Seq};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, Join, MptcpOption, Reset};
use gargalo_wire::tcp::{Flags, Segment};

use crate::config::is_unicast;
use crate::connection::Tuple;
use crate::listen::fit;
use crate::transport::Transport;
use crate::{Host, ListenerId, MptcpOptions, SocketError, SocketOptions};

/// Keys tried before a connection falls back to TCP: a token is in use with a probability of connections / 2^32.
const MOST_KEYS: u64 = 16;

/// The MPTCP option of an acknowledgement with a cookie.
pub(crate) enum CookieMode {
    /// The connection is plain TCP: without an option, or with a key that is not ours.
    Plain,
    /// It repeats our key.
    Multipath(Arc<MptcpOptions>),
    /// DSS: data that arrived before the packet with the keys, which will be retransmitted (RFC 8684 §3.1).
    Later,
}

fn options_of(segment: &Segment) -> impl Iterator<Item = &MptcpOption> {
    let list = segment.options.mptcp.as_deref();
    list.into_iter().flat_map(|l| l.iter())
}

/// Whether a SYN has MP_CAPABLE of our version.
pub(crate) fn offers_multipath(syn: &Segment) -> bool {
    options_of(syn).any(|o| matches!(o, MptcpOption::Capable { version: 1, .. }))
}

/// The token in the SYN of a join.
fn join_token(segment: &Segment) -> Option<u32> {
    let is_syn =
        segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
    options_of(segment).find_map(|o| match o {
        MptcpOption::Join(Join::Syn { receiver_token, .. }) if is_syn => Some(*receiver_token),
        _ => None,
    })
}

impl Host {
    /// Adds an address. Multipath TCP connections whose options name no addresses use it. Returns `false` if the
    /// host has it already, or it is not unicast.
    pub fn add_address(&mut self, now: Instant, address: IpAddr) -> bool {
        self.now = self.now.max(now);
        if !is_unicast(&address) || self.config.addresses.contains(&address) {
            return false;
        }
        self.config.addresses.push(address);
        self.each_multipath(|now, m| {
            if m.takes_all {
                m.connection.add_address(now, address, false);
            }
        });
        true
    }

    /// Removes an address: its subflows end, and their connections continue without them. Its TCP connections will
    /// time out. Returns `false` if the host did not have it.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) -> bool {
        self.now = self.now.max(now);
        let before = self.config.addresses.len();
        self.config.addresses.retain(|a| *a != address);
        if self.config.addresses.len() == before {
            return false;
        }
        self.each_multipath(|now, m| m.connection.remove_address(now, address));
        true
    }

    fn each_multipath(&mut self, mut f: impl FnMut(Instant, &mut crate::transport::Multipath)) {
        for slot in self.table.occupied() {
            let now = self.now;
            if let Some(c) = self.table.slot_mut(slot)
                && let Transport::Mptcp(m) = &mut c.transport
            {
                f(now, m);
                self.on_changed(slot);
            }
        }
    }

    pub(crate) fn check_multipath(&self, mptcp: &MptcpOptions) -> Result<(), SocketError> {
        let all = mptcp.addresses.iter().chain(&mptcp.backups);
        match all.copied().find(|a| !self.config.addresses.contains(a)) {
            Some(address) => Err(SocketError::NotOurs { address }),
            None => Ok(()),
        }
    }

    /// The configuration and initial values of a connection; `key` if it is determined already.
    fn multipath_parts(
        &self,
        tuple: &Tuple,
        options: &SocketOptions,
        mptcp: &MptcpOptions,
        key: Option<u64>,
    ) -> Option<(gargalo_mptcp::Config, gargalo_mptcp::Init)> {
        let addresses = if mptcp.addresses.is_empty() {
            self.config.addresses.clone()
        } else {
            mptcp.addresses.clone()
        };
        let v6 = tuple.is_v6() || addresses.iter().any(IpAddr::is_ipv6);
        let headers = if v6 { 60 } else { 40 };
        let config = gargalo_mptcp::Config {
            tcp: fit(&options.tcp, self.config.mtu, headers),
            ..mptcp.config.clone()
        };
        let serial = self.table.next_serial();
        let free = |key: &u64| self.table.tokens.get(Key::new(*key).token()).is_none();
        let key = match key {
            Some(key) => Some(key).filter(free),
            None => (0..MOST_KEYS)
                .map(|n| self.secrets.mptcp_key(serial, n))
                .find(free),
        }?;
        let init = gargalo_mptcp::Init {
            key,
            rng: self.secrets.stream(serial),
            addresses,
            backups: mptcp.backups.clone(),
            gateways: Vec::new(),
            names: mptcp.names.clone(),
        };
        Some((config, init))
    }

    pub(crate) fn connect_multipath(
        &self,
        tuple: &Tuple,
        options: &SocketOptions,
        mptcp: &MptcpOptions,
    ) -> Result<Transport, SocketError> {
        self.check_multipath(mptcp)?;
        let (config, init) = self
            .multipath_parts(tuple, options, mptcp, None)
            .ok_or(SocketError::NoPortLeft)?;
        let congestion = Arc::clone(&options.congestion);
        let made = Connection::connect(config, congestion, init, tuple.into(), self.now);
        match made {
            Ok(c) => Ok(Transport::multipath(c, mptcp.addresses.is_empty())),
            Err(ConfigError::Congestion(message)) => Err(SocketError::Congestion {
                name: options.congestion.name().to_owned(),
                message,
            }),
            Err(e) => Err(SocketError::Multipath(e)),
        }
    }

    /// Processes a SYN with MP_CAPABLE for a listener with Multipath TCP.
    pub(crate) fn on_multipath_syn(
        &mut self,
        id: ListenerId,
        tuple: &Tuple,
        syn: Segment,
        ecn: Ecn,
        options: &SocketOptions,
        mptcp: &MptcpOptions,
    ) {
        let parts = self.multipath_parts(tuple, options, mptcp, None);
        let made = parts.and_then(|(config, init)| {
            Connection::listen(config, Arc::clone(&options.congestion), init).ok()
        });
        let Some(mut connection) = made else {
            self.stats.dropped_by_backlog += 1;
            return;
        };
        connection.handle(self.now, tuple.into(), syn, ecn);
        let transport = Transport::multipath(connection, mptcp.addresses.is_empty());
        self.half_open(id, tuple, transport);
    }

    /// Adds MP_CAPABLE to a stateless answer: the key follows from the tuple and the sequence number, and is
    /// repeated in the third packet.
    pub(crate) fn offer_in_cookie(
        &self,
        tuple: &Tuple,
        mptcp: &MptcpOptions,
        answer: &mut Segment,
    ) {
        let key = self.secrets.mptcp_cookie_key(tuple, answer.seq);
        if self.table.tokens.get(Key::new(key).token()).is_some() {
            return;
        }
        let flags = if mptcp.config.options.checksum {
            CapableFlags::HMAC_SHA256 | CapableFlags::CHECKSUM
        } else {
            CapableFlags::HMAC_SHA256
        };
        let option = MptcpOption::Capable {
            version: 1,
            flags,
            keys: CapableKeys::Sender(key),
        };
        answer.options.mptcp = Some(Box::new(option.into()));
    }

    /// The MPTCP option of the acknowledgement of a cookie with sequence number `isn`.
    pub(crate) fn multipath_of_cookie(
        &self,
        tuple: &Tuple,
        isn: Seq,
        options: &SocketOptions,
        ack: &Segment,
    ) -> CookieMode {
        let Some(mptcp) = options
            .mptcp
            .as_ref()
            .filter(|_| ack.options.mptcp.is_some())
        else {
            return CookieMode::Plain;
        };
        let keys = options_of(ack).find_map(|o| match o {
            MptcpOption::Capable { keys, .. } => Some(*keys),
            _ => None,
        });
        match keys {
            Some(
                CapableKeys::Both { receiver, .. } | CapableKeys::BothAndData { receiver, .. },
            ) if receiver == self.secrets.mptcp_cookie_key(tuple, isn) => {
                CookieMode::Multipath(Arc::clone(mptcp))
            }
            Some(_) => CookieMode::Plain,
            None => CookieMode::Later,
        }
    }

    /// Creates the connection of a cookie and its keys.
    #[allow(clippy::too_many_arguments)] // all of them are parts of the packet
    pub(crate) fn resume_multipath(
        &self,
        tuple: &Tuple,
        isn: Seq,
        options: &SocketOptions,
        mptcp: &MptcpOptions,
        syn: &Segment,
        ack: Segment,
        ecn: Ecn,
    ) -> Option<Transport> {
        let key = self.secrets.mptcp_cookie_key(tuple, isn);
        let (config, init) = self.multipath_parts(tuple, options, mptcp, Some(key))?;
        let mut syn = syn.clone();
        let offer = MptcpOption::Capable {
            version: 1,
            flags: flags_of(&ack),
            keys: CapableKeys::None,
        };
        syn.options.mptcp = Some(Box::new(offer.into()));
        let congestion = Arc::clone(&options.congestion);
        let (now, tcp) = (self.now, self.init(tuple, isn));
        let made = Connection::resume(config, congestion, init, tuple.into(), tcp, now, &syn);
        let mut connection = made.ok()?;
        connection.handle(now, tuple.into(), ack, ecn);
        Some(Transport::multipath(connection, mptcp.addresses.is_empty()))
    }

    /// The connection that a SYN joins.
    pub(crate) fn joined_by(&self, segment: &Segment) -> Option<u32> {
        self.table.tokens.get(join_token(segment)?).copied()
    }

    /// Refuses a SYN for a listener with Multipath TCP that joins no known connection (RFC 8684 §3.2); `false` if
    /// it is not such a SYN.
    pub(crate) fn refuse_join(&mut self, id: ListenerId, tuple: &Tuple, syn: &Segment) -> bool {
        let wanted = self
            .listeners
            .get(id)
            .is_some_and(|l| l.options.mptcp.is_some());
        if !wanted || join_token(syn).is_none() {
            return false;
        }
        self.stats.joins_refused += 1;
        let why = MptcpOption::Reset(Reset {
            flags: 0,
            reason: ResetReason::ProtocolError.code(),
        });
        self.reset_with(tuple, syn, Some(why));
        true
    }

    /// Updates the tuples of a connection after any change: those of new subflows are attached, those of ended
    /// subflows removed.
    #[inline]
    pub(crate) fn follow_subflows(&mut self, slot: u32) {
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        if let Transport::Mptcp(m) = &mut c.transport
            && m.version != m.connection.subflow_changes()
            && c.is_attached
        {
            m.version = m.connection.subflow_changes();
            let there = m.connection.subflow_addresses();
            let there: Vec<Tuple> = there.filter_map(|a| Tuple::of(&a)).collect();
            let mut gone: Vec<Tuple> = m.paths.iter().map(|p| p.tuple).collect();
            gone.retain(|t| !there.contains(t));
            m.paths.retain(|p| there.contains(&p.tuple));
            let known = |t: &Tuple| m.paths.iter().any(|p| p.tuple == *t);
            let new = there.into_iter().filter(|t| !known(t)).collect();
            self.exchange(slot, &gone, new);
        }
    }

    fn exchange(&mut self, slot: u32, gone: &[Tuple], new: Vec<Tuple>) {
        for tuple in gone {
            self.table.detach_tuple(slot, tuple);
        }
        for tuple in new {
            let path = self.path(&tuple);
            let taken = self.table.find(&tuple).is_some_and(|other| other != slot);
            if !taken {
                self.table.attach(slot, tuple);
            }
            let now = self.now;
            let Some(c) = self.table.slot_mut(slot) else {
                return;
            };
            match &mut c.transport {
                // Another connection uses the port: the subflow is given up and tried again later.
                _ if taken => c.transport.on_unreachable(now, &tuple, true),
                Transport::Mptcp(m) => m.paths.push(path),
                Transport::Tcp(_) => {}
            }
        }
    }
}

/// The MP_CAPABLE flags of the third packet, which are those of the SYN (RFC 8684 §3.1).
fn flags_of(ack: &Segment) -> CapableFlags {
    let flags = options_of(ack).find_map(|o| match o {
        MptcpOption::Capable { flags, .. } => Some(*flags),
        _ => None,
    });
    flags.unwrap_or(CapableFlags::HMAC_SHA256)
}

//! The addresses of both hosts, and ADD_ADDR and REMOVE_ADDR (RFC 8684 §3.4).

use std::net::{IpAddr, SocketAddr};

use gargalo_units::{Duration, Instant};
use gargalo_wire::mptcp::{AddAddr, MptcpOption};

use super::{Connection, Mode, ip};
use crate::addresses::Addresses;
use crate::crypto::address_hmac;
use crate::error::ResetReason;
use crate::path_manager::{LocalAddress, RemoteAddress};
use crate::{Init, Names};

/// Maximum number of pending options on a subflow: it bounds the answers that a peer can cause.
const MOST_SIGNALS: usize = 16;
/// How often REMOVE_ADDR and MP_PRIO are sent: they are not acknowledged, and the segment may be lost.
const UNACKNOWLEDGED_SENT: u32 = 3;
/// Minimum time for the echo of an ADD_ADDR before the next one is sent.
const ECHO_WAIT: Duration = Duration::from_millis(20);

/// The addresses of both hosts.
#[derive(Debug, Default)]
pub(super) struct AddressTable {
    pub(super) local: Vec<LocalAddress>,
    pub(super) remote: Vec<RemoteAddress>,
    pub(super) gateways: Vec<IpAddr>,
    pub(super) names: Names,
    /// Our addresses, until the initial subflow determines which has identifier 0.
    given: Vec<(IpAddr, bool)>,
    next_id: u8,
    announced: Vec<Announcement>,
    /// When the next ADD_ADDR may be sent; see [`Connection::repeat_announcements`].
    announce_from: Instant,
    /// Options that are sent several times, as the peer does not acknowledge them.
    repeated: Vec<Repeated>,
    pub(super) failures: Vec<Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Announcement {
    id: u8,
    sent: u32,
    echoed: bool,
    again_at: Instant,
}

/// An option that no answer confirms. A peer that has it already ignores it (RFC 8684 §3.3.8, §3.4.2).
#[derive(Clone, Copy, Debug)]
struct Repeated {
    what: Unacknowledged,
    sent: u32,
    again_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unacknowledged {
    /// REMOVE_ADDR for the address of this identifier, on every usable subflow.
    Removal { id: u8 },
    /// MP_PRIO on the subflow of this number.
    Priority { subflow: u32 },
}

/// A pair of addresses between which a subflow ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) local: u8,
    pub(super) remote: u8,
    pub(super) count: u32,
    pub(super) retry_at: Instant,
}

impl AddressTable {
    pub(super) fn new(init: &Init) -> Self {
        let backup = |a: &IpAddr| init.backups.contains(a);
        Self {
            gateways: init.gateways.clone(),
            names: init.names.clone(),
            given: init.addresses.iter().map(|a| (*a, backup(a))).collect(),
            next_id: 1,
            ..Self::default()
        }
    }

    /// Sets the addresses of the initial subflow, which have identifier 0 (RFC 8684 §3.2).
    pub(super) fn set_initial(&mut self, addresses: Addresses) {
        let initial = ip(addresses.local);
        self.remote.push(RemoteAddress {
            id: 0,
            address: ip(addresses.remote),
            port: addresses.remote.port(),
        });
        let given = std::mem::take(&mut self.given);
        let is_backup = given.iter().any(|(a, b)| *a == initial && *b);
        self.local.push(LocalAddress {
            id: 0,
            address: initial,
            backup: is_backup,
        });
        for (address, backup) in given {
            self.add(address, backup);
        }
    }

    /// Adds a local address; `None` if it exists, or if no identifier is left.
    fn add(&mut self, address: IpAddr, backup: bool) -> Option<u8> {
        if self.local.iter().any(|l| l.address == address) {
            return None;
        }
        let taken = |id: u8| self.local.iter().any(|l| l.id == id);
        let id = (0..=254)
            .map(|n: u8| self.next_id.wrapping_add(n).max(1))
            .find(|id| !taken(*id))?;
        self.next_id = id.wrapping_add(1).max(1);
        let removal = Unacknowledged::Removal { id };
        self.repeated.retain(|r| r.what != removal);
        self.local.push(LocalAddress {
            id,
            address,
            backup,
        });
        Some(id)
    }
}

impl Connection {
    /// Adds an address of this host: the path manager may open subflows from it and announces it. Returns its
    /// identifier; `None` if the address is known.
    pub fn add_address(&mut self, now: Instant, address: IpAddr, backup: bool) -> Option<u8> {
        let id = self.address_table.add(address, backup)?;
        self.on_paths_changed(now);
        Some(id)
    }

    /// Removes an address of this host: its subflows end at once, without sending anything from there. The removal
    /// is announced on the other subflows, or on the next one (RFC 8684 §3.4.2), and the data of the ended ones is
    /// reinjected.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) {
        let Some(at) = self
            .address_table
            .local
            .iter()
            .position(|l| l.address == address)
        else {
            return;
        };
        let id = self.address_table.local.remove(at).id;
        self.address_table.announced.retain(|a| a.id != id);
        while let Some(i) = self
            .subflows
            .iter()
            .position(|s| ip(s.addresses.local) == address)
        {
            self.drop_subflow(now, i);
        }
        if self.mode == Mode::Multipath {
            self.tell_repeatedly(now, Unacknowledged::Removal { id });
        } else if self.subflows.is_empty() {
            self.end(now, Some(gargalo_tcp::Error::Unreachable));
        }
        self.on_paths_changed(now);
    }

    /// Sends MP_PRIO on a subflow.
    pub(super) fn announce_priority(&mut self, now: Instant, subflow: u32) {
        self.tell_repeatedly(now, Unacknowledged::Priority { subflow });
    }

    fn tell_repeatedly(&mut self, now: Instant, what: Unacknowledged) {
        let repeated = &mut self.address_table.repeated;
        repeated.retain(|r| r.what != what);
        repeated.push(Repeated {
            what,
            sent: 0,
            again_at: now,
        });
        self.repeat_unacknowledged(now);
    }

    /// Sends REMOVE_ADDR and MP_PRIO that are due. The next repetition is after a retransmission timeout, then after
    /// two of them. Without a usable subflow they wait for one.
    pub(super) fn repeat_unacknowledged(&mut self, now: Instant) {
        self.timers.repeat = Instant::MAX;
        if self.mode != Mode::Multipath {
            return;
        }
        let usable = self.views.iter().filter(|v| v.usable);
        let Some(rto) = usable.map(|v| v.rto).max() else {
            return;
        };
        let mut repeated = std::mem::take(&mut self.address_table.repeated);
        let mut removed = Vec::new();
        for r in repeated.iter_mut().filter(|r| r.again_at <= now) {
            match r.what {
                Unacknowledged::Removal { id } => removed.push(id),
                Unacknowledged::Priority { subflow } => {
                    let found = self.subflows.iter_mut().find(|s| s.id == subflow);
                    let Some(s) = found.filter(|s| s.confirmed) else {
                        r.sent = UNACKNOWLEDGED_SENT;
                        continue;
                    };
                    let backup = s.backup.own;
                    s.outbox.signals.push_back(MptcpOption::Prio { backup });
                    self.work.active |= s.bit();
                }
            }
            r.again_at = now + rto.saturating_mul(1 << r.sent);
            r.sent += 1;
        }
        if !removed.is_empty() {
            let ids = bytes::Bytes::from(removed);
            for s in self.subflows.iter_mut().filter(|s| s.is_usable()) {
                if s.outbox.signals.len() < MOST_SIGNALS {
                    s.outbox
                        .signals
                        .push_back(MptcpOption::RemoveAddr(ids.clone()));
                    self.work.active |= s.bit();
                }
            }
        }
        repeated.retain(|r| r.sent < UNACKNOWLEDGED_SENT);
        let next = repeated.iter().map(|r| r.again_at).min();
        self.timers.repeat = next.unwrap_or(Instant::MAX);
        self.address_table.repeated = repeated;
    }

    /// Announces new addresses if the path manager wants that.
    pub(super) fn announce_new(&mut self, now: Instant) {
        // A host that opens subflows itself needs no announcement.
        if self.is_client || !self.manager.announces() {
            return;
        }
        let known = |id: u8| id == 0 || self.address_table.announced.iter().any(|a| a.id == id);
        let new: Vec<u8> = self
            .address_table
            .local
            .iter()
            .map(|l| l.id)
            .filter(|id| !known(*id))
            .collect();
        for id in new {
            self.address_table.announced.push(Announcement {
                id,
                sent: 0,
                echoed: false,
                again_at: now,
            });
        }
        self.repeat_announcements(now);
    }

    /// Sends the next ADD_ADDR that is due, a first one or one without echo (RFC 8684 §3.4.1). One at a time, until
    /// its echo arrives or a short time has passed: Linux 6.18 stores one that it has not processed and discards
    /// others, while echoes may be delayed in queues.
    pub(super) fn repeat_announcements(&mut self, now: Instant) {
        self.timers.announce = Instant::MAX;
        let Some(peer) = self.handshake.peer else {
            return;
        };
        let usable = self.views.iter().enumerate().filter(|(_, v)| v.usable);
        let best = usable.min_by_key(|(_, v)| (v.in_loss, v.latency()));
        let Some((i, v)) = best else { return };
        let rto = v.rto;
        let echo_wait = v.min_rtt.unwrap_or(rto).max(ECHO_WAIT).min(rto);
        let own = self.handshake.own;
        for a in &mut self.address_table.announced {
            if a.echoed || a.sent > self.config.address_retries {
                continue;
            }
            if a.again_at <= now && self.address_table.announce_from <= now {
                let Some(local) = self.address_table.local.iter().find(|l| l.id == a.id) else {
                    continue;
                };
                let address = local.address;
                let hmac = address_hmac(own, peer, a.id, SocketAddr::new(address, 0));
                self.subflows[i]
                    .outbox
                    .signals
                    .push_back(MptcpOption::AddAddr(AddAddr {
                        address_id: a.id,
                        address,
                        port: None,
                        hmac: Some(hmac),
                    }));
                self.work.active |= self.subflows[i].bit();
                a.again_at = now
                    + rto
                        .max(Duration::from_secs(1))
                        .saturating_mul(1 << a.sent.min(6));
                a.sent += 1;
                self.address_table.announce_from = now + echo_wait;
            }
            let due = a.again_at.max(self.address_table.announce_from);
            self.timers.announce = self.timers.announce.min(due);
        }
    }

    /// Processes ADD_ADDR of the peer, or its echo of ours.
    pub(super) fn on_add_address(&mut self, now: Instant, i: usize, a: &AddAddr) {
        let (Some(peer), true) = (self.handshake.peer, self.mode == Mode::Multipath) else {
            return;
        };
        let Some(hmac) = a.hmac else {
            for own in &mut self.address_table.announced {
                own.echoed |= own.id == a.address_id;
            }
            self.address_table.announce_from = now;
            self.repeat_announcements(now);
            return;
        };
        let port = a.port.unwrap_or(0);
        let address = SocketAddr::new(a.address, port);
        if hmac != address_hmac(peer, self.handshake.own, a.address_id, address) {
            self.stats.ignored_options += 1;
            return;
        }
        self.on_keys_known(now);
        let s = &mut self.subflows[i];
        if s.outbox.signals.len() < MOST_SIGNALS {
            s.outbox
                .signals
                .push_back(MptcpOption::AddAddr(AddAddr { hmac: None, ..*a }));
            self.work.active |= s.bit();
        }
        let known = self
            .address_table
            .remote
            .iter()
            .any(|r| r.id == a.address_id);
        if known || self.address_table.remote.len() >= self.config.max_remote_addresses {
            self.stats.ignored_options += u64::from(!known);
            return;
        }
        let initial_port = self.address_table.remote.first().map_or(0, |r| r.port);
        let at = self
            .address_table
            .remote
            .partition_point(|r| r.id < a.address_id);
        self.address_table.remote.insert(
            at,
            RemoteAddress {
                id: a.address_id,
                address: a.address,
                port: a.port.unwrap_or(self.server_port(initial_port)),
            },
        );
        self.on_paths_changed(now);
    }

    /// The port on which the peer listens: the one that the connection was opened to.
    fn server_port(&self, known: u16) -> u16 {
        if known != 0 {
            return known;
        }
        self.subflows
            .first()
            .map_or(0, |s| s.addresses.remote.port())
    }

    /// Processes REMOVE_ADDR of the peer: a subflow of these addresses is probed, and ends if the peer does not answer
    /// (RFC 8684 §3.4.2). Until then it carries no new data, and its data is reinjected on others.
    pub(super) fn on_remove_address(&mut self, now: Instant, ids: &[u8]) {
        if self.mode != Mode::Multipath {
            return;
        }
        for id in ids {
            if *id != 0 {
                self.address_table.remote.retain(|r| r.id != *id);
            }
            for i in 0..self.subflows.len() {
                if self.subflows[i].join.remote_id == Some(*id) {
                    self.doubt(now, i);
                }
            }
        }
    }

    /// Ends a subflow at once, without sending anything.
    pub(super) fn drop_subflow(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        s.closing = true;
        s.endpoint.abort(now);
        self.reinject(now, i);
        self.remove(now, i);
    }

    fn doubt(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        if !s.is_usable() {
            // Being probed already, or not open.
            if s.removal.at == Instant::MAX {
                self.reset_subflow(now, i, ResetReason::Unspecified);
            }
            return;
        }
        let sender = s.endpoint.snapshot(now);
        s.removal.answered_from = now + sender.min_rtt.unwrap_or(Duration::ZERO);
        s.removal.at = now + sender.rto;
        s.endpoint.probe();
        self.work.active |= s.bit();
        self.refresh(now, i);
        self.reinject(now, i);
    }

    /// The peer has answered on a path whose address it has removed: the subflow is its to end.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        if s.removal.at != Instant::MAX && now >= s.removal.answered_from {
            s.removal.cancel();
            self.refresh(now, i);
            self.work.schedule_due = true;
        }
    }
}

//! Addresses: which there are, and ADD_ADDR, REMOVE_ADDR (RFC 8684 §3.4).

use std::net::{IpAddr, SocketAddr};

use gargalo_units::{Duration, Instant};
use gargalo_wire::mptcp::{AddAddr, MptcpOption};

use super::{Connection, Mode, ip};
use crate::addresses::Addresses;
use crate::crypto::address_hmac;
use crate::error::ResetReason;
use crate::path_manager::{LocalAddress, RemoteAddress};
use crate::{Init, Names};

/// Signals that may wait on a subflow: what a peer can make us say.
const MOST_SIGNALS: usize = 16;
/// What a peer is given at least to look at an address before it gets the next one.
const PATIENCE: Duration = Duration::from_millis(20);

/// The addresses of both hosts.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) local: Vec<LocalAddress>,
    pub(super) remote: Vec<RemoteAddress>,
    pub(super) gateways: Vec<IpAddr>,
    pub(super) names: Names,
    /// Until the initial subflow tells which of them has identifier 0.
    given: Vec<(IpAddr, bool)>,
    next_id: u8,
    announced: Vec<Announcement>,
    /// The next ADD_ADDR may leave; see [`Connection::repeat_announcements`].
    announce_from: Instant,
    /// Identifiers of addresses that went while no subflow could tell.
    pub(super) removed: Vec<u8>,
    pub(super) failures: Vec<Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Announcement {
    id: u8,
    sent: u32,
    echoed: bool,
    again_at: Instant,
}

/// A pair of addresses between which a subflow ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) local: u8,
    pub(super) remote: u8,
    pub(super) count: u32,
    pub(super) retry_at: Instant,
}

impl Book {
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

    /// The initial subflow: its addresses have identifier 0 (RFC 8684 §3.2).
    pub(super) fn meet(&mut self, addresses: Addresses) {
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

    /// Enters an address of ours; `None`: it is there, or there is no identifier left.
    fn add(&mut self, address: IpAddr, backup: bool) -> Option<u8> {
        if self.local.iter().any(|l| l.address == address) {
            return None;
        }
        let taken = |id: u8| self.local.iter().any(|l| l.id == id);
        let id = (0..=254)
            .map(|n: u8| self.next_id.wrapping_add(n).max(1))
            .find(|id| !taken(*id))?;
        self.next_id = id.wrapping_add(1).max(1);
        self.local.push(LocalAddress {
            id,
            address,
            backup,
        });
        Some(id)
    }
}

impl Connection {
    /// This host has a further address: the path manager may open subflows of it, and announces it.
    /// Its identifier; `None` if the address is known.
    pub fn add_address(&mut self, now: Instant, address: IpAddr, backup: bool) -> Option<u8> {
        let id = self.book.add(address, backup)?;
        self.on_paths_changed(now);
        Some(id)
    }

    /// This host has lost an address: its subflows end at once, without a word from there, and the peer is
    /// told on the others, or on the next one (RFC 8684 §3.4.2). What they carried goes to others.
    pub fn remove_address(&mut self, now: Instant, address: IpAddr) {
        let Some(at) = self.book.local.iter().position(|l| l.address == address) else {
            return;
        };
        let id = self.book.local.remove(at).id;
        self.book.announced.retain(|a| a.id != id);
        while let Some(i) = self
            .subflows
            .iter()
            .position(|s| ip(s.addresses.local) == address)
        {
            let s = &mut self.subflows[i];
            s.closing = true;
            s.endpoint.abort(now);
            self.reinject(now, i);
            self.remove(now, i);
        }
        if self.mode == Mode::Multipath {
            self.book.removed.push(id);
            self.tell_removed();
        } else if self.subflows.is_empty() {
            self.end(now, Some(gargalo_tcp::Error::Unreachable));
        }
        self.on_paths_changed(now);
    }

    /// REMOVE_ADDR on every usable subflow, as nothing acknowledges it.
    pub(super) fn tell_removed(&mut self) {
        if self.book.removed.is_empty() || !self.subflows.iter().any(|s| s.is_usable()) {
            return;
        }
        let ids = std::mem::take(&mut self.book.removed);
        for s in self.subflows.iter_mut().filter(|s| s.is_usable()) {
            if s.signals.len() < MOST_SIGNALS {
                let ids = bytes::Bytes::copy_from_slice(&ids);
                s.signals.push_back(MptcpOption::RemoveAddr(ids));
                self.active |= s.bit();
            }
        }
    }

    /// Announces what the path manager wants announced and the peer does not know.
    pub(super) fn announce_new(&mut self, now: Instant) {
        // Who opens subflows itself needs no announcement.
        if self.is_client || !self.manager.announces() {
            return;
        }
        let known = |id: u8| id == 0 || self.book.announced.iter().any(|a| a.id == id);
        let new: Vec<u8> = self
            .book
            .local
            .iter()
            .map(|l| l.id)
            .filter(|id| !known(*id))
            .collect();
        for id in new {
            self.book.announced.push(Announcement {
                id,
                sent: 0,
                echoed: false,
                again_at: now,
            });
        }
        self.repeat_announcements(now);
    }

    /// Sends the next ADD_ADDR that is due, a first one or one without echo (RFC 8684 §3.4.1). One at a time,
    /// until its echo comes or a little time has passed: Linux 6.18 has room for one that it has not looked at,
    /// and forgets the others; but echoes wait in queues.
    pub(super) fn repeat_announcements(&mut self, now: Instant) {
        self.timers.announce = Instant::MAX;
        let Some(peer) = self.peer else { return };
        let usable = self.views.iter().enumerate().filter(|(_, v)| v.usable);
        let best = usable.min_by_key(|(_, v)| (v.in_loss, v.latency()));
        let Some((i, v)) = best else { return };
        let rto = v.rto;
        let patience = v.min_rtt.unwrap_or(rto).max(PATIENCE).min(rto);
        let own = self.own;
        for a in &mut self.book.announced {
            if a.echoed || a.sent > self.config.address_retries {
                continue;
            }
            if a.again_at <= now && self.book.announce_from <= now {
                let Some(local) = self.book.local.iter().find(|l| l.id == a.id) else {
                    continue;
                };
                let address = local.address;
                let hmac = address_hmac(own, peer, a.id, SocketAddr::new(address, 0));
                self.subflows[i]
                    .signals
                    .push_back(MptcpOption::AddAddr(AddAddr {
                        address_id: a.id,
                        address,
                        port: None,
                        hmac: Some(hmac),
                    }));
                self.active |= self.subflows[i].bit();
                a.again_at = now
                    + rto
                        .max(Duration::from_secs(1))
                        .saturating_mul(1 << a.sent.min(6));
                a.sent += 1;
                self.book.announce_from = now + patience;
            }
            let due = a.again_at.max(self.book.announce_from);
            self.timers.announce = self.timers.announce.min(due);
        }
    }

    /// ADD_ADDR of the peer, or its echo of ours.
    pub(super) fn on_add_address(&mut self, now: Instant, i: usize, a: &AddAddr) {
        let (Some(peer), true) = (self.peer, self.mode == Mode::Multipath) else {
            return;
        };
        let Some(hmac) = a.hmac else {
            for own in &mut self.book.announced {
                own.echoed |= own.id == a.address_id;
            }
            self.book.announce_from = now;
            self.repeat_announcements(now);
            return;
        };
        let port = a.port.unwrap_or(0);
        let address = SocketAddr::new(a.address, port);
        if hmac != address_hmac(peer, self.own, a.address_id, address) {
            self.stats.ignored_options += 1;
            return;
        }
        self.on_keys_known(now);
        let s = &mut self.subflows[i];
        if s.signals.len() < MOST_SIGNALS {
            s.signals
                .push_back(MptcpOption::AddAddr(AddAddr { hmac: None, ..*a }));
            self.active |= s.bit();
        }
        let known = self.book.remote.iter().any(|r| r.id == a.address_id);
        if known || self.book.remote.len() >= self.config.max_remote_addresses {
            self.stats.ignored_options += u64::from(!known);
            return;
        }
        let initial_port = self.book.remote.first().map_or(0, |r| r.port);
        let at = self.book.remote.partition_point(|r| r.id < a.address_id);
        self.book.remote.insert(
            at,
            RemoteAddress {
                id: a.address_id,
                address: a.address,
                port: a.port.unwrap_or(self.server_port(initial_port)),
            },
        );
        self.on_paths_changed(now);
    }

    /// The port that the peer listens at: the one that the connection was opened to.
    fn server_port(&self, known: u16) -> u16 {
        if known != 0 {
            return known;
        }
        self.subflows
            .first()
            .map_or(0, |s| s.addresses.remote.port())
    }

    /// REMOVE_ADDR of the peer: subflows of these addresses end (RFC 8684 §3.4.2).
    pub(super) fn on_remove_address(&mut self, now: Instant, ids: &[u8]) {
        if self.mode != Mode::Multipath {
            return;
        }
        for id in ids {
            if *id != 0 {
                self.book.remote.retain(|r| r.id != *id);
            }
            for i in 0..self.subflows.len() {
                if self.subflows[i].remote_id == Some(*id) {
                    self.reset_subflow(now, i, ResetReason::Unspecified);
                }
            }
        }
    }
}

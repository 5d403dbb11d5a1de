//! Opening and failure of subflows, as the path manager decides (RFC 8684 §3.2, §3.3.8).

use std::net::SocketAddr;

use gargalo_units::{Duration, Instant};
use rand::Rng;

use super::announce::Failure;
use super::opening::Plan;
use super::{Connection, Mode, ip};
use crate::addresses::Addresses;
use crate::path_manager::{Open, SubflowView, View};
use crate::subflow::{Origin, Subflow};

/// The longest wait before a pair of addresses is used again.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Local ports for subflows whose default port is in use.
const PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;

impl Connection {
    /// Asks the path manager for missing subflows, and opens them.
    pub(super) fn on_paths_changed(&mut self, now: Instant) {
        // A server knows the keys with the third packet, a client when the server acknowledges it.
        let keys = self.handshake.confirmed || !self.is_client;
        if self.mode != Mode::Multipath || !keys || self.over || self.is_finishing() {
            return;
        }
        self.announce_new(now);
        let live = self.subflows.iter().filter(|s| !s.closing);
        let subflows: Vec<SubflowView> = live
            .map(|s| SubflowView {
                local: s.join.local_id,
                remote: s.join.remote_id,
                gateway: s.gateway,
            })
            .collect();
        // Pairs that have just failed are left out.
        let resting = |f: &&Failure| f.retry_at > now;
        let resting: Vec<Failure> = self
            .address_table
            .failures
            .iter()
            .filter(resting)
            .copied()
            .collect();
        let view = View {
            is_client: self.is_client,
            local: &self.address_table.local,
            remote: &self.address_table.remote,
            gateways: &self.address_table.gateways,
            names: &self.address_table.names,
            subflows: &subflows,
        };
        for open in self.manager.missing(&view) {
            let rests = |f: &Failure| (f.local, f.remote) == (open.local, open.remote);
            let denied = self.handshake.deny_join_initial && open.remote == 0;
            if !denied && !resting.iter().any(rests) {
                self.open(now, open);
            }
        }
    }

    fn open(&mut self, now: Instant, open: Open) {
        let local = self
            .address_table
            .local
            .iter()
            .find(|l| l.id == open.local)
            .copied();
        let remote = self
            .address_table
            .remote
            .iter()
            .find(|r| r.id == open.remote)
            .copied();
        let (Some(local), Some(remote)) = (local, remote) else {
            return;
        };
        if self.subflows.len() >= self.most_subflows()
            || !Addresses::is_consistent(local.address, remote.address)
        {
            return;
        }
        let Some(addresses) = self.free_addresses(local.address, remote) else {
            return;
        };
        let plan = Plan {
            addresses,
            gateway: open.gateway,
            origin: Origin::OwnJoin,
            local_id: local.id,
            remote_id: Some(remote.id),
            backup: local.backup,
            active: true,
        };
        // The congestion control was already built with the same parameters.
        let _ = self.make(now, plan);
    }

    /// Addresses with a local port that no subflow uses: the port of the connection, if possible.
    fn free_addresses(
        &mut self,
        local: std::net::IpAddr,
        remote: crate::path_manager::RemoteAddress,
    ) -> Option<Addresses> {
        let usual = self.timers.local_port;
        let with = |port| Addresses {
            local: SocketAddr::new(local, port),
            remote: SocketAddr::new(remote.address, remote.port),
        };
        if usual != 0 && self.index_of(with(usual)).is_none() {
            return Some(with(usual));
        }
        let span = u64::from(PORTS.end() - PORTS.start()) + 1;
        (0..100)
            .map(|_| PORTS.start() + (self.rng.next_u64() % span) as u16)
            .map(with)
            .find(|a| !self.subflows.iter().any(|s| s.addresses == *a))
    }

    /// A subflow has become usable.
    pub(super) fn on_path_open(&mut self, now: Instant, i: usize) {
        let s = &self.subflows[i];
        let (local, remote) = (s.join.local_id, s.join.remote_id);
        self.address_table
            .failures
            .retain(|f| f.local != local || Some(f.remote) != remote);
        self.timers.orphan = Instant::MAX;
        self.refresh(now, i);
        self.repeat_unacknowledged(now);
        self.offer_stale(now);
        self.work.schedule_due = true;
    }

    /// Records the failure of a subflow, so that it is not opened again at once.
    pub(super) fn on_path_failed(&mut self, now: Instant, s: &Subflow) {
        let Some(remote) = s.join.remote_id else {
            return;
        };
        let there = self
            .address_table
            .local
            .iter()
            .any(|l| l.address == ip(s.addresses.local));
        if !self.is_client || !there {
            return;
        }
        let mine = |f: &&mut Failure| (f.local, f.remote) == (s.join.local_id, remote);
        let retry = |count: u32| {
            let wait = self.config.retry_after.saturating_mul(1 << count.min(10));
            now + wait.min(LONGEST_RETRY)
        };
        let retry_at = match self.address_table.failures.iter_mut().find(mine) {
            Some(f) => {
                f.count += 1;
                f.retry_at = retry(f.count);
                f.retry_at
            }
            None => {
                let retry_at = retry(0);
                self.address_table.failures.push(Failure {
                    local: s.join.local_id,
                    remote,
                    count: 0,
                    retry_at,
                });
                retry_at
            }
        };
        self.timers.retry = self.timers.retry.min(retry_at);
    }

    /// Makes a subflow a backup, or a regular path again, for both hosts (MP_PRIO, RFC 8684 §3.3.8).
    /// Returns `false` if there is no subflow of this number.
    pub fn set_backup(&mut self, now: Instant, subflow: u32, backup: bool) -> bool {
        let Some(i) = self.subflows.iter().position(|s| s.id == subflow) else {
            return false;
        };
        let s = &mut self.subflows[i];
        s.backup.own = backup;
        if s.confirmed && self.mode == Mode::Multipath {
            self.announce_priority(now, subflow);
        }
        self.refresh(now, i);
        self.work.schedule_due = true;
        true
    }

    /// The network reports that the peer of a subflow is unreachable, by a hard or a soft error.
    pub fn on_unreachable(&mut self, now: Instant, addresses: Addresses, hard: bool) {
        if let Some(i) = self.index_of(addresses) {
            self.subflows[i].endpoint.on_unreachable(hard);
            self.work.active |= self.subflows[i].bit();
            self.after(now, i);
        }
    }

    /// The path of a subflow carries segments of at most `mss` bytes, options not counted.
    pub fn set_mss(&mut self, now: Instant, addresses: Addresses, mss: u16) {
        if let Some(i) = self.index_of(addresses) {
            self.subflows[i].endpoint.set_mss(now, mss);
            self.work.active |= self.subflows[i].bit();
            self.work.schedule_due = true;
            self.refresh(now, i);
        }
    }
}

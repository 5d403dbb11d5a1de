//! Retransmission at data level: after timeouts and ends of subflows, after data timeouts, and of segments that
//! block the window (RFC 8684 §3.3.6; Raiciu et al., NSDI 2012, §4.2).

use gargalo_tcp::Error;
use gargalo_units::{Duration, Instant};

use super::{Connection, Mode};
use crate::config::{OpportunisticRetransmission, Penalisation};
use crate::error::ResetReason;
use crate::event::{Carried, Notice};
use crate::send::Fin;

/// Segments examined per attempt to find one that blocks the window.
const LOOK_AHEAD: usize = 64;
/// Data timeouts caused by lost deliveries of a subflow before it is reset.
const MOST_LOST_DELIVERIES: u32 = 2;

impl Connection {
    /// Reinjects the undelivered data of subflow `i` on other subflows.
    pub(super) fn reinject(&mut self, now: Instant, i: usize) {
        if self.mode != Mode::Multipath {
            return;
        }
        let una = self.send.una as i64;
        let next = self.send.next;
        for m in self.subflows[i].sent.iter() {
            if m.data_end() > una && m.data >= 0 && (m.data as u64) < next {
                let start = self.send.find((m.data.max(una)) as u64).map(|o| o.data);
                self.send.again.extend(start);
            }
        }
        self.subflows[i].copies.clear();
        self.work.schedule_due = true;
        if self.timers.data == Instant::MAX {
            self.arm_data_timer(now);
        }
    }

    /// Reinjects data that other subflows could not deliver on a newly usable subflow.
    pub(super) fn offer_stale(&mut self, now: Instant) {
        for i in 0..self.subflows.len() {
            if self.subflows[i].stale {
                self.reinject(now, i);
            }
        }
    }

    /// Processes a data-level timeout.
    pub(super) fn on_data_timeout(&mut self, now: Instant) {
        self.timers.backoff = self.timers.backoff.saturating_add(1);
        let all_acked = self.send.una == self.send.next;
        let probes = all_acked && self.send.fin != Fin::Sent;
        if self.timers.backoff > self.tcp.data_retries && !probes {
            // Subflows may work, but their data is not acknowledged at data level (RFC 9293 §3.8.3).
            self.end(now, Some(Error::TimedOut));
            return;
        }
        if all_acked && self.send.fin == Fin::Sent {
            self.send_fin(now);
            return;
        }
        let closed = all_acked && self.send.unsent() > 0 && self.send.window_room() == 0;
        if closed || (self.fallback.contiguous && self.subflows.len() == 1 && !self.is_dropped()) {
            self.probe_peer();
        } else if let Some(first) = self.send.first().copied() {
            // A subflow that has delivered it at subflow level will not deliver it again.
            let mut carriers = first.carriers;
            self.on_lost_delivery(now, &first);
            for s in &self.subflows {
                let has_it = s.slot == first.latest && first.subflow < s.acked;
                if has_it || s.in_loss() {
                    carriers &= !s.bit();
                }
            }
            if let Some(o) = self.send.find_mut(first.data) {
                o.carriers = carriers;
            }
            self.send.again.insert(first.data);
            self.work.schedule_due = true;
        }
        self.arm_data_timer(now);
    }

    /// Whether the peer has dropped the first missing data: the subflow has delivered it, and a peer that sends
    /// DATA_ACK did not acknowledge it when it was probed.
    fn is_dropped(&self) -> bool {
        let first = self.send.first();
        let delivered = first.is_some_and(|o| {
            let i = self.index_of_slot(o.latest);
            i.is_some_and(|i| o.subflow < self.subflows[i].acked)
        });
        delivered && self.handshake.data_acked && self.timers.backoff > 1
    }

    /// Handles a segment that was acknowledged at subflow level long ago, but not at data level: the peer discarded
    /// it, or a middlebox changed its mapping. Other data delivered in this way is reinjected on other subflows; if
    /// that does not help, the subflow ends.
    pub(super) fn on_lost_delivery(&mut self, now: Instant, first: &crate::send::Outstanding) {
        let Some(i) = self.index_of_slot(first.latest) else {
            return;
        };
        let s = &mut self.subflows[i];
        let others = self.views.iter().any(|v| v.id != s.id && v.usable);
        if first.subflow >= s.acked || !others {
            return;
        }
        let count = s.lost_deliveries.record(now);
        let (slot, acked) = (s.slot, s.acked);
        let is_end = count >= MOST_LOST_DELIVERIES;
        self.send.repeat(|o| o.latest == slot && o.subflow < acked);
        self.work.schedule_due = true;
        if is_end {
            self.reset_subflow(now, i, ResetReason::Middlebox);
        }
    }

    /// Probes the peer for its DATA_ACK on the fastest path, and on all paths if that was not answered. No data is
    /// retransmitted at first: an infinite mapping is only possible while each byte was sent once.
    fn probe_peer(&mut self) {
        let usable = self.views.iter().filter(|v| v.usable);
        let best = usable.min_by_key(|v| (v.in_loss, v.latency()));
        let best = best.map(|v| v.id);
        for s in &mut self.subflows {
            if Some(s.id) == best || (self.timers.backoff > 1 && s.is_usable()) {
                s.endpoint.probe();
                self.work.active |= s.bit();
            }
        }
    }

    /// Sends the next segment of `again` on the fastest path that does not carry it; returns whether there was one.
    pub(super) fn resend(&mut self, now: Instant) -> bool {
        while let Some(&start) = self.send.again.first() {
            let Some(o) = self.send.find(start).copied().filter(|o| o.data == start) else {
                self.send.again.remove(&start);
                continue;
            };
            let mut best: Option<(Duration, usize)> = None;
            let mut helps = false;
            for (j, (s, v)) in self.subflows.iter().zip(&self.views).enumerate() {
                if !v.usable || v.in_loss || o.carriers & s.bit() != 0 {
                    continue;
                }
                helps = true;
                if v.can_send && best.is_none_or(|(t, _)| v.latency() < t) {
                    best = Some((v.latency(), j));
                }
            }
            if let Some((_, j)) = best {
                self.send.again.remove(&start);
                self.give_again(now, j, start, Carried::Reinjected);
                return true;
            }
            if helps {
                return false;
            }
            // No other path can carry it: its own subflow will retransmit it, and new subflows are offered it.
            self.send.again.remove(&start);
        }
        false
    }

    /// Opportunistic retransmission: no new data can be sent, a path has room, and a slower path carries the first
    /// missing segment. Returns whether a segment was sent.
    pub(super) fn opportunistic_retransmit(&mut self, now: Instant) -> bool {
        let how = self.config.options.opportunistic_retransmission;
        if how == OpportunisticRetransmission::Off || self.subflows.len() < 2 {
            return false;
        }
        let Some(first) = self.send.first().copied() else {
            return false;
        };
        let unsent = self.send.unsent();
        let room = self.send.window_room();
        let blocked = unsent > 0 && room < u64::from(self.tcp.mss).min(unsent);
        let ends = unsent == 0 && !self.send.write_blocked;
        let full = unsent == 0 && self.send.write_blocked;
        let wanted = match how {
            OpportunisticRetransmission::Head => blocked || full,
            _ => blocked || ends,
        };
        if !wanted {
            return false;
        }
        let ready = self
            .views
            .iter()
            .enumerate()
            .filter(|(_, v)| v.can_send && !v.in_loss);
        let regular = self
            .views
            .iter()
            .any(|v| v.usable && !v.in_loss && !v.backup);
        let ready = ready.filter(|(_, v)| !(regular && v.backup));
        let Some((j, fast)) = ready.min_by_key(|(_, v)| v.latency()) else {
            return false;
        };
        let (fast_bit, takes) = (self.subflows[j].bit(), fast.latency());
        if blocked || full {
            match self.config.options.penalisation {
                Penalisation::Halve => self.halve_blocking(now, j, &first),
                _ => self.penalise_blocking(now, j, &first),
            }
        }
        if how == OpportunisticRetransmission::Head {
            return self.retransmit_head(now, j, &first);
        }
        let mut at = first.data;
        let mut head = true;
        for _ in 0..LOOK_AHEAD {
            let Some(o) = self.send.find(at).copied() else {
                break;
            };
            let late = if o.carriers & fast_bit == 0 {
                self.late_at(now, &o, takes)
            } else {
                None
            };
            if late.is_some_and(|t| t <= now) {
                self.send.opportunistic_end = o.end();
                self.give_again(now, j, o.data, Carried::Opportunistic);
                return true;
            }
            if let (Some(at), true) = (late, head) {
                self.timers.opportunistic = at;
            }
            at = if head {
                o.end().max(self.send.opportunistic_end)
            } else {
                o.end()
            };
            head = false;
        }
        self.send.opportunistic_end = at;
        false
    }

    /// When a path that `takes` this long should retransmit a segment of another path: now if the other needs
    /// longer, later if the segment is overdue there; `None` if it has already arrived.
    fn late_at(
        &self,
        now: Instant,
        o: &crate::send::Outstanding,
        takes: Duration,
    ) -> Option<Instant> {
        let k = self.index_of_slot(o.latest)?;
        let (s, v) = (&self.subflows[k], &self.views[k]);
        if o.subflow < s.acked {
            return None; // it has arrived, and waits for another segment
        }
        let usual = v.latency().min(v.rto);
        let due = o.sent_at + usual;
        if v.in_loss || (takes < usual && now + takes < due) {
            return Some(now);
        }
        let slack = v.rttvar.unwrap_or_default().min(usual);
        let late = due + slack.max(Duration::from_millis(1));
        // If this path is not faster, the missing segment may still arrive by a fast retransmission, one round trip
        // later; by a timeout it arrives much later.
        Some(if takes < usual {
            late
        } else {
            late + usual.max(takes)
        })
    }

    /// Penalises the path that carries the first missing segment when the window is full although path `j` has
    /// room, if `j` would have delivered that segment by now.
    fn penalise_blocking(&mut self, now: Instant, j: usize, first: &crate::send::Outstanding) {
        let Some(k) = self.index_of_slot(first.latest).filter(|k| *k != j) else {
            return;
        };
        let waits = now - first.sent_at;
        if first.subflow < self.subflows[k].acked || waits <= self.views[j].latency() {
            return;
        }
        self.blocked += 1;
        let carries_more = self.views[k].delivery_rate >= self.views[j].delivery_rate;
        let wanted = self.config.options.penalisation != Penalisation::Off;
        if !wanted || (self.scheduler.minds_window() && carries_more) {
            return;
        }
        let (in_flight, mss) = (self.views[k].in_flight, self.views[k].mss);
        let rtt = self.views[k].srtt.unwrap_or(self.views[k].rto);
        let s = &mut self.subflows[k];
        if s.penalty.halve(now, in_flight, mss, rtt) {
            let (subflow, cap) = (s.id, s.penalty.cap.unwrap_or(0));
            self.notice(Notice::Penalised { now, subflow, cap });
            self.refresh(now, k);
        }
    }

    /// Retransmits the first missing segment on path `j`, by the rule of multipath-tcp.org's 0.90; returns whether it
    /// did.
    fn retransmit_head(
        &mut self,
        now: Instant,
        j: usize,
        first: &crate::send::Outstanding,
    ) -> bool {
        if first.carriers & self.subflows[j].bit() != 0 {
            return false;
        }
        let fast = self.views[j].latency();
        let mut wanted = false;
        for (s, v) in self.subflows.iter().zip(&self.views) {
            if first.carriers & s.bit() == 0 {
                continue;
            }
            wanted = v.cwnd <= 4 * v.mss || fast.saturating_mul(4) < v.latency();
            if !wanted || v.cwnd <= 4 * v.mss {
                break;
            }
        }
        if wanted {
            self.give_again(now, j, first.data, Carried::Opportunistic);
        }
        wanted
    }

    /// Halves the congestion window of the path that carries the first missing segment while path `j`, which has the
    /// smaller round-trip time, has room: once in a round trip of `j`.
    fn halve_blocking(&mut self, now: Instant, j: usize, first: &crate::send::Outstanding) {
        let fast = self.views[j].latency();
        if now < self.subflows[j].halves_after {
            return;
        }
        let carrier = |(k, s): (usize, &crate::subflow::Subflow)| {
            (k != j && first.carriers & s.bit() != 0).then_some(k)
        };
        let Some(k) = self.subflows.iter().enumerate().find_map(carrier) else {
            return;
        };
        self.blocked += 1;
        if fast >= self.views[k].latency() || !self.subflows[k].endpoint.halve_window() {
            return;
        }
        self.subflows[j].halves_after = now + fast;
        self.refresh(now, k);
        let (subflow, cap) = (self.subflows[k].id, self.views[k].cwnd);
        self.notice(Notice::Penalised { now, subflow, cap });
    }
}

//! Timers of the connection itself.

use gargalo_tcp::Error;
use gargalo_units::{Duration, Instant};

use super::{Connection, Mode};
use crate::error::ResetReason;
use crate::send::Fin;
use crate::subflow::Subflow;

/// Timers; [`Instant::MAX`]: not armed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// Data-level retransmission, DATA_FIN, or zero-window probe.
    pub(super) data: Instant,
    pub(super) backoff: u32,
    /// Minimum data timeout.
    pub(super) data_base: Duration,
    /// A connection without a usable subflow is given up.
    pub(super) orphan: Instant,
    /// A pair of addresses may be used again.
    pub(super) retry: Instant,
    /// An ADD_ADDR without echo is retransmitted.
    pub(super) announce: Instant,
    /// REMOVE_ADDR or MP_PRIO is sent again.
    pub(super) repeat: Instant,
    /// The segment that blocks the window becomes overdue.
    pub(super) opportunistic: Instant,
    /// The subflow on which the last segment was received.
    pub(super) heard_on: u32,
    /// SYNs sent on the initial subflow.
    pub(super) syns: u32,
    /// Our port of the initial subflow.
    pub(super) local_port: u16,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            data: Instant::MAX,
            backoff: 0,
            data_base: Duration::from_secs(1),
            orphan: Instant::MAX,
            retry: Instant::MAX,
            announce: Instant::MAX,
            repeat: Instant::MAX,
            opportunistic: Instant::MAX,
            heard_on: 0,
            syns: 0,
            local_port: 0,
        }
    }
}

impl Timers {
    pub(super) fn clear(&mut self) {
        *self = Self {
            heard_on: self.heard_on,
            syns: self.syns,
            local_port: self.local_port,
            ..Self::default()
        };
    }
}

impl Connection {
    /// When to call [`handle_timeout`](Self::handle_timeout); `None` if no timer is armed.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let t = &self.timers;
        let mut at = t
            .data
            .min(t.orphan)
            .min(t.retry)
            .min(t.announce)
            .min(t.repeat)
            .min(t.opportunistic);
        if self.work.active == 0 {
            at = self.places.iter().map(|p| p.wake).fold(at, Instant::min);
        } else {
            // Some were not polled for segments yet.
            at = self
                .subflows
                .iter()
                .map(Subflow::wake)
                .fold(at, Instant::min);
        }
        if self.has_waiting() {
            at = self
                .places
                .iter()
                .map(|p| p.paced_until)
                .fold(at, Instant::min);
        }
        (at < Instant::MAX).then_some(at)
    }

    /// Whether there is data for a paced path.
    fn has_waiting(&self) -> bool {
        !self.send.again.is_empty() || self.send.unsent() > 0 || self.work.has_copies
    }

    /// Runs the timers due at `now`; does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut i = 0;
        while i < self.subflows.len() {
            let id = self.subflows[i].id;
            self.check_subflow(now, i);
            // No subflow is removed here, but the code does not rely on it.
            i += usize::from(self.subflows.get(i).is_some_and(|s| s.id == id));
        }
        if self.timers.announce <= now {
            self.repeat_announcements(now);
        }
        if self.timers.repeat <= now {
            self.repeat_unacknowledged(now);
        }
        if self.timers.opportunistic <= now {
            self.timers.opportunistic = Instant::MAX;
            self.work.schedule_due = true;
        }
        if self.timers.retry <= now {
            self.timers.retry = Instant::MAX;
            self.on_paths_changed(now);
        }
        if self.timers.data <= now {
            self.timers.data = Instant::MAX;
            self.on_data_timeout(now);
        }
        if self.timers.orphan <= now {
            self.timers.orphan = Instant::MAX;
            if !self.subflows.iter().any(Subflow::is_usable) {
                self.end(now, Some(Error::TimedOut));
            }
        }
    }

    fn check_subflow(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        if s.join.confirm_at <= now {
            // Our third packet, or its answer, was lost.
            s.outbox.ack_wanted = true;
            s.join.confirm_at = now + s.endpoint.snapshot(now).rto * 2;
            self.work.active |= s.bit();
        }
        if s.removal.at <= now {
            s.removal.at = Instant::MAX;
            self.places[i].arm(s);
            self.reset_subflow(now, i, ResetReason::Unspecified);
        }
        let s = &mut self.subflows[i];
        if s.probe.at <= now {
            // Its own timer has backed off (RFC 6298 §5.5), and other subflows do not wait for it.
            s.probe.back_off(now);
            s.endpoint.probe_path();
            self.work.active |= s.bit();
        }
        let s = &mut self.subflows[i];
        if s.paced_until <= now {
            self.work.schedule_due = true;
            self.refresh(now, i);
        }
        if self.subflows[i].deadline <= now {
            self.show_siblings(i);
            let s = &mut self.subflows[i];
            s.endpoint.handle_timeout(now);
            self.work.active |= s.bit();
            self.work.schedule_due = true;
            self.after(now, i);
        }
    }

    /// Arms the data-level timer if data is outstanding (RFC 8684 §3.3.6).
    #[inline]
    pub(super) fn arm_data_timer(&mut self, now: Instant) {
        let waits = self.send.is_outstanding() || self.send.unsent() > 0;
        self.timers.data = if waits && self.mode == Mode::Multipath && !self.over {
            now + self.data_timeout()
        } else {
            Instant::MAX
        };
    }

    /// The data timeout: longer than any subflow needs to repair one loss itself.
    fn data_timeout(&self) -> Duration {
        let usable = self.views.iter().filter(|v| v.usable && !v.in_loss);
        let longest = usable.map(|v| v.rto + v.latency().min(v.rto)).max();
        let base = longest.map_or(self.timers.data_base, |l| {
            if self.send.fin == Fin::Sent && self.send.una == self.send.end {
                l
            } else {
                l.max(self.timers.data_base)
            }
        });
        base.saturating_mul(1 << self.timers.backoff.min(6))
    }
}

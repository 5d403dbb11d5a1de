//! The sender's timers: retransmission timeout, tail loss probe, reordering, persist.

use gargalo_cc::Cause;
use gargalo_units::Instant;

use super::{Frto, Notice, Phase, Sender};

impl Sender {
    /// After an acknowledgement: what is the next thing to wait for?
    pub(super) fn rearm(&mut self, now: Instant, advanced: bool, delivered: bool) {
        if self.board.is_empty() {
            self.timers.rto = Instant::MAX;
            self.timers.probe = Instant::MAX;
            self.timers.reorder = Instant::MAX;
        } else {
            if advanced || self.timers.rto == Instant::MAX {
                // RFC 6298 §5.3.
                self.timers.rto = now + self.rtt.rto();
            }
            if delivered {
                self.arm_probe(now);
            }
        }
        self.arm_persist(now);
    }

    /// Something was sent.
    pub(super) fn arm_after_send(&mut self, now: Instant, new: bool) {
        if self.timers.rto == Instant::MAX {
            self.timers.rto = now + self.rtt.rto(); // RFC 6298 §5.1
        }
        self.timers.persist = Instant::MAX;
        if new {
            self.arm_probe(now);
        }
    }

    /// RFC 8985 §7.2.
    fn arm_probe(&mut self, now: Instant) {
        let eligible = self.settings.probe
            && self.phase == Phase::Open
            && self.tlp.in_flight.is_none()
            && self.board.sacked() == 0;
        self.timers.probe = if eligible {
            let single = self.board.len() == 1;
            self.rtt
                .probe_at(now, single, self.settings.peer_ack_delay)
                .min(self.timers.rto)
        } else {
            Instant::MAX
        };
    }

    /// Data waits for a window and nothing is in flight: only a probe can tell us of an opening
    /// (RFC 9293 §3.8.6.1).
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let waiting = self.board.is_empty() && self.has_unsent();
        if !waiting {
            self.timers.persist = Instant::MAX;
            self.peer.probes = 0;
        } else if self.timers.persist == Instant::MAX {
            let backed_off = self.rtt.rto().saturating_mul(1 << self.peer.probes.min(16));
            self.timers.persist = now + backed_off.min(self.settings.max_rto);
        }
    }

    /// Time has come to `now`.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.timers.pacing <= now {
            self.timers.pacing = Instant::MAX;
        }
        if self.timers.reorder <= now {
            self.timers.reorder = Instant::MAX;
            let flight = self.flight();
            self.detect(now, flight, false);
        }
        if self.timers.probe <= now && self.phase == Phase::Open && !self.board.is_empty() {
            // A probe goes before a timeout that is due as well (RFC 8985 §7.2).
            self.tlp.due = true;
            self.timers.rto = now + self.rtt.rto();
        } else if self.timers.rto <= now {
            self.on_rto(now);
        }
        if self.timers.probe <= now {
            self.timers.probe = Instant::MAX;
        }
        if self.timers.persist <= now {
            self.timers.persist = Instant::MAX;
            self.unanswered += 1;
            self.peer.probes = self.peer.probes.saturating_add(1);
            if self.unanswered > self.settings.retries {
                self.given_up = true;
                return;
            }
            self.peer.probe_due = true;
            self.arm_persist(now);
        }
    }

    /// After a timeout: the first segment goes once more, whenever the timer is due, to learn whether the path
    /// passes packets again. This is no timeout: the timer, its backoff and the window stay as they are.
    pub(crate) fn ask(&mut self) {
        self.path_probe.due = self.consecutive_timeouts > 0 && !self.board.is_empty();
    }

    /// The first acknowledgement after an outage: what round trips were like is known from before. (It may be of
    /// what had arrived before the outage, and looks then like a round trip as long as the outage and like a
    /// timeout without need, though what was sent later is lost.)
    pub(super) fn resume(&mut self) {
        if let Some(rtt) = self.rtt_before.take() {
            self.rtt = rtt;
        }
        self.rtt.reset_backoff();
        self.undo.end();
        self.frto = Frto::Off;
    }

    /// RFC 6298 §5.4 to §5.7, RFC 5681 §3.1.
    fn on_rto(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timers.rto = Instant::MAX;
            return;
        }
        self.counts.timeouts += 1;
        self.consecutive_timeouts += 1;
        if self.consecutive_timeouts > self.settings.retries {
            self.given_up = true;
            return;
        }
        let flight = self.flight();
        let mut marked = Vec::new();
        self.board.mark_all_lost(|s| marked.push(*s));
        self.duplicates.bytes = 0;
        self.duplicates.acks = 0;
        self.tlp.in_flight = None;
        self.tlp.due = false;
        let lost = self.tell_lost(now, &marked);
        let first = self.consecutive_timeouts == 1;
        if first {
            self.undo.begin(self.una);
            self.rtt_before = Some(self.rtt.clone());
        }
        let may_be_spurious = self.settings.frto && (first || self.phase != Phase::Loss);
        self.phase = Phase::Loss;
        self.resend_due = true;
        self.frto = if may_be_spurious {
            Frto::First
        } else {
            Frto::Off
        };
        let consecutive = self.consecutive_timeouts;
        self.congestion(now, Cause::Timeout { consecutive }, flight, lost);
        self.rtt.back_off();
        self.timers.rto = now + self.rtt.rto();
        self.timers.probe = Instant::MAX;
        self.timers.reorder = Instant::MAX;
        if !marked.is_empty() {
            self.notice(Notice::Lost {
                segments: marked.len() as u32,
            });
        }
    }

    /// Whether data or a FIN waits to be sent for the first time.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.nxt < self.end + u64::from(self.finished)
    }
}

//! The sender's timers: retransmission timeout, tail loss probe, reordering, persist.

use gargalo_cc::Cause;
use gargalo_units::{Duration, Instant};

use crate::config::RtoRestart;
use crate::rtt::RttEstimator;

use super::scoreboard::DUP_THRESH;
use super::{Frto, Notice, Phase, Sender};

/// The least time until a timer is due (a tick of Linux).
const TICK: Duration = Duration::from_millis(1);
/// The peer's longest delay of acknowledgements, which is unknown (RFC 8985 §7.2); ours is a lower bound.
const PEER_ACK_DELAY: Duration = Duration::from_millis(200);

/// Retransmission timeouts since anything new was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Timeouts {
    pub(super) in_a_row: u32,
    /// When the first of them was.
    pub(super) first: Instant,
    /// The estimator as it was at the first of them.
    pub(super) rtt_before: Option<RttEstimator>,
    /// The connection is given up.
    pub(super) given_up: bool,
}

impl Timeouts {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            in_a_row: 0,
            first: now,
            rtt_before: None,
            given_up: false,
        }
    }
}

impl Sender {
    /// Whether a tail loss probe or a reordering timer is due before the retransmission timeout.
    #[inline]
    pub(super) fn awaits_shorter_timer(&self) -> bool {
        self.timers.probe.min(self.timers.reorder) < Instant::MAX
    }

    /// When the first segment in flight times out, counted from its last transmission: RFC 6298 §5 allows no
    /// retransmission before that.
    fn first_deadline(&self, now: Instant) -> Instant {
        let sent = self.board.front().map_or(now, |s| s.state.sent_at);
        (sent + self.rtt.rto()).max(now + TICK)
    }

    /// Rearms the timers after an acknowledgement; `shorter`: a shorter timer was due before.
    #[inline]
    pub(super) fn rearm(&mut self, now: Instant, advanced: bool, delivered: bool, shorter: bool) {
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
                self.arm_probe(now, self.timers.rto);
            }
            if self.config.rto_restart == RtoRestart::Transmission
                && advanced
                && shorter
                && self.timers.probe == Instant::MAX
            {
                self.timers.rto = self.first_deadline(now);
            }
        }
        self.arm_persist(now);
    }

    /// Arms the timers after a transmission.
    #[inline]
    pub(super) fn arm_after_send(&mut self, now: Instant, new: bool) {
        if self.timers.rto == Instant::MAX {
            self.timers.rto = now + self.rtt.rto(); // RFC 6298 §5.1
        }
        self.timers.persist = Instant::MAX;
        if new {
            let latest = match self.config.rto_restart {
                RtoRestart::Acknowledgement => self.timers.rto,
                RtoRestart::Transmission => self.timers.rto.min(self.first_deadline(now)),
            };
            self.arm_probe(now, latest);
        }
    }

    /// Arms the probe timer (RFC 8985 §7.2), at `latest` when the retransmission timeout is due.
    #[inline]
    fn arm_probe(&mut self, now: Instant, latest: Instant) {
        let eligible = self.config.tail_loss_probe
            && self.recovery.probes()
            && self.episode.phase == Phase::Open
            && self.tlp.in_flight.is_none()
            && self.board.sacked() == 0;
        self.timers.probe = if eligible {
            let single = self.board.len() == 1;
            self.rtt
                .probe_at(
                    now,
                    single,
                    self.config.delayed_ack.timeout.max(PEER_ACK_DELAY),
                    self.config.probe_slack_fixed,
                )
                .max(now + self.recovery.least_probe())
                .min(latest)
        } else {
            Instant::MAX
        };
    }

    /// Arms the persist timer when data waits for the peer's window and nothing is in flight: only a probe can
    /// detect that the window has opened (RFC 9293 §3.8.6.1).
    #[inline]
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let waiting = self.board.is_empty() && self.has_unsent();
        if !waiting {
            self.timers.persist = Instant::MAX;
            self.peer.probes = 0;
            self.peer.probing_since = None;
        } else if self.timers.persist == Instant::MAX {
            let backed_off = self.rtt.rto().saturating_mul(1 << self.peer.probes.min(16));
            let at = now + backed_off.min(self.config.max_rto);
            self.timers.persist = self.bounded(now, at, self.peer.probing_since);
        }
    }

    /// Runs the timers due at `now`.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.timers.pacing <= now {
            self.timers.pacing = Instant::MAX;
        }
        if self.timers.reorder <= now {
            let flight = self.flight();
            self.detect(now, flight, false);
            if self.timers.reorder <= now {
                self.timers.reorder = Instant::MAX;
            }
        }
        if self.timers.probe <= now && self.episode.phase == Phase::Open && !self.board.is_empty() {
            // A probe has priority over a timeout that is due at the same time (RFC 8985 §7.2).
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
            let since = *self.peer.probing_since.get_or_insert(now);
            if self.has_waited(now, since) {
                self.timeouts.given_up = true;
                return;
            }
            self.peer.unanswered += 1;
            self.peer.probes = self.peer.probes.saturating_add(1);
            if self.peer.unanswered > self.config.data_retries {
                self.timeouts.given_up = true;
                return;
            }
            self.peer.probe_due = true;
            self.arm_persist(now);
        }
    }

    /// After a timeout: retransmits the first segment once, whenever the timer is due, to learn whether the path
    /// works again. It does not change the timer, its backoff or the window.
    pub(crate) fn probe_path(&mut self) {
        self.path_probe.due = self.timeouts.in_a_row > 0 && !self.board.is_empty();
    }

    /// Restores the estimator of before the outage at the first acknowledgement after it. (That acknowledgement may
    /// be for data that arrived before the outage. It then looks like a round trip as long as the outage and like a
    /// spurious timeout, although data sent later is lost.)
    pub(super) fn resume(&mut self) {
        if let Some(rtt) = self.timeouts.rtt_before.take() {
            self.rtt = rtt;
        }
        self.rtt.reset_backoff();
        self.undo.end();
        self.episode.frto = Frto::Off;
    }

    /// The retransmission timeout (RFC 6298 §5.4 to §5.7, RFC 5681 §3.1).
    fn on_rto(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timers.rto = Instant::MAX;
            return;
        }
        self.counters.timeouts += 1;
        self.timeouts.in_a_row += 1;
        if self.timeouts.in_a_row == 1 {
            self.timeouts.first = now;
        }
        let expired = match self.user_timeout {
            Some(_) => self.has_waited(now, self.timeouts.first),
            None => self.timeouts.in_a_row > self.config.data_retries,
        };
        if expired {
            self.timeouts.given_up = true;
            return;
        }
        if self.episode.phase == Phase::Open && self.board.sacked() >= DUP_THRESH {
            self.rack.forget_extent();
        }
        let flight = self.flight();
        let mut marked = Vec::new();
        self.board.mark_all_lost(|s| marked.push(*s));
        self.duplicates.bytes = 0;
        self.duplicates.acks = 0;
        self.tlp.in_flight = None;
        self.tlp.due = false;
        let lost = self.report_lost(now, &marked);
        let first = self.timeouts.in_a_row == 1;
        if first {
            self.undo.begin(self.una);
            self.timeouts.rtt_before = Some(self.rtt.clone());
        }
        let may_be_spurious = self.config.frto && (first || self.episode.phase != Phase::Loss);
        self.episode.phase = Phase::Loss;
        self.episode.resend_due = true;
        self.episode.frto = if may_be_spurious {
            Frto::First
        } else {
            Frto::Off
        };
        let consecutive = self.timeouts.in_a_row;
        self.congestion(now, Cause::Timeout { consecutive }, flight, lost);
        self.rtt.back_off();
        self.timers.rto = self.next_rto(now);
        self.timers.probe = Instant::MAX;
        self.timers.reorder = Instant::MAX;
        if !marked.is_empty() {
            self.notice(Notice::Lost {
                segments: marked.len() as u32,
            });
        }
    }

    /// Whether the user timeout has passed since `since`. As in Linux, it begins with the first retransmission or
    /// probe, and a peer that answers probes with a closed window does not end it (RFC 5482 §1 leaves that open).
    fn has_waited(&self, now: Instant, since: Instant) -> bool {
        let timeout = self.user_timeout;
        timeout.is_some_and(|t| now > since && now.saturating_since(since) >= t)
    }

    /// A timer that is due at `at`, but not after the user timeout that began at `since`.
    fn bounded(&self, now: Instant, at: Instant, since: Option<Instant>) -> Instant {
        match (self.user_timeout, since) {
            (Some(timeout), Some(since)) => at.min((since + timeout).max(now + TICK)),
            _ => at,
        }
    }

    /// When the first segment, sent at `now`, times out.
    pub(super) fn next_rto(&self, now: Instant) -> Instant {
        let since = (self.timeouts.in_a_row > 0).then_some(self.timeouts.first);
        self.bounded(now, now + self.rtt.rto(), since)
    }

    /// How long data may stay unacknowledged, from now on.
    pub(crate) fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.user_timeout = timeout;
    }

    /// Whether there is unsent data or an unsent FIN.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.nxt < self.written.end + u64::from(self.written.finished)
    }
}

//! The reaction of the model to losses and marks (draft §5.5.10), and its undo (§5.5.11).

use gargalo_units::{Bytes, Instant, Rate};

use super::bounds::ShortTerm;
use super::ecn::EcnResponse;
use super::{BoundedBbr, Observed, Recovery, State, Version};
use crate::event::{Congestion, Lost};

/// The state to restore if an episode of loss recovery was spurious.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undo {
    /// An episode has begun, or losses that will begin one have been marked.
    saved: bool,
    /// The episode has been announced.
    open: bool,
    short_term: ShortTerm,
    inflight_longterm: Bytes,
    /// The state that the episode ended (BBR.undo_state).
    pub(crate) state: Option<State>,
}

impl Default for Undo {
    fn default() -> Self {
        Self {
            saved: false,
            open: false,
            short_term: ShortTerm::NONE,
            inflight_longterm: Bytes::MAX,
            state: None,
        }
    }
}

impl Undo {
    /// Losses so far that began no episode will not begin one.
    pub(crate) fn episode_may_begin(&mut self) {
        self.saved &= self.open;
    }

    /// The episode has ended, and was not spurious.
    pub(crate) fn end(&mut self) {
        self.saved = false;
        self.open = false;
        self.state = None;
    }
}

impl<V: Version> BoundedBbr<V> {
    /// IsInflightTooHigh: whether more than the fraction `loss_threshold` of the data in flight was lost.
    pub(crate) fn is_too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        lost.as_f64() > tx_in_flight.as_f64() * self.params.loss_threshold
    }

    /// HandleInflightTooHigh: once a probe.
    pub(crate) fn handle_too_high(&mut self, tx_in_flight: Bytes, app_limited: bool, now: Instant) {
        self.probe.too_high = true;
        self.probe.is_sample = false;
        if !app_limited {
            let floor = self.target_inflight().mul_f64(self.params.beta);
            self.long_term.inflight = tx_in_flight.max(floor);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// HandleLostPacket: counts the loss and checks whether a probe has put too much in flight.
    pub(crate) fn handle_lost_segment(&mut self, l: &Lost) {
        self.save_before_loss();
        self.lost += l.bytes;
        self.repair.newly_lost += l.bytes;
        self.latest.note_loss(self.delivered);
        if l.new_burst {
            self.repair.loss_events = self.repair.loss_events.saturating_add(1);
        }
        if !self.probe.is_sample {
            return;
        }
        let tx_in_flight = l.state.in_flight;
        let lost = self.lost - l.state.lost;
        if self.is_too_high(lost, tx_in_flight) {
            let app_limited = self.is_app_limited(l.state.app_limited, l.state.delivered);
            let at_loss = self.inflight_at_loss(l.bytes, tx_in_flight, lost);
            self.handle_too_high(at_loss, app_limited, l.now);
        }
    }

    /// InflightAtLoss: at what prefix of the lost segment the losses crossed the threshold.
    pub(crate) fn inflight_at_loss(&self, size: Bytes, tx_in_flight: Bytes, lost: Bytes) -> Bytes {
        let before = tx_in_flight.saturating_sub(size).as_f64();
        let lost_before = lost.saturating_sub(size).as_f64();
        let threshold = self.params.loss_threshold;
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        Bytes::from_f64((before + prefix).max(0.0))
    }

    /// CheckStartupHighLoss (draft §5.3.1.3), at the end of a round with losses.
    pub(crate) fn check_startup_loss(&mut self, rs: &Observed) {
        if !self.latest.is_round_start() {
            return;
        }
        let events = std::mem::take(&mut self.repair.loss_events);
        if self.state == State::Startup
            && self.repair.phase == Recovery::Fast
            && events >= self.params.full_loss_count
            && self.is_too_high(rs.lost, rs.tx_in_flight)
        {
            self.undo.state = Some(State::Startup);
            self.end_startup();
        }
    }

    /// The pipe is full, judged by losses or marks.
    fn end_startup(&mut self) {
        self.full_bw.set_reached();
        self.long_term.inflight = V::bound_after_startup(self);
    }

    /// The end of a round with or without losses: AdaptLowerBoundsFromCongestion.
    pub(crate) fn end_loss_round(&mut self, rs: &Observed, now: Instant) {
        let loss = std::mem::take(&mut self.latest.loss);
        let by_marks = self.end_marked_round(rs, now);
        if self.state.is_accelerating() {
            return;
        }
        if loss {
            self.short_term
                .on_loss(&self.latest, self.max_bw.get(), self.cwnd, self.params.beta);
        }
        if let Some(inflight) = by_marks {
            self.short_term.inflight = self.short_term.inflight.min(inflight);
        }
    }

    // --- ECN ---

    /// Classic response: the transport has seen marks, at most once a round trip.
    pub(crate) fn on_mark(&mut self, event: &Congestion) {
        if self.params.ecn_response != EcnResponse::Classic {
            return;
        }
        if self.probe.is_sample {
            self.handle_too_high(event.in_flight, false, event.now);
            self.undo.state = None; // a mark cannot be spurious
        } else if self.state == State::Startup {
            self.end_startup();
        } else if self.is_settled() {
            // The delivered amount is not a lower bound, as marks do not reduce it; the level to which a probe may
            // fall is.
            let inflight = self.short_term.inflight_or(self.cwnd);
            let bound = inflight.max(self.bdp(self.bw, 1.0));
            self.short_term.inflight = bound.mul_f64(self.params.beta);
        }
    }

    /// Whether marks are of segments sent in CRUISE (or DRAIN): PROBE_BW_DOWN is a response itself, and its
    /// segments are acknowledged for one more round trip.
    fn is_settled(&self) -> bool {
        match self.state {
            State::Cruise => self.round.count() > self.probe.cruise_round + 1,
            State::Drain | State::ProbeRtt => true,
            State::Startup | State::Down | State::Refill | State::Up => false,
        }
    }

    /// Proportional response: the data in flight after the marks of a round.
    fn end_marked_round(&mut self, rs: &Observed, now: Instant) -> Option<Bytes> {
        let round = self.marks.end_round();
        if self.params.ecn_response != EcnResponse::Proportional || !round.marked {
            return None;
        }
        if self.state == State::Startup && round.full {
            self.end_startup();
        } else if self.probe.is_sample && round.too_many {
            self.handle_too_high(rs.tx_in_flight, rs.app_limited, now);
            self.undo.state = None; // a mark cannot be spurious
        }
        let kept = 1.0 - self.marks.alpha() * self.params.ecn_factor;
        Some(self.short_term.inflight_or(self.cwnd).mul_f64(kept))
    }

    // --- undo ---

    /// SaveStateUponLoss, before the first loss of an episode has an effect.
    fn save_before_loss(&mut self) {
        if self.undo.saved {
            return;
        }
        self.save_cwnd();
        self.undo = Undo {
            saved: true,
            open: false,
            short_term: self.short_term,
            inflight_longterm: self.long_term.inflight,
            state: None,
        };
    }

    /// OnEnterFastRecovery, OnEnterRTO: saves cwnd and what an undo restores.
    pub(crate) fn begin_episode(&mut self) {
        self.save_before_loss();
        self.save_cwnd();
        self.undo.open = true;
    }

    /// HandleSpuriousLossDetection: restores cwnd and bounds and, in versions that resume, STARTUP or a probe for
    /// bandwidth.
    pub(crate) fn undo_loss(&mut self) {
        if !self.undo.open {
            return;
        }
        self.repair.phase = Recovery::None;
        self.repair.conservation.end();
        self.latest.loss = false;
        self.full_bw.reset(Rate::ZERO);
        self.short_term = self.short_term.looser(self.undo.short_term);
        self.long_term.inflight = self.long_term.inflight.max(self.undo.inflight_longterm);
        match self.undo.state.filter(|_| V::RESUMES_AFTER_UNDO) {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw.clear_reached();
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
        self.restore_cwnd();
        self.undo.end();
    }
}

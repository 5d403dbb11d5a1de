//! STARTUP, DRAIN and PROBE_BW (draft §5.3.1 to §5.3.3).

use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand::Rng;
use rand_pcg::Pcg64;

use super::bounds::ShortTerm;
use super::{BoundedBbr, Observed, State, Version};
use crate::event::Acked;

/// The phase of acknowledgements relative to a probe for bandwidth (BBR.ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acks {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The schedule of probes for bandwidth, and the result of the latest probe.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    acks: Acks,
    /// Samples are of segments sent while probing (BBR.is_bw_probe_sample).
    pub(crate) is_sample: bool,
    /// The latest probe lost too much (BBR.prev_probe_too_high).
    pub(crate) too_high: bool,
    /// It was ended early as a precaution (BBR.prev_probe_precautionary).
    pub(crate) precautionary: bool,
    /// BBR.rounds_since_probe_up: round trips since PROBE_BW_DOWN began, plus 0 or 1 at random.
    pub(crate) rounds_since_up: u64,
    /// The round in which PROBE_BW_CRUISE began.
    pub(crate) cruise_round: u64,
    /// BBR.cycle_stamp: when PROBE_BW_UP began or, after it, when PROBE_BW_DOWN did.
    since: Instant,
    /// BBR.bw_probe_wait: time from the start of PROBE_BW_DOWN after which the next probe is due.
    wait: Duration,
    rng: Pcg64,
}

impl Probe {
    pub(crate) fn new(now: Instant, rng: Pcg64) -> Self {
        Self {
            acks: Acks::Init,
            is_sample: false,
            too_high: false,
            precautionary: false,
            rounds_since_up: 0,
            cruise_round: 0,
            since: now,
            wait: Duration::ZERO,
            rng,
        }
    }

    /// No more segments are sent to probe, but some are still in flight.
    pub(crate) fn stopping(&mut self) {
        self.acks = Acks::ProbeStopping;
    }

    /// PickProbeWait: bounds in rounds and in time, both random so that flows do not probe together.
    fn pick_wait(&mut self, now: Instant, least: Duration, random: Duration) {
        self.rounds_since_up = self.rng.next_u64() & 1;
        let part = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.wait = least + random.mul_f64(part);
        self.since = now;
    }

    fn has_waited(&self, now: Instant) -> bool {
        self.has_lasted(now, self.wait)
    }

    /// HasElapsedInPhase: PROBE_BW_UP, or what is between two of them.
    pub(crate) fn has_lasted(&self, now: Instant, interval: Duration) -> bool {
        now > self.since + interval
    }
}

impl<V: Version> BoundedBbr<V> {
    // --- STARTUP and DRAIN ---

    pub(crate) fn check_startup_done(&mut self) {
        if self.state == State::Startup && self.full_bw.is_reached() {
            self.state = State::Drain;
            self.drain_start_round = self.round.count();
        }
    }

    pub(crate) fn check_drain_done(&mut self, ack: &Acked) {
        let rounds = self.version.drain_rounds();
        let last = self.drain_start_round.saturating_add(rounds);
        if self.state == State::Drain
            && (ack.in_flight <= self.inflight(self.bw, 1.0) || self.round.count() > last)
        {
            self.start_down(ack.now);
        }
    }

    // --- PROBE_BW (draft §5.3.3.9) ---

    pub(crate) fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.long_term.stop();
        let p = &self.params;
        self.probe.pick_wait(now, p.probe_wait, p.probe_wait_random);
        self.probe.stopping();
        self.round.restart(self.delivered);
        self.state = State::Down;
    }

    pub(crate) fn start_cruise(&mut self) {
        self.probe.cruise_round = self.round.count();
        self.state = State::Cruise;
    }

    pub(crate) fn start_refill(&mut self) {
        self.short_term = ShortTerm::NONE;
        self.long_term.prepare();
        self.probe.precautionary = false;
        self.probe.acks = Acks::Refilling;
        self.round.restart(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, rate: Rate, now: Instant) {
        self.probe.is_sample = true;
        self.probe.acks = Acks::ProbeStarting;
        self.probe.since = now;
        self.round.restart(self.delivered);
        self.full_bw.reset(rate);
        self.state = State::Up;
        self.long_term.raise_slope(self.cwnd, self.mss);
    }

    /// UpdateProbeBWCyclePhase: adapts the long-term bound, then moves to the next phase of PROBE_BW if that is due.
    pub(crate) fn update_cycle(&mut self, ack: &Acked, rs: Option<&Observed>) {
        if !self.full_bw.is_reached() || self.adapt_long_term(ack, rs) {
            return;
        }
        let rate = rs.map_or(Rate::ZERO, |rs| rs.rate);
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack.in_flight_before) => self.start_cruise(),
            // One round of refilling.
            State::Refill if self.round.is_start() => self.start_up(rate, ack.now),
            State::Up if self.is_time_to_go_down(ack, rate) => {
                self.probe.too_high = false; // no high loss yet
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    /// AdaptLongTermModel: whether it has decided the next state.
    fn adapt_long_term(&mut self, ack: &Acked, rs: Option<&Observed>) -> bool {
        if self.round.is_start() {
            let acks = self.probe.acks;
            match acks {
                Acks::ProbeStarting => self.probe.acks = Acks::ProbeFeedback,
                Acks::ProbeStopping if self.end_feedback(rs) => return true,
                _ => {}
            }
        }
        let Some(rs) = rs else { return false };
        if self.is_too_high(rs.lost, rs.tx_in_flight) {
            if V::SAMPLES_END_PROBES && self.probe.is_sample {
                self.handle_too_high(rs.tx_in_flight, rs.app_limited, ack.now);
            }
            return false;
        }
        if !self.long_term.is_set() {
            return false;
        }
        self.long_term.raise_to(rs.tx_in_flight);
        if self.state == State::Up && self.uses_long_term_bound() {
            self.long_term.grow(ack.bytes, self.mss);
            if self.round.is_start() {
                self.long_term.raise_slope(self.cwnd, self.mss);
            }
        }
        false
    }

    /// The last samples of a probe have arrived. After a careful probe without much loss the next
    /// follows at once.
    fn end_feedback(&mut self, rs: Option<&Observed>) -> bool {
        self.probe.is_sample = false;
        self.probe.acks = Acks::Init;
        if !self.state.is_probe_bw() {
            return false;
        }
        if rs.is_some_and(|rs| !rs.app_limited) {
            self.max_bw.advance();
        }
        if self.probe.precautionary && !self.probe.too_high {
            self.start_refill();
            return true;
        }
        false
    }

    /// cwnd was used to the full and the long-term bound was what limited it.
    pub(crate) fn uses_long_term_bound(&self) -> bool {
        self.limited.get() && self.cwnd >= self.long_term.inflight
    }

    /// IsTimeToProbeBW: by the clock, or when Reno would have added as much as is in flight.
    pub(crate) fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno = self.target_inflight().get() / self.mss.get();
        self.probe.has_waited(now)
            || self.probe.rounds_since_up >= reno.min(self.params.probe_rounds)
    }

    fn is_time_to_cruise(&self, in_flight: Bytes) -> bool {
        in_flight <= self.with_headroom() && in_flight <= self.inflight(self.max_bw.get(), 1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Acked, rate: Rate) -> bool {
        if self.params.precautionary_probing
            && self.probe.too_high
            && ack.in_flight_before + self.mss > self.long_term.inflight
        {
            self.probe.precautionary = true;
            return true;
        }
        V::has_probed(self, ack, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_two_to_three_seconds_and_no_or_one_round_ahead() {
        let mut p = Probe::new(Instant::ZERO, Pcg64::new(1, 1));
        let second = Duration::from_secs(1);
        let mut rounds = [0; 2];
        let mut sum = 0.0;
        for _ in 0..1000 {
            p.pick_wait(Instant::ZERO, second * 2, second);
            rounds[p.rounds_since_up as usize] += 1;
            let wait = p.wait.as_secs_f64();
            assert!((2.0..3.0).contains(&wait));
            sum += wait;
        }
        assert!((sum / 1000.0 - 2.5).abs() < 0.03);
        assert!(rounds.iter().all(|n| *n > 400));
        assert!(!p.has_waited(Instant::ZERO + second * 2));
        assert!(p.has_waited(Instant::ZERO + second * 3));
    }
}

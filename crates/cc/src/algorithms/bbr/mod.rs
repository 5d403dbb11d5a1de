//! BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00, with the additions of Linux
//! where published results depend on them.
//!
//! # From Linux rather than the draft
//! - the 1 % pacing margin, the even number of segments in cwnd and two more while probing;
//! - aggregation of acknowledgements adds to cwnd (`extra_acked_gain`; 0 switches it off);
//! - token-bucket policers are detected (`policer_detection`; on, because deployed BBR v1 has it).
//!
//! # Differences from both
//! - The draft sets the sampler's application-limited mark during PROBE_RTT. A controller has no access to the
//!   sampler, so the segments concerned are recorded here instead.
//! - Windows are in bytes.
//!
//! ECN marks are ignored, as both do.

mod aggregation;
mod cycle;
mod full_pipe;
mod params;
mod policer;
#[cfg(test)]
mod tests;

pub use params::{ALGORITHM, BbrParams};

use gargalo_units::{Bytes, Duration, Instant, Rate};

use self::aggregation::Aggregation;
use self::cycle::Cycle;
use self::full_pipe::FullPipe;
use self::policer::Policer;
use crate::Controller;
use crate::event::{Acked, Cause, Congestion, Established, Lost, RateSample, Sent, Spurious};
use crate::filter::{Windowed, WindowedMax};
use crate::path::Path;
use crate::path_model::{
    Conservation, MIN_RATE, MinRtt, NOMINAL_RTT, ProbeRtt, Round, SMALL_RATE, volume,
};
use crate::registry::Init;
use crate::window::MAX_WINDOW;

/// Below this rate two segments are a burst (draft §4.2.2).
const MEDIUM_RATE: Rate = Rate::from_mbps(24);
const MAX_QUANTUM: Bytes = Bytes::new(64 * 1024);
/// Maximum aggregation allowed for, as time at the estimated bandwidth (Linux).
const MAX_AGGREGATION: Duration = Duration::from_millis(100);
/// Segments after which an aggregation epoch is too old (Linux).
const AGGREGATION_SEGMENTS: u64 = 1 << 20;

/// The state machine of draft §4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The loss recovery state of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    Fast,
    Timeout,
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: BbrParams,
    mss: Bytes,
    initial_window: Bytes,
    mode: Mode,
    cwnd: Bytes,
    pacing_rate: Rate,
    pacing_gain: f64,
    cwnd_gain: f64,
    has_seen_rtt: bool,
    /// The model of the path.
    bandwidth: WindowedMax<Rate>,
    min_rtt: MinRtt,
    round: Round,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    policer: Policer,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    /// Loss recovery: the state of the transport, packet conservation, and the last good cwnd.
    recovery: Recovery,
    conservation: Conservation,
    prior_cwnd: Bytes,
    /// Totals, and bytes lost since the last acknowledgement.
    delivered: Bytes,
    lost: Bytes,
    newly_lost: Bytes,
    idle_restart: bool,
}

impl Bbr {
    /// Starts in STARTUP, paced by the initial window over a nominal round-trip time until a sample replaces it.
    pub fn new(params: BbrParams, init: Init) -> Self {
        let mss = init.mss.max(Bytes::new(1)).min(MAX_WINDOW);
        let cwnd = init.initial_window.max(mss).min(MAX_WINDOW);
        let mut bbr = Self {
            params,
            mss,
            initial_window: cwnd,
            mode: Mode::Startup,
            cwnd,
            pacing_rate: Rate::ZERO,
            pacing_gain: params.startup_gain,
            cwnd_gain: params.startup_gain,
            has_seen_rtt: false,
            bandwidth: Windowed::new(params.bandwidth_window, 0, Rate::ZERO),
            min_rtt: MinRtt::new(params.min_rtt_window, init.now),
            round: Round::default(),
            full_pipe: FullPipe::new(params.full_pipe_growth, params.full_pipe_rounds),
            aggregation: Aggregation::new(init.now),
            policer: Policer::default(),
            cycle: Cycle::new(init.now, init.rng),
            probe_rtt: ProbeRtt::default(),
            recovery: Recovery::None,
            conservation: Conservation::default(),
            prior_cwnd: Bytes::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            newly_lost: Bytes::ZERO,
            idle_restart: false,
        };
        bbr.init_pacing_rate(None);
        bbr
    }

    /// The bandwidth in use: the policed rate if there is a policer.
    #[inline]
    fn bw(&self) -> Rate {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    // --- model (draft §4.1) ---

    fn update_bandwidth(&mut self, now: Instant, sample: Option<&RateSample>, loss: bool) {
        let Some(sample) = sample else {
            self.round.no_sample();
            return;
        };
        let app_limited = self.is_app_limited(sample);
        self.round.on_sample(sample.prior_delivered, self.delivered);
        if self.round.is_start() {
            self.conservation.end_round();
        }
        if self.params.policer_detection {
            self.sample_policer(now, loss, app_limited);
        }
        let rate = sample.delivery_rate();
        if !app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.round.count(), rate);
        }
    }

    fn is_app_limited(&self, sample: &RateSample) -> bool {
        sample.app_limited || self.probe_rtt.held_back(sample.prior_delivered)
    }

    fn sample_policer(&mut self, now: Instant, loss: bool, app_limited: bool) {
        if self.policer.rate().is_some() {
            if self.mode == Mode::ProbeBw && self.round.is_start() && self.policer.on_round_in_use()
            {
                self.enter_probe_bw(now);
            }
            return;
        }
        self.policer.on_sample(&policer::Observed {
            now,
            delivered: self.delivered,
            lost: self.lost,
            loss,
            round_start: self.round.is_start(),
            app_limited,
        });
    }

    fn update_aggregation(&mut self, ack: &Acked) {
        if self.params.extra_acked_gain == 0.0 || ack.sample.is_none() || ack.bytes.is_zero() {
            return;
        }
        let observed = aggregation::Observed {
            now: ack.now,
            acked: ack.bytes,
            bandwidth: self.bw(),
            cwnd: self.cwnd,
            round_start: self.round.is_start(),
            reset_after: self.mss * AGGREGATION_SEGMENTS,
        };
        self.aggregation.on_ack(&observed);
    }

    fn check_full_pipe(&mut self, sample: Option<&RateSample>) {
        if self.round.is_start() && sample.is_some_and(|s| !self.is_app_limited(s)) {
            self.full_pipe.on_round(self.bandwidth.get());
        }
    }

    // --- state machine (draft §4.3) ---

    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        self.cycle.start(now);
    }

    fn check_cycle_phase(&mut self, ack: &Acked, loss: bool) {
        if self.mode == Mode::ProbeBw && self.is_next_phase(ack, loss) {
            self.cycle.advance(ack.now);
        }
    }

    /// Draft §4.3.4.4, BBRIsNextCyclePhase.
    fn is_next_phase(&self, ack: &Acked, loss: bool) -> bool {
        let min_rtt = self.min_rtt.get().unwrap_or(Duration::MAX);
        let full_length = ack.now - self.cycle.since() > min_rtt;
        let bw = self.bandwidth.get();
        if self.pacing_gain > 1.0 {
            // Probing lasts until the extra data is in flight, or is dropped.
            full_length && (loss || ack.in_flight_before >= self.inflight(bw, self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            // Draining ends early when the queue is gone.
            full_length || ack.in_flight_before <= self.inflight(bw, 1.0)
        } else {
            full_length
        }
    }

    fn check_drain(&mut self, ack: &Acked) {
        if self.mode == Mode::Startup && self.full_pipe.is_filled() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(self.bandwidth.get(), 1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    fn update_min_rtt(&mut self, ack: &Acked) {
        let expired = self.min_rtt.update(ack.now, ack.rtt);
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.enter(self.delivered);
        }
        // Draft §4.3.5.2, BBRHandleProbeRTT.
        if self.mode == Mode::ProbeRtt {
            let (floor, hold) = (self.min_cwnd(), self.params.probe_rtt_duration);
            let (probe, round) = (&mut self.probe_rtt, &mut self.round);
            if probe.on_ack(ack, self.delivered, floor, hold, round) {
                self.leave_probe_rtt(ack.now);
            }
        }
        if ack.sample.is_some() {
            self.idle_restart = false;
        }
    }

    fn leave_probe_rtt(&mut self, now: Instant) {
        self.min_rtt.refresh(now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_pipe.is_filled() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (self.params.startup_gain, self.params.startup_gain),
            Mode::Drain => (1.0 / self.params.startup_gain, self.params.startup_gain),
            Mode::ProbeBw if self.policer.rate().is_some() => (1.0, self.params.cwnd_gain),
            Mode::ProbeBw => (self.cycle.gain(), self.params.cwnd_gain),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    // --- outputs (draft §4.2) ---

    fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        let rtt = srtt.unwrap_or(NOMINAL_RTT).max(Duration::from_nanos(1));
        self.has_seen_rtt = srtt.is_some();
        self.pacing_rate = self.paced(self.cwnd / rtt, self.params.startup_gain);
    }

    fn paced(&self, bw: Rate, gain: f64) -> Rate {
        bw.mul_f64(gain * (1.0 - self.params.pacing_margin))
            .max(MIN_RATE)
    }

    fn set_pacing_rate(&mut self, gain: f64, srtt: Option<Duration>) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.init_pacing_rate(srtt);
        }
        let rate = self.paced(self.bw(), gain);
        if self.full_pipe.is_filled() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn quantum(&self) -> Bytes {
        if self.pacing_rate < SMALL_RATE {
            self.mss
        } else if self.pacing_rate < MEDIUM_RATE {
            self.mss * 2
        } else {
            Bytes::new(self.pacing_rate.as_bps() / 8_000) // one millisecond
                .min(MAX_QUANTUM)
                .max(self.mss * 2)
        }
    }

    fn min_cwnd(&self) -> Bytes {
        (self.mss * self.params.min_window).max(self.mss)
    }

    /// `gain` bandwidth-delay products.
    fn bdp(&self, bw: Rate, gain: f64) -> Bytes {
        match self.min_rtt.get() {
            Some(rtt) => volume(bw, rtt).mul_f64(gain).min(MAX_WINDOW),
            None => self.initial_window,
        }
    }

    /// Room for full-sized bursts in both end hosts, in whole pairs of segments, and for probing
    /// even where the bandwidth-delay product is small.
    fn quantized(&self, window: Bytes) -> Bytes {
        let pair = self.mss.get() * 2;
        let room = window + self.quantum() * 3;
        let mut segments = Bytes::new(room.get().div_ceil(pair) * pair);
        if self.mode == Mode::ProbeBw && self.cycle.is_probing() {
            segments += self.mss * 2;
        }
        segments
    }

    fn inflight(&self, bw: Rate, gain: f64) -> Bytes {
        self.quantized(self.bdp(bw, gain))
    }

    /// Sets cwnd after an acknowledgement, by packet conservation or towards the target (draft §4.2.3).
    fn set_cwnd(&mut self, ack: &Acked, lost: Bytes) {
        if !ack.bytes.is_zero() && !self.conserve(ack, lost) {
            self.approach_target(ack);
        }
        self.clamp_cwnd();
    }

    /// Recovery (draft §4.2.3.4): whether packet conservation determines cwnd.
    fn conserve(&mut self, ack: &Acked, lost: Bytes) -> bool {
        if self.conservation.is_entering() {
            self.round.restart(self.delivered);
        }
        self.cwnd = self.conservation.modulate(self.cwnd, ack, lost, self.mss);
        self.conservation.is_active()
    }

    fn approach_target(&mut self, ack: &Acked) {
        let bw = self.bw();
        let aggregation = self
            .aggregation
            .extra_acked()
            .mul_f64(self.params.extra_acked_gain)
            .min(volume(bw, MAX_AGGREGATION));
        let mut target = self.bdp(bw, self.cwnd_gain);
        if self.full_pipe.is_filled() {
            target += aggregation;
        }
        let target = self.quantized(target);
        if self.full_pipe.is_filled() {
            self.cwnd = (self.cwnd + ack.bytes).min(target);
        } else if self.cwnd < target || self.delivered < self.initial_window {
            self.cwnd += ack.bytes;
        }
        self.cwnd = self.cwnd.max(self.min_cwnd());
    }

    fn clamp_cwnd(&mut self) {
        self.cwnd = self.cwnd.min(MAX_WINDOW).max(self.mss);
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_cwnd());
        }
    }

    // --- recovery ---

    /// Remembers the last good window (draft §4.2.3.4, BBRSaveCwnd).
    fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.recovery == Recovery::None && self.mode != Mode::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    fn end_recovery(&mut self) {
        if self.recovery == Recovery::None {
            return;
        }
        self.recovery = Recovery::None;
        self.conservation.end();
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.clamp_cwnd();
    }

    fn on_timeout(&mut self, now: Instant) {
        self.save_cwnd();
        self.recovery = Recovery::Timeout;
        self.conservation.end();
        self.cwnd = self.mss; // draft §4.2.3.4, BBROnEnterRTO
        self.full_pipe.on_timeout();
        if self.params.policer_detection && self.policer.rate().is_none() {
            self.policer.on_sample(&policer::Observed {
                now,
                delivered: self.delivered,
                lost: self.lost,
                loss: true,
                round_start: true, // a timeout ends a round
                app_limited: false,
            });
        }
    }
}

fn flag(set: bool) -> f64 {
    if set { 1.0 } else { 0.0 }
}

impl Controller for Bbr {
    fn on_send(&mut self, sent: &Sent, path: &Path<'_>) {
        // Restart from idle (draft §4.3.4.4); all segments before it were acknowledged.
        let idle = sent
            .idle
            .filter(|idle| sent.app_limited || idle.was_app_limited);
        if idle.is_none() || sent.retransmission || !sent.in_flight.is_zero() {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(sent.now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(1.0, path.srtt),
            Mode::ProbeRtt if self.probe_rtt.has_waited(sent.now) => {
                self.leave_probe_rtt(sent.now);
                self.update_gains();
            }
            _ => {}
        }
    }

    fn watches_sends(&self) -> bool {
        false
    }

    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>) {
        let lost = std::mem::take(&mut self.newly_lost);
        let loss = !lost.is_zero();
        let sample = ack.sample.as_ref();
        self.delivered = match sample {
            Some(s) => s.total_delivered,
            None => self.delivered + ack.bytes,
        };
        self.update_bandwidth(ack.now, sample, loss);
        self.update_aggregation(ack);
        self.check_cycle_phase(ack, loss);
        self.check_full_pipe(sample);
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_gains();
        self.set_pacing_rate(self.pacing_gain, path.srtt);
        self.set_cwnd(ack, lost);
    }

    fn on_loss(&mut self, lost: &Lost, _path: &Path<'_>) {
        self.newly_lost += lost.bytes;
        self.lost += lost.bytes;
    }

    fn on_congestion(&mut self, event: &Congestion, _path: &Path<'_>) {
        match event.cause {
            Cause::Ecn => {}
            Cause::Loss => {
                self.save_cwnd();
                self.recovery = Recovery::Fast;
                self.conservation.enter();
            }
            Cause::Timeout { .. } => self.on_timeout(event.now),
        }
    }

    fn on_spurious(&mut self, event: &Spurious, _path: &Path<'_>) {
        if event.cause == Cause::Ecn {
            return;
        }
        self.full_pipe.restart();
        self.policer.reset();
        self.end_recovery();
    }

    fn on_recovered(&mut self, _now: Instant, _path: &Path<'_>) {
        self.end_recovery();
    }

    /// Draft §4.3.1 (BBRInit) and §4.2.1 (BBRInitPacingRate): the round trip of the handshake is the first.
    fn on_established(&mut self, established: &Established, path: &Path<'_>) {
        self.on_mss(path);
        self.initial_window = established.window.max(self.mss).min(MAX_WINDOW);
        self.cwnd = self.initial_window;
        self.min_rtt.start(established.now, path.min_rtt);
        self.init_pacing_rate(path.srtt);
    }

    fn on_mss(&mut self, path: &Path<'_>) {
        self.mss = path.mss.max(Bytes::new(1)).min(MAX_WINDOW);
        self.clamp_cwnd();
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn send_quantum(&self) -> Option<Bytes> {
        Some(self.quantum())
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn in_slow_start(&self) -> bool {
        self.mode == Mode::Startup
    }

    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw => "probe-bw",
            Mode::ProbeRtt => "probe-rtt",
        }
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("bandwidth_bps", self.bw().as_bps() as f64));
        let min_rtt = self.min_rtt.get().map_or(f64::NAN, Duration::as_secs_f64);
        out.push(("min_rtt_s", min_rtt));
        out.push(("pacing_gain", self.pacing_gain));
        out.push(("cwnd_gain", self.cwnd_gain));
        out.push(("extra_acked_bytes", self.aggregation.extra_acked().as_f64()));
        let target = self.inflight(self.bandwidth.get(), 1.0);
        out.push(("max_bandwidth_bps", self.bandwidth.get().as_bps() as f64));
        out.push(("target_inflight_bytes", target.as_f64()));
        out.push(("round_count", self.round.count() as f64));
        out.push(("full_bandwidth_rounds", f64::from(self.full_pipe.rounds())));
        out.push(("full_bandwidth_reached", flag(self.full_pipe.is_filled())));
        out.push(("idle_restart", flag(self.idle_restart)));
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

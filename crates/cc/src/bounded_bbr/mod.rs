//! BBR that bounds the data in flight by loss: the model and the state machine that versions 2 and 3 share.
//!
//! Both drafts have the same structure: a bandwidth filter over two probing cycles, bounds in the long and in the short
//! term, PROBE_BW in four phases, PROBE_RTT with half a bandwidth-delay product. What differs is in [`Version`], and
//! each version is a file of its own: `algorithms/bbr2`, `algorithms/bbr3`. Sections here are those of
//! draft-ietf-ccwg-bbr.
//!
//! # Differences from the drafts' texts
//! - Loss events in STARTUP are the acknowledgements that reveal losses, as in Linux; the sequence ranges are not
//!   known here. Selective acknowledgements are assumed.
//! - The drafts set the sampler's application-limited mark during PROBE_RTT. A controller has no access to the
//!   sampler, so the segments concerned are recorded here instead.
//! - A probing cycle without a bandwidth sample does not advance the filter (Linux).
//! - The first round-trip sample renews the initial pacing rate.
//! - The data in flight, when a probe reaches its end or PROBE_BW_DOWN may end, is that before the acknowledgement
//!   (Linux).
//! - The state to return to after a spurious recovery is saved once per episode, before its first loss has an effect.
//! - The response to ECN marks is that of [`EcnResponse`].

mod bounds;
mod control;
mod cycle;
mod ecn;
mod filters;
mod full_bw;
mod loss;
mod params;
mod probe_rtt;
#[cfg(test)]
pub(crate) mod testing;
mod version;

pub use ecn::EcnResponse;
pub use params::BoundedParams;
pub use version::Version;

use gargalo_units::{Bytes, Duration, Instant, Rate};

use self::bounds::{Latest, LongTerm, ShortTerm};
use self::cycle::Probe;
use self::ecn::Marks;
use self::filters::{MaxBw, MinRtt};
use self::full_bw::FullBw;
use self::loss::Undo;
use crate::Controller;
use crate::event::{Acked, Cause, Congestion, Established, Lost, RateSample, Sent, Spurious};
use crate::filter::{Windowed, WindowedMax};
use crate::path::Path;
use crate::path_model::{Conservation, Excess, ProbeRtt, Round};
use crate::registry::Init;
use crate::window::MAX_WINDOW;

/// The state machine of draft §5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubles the rate each round.
    Startup,
    /// Empties the queue that STARTUP has left.
    Drain,
    /// PROBE_BW_DOWN: slower than the bandwidth.
    Down,
    /// PROBE_BW_CRUISE: at the bandwidth, with headroom.
    Cruise,
    /// PROBE_BW_REFILL: at the bandwidth, without headroom, for a round.
    Refill,
    /// PROBE_BW_UP: faster than the bandwidth.
    Up,
    /// Little in flight, to see the path's round-trip time.
    ProbeRtt,
}

impl State {
    /// IsInAProbeBWState: one of the four phases of PROBE_BW.
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// IsProbingBW: the states that fill the pipe or probe beyond it. A round with losses sets no short-term bound in
    /// them.
    fn is_accelerating(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// The loss recovery state of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    None,
    Fast,
    Timeout,
}

/// The sample of one acknowledgement (RS of the draft).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) rate: Rate,
    pub(crate) delivered: Bytes,
    pub(crate) lost: Bytes,
    pub(crate) tx_in_flight: Bytes,
    pub(crate) app_limited: bool,
}

/// Whether cwnd was used to the full in the last round trip (C.is_cwnd_limited).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CwndLimited {
    now: bool,
    before: bool,
}

impl CwndLimited {
    fn get(self) -> bool {
        self.now || self.before
    }
}

/// The model of aggregated acknowledgements (draft §5.5.9).
#[derive(Clone, Debug)]
pub(crate) struct Aggregation {
    excess: Excess,
    pub(crate) extra_acked: WindowedMax<Bytes>,
}

/// Loss recovery.
#[derive(Clone, Debug)]
struct Repair {
    /// The state of the transport.
    phase: Recovery,
    conservation: Conservation,
    /// The last good cwnd.
    prior_cwnd: Bytes,
    /// Losses in the present round.
    loss_events: u32,
    /// Bytes lost since the last acknowledgement.
    newly_lost: Bytes,
}

impl Default for Repair {
    fn default() -> Self {
        Self {
            phase: Recovery::None,
            conservation: Conservation::default(),
            prior_cwnd: Bytes::ZERO,
            loss_events: 0,
            newly_lost: Bytes::ZERO,
        }
    }
}

/// BBR, with what version `V` does in its own way.
///
/// The variables have the names of the draft.
#[derive(Clone, Debug)]
pub struct BoundedBbr<V> {
    pub(crate) params: BoundedParams,
    pub(crate) version: V,
    pub(crate) mss: Bytes,
    pub(crate) initial_window: Bytes,
    pub(crate) state: State,
    pub(crate) cwnd: Bytes,
    pub(crate) pacing_rate: Rate,
    has_seen_rtt: bool,
    /// The model of the path.
    pub(crate) max_bw: MaxBw,
    /// The bandwidth in use: max_bw within the short-term bound.
    pub(crate) bw: Rate,
    pub(crate) min_rtt: MinRtt,
    pub(crate) round: Round,
    pub(crate) full_bw: FullBw,
    pub(crate) aggregation: Aggregation,
    pub(crate) latest: Latest,
    pub(crate) short_term: ShortTerm,
    pub(crate) long_term: LongTerm,
    pub(crate) marks: Marks,
    /// The state machine.
    pub(crate) probe: Probe,
    pub(crate) probe_rtt: ProbeRtt,
    drain_start_round: u64,
    repair: Repair,
    /// What an undo restores.
    pub(crate) undo: Undo,
    /// Bytes delivered and lost so far.
    delivered: Bytes,
    lost: Bytes,
    limited: CwndLimited,
    pub(crate) idle_restart: bool,
}

impl<V: Version> BoundedBbr<V> {
    /// Starts in STARTUP, paced by the initial window over a nominal round-trip time until a sample replaces it.
    pub fn new(params: BoundedParams, version: V, init: Init) -> Self {
        let mss = init.mss.max(Bytes::new(1)).min(MAX_WINDOW);
        let cwnd = init.initial_window.max(mss).min(MAX_WINDOW);
        let (interval, window) = (params.probe_rtt_interval, params.min_rtt_window);
        let mut bbr = Self {
            params,
            version,
            mss,
            initial_window: cwnd,
            state: State::Startup,
            cwnd,
            pacing_rate: Rate::ZERO,
            has_seen_rtt: false,
            max_bw: MaxBw::default(),
            bw: Rate::ZERO,
            min_rtt: MinRtt::new(interval, window, init.now),
            round: Round::default(),
            full_bw: FullBw::new(params.full_pipe_growth, params.full_pipe_rounds),
            aggregation: Aggregation {
                excess: Excess::new(init.now),
                extra_acked: Windowed::new(1, 0, Bytes::ZERO),
            },
            latest: Latest::default(),
            short_term: ShortTerm::NONE,
            long_term: LongTerm::NONE,
            marks: Marks::new(params.ecn_alpha_gain, params.ecn_threshold),
            probe: Probe::new(init.now, init.rng),
            probe_rtt: ProbeRtt::default(),
            drain_start_round: 0,
            repair: Repair::default(),
            undo: Undo::default(),
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            limited: CwndLimited::default(),
            idle_restart: false,
        };
        bbr.init_pacing_rate(None);
        bbr
    }

    // --- model (draft §5.5) ---

    fn observe(&self, s: &RateSample) -> Observed {
        Observed {
            rate: s.delivery_rate(),
            delivered: s.delivered,
            lost: s.lost,
            tx_in_flight: s.tx_in_flight,
            app_limited: self.is_app_limited(s.app_limited, s.prior_delivered),
        }
    }

    /// Whether a segment sent when `prior` bytes were delivered counts as application-limited.
    fn is_app_limited(&self, marked: bool, prior: Bytes) -> bool {
        marked || self.probe_rtt.held_back(prior)
    }

    /// UpdateLatestDeliverySignals and UpdateCongestionSignals.
    fn update_signals(&mut self, ack: &Acked) -> Option<Observed> {
        let Some(s) = &ack.sample else {
            self.latest.no_sample();
            self.round.no_sample();
            return None;
        };
        let rs = self.observe(s);
        self.latest
            .update(rs.rate, rs.delivered, s.prior_delivered, self.delivered);
        self.round.on_sample(s.prior_delivered, self.delivered);
        if self.round.is_start() {
            self.probe.rounds_since_up += 1;
            self.limited.before = std::mem::take(&mut self.limited.now);
        }
        if !rs.app_limited || rs.rate >= self.max_bw.get() {
            self.max_bw.update(rs.rate);
        }
        if self.latest.is_round_start() {
            self.end_loss_round(&rs, ack.now);
        }
        Some(rs)
    }

    /// UpdateACKAggregation: the maximum of what was acknowledged in excess of the bandwidth, at most cwnd.
    fn update_aggregation(&mut self, ack: &Acked) {
        let extra = self
            .aggregation
            .excess
            .on_ack(ack.now, ack.bytes, self.bw, Bytes::MAX);
        let window = if self.full_bw.is_reached() {
            self.params.extra_acked_window
        } else {
            self.version.startup_aggregation(&self.params)
        };
        self.aggregation.extra_acked.set_window(window);
        self.aggregation
            .extra_acked
            .update(self.round.count(), extra.min(self.cwnd));
    }

    fn check_full_bw(&mut self, rs: &Observed) {
        if self.round.is_start()
            && !rs.app_limited
            && let Some(rate) = V::plateau_sample(self, rs.rate)
        {
            self.full_bw.on_round(rate);
        }
    }

    /// BoundBWForModel: max_bw, at most the short-term bound.
    fn bound_bw(&mut self) {
        self.bw = self.max_bw.get().min(self.short_term.bw);
    }
}

fn flag(set: bool) -> f64 {
    if set { 1.0 } else { 0.0 }
}

impl<V: Version> Controller for BoundedBbr<V> {
    fn on_send(&mut self, sent: &Sent, path: &Path<'_>) {
        if sent.in_flight + sent.bytes + self.mss > self.cwnd {
            self.limited.now = true;
        }
        // Restart from idle (draft §5.4); all segments before it were acknowledged.
        let idle = sent
            .idle
            .filter(|idle| sent.app_limited || idle.was_app_limited);
        if idle.is_none() || sent.retransmission || !sent.in_flight.is_zero() {
            return;
        }
        self.idle_restart = true;
        self.aggregation.excess.restart(sent.now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0, path.srtt);
        } else if self.state == State::ProbeRtt && self.probe_rtt.has_waited(sent.now) {
            self.leave_probe_rtt(sent.now);
        }
    }

    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>) {
        self.delivered = match &ack.sample {
            Some(s) => s.total_delivered,
            None => self.delivered + ack.bytes,
        };
        self.marks.on_ack(ack.bytes, ack.ce_bytes);
        let rs = self.update_signals(ack);
        self.update_aggregation(ack);
        if let Some(rs) = &rs {
            self.check_full_bw(rs);
            self.check_startup_loss(rs);
        }
        self.check_startup_done();
        self.check_drain_done(ack);
        self.update_cycle(ack, rs.as_ref());
        self.update_min_rtt(ack);
        if let Some(rs) = &rs {
            self.latest.advance(rs.rate, rs.delivered);
        }
        if self.latest.is_round_start() {
            self.repair.conservation.end_round();
        }
        self.bound_bw();
        self.set_pacing_rate(self.pacing_gain(), path.srtt);
        self.set_cwnd(ack);
        self.undo.episode_may_begin();
    }

    fn on_loss(&mut self, lost: &Lost, _path: &Path<'_>) {
        self.handle_lost_segment(lost);
    }

    fn on_congestion(&mut self, event: &Congestion, path: &Path<'_>) {
        match event.cause {
            Cause::Ecn => self.on_mark(event),
            Cause::Loss => {
                self.begin_episode();
                self.latest.note_loss(self.delivered);
                self.repair.phase = Recovery::Fast;
                if self.version.conserves_packets() {
                    self.repair.conservation.enter();
                }
            }
            Cause::Timeout { .. } => {
                self.begin_episode();
                self.repair.phase = Recovery::Timeout;
                self.repair.conservation.end();
                // One segment may be sent (draft §5.6.4.4).
                self.cwnd = (path.in_flight + self.mss).min(self.cwnd).max(self.mss);
            }
        }
    }

    fn on_spurious(&mut self, event: &Spurious, _path: &Path<'_>) {
        if event.cause != Cause::Ecn {
            self.undo_loss();
        }
    }

    fn on_recovered(&mut self, _now: Instant, _path: &Path<'_>) {
        if self.repair.phase != Recovery::None {
            self.repair.phase = Recovery::None;
            self.repair.conservation.end();
            self.restore_cwnd();
        }
        self.undo.end();
    }

    /// Draft §5.2.1 (BBROnInit) and §5.6.2 (BBRInitPacingRate): the round trip of the handshake is the first.
    fn on_established(&mut self, established: &Established, path: &Path<'_>) {
        self.on_mss(path);
        self.initial_window = established.window.max(self.mss).min(MAX_WINDOW);
        self.cwnd = self.initial_window;
        self.min_rtt.start(established.now, path.min_rtt);
        self.init_pacing_rate(path.srtt);
    }

    fn on_mss(&mut self, path: &Path<'_>) {
        self.mss = path.mss.max(Bytes::new(1)).min(MAX_WINDOW);
        self.cwnd = self.cwnd.max(self.mss);
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
        self.state == State::Startup
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::Down => "probe-bw-down",
            State::Cruise => "probe-bw-cruise",
            State::Refill => "probe-bw-refill",
            State::Up => "probe-bw-up",
            State::ProbeRtt => "probe-rtt",
        }
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        let bytes = |b: Bytes| match b {
            Bytes::MAX => f64::NAN,
            b => b.as_f64(),
        };
        let min_rtt = self.min_rtt.get().map_or(f64::NAN, Duration::as_secs_f64);
        out.push(("bandwidth_bps", self.bw.as_bps() as f64));
        out.push(("max_bandwidth_bps", self.max_bw.get().as_bps() as f64));
        out.push(("min_rtt_s", min_rtt));
        out.push(("pacing_gain", self.pacing_gain()));
        out.push(("cwnd_gain", self.cwnd_gain()));
        out.push((
            "extra_acked_bytes",
            self.aggregation.extra_acked.get().as_f64(),
        ));
        out.push(("inflight_longterm_bytes", bytes(self.long_term.inflight)));
        out.push(("inflight_shortterm_bytes", bytes(self.short_term.inflight)));
        let shortterm = match self.short_term.bw {
            Rate::MAX => f64::NAN,
            bw => bw.as_bps() as f64,
        };
        out.push(("bandwidth_shortterm_bps", shortterm));
        out.push((
            "target_inflight_bytes",
            self.inflight(self.bw, 1.0).as_f64(),
        ));
        out.push((
            "max_target_inflight_bytes",
            self.inflight(self.max_bw.get(), 1.0).as_f64(),
        ));
        out.push(("headroom_inflight_bytes", bytes(self.with_headroom())));
        out.push(("round_count", self.round.count() as f64));
        out.push(("full_bandwidth_rounds", f64::from(self.full_bw.rounds())));
        out.push(("full_bandwidth_reached", flag(self.full_bw.is_reached())));
        out.push(("idle_restart", flag(self.idle_restart)));
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

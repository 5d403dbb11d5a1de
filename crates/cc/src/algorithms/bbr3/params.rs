use gargalo_units::Duration;

use super::Bbr3;
use super::ecn::EcnResponse;
use crate::params::{BuildError, Param, Params, Values};
use crate::registry::Algorithm;

/// Parameters of [`Bbr3`]; names in brackets are the draft's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr3Params {
    /// Pacing gain of STARTUP (BBR.StartupPacingGain).
    pub startup_pacing_gain: f64,
    /// Pacing gain of DRAIN (BBR.DrainPacingGain).
    pub drain_pacing_gain: f64,
    /// Pacing gain of PROBE_BW_UP.
    pub up_pacing_gain: f64,
    /// Pacing gain of PROBE_BW_DOWN.
    pub down_pacing_gain: f64,
    /// Window in bandwidth-delay products (BBR.DefaultCwndGain).
    pub cwnd_gain: f64,
    /// The same in PROBE_BW_UP.
    pub up_cwnd_gain: f64,
    /// The same in PROBE_RTT (BBR.ProbeRTTCwndGain).
    pub probe_rtt_cwnd_gain: f64,
    /// Part of the bandwidth not used when pacing (BBR.PacingMarginPercent).
    pub pacing_margin: f64,
    /// Tolerated loss rate of a round trip while probing (BBR.LossThresh).
    pub loss_threshold: f64,
    /// Least part kept of the short-term bounds in a round trip with loss (BBR.Beta).
    pub beta: f64,
    /// Part of the long-term bound left to others (BBR.Headroom).
    pub headroom: f64,
    /// Least window, in segments (BBR.MinPipeCwnd).
    pub min_window: u64,
    /// Loss events in a round trip that may end STARTUP (BBRStartupFullLossCnt).
    pub full_loss_count: u32,
    /// Growth of the delivery rate that shows the pipe is not full.
    pub full_pipe_growth: f64,
    /// Rounds without that growth after which the pipe is full.
    pub full_pipe_rounds: u32,
    /// Rounds after which DRAIN ends whatever is in flight.
    pub drain_rounds: u64,
    /// Least time between probes for bandwidth.
    pub probe_wait: Duration,
    /// Random time added to it.
    pub probe_wait_random: Duration,
    /// Most rounds between probes for bandwidth, to coexist with Reno.
    pub probe_rounds: u64,
    /// A probe that went too high is followed by a careful one.
    pub precautionary_probing: bool,
    /// Window of the minimum round-trip time (BBR.MinRTTFilterLen).
    pub min_rtt_window: Duration,
    /// Time between PROBE_RTT states (BBR.ProbeRTTInterval).
    pub probe_rtt_interval: Duration,
    /// Least time in PROBE_RTT (BBR.ProbeRTTDuration).
    pub probe_rtt_duration: Duration,
    /// How much of the aggregation of acknowledgements is added to the window.
    pub extra_acked_gain: f64,
    /// Rounds it is remembered after STARTUP (BBR.ExtraAckedFilterLen).
    pub extra_acked_window: u64,
    /// What a Congestion Experienced mark does.
    pub ecn_response: EcnResponse,
    /// Proportional response: weight of the newest round in the share of marked bytes.
    pub ecn_alpha_gain: f64,
    /// Proportional response: part of that share the window is reduced by.
    pub ecn_factor: f64,
    /// Proportional response: share of marked bytes that is too high when probing.
    pub ecn_threshold: f64,
}

impl Bbr3Params {
    /// The values of the draft; those of the proportional ECN response are Linux's.
    pub const DEFAULT: Self = Self {
        startup_pacing_gain: 2.77,
        drain_pacing_gain: 0.5,
        up_pacing_gain: 1.25,
        down_pacing_gain: 0.9,
        cwnd_gain: 2.0,
        up_cwnd_gain: 2.25,
        probe_rtt_cwnd_gain: 0.5,
        pacing_margin: 0.01,
        loss_threshold: 0.02,
        beta: 0.7,
        headroom: 0.15,
        min_window: 4,
        full_loss_count: 6,
        full_pipe_growth: 1.25,
        full_pipe_rounds: 3,
        drain_rounds: 3,
        probe_wait: Duration::from_secs(2),
        probe_wait_random: Duration::from_secs(1),
        probe_rounds: 63,
        precautionary_probing: true,
        min_rtt_window: Duration::from_secs(10),
        probe_rtt_interval: Duration::from_secs(5),
        probe_rtt_duration: Duration::from_millis(200),
        extra_acked_gain: 1.0,
        extra_acked_window: 10,
        ecn_response: EcnResponse::Classic,
        ecn_alpha_gain: 1.0 / 16.0,
        ecn_factor: 1.0 / 3.0,
        ecn_threshold: 0.5,
    };

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            startup_pacing_gain: v.number("startup_pacing_gain"),
            drain_pacing_gain: v.number("drain_pacing_gain"),
            up_pacing_gain: v.number("up_pacing_gain"),
            down_pacing_gain: v.number("down_pacing_gain"),
            cwnd_gain: v.number("cwnd_gain"),
            up_cwnd_gain: v.number("up_cwnd_gain"),
            probe_rtt_cwnd_gain: v.number("probe_rtt_cwnd_gain"),
            pacing_margin: v.number("pacing_margin"),
            loss_threshold: v.number("loss_threshold"),
            beta: v.number("beta"),
            headroom: v.number("headroom"),
            min_window: v.number("min_window") as u64,
            full_loss_count: v.number("full_loss_count") as u32,
            full_pipe_growth: v.number("full_pipe_growth"),
            full_pipe_rounds: v.number("full_pipe_rounds") as u32,
            drain_rounds: v.number("drain_rounds") as u64,
            probe_wait: v.duration("probe_wait"),
            probe_wait_random: v.duration("probe_wait_random"),
            probe_rounds: v.number("probe_rounds") as u64,
            precautionary_probing: v.bool("precautionary_probing"),
            min_rtt_window: v.duration("min_rtt_window"),
            probe_rtt_interval: v.duration("probe_rtt_interval"),
            probe_rtt_duration: v.duration("probe_rtt_duration"),
            extra_acked_gain: v.number("extra_acked_gain"),
            extra_acked_window: v.number("extra_acked_window") as u64,
            ecn_response: EcnResponse::from_name(v.text("ecn_response")),
            ecn_alpha_gain: v.number("ecn_alpha_gain"),
            ecn_factor: v.number("ecn_factor"),
            ecn_threshold: v.number("ecn_threshold"),
        })
    }
}

impl Default for Bbr3Params {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: Bbr3Params = Bbr3Params::DEFAULT;
const HOUR: Duration = Duration::from_secs(3600);

const fn gain(name: &'static str, doc: &'static str, default: f64, min: f64) -> Param {
    Param::number(name, doc, default, min, 10.0)
}

/// A part of something.
const fn part(name: &'static str, doc: &'static str, default: f64, max: f64) -> Param {
    Param::number(name, doc, default, 0.0, max)
}

const fn count(name: &'static str, doc: &'static str, default: u64) -> Param {
    Param::integer(name, doc, default as f64, 1.0, 1000.0)
}

const fn time(
    name: &'static str,
    doc: &'static str,
    default: Duration,
    min_millis: u64,
    max: Duration,
) -> Param {
    Param::duration(name, doc, default, Duration::from_millis(min_millis), max)
}

const PARAMS: [Param; 29] = [
    gain(
        "startup_pacing_gain",
        "pacing gain of STARTUP, 4 ln 2",
        DEFAULT.startup_pacing_gain,
        1.1,
    ),
    gain(
        "drain_pacing_gain",
        "pacing gain of DRAIN",
        DEFAULT.drain_pacing_gain,
        0.01,
    ),
    gain(
        "up_pacing_gain",
        "pacing gain while probing for bandwidth",
        DEFAULT.up_pacing_gain,
        1.0,
    ),
    gain(
        "down_pacing_gain",
        "pacing gain after a probe for bandwidth",
        DEFAULT.down_pacing_gain,
        0.01,
    ),
    gain(
        "cwnd_gain",
        "cwnd in bandwidth-delay products",
        DEFAULT.cwnd_gain,
        1.0,
    ),
    gain(
        "up_cwnd_gain",
        "cwnd in bandwidth-delay products while probing for bandwidth",
        DEFAULT.up_cwnd_gain,
        1.0,
    ),
    gain(
        "probe_rtt_cwnd_gain",
        "cwnd in bandwidth-delay products while probing for the round-trip time",
        DEFAULT.probe_rtt_cwnd_gain,
        0.0,
    ),
    part(
        "pacing_margin",
        "fraction of the bandwidth left unused when pacing",
        DEFAULT.pacing_margin,
        0.5,
    ),
    part(
        "loss_threshold",
        "loss rate of a round trip that is too high when probing (LossThresh)",
        DEFAULT.loss_threshold,
        0.9,
    ),
    part(
        "beta",
        "least part of the short-term bounds kept in a round trip with loss",
        DEFAULT.beta,
        1.0,
    ),
    part(
        "headroom",
        "part of the long-term bound on data in flight that is left to other flows",
        DEFAULT.headroom,
        0.9,
    ),
    count("min_window", "least window, segments", DEFAULT.min_window),
    count(
        "full_loss_count",
        "loss events in a round trip that end STARTUP, given the loss rate",
        DEFAULT.full_loss_count as u64,
    ),
    gain(
        "full_pipe_growth",
        "growth of the delivery rate in a round that shows the pipe is not full",
        DEFAULT.full_pipe_growth,
        1.01,
    ),
    count(
        "full_pipe_rounds",
        "rounds without that growth that end STARTUP or a probe for bandwidth",
        DEFAULT.full_pipe_rounds as u64,
    ),
    count(
        "drain_rounds",
        "rounds after which DRAIN ends whatever is in flight",
        DEFAULT.drain_rounds,
    ),
    time(
        "probe_wait",
        "least time between two probes for bandwidth, unless probe_rounds ends it",
        DEFAULT.probe_wait,
        0,
        HOUR,
    ),
    time(
        "probe_wait_random",
        "random time, uniform from zero to this, added to probe_wait",
        DEFAULT.probe_wait_random,
        0,
        HOUR,
    ),
    Param::integer(
        "probe_rounds",
        "most round trips between two probes for bandwidth (coexistence with Reno)",
        DEFAULT.probe_rounds as f64,
        1.0,
        1e9,
    ),
    Param::bool(
        "precautionary_probing",
        "after a probe with too much loss, first probe up to the known bound only",
        DEFAULT.precautionary_probing,
    ),
    time(
        "min_rtt_window",
        "how long a minimum round-trip time is remembered",
        DEFAULT.min_rtt_window,
        100,
        HOUR,
    ),
    time(
        "probe_rtt_interval",
        "time between two probes for the round-trip time",
        DEFAULT.probe_rtt_interval,
        100,
        HOUR,
    ),
    time(
        "probe_rtt_duration",
        "least time with a small window when probing for the round-trip time",
        DEFAULT.probe_rtt_duration,
        1,
        Duration::from_secs(10),
    ),
    part(
        "extra_acked_gain",
        "share of acknowledgement aggregation added to cwnd",
        DEFAULT.extra_acked_gain,
        10.0,
    ),
    count(
        "extra_acked_window",
        "round trips that aggregation is remembered after STARTUP",
        DEFAULT.extra_acked_window,
    ),
    Param::choice(
        "ecn_response",
        "what marks do, if ECN is on: classic as a loss, proportional by their share (Linux), off",
        DEFAULT.ecn_response.name(),
        EcnResponse::CHOICES,
    ),
    Param::number(
        "ecn_alpha_gain",
        "proportional response: weight of the newest round in the share of marked bytes",
        DEFAULT.ecn_alpha_gain,
        1e-4,
        1.0,
    ),
    part(
        "ecn_factor",
        "proportional response: the window falls by this times the share of marked bytes",
        DEFAULT.ecn_factor,
        1.0,
    ),
    part(
        "ecn_threshold",
        "proportional response: share of marked bytes that is too high when probing",
        DEFAULT.ecn_threshold,
        1.0,
    ),
];

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr3",
    aliases: &["bbrv3"],
    summary: "BBR that also bounds what is in flight by loss and leaves headroom to others",
    source: "draft-ietf-ccwg-bbr (August 2026)",
    params: &PARAMS,
    build: |params, init| Ok(Box::new(Bbr3::new(Bbr3Params::from_params(params)?, init))),
};

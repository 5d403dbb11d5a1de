use gargalo_units::Duration;

use super::Bbr;
use crate::params::{BuildError, Param, Params, Values};
use crate::registry::Algorithm;

/// Parameters of [`Bbr`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrParams {
    /// Pacing and cwnd gain of STARTUP, 2/ln 2 (BBRHighGain); DRAIN paces at its inverse.
    pub startup_gain: f64,
    /// cwnd gain of PROBE_BW.
    pub cwnd_gain: f64,
    /// Window of the bandwidth filter, in round trips (BtlBwFilterLen).
    pub bandwidth_window: u64,
    /// Window of the minimum round-trip time (RTpropFilterLen).
    pub min_rtt_window: Duration,
    /// Least time in PROBE_RTT (ProbeRTTDuration).
    pub probe_rtt_duration: Duration,
    /// Least window, in segments (BBRMinPipeCwnd).
    pub min_window: u64,
    /// Growth of bandwidth that shows the pipe is not full.
    pub full_pipe_growth: f64,
    /// Rounds without that growth after which the pipe is full.
    pub full_pipe_rounds: u32,
    /// Part of the bandwidth not used when pacing (Linux: 1 %).
    pub pacing_margin: f64,
    /// How much of the aggregation of acknowledgements is added to cwnd (Linux 5.1 and later: 1;
    /// the draft and earlier kernels: 0).
    pub extra_acked_gain: f64,
    /// Detect token-bucket policers and use their long-term rate (Linux; not in the draft).
    pub policer_detection: bool,
}

impl BbrParams {
    /// The values of the draft, and of Linux where the draft is silent.
    pub const DEFAULT: Self = Self {
        startup_gain: 2.885,
        cwnd_gain: 2.0,
        bandwidth_window: 10,
        min_rtt_window: Duration::from_secs(10),
        probe_rtt_duration: Duration::from_millis(200),
        min_window: 4,
        full_pipe_growth: 1.25,
        full_pipe_rounds: 3,
        pacing_margin: 0.01,
        extra_acked_gain: 1.0,
        policer_detection: true,
    };

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            startup_gain: v.number("startup_gain"),
            cwnd_gain: v.number("cwnd_gain"),
            bandwidth_window: v.number("bandwidth_window") as u64,
            min_rtt_window: v.duration("min_rtt_window"),
            probe_rtt_duration: v.duration("probe_rtt_duration"),
            min_window: v.number("min_window") as u64,
            full_pipe_growth: v.number("full_pipe_growth"),
            full_pipe_rounds: v.number("full_pipe_rounds") as u32,
            pacing_margin: v.number("pacing_margin"),
            extra_acked_gain: v.number("extra_acked_gain"),
            policer_detection: v.bool("policer_detection"),
        })
    }
}

impl Default for BbrParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: BbrParams = BbrParams::DEFAULT;

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    aliases: &["bbr1"],
    summary: "paces at the measured bottleneck bandwidth, keeps two bandwidth-delay products in flight",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., ACM Queue 14(5), 2016",
    params: &[
        Param::number(
            "startup_gain",
            "pacing and cwnd gain of STARTUP; DRAIN paces at its inverse",
            DEFAULT.startup_gain,
            1.1,
            10.0,
        ),
        Param::number(
            "cwnd_gain",
            "cwnd in bandwidth-delay products while probing for bandwidth",
            DEFAULT.cwnd_gain,
            1.0,
            10.0,
        ),
        Param::integer(
            "bandwidth_window",
            "round trips a bandwidth sample is remembered",
            DEFAULT.bandwidth_window as f64,
            1.0,
            1000.0,
        ),
        Param::duration(
            "min_rtt_window",
            "how long a minimum round-trip time is remembered",
            DEFAULT.min_rtt_window,
            Duration::from_millis(100),
            Duration::from_secs(3600),
        ),
        Param::duration(
            "probe_rtt_duration",
            "least time with a minimal window when probing for the round-trip time",
            DEFAULT.probe_rtt_duration,
            Duration::from_millis(1),
            Duration::from_secs(10),
        ),
        Param::integer(
            "min_window",
            "least window, segments",
            DEFAULT.min_window as f64,
            1.0,
            1000.0,
        ),
        Param::number(
            "full_pipe_growth",
            "growth of bandwidth in a round that shows the pipe is not full",
            DEFAULT.full_pipe_growth,
            1.01,
            10.0,
        ),
        Param::integer(
            "full_pipe_rounds",
            "rounds without that growth that end STARTUP",
            DEFAULT.full_pipe_rounds as f64,
            1.0,
            100.0,
        ),
        Param::number(
            "pacing_margin",
            "fraction of the bandwidth left unused when pacing",
            DEFAULT.pacing_margin,
            0.0,
            0.5,
        ),
        Param::number(
            "extra_acked_gain",
            "share of acknowledgement aggregation added to cwnd; 0 as before Linux 5.1",
            DEFAULT.extra_acked_gain,
            0.0,
            10.0,
        ),
        Param::bool(
            "policer_detection",
            "use the long-term rate when a token-bucket policer is detected (Linux)",
            DEFAULT.policer_detection,
        ),
    ],
    build: |params, init| Ok(Box::new(Bbr::new(BbrParams::from_params(params)?, init))),
};

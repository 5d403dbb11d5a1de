use gargalo_units::Duration;

use super::Copa;
use crate::params::{BuildError, Param, Params, Values};
use crate::registry::Algorithm;

/// Parameters of [`Copa`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopaParams {
    /// δ in default mode (§2.2: 0.5).
    pub delta: f64,
    /// Whether competitive mode exists (§2.2).
    pub mode_switching: bool,
    /// Part of the recent oscillation of the round-trip time below which the queue is nearly empty
    /// (§2.2: 10 %).
    pub nearly_empty: f64,
    /// Round trips over which that oscillation is seen (§2.2: 4).
    pub oscillation_rtts: f64,
    /// Round trips without a nearly empty queue after which others are thought to fill it (§2.2: 5).
    pub competitive_rtts: f64,
    /// Competitive mode: what 1/δ grows by in a round trip without loss (§2.2).
    pub increase: f64,
    /// Competitive mode: part of 1/δ kept on loss (§2.2).
    pub beta: f64,
    /// Window of RTTstanding in smoothed round-trip times (τ, §2.1: 1/2).
    pub standing_window: f64,
    /// Window of RTTmin (§2.1: 10 s).
    pub min_rtt_window: Duration,
    /// Round trips in one direction before the velocity doubles (§2.1: 3).
    pub velocity_rtts: u32,
    /// Pacing rate in windows per RTTstanding (§2.1: 2).
    pub pacing_gain: f64,
    /// Least window outside of timeouts, in segments (the authors' implementation: 2).
    pub min_window: u64,
}

impl CopaParams {
    /// The published values.
    pub const DEFAULT: Self = Self {
        delta: 0.5,
        mode_switching: true,
        nearly_empty: 0.1,
        oscillation_rtts: 4.0,
        competitive_rtts: 5.0,
        increase: 1.0,
        beta: 0.5,
        standing_window: 0.5,
        min_rtt_window: Duration::from_secs(10),
        velocity_rtts: 3,
        pacing_gain: 2.0,
        min_window: 2,
    };

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            delta: v.number("delta"),
            mode_switching: v.bool("mode_switching"),
            nearly_empty: v.number("nearly_empty"),
            oscillation_rtts: v.number("oscillation_rtts"),
            competitive_rtts: v.number("competitive_rtts"),
            increase: v.number("increase"),
            beta: v.number("beta"),
            standing_window: v.number("standing_window"),
            min_rtt_window: v.duration("min_rtt_window"),
            velocity_rtts: v.number("velocity_rtts") as u32,
            pacing_gain: v.number("pacing_gain"),
            min_window: v.number("min_window") as u64,
        })
    }
}

impl Default for CopaParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: CopaParams = CopaParams::DEFAULT;

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "copa",
    aliases: &[],
    summary: "steers towards a rate inversely proportional to the queueing delay",
    source: "Arun and Balakrishnan, Copa, NSDI 2018",
    params: &[
        Param::number(
            "delta",
            "weight of delay against throughput; 1/delta segments wait in the queue",
            DEFAULT.delta,
            0.001,
            100.0,
        ),
        Param::bool(
            "mode_switching",
            "adapt delta where other flows fill the buffer (competitive mode)",
            DEFAULT.mode_switching,
        ),
        Param::number(
            "nearly_empty",
            "queueing delay of a nearly empty queue, as part of the oscillation of the round-trip time",
            DEFAULT.nearly_empty,
            0.0,
            1.0,
        ),
        Param::number(
            "oscillation_rtts",
            "round trips over which that oscillation is seen",
            DEFAULT.oscillation_rtts,
            0.5,
            1000.0,
        ),
        Param::number(
            "competitive_rtts",
            "round trips without a nearly empty queue that start competitive mode",
            DEFAULT.competitive_rtts,
            0.5,
            1000.0,
        ),
        Param::number(
            "increase",
            "competitive mode: what 1/delta grows by in a round trip",
            DEFAULT.increase,
            0.0,
            100.0,
        ),
        Param::number(
            "beta",
            "competitive mode: part of 1/delta kept on loss",
            DEFAULT.beta,
            0.01,
            0.99,
        ),
        Param::number(
            "standing_window",
            "window of the standing round-trip time, in smoothed round-trip times",
            DEFAULT.standing_window,
            0.01,
            10.0,
        ),
        Param::duration(
            "min_rtt_window",
            "how long a minimum round-trip time is remembered",
            DEFAULT.min_rtt_window,
            Duration::from_millis(100),
            Duration::from_secs(3600),
        ),
        Param::integer(
            "velocity_rtts",
            "round trips in one direction before the velocity doubles",
            DEFAULT.velocity_rtts as f64,
            0.0,
            1000.0,
        ),
        Param::number(
            "pacing_gain",
            "pacing rate, in windows per standing round-trip time",
            DEFAULT.pacing_gain,
            1.0,
            100.0,
        ),
        Param::integer(
            "min_window",
            "least window outside of timeouts, segments",
            DEFAULT.min_window as f64,
            1.0,
            1000.0,
        ),
    ],
    build: |params, init| Ok(Box::new(Copa::new(CopaParams::from_params(params)?, &init))),
};

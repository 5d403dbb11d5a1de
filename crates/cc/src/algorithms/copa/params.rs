use gargalo_settings::settings;
use gargalo_units::Duration;

use super::Copa;
use crate::params::Declared;
use crate::registry::Algorithm;

settings! {
    /// Parameters of [`Copa`]; the defaults are the published values.
    pub struct CopaParams: Copy as "Copa", const {
        /// Weight δ of delay against throughput in default mode: 1/δ segments wait in the queue
        /// (§2.2: 0.5).
        delta: f64 = 0.5, in 0.001..=100.0;
        /// Adapt δ where other flows fill the buffer: competitive mode (§2.2).
        mode_switching: bool = true;
        /// Queueing delay of a nearly empty queue, as a fraction of the recent oscillation of the
        /// round-trip time (§2.2: 0.1).
        nearly_empty: f64 = 0.1, in 0.0..=1.0;
        /// Round trips over which that oscillation is measured (§2.2: 4).
        oscillation_rtts: f64 = 4.0, in 0.5..=1000.0;
        /// Round trips without a nearly empty queue that start competitive mode (§2.2: 5).
        competitive_rtts: f64 = 5.0, in 0.5..=1000.0;
        /// Competitive mode: growth of 1/δ in a round trip without loss (§2.2).
        increase: f64 = 1.0, in 0.0..=100.0;
        /// Competitive mode: part of 1/δ kept after a loss (§2.2).
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Window of the standing round-trip time, in smoothed round-trip times (τ, §2.1: 1/2).
        standing_window: f64 = 0.5, in 0.01..=10.0;
        /// Window of the minimum round-trip time (§2.1: 10 s).
        min_rtt_window: Duration = Duration::from_secs(10),
            in Duration::from_millis(100)..=Duration::from_secs(3600);
        /// Round trips in one direction before the velocity doubles (§2.1: 3).
        velocity_rtts: u32 = 3, in 0..=1000;
        /// Pacing rate in windows per standing round-trip time (§2.1: 2).
        pacing_gain: f64 = 2.0, in 1.0..=100.0;
        /// Least window except after timeouts, segments (the authors' implementation: 2).
        min_window: u64 = 2, in 1..=1000;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "copa",
    aliases: &[],
    summary: "controls the rate to be inversely proportional to the queueing delay",
    source: "Arun and Balakrishnan, Copa, NSDI 2018",
    params: CopaParams::params,
    build: |params, init| {
        Ok(Box::new(Copa::new(
            CopaParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

use gargalo_settings::settings;
use gargalo_units::Duration;

use super::Bbr;
use crate::params::Declared;
use crate::registry::Algorithm;

settings! {
    /// Parameters of [`Bbr`]; the defaults are those of the draft, and of Linux where the draft is
    /// silent.
    pub struct BbrParams: Copy as "Bbr", const {
        /// Pacing gain and cwnd gain of STARTUP, 2/ln 2 (BBRHighGain); DRAIN paces at the inverse.
        startup_gain: f64 = 2.885, in 1.1..=10.0;
        /// cwnd in bandwidth-delay products in PROBE_BW.
        cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// Window of the bandwidth filter, round trips (BtlBwFilterLen).
        bandwidth_window: u64 = 10, in 1..=1000;
        /// Window of the minimum round-trip time (RTpropFilterLen).
        min_rtt_window: Duration = Duration::from_secs(10),
            in Duration::from_millis(100)..=Duration::from_secs(3600);
        /// Shortest time with the least window in PROBE_RTT (ProbeRTTDuration).
        probe_rtt_duration: Duration = Duration::from_millis(200),
            in Duration::from_millis(1)..=Duration::from_secs(10);
        /// Least window, segments (BBRMinPipeCwnd).
        min_window: u64 = 4, in 1..=1000;
        /// Growth of the bandwidth in a round that shows that the pipe is not full, as a factor.
        full_pipe_growth: f64 = 1.25, in 1.01..=10.0;
        /// Rounds without that growth that end STARTUP.
        full_pipe_rounds: u32 = 3, in 1..=100;
        /// Fraction of the bandwidth left unused when pacing (Linux: 0.01).
        pacing_margin: f64 = 0.01, in 0.0..=0.5;
        /// Share of the aggregation of acknowledgements added to cwnd (Linux 5.1 and later: 1;
        /// before, and in the draft: 0).
        extra_acked_gain: f64 = 1.0, in 0.0..=10.0;
        /// Detect token-bucket policers and use their long-term rate (Linux; not in the draft).
        policer_detection: bool = true;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    aliases: &["bbr1"],
    summary: "paces at the measured bottleneck bandwidth, keeps two bandwidth-delay products in flight",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., ACM Queue 14(5), 2016",
    params: BbrParams::params,
    build: |params, init| {
        Ok(Box::new(Bbr::new(
            BbrParams::from_params(ALGORITHM.name, params)?,
            init,
        )))
    },
};

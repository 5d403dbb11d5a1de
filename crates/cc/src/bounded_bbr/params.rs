//! The parameters that versions 2 and 3 share: more than 25, one field per parameter, as scenarios have them in one
//! flat table.

use gargalo_settings::settings;
use gargalo_units::Duration;

use super::ecn::EcnResponse;

settings! {
    /// Parameters of [`BoundedBbr`](super::BoundedBbr), with the names of draft-ietf-ccwg-bbr in parentheses. The
    /// defaults are those of that draft; those of the proportional ECN response are Linux's. A version replaces the
    /// defaults that differ in its draft.
    pub struct BoundedParams: Copy as "Bounded", const {
        /// Pacing gain of STARTUP, 4 ln 2 (BBR.StartupPacingGain).
        startup_pacing_gain: f64 = 2.77, in 1.1..=10.0;
        /// Pacing gain of DRAIN (BBR.DrainPacingGain).
        drain_pacing_gain: f64 = 0.5, in 0.01..=10.0;
        /// Pacing gain while probing for bandwidth (PROBE_BW_UP).
        up_pacing_gain: f64 = 1.25, in 1.0..=10.0;
        /// Pacing gain after a probe for bandwidth (PROBE_BW_DOWN).
        down_pacing_gain: f64 = 0.9, in 0.01..=10.0;
        /// cwnd in bandwidth-delay products (BBR.DefaultCwndGain).
        cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// cwnd in bandwidth-delay products while probing for the round-trip time
        /// (BBR.ProbeRTTCwndGain).
        probe_rtt_cwnd_gain: f64 = 0.5, in 0.0..=10.0;
        /// Fraction of the bandwidth left unused when pacing (BBR.PacingMarginPercent).
        pacing_margin: f64 = 0.01, in 0.0..=0.5;
        /// Loss rate of a round trip that is too high when probing (BBR.LossThresh).
        loss_threshold: f64 = 0.02, in 0.0..=0.9;
        /// Least part of the short-term bounds kept in a round trip with loss (BBR.Beta).
        beta: f64 = 0.7, in 0.0..=1.0;
        /// Part of the long-term bound on data in flight that is left to other flows
        /// (BBR.Headroom).
        headroom: f64 = 0.15, in 0.0..=0.9;
        /// Least window, segments (BBR.MinPipeCwnd).
        min_window: u64 = 4, in 1..=1000;
        /// Loss events in a round trip that end STARTUP if the loss rate is too high as well
        /// (BBRStartupFullLossCnt).
        full_loss_count: u32 = 6, in 1..=1000;
        /// Growth of the delivery rate in a round that shows that the pipe is not full, as a
        /// factor.
        full_pipe_growth: f64 = 1.25, in 1.01..=10.0;
        /// Rounds without that growth after which the pipe counts as full.
        full_pipe_rounds: u32 = 3, in 1..=1000;
        /// Shortest time between two probes for bandwidth, unless `probe_rounds` ends it.
        probe_wait: Duration = Duration::from_secs(2), in Duration::ZERO..=HOUR;
        /// Random time added to `probe_wait`, uniform from zero to this.
        probe_wait_random: Duration = Duration::from_secs(1), in Duration::ZERO..=HOUR;
        /// Most round trips between two probes for bandwidth, to coexist with Reno.
        probe_rounds: u64 = 63, in 1..=1_000_000_000;
        /// After a probe with too much loss, the next one goes up to the known bound only.
        precautionary_probing: bool = true;
        /// Window of the minimum round-trip time (BBR.MinRTTFilterLen).
        min_rtt_window: Duration = Duration::from_secs(10), in Duration::from_millis(100)..=HOUR;
        /// Time between two probes for the round-trip time (BBR.ProbeRTTInterval).
        probe_rtt_interval: Duration = Duration::from_secs(5), in Duration::from_millis(100)..=HOUR;
        /// Shortest time with a small window when probing for the round-trip time
        /// (BBR.ProbeRTTDuration).
        probe_rtt_duration: Duration = Duration::from_millis(200),
            in Duration::from_millis(1)..=Duration::from_secs(10);
        /// Share of the aggregation of acknowledgements added to cwnd.
        extra_acked_gain: f64 = 1.0, in 0.0..=10.0;
        /// Round trips for which that aggregation is remembered after STARTUP
        /// (BBR.ExtraAckedFilterLen).
        extra_acked_window: u64 = 10, in 1..=1000;
        /// Response to ECN marks: as to a loss (classic), by the share of marked bytes
        /// (proportional, as in Linux), or none (off).
        ecn_response: EcnResponse = EcnResponse::Classic;
        /// Proportional response: weight of the newest round in the share of marked bytes.
        ecn_alpha_gain: f64 = 1.0 / 16.0, in 1e-4..=1.0;
        /// Proportional response: the window falls by this factor times the share of marked bytes.
        ecn_factor: f64 = 1.0 / 3.0, in 0.0..=1.0;
        /// Proportional response: share of marked bytes that is too high when probing.
        ecn_threshold: f64 = 0.5, in 0.0..=1.0;
    }
}

const HOUR: Duration = Duration::from_secs(3600);

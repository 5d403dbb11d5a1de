//! The settings of a sender.

use gargalo_units::Duration;

use crate::config::{Config, FirstWindow, Pacing, Profile, Recovery, RtoRestart};

/// The part of [`Config`] that the sender needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) recovery: Recovery,
    pub(super) pacing: Pacing,
    /// How many segments leave at once before the first wait: Linux paces none of the first ten, with fq and without.
    pub(super) unpaced: u64,
    pub(super) max_dup_thresh: u32,
    pub(super) prr: bool,
    pub(super) probe: bool,
    pub(super) probe_slack_fixed: bool,
    /// The least time to a tail loss probe.
    pub(super) least_probe: Duration,
    pub(super) frto: bool,
    pub(super) undo: bool,
    pub(super) limited_transmit: bool,
    pub(super) restart_after_idle: bool,
    pub(super) notices: bool,
    pub(super) first_window: FirstWindow,
    pub(super) peer_ack_delay: Duration,
    pub(super) retries: u32,
    /// How long data may stay unacknowledged (RFC 5482), instead of `retries`.
    pub(super) user_timeout: Option<Duration>,
    pub(super) max_rto: Duration,
    pub(super) rto_restart: RtoRestart,
    /// The acknowledgement that ends recovery grows the window too, as in Linux (RFC 5681 §3.2 (6) sets it to ssthresh).
    pub(super) grows_at_end: bool,
    /// Amounts are whole segments, as Linux counts: PRR rounds up to them and reduces the window instead of what is in
    /// flight, and without SACK a segment that a duplicate acknowledgement stood for is not delivered twice.
    pub(super) counts_segments: bool,
    /// A FIN belongs to the last segment, as in Linux, also where the window ends between them: it then goes past the
    /// window behind other segments, and a last segment alone waits for the probe, which is without FIN.
    pub(super) fin_in_last: bool,
    /// Rescue retransmissions: with RACK the time shows such losses, and neither ns-2.29 nor ns-3.27 has them.
    pub(super) rescue: bool,
}

impl Settings {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            recovery: if config.sack {
                config.recovery
            } else {
                config.recovery.without_sack()
            },
            pacing: config.pacing,
            unpaced: if config.profile == Profile::Linux6 {
                10
            } else {
                0
            },
            max_dup_thresh: config.max_dup_thresh,
            prr: config.prr,
            probe: config.tail_loss_probe && config.sack && config.recovery.probes(),
            probe_slack_fixed: config.probe_slack_fixed,
            // Linux before RACK.
            least_probe: match config.recovery {
                Recovery::Fack => Duration::from_millis(10),
                _ => Duration::ZERO,
            },
            frto: config.frto,
            undo: config.undo,
            limited_transmit: config.limited_transmit,
            restart_after_idle: config.slow_start_after_idle,
            notices: config.notices,
            first_window: FirstWindow::of(config),
            // The peer's acknowledgement delay is unknown: RFC 8985 §7.2 uses 200 ms; our own delay is a lower
            // bound.
            peer_ack_delay: config.delayed_ack.timeout.max(Duration::from_millis(200)),
            retries: config.data_retries,
            user_timeout: config.user_timeout,
            max_rto: config.max_rto,
            rto_restart: config.rto_restart,
            grows_at_end: config.profile == Profile::Linux6,
            counts_segments: config.profile == Profile::Linux6,
            fin_in_last: config.profile == Profile::Linux6,
            rescue: config.recovery == Recovery::Sack
                && !matches!(config.profile, Profile::Ns2 | Profile::Ns3),
        }
    }
}

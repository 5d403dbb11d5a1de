//! BBR, version 2: draft-cardwell-iccrg-bbr-congestion-control-02 (March 2022).
//!
//! Its structure, and where that differs from the drafts' texts, is in [`bounded_bbr`](crate::bounded_bbr). What
//! follows, version 3 does otherwise:
//! - STARTUP ends when the filtered bandwidth has stopped growing (§4.3.1.2), or by losses in three places and more
//!   than 2 % in a round (§4.3.1.3), which set no bound;
//! - DRAIN ends with the queue only (§4.3.2), and so does PROBE_BW_UP: when there is one of a quarter of a
//!   bandwidth-delay product (§4.3.3.4);
//! - the same cwnd in all of PROBE_BW (§4.6.1), packet conservation in the first round of a recovery (§4.6.4.4);
//! - a sample with too high a loss rate ends a probe, as a lost segment does (§4.5.6.2);
//! - STARTUP remembers aggregation as long as later (§4.5.5), and a quantum is one segment at low rates (§4.6.3);
//! - a spurious recovery restores cwnd and the bounds only.
//!
//! # Differences from the draft's text
//! They are those of `tcp_bbr2.c`, the implementation that the draft names (google/bbr, v2alpha):
//! - §4.5.6: nothing in the draft sets `bw_hi`, and its pseudocode raises no bound until it is set. There is none here.
//! - §4.3.3.6: the pseudocode ends the samples of a probe in every round after PROBE_BW_UP; here in the first, as
//!   §4.5.2.5 says in words.
//! - §4.5.6.3: a round trip for the short-term bounds begins with its first loss.
//! - §4.6.4.4 restores cwnd after a spurious recovery; `tcp_bbr2.c` takes back the bounds as well.
//! - ECN is not part of the draft.

#[cfg(test)]
mod tests;

use gargalo_settings::settings;
use gargalo_units::{Bytes, Rate};

use crate::bounded_bbr::{BoundedBbr, BoundedParams, State, Version};
use crate::event::Acked;
use crate::params::Declared;
use crate::path_model::SMALL_RATE;
use crate::registry::{Algorithm, Init};

settings! {
    /// The parameters that only version 2 has, with the draft's names in parentheses.
    pub struct Version2: Copy as "Version2", const {
        /// cwnd in bandwidth-delay products in STARTUP and DRAIN (BBRStartupCwndGain).
        startup_cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// A probe for bandwidth ends with more than so many bandwidth-delay products in flight, after a minimum
        /// round-trip time.
        up_inflight_gain: f64 = 1.25, in 1.0..=10.0;
        /// Packet conservation in the first round trip of a fast recovery (BBR.packet_conservation); Linux's v2alpha
        /// has none.
        packet_conservation: bool = true;
    }
}

settings! {
    /// Parameters of [`Bbr2`].
    pub struct Bbr2Params: Copy as "Bbr2", const {}
    with {
        /// Those that version 3 has as well.
        shared: BoundedParams = BoundedParams {
            full_loss_count: 3, // §4.3.1.3
            precautionary_probing: false,
            ..BoundedParams::DEFAULT
        };
        /// Those that it has not.
        own: Version2 = Version2::DEFAULT;
    }
}

/// BBR version 2.
pub type Bbr2 = BoundedBbr<Version2>;

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr2",
    aliases: &["bbrv2"],
    summary: "the first BBR with bounds from loss: probes until a queue or loss shows",
    source: "draft-cardwell-iccrg-bbr-congestion-control-02 (March 2022)",
    params: Bbr2Params::params,
    build: |params, init| {
        let params = Bbr2Params::from_params(ALGORITHM.name, params)?;
        Ok(Box::new(build(params, init)))
    },
};

fn build(params: Bbr2Params, init: Init) -> Bbr2 {
    Bbr2::new(params.shared, params.own, init)
}

impl Version for Version2 {
    const SAMPLES_END_PROBES: bool = true;
    const RESUMES_AFTER_UNDO: bool = false;

    /// §4.6.4.4, unless the parameter `packet_conservation` is off.
    fn conserves_packets(&self) -> bool {
        self.packet_conservation
    }

    /// §4.3.1.1, §4.3.2, §4.6.1.
    fn cwnd_gain(&self, shared: &BoundedParams, state: State) -> f64 {
        match state {
            State::Startup | State::Drain => self.startup_cwnd_gain,
            _ => shared.cwnd_gain,
        }
    }

    /// No round ends DRAIN (§4.3.2).
    fn drain_rounds(&self) -> u64 {
        u64::MAX
    }

    /// §4.5.5: as long as after STARTUP.
    fn startup_aggregation(&self, shared: &BoundedParams) -> u64 {
        shared.extra_acked_window
    }

    /// §4.6.3: one segment below 1.2 Mbit/s, two from there on.
    fn least_quantum(&self, pacing_rate: Rate) -> u64 {
        if pacing_rate < SMALL_RATE { 1 } else { 2 }
    }

    /// max_bw, until the pipe is full (§4.3.1.2).
    fn plateau_sample(bbr: &Bbr2, _rate: Rate) -> Option<Rate> {
        (!bbr.full_bw.is_reached()).then(|| bbr.max_bw.get())
    }

    /// §4.3.1.3: losses that end STARTUP set no bound.
    fn bound_after_startup(_bbr: &Bbr2) -> Bytes {
        Bytes::MAX
    }

    /// §4.3.3.4: for at least a minimum round-trip time, and until there is a queue.
    fn has_probed(bbr: &mut Bbr2, ack: &Acked, _rate: Rate) -> bool {
        let min_rtt = bbr.min_rtt.get().unwrap_or_default();
        let target = bbr.inflight(bbr.max_bw.get(), bbr.version.up_inflight_gain);
        bbr.probe.has_lasted(ack.now, min_rtt) && ack.in_flight_before > target
    }
}

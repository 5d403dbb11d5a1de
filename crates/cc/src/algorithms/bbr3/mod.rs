//! BBR, version 3: draft-ietf-ccwg-bbr, the working group's text of August 2026.
//!
//! Its structure, and where that differs from the draft's text, is in [`bounded_bbr`](crate::bounded_bbr). What
//! follows, version 2 does otherwise:
//! - STARTUP and PROBE_BW_UP end when the delivery rate has stopped growing (§5.3.1.2, §5.3.3.7);
//! - losses that end STARTUP set the long-term bound (§5.3.1.3);
//! - DRAIN ends after some rounds (§5.3.2);
//! - cwnd is larger in PROBE_BW_UP (§5.6.1), and there is no packet conservation (§5.6.4.4);
//! - STARTUP remembers aggregation for one round only (§5.5.9), and a quantum is at least two segments (§5.6.3);
//! - the state that a spurious recovery has ended goes on (§5.5.11).

#[cfg(test)]
mod tests;

use gargalo_settings::settings;
use gargalo_units::{Bytes, Rate};

use crate::bounded_bbr::{BoundedBbr, BoundedParams, State, Version};
use crate::event::Acked;
use crate::params::Declared;
use crate::registry::{Algorithm, Init};

settings! {
    /// The parameters that only version 3 has, with the draft's names in parentheses.
    pub struct Version3: Copy as "Version3", const {
        /// cwnd in bandwidth-delay products while probing for bandwidth (PROBE_BW_UP).
        up_cwnd_gain: f64 = 2.25, in 1.0..=10.0;
        /// Rounds after which DRAIN ends regardless of the data in flight.
        drain_rounds: u64 = 3, in 1..=1000;
    }
}

settings! {
    /// Parameters of [`Bbr3`].
    pub struct Bbr3Params: Copy as "Bbr3", const {}
    with {
        /// Those that version 2 has as well.
        shared: BoundedParams = BoundedParams::DEFAULT;
        /// Those that it has not.
        own: Version3 = Version3::DEFAULT;
    }
}

/// BBR version 3.
pub type Bbr3 = BoundedBbr<Version3>;

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bbr3",
    aliases: &["bbrv3"],
    summary: "BBR that also bounds the data in flight by loss and leaves headroom to others",
    source: "draft-ietf-ccwg-bbr (August 2026)",
    params: Bbr3Params::params,
    build: |params, init| {
        let params = Bbr3Params::from_params(ALGORITHM.name, params)?;
        Ok(Box::new(build(params, init)))
    },
};

fn build(params: Bbr3Params, init: Init) -> Bbr3 {
    Bbr3::new(params.shared, params.own, init)
}

impl Version for Version3 {
    const SAMPLES_END_PROBES: bool = false;
    const RESUMES_AFTER_UNDO: bool = true;

    fn conserves_packets(&self) -> bool {
        false
    }

    fn cwnd_gain(&self, shared: &BoundedParams, state: State) -> f64 {
        match state {
            State::Up => self.up_cwnd_gain,
            _ => shared.cwnd_gain,
        }
    }

    fn drain_rounds(&self) -> u64 {
        self.drain_rounds
    }

    fn startup_aggregation(&self, _shared: &BoundedParams) -> u64 {
        1
    }

    fn least_quantum(&self, _pacing_rate: Rate) -> u64 {
        2
    }

    fn plateau_sample(_bbr: &Bbr3, rate: Rate) -> Option<Rate> {
        Some(rate)
    }

    fn bound_after_startup(bbr: &Bbr3) -> Bytes {
        bbr.bdp(bbr.bw, 1.0).max(bbr.latest.inflight)
    }

    fn has_probed(bbr: &mut Bbr3, _ack: &Acked, rate: Rate) -> bool {
        if bbr.uses_long_term_bound() {
            bbr.full_bw.reset(rate); // the limit may be the bound and not the path
            return false;
        }
        bbr.full_bw.is_now()
    }
}

use gargalo_units::{Bytes, Rate};

use super::{BoundedBbr, BoundedParams, State};
use crate::event::Acked;

/// What a version of BBR does in its own way. It is made of the parameters that only this version has.
pub trait Version: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// An acknowledgement whose sample has too high a loss rate ends a probe, as a lost segment does.
    const SAMPLES_END_PROBES: bool;
    /// After a spurious recovery, STARTUP or a probe that it has ended goes on.
    const RESUMES_AFTER_UNDO: bool;

    /// Whether cwnd follows what is delivered in the first round trip of a fast recovery, and what is lost leaves it
    /// later too.
    fn conserves_packets(&self) -> bool;

    /// cwnd in bandwidth-delay products, in any state but PROBE_RTT.
    fn cwnd_gain(&self, shared: &BoundedParams, state: State) -> f64;

    /// Rounds after which DRAIN ends regardless of the data in flight.
    fn drain_rounds(&self) -> u64;

    /// Round trips for which the aggregation of acknowledgements is remembered in STARTUP.
    fn startup_aggregation(&self, shared: &BoundedParams) -> u64;

    /// The least quantum at this pacing rate, segments.
    fn least_quantum(&self, pacing_rate: Rate) -> u64;

    /// The bandwidth by which a round trip is judged to have grown or not, given the delivery rate of its last sample;
    /// `None`: it is not judged.
    fn plateau_sample(bbr: &BoundedBbr<Self>, rate: Rate) -> Option<Rate>;

    /// The long-term bound when losses or marks have ended STARTUP.
    fn bound_after_startup(bbr: &BoundedBbr<Self>) -> Bytes;

    /// Whether PROBE_BW_UP has put enough in flight for long enough; `rate` is the latest delivery rate.
    fn has_probed(bbr: &mut BoundedBbr<Self>, ack: &Acked, rate: Rate) -> bool;
}

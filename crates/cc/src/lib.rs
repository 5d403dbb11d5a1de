//! Congestion control for TCP, MPTCP and QUIC: one trait, one file per algorithm.
//!
//! A [`Controller`] gets the events of a path (sent, acknowledged, lost, congested) and owns three numbers:
//! congestion window, slow-start threshold and pacing rate. The transport owns everything else: round-trip times,
//! bytes in flight, loss detection, recovery epochs, proportional rate reduction and the delivery-rate sampler
//! ([`rate`]). Controllers have no access to packets, clocks or sockets.
#![forbid(unsafe_code)]

pub mod algorithms;
pub mod bounded_bbr;
pub mod chosen;
mod coupled;
mod event;
mod factory;
pub mod filter;
pub mod pacer;
mod packet_pair;
pub mod params;
mod path;
mod path_model;
pub mod rate;
pub mod registry;
mod round_rtt;
pub mod slow_start;
#[cfg(test)]
mod testing;
pub mod window;
pub mod window_based;

pub use algorithms::ALGORITHMS;
pub use event::{
    Acked, Cause, Congestion, Established, Idle, Lost, RateSample, SendState, Sent, Spurious,
};
pub use factory::{ControllerFactory, Registered};
/// The declaration of parameters, for plug-ins, which need no other crate for it.
pub use gargalo_settings::{names, settings};
pub use pacer::Pacer;
pub use params::{BuildError, Param, ParamKind, ParamValue, Params};
pub use path::{LossIntervals, Path, Sibling};
pub use rate::RateSampler;
pub use registry::{Algorithm, Init, build, find};
pub use window::{Window, WindowParams};
pub use window_based::{Policy, WindowBased};

use std::fmt::Debug;

use gargalo_units::{Bytes, Rate};

/// A congestion control, one instance per path (a TCP connection, an MPTCP subflow, a QUIC path).
///
/// # Contract
/// - Calls come in the order of time. Per incoming acknowledgement the transport first updates its
///   scoreboard, then reports [`Lost`] for each newly lost segment, then [`Congestion`] if a new
///   epoch begins, then [`Acked`].
/// - [`Controller::on_congestion`] comes at most once per recovery epoch for losses and once per
///   round trip for ECN marks; every retransmission timeout is reported.
/// - While `Acked::in_recovery` is set the transport paces out the reduction itself (PRR, RFC 9937)
///   towards [`Controller::cwnd`], unless [`Controller::governs_recovery`]; loss-based controllers do
///   not grow then.
/// - `cwnd()` never returns less than one segment.
pub trait Controller: Debug + Send + Sync {
    /// A packet was sent; [`Sent::idle`] reports an idle period before it.
    fn on_send(&mut self, _sent: &Sent, _path: &Path<'_>) {}
    /// Whether [`Controller::on_send`] is of use for every packet; `false`: only for those that end an idle period, and
    /// the transport may leave out the others. Never changes.
    fn watches_sends(&self) -> bool {
        true
    }
    /// Data was acknowledged (cumulatively or selectively).
    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>);
    /// One segment was marked lost.
    fn on_loss(&mut self, _lost: &Lost, _path: &Path<'_>) {}
    /// A congestion event: the window should shrink.
    fn on_congestion(&mut self, event: &Congestion, path: &Path<'_>);
    /// The latest congestion event turned out to be spurious: restore what it changed.
    fn on_spurious(&mut self, _event: &Spurious, _path: &Path<'_>) {}
    /// Fast recovery or loss recovery after a timeout has ended.
    fn on_recovered(&mut self, _now: gargalo_units::Instant, _path: &Path<'_>) {}
    /// An upper layer takes half of the window without a congestion event: a subflow of Multipath TCP holds up others.
    /// Algorithms that are not window-based ignore it.
    fn halve(&mut self) {}
    /// The handshake of TCP is complete: `path` has the agreed segment size and, unless a repeated SYN made it
    /// ambiguous, the round trip of the handshake. Called once, before the first data. Not called for QUIC, which
    /// reports the acknowledgements of its handshake as any others, and not before the first data of TCP Fast Open,
    /// which is sent before there is a round trip.
    fn on_established(&mut self, _established: &Established, path: &Path<'_>) {
        self.on_mss(path);
    }
    /// The maximum segment size changed (`path.mss` is the new one).
    fn on_mss(&mut self, _path: &Path<'_>) {}
    /// The congestion window, at least one segment.
    fn cwnd(&self) -> Bytes;
    /// The slow-start threshold; `None` when there is none or it is still infinite.
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    /// Whether the window about doubles every round trip: slow start, or what a model-based algorithm has in
    /// its place (BBR's Startup). A missing [`Controller::ssthresh`] alone does not say so.
    fn in_slow_start(&self) -> bool;
    /// The pacing rate of the algorithm; `None` lets the transport choose (a factor of
    /// cwnd/srtt, or no pacing, by its configuration).
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Maximum size of a burst when pacing; `None` lets the transport choose.
    fn send_quantum(&self) -> Option<Bytes> {
        None
    }
    /// `true`: the transport uses `cwnd()` unchanged during recovery (BBR); `false`: it runs PRR.
    fn governs_recovery(&self) -> bool {
        false
    }
    /// Whether the algorithm is defined by its pacing: a transport that paces no other control paces this one. Never
    /// changes.
    fn needs_pacing(&self) -> bool {
        false
    }
    /// One word for plots: `slow-start`, `congestion-avoidance`, `startup`, `probe-bw`, …
    fn phase(&self) -> &'static str;
    /// Internal quantities worth plotting, as (name with unit suffix, value).
    fn gauges(&self, _out: &mut Vec<(&'static str, f64)>) {}
    /// A copy with the same state (QUIC migration, forks in tests).
    fn clone_box(&self) -> Box<dyn Controller>;
}

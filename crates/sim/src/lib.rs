//! The virtual-time world: hosts, links and flows moved by a deterministic event queue.
//!
//! [`World`] is built from a [`Topology`](gargalo_flow::Topology) and [`FlowSpec`](gargalo_flow::FlowSpec)s and runs
//! to its end. Protocol code ([`gargalo_tcp`]) and links ([`gargalo_link`]) are sans-IO values to which the engine
//! passes virtual time. The same specification and seed give the same results, byte for byte.
#![forbid(unsafe_code)]

mod address;
mod capture;
mod drive;
mod drive_mptcp;
mod drive_quic;
pub mod event;
mod flow;
mod generator;
mod line;
mod mptcp;
mod net;
mod packet;
mod paths;
mod pool;
mod quic;
mod recorder;
mod standstill;
mod streams;
mod world;

pub use packet::{IPV4_HEADER, UDP_HEADER};
pub use recorder::Recording;
pub use world::{Settings, World};

/// Why a world cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The hosts of a flow have no route between them.
    #[error(transparent)]
    Unreachable(#[from] gargalo_flow::Unreachable),
    /// A link's configuration is impossible.
    #[error("link {link}: {reason}")]
    Link {
        /// Name of the link.
        link: String,
        /// What is wrong.
        reason: String,
    },
    /// A capture names no link.
    #[error("no link is called {name}; links: {known}")]
    UnknownLink {
        /// The name that was given.
        name: String,
        /// Names of all links, separated by commas.
        known: String,
    },
    /// A QUIC endpoint could not be made.
    #[error("QUIC of flow {flow}: {reason}")]
    Quic {
        /// The flow's label.
        flow: String,
        /// What is wrong.
        reason: String,
    },
    /// A qlog trace could not be opened.
    #[error("qlog {path}: {reason}")]
    Qlog {
        /// Path of the qlog file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// A Multipath TCP connection could not be made.
    #[error("MPTCP of flow {flow}: {reason}")]
    Mptcp {
        /// The flow's label.
        flow: String,
        /// What is wrong.
        reason: String,
    },
    /// A congestion control could not be built.
    #[error("congestion control of flow {flow}: {reason}")]
    Controller {
        /// The flow's label.
        flow: String,
        /// What is wrong.
        reason: String,
    },
    /// Too many flows exist at once: they start faster than they end.
    #[error(
        "more than 300000 flows at once at {at_s:.1} s, the last of {flow}: they come faster than the network \
         carries them; lower the load or the arrival rate"
    )]
    TooManyFlows {
        /// Label of the flow that exceeded the limit.
        flow: String,
        /// Virtual time in seconds.
        at_s: f64,
    },
    /// An unlimited flow crosses only links without rate and delay, so that virtual time does not advance.
    #[error(
        "virtual time stands still at {at_s} s: flow {flow} (number {id}) sends without end, and nothing on its way \
         over {links} takes time; give one of these links a delay or a rate, or the flow an end \
         (`workload.bulk.bytes`)"
    )]
    Standstill {
        /// Label of the flow.
        flow: String,
        /// Identifier of the flow.
        id: u64,
        /// The links of its route.
        links: String,
        /// Virtual time in seconds.
        at_s: f64,
    },
    /// Only the window limits the rate of an unlimited flow: its links have none.
    #[error(
        "flow {flow} (number {id}) sends without end over links without a rate ({links}): at {at_s} s such flows had \
         received {bytes} within {within_s} s, more than 10 Gbit/s, and every packet takes time to simulate; give \
         one of these links a rate, or the flow an end (`workload.bulk.bytes`) or a smaller window \
         (`receive_buffer`, over QUIC `connection_window`)"
    )]
    NoRate {
        /// Label of the fastest flow.
        flow: String,
        /// Identifier of the flow.
        id: u64,
        /// The links of its route.
        links: String,
        /// Bytes that unlimited flows over links without a rate have received.
        bytes: gargalo_units::Bytes,
        /// Length of the time in which they were received, in seconds.
        within_s: f64,
        /// Virtual time in seconds.
        at_s: f64,
    },
    /// An event came before the one before it: a fault of the engine.
    #[error(
        "virtual time would run backwards, from {now_s} s to {event_s} s (event target {target}): this is a fault of \
         the simulator; please report it with the scenario"
    )]
    TimeReversed {
        /// Virtual time in seconds.
        now_s: f64,
        /// When the event was due, in seconds.
        event_s: f64,
        /// The target of the event.
        target: u32,
    },
    /// A source would make more transfers than a run could carry.
    #[error(
        "{source_label} would make about {transfers:.0} transfers, more than a billion: lower its load, shorten the \
         run, or make its objects larger"
    )]
    TooManyTransfers {
        /// Label of the source.
        source_label: String,
        /// Number of transfers, estimated.
        transfers: f64,
    },
    /// A source has no group.
    #[error("the group of source {0} was not added")]
    NoGroup(String),
    /// A capture file could not be made.
    #[error("capture {path}: {reason}")]
    Capture {
        /// Path of the capture file.
        path: String,
        /// What the system says.
        reason: String,
    },
}

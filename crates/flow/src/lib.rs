//! Flows between the hosts of a network: their configuration, the applications at their ends, and their results. Both
//! worlds (a simulator in virtual time, a laboratory in real time) are built on this crate: each is a clock, a network
//! and an event loop around the same flows.
#![forbid(unsafe_code)]

mod capture;
pub mod content;
mod conversation;
mod gauges;
mod group;
mod misbehaviour;
mod outcome;
mod quic;
pub mod quic_paths;
mod result;
pub mod rng;
mod routing;
mod samples;
mod slab;
mod source;
mod spec;
mod strip;
#[cfg(test)]
mod testing;
mod topology;
mod window;

pub use capture::{CaptureEnds, CaptureInterfaces, CaptureSpec};
pub use conversation::{Conversation, Ending, Outgoing};
pub use gargalo_cc::{ControllerFactory, Registered};
pub use gauges::{causes, gauges, gauges_of};
pub use group::{Group, GroupId, Inside, Players};
pub use misbehaviour::{MisbehavingReceiver, Misbehaviour};
pub use outcome::{Outcome, Phase, Progress, Watch};
pub use quic::{QuicEnd, QuicEvent};
pub use quic_paths::QuicPaths;
pub use result::{FlowResult, MptcpResult, MultipathResult, SubflowResult, describe_subflow};
pub use routing::{DirectionId, NodeId, Routing};
pub use samples::{
    ArrivedDatagram, FlowSample, Gauge, LinkMarks, LinkResult, LinkSample, LinkSampler,
    ProtocolEvent, Reached, Samples, SubflowSample,
};
pub use slab::Slab;
pub use source::{Arrival, Arrivals, GeneratorSpec, NewFlow, Next, PageId, Source, wire_model};
pub use spec::{AddressChange, FlowSpec, MptcpSpec, QuicSpec, TcpSpec, TransportSpec};
pub use strip::Stripper;
pub use topology::{LinkSpec, Node, Topology, Unreachable};
pub use window::{Counts, Edge, Marks, Window};

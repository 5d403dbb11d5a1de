//! The applications of flows, on kernel sockets and on our own stack alike.
//!
//! A flow's two ends share the state machine of its workload ([`gargalo_workload::App`]), the same
//! that runs in the simulator; what crosses the network is real bytes.

mod flow;
mod quic;
mod recorder;
mod stream;

pub use flow::Flow;
pub(crate) use flow::reason;
pub use quic::{Quic, QuicRun};
pub use recorder::Recorder;
pub use stream::{Arrival, Datagrams, Interest, Received, Stream};

/// Port on which the flow of this identifier is served: beyond those that analysers take for something.
pub fn server_port(flow: u64) -> u16 {
    41_000 + (flow % 20_000) as u16
}

/// Port from which the flow of this identifier is opened.
pub fn client_port(flow: u64) -> u16 {
    21_000 + (flow % 20_000) as u16
}

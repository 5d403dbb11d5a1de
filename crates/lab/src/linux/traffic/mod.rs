//! The applications of flows, on kernel sockets and on our own stack alike.
//!
//! A flow's two ends share the state machine of its workload ([`gargalo_workload::App`]), the same
//! that runs in the simulator; what crosses the network is real bytes.

mod datagrams;
mod flow;
mod inbox;
mod notices;
mod quic;
mod quic_run;
mod recorder;
mod sources;
mod stream;
mod wire;

pub use datagrams::DatagramEnd;
pub(crate) use flow::reason;
pub use flow::{Flow, Surroundings};
pub use inbox::Inbox;
pub use notices::{Notice, Notices};
pub use quic_run::QuicRun;
pub use recorder::{Recorder, Tables};
pub use sources::{Make, Sources};
pub use stream::{Arrival, Datagrams, Interest, Received, Stream};

pub use wire::WireCounter;

use gargalo_units::Duration;

/// Retry interval of a client whose server is not ready yet.
pub(crate) const SERVER_COMES: Duration = Duration::from_millis(1);
/// Time after which an end that only waits for its peer is checked again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Number of ports for each end, and so of simultaneous flows.
pub(crate) const PORTS: u16 = 20_000;
/// First port of servers: above the ports that analysers associate with a protocol.
pub(crate) const FIRST_SERVER_PORT: u16 = 41_000;

/// The server port of the flow of this identifier.
pub fn server_port(flow: u64) -> u16 {
    FIRST_SERVER_PORT + (flow % u64::from(PORTS)) as u16
}

/// The client port of the flow of this identifier.
pub fn client_port(flow: u64) -> u16 {
    21_000 + (flow % u64::from(PORTS)) as u16
}

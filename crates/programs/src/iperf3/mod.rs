//! iperf3's client and server as programs on a user-space host: the protocol, JSON and tables of ESnet's iperf3, so
//! that an ordinary iperf3 can measure our TCP and be measured by it.
//!
//! TCP only. A sender counts bytes when they are first transmitted, where iperf3 counts those that the socket buffer
//! accepted. A test by bytes or blocks ends when the last byte was acknowledged.

mod client;
mod pending;
pub mod protocol;
mod report;
mod reporter;
mod server;
mod settings;
mod stream;
mod table;
mod test;

pub use client::Client;
pub use server::Server;
pub use settings::{
    Cpu, Direction, End, Environment, Format, ReportOptions, Settings, Transport, version,
};

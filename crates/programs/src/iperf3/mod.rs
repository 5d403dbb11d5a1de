//! iperf3's client and server as programs on a user-space host: the protocol of ESnet's iperf3, its
//! JSON and its tables, so that an ordinary iperf3 measures our TCP and is measured by it.
//!
//! TCP only. What a sender counts is what has left for the first time, where iperf3 counts what the
//! socket buffer took; a test by bytes or blocks ends when the last one was acknowledged.

mod client;
mod newcomers;
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

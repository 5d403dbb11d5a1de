//! QUIC stacks in simulator and lab: the interface of a [Stack], and [noq-proto](noq_proto), unmodified, as a sans-IO
//! endpoint with virtual time and any of our congestion controls.
#![forbid(unsafe_code)]

mod config;
mod congestion;
mod controller;
mod crypto;
mod endpoint;
pub mod foreign;
mod noq;
mod profile;
mod qlog;
mod realm;
mod stack;
mod stacks;
mod tls;
mod types;
mod unsent;

pub use config::{
    AckFrequency, Change, Config, Crypto, Handshake, INITIAL_RTT, MAX_STREAMS, Migration,
};
pub use congestion::{Build, Congestion};
pub use crypto::change_frames;
pub use endpoint::Endpoint;
pub use noq::Noq;
pub use profile::Profile;
pub use realm::{Realm, Session};
pub use stack::{Features, Implementation, Stack, own_name};
pub use stacks::{NOQ, Stacks};
pub use tls::{ALPN, SERVER_NAME};
pub use types::{
    Chunk, Datagram, Direction, Event, Init, Notice, Offered, PathSnapshot, Snapshot, Stats,
    StreamId, Uses,
};

/// Why an endpoint cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option is invalid.
    #[error("{0}")]
    Option(String),
    /// The certificate or TLS configuration could not be made.
    #[error("TLS: {0}")]
    Tls(String),
    /// The congestion control could not be built.
    #[error("{0}")]
    Controller(String),
}

//! A production QUIC stack in simulator and lab: [noq-proto](noq_proto), unmodified, behind a sans-IO endpoint with
//! virtual time and any of our congestion controls.
#![forbid(unsafe_code)]

mod config;
mod congestion;
mod controller;
mod crypto;
mod endpoint;
mod frames;
mod profile;
mod qlog;
mod realm;
mod tls;
mod types;

pub use config::{AckFrequency, Change, Config, Crypto, Handshake, Migration};
pub use congestion::{Build, Congestion};
pub use crypto::change_frames;
pub use endpoint::Endpoint;
pub use profile::Profile;
pub use realm::Realm;
pub use types::{Chunk, Datagram, Event, Init, Notice, PathSnapshot, Snapshot, Stats, StreamId};

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

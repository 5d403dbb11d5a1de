//! A sans-IO TCP endpoint: RFC 9293 with window scaling and timestamps (RFC 7323), selective
//! acknowledgements (RFC 2018, 2883), ECN (RFC 3168, 8257), Fast Open (RFC 7413) and the defences of
//! RFC 5961.
//!
//! An [`Endpoint`] has neither clock nor network: its inputs are segments, times and written data, its outputs
//! segments, timeouts and [`Event`]s. Its receiver reassembles and acknowledges; its sender detects losses,
//! retransmits and obeys a [`Controller`](gargalo_cc::Controller).
#![forbid(unsafe_code)]

mod challenge;
mod config;
mod ecn;
mod endpoint;
mod error;
mod event;
mod handshake;
mod peer_window;
mod receiver;
mod rtt;
mod send_buffer;
mod sender;
mod state;
mod stats;
mod timestamps;

pub use config::{
    Autotuning, Config, Control, DelayedAck, EcnMode, KeepAlive, MtuProbing, Nagle, Pacing,
    PacingFactors, Profile, Recovery, RtoRestart, WindowRule,
};
pub use endpoint::{Activity, Ending, Endpoint, Init, Room, Transmit};
pub use error::Error;
pub use event::{Chunk, Event};
pub use handshake::default_mss;
pub use sender::Notice;
pub use state::State;
pub use stats::{Detail, Snapshot, Stats};

/// Parts of an endpoint that other crates use for streams.
pub mod stream {
    pub use crate::receiver::{Assembler, Inserted, Ready};
    pub use crate::send_buffer::SendBuffer;
}

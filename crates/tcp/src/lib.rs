//! A sans-IO TCP endpoint: RFC 9293 with window scaling and timestamps (RFC 7323), selective
//! acknowledgements (RFC 2018, 2883), ECN (RFC 3168, 8257), Fast Open (RFC 7413) and the defences of
//! RFC 5961.
//!
//! An [`Endpoint`] is a value that knows neither clock nor network: segments, times and written
//! data go in, segments, timeouts and [`Event`]s come out. Half of it is the receiving side, which
//! reassembles and acknowledges; the other half is the sending side, which detects losses, obeys a
//! [`Controller`](gargalo_cc::Controller) and repeats.
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
    Config, DelayedAck, EcnMode, KeepAlive, Pacing, PacingFactors, Profile, Recovery,
};
pub use endpoint::{Endpoint, Init, Room, Transmit};
pub use error::Error;
pub use event::{Chunk, Event};
pub use sender::Notice;
pub use state::State;
pub use stats::{Snapshot, Stats};

/// Parts of an endpoint that other users of streams need too.
pub mod stream {
    pub use crate::receiver::{Assembler, Inserted, Ready};
    pub use crate::send_buffer::SendBuffer;
}

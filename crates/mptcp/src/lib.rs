//! A sans-IO Multipath TCP connection (RFC 8684, version 1) over subflows of [`gargalo_tcp`].
//!
//! A [`Connection`] has neither clock nor network, like the endpoints it consists of: its inputs are segments with
//! their [`Addresses`], times and written data; its outputs are segments with addresses, timeouts and [`Event`]s. A
//! [`scheduler`] selects the subflow of each segment, a [`path_manager`] decides which subflows are opened, and
//! every subflow has its own congestion control, coupled or not ([`gargalo_cc`]).
#![forbid(unsafe_code)]

mod addresses;
mod config;
mod connection;
pub mod crypto;
pub mod error;
mod event;
mod mapping;
mod names;
pub mod path_manager;
mod receive;
pub mod registry;
pub mod scheduler;
mod send;
mod subflow;
mod tokens;

pub use addresses::Addresses;
pub use config::{Config, DataNumbers, Init, OpportunisticRetransmission, Options, Penalisation};
pub use connection::{Connection, Transmit};
pub use error::{ConfigError, ResetReason};
pub use event::{Carried, Event, Notice, Stats, SubflowSnapshot};
pub use gargalo_tcp::{Chunk, Error, State};
pub use names::{Label, Names};
pub use registry::Factory;
pub use tokens::Tokens;

//! Harness for protocol tests: two endpoints, two links, one virtual clock.
//!
//! [`Pair`] drives a client and a server [`Endpoint`] over links of [`gargalo_link`] without the simulator; it is
//! small enough to be checked by reading. [`Transfer`] moves patterned content through a pair and checks every
//! byte. [`network`] draws random networks.
#![forbid(unsafe_code)]

mod machine;
pub mod network;
mod pair;
mod transfer;

pub use gargalo_tcp::Endpoint;
pub use machine::{attack_of, resident};
pub use pair::{Pair, Side};
pub use transfer::{Transfer, TransferError, content};

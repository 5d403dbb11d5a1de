//! IP, UDP, TCP and MPTCP headers: parse, build, checksum; and what is in QUIC packets, to be read.
//!
//! Two levels: *views and values* over wire bytes, and [`tcp::Segment`], the value that protocol code
//! exchanges. The simulator passes segments by value without serialising them; captures and real
//! networks use the encoder.
//!
//! A view (`Packet`) checks lengths once, then its accessors cannot fail. A value (`Header`, `Datagram`, `Segment`)
//! holds only valid fields and is written with `emit`. [`ip::Header`] and [`ip::Datagram`] handle whole datagrams
//! of either IP version.
#![forbid(unsafe_code)]

mod addresses;
mod checksum;
mod error;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod mptcp;
pub mod quic;
mod reader;
pub mod tcp;
pub mod udp;

pub use checksum::Checksum;
pub use error::{EmitError, Layer, ParseError};
pub use gargalo_units::Ecn;

//! IP, UDP, TCP and MPTCP headers: parse, build, checksum.
//!
//! Two levels: *views and values* over wire bytes, and [`tcp::Segment`], the value that protocol code
//! exchanges. The simulator passes segments by value without serialising them; captures and real
//! networks use the encoder.
#![forbid(unsafe_code)]

pub mod tcp;

pub use gargalo_units::Ecn;

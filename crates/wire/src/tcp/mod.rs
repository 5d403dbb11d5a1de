//! TCP segments (RFC 9293 §3.1) as values.

mod options;
mod payload;
mod segment;

pub use options::{Extra, Options, SackBlocks, Timestamps};
pub use payload::Payload;
pub use segment::{Flags, Segment};

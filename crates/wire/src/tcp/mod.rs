//! TCP segments (RFC 9293 §3.1): [`Segment`] is the value, [`Packet`] views bytes.

mod codec;
mod display;
mod options;
mod packet;
mod payload;
mod segment;

pub use codec::{RawOption, RawOptions};
pub use options::{Extra, MAX_OPTIONS_LEN, Options, SackBlocks, Timestamps};
pub use packet::{HEADER_LEN, Packet};
pub use payload::Payload;
pub use segment::{Flags, Segment};

//! QUIC: headers of packets, and their frames once they are decrypted (RFC 8999, RFC 9000, RFC 9369).

mod frames;
mod header;
mod varint;

pub use frames::{Ack, Frame, Frames, Stream};
pub use header::{Header, Kind, LONG, Long, MOST_ID, Packet, Packets, Short, Version, packets};
pub use varint::Reader;

use std::fmt;
use std::ops::{BitAnd, BitOr};

use gargalo_units::Seq;

use super::{Options, Payload};

/// The control bits of a TCP header (RFC 9293 §3.1, RFC 3168; AE of RFC 9768).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// No control bit set.
    pub const NONE: Self = Self(0);
    /// No more data from sender.
    pub const FIN: Self = Self(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x002);
    /// Reset the connection.
    pub const RST: Self = Self(0x004);
    /// Push function: the data is to be passed on to the receiving application.
    pub const PSH: Self = Self(0x008);
    /// Acknowledgement field is significant.
    pub const ACK: Self = Self(0x010);
    /// Urgent pointer is significant.
    pub const URG: Self = Self(0x020);
    /// ECN echo: the sender has received CE marks; negotiation in a SYN.
    pub const ECE: Self = Self(0x040);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN: negotiation in a SYN, otherwise with CWR and ECE a counter of CE-marked packets (RFC 9768).
    pub const AE: Self = Self(0x100);

    /// From the nine low bits of the 16-bit word that holds data offset and flags.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x1ff)
    }
    /// The nine bits.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// Whether all of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
impl BitOr for Flags {
    type Output = Self;
    #[inline]
    fn bitor(self, o: Self) -> Self {
        Self(self.0 | o.0)
    }
}
impl BitAnd for Flags {
    type Output = Self;
    #[inline]
    fn bitand(self, o: Self) -> Self {
        Self(self.0 & o.0)
    }
}
impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // tcpdump's letters; ACK is ".".
        let names = [
            (Self::SYN, "S"),
            (Self::FIN, "F"),
            (Self::RST, "R"),
            (Self::PSH, "P"),
            (Self::URG, "U"),
            (Self::ECE, "E"),
            (Self::CWR, "W"),
            (Self::AE, "e"),
            (Self::ACK, "."),
        ];
        for (flag, letter) in names {
            if self.contains(flag) {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// A TCP segment as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Sequence number of the first payload byte (or of SYN/FIN).
    pub seq: Seq,
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub ack: Seq,
    /// The nine control bits, FIN to AE.
    pub flags: Flags,
    /// Window field as on the wire (not scaled).
    pub window: u16,
    /// Urgent pointer, an offset from the sequence number; meaningful with [`Flags::URG`].
    pub urgent: u16,
    /// Decoded options; [`Options`] says how they are laid out on the wire.
    pub options: Options,
    /// Data: content, or only its length.
    pub payload: Payload,
}

impl Segment {
    /// Whether no part of it is on the heap: it has no real content, and of the options at most timestamps.
    #[inline]
    pub const fn is_flat(&self) -> bool {
        self.options.is_flat() && !self.payload.is_real()
    }
    /// Sequence space the segment occupies: payload plus one each for SYN and FIN.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        self.payload.len()
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }
    /// The sequence number after the segment.
    #[inline]
    pub fn end(&self) -> Seq {
        self.seq + self.sequence_len()
    }
    /// Header length with options, padded to 32 bits.
    #[inline]
    pub fn header_len(&self) -> u32 {
        20 + self.options.padded_len()
    }
    /// Header and payload.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        self.header_len() + self.payload.len()
    }
}

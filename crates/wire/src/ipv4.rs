//! IPv4 headers (RFC 791): [`Packet`] views bytes, [`Header`] is the value.

use std::net::Ipv4Addr;

use gargalo_units::Ecn;

use crate::reader::field;
use crate::{Checksum, Layer, ParseError};

/// Length of a header without options.
pub const HEADER_LEN: usize = 20;

/// A view of a packet whose lengths were checked.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Exactly the datagram: padding of the layer below is cut off.
    bytes: &'a [u8],
    header_len: usize,
}

impl<'a> Packet<'a> {
    /// Checks version and lengths; the checksum is for [`Packet::checksum_is_right`]. Bytes after the
    /// total length are padding and ignored.
    ///
    /// # Errors
    /// When it is not version 4 or a length is impossible.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let packet = Self::parse_start(bytes)?;
        let (layer, total) = (Layer::Ipv4, packet.total_len());
        if total < packet.header_len {
            return Err(ParseError::BadLength {
                layer,
                length: total,
            });
        }
        if bytes.len() < total {
            return Err(ParseError::Truncated {
                layer,
                needed: total,
                have: bytes.len(),
            });
        }
        Ok(packet)
    }

    /// Like [`Packet::parse`], for a packet of which a capture has kept the beginning only: the header is whole, its
    /// total length is what it says. It is 0 where a device was to cut a segment that is longer than a packet.
    ///
    /// # Errors
    /// When it is not version 4 or the header is truncated.
    pub fn parse_start(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let layer = Layer::Ipv4;
        let truncated = |needed| ParseError::Truncated {
            layer,
            needed,
            have: bytes.len(),
        };
        let first = *bytes.first().ok_or(truncated(HEADER_LEN))?;
        if first >> 4 != 4 {
            return Err(ParseError::BadVersion {
                version: first >> 4,
            });
        }
        if bytes.len() < HEADER_LEN {
            return Err(truncated(HEADER_LEN));
        }
        let header_len = usize::from(first & 0xf) * 4;
        if header_len < HEADER_LEN {
            return Err(ParseError::BadLength {
                layer,
                length: header_len,
            });
        }
        if bytes.len() < header_len {
            return Err(truncated(header_len));
        }
        let total = usize::from(u16::from_be_bytes(field(bytes, 2)));
        let bytes = match total {
            // What follows belongs to the packet, as far as one can know.
            0 => bytes,
            _ => bytes.get(..total.max(header_len)).unwrap_or(bytes),
        };
        Ok(Self { bytes, header_len })
    }

    /// The whole datagram without padding.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// Header length in bytes, options included.
    pub const fn header_len(&self) -> usize {
        self.header_len
    }
    /// Length of the datagram, as the header says.
    pub fn total_len(&self) -> usize {
        usize::from(u16::from_be_bytes(field(self.bytes, 2)))
    }
    /// Differentiated services code point (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.byte(1) >> 2
    }
    /// ECN field (RFC 3168).
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.byte(1))
    }
    /// Identification: the same in all fragments of a datagram.
    pub fn ident(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 4))
    }
    /// DF flag: the datagram must not be fragmented.
    pub fn dont_fragment(&self) -> bool {
        self.byte(6) & 0x40 != 0
    }
    /// MF flag: more fragments of the datagram follow.
    pub fn more_fragments(&self) -> bool {
        self.byte(6) & 0x20 != 0
    }
    /// Fragment offset in bytes.
    pub fn fragment_offset(&self) -> u32 {
        u32::from(u16::from_be_bytes(field(self.bytes, 6)) & 0x1fff) * 8
    }
    /// Whether this is a fragment of a datagram.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }
    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.byte(8)
    }
    /// Protocol number of the payload: 6 TCP, 17 UDP.
    pub fn protocol(&self) -> u8 {
        self.byte(9)
    }
    /// Address of the sender.
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from(field::<4>(self.bytes, 12))
    }
    /// Address of the receiver.
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from(field::<4>(self.bytes, 16))
    }
    /// Options as on the wire, with their padding; empty if the header has 20 bytes.
    pub fn options(&self) -> &'a [u8] {
        self.bytes
            .get(HEADER_LEN..self.header_len)
            .unwrap_or_default()
    }
    /// The bytes after the header.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(self.header_len..).unwrap_or_default()
    }
    /// Whether the header checksum matches.
    pub fn checksum_is_right(&self) -> bool {
        let header = self.bytes.get(..self.header_len).unwrap_or_default();
        Checksum::new().add_bytes(header).finish() == 0
    }

    fn byte(&self, at: usize) -> u8 {
        field::<1>(self.bytes, at)[0]
    }
}

/// An IPv4 header as a value, without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the sender.
    pub src: Ipv4Addr,
    /// Address of the receiver.
    pub dst: Ipv4Addr,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// ECN field, the two bits after the DSCP (RFC 3168).
    pub ecn: Ecn,
    /// Identification: the same in all fragments of a datagram.
    pub ident: u16,
    /// DF flag: the datagram must not be fragmented.
    pub dont_fragment: bool,
    /// MF flag: more fragments of the datagram follow.
    pub more_fragments: bool,
    /// Fragment offset in units of 8 bytes, 13 bits.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Bytes after the header.
    pub payload_len: u16,
}

impl Header {
    /// The value of a viewed header; its options are left out.
    pub fn of(packet: &Packet<'_>) -> Self {
        Self {
            src: packet.src(),
            dst: packet.dst(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            ident: packet.ident(),
            dont_fragment: packet.dont_fragment(),
            more_fragments: packet.more_fragments(),
            // At most 13 bits.
            fragment_offset: (packet.fragment_offset() / 8) as u16,
            ttl: packet.ttl(),
            protocol: packet.protocol(),
            // The total length is a 16-bit field.
            payload_len: packet.payload().len() as u16,
        }
    }

    /// Appends the 20 bytes with their checksum. The total length saturates at 65535.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let total = self.payload_len.saturating_add(HEADER_LEN as u16);
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13;
        let mut h = [0; HEADER_LEN];
        h[0] = 0x45;
        h[1] = self.dscp << 2 | self.ecn as u8;
        h[2..4].copy_from_slice(&total.to_be_bytes());
        h[4..6].copy_from_slice(&self.ident.to_be_bytes());
        h[6..8].copy_from_slice(&(flags | self.fragment_offset & 0x1fff).to_be_bytes());
        h[8] = self.ttl;
        h[9] = self.protocol;
        h[12..16].copy_from_slice(&self.src.octets());
        h[16..20].copy_from_slice(&self.dst.octets());
        let sum = Checksum::new().add_bytes(&h).finish();
        h[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&h);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_packet_that_a_capture_cut_the_header_says_the_length() {
        let mut whole = Vec::new();
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let header = Header {
            src,
            dst,
            dscp: 0,
            ecn: Ecn::NotEct,
            ident: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: 6,
            payload_len: 100,
        };
        header.emit(&mut whole);
        whole.resize(60, 7);
        assert!(Packet::parse(&whole).is_err());
        let packet = Packet::parse_start(&whole).unwrap();
        assert_eq!((packet.total_len(), packet.payload().len()), (120, 40));
        // A segment that a device is to cut has no length: all that follows is its.
        whole[2..4].fill(0);
        assert!(Packet::parse(&whole).is_err());
        let packet = Packet::parse_start(&whole).unwrap();
        assert_eq!((packet.total_len(), packet.payload().len()), (0, 40));
        assert!(Packet::parse_start(&whole[..19]).is_err());
    }
}

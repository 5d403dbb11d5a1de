//! IPv6 headers (RFC 8200): [`Packet`] views bytes, [`Header`] is the value.

use std::net::Ipv6Addr;

use gargalo_units::Ecn;

use crate::reader::field;
use crate::{Layer, ParseError};

/// Length of the fixed header.
pub const HEADER_LEN: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// A view of a packet whose lengths were checked.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Exactly the datagram: padding of the layer below is cut off.
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks version and lengths. Bytes after the payload length are padding and ignored.
    ///
    /// # Errors
    /// When it is not version 6 or truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let packet = Self::parse_start(bytes)?;
        let needed = packet.total_len();
        if bytes.len() < needed {
            return Err(ParseError::Truncated {
                layer: Layer::Ipv6,
                needed,
                have: bytes.len(),
            });
        }
        Ok(packet)
    }

    /// Like [`Packet::parse`], for a packet of which a capture has kept the beginning only: the fixed header is whole.
    ///
    /// # Errors
    /// When it is not version 6 or the fixed header is truncated.
    pub fn parse_start(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let truncated = |needed| ParseError::Truncated {
            layer: Layer::Ipv6,
            needed,
            have: bytes.len(),
        };
        let first = *bytes.first().ok_or(truncated(HEADER_LEN))?;
        if first >> 4 != 6 {
            return Err(ParseError::BadVersion {
                version: first >> 4,
            });
        }
        if bytes.len() < HEADER_LEN {
            return Err(truncated(HEADER_LEN));
        }
        let packet = Self { bytes };
        let bytes = bytes.get(..packet.total_len()).unwrap_or(bytes);
        Ok(Self { bytes })
    }

    /// The whole datagram without padding.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// Length of the packet, as the header says; that of the fixed header for a jumbogram (RFC 2675).
    pub fn total_len(&self) -> usize {
        HEADER_LEN + usize::from(u16::from_be_bytes(field(self.bytes, 4)))
    }
    /// Differentiated services code point (RFC 2474).
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }
    /// ECN field (RFC 3168).
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class())
    }
    /// Flow label, 20 bits (RFC 6437).
    pub fn flow_label(&self) -> u32 {
        self.first_word() & 0xf_ffff
    }
    /// Protocol of the first header after the fixed one.
    pub fn next_header(&self) -> u8 {
        field::<1>(self.bytes, 6)[0]
    }
    /// Hop limit, which each forwarding node decrements by one.
    pub fn hop_limit(&self) -> u8 {
        field::<1>(self.bytes, 7)[0]
    }
    /// Address of the sender.
    pub fn src(&self) -> Ipv6Addr {
        Ipv6Addr::from(field::<16>(self.bytes, 8))
    }
    /// Address of the receiver; with a routing header, that of the next node on the route.
    pub fn dst(&self) -> Ipv6Addr {
        Ipv6Addr::from(field::<16>(self.bytes, 24))
    }
    /// All after the fixed header, extension headers included.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Protocol number and bytes of the upper layer, past hop-by-hop, routing and destination options.
    ///
    /// # Errors
    /// When an extension header is truncated, or the packet is a fragment (an atomic fragment, RFC
    /// 6946, is whole).
    pub fn upper_layer(&self) -> Result<(u8, &'a [u8]), ParseError> {
        let mut protocol = self.next_header();
        let mut rest = self.payload();
        // Every extension header has at least 8 bytes, so the loop ends.
        while matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            let truncated = |needed| ParseError::Truncated {
                layer: Layer::Ipv6,
                needed,
                have: rest.len(),
            };
            let head: &[u8; 8] = rest.first_chunk().ok_or(truncated(8))?;
            let len = if protocol == FRAGMENT {
                let offset_and_more = u16::from_be_bytes([head[2], head[3]]) & 0xfff9;
                if offset_and_more != 0 {
                    return Err(ParseError::Fragment);
                }
                8
            } else {
                8 + usize::from(head[1]) * 8
            };
            protocol = head[0];
            rest = rest.get(len..).ok_or(truncated(len))?;
        }
        Ok((protocol, rest))
    }

    fn first_word(&self) -> u32 {
        u32::from_be_bytes(field(self.bytes, 0))
    }
    fn traffic_class(&self) -> u8 {
        (self.first_word() >> 20) as u8
    }
}

/// An IPv6 header as a value, without extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the sender.
    pub src: Ipv6Addr,
    /// Address of the receiver.
    pub dst: Ipv6Addr,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// ECN field, the two bits after the DSCP (RFC 3168).
    pub ecn: Ecn,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Protocol of the first header after this one.
    pub next_header: u8,
    /// Hop limit, which each forwarding node decrements by one.
    pub hop_limit: u8,
    /// Bytes after the header.
    pub payload_len: u16,
}

impl Header {
    /// The value of a viewed header.
    pub fn of(packet: &Packet<'_>) -> Self {
        Self {
            src: packet.src(),
            dst: packet.dst(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            flow_label: packet.flow_label(),
            next_header: packet.next_header(),
            hop_limit: packet.hop_limit(),
            // The length is a 16-bit field.
            payload_len: packet.payload().len() as u16,
        }
    }

    /// Appends the 40 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let class = u32::from(self.dscp << 2 | self.ecn as u8);
        let word = 6 << 28 | class << 20 | self.flow_label & 0xf_ffff;
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&self.payload_len.to_be_bytes());
        out.extend_from_slice(&[self.next_header, self.hop_limit]);
        out.extend_from_slice(&self.src.octets());
        out.extend_from_slice(&self.dst.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_packet_that_a_capture_cut_the_header_says_the_length() {
        let mut whole = vec![0; 60];
        whole[0] = 0x60;
        whole[4..6].copy_from_slice(&100u16.to_be_bytes());
        whole[6] = 17;
        assert!(Packet::parse(&whole).is_err());
        let packet = Packet::parse_start(&whole).unwrap();
        assert_eq!((packet.total_len(), packet.payload().len()), (140, 20));
        assert_eq!(packet.upper_layer().unwrap().0, 17);
        assert!(Packet::parse_start(&whole[..39]).is_err());
    }
}

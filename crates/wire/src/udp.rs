//! UDP (RFC 768): [`Packet`] views bytes, [`Datagram`] is the value.

use bytes::Bytes;

use crate::ip::{Addresses, UDP};
use crate::reader::field;
use crate::tcp::Payload;
use crate::{Layer, ParseError};

/// Length of the header.
pub const HEADER_LEN: usize = 8;

/// A view of a datagram whose length was checked.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks the lengths; bytes after the length field's end are ignored.
    ///
    /// # Errors
    /// When it is truncated or the length below 8.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let packet = Self::parse_start(bytes)?;
        let needed = packet.total_len();
        if bytes.len() < needed {
            return Err(ParseError::Truncated {
                layer: Layer::Udp,
                needed,
                have: bytes.len(),
            });
        }
        Ok(packet)
    }

    /// Like [`Packet::parse`], for a datagram of which a capture has kept the beginning only: the header is whole.
    ///
    /// # Errors
    /// When the header is truncated or its length below 8.
    pub fn parse_start(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let truncated = |needed| ParseError::Truncated {
            layer: Layer::Udp,
            needed,
            have: bytes.len(),
        };
        if bytes.len() < HEADER_LEN {
            return Err(truncated(HEADER_LEN));
        }
        let length = usize::from(u16::from_be_bytes(field(bytes, 4)));
        if length < HEADER_LEN {
            return Err(ParseError::BadLength {
                layer: Layer::Udp,
                length,
            });
        }
        let bytes = bytes.get(..length).unwrap_or(bytes);
        Ok(Self { bytes })
    }
    /// Length of header and data, as the header says.
    pub fn total_len(&self) -> usize {
        usize::from(u16::from_be_bytes(field(self.bytes, 4)))
    }
    /// Port of the sender; 0 if it is not used.
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 0))
    }
    /// Port of the receiver.
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 2))
    }
    /// The bytes after the header.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }
    /// Whether the checksum matches. Zero means none over IPv4 and is wrong over IPv6 (RFC 8200 §8.1).
    pub fn checksum_is_right(&self, addresses: &Addresses) -> bool {
        if field::<2>(self.bytes, 6) == [0, 0] {
            return matches!(addresses, Addresses::V4 { .. });
        }
        let len = self.bytes.len() as u32;
        addresses
            .pseudo_header(UDP, len)
            .add_bytes(self.bytes)
            .finish()
            == 0
    }
}

/// A UDP datagram as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Port of the sender; 0 if it is not used.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Data: content, or only its length.
    pub payload: Payload,
}

impl Datagram {
    /// The value of a viewed datagram; the payload is copied.
    pub fn of(packet: &Packet<'_>) -> Self {
        Self {
            src_port: packet.src_port(),
            dst_port: packet.dst_port(),
            payload: Payload::real(Bytes::copy_from_slice(packet.payload())),
        }
    }

    /// Header and payload in bytes.
    pub fn wire_len(&self) -> u32 {
        self.payload.len().saturating_add(HEADER_LEN as u32)
    }

    /// Appends the header with its checksum, without the payload. The length saturates at 65535.
    pub fn emit_header(&self, addresses: &Addresses, out: &mut Vec<u8>) {
        let len = self.wire_len().min(u32::from(u16::MAX));
        let mut h = [0; HEADER_LEN];
        h[..2].copy_from_slice(&self.src_port.to_be_bytes());
        h[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        h[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        let sum = addresses.pseudo_header(UDP, len).add_bytes(&h);
        let sum = match self.payload.bytes() {
            Some(data) => sum.add_bytes(data),
            // Synthetic data reads as zeros.
            None => sum,
        };
        // Zero would mean "no checksum" (RFC 768); all ones is the same sum.
        let sum = match sum.finish() {
            0 => 0xffff,
            n => n,
        };
        h[6..].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&h);
    }
}

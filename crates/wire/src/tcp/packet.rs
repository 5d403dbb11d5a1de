//! TCP headers on the wire: a view, and the conversion from and to segments.

use bytes::Bytes;
use gargalo_units::Seq;

use super::{Flags, Options, Payload, RawOptions, Segment};
use crate::addresses::{Addresses, TCP};
use crate::reader::field;
use crate::{Checksum, EmitError, Layer, ParseError};

/// Length of a header without options.
pub const HEADER_LEN: usize = 20;

/// A view of a TCP segment whose lengths were checked.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    header_len: usize,
}

impl<'a> Packet<'a> {
    /// Checks the lengths; all of `bytes` is header or data.
    ///
    /// # Errors
    /// When it is shorter than its header, or the data offset below 5.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let truncated = |needed| ParseError::Truncated {
            layer: Layer::Tcp,
            needed,
            have: bytes.len(),
        };
        if bytes.len() < HEADER_LEN {
            return Err(truncated(HEADER_LEN));
        }
        let header_len = usize::from(bytes[12] >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(ParseError::BadLength {
                layer: Layer::Tcp,
                length: header_len,
            });
        }
        if bytes.len() < header_len {
            return Err(truncated(header_len));
        }
        Ok(Self { bytes, header_len })
    }
    /// Port of the sender.
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 0))
    }
    /// Port of the receiver.
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 2))
    }
    /// Sequence number of the SYN if there is one, otherwise of the first payload byte (or FIN).
    pub fn seq(&self) -> Seq {
        Seq::new(u32::from_be_bytes(field(self.bytes, 4)))
    }
    /// Next sequence number expected; meaningful with [`Flags::ACK`].
    pub fn ack(&self) -> Seq {
        Seq::new(u32::from_be_bytes(field(self.bytes, 8)))
    }
    /// Header length in bytes, options included.
    pub const fn header_len(&self) -> usize {
        self.header_len
    }
    /// The nine control bits, FIN to AE.
    pub fn flags(&self) -> Flags {
        Flags::from_bits(u16::from_be_bytes(field(self.bytes, 12)))
    }
    /// Window, not scaled.
    pub fn window(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 14))
    }
    /// Checksum field; [`Packet::checksum_is_right`] verifies it.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 16))
    }
    /// Urgent pointer, an offset from the sequence number; meaningful with [`Flags::URG`].
    pub fn urgent(&self) -> u16 {
        u16::from_be_bytes(field(self.bytes, 18))
    }
    /// Options as on the wire, with their padding.
    pub fn option_bytes(&self) -> &'a [u8] {
        self.bytes
            .get(HEADER_LEN..self.header_len)
            .unwrap_or_default()
    }
    /// Options, one by one.
    pub fn options(&self) -> RawOptions<'a> {
        RawOptions::new(self.option_bytes())
    }
    /// The bytes after the header.
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(self.header_len..).unwrap_or_default()
    }
    /// Whether the checksum matches (RFC 9293 §3.1).
    pub fn checksum_is_right(&self, addresses: &Addresses) -> bool {
        u32::try_from(self.bytes.len()).is_ok_and(|len| {
            let sum = addresses.pseudo_header(TCP, len).add_bytes(self.bytes);
            sum.finish() == 0
        })
    }
}

impl Segment {
    /// The value of a viewed segment; the payload is copied. Options are taken up to the first malformed
    /// one; [`Options::decode`] is strict.
    pub fn of(packet: &Packet<'_>) -> Self {
        Self::with_payload(
            packet,
            Payload::real(Bytes::copy_from_slice(packet.payload())),
        )
    }

    /// Like [`Segment::of`] with `payload` in place of the packet's.
    pub fn with_payload(packet: &Packet<'_>, payload: Payload) -> Self {
        Self {
            src_port: packet.src_port(),
            dst_port: packet.dst_port(),
            seq: packet.seq(),
            ack: packet.ack(),
            flags: packet.flags(),
            window: packet.window(),
            urgent: packet.urgent(),
            options: Options::decode_prefix(packet.option_bytes()),
            payload,
        }
    }

    /// Appends the header, [`Segment::header_len`] bytes, with the checksum over the payload, which is
    /// not appended. Synthetic payload counts as zeros.
    ///
    /// # Errors
    /// When options other than SACK exceed 40 bytes; `out` is then unchanged.
    pub fn emit_header(&self, addresses: &Addresses, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.emit_with(addresses, out, |pseudo, header| {
            let sum = pseudo.add_bytes(header);
            let sum = match self.payload.bytes() {
                Some(data) => sum.add_bytes(data),
                None => sum,
            };
            sum.finish()
        })
    }

    /// Like [`Segment::emit_header`], but the checksum field holds the sum of the pseudo header, not complemented,
    /// and a device completes it (virtio 1.2 §5.1.6.2, `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
    ///
    /// # Errors
    /// Those of [`Segment::emit_header`].
    pub fn emit_header_offloaded(
        &self,
        addresses: &Addresses,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        self.emit_with(addresses, out, |pseudo, _| !pseudo.finish())
    }

    fn emit_with(
        &self,
        addresses: &Addresses,
        out: &mut Vec<u8>,
        checksum: impl FnOnce(Checksum, &[u8]) -> u16,
    ) -> Result<(), EmitError> {
        let start = out.len();
        let mut h = [0; HEADER_LEN];
        h[..2].copy_from_slice(&self.src_port.to_be_bytes());
        h[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        h[4..8].copy_from_slice(&self.seq.get().to_be_bytes());
        h[8..12].copy_from_slice(&self.ack.get().to_be_bytes());
        // Data offset, filled in below, and flags.
        h[12..14].copy_from_slice(&self.flags.bits().to_be_bytes());
        h[14..16].copy_from_slice(&self.window.to_be_bytes());
        h[18..].copy_from_slice(&self.urgent.to_be_bytes());
        out.extend_from_slice(&h);
        self.options
            .emit(out)
            .inspect_err(|_| out.truncate(start))?;
        let header = &mut out[start..];
        // At most 60 bytes, 15 words.
        header[12] |= (header.len() as u8 / 4) << 4;
        let len = (header.len() as u32).saturating_add(self.payload.len());
        let sum = checksum(addresses.pseudo_header(TCP, len), header);
        header[16..18].copy_from_slice(&sum.to_be_bytes());
        Ok(())
    }
}

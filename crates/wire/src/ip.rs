//! Whole IP datagrams, whatever the version: build one from a segment, parse one into a segment.

use std::fmt;

use bytes::Bytes;
use gargalo_units::Ecn;

pub use crate::addresses::{Addresses, TCP, UDP};
use crate::tcp::{self, Payload, Segment};
use crate::{EmitError, Layer, ParseError, ipv4, ipv6, udp};

/// The fields of an IP header, without lengths and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source and destination.
    pub addresses: Addresses,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// ECN field, the two bits after the DSCP (RFC 3168).
    pub ecn: Ecn,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Identification of IPv4; zero for IPv6.
    pub ident: u16,
    /// Flow label of IPv6, 20 bits; zero for IPv4.
    pub flow_label: u32,
}

impl Header {
    /// A header with TTL 64 and everything else zero.
    pub const fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            dscp: 0,
            ecn: Ecn::NotEct,
            ttl: 64,
            ident: 0,
            flow_label: 0,
        }
    }

    /// Appends a datagram that carries `segment`; synthetic payload is written as zeros. IPv4 has DF
    /// set, as stacks with path MTU discovery do. Returns its length.
    ///
    /// # Errors
    /// When options or datagram are too long; `out` is then unchanged.
    pub fn emit_tcp(&self, segment: &Segment, out: &mut Vec<u8>) -> Result<u32, EmitError> {
        let total = self.emit_tcp_headers(segment, out)?;
        append(&segment.payload, out);
        Ok(total)
    }

    /// Like [`Header::emit_tcp`], with the TCP checksum left to a device
    /// ([`Segment::emit_header_offloaded`]).
    ///
    /// # Errors
    /// Those of [`Header::emit_tcp`].
    pub fn emit_tcp_offloaded(
        &self,
        segment: &Segment,
        out: &mut Vec<u8>,
    ) -> Result<u32, EmitError> {
        let start = out.len();
        let total = self.emit(TCP, segment.wire_len(), out)?;
        segment
            .emit_header_offloaded(&self.addresses, out)
            .inspect_err(|_| out.truncate(start))?;
        append(&segment.payload, out);
        Ok(total)
    }

    /// Appends IP and TCP header only, as if the payload followed; for captures with a snap length.
    /// Returns the length of the whole datagram.
    ///
    /// # Errors
    /// Like [`Header::emit_tcp`].
    pub fn emit_tcp_headers(&self, segment: &Segment, out: &mut Vec<u8>) -> Result<u32, EmitError> {
        let start = out.len();
        let total = self.emit(TCP, segment.wire_len(), out)?;
        segment
            .emit_header(&self.addresses, out)
            .inspect_err(|_| out.truncate(start))?;
        Ok(total)
    }

    /// Appends a datagram that carries `datagram`. Returns its length.
    ///
    /// # Errors
    /// When it is too long; `out` is then unchanged.
    pub fn emit_udp(&self, datagram: &udp::Datagram, out: &mut Vec<u8>) -> Result<u32, EmitError> {
        let total = self.emit_udp_headers(datagram, out)?;
        append(&datagram.payload, out);
        Ok(total)
    }

    /// Appends IP and UDP header only, as if the payload followed. Returns the length of the whole
    /// datagram.
    ///
    /// # Errors
    /// Like [`Header::emit_udp`].
    pub fn emit_udp_headers(
        &self,
        datagram: &udp::Datagram,
        out: &mut Vec<u8>,
    ) -> Result<u32, EmitError> {
        let total = self.emit(UDP, datagram.wire_len(), out)?;
        datagram.emit_header(&self.addresses, out);
        Ok(total)
    }

    /// Appends the IP header only, of a datagram that carries `len` bytes of a protocol. Returns the length of the
    /// whole datagram.
    ///
    /// # Errors
    /// When it is too long; `out` is then unchanged.
    pub fn emit(&self, protocol: u8, len: u32, out: &mut Vec<u8>) -> Result<u32, EmitError> {
        let length = len.saturating_add(self.addresses.header_len());
        let too_long = EmitError::TooLong { length };
        let payload_len = u16::try_from(len).map_err(|_| too_long)?;
        match self.addresses {
            Addresses::V4 { src, dst } => {
                u16::try_from(length).map_err(|_| too_long)?;
                ipv4::Header {
                    src,
                    dst,
                    dscp: self.dscp,
                    ecn: self.ecn,
                    ident: self.ident,
                    dont_fragment: true,
                    more_fragments: false,
                    fragment_offset: 0,
                    ttl: self.ttl,
                    protocol,
                    payload_len,
                }
                .emit(out);
            }
            Addresses::V6 { src, dst } => ipv6::Header {
                src,
                dst,
                dscp: self.dscp,
                ecn: self.ecn,
                flow_label: self.flow_label,
                next_header: protocol,
                hop_limit: self.ttl,
                payload_len,
            }
            .emit(out),
        }
        Ok(length)
    }
}

fn append(payload: &Payload, out: &mut Vec<u8>) {
    match payload.bytes() {
        Some(data) => out.extend_from_slice(data),
        None => out.resize(out.len() + payload.len() as usize, 0),
    }
}

/// The transport payload of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment (protocol 6).
    Tcp(Segment),
    /// A UDP datagram (protocol 17).
    Udp(udp::Datagram),
    /// Another protocol, not decoded.
    Other {
        /// Protocol number (IANA); of IPv6, that after the extension headers.
        protocol: u8,
        /// What follows the IP headers.
        payload: Bytes,
    },
}

/// A parsed IP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The IP header.
    pub header: Header,
    /// The transport payload.
    pub transport: Transport,
}

/// Which checksums a parser verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// IP, TCP and UDP: for packets received from a network.
    #[default]
    All,
    /// None: for captures on hosts whose network card computes the checksums.
    Nothing,
}

impl Datagram {
    /// Parses an IPv4 or IPv6 datagram; padding behind it is ignored, payloads are copied. TCP options
    /// are taken up to the first malformed one, as stacks do ([`Segment::of`]).
    ///
    /// # Errors
    /// When a header is truncated, contradicts itself or fails its checksum, or for fragments.
    pub fn parse(bytes: &[u8], verify: Verify) -> Result<Self, ParseError> {
        Self::parse_with(bytes, verify, Bytes::copy_from_slice)
    }

    /// Like [`Datagram::parse`], but the payload of TCP shares the memory of `bytes` instead of being
    /// copied, and keeps all of it alive.
    ///
    /// # Errors
    /// Those of [`Datagram::parse`].
    pub fn parse_shared(bytes: &Bytes, verify: Verify) -> Result<Self, ParseError> {
        Self::parse_with(bytes, verify, |payload| bytes.slice_ref(payload))
    }

    fn parse_with(
        bytes: &[u8],
        verify: Verify,
        take: impl FnOnce(&[u8]) -> Bytes,
    ) -> Result<Self, ParseError> {
        let (header, protocol, payload) = match bytes.first().map(|b| b >> 4) {
            Some(6) => parse_v6(bytes)?,
            _ => parse_v4(bytes, verify)?,
        };
        let bad = |layer| Err(ParseError::BadChecksum { layer });
        let transport = match protocol {
            TCP => {
                let packet = tcp::Packet::parse(payload)?;
                if verify == Verify::All && !packet.checksum_is_right(&header.addresses) {
                    return bad(Layer::Tcp);
                }
                let payload = Payload::real(take(packet.payload()));
                Transport::Tcp(Segment::with_payload(&packet, payload))
            }
            UDP => {
                let packet = udp::Packet::parse(payload)?;
                if verify == Verify::All && !packet.checksum_is_right(&header.addresses) {
                    return bad(Layer::Udp);
                }
                Transport::Udp(udp::Datagram::of(&packet))
            }
            protocol => Transport::Other {
                protocol,
                payload: Bytes::copy_from_slice(payload),
            },
        };
        Ok(Self { header, transport })
    }
}

fn parse_v4(bytes: &[u8], verify: Verify) -> Result<(Header, u8, &[u8]), ParseError> {
    let packet = ipv4::Packet::parse(bytes)?;
    if verify == Verify::All && !packet.checksum_is_right() {
        return Err(ParseError::BadChecksum { layer: Layer::Ipv4 });
    }
    if packet.is_fragment() {
        return Err(ParseError::Fragment);
    }
    let header = Header {
        addresses: Addresses::V4 {
            src: packet.src(),
            dst: packet.dst(),
        },
        dscp: packet.dscp(),
        ecn: packet.ecn(),
        ttl: packet.ttl(),
        ident: packet.ident(),
        flow_label: 0,
    };
    Ok((header, packet.protocol(), packet.payload()))
}

fn parse_v6(bytes: &[u8]) -> Result<(Header, u8, &[u8]), ParseError> {
    let packet = ipv6::Packet::parse(bytes)?;
    let (protocol, payload) = packet.upper_layer()?;
    let header = Header {
        addresses: Addresses::V6 {
            src: packet.src(),
            dst: packet.dst(),
        },
        dscp: packet.dscp(),
        ecn: packet.ecn(),
        ttl: packet.hop_limit(),
        ident: 0,
        flow_label: packet.flow_label(),
    };
    Ok((header, protocol, payload))
}

impl fmt::Display for Datagram {
    /// One line, like tcpdump's: `IP 10.0.0.1.49152 > 10.0.0.2.80: Flags [S], seq 0, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a = &self.header.addresses;
        let version = match a {
            Addresses::V4 { .. } => "IP",
            Addresses::V6 { .. } => "IP6",
        };
        let (src, dst) = (a.src(), a.dst());
        match &self.transport {
            Transport::Tcp(s) => {
                let (sport, dport) = (s.src_port, s.dst_port);
                write!(f, "{version} {src}.{sport} > {dst}.{dport}: {}", s.body())
            }
            Transport::Udp(d) => {
                let (sport, dport, len) = (d.src_port, d.dst_port, d.payload.len());
                write!(
                    f,
                    "{version} {src}.{sport} > {dst}.{dport}: UDP, length {len}"
                )
            }
            Transport::Other { protocol, payload } => {
                let len = payload.len();
                write!(
                    f,
                    "{version} {src} > {dst}: protocol {protocol}, length {len}"
                )
            }
        }
    }
}

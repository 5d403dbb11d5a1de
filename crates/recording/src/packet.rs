//! What is looked at of a captured packet: the fields of its headers.

use std::net::SocketAddr;
use std::ops::Range;

use gargalo_units::{Ecn, Instant, Seq};
use gargalo_wire::ip::{Addresses, TCP, UDP};
use gargalo_wire::tcp::{Flags, Options};
use gargalo_wire::{ipv4, ipv6, tcp, udp};

use crate::rtp;

/// A packet of TCP or UDP.
#[derive(Clone, Debug)]
pub struct Packet {
    /// When it was captured, since the first packet.
    pub time: Instant,
    /// Number of the place where it was captured.
    pub place: usize,
    /// Sender and receiver.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// What follows the IP header.
    pub transport: Transport,
}

/// The header above IP.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram with so many bytes of payload.
    Udp {
        /// Payload.
        payload: u32,
        /// The header of RTP, if it can be one.
        rtp: Option<rtp::Header>,
        /// The identification of the IP packet; version 6 has none.
        ident: u16,
        /// Where in the IP packet that payload is which the capture has kept.
        kept: Range<usize>,
    },
}

/// The header of a TCP segment, and how much payload it had, kept or not.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Sequence number of the SYN, or of the first byte of payload.
    pub seq: Seq,
    /// Acknowledgement number; meaningful with the flag ACK.
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// Window, not scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload: u32,
    /// Bytes of the headers of IP and TCP.
    pub headers: u32,
    /// Options, as far as the capture has them.
    pub options: Options,
}

/// Why a frame is no packet that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// No TCP and no UDP.
    OtherProtocol,
    /// A fragment: what it belongs to is in another packet.
    Fragment,
    /// Headers that are cut off, or that make no sense.
    Malformed,
}

/// Reads the headers of an IP packet of which a capture kept `bytes`; `length` is that of the whole, with what the link
/// may have added to it.
pub fn parse(time: Instant, place: usize, bytes: &[u8], length: u32) -> Result<Packet, Unused> {
    let malformed = |_| Unused::Malformed;
    let (addresses, ecn, size, protocol, rest);
    let mut ident = 0;
    if bytes.first().is_some_and(|b| b >> 4 == 4) {
        let ip = ipv4::Packet::parse_start(bytes).map_err(malformed)?;
        if ip.fragment_offset() > 0 {
            return Err(Unused::Fragment);
        }
        let (src, dst) = (ip.src(), ip.dst());
        addresses = Addresses::V4 { src, dst };
        (ecn, protocol, rest) = (ip.ecn(), ip.protocol(), ip.payload());
        ident = ip.ident();
        // A device that cuts segments into packets is handed one without a length if it is too long for the field.
        size = match ip.total_len() {
            0 => length,
            total => total as u32,
        };
    } else {
        let ip = ipv6::Packet::parse_start(bytes).map_err(malformed)?;
        let (src, dst) = (ip.src(), ip.dst());
        addresses = Addresses::V6 { src, dst };
        ecn = ip.ecn();
        (protocol, rest) = ip.upper_layer().map_err(|e| match e {
            gargalo_wire::ParseError::Fragment => Unused::Fragment,
            _ => Unused::Malformed,
        })?;
        size = match ip.total_len() {
            ipv6::HEADER_LEN => length,
            total => total as u32,
        };
    }
    // Headers of IP before the transport's; what was kept of a packet may end anywhere behind.
    let before = rest.as_ptr().addr() - bytes.as_ptr().addr();
    let above = size.saturating_sub(before as u32);
    let (ports, transport) = match protocol {
        TCP => segment(rest, above, before as u32)?,
        UDP => {
            let datagram = udp::Packet::parse_start(rest).map_err(malformed)?;
            let payload = above.saturating_sub(udp::HEADER_LEN as u32);
            let rtp = rtp::Header::of(datagram.payload());
            let start = before + udp::HEADER_LEN;
            let kept = start..start + datagram.payload().len().min(payload as usize);
            (
                (datagram.src_port(), datagram.dst_port()),
                Transport::Udp {
                    payload,
                    rtp,
                    ident,
                    kept,
                },
            )
        }
        _ => return Err(Unused::OtherProtocol),
    };
    Ok(Packet {
        time,
        place,
        from: SocketAddr::new(addresses.src(), ports.0),
        to: SocketAddr::new(addresses.dst(), ports.1),
        ecn,
        transport,
    })
}

/// The ports and the header of a segment of `length` bytes behind so many of IP; options that were cut off count as
/// absent.
fn segment(bytes: &[u8], length: u32, before: u32) -> Result<((u16, u16), Transport), Unused> {
    let mut whole = [0; 60];
    let kept = bytes.len().min(whole.len());
    whole[..kept].copy_from_slice(&bytes[..kept]);
    if kept < tcp::HEADER_LEN {
        return Err(Unused::Malformed);
    }
    let header = tcp::Packet::parse(&whole).map_err(|_| Unused::Malformed)?;
    let header_len = header.header_len() as u32;
    if length < header_len {
        return Err(Unused::Malformed);
    }
    let options = header.option_bytes();
    let there = options.len().min(kept - tcp::HEADER_LEN);
    let segment = Segment {
        seq: header.seq(),
        ack: header.ack(),
        flags: header.flags(),
        window: header.window(),
        payload: length - header_len,
        headers: before + header_len,
        options: Options::decode_prefix(&options[..there]),
    };
    Ok((
        (header.src_port(), header.dst_port()),
        Transport::Tcp(segment),
    ))
}

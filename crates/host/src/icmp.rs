//! ICMP (RFC 792) and ICMPv6 (RFC 4443) messages: parsed on receipt, built as bytes for sending.

use std::net::{IpAddr, SocketAddr};

use gargalo_units::Seq;
use gargalo_wire::ip::{Addresses, Header, TCP, UDP};
use gargalo_wire::{Checksum, ipv4, ipv6};

/// Protocol number of ICMP.
pub(crate) const ICMP: u8 = 1;
/// Protocol number of ICMPv6.
pub(crate) const ICMPV6: u8 = 58;

/// Length of type, code, checksum and the word that follows.
const HEADER_LEN: usize = 8;

/// The meaning of a message for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// An echo request: identifier and sequence number, then data.
    EchoRequest(&'a [u8]),
    /// An error about a datagram that we sent.
    Error(Problem, Quoted),
    /// The checksum is wrong.
    BadChecksum,
    /// Another message, which does not concern a host without routes and neighbours.
    Other,
}

/// The error about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It was longer than the next link's MTU, in bytes; 0 if the router does not report the MTU.
    TooBig(u32),
    /// No socket at the destination has the port (port unreachable).
    Port,
    /// A hard error (RFC 1122 §4.2.3.9: protocol; RFC 5461 §2).
    Hard,
    /// A soft error: no route, host down, time exceeded.
    Soft,
}

/// The part of our datagram that an error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quoted {
    /// Our address is the source.
    pub(crate) addresses: Addresses,
    /// TCP or UDP.
    pub(crate) protocol: u8,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    /// Sequence number, if it was TCP.
    pub(crate) seq: Seq,
    /// Length of the whole datagram.
    pub(crate) length: u32,
}

impl Quoted {
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.addresses.src(), self.src_port)
    }
    pub(crate) fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.addresses.dst(), self.dst_port)
    }

    /// Parses the first bytes of a datagram: at least the header and 8 bytes (RFC 792).
    fn parse(bytes: &[u8]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let (addresses, protocol, length, header_len) = match bytes.first()? >> 4 {
            4 => {
                let header_len = usize::from(bytes[0] & 0xf) * 4;
                // Only the first fragment has ports.
                if header_len < ipv4::HEADER_LEN || u16_at(6)? & 0x1fff != 0 {
                    return None;
                }
                let src: [u8; 4] = *bytes.get(12..)?.first_chunk()?;
                let dst: [u8; 4] = *bytes.get(16..)?.first_chunk()?;
                let addresses = Addresses::V4 {
                    src: src.into(),
                    dst: dst.into(),
                };
                (addresses, bytes[9], u32::from(u16_at(2)?), header_len)
            }
            6 => {
                let src: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
                let dst: [u8; 16] = *bytes.get(24..)?.first_chunk()?;
                let addresses = Addresses::V6 {
                    src: src.into(),
                    dst: dst.into(),
                };
                // We send no extension headers.
                let length = u32::from(u16_at(4)?) + ipv6::HEADER_LEN as u32;
                (addresses, bytes[6], length, ipv6::HEADER_LEN)
            }
            _ => return None,
        };
        let transport: &[u8; 8] = bytes.get(header_len..)?.first_chunk()?;
        let [a, b, c, d, seq @ ..] = *transport;
        matches!(protocol, TCP | UDP).then(|| Self {
            addresses,
            protocol,
            src_port: u16::from_be_bytes([a, b]),
            dst_port: u16::from_be_bytes([c, d]),
            seq: Seq::new(u32::from_be_bytes(seq)),
            length,
        })
    }
}

impl<'a> Message<'a> {
    /// Parses the bytes after the IP header.
    pub(crate) fn parse(addresses: &Addresses, bytes: &'a [u8]) -> Self {
        let Some((head, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Self::Other;
        };
        let v6 = matches!(addresses, Addresses::V6 { .. });
        if sum(addresses, bytes) != 0 {
            return Self::BadChecksum;
        }
        let [kind, code, _, _, word @ ..] = *head;
        let word = u32::from_be_bytes(word);
        let problem = match (v6, kind, code) {
            (false, 8, 0) | (true, 128, 0) => return Self::EchoRequest(&bytes[4..]),
            (false, 3, 4) => Problem::TooBig(word & 0xffff),
            (true, 2, _) => Problem::TooBig(word),
            (false, 3, 3) | (true, 1, 4) => Problem::Port,
            // Protocol unreachable, administratively prohibited.
            (false, 3, 2 | 9 | 10 | 13) | (true, 1, 1 | 5 | 6) | (true, 4, _) => Problem::Hard,
            (false, 3 | 11, _) | (true, 1 | 3, _) => Problem::Soft,
            _ => return Self::Other,
        };
        match Quoted::parse(body) {
            // Passed on to the connection or socket concerned.
            Some(q) if q.addresses.src() == addresses.dst() => Self::Error(problem, q),
            _ => Self::Other,
        }
    }
}

fn sum(addresses: &Addresses, message: &[u8]) -> u16 {
    let start = match addresses {
        Addresses::V4 { .. } => Checksum::new(),
        // RFC 4443 §2.3.
        Addresses::V6 { .. } => addresses.pseudo_header(ICMPV6, message.len() as u32),
    };
    start.add_bytes(message).finish()
}

/// The answer to an echo request: `rest` is what follows its checksum.
pub(crate) fn echo_reply(header: &Header, rest: &[u8]) -> Option<Vec<u8>> {
    let kind = match header.addresses {
        Addresses::V4 { .. } => 0,
        Addresses::V6 { .. } => 129,
    };
    build(header, [kind, 0], &[rest])
}

/// A port unreachable error about the datagram `quoted` (RFC 1122 §3.2.2.1, RFC 4443 §3.1).
pub(crate) fn port_unreachable(header: &Header, quoted: &[u8]) -> Option<Vec<u8>> {
    // As much as fits into the minimum MTU (RFC 1812 §4.3.2.3: 576 bytes, RFC 4443 §3.1: 1280).
    let (kind, most) = match header.addresses {
        Addresses::V4 { .. } => ([3, 3], 576 - ipv4::HEADER_LEN - HEADER_LEN),
        Addresses::V6 { .. } => ([1, 4], 1280 - ipv6::HEADER_LEN - HEADER_LEN),
    };
    let quoted = quoted.get(..most).unwrap_or(quoted);
    build(header, kind, &[&[0; 4], quoted])
}

/// The error of a router with address `from` about a datagram that is too long for its next link of `mtu` bytes
/// (RFC 1191 §4, RFC 4443 §3.2), as a whole datagram to its source.
///
/// `None` when no error is sent: about datagrams that may be fragmented, ICMP errors, fragments and invalid
/// datagrams (RFC 1812 §4.3.2.7, RFC 4443 §2.4), or if the families differ.
pub fn packet_too_big(from: IpAddr, mtu: u32, datagram: &[u8]) -> Option<Vec<u8>> {
    let (source, protocol, mut next) = match datagram.first()? >> 4 {
        4 => {
            let packet = ipv4::Packet::parse(datagram).ok()?;
            if !packet.dont_fragment() || packet.is_fragment() {
                return None;
            }
            let kind = packet.payload().first().copied();
            (packet.src().into(), packet.protocol(), kind)
        }
        _ => {
            let packet = ipv6::Packet::parse(datagram).ok()?;
            let (protocol, payload) = packet.upper_layer().ok()?;
            (packet.src().into(), protocol, payload.first().copied())
        }
    };
    next = next.filter(|_| protocol == ICMP || protocol == ICMPV6);
    let is_error = match (protocol, next) {
        (ICMP, Some(kind)) => !matches!(kind, 0 | 8),
        (ICMPV6, Some(kind)) => kind < 128,
        _ => false,
    };
    let addresses = Addresses::new(from, source)?;
    let broadcast = matches!(source, IpAddr::V4(a) if a.is_broadcast());
    if is_error || broadcast || source.is_multicast() || source.is_unspecified() {
        return None;
    }
    let (kind, most) = match addresses {
        Addresses::V4 { .. } => ([3, 4], 576 - ipv4::HEADER_LEN - HEADER_LEN),
        Addresses::V6 { .. } => ([2, 0], 1280 - ipv6::HEADER_LEN - HEADER_LEN),
    };
    let quoted = datagram.get(..most).unwrap_or(datagram);
    build(&Header::new(addresses), kind, &[&mtu.to_be_bytes(), quoted])
}

/// `None`: too long.
fn build(header: &Header, kind: [u8; 2], parts: &[&[u8]]) -> Option<Vec<u8>> {
    let len = 4 + parts.iter().map(|p| p.len()).sum::<usize>();
    let protocol = match header.addresses {
        Addresses::V4 { .. } => ICMP,
        Addresses::V6 { .. } => ICMPV6,
    };
    let mut out = Vec::with_capacity(len + ipv6::HEADER_LEN);
    header
        .emit(protocol, u32::try_from(len).ok()?, &mut out)
        .ok()?;
    let start = out.len();
    out.extend_from_slice(&kind);
    out.extend_from_slice(&[0, 0]);
    for part in parts {
        out.extend_from_slice(part);
    }
    let sum = sum(&header.addresses, &out[start..]);
    out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_wire::ip::{Datagram, Transport, Verify};
    use gargalo_wire::tcp::Segment;
    use proptest::prelude::*;

    fn addresses(v6: bool) -> Addresses {
        if v6 {
            let [src, dst] = [1, 2].map(|n| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
            Addresses::V6 { src, dst }
        } else {
            let [src, dst] = [1, 2].map(|n| std::net::Ipv4Addr::new(10, 0, 0, n));
            Addresses::V4 { src, dst }
        }
    }

    #[test]
    fn a_router_names_its_mtu_and_the_segment() {
        for v6 in [false, true] {
            let addresses = addresses(v6);
            let segment = Segment {
                src_port: 7,
                dst_port: 8,
                payload: gargalo_wire::tcp::Payload::real(vec![0; 1400].into()),
                ..Segment::default()
            };
            let mut datagram = Vec::new();
            Header::new(addresses)
                .emit_tcp(&segment, &mut datagram)
                .unwrap();
            let router = match addresses.dst() {
                IpAddr::V4(_) => IpAddr::from([10, 0, 0, 254]),
                IpAddr::V6(_) => "fd00::fe".parse().unwrap(),
            };
            let report = packet_too_big(router, 1300, &datagram).unwrap();
            let parsed = Datagram::parse(&report, Verify::All).unwrap();
            assert_eq!(parsed.header.addresses.dst(), addresses.src());
            let Transport::Other { payload, .. } = &parsed.transport else {
                panic!("not ICMP: {parsed}");
            };
            let Message::Error(Problem::TooBig(1300), quoted) =
                Message::parse(&parsed.header.addresses, payload)
            else {
                panic!("not understood");
            };
            assert_eq!((quoted.src_port, quoted.dst_port), (7, 8));
            assert_eq!(
                packet_too_big(router, 1300, &report),
                None,
                "no error about an error"
            );
            for n in 0..datagram.len() {
                let _ = packet_too_big(router, 1300, &datagram[..n]);
            }
        }
    }

    #[test]
    fn an_error_about_our_segment_is_understood_and_one_about_another_is_not() {
        for v6 in [false, true] {
            let (ours, back) = (addresses(v6), addresses(v6).reversed());
            let mut datagram = Vec::new();
            let segment = Segment {
                src_port: 7,
                dst_port: 80,
                seq: Seq::new(99),
                ..Segment::default()
            };
            let length = Header::new(ours).emit_tcp(&segment, &mut datagram).unwrap();
            let error = port_unreachable(&Header::new(back), &datagram).unwrap();
            let start = back.header_len() as usize;
            let expected = Quoted {
                addresses: ours,
                protocol: TCP,
                src_port: 7,
                dst_port: 80,
                seq: Seq::new(99),
                length,
            };
            let parsed = Message::parse(&back, &error[start..]);
            assert_eq!(parsed, Message::Error(Problem::Port, expected));
            let mut wrong = error[start..].to_vec();
            wrong[9] ^= 1;
            assert_eq!(Message::parse(&back, &wrong), Message::BadChecksum);
            let foreign = port_unreachable(&Header::new(ours), &datagram).unwrap();
            assert_eq!(Message::parse(&ours, &foreign[start..]), Message::Other);
        }
    }

    #[test]
    fn a_quotation_is_cut_to_the_least_mtu() {
        for (v6, most) in [(false, 576), (true, 1280)] {
            let error = port_unreachable(&Header::new(addresses(v6)), &[0; 5000]);
            assert_eq!(error.unwrap().len(), most);
        }
        assert_eq!(
            echo_reply(&Header::new(addresses(false)), &[0; 70_000]),
            None
        );
    }

    proptest! {
        #[test]
        fn anything_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..120), v6: bool, kind: u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind % 16;
            }
            let a = addresses(v6);
            if bytes.len() >= 4 {
                bytes[2..4].fill(0);
                let right = sum(&a, &bytes);
                bytes[2..4].copy_from_slice(&right.to_be_bytes());
            }
            prop_assert_ne!(Message::parse(&a, &bytes), Message::BadChecksum);
        }
    }
}

//! The header fields of a datagram that the emulated network uses, read in place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gargalo_units::Ecn;
use gargalo_wire::ip;

/// The header fields of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) ecn: Ecn,
    /// A hash of addresses, protocol and ports.
    pub(crate) flow: u32,
}

/// Reads a datagram's header; `None` if it is not IP, or truncated.
#[inline]
pub(crate) fn read_header(datagram: &[u8]) -> Option<Header> {
    match datagram.first()? >> 4 {
        4 => v4(datagram),
        6 => v6(datagram),
        _ => None,
    }
}

fn v4(d: &[u8]) -> Option<Header> {
    let header = d.first_chunk::<20>()?;
    let length = usize::from(header[0] & 15) * 4;
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
    let ports = if fragment {
        None
    } else {
        ports(header[9], d.get(length..)?)
    };
    Some(Header {
        src: Ipv4Addr::new(s0, s1, s2, s3).into(),
        dst: Ipv4Addr::new(d0, d1, d2, d3).into(),
        ecn: Ecn::from_bits(header[1]),
        flow: hash(header[12..].iter().copied(), header[9], ports),
    })
}

fn v6(d: &[u8]) -> Option<Header> {
    let header = d.first_chunk::<40>()?;
    let (src, dst) = header[8..].split_at(16);
    let address = |a: &[u8]| a.first_chunk::<16>().map(|a| Ipv6Addr::from(*a).into());
    let class = (header[0] << 4) | (header[1] >> 4);
    Some(Header {
        src: address(src)?,
        dst: address(dst)?,
        ecn: Ecn::from_bits(class),
        flow: hash(
            header[8..].iter().copied(),
            header[6],
            ports(header[6], &d[40..]),
        ),
    })
}

/// Most bytes that are kept of a datagram that is neither TCP nor UDP.
const OTHER: usize = 128;

/// Length in bytes of the headers of a datagram: of IP, and of TCP or UDP in it. Other datagrams count with their
/// beginning.
pub(crate) fn headers(datagram: &[u8]) -> usize {
    let byte = |at: usize| usize::from(datagram.get(at).copied().unwrap_or(0));
    let (ip, protocol) = match byte(0) >> 4 {
        4 => ((byte(0) & 15) * 4, byte(9)),
        6 => (40, byte(6)),
        _ => (0, 0),
    };
    let all = match u8::try_from(protocol) {
        Ok(ip::TCP) => ip + (byte(ip + 12) >> 4) * 4,
        Ok(ip::UDP) => ip + 8,
        _ => OTHER,
    };
    all.min(datagram.len())
}

fn ports(protocol: u8, transport: &[u8]) -> Option<[u8; 4]> {
    matches!(protocol, ip::TCP | ip::UDP)
        .then(|| transport.first_chunk::<4>().copied())
        .flatten()
}

/// The source and destination port of a TCP segment or UDP datagram; `None`: it is neither, or a later fragment.
pub(crate) fn port_pair(datagram: &[u8]) -> Option<(u16, u16)> {
    let byte = |at: usize| datagram.get(at).copied();
    let (header, protocol) = match byte(0)? >> 4 {
        4 if u16::from_be_bytes([byte(6)?, byte(7)?]) & 0x1fff == 0 => {
            (usize::from(byte(0)? & 15) * 4, byte(9)?)
        }
        6 => (40, byte(6)?),
        _ => return None,
    };
    let [a, b, c, d] = ports(protocol, datagram.get(header..)?)?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Hashes with FNV-1a: good enough for fair queueing, and the same in every run.
fn hash(addresses: impl Iterator<Item = u8>, protocol: u8, ports: Option<[u8; 4]>) -> u32 {
    let rest = ports.into_iter().flatten();
    addresses
        .chain([protocol])
        .chain(rest)
        .fold(0x811c_9dc5, |h, byte| {
            (h ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
}

/// Sets congestion experienced in a datagram that [`read_header`] accepted (RFC 3168 §5), and mends the
/// checksum (RFC 1624).
pub(crate) fn mark(datagram: &mut [u8]) {
    match datagram {
        [first, class, ..] if *first >> 4 == 6 => {
            let _ = first;
            *class |= 0x30;
        }
        [_, tos, _, _, _, _, _, _, _, _, high, low, ..] => {
            let added = u16::from(3 & !*tos);
            *tos |= 3;
            // The complement of a sum that grew by `added`.
            let (sum, carry) = u16::from_be_bytes([*high, *low]).overflowing_sub(added);
            [*high, *low] = sum.wrapping_sub(u16::from(carry)).to_be_bytes();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_wire::ip::{Addresses, Datagram, Verify};
    use gargalo_wire::tcp::Segment;

    fn datagram(src: &str, dst: &str, port: u16, ecn: Ecn) -> Vec<u8> {
        let addresses = Addresses::new(src.parse().unwrap(), dst.parse().unwrap()).unwrap();
        let header = ip::Header {
            ecn,
            ..ip::Header::new(addresses)
        };
        let segment = Segment {
            src_port: port,
            dst_port: 80,
            ..Segment::default()
        };
        let mut out = Vec::new();
        header.emit_tcp(&segment, &mut out).unwrap();
        out
    }

    #[test]
    fn headers_end_where_the_payload_begins() {
        for (src, dst, ip) in [("10.0.0.1", "10.0.0.2", 20), ("fd00::1", "fd00::2", 40)] {
            let mut tcp = datagram(src, dst, 1000, Ecn::NotEct);
            let whole = tcp.len();
            tcp.extend([0; 1000]);
            assert_eq!(headers(&tcp), whole);
            assert_eq!(headers(&tcp[..ip]), ip, "cut off");
            let protocol = if ip == 20 { 9 } else { 6 };
            tcp[protocol] = ip::UDP;
            assert_eq!(headers(&tcp), ip + 8);
            tcp[protocol] = 1;
            assert_eq!(headers(&tcp), OTHER);
        }
        assert_eq!(headers(&[]), 0);
        assert_eq!(headers(&[0x45; 3]), 3);
    }

    #[test]
    fn both_versions_are_read_and_marked() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let mut d = datagram(src, dst, 1000, Ecn::Ect0);
            let g = read_header(&d).unwrap();
            assert_eq!((g.src, g.dst), (src.parse().unwrap(), dst.parse().unwrap()));
            assert_eq!(g.ecn, Ecn::Ect0);
            let other = read_header(&datagram(src, dst, 1001, Ecn::Ect0)).unwrap();
            assert_ne!(g.flow, other.flow);
            mark(&mut d);
            assert_eq!(read_header(&d).unwrap().ecn, Ecn::Ce);
            let parsed = Datagram::parse(&d, Verify::All).expect("the checksum still fits");
            assert_eq!(parsed.header.ecn, Ecn::Ce);
        }
    }

    #[test]
    fn every_start_of_a_datagram_is_survived() {
        for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let d = datagram(src, dst, 1000, Ecn::Ect0);
            for n in 0..d.len() {
                let _ = read_header(&d[..n]);
                mark(&mut d[..n].to_vec());
            }
        }
    }
}

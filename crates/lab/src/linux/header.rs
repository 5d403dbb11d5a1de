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

/// The transport of a datagram.
pub(crate) struct Transport {
    pub(crate) protocol: u8,
    /// Where its header begins.
    pub(crate) offset: usize,
    /// More-fragments bit and fragment offset of IPv4; 0: the datagram is whole.
    pub(crate) fragment: u16,
}

/// Finds the transport of a datagram; `None` if it is not IP, or truncated.
#[inline]
pub(crate) fn transport(datagram: &[u8]) -> Option<Transport> {
    match datagram.first()? >> 4 {
        4 => {
            let header = datagram.first_chunk::<20>()?;
            Some(Transport {
                protocol: header[9],
                offset: usize::from(header[0] & 15) * 4,
                fragment: u16::from_be_bytes([header[6], header[7]]) & 0x3fff,
            })
        }
        6 => Some(Transport {
            protocol: datagram.first_chunk::<40>()?[6],
            offset: 40,
            fragment: 0,
        }),
        _ => None,
    }
}

/// Reads a datagram's header; `None` if it is not IP, or truncated.
#[inline]
pub(crate) fn read_header(datagram: &[u8]) -> Option<Header> {
    let found = transport(datagram)?;
    let ports = match found.fragment & LATER {
        0 => ports(found.protocol, datagram.get(found.offset..)?),
        _ => None,
    };
    let flow = |addresses: &[u8]| hash(addresses, found.protocol, ports);
    if datagram[0] >> 4 == 4 {
        let addresses = datagram[12..].first_chunk::<8>()?;
        let [s0, s1, s2, s3, d0, d1, d2, d3] = *addresses;
        return Some(Header {
            src: Ipv4Addr::new(s0, s1, s2, s3).into(),
            dst: Ipv4Addr::new(d0, d1, d2, d3).into(),
            ecn: Ecn::from_bits(datagram[1]),
            flow: flow(addresses),
        });
    }
    let addresses = datagram[8..].first_chunk::<32>()?;
    let address = |a: &[u8]| a.first_chunk::<16>().map(|a| Ipv6Addr::from(*a).into());
    Some(Header {
        src: address(&addresses[..16])?,
        dst: address(&addresses[16..])?,
        ecn: Ecn::from_bits((datagram[0] << 4) | (datagram[1] >> 4)),
        flow: flow(addresses),
    })
}

/// The fragment offset: not 0 in later fragments, which have no ports.
const LATER: u16 = 0x1fff;

/// Most bytes that are kept of a datagram that is neither TCP nor UDP.
const OTHER: usize = 128;

/// Length in bytes of the headers of a datagram: of IP, and of TCP or UDP in it. Other datagrams count with their
/// beginning.
pub(crate) fn headers(datagram: &[u8]) -> usize {
    let all = transport(datagram).map_or(OTHER, |t| match t.protocol {
        ip::TCP => {
            let words = datagram.get(t.offset + 12).map_or(0, |b| b >> 4);
            t.offset + usize::from(words) * 4
        }
        ip::UDP => t.offset + 8,
        _ => OTHER,
    });
    all.min(datagram.len())
}

fn ports(protocol: u8, transport: &[u8]) -> Option<[u8; 4]> {
    matches!(protocol, ip::TCP | ip::UDP)
        .then(|| transport.first_chunk::<4>().copied())
        .flatten()
}

/// The source and destination port of a TCP segment or UDP datagram; `None`: it is neither, or a later fragment.
pub(crate) fn port_pair(datagram: &[u8]) -> Option<(u16, u16)> {
    let found = transport(datagram).filter(|t| t.fragment & LATER == 0)?;
    let [a, b, c, d] = ports(found.protocol, datagram.get(found.offset..)?)?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Hashes with FNV-1a: good enough for fair queueing, and the same in every run.
fn hash(addresses: &[u8], protocol: u8, ports: Option<[u8; 4]>) -> u32 {
    let rest = ports.into_iter().flatten();
    let addresses = addresses.iter().copied();
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
        [first, class, ..] if *first >> 4 == 6 => *class |= 0x30,
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

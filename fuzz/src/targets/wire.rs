//! Parsers of packets: no panic, and what is parsed can be written and parsed again.

use gargalo_wire::ip::{Addresses, Datagram, Transport, Verify};
use gargalo_wire::mptcp::MptcpOption;
use gargalo_wire::tcp::{Options, Packet, Segment};

/// Checks TCP and MPTCP options.
pub(crate) fn tcp_options(bytes: &[u8]) {
    let option = MptcpOption::decode(bytes);
    let mut out = Vec::new();
    option.encode(&mut out);
    assert_eq!(out.len(), option.len() as usize);
    assert_eq!(MptcpOption::decode(&out[2..]), option);

    let bytes = &bytes[..bytes.len().min(40)];
    let options = Options::decode_prefix(bytes);
    if let Ok(strict) = Options::decode(bytes) {
        assert_eq!(strict, options);
    }
    out.clear();
    options.emit(&mut out).expect("decoded options fit");
    assert_eq!(out.len() as u32, options.padded_len());
    assert_eq!(Options::decode(&out).as_ref(), Ok(&options));
}

/// Checks a TCP header, its options and the payload.
pub(crate) fn tcp_segment(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else {
        return;
    };
    let segment = Segment::of(&packet);
    assert!(!segment.to_string().is_empty());
    let addresses = Addresses::V4 {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
    };
    let mut out = Vec::new();
    segment
        .emit_header(&addresses, &mut out)
        .expect("decoded options fit");
    assert_eq!(out.len() as u32, segment.header_len());
    out.extend_from_slice(packet.payload());
    let again = Packet::parse(&out).expect("what was written is a segment");
    assert!(again.checksum_is_right(&addresses));
    assert_eq!(Segment::of(&again), segment);
}

/// Checks datagrams of both address families.
pub(crate) fn ip_datagram(bytes: &[u8]) {
    // Random bytes hardly ever have a correct checksum.
    let _ = Datagram::parse(bytes, Verify::All);
    let Ok(datagram) = Datagram::parse(bytes, Verify::Nothing) else {
        return;
    };
    assert!(!datagram.to_string().is_empty());
    let mut out = Vec::new();
    let written = match &datagram.transport {
        Transport::Tcp(segment) => datagram.header.emit_tcp(segment, &mut out),
        Transport::Udp(udp) => datagram.header.emit_udp(udp, &mut out),
        Transport::Other { .. } => return,
    };
    // Aligned options may lengthen a datagram beyond the limit of IP.
    if written.is_ok() {
        assert_eq!(Datagram::parse(&out, Verify::All).as_ref(), Ok(&datagram));
    }
}

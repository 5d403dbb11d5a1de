//! Round trips of all headers; malformed input is refused without a panic.

use crate::common::{bytes, header, mptcp, options, segment, spelt_out};
use gargalo_wire::ip::{Addresses, Datagram, Transport, Verify};
use gargalo_wire::mptcp::MptcpOption;
use gargalo_wire::tcp::{MAX_OPTIONS_LEN, Options, Segment};
use gargalo_wire::{EmitError, Layer, ParseError, ipv4, ipv6, tcp, udp};
use proptest::prelude::*;

/// Writes options, or checks that they are refused.
fn emitted(options: &Options) -> Option<Vec<u8>> {
    let mut out = vec![7];
    match options.emit(&mut out) {
        Ok(()) => Some(out.split_off(1)),
        Err(e) => {
            assert_eq!(out, [7], "nothing is written on failure");
            let length = options.padded_len();
            assert_eq!(e, EmitError::OptionsTooLong { length });
            assert!(length > MAX_OPTIONS_LEN);
            None
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mptcp_options(option in mptcp()) {
        let mut out = Vec::new();
        option.encode(&mut out);
        prop_assert_eq!(out.len(), option.len() as usize);
        prop_assert_eq!(usize::from(out[1]), out.len());
        prop_assert_eq!(MptcpOption::decode(&out[2..]), option);
    }

    #[test]
    fn tcp_options(options in options()) {
        let Some(wire) = emitted(&options) else { return Ok(()) };
        prop_assert_eq!(wire.len(), options.padded_len() as usize);
        prop_assert_eq!(wire.len() % 4, 0);
        let mut expected = options.clone();
        expected.fit();
        prop_assert_eq!(&Options::decode(&wire).unwrap(), &expected);
        prop_assert_eq!(expected.padded_len(), options.padded_len());
        // All options that fit were written.
        if options.len() <= MAX_OPTIONS_LEN {
            prop_assert_eq!(expected, options);
        }
    }

    #[test]
    fn decoded_options_survive_being_written(wire in bytes(40)) {
        let prefix = Options::decode_prefix(&wire);
        if let Ok(strict) = Options::decode(&wire) {
            prop_assert_eq!(&strict, &prefix);
        }
        let again = emitted(&prefix).expect("what was decoded from 40 bytes fits in 40 bytes");
        prop_assert_eq!(Options::decode(&again).unwrap(), prefix);
    }

    #[test]
    fn datagrams(header in header(), segment in segment(), padding in 0..20usize) {
        let mut out = Vec::new();
        let Ok(len) = header.emit_tcp(&segment, &mut out) else {
            prop_assert!(out.is_empty());
            return Ok(());
        };
        prop_assert_eq!(len as usize, out.len());
        prop_assert_eq!(len, segment.wire_len() + header.addresses.header_len());
        let mut headers = Vec::new();
        prop_assert_eq!(header.emit_tcp_headers(&segment, &mut headers), Ok(len));
        prop_assert_eq!(&headers[..], &out[..(len - segment.payload.len()) as usize]);

        // Ethernet pads short frames.
        out.resize(out.len() + padding, 0xaa);
        let parsed = Datagram::parse(&out, Verify::All).unwrap();
        let mut expected = Segment { payload: spelt_out(&segment.payload), ..segment };
        expected.options.fit();
        prop_assert_eq!(parsed.header, header);
        prop_assert!(!parsed.to_string().is_empty());
        prop_assert_eq!(parsed.transport, Transport::Tcp(expected));
    }

    #[test]
    fn udp_datagrams(header in header(), ports in any::<(u16, u16)>(), data in bytes(1500)) {
        let datagram = udp::Datagram {
            src_port: ports.0,
            dst_port: ports.1,
            payload: tcp::Payload::real(data),
        };
        let mut out = Vec::new();
        header.emit_udp(&datagram, &mut out).unwrap();
        let parsed = Datagram::parse(&out, Verify::All).unwrap();
        prop_assert_eq!(parsed.transport, Transport::Udp(datagram));
    }

    #[test]
    fn truncation_is_an_error_at_every_length(header in header(), segment in segment()) {
        let mut out = Vec::new();
        if header.emit_tcp(&segment, &mut out).is_err() {
            return Ok(());
        }
        for len in 0..out.len() {
            let refused = matches!(
                Datagram::parse(&out[..len], Verify::All),
                Err(ParseError::Truncated { .. })
            );
            prop_assert!(refused);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed(header in header(), segment in segment(), at in any::<prop::sample::Index>()) {
        let mut out = Vec::new();
        if header.emit_tcp(&segment, &mut out).is_err() {
            return Ok(());
        }
        let bit = at.index(out.len() * 8);
        out[bit / 8] ^= 1 << (bit % 8);
        // IPv6 protects neither traffic class, flow label and hop limit nor the next header.
        if let Ok(parsed) = Datagram::parse(&out, Verify::All) {
            let is_v6 = matches!(header.addresses, Addresses::V6 { .. });
            prop_assert!(is_v6);
            let is_tcp = matches!(parsed.transport, Transport::Tcp(_));
            prop_assert!(parsed.header != header || !is_tcp);
        }
    }

    #[test]
    fn noise_never_panics(mut noise in prop::collection::vec(any::<u8>(), 0..120), version in 0..4u8) {
        if let Some(first) = noise.first_mut() {
            // Mostly plausible beginnings.
            *first = [0x45, 0x46, 0x60, *first][usize::from(version)];
        }
        if let Some(next) = noise.get_mut(6) {
            *next = if version == 2 { [6, 17, 0, 43, 44, 60][usize::from(*next) % 6] } else { *next };
        }
        for verify in [Verify::All, Verify::Nothing] {
            if let Ok(d) = Datagram::parse(&noise, verify) {
                let _ = d.to_string();
            }
        }
        if let Ok(p) = tcp::Packet::parse(&noise) {
            let _ = Segment::of(&p).to_string();
            for option in p.options() {
                prop_assert!(option.is_err() || option.is_ok_and(|o| o.data.len() <= 38));
            }
        }
        if let Ok(p) = ipv4::Packet::parse(&noise) {
            let _ = (ipv4::Header::of(&p), p.options(), p.checksum_is_right());
        }
        if let Ok(p) = ipv6::Packet::parse(&noise) {
            let _ = (ipv6::Header::of(&p), p.upper_layer());
        }
        let _ = MptcpOption::decode(&noise);
    }
}

#[test]
fn ip_headers_are_values() {
    let v4 = ipv4::Header {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        dscp: 46,
        ecn: gargalo_wire::Ecn::Ce,
        ident: 0xbeef,
        dont_fragment: false,
        more_fragments: true,
        fragment_offset: 0x1abc,
        ttl: 3,
        protocol: 132,
        payload_len: 4,
    };
    let mut out = Vec::new();
    v4.emit(&mut out);
    out.extend_from_slice(b"data");
    let view = ipv4::Packet::parse(&out).unwrap();
    assert!(view.checksum_is_right() && view.is_fragment());
    assert_eq!(view.payload(), b"data");
    assert_eq!(ipv4::Header::of(&view), v4);
    assert_eq!(
        Datagram::parse(&out, Verify::All),
        Err(ParseError::Fragment)
    );
    out[8] ^= 1;
    let layer = Layer::Ipv4;
    assert_eq!(
        Datagram::parse(&out, Verify::All),
        Err(ParseError::BadChecksum { layer })
    );
}

#[test]
fn ipv6_extension_headers_are_walked() {
    let mut out = Vec::new();
    ipv6::Header {
        src: "fd00::1".parse().unwrap(),
        dst: "fd00::2".parse().unwrap(),
        dscp: 0,
        ecn: gargalo_wire::Ecn::NotEct,
        flow_label: 1,
        next_header: 0,
        hop_limit: 9,
        payload_len: 8 + 16 + 8 + 3,
    }
    .emit(&mut out);
    out.extend_from_slice(&[60, 0, 1, 4, 0, 0, 0, 0]);
    out.extend_from_slice(&[44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&[132, 0, 0, 0, 1, 2, 3, 4]);
    out.extend_from_slice(&[1, 2, 3]);
    let upper = |bytes: &[u8]| {
        let view = ipv6::Packet::parse(bytes).unwrap();
        view.upper_layer().map(|(p, b)| (p, b.to_vec()))
    };
    assert_eq!(upper(&out), Ok((132, vec![1, 2, 3])));
    // More fragments follow.
    let fragment_flags = 40 + 8 + 16 + 3;
    out[fragment_flags] = 1;
    assert_eq!(upper(&out), Err(ParseError::Fragment));
    out[40 + 8 + 1] = 200;
    assert!(matches!(upper(&out), Err(ParseError::Truncated { .. })));
}

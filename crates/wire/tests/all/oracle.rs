//! Compares every header field and checksum with an independent implementation.

use crate::common::{header, segment};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use gargalo_units::Seq;
use gargalo_wire::ip::Addresses;
use gargalo_wire::tcp::Flags;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn etherparse_agrees(header in header(), segment in segment()) {
        let mut out = Vec::new();
        if header.emit_tcp(&segment, &mut out).is_err() {
            return Ok(());
        }
        let sliced = SlicedPacket::from_ip(&out).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("not TCP") };
        let sum = match (sliced.net, header.addresses) {
            (Some(NetSlice::Ipv4(ip)), Addresses::V4 { src, dst }) => {
                let ip = ip.header();
                prop_assert_eq!((ip.source_addr(), ip.destination_addr()), (src, dst));
                prop_assert_eq!(ip.ttl(), header.ttl);
                prop_assert_eq!(ip.ecn().value(), header.ecn as u8);
                prop_assert_eq!(ip.dcp().value(), header.dscp);
                prop_assert_eq!(ip.identification(), header.ident);
                prop_assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
                tcp.calc_checksum_ipv4(ip.source(), ip.destination()).unwrap()
            }
            (Some(NetSlice::Ipv6(ip)), Addresses::V6 { src, dst }) => {
                let ip = ip.header();
                prop_assert_eq!((ip.source_addr(), ip.destination_addr()), (src, dst));
                prop_assert_eq!(ip.hop_limit(), header.ttl);
                prop_assert_eq!(ip.flow_label().value(), header.flow_label);
                prop_assert_eq!(ip.traffic_class(), header.dscp << 2 | header.ecn as u8);
                tcp.calc_checksum_ipv6(ip.source(), ip.destination()).unwrap()
            }
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(tcp.checksum(), sum);
        prop_assert_eq!(tcp.source_port(), segment.src_port);
        prop_assert_eq!(tcp.destination_port(), segment.dst_port);
        prop_assert_eq!(Seq::new(tcp.sequence_number()), segment.seq);
        prop_assert_eq!(Seq::new(tcp.acknowledgment_number()), segment.ack);
        prop_assert_eq!(tcp.window_size(), segment.window);
        prop_assert_eq!(tcp.urgent_pointer(), segment.urgent);
        prop_assert_eq!(tcp.syn(), segment.flags.contains(Flags::SYN));
        prop_assert_eq!(tcp.ack(), segment.flags.contains(Flags::ACK));
        prop_assert_eq!(tcp.ns(), segment.flags.contains(Flags::AE));
        prop_assert_eq!(tcp.cwr(), segment.flags.contains(Flags::CWR));
        prop_assert_eq!(tcp.payload().len(), segment.payload.len() as usize);
        prop_assert_eq!(tcp.options().len(), segment.options.padded_len() as usize);
    }
}

//! Arbitrary headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use gargalo_units::{Ecn, Seq};
use gargalo_wire::ip::{Addresses, Header};
use gargalo_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, DataNumber, Dss, Join, List, Mapping, MptcpOption, Reset,
};
use gargalo_wire::tcp::{Extra, Flags, Options, Payload, SackBlocks, Segment, Timestamps};
use proptest::option;
use proptest::prelude::*;

pub fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..=max).prop_map(Bytes::from)
}

pub fn ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|a| IpAddr::V4(Ipv4Addr::from(a))),
        any::<[u8; 16]>().prop_map(|a| IpAddr::V6(Ipv6Addr::from(a))),
    ]
}

pub fn header() -> impl Strategy<Value = Header> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>()).prop_map(|(s, d, ident)| Header {
        ident,
        ..Header::new(Addresses::V4 {
            src: s.into(),
            dst: d.into(),
        })
    });
    let v6 =
        (any::<[u8; 16]>(), any::<[u8; 16]>(), 0..1u32 << 20).prop_map(|(s, d, label)| Header {
            flow_label: label,
            ..Header::new(Addresses::V6 {
                src: s.into(),
                dst: d.into(),
            })
        });
    (prop_oneof![v4, v6], 0..64u8, 0..4u8, any::<u8>()).prop_map(|(h, dscp, ecn, ttl)| Header {
        dscp,
        ecn: Ecn::from_bits(ecn),
        ttl,
        ..h
    })
}

fn number() -> impl Strategy<Value = DataNumber> {
    prop_oneof![
        any::<u32>().prop_map(DataNumber::Short),
        any::<u64>().prop_map(DataNumber::Long),
    ]
}

fn keys() -> impl Strategy<Value = CapableKeys> {
    let all = (
        any::<u64>(),
        any::<u64>(),
        any::<u16>(),
        any::<Option<u16>>(),
    );
    prop_oneof![
        Just(CapableKeys::None),
        any::<u64>().prop_map(CapableKeys::Sender),
        any::<(u64, u64)>().prop_map(|(sender, receiver)| CapableKeys::Both { sender, receiver }),
        all.prop_map(
            |(sender, receiver, length, checksum)| CapableKeys::BothAndData {
                sender,
                receiver,
                length,
                checksum,
            }
        ),
    ]
}

fn join() -> impl Strategy<Value = Join> {
    let ids = any::<(bool, u8)>();
    prop_oneof![
        (ids, any::<u32>(), any::<u32>()).prop_map(|((backup, address_id), t, nonce)| {
            Join::Syn {
                backup,
                address_id,
                receiver_token: t,
                nonce,
            }
        }),
        (any::<(bool, u8)>(), any::<u64>(), any::<u32>()).prop_map(
            |((backup, address_id), hmac, nonce)| Join::SynAck {
                backup,
                address_id,
                hmac,
                nonce,
            }
        ),
        any::<[u8; 20]>().prop_map(|hmac| Join::Ack { hmac }),
    ]
}

fn dss() -> impl Strategy<Value = Dss> {
    let mapping = (number(), any::<u32>(), any::<u16>(), any::<Option<u16>>()).prop_map(
        |(data_seq, subflow_seq, length, checksum)| Mapping {
            data_seq,
            subflow_seq,
            length,
            checksum,
        },
    );
    (any::<bool>(), option::of(number()), option::of(mapping)).prop_map(|(fin, ack, map)| Dss {
        data_fin: fin,
        data_ack: ack,
        mapping: map,
    })
}

pub fn mptcp() -> impl Strategy<Value = MptcpOption> {
    let add = (
        any::<u8>(),
        ip(),
        any::<Option<u16>>(),
        any::<Option<u64>>(),
    );
    prop_oneof![
        (0..16u8, any::<u8>(), keys()).prop_map(|(version, flags, keys)| MptcpOption::Capable {
            version,
            flags: CapableFlags::from_bits(flags),
            keys,
        }),
        join().prop_map(MptcpOption::Join),
        dss().prop_map(MptcpOption::Dss),
        add.prop_map(
            |(address_id, address, port, hmac)| MptcpOption::AddAddr(AddAddr {
                address_id,
                address,
                port,
                hmac,
            })
        ),
        prop::collection::vec(any::<u8>(), 1..20).prop_map(|v| MptcpOption::RemoveAddr(v.into())),
        any::<bool>().prop_map(|backup| MptcpOption::Prio { backup }),
        any::<u64>().prop_map(|data_seq| MptcpOption::Fail { data_seq }),
        any::<u64>().prop_map(|receiver_key| MptcpOption::FastClose { receiver_key }),
        (0..16u8, any::<u8>())
            .prop_map(|(flags, reason)| MptcpOption::Reset(Reset { flags, reason })),
        bytes(10).prop_map(|b| {
            let mut v = vec![0xf0];
            v.extend_from_slice(&b);
            MptcpOption::Unknown(v.into())
        }),
    ]
}

fn extra() -> impl Strategy<Value = Option<Box<Extra>>> {
    // Kinds that have no typed form.
    let other = prop::collection::vec((prop_oneof![9..30u8, 35..=255u8], bytes(6)), 0..3);
    let all = (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        option::weighted(0.3, bytes(16)),
        other,
    );
    option::of(
        all.prop_map(|(mss, window_scale, sack_permitted, fast_open, other)| {
            Box::new(Extra {
                mss,
                window_scale,
                sack_permitted,
                fast_open,
                other,
            })
        }),
    )
    .prop_map(|x| x.filter(|x| **x != Extra::default()))
}

/// Options that may or may not fit in a header.
pub fn options() -> impl Strategy<Value = Options> {
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=4).prop_map(|blocks| {
        let mut sack = SackBlocks::EMPTY;
        for (l, r) in blocks {
            sack.push(Seq::new(l), Seq::new(r));
        }
        sack
    });
    let mptcp = prop_oneof![
        2 => Just(None),
        1 => prop::collection::vec(mptcp(), 1..3).prop_map(|v| {
            let mut list = List::default();
            v.into_iter().for_each(|o| list.push(o));
            Some(Box::new(list))
        }),
    ];
    (any::<Option<(u32, u32)>>(), sack, extra(), mptcp).prop_map(|(ts, sack, extra, mptcp)| {
        Options {
            timestamps: ts.map(|(value, echo)| Timestamps { value, echo }),
            sack,
            extra,
            mptcp,
        }
    })
}

pub fn segment() -> impl Strategy<Value = Segment> {
    let payload = prop_oneof![
        bytes(1500).prop_map(Payload::real),
        (0..1500u32).prop_map(Payload::synthetic),
    ];
    let numbers = any::<(u16, u16, u32, u32, u16, u16)>();
    (numbers, 0..0x200u16, options(), payload).prop_map(|(n, flags, options, payload)| Segment {
        src_port: n.0,
        dst_port: n.1,
        seq: Seq::new(n.2),
        ack: Seq::new(n.3),
        flags: Flags::from_bits(flags),
        window: n.4,
        urgent: n.5,
        options,
        payload,
    })
}

/// The same payload with real content, as a parser returns it.
pub fn spelt_out(payload: &Payload) -> Payload {
    match payload.bytes() {
        Some(_) => payload.clone(),
        None => Payload::real(Bytes::from(vec![0; payload.len() as usize])),
    }
}

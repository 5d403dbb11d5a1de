//! Exact bytes of options, as Linux writes them and as the RFCs define them.

use bytes::Bytes;
use gargalo_units::{Ecn, Seq};
use gargalo_wire::ip::{Addresses, Datagram, Header, Verify};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, DataNumber, Dss, Mapping, MptcpOption};
use gargalo_wire::tcp::{Extra, Flags, Options, Payload, SackBlocks, Segment, Timestamps};

fn addresses() -> Addresses {
    Addresses::V4 {
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
    }
}

#[track_caller]
fn check(options: &Options, wire: &str) {
    let mut out = Vec::new();
    options.emit(&mut out).unwrap();
    let hex: Vec<_> = out.iter().map(|b| format!("{b:02x}")).collect();
    let hex: Vec<_> = hex.chunks(4).map(|w| w.concat()).collect();
    assert_eq!(hex.join(" "), wire);
    assert_eq!(out.len(), options.padded_len() as usize);
    assert_eq!(&Options::decode(&out).unwrap(), options);
}

fn sack(blocks: &[(u32, u32)]) -> SackBlocks {
    let mut sack = SackBlocks::EMPTY;
    for (l, r) in blocks {
        assert!(sack.push(Seq::new(*l), Seq::new(*r)));
    }
    sack
}

const TS: Timestamps = Timestamps {
    value: 0x0102_0304,
    echo: 0x0506_0708,
};

#[test]
fn syn() {
    let extra = Extra {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        ..Extra::default()
    };
    let mut options = Options {
        timestamps: Some(TS),
        extra: Some(Box::new(extra)),
        ..Options::default()
    };
    check(&options, "020405b4 0402080a 01020304 05060708 01030307");
    options.timestamps = None;
    check(&options, "020405b4 01010402 01030307");
    if let Some(x) = &mut options.extra {
        x.fast_open = Some(Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]));
    }
    check(
        &options,
        "020405b4 01010402 01030307 220a0102 03040506 07080101",
    );
}

#[test]
fn acknowledgements() {
    let mut options = Options {
        timestamps: Some(TS),
        ..Options::default()
    };
    check(&options, "0101080a 01020304 05060708");
    options.sack = sack(&[(1, 2)]);
    check(
        &options,
        "0101080a 01020304 05060708 0101050a 00000001 00000002",
    );
}

#[test]
fn a_fourth_sack_block_does_not_fit_beside_timestamps() {
    let mut options = Options {
        timestamps: Some(TS),
        sack: sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]),
        ..Options::default()
    };
    assert_eq!(options.padded_len(), 40);
    let mut out = Vec::new();
    options.emit(&mut out).unwrap();
    options.fit();
    assert_eq!(options.sack, sack(&[(1, 2), (3, 4), (5, 6)]));
    assert_eq!(Options::decode(&out).unwrap(), options);
    // Without them it does.
    options.timestamps = None;
    options.sack = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    assert_eq!(options.padded_len(), 36);
}

#[test]
fn mptcp_handshake_and_data() {
    let with = |option: MptcpOption| Options {
        mptcp: Some(Box::new(option.into())),
        ..Options::default()
    };
    let capable = |keys| MptcpOption::Capable {
        version: 1,
        flags: CapableFlags::HMAC_SHA256,
        keys,
    };
    check(&with(capable(CapableKeys::None)), "1e040101");
    check(
        &with(capable(CapableKeys::Sender(0x1122_3344_5566_7788))),
        "1e0c0101 11223344 55667788",
    );
    let first_data = CapableKeys::BothAndData {
        sender: 1,
        receiver: 2,
        length: 1400,
        checksum: None,
    };
    check(
        &with(capable(first_data)),
        "1e160101 00000000 00000001 00000000 00000002 05780101",
    );
    let dss = Dss {
        data_fin: false,
        data_ack: Some(DataNumber::Long(9)),
        mapping: Some(Mapping {
            data_seq: DataNumber::Long(10),
            subflow_seq: 11,
            length: 12,
            checksum: None,
        }),
    };
    let mut options = with(MptcpOption::Dss(dss));
    // Flags: data sequence number present and 8 bytes, data acknowledgement present and 8 bytes.
    check(
        &options,
        "1e1a200f 00000000 00000009 00000000 0000000a 0000000b 000c0101",
    );
    options.timestamps = Some(TS);
    assert_eq!(options.padded_len(), 40);
}

#[test]
fn experimental_fast_open_is_found() {
    let options = Options::decode(&[254, 6, 0xf9, 0x89, 1, 2]).unwrap();
    assert_eq!(options.fast_open_experimental(), Some(&[1, 2][..]));
}

#[test]
fn a_datagram_reads_like_tcpdump() {
    let segment = Segment {
        src_port: 49152,
        dst_port: 80,
        seq: Seq::new(1),
        ack: Seq::new(1),
        flags: Flags::PSH | Flags::ACK,
        window: 502,
        options: Options {
            timestamps: Some(Timestamps { value: 5, echo: 4 }),
            sack: sack(&[(1449, 2897)]),
            ..Options::default()
        },
        payload: Payload::synthetic(1448),
        ..Segment::default()
    };
    let header = Header {
        ecn: Ecn::Ect0,
        ..Header::new(addresses())
    };
    let mut out = Vec::new();
    assert_eq!(header.emit_tcp(&segment, &mut out), Ok(1512));
    let parsed = Datagram::parse(&out, Verify::All).unwrap();
    assert_eq!(
        parsed.to_string(),
        "IP 10.0.0.1.49152 > 10.0.0.2.80: Flags [P.], seq 1:1449, ack 1, win 502, \
         options [TS val 5 ecr 4,sack 1 {1449:2897}], length 1448"
    );
    let syn = Segment {
        flags: Flags::SYN | Flags::ECE | Flags::CWR,
        ..Segment::default()
    };
    assert_eq!(
        syn.to_string(),
        "0 > 0: Flags [SEW], seq 0, win 0, length 0"
    );
}

#[test]
fn too_long_is_an_error() {
    let header = Header::new(addresses());
    let mut out = Vec::new();
    let segment = |len| Segment {
        payload: Payload::synthetic(len),
        ..Segment::default()
    };
    assert_eq!(header.emit_tcp(&segment(65495), &mut out), Ok(65535));
    out.clear();
    assert!(header.emit_tcp(&segment(65496), &mut out).is_err());
    assert!(header.emit_tcp(&segment(u32::MAX - 20), &mut out).is_err());
    assert!(out.is_empty());
}

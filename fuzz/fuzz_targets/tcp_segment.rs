//! TCP header and options: no panic, and what is decoded is written and read back.
#![no_main]

use gargalo_wire::ip::Addresses;
use gargalo_wire::tcp::{Packet, Segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
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
});

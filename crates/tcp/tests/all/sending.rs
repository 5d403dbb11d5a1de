//! Writes against the send buffer.

use crate::common::*;
use gargalo_tcp::{Config, Event, Recovery};
use gargalo_units::{Bytes, Duration, Ecn, Seq};
use gargalo_wire::tcp::{Extra, Flags, SackBlocks, Segment};

/// A sender with room for five segments and a half in its buffer.
fn small() -> Config {
    Config {
        send_buffer: Bytes::new(5_500),
        ..config()
    }
}

#[test]
fn synthetic_writes_stop_at_the_send_buffer() {
    let mut pair = Pair::connected(small(), config());
    assert_eq!(pair.ends[0].write_synthetic(100_000), 5_500);
    assert_eq!(pair.ends[0].write_synthetic(1), 0);
    assert_eq!(pair.ends[0].write(real("x")), 0);
    let mut written = 5_500;
    pair.events[0].clear();
    while written < 100_000 {
        pair.run_for(ms(1));
        assert!(pair.ends[0].unacknowledged() <= 5_500);
        if pair.ends[0].write_room() > 0 {
            assert!(pair.events[0].contains(&Event::Writable));
            written += pair.ends[0].write_synthetic(100_000 - written);
        }
        assert!(pair.ends[0].unacknowledged() <= 5_500);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.read[1], 100_000);
}

/// RFC 1122 §4.2.3.4: silly window avoidance. A partial segment waits until more is written, or until no more can
/// follow.
#[test]
fn a_piece_of_a_segment_waits_for_the_rest_of_it() {
    let acknowledge = |l: &mut Lone, bytes: u32| {
        let mut ack = l.segment(Flags::ACK, 0, 0);
        ack.ack = ack.ack + bytes;
        l.end.handle(l.now, ack, Ecn::NotEct);
    };
    let mut l = Lone::new(small());
    assert_eq!(l.end.write_synthetic(100_000), 5_500);
    assert_eq!(l.sent().len(), 5);
    assert_eq!(l.end.unsent(), 500);
    // The application writes as soon as it can, and has still more.
    acknowledge(&mut l, 2_000);
    assert_eq!(l.end.write_synthetic(100_000), 2_000);
    assert_eq!(l.sent(), [". 5000:6000 ack 0", ". 6000:7000 ack 0"]);
    // It has no more: there is room, and nothing in it.
    acknowledge(&mut l, 4_500);
    assert_eq!(l.sent(), ["P. 7000:7500 ack 0"]);
    // It fills the buffer and closes: nothing can follow.
    assert_eq!(l.end.write_synthetic(2_500), 2_500);
    assert_eq!(l.sent(), [". 7500:8500 ack 0", ". 8500:9500 ack 0"]);
    l.end.close(l.now);
    assert_eq!(l.sent(), ["FP. 9500:10000 ack 0"]);
}

#[test]
fn a_full_buffer_without_more_is_sent_to_its_end() {
    let mut pair = Pair::connected(small(), config());
    assert_eq!(pair.ends[0].write_synthetic(5_500), 5_500);
    // The rest leaves with the first acknowledgement.
    pair.run_for(ms(35));
    assert_eq!(pair.read[1], 5_500);
}

/// A peer without timestamps to which ten segments were sent.
fn ten_sent() -> Lone {
    let extra = Extra {
        mss: Some(1000),
        window_scale: Some(0),
        sack_permitted: true,
        ..Extra::default()
    };
    let counting = Config {
        recovery: Recovery::Sack,
        tail_loss_probe: false,
        ..config()
    };
    let mut lone = Lone::offering(counting, extra, None);
    assert_eq!(lone.end.write_synthetic(10_000), 10_000);
    assert_eq!(lone.sent().len(), 10);
    lone
}

/// An acknowledgement of the first `ack` segments with these segments reported.
fn acknowledges(lone: &Lone, ack: u32, sacks: &[(u32, u32)]) -> Segment {
    let mut s = lone.segment(Flags::ACK, 0, 0);
    let origin = s.ack;
    s.ack = origin + ack * 1000;
    let mut blocks = SackBlocks::EMPTY;
    for (left, right) in sacks {
        blocks.push(origin + left * 1000, origin + right * 1000);
    }
    s.options.sack = blocks;
    s
}

#[test]
fn an_overtaken_acknowledgement_reports_blocks() {
    // RFC 6675 §5: any acknowledgement with SACK blocks updates the scoreboard. 2 and 4 are lost; the later
    // acknowledgement comes first and reports 5 alone.
    let mut lone = ten_sent();
    lone.now = at(1100);
    let later = acknowledges(&lone, 2, &[(5, 6)]);
    assert_eq!(lone.give(later), [""; 0]);
    let earlier = acknowledges(&lone, 1, &[(3, 4), (6, 8)]);
    let sent = lone.give(earlier.clone());
    assert_eq!(sent[0], ". 2000:3000 ack 0", "{sent:?}");
    assert_eq!(lone.end.stats().sender.lost_packets, 2);
    // The same again has no news.
    assert_eq!(lone.give(earlier), [""; 0]);
}

#[test]
fn blocks_of_an_overtaken_acknowledgement_are_no_duplicates_of_data() {
    // The first block lies below SND.UNA, but above the acknowledgement that carries it: no D-SACK (RFC 2883 §4).
    let mut lone = ten_sent();
    lone.now = at(1100);
    lone.give(acknowledges(&lone, 6, &[]));
    let before = lone.end.snapshot(lone.now);
    lone.give(acknowledges(&lone, 1, &[(2, 5)]));
    let after = lone.end.snapshot(lone.now);
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}

#[test]
fn blocks_of_an_acknowledgement_that_is_too_old_are_not_used() {
    // RFC 5961 §5.2: SEG.ACK must not be below SND.UNA - MAX.SND.WND.
    let mut lone = ten_sent();
    lone.now = at(1100);
    lone.give(acknowledges(&lone, 2, &[]));
    let at_distance = |lone: &Lone, n: u32| {
        let mut s = acknowledges(lone, 0, &[(3, 4), (5, 6), (7, 8)]);
        s.ack = Seq::new((ISN[1] + 1 + 2000).wrapping_sub(n));
        s
    };
    let absurd = at_distance(&lone, 60_001);
    assert_eq!(lone.give(absurd), [". ack 0"], "a challenge");
    assert_eq!(lone.end.stats().sender.lost_packets, 0);
    let oldest = at_distance(&lone, 60_000);
    assert_eq!(lone.give(oldest)[0], ". 2000:3000 ack 0");
}

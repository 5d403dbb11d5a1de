//! Writes against the send buffer.

mod common;

use common::*;
use gargalo_tcp::{Config, Event};
use gargalo_units::{Bytes, Duration, Ecn};
use gargalo_wire::tcp::Flags;

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

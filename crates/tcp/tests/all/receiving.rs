//! The receiving side: acknowledgements, SACK and DSACK blocks, the window.

use crate::common::*;
use gargalo_tcp::{Chunk, Config, DelayedAck, State};
use gargalo_units::{Bytes, Duration, Ecn};
use gargalo_wire::tcp::{Extra, Flags, Payload};

fn lone() -> Lone {
    Lone::new(config())
}

const NOTHING: [&str; 0] = [];

#[test]
fn every_second_segment_is_acknowledged() {
    let mut l = lone();
    for i in 0..10 {
        let sent = l.data(i * 1000, (i + 1) * 1000);
        if i % 2 == 0 {
            assert_eq!(sent, NOTHING);
        } else {
            assert_eq!(sent, [format!(". ack {}", (i + 1) * 1000)]);
        }
        l.read_all();
    }
}

#[test]
fn what_waits_in_the_receiver_counts_once() {
    let mut l = lone();
    l.data(0, 1000);
    l.data(2000, 3000);
    l.data(2500, 3500);
    assert_eq!((l.end.readable(), l.end.buffered()), (1000, 2500));
    assert_eq!(l.read_all(), 1000);
    assert_eq!(l.end.buffered(), 1500);
    l.data(1000, 2000);
    assert_eq!((l.end.readable(), l.end.buffered()), (2500, 2500));
}

#[test]
fn a_single_segment_is_acknowledged_by_the_timer() {
    let mut l = Lone::new(Config {
        delayed_ack: DelayedAck {
            timeout: ms(40),
            ..config().delayed_ack
        },
        ..config()
    });
    let start = l.now;
    assert_eq!(l.data(0, 1000), NOTHING);
    assert_eq!(l.wait(), [". ack 1000"]);
    assert_eq!(l.now, start + ms(40));
    assert_eq!(l.end.poll_timeout(), None);
}

#[test]
fn push_does_not_force_an_acknowledgement_and_the_configured_count_does() {
    let mut l = Lone::new(Config {
        delayed_ack: DelayedAck {
            every: 3,
            ..config().delayed_ack
        },
        ..config()
    });
    assert_eq!(l.give(l.segment(Flags::ACK | Flags::PSH, 0, 10)), NOTHING);
    assert_eq!(l.data(10, 20), NOTHING);
    assert_eq!(l.data(20, 30), [". ack 30"]);
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    let mut l = Lone::new(Config {
        delayed_ack: DelayedAck {
            quick: 3,
            ..config().delayed_ack
        },
        ..config()
    });
    assert_eq!(l.data(0, 10), [". ack 10"]);
    assert_eq!(l.data(10, 20), [". ack 20"]);
    assert_eq!(l.data(20, 30), [". ack 30"]);
    assert_eq!(l.data(30, 40), NOTHING);
}

#[test]
fn data_carries_the_acknowledgement() {
    let mut l = lone();
    l.data(0, 100);
    l.end.write(real("answer"));
    assert_eq!(l.sent(), ["P. 0:6 ack 100"]);
    let due = l.end.poll_timeout().unwrap();
    assert!(
        due > l.now + ms(150),
        "no delayed acknowledgement is left: {due}"
    );
}

#[test]
fn blocks_tell_the_newest_arrival_first() {
    let mut l = lone();
    assert_eq!(l.data(1000, 2000), [". ack 0 <1000:2000>"]);
    assert_eq!(l.data(3000, 4000), [". ack 0 <3000:4000> <1000:2000>"]);
    assert_eq!(
        l.data(5000, 6000),
        [". ack 0 <5000:6000> <3000:4000> <1000:2000>"]
    );
    // Three blocks fit beside timestamps.
    assert_eq!(
        l.data(7000, 8000),
        [". ack 0 <7000:8000> <5000:6000> <3000:4000>"]
    );
    assert_eq!(
        l.data(2000, 3000),
        [". ack 0 <1000:4000> <7000:8000> <5000:6000>"]
    );
    assert_eq!(l.data(0, 1000), [". ack 4000 <7000:8000> <5000:6000>"]);
    assert_eq!(l.data(6000, 7000), [". ack 4000 <5000:8000>"]);
    assert_eq!(l.data(4000, 5000), [". ack 8000"]);
    assert_eq!(l.data(8000, 9000), NOTHING);
    assert_eq!(l.read_all(), 9000);
}

#[test]
fn four_blocks_fit_without_timestamps_and_none_where_none_was_agreed() {
    let extra = Extra {
        mss: Some(1000),
        sack_permitted: true,
        ..Extra::default()
    };
    let mut l = Lone::offering(config(), extra, None);
    for i in [1, 3, 5] {
        l.data(i * 10, i * 10 + 5);
    }
    assert_eq!(l.data(70, 75), [". ack 0 <70:75> <50:55> <30:35> <10:15>"]);

    let extra = Extra {
        mss: Some(1000),
        ..Extra::default()
    };
    let mut l = Lone::offering(config(), extra, None);
    assert_eq!(l.data(10, 20), [". ack 0"]);
    assert_eq!(l.data(10, 20), [". ack 0"]);
    assert_eq!(l.data(0, 10), [". ack 20"]);
    // The duplicate has changed no state.
    assert_eq!(l.data(20, 30), NOTHING);
}

#[test]
fn duplicates_are_reported_first() {
    let mut l = lone();
    l.data(0, 500);
    l.data(500, 1000);
    // RFC 2883 §4.1.1: below the acknowledgement.
    assert_eq!(l.data(500, 1000), [". ack 1000 <500:1000>"]);
    // §4.1.2: and with something out of order.
    assert_eq!(l.data(1500, 2000), [". ack 1000 <1500:2000>"]);
    assert_eq!(l.data(500, 1000), [". ack 1000 <500:1000> <1500:2000>"]);
    // §4.1.3: of what is out of order itself.
    assert_eq!(l.data(1500, 2000), [". ack 1000 <1500:2000> <1500:2000>"]);
    // §4.2.1: in part.
    assert_eq!(l.data(1800, 2200), [". ack 1000 <1800:2000> <1500:2200>"]);
    assert_eq!(l.data(900, 1100), [". ack 1100 <900:1000> <1500:2200>"]);
    assert_eq!(l.data(1100, 1600), [". ack 2200 <1500:1600>"]);
    // Told once.
    assert_eq!(l.data(2500, 2600), [". ack 2200 <2500:2600>"]);
    assert_eq!(l.read_all(), 2200);

    let mut l = Lone::new(Config {
        dsack: false,
        ..config()
    });
    l.data(0, 500);
    assert_eq!(l.data(0, 500), [". ack 500"]);
}

#[test]
fn content_survives_disorder_and_overlap() {
    let mut l = lone();
    let text = b"the quick brown fox jumps over the lazy dog";
    let mut give = |from: usize, to: usize| {
        let mut s = l.segment(Flags::ACK, from as i32, 0);
        s.payload = Payload::real(bytes::Bytes::copy_from_slice(&text[from..to]));
        l.give(s);
    };
    for (from, to) in [(30, 43), (10, 20), (15, 25), (8, 32), (0, 3), (2, 9)] {
        give(from, to);
    }
    let mut got = Vec::new();
    while let Some(chunk) = l.end.read(7) {
        match chunk {
            Chunk::Real(b) => got.extend_from_slice(&b),
            Chunk::Synthetic(n) => panic!("{n} synthetic bytes"),
        }
    }
    assert_eq!(got, text);
}

#[test]
fn the_window_closes_and_opens_by_worthwhile_steps() {
    let mut l = Lone::new(Config {
        receive_buffer: Bytes::new(4000),
        ..config()
    });
    let window = |l: &mut Lone, from: i32, to: i32| {
        l.end.handle(
            l.now,
            l.segment(Flags::ACK, from, (to - from) as u32),
            gargalo_units::Ecn::NotEct,
        );
        l.sent_segments().last().map(|t| t.segment.window)
    };
    assert_eq!(window(&mut l, 0, 1000), None);
    assert_eq!(window(&mut l, 1000, 2000), Some(2000));
    assert_eq!(window(&mut l, 2000, 3000), None);
    assert_eq!(window(&mut l, 3000, 4000), Some(0));
    // A probe: refused and answered.
    assert_eq!(window(&mut l, 4000, 4001), Some(0));
    assert_eq!(l.end.readable(), 4000);
    // A window smaller than a segment is not announced.
    assert_eq!(l.end.read(999), Some(Chunk::Synthetic(999)));
    assert_eq!(l.sent(), NOTHING);
    assert_eq!(l.end.read(1), Some(Chunk::Synthetic(1)));
    assert_eq!(l.sent_segments()[0].segment.window, 1000);
    assert_eq!(l.read_all(), 3000);
    assert_eq!(l.sent_segments()[0].segment.window, 4000);
}

#[test]
fn a_stalled_reader_stops_the_sender_and_nothing_is_lost() {
    let mut pair = Pair::connected(
        config(),
        Config {
            receive_buffer: Bytes::new(20_000),
            ..config()
        },
    );
    pair.reads[1] = false;
    pair.ends[0].write_synthetic(100_000);
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.ends[1].readable(), 20_000);
    assert!(pair.ends[0].poll_timeout().is_some(), "probing");
    let probes = pair.log.iter().filter(|l| l.1 == 0).count();
    assert!((21..60).contains(&probes), "{probes} segments in 30 s");
    pair.reads[1] = true;
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.read[1], 100_000);
}

#[test]
fn a_lost_window_update_is_found_out_by_probing() {
    let mut pair = Pair::connected(
        config(),
        Config {
            receive_buffer: Bytes::new(5_000),
            ..config()
        },
    );
    pair.reads[1] = false;
    pair.ends[0].write_synthetic(9_000);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.ends[1].readable(), 5_000);
    // The update is lost.
    pair.reads[1] = true;
    pair.network = Box::new(|_, _, _| Fate::Drop);
    pair.run_for(ms(1));
    pair.network = Box::new(|_, _, _| Fate::Pass);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.read[1], 9_000);
}

#[test]
fn data_beyond_the_window_is_cut_off_and_data_far_away_refused() {
    let mut l = Lone::new(Config {
        receive_buffer: Bytes::new(4000),
        ..config()
    });
    assert_eq!(l.data(3500, 4500), [". ack 0 <3500:4000>"]);
    assert_eq!(l.data(4000, 4500), [". ack 0 <3500:4000>"]);
    assert_eq!(l.data(-3000, -2000), [". ack 0 <3500:4000>"]);
    assert_eq!(l.data(1 << 30, (1 << 30) + 100), [". ack 0 <3500:4000>"]);
    assert_eq!(l.end.state(), State::Established);
    assert_eq!(l.read_all(), 0);
}

#[test]
fn an_urgent_pointer_is_tolerated() {
    let mut l = lone();
    let mut s = l.segment(Flags::ACK | Flags::URG, 0, 10);
    s.urgent = 3;
    l.give(s);
    assert_eq!(l.read_all(), 10);
}

#[test]
fn a_thousand_holes_are_filled() {
    let mut l = Lone::new(Config {
        receive_buffer: Bytes::new(1 << 16),
        ..config()
    });
    for i in (1..4000).step_by(2) {
        l.data(i * 10, i * 10 + 10);
    }
    for i in (0..4000).step_by(2) {
        l.data(i * 10, i * 10 + 10);
    }
    assert_eq!(l.read_all(), 40_000);
}

#[test]
fn an_offloaded_segment_of_several_mss_is_acknowledged_at_once() {
    // RFC 9293 §3.8.6.3: at least every second full-sized segment or 2 RMSS bytes of new data.
    let mut lone = Lone::new(config());
    assert_eq!(lone.data(0, 2000), [". ack 2000"]);
    assert_eq!(lone.data(2000, 3000), [""; 0]);
    assert_eq!(lone.data(3000, 4000), [". ack 4000"]);
    assert_eq!(lone.data(4000, 5500), [""; 0]);
    assert_eq!(lone.data(5500, 5501), [". ack 5501"]);
    // The peer's segments are shorter: its path carries less than was agreed.
    assert_eq!(lone.data(5501, 5901), [""; 0]);
    assert_eq!(lone.data(5901, 6301), [". ack 6301"]);
    assert_eq!(lone.data(6301, 7101), [". ack 7101"]);
    // With another limit it counts the same way.
    let every = config().delayed_ack;
    let mut lone = Lone::new(Config {
        delayed_ack: DelayedAck { every: 4, ..every },
        ..config()
    });
    assert_eq!(lone.data(0, 3000), [""; 0]);
    assert_eq!(lone.data(3000, 4000), [". ack 4000"]);
}

#[test]
fn short_segments_out_of_order_are_kept_up_to_a_number() {
    let mut lone = Lone::offering(
        Config {
            receive_buffer: Bytes::new(500_000),
            ..config()
        },
        Extra {
            window_scale: Some(3),
            sack_permitted: true,
            ..Extra::default()
        },
        Some(100),
    );
    // Single bytes with holes between them, each before all others; 65,536 of them are kept.
    // The first is beyond the window of the SYN, which is not scaled; its answer opens the scaled one.
    for at in (1..70_001).rev() {
        let data = lone.segment(Flags::ACK, 2 * at, 1);
        lone.end.handle(lone.now, data, Ecn::NotEct);
        lone.sent_segments();
    }
    // What is in order is always taken.
    let first = 2 * (70_000 - 65_536);
    lone.data(0, first - 2);
    assert_eq!(lone.read_all(), first as u64 - 2);
    lone.data(first - 2, first);
    assert_eq!(lone.read_all(), 3);
}

#[test]
fn the_window_opens_by_segments_of_the_agreed_size() {
    // RFC 9293 §3.8.6.2.2: min(RCV.BUFF / 2, Eff.snd.MSS).
    let tiny = Extra {
        mss: Some(312),
        ..Extra::default()
    };
    let config = Config {
        receive_buffer: Bytes::new(10_000),
        ..config()
    };
    let mut lone = Lone::offering(config, tiny, Some(100));
    let window = |lone: &mut Lone, from, to| {
        let data = lone.segment(Flags::ACK, from, (to - from) as u32);
        lone.end.handle(lone.now, data, Ecn::NotEct);
        lone.sent_segments()[0].segment.window
    };
    assert_eq!(window(&mut lone, 0, 600), 9400);
    lone.end.read(299);
    assert_eq!(window(&mut lone, 600, 1200), 8800);
    lone.end.read(1);
    assert_eq!(window(&mut lone, 1200, 1800), 8500);
}

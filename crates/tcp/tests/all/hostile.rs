//! Unacceptable segments: RFC 5961, RFC 7323 §5, RFC 9293 §3.10.7.4.

use crate::common::*;
use gargalo_tcp::{Error, Event, State};
use gargalo_units::{Duration, Ecn};
use gargalo_wire::tcp::{Flags, Segment};

const NOTHING: [&str; 0] = [];

fn lone() -> Lone {
    let mut l = Lone::new(config());
    l.events();
    l
}

#[test]
fn only_an_exact_reset_resets() {
    let mut l = lone();
    l.data(0, 1000);
    l.data(1000, 2000);
    assert_eq!(l.give(l.segment(Flags::RST, 1999, 0)), NOTHING);
    assert_eq!(l.give(l.segment(Flags::RST, 2001, 0)), [". ack 2000"]);
    assert_eq!(l.give(l.segment(Flags::RST, 1 << 29, 0)), NOTHING);
    assert_eq!(l.end.state(), State::Established);
    assert_eq!(l.give(l.segment(Flags::RST, 2000, 0)), NOTHING);
    assert_eq!(l.end.state(), State::Closed);
    assert_eq!(l.end.error(), Some(Error::Reset));
    assert_eq!(l.events(), [Event::Readable, Event::Reset]);
}

#[test]
fn a_syn_in_the_middle_is_challenged() {
    let mut l = lone();
    assert_eq!(l.give(l.segment(Flags::SYN, 5, 0)), [". ack 0"]);
    assert_eq!(l.give(l.segment(Flags::SYN, -1, 0)), [". ack 0"]);
    assert_eq!(
        l.give(l.segment(Flags::SYN | Flags::ACK, 0, 0)),
        [". ack 0"]
    );
    assert_eq!(l.end.state(), State::Established);
}

#[test]
fn challenges_are_limited() {
    let mut l = lone();
    let answered = (0..100)
        .filter(|_| !l.give(l.segment(Flags::SYN, 5, 0)).is_empty())
        .count();
    assert_eq!(answered, 10);
    l.now += Duration::from_secs(5);
    assert_eq!(l.give(l.segment(Flags::SYN, 5, 0)), [". ack 0"]);
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_challenged_and_their_data_dropped() {
    let mut l = lone();
    let mut s = l.segment(Flags::ACK, 0, 10);
    s.ack = s.ack + 1;
    assert_eq!(l.give(s), [". ack 0"]);
    let mut s = l.segment(Flags::ACK, 0, 10);
    s.ack = s.ack + (u32::MAX - 100_000);
    assert_eq!(l.give(s), [". ack 0"]);
    assert_eq!(l.read_all(), 0);
    assert_eq!(l.end.state(), State::Established);
}

#[test]
fn a_segment_without_ack_says_nothing() {
    let mut l = lone();
    assert_eq!(l.give(l.segment(Flags::PSH, 0, 10)), NOTHING);
    assert_eq!(l.read_all(), 0);
}

#[test]
fn old_timestamps_are_answered_and_dropped() {
    let mut l = lone();
    l.timestamp = Some(200);
    l.data(0, 10);
    l.data(10, 20);
    l.timestamp = Some(199);
    assert_eq!(l.data(20, 30), [". ack 20"]);
    assert_eq!(l.read_all(), 20);
    // A late copy is reported as a duplicate all the same.
    assert_eq!(l.data(0, 10), [". ack 20 <0:10>"]);
    l.timestamp = None;
    assert_eq!(l.data(20, 30), NOTHING);
    assert_eq!(l.read_all(), 0);
    l.timestamp = Some(200);
    l.data(20, 30);
    assert_eq!(l.read_all(), 10);
    // A reset is judged by its sequence number alone.
    l.timestamp = Some(1);
    l.give(l.segment(Flags::RST, 30, 0));
    assert_eq!(l.end.state(), State::Closed);
}

#[test]
fn after_a_silence_of_24_days_any_timestamp_is_good() {
    let mut l = lone();
    l.now += Duration::from_secs(25 * 24 * 3600);
    l.timestamp = Some(50);
    l.data(0, 10);
    assert_eq!(l.read_all(), 10);
}

#[test]
fn the_echo_is_of_the_oldest_unacknowledged_segment() {
    let mut l = lone();
    l.timestamp = Some(300);
    l.data(0, 10);
    l.timestamp = Some(301);
    let s = l.segment(Flags::ACK, 10, 10);
    l.end.handle(l.now, s, Ecn::NotEct);
    let echo = l.sent_segments()[0]
        .segment
        .options
        .timestamps
        .unwrap()
        .echo;
    assert_eq!(echo, 300);
}

#[test]
fn a_closed_endpoint_answers_by_a_reset_that_fits() {
    let mut l = lone();
    l.end.abort(l.now);
    l.sent();
    l.timestamp = None;
    assert_eq!(l.give(l.segment(Flags::ACK, 0, 10)), ["R 0"]);
    assert_eq!(l.give(l.segment(Flags::SYN, 5, 0)), ["R. -5001 ack 6"]);
    assert_eq!(l.give(l.segment(Flags::RST, 5, 0)), NOTHING);
}

#[test]
fn a_listener_answers_strays_by_resets_and_ignores_resets() {
    let mut end = gargalo_tcp::Endpoint::listen(config(), fixed(), init(1), at(0));
    let stray = Segment {
        flags: Flags::ACK,
        ack: gargalo_units::Seq::new(9),
        ..Segment::default()
    };
    end.handle(at(1), stray, Ecn::NotEct);
    let t = end.poll_transmit(at(1)).unwrap().segment;
    assert_eq!((t.flags, t.seq.get()), (Flags::RST, 9));
    end.handle(
        at(1),
        Segment {
            flags: Flags::RST,
            ..Segment::default()
        },
        Ecn::NotEct,
    );
    assert_eq!(end.poll_transmit(at(1)), None);
    assert_eq!(end.state(), State::Listen);
}

#[test]
fn two_peers_out_of_step_do_not_talk_for_ever() {
    // From the view of each, the other acknowledges data that was never sent.
    let mut pair = Pair::connected(config(), config());
    let mut absurd = pair.ends[0].poll_transmit(pair.now);
    assert!(absurd.is_none());
    pair.ends[0].write_synthetic(1);
    pair.run_for(ms(100));
    absurd = pair.log.last().map(|l| l.2.clone());
    let mut s = absurd.unwrap().segment;
    s.ack = s.ack + 50_000;
    let to = usize::from(s.dst_port == 80);
    pair.ends[to].handle(pair.now, s, Ecn::NotEct);
    pair.run_for(Duration::from_secs(10));
    assert!(pair.log.len() < 20, "{:?}", pair.lines());
}

#[test]
fn nothing_that_arrives_makes_it_panic() {
    // Every flag combination at and around the window's edges, in every state a peer can cause.
    for start in 0..6 {
        for flags in 0..64u16 {
            for from in [-2, -1, 0, 1, 999, 1 << 20, i32::MIN] {
                for len in [0, 1, 1000] {
                    let mut l = lone();
                    match start {
                        1 => l.end.close(l.now),
                        2 => drop(l.give(l.segment(Flags::ACK | Flags::FIN, 0, 0))),
                        3 => l.end.abort(l.now),
                        4 => drop(l.data(1000, 1500)),
                        5 => drop(l.end.write_synthetic(5000)),
                        _ => {}
                    }
                    l.sent();
                    let mut s = l.segment(Flags::from_bits(flags), from, len);
                    s.options.sack.push(s.ack + 10, s.ack + 1000);
                    s.options.sack.push(s.ack + 2000, s.ack);
                    s.options.sack.push(s.ack + 0x8000_0000, s.ack + 500);
                    l.give(s);
                    l.read_all();
                    l.sent();
                }
            }
        }
    }
}

//! Simultaneous open (RFC 9293 §3.5, figure 7) with and without data in the SYNs.

use crate::common::*;
use gargalo_tcp::{Endpoint, Event, State};
use gargalo_units::{Duration, Ecn, Seq};
use gargalo_wire::tcp::{Flags, Payload, Segment};

/// A client with a Fast Open cookie, or without one.
fn client(side: usize, cookie: bool) -> Endpoint {
    let mut start = init(side);
    start.fast_open_cookie = cookie.then(|| real("cookie"));
    Endpoint::connect(config(), fixed(), start, at(0))
}

fn both(cookies: [bool; 2]) -> Pair {
    let mut pair = Pair::of([client(0, cookies[0]), client(1, cookies[1])]);
    pair.ends[0].write(real("hello"));
    pair.ends[1].write(real("and you"));
    pair
}

fn assert_open(pair: &Pair) {
    assert_eq!(pair.states(), [State::Established; 2]);
    assert_eq!(pair.content[0], b"and you");
    assert_eq!(pair.content[1], b"hello");
    assert_eq!([0, 1].map(|n| pair.ends[n].unacknowledged()), [0; 2]);
    for events in &pair.events {
        assert_eq!(events[..2], [Event::Connected, Event::Readable]);
    }
    let resets = pair
        .log
        .iter()
        .filter(|l| l.2.segment.flags.contains(Flags::RST));
    assert_eq!(resets.count(), 0);
}

#[test]
fn data_in_both_syns_waits_for_the_open_connection() {
    for cookies in [[true, true], [true, false], [false, true], [false, false]] {
        let mut pair = both(cookies);
        pair.run_for(ms(500));
        assert_open(&pair);
    }
    let mut pair = both([true, true]);
    pair.run_for(ms(500));
    // RFC 9293 §3.10.7.3: the SYN-ACK acknowledges the SYN; the text is queued until ESTABLISHED.
    assert_eq!(
        pair.lines()[..6],
        [
            "0 C S 0:5",
            "0 S S 0:7",
            "10 S S. ack 0",
            "10 C S. ack 0",
            "20 C P. 0:5 ack 7",
            "20 S P. 0:7 ack 5",
        ]
    );
}

#[test]
fn any_segment_of_such_an_opening_may_be_lost() {
    for side in 0..2 {
        for lost in 0..4 {
            let mut pair = both([true, true]).with(move |from, n, _| {
                if from == side && n == lost {
                    Fate::Drop
                } else {
                    Fate::Pass
                }
            });
            pair.run_for(Duration::from_secs(20));
            assert_open(&pair);
        }
    }
}

/// A client that has sent a SYN with "hello" and received the SYN of a peer that opens too, with `payload`.
fn crossed(payload: &'static str, flags: Flags) -> (Endpoint, Segment) {
    let mut end = client(0, true);
    end.write(real("hello"));
    let syn = end.poll_transmit(at(0)).expect("a SYN").segment;
    assert_eq!(syn.payload.len(), 5);
    let peer = Segment {
        src_port: 80,
        dst_port: 40_000,
        seq: Seq::new(ISN[1]),
        flags: Flags::SYN | flags,
        window: 60_000,
        payload: Payload::real(real(payload)),
        ..Segment::default()
    };
    end.handle(at(1), peer.clone(), Ecn::NotEct);
    (end, peer)
}

fn sent(end: &mut Endpoint) -> Vec<String> {
    let next = || end.poll_transmit(at(2));
    std::iter::from_fn(next)
        .map(|t| show(0, &t.segment))
        .collect()
}

#[test]
fn an_acknowledgement_of_the_syn_and_of_its_data_opens() {
    // The peer took none, some or all of the data, and says so by a SYN-ACK or by an ACK.
    for (taken, repeats) in [(0, "P. 0:5 ack 7"), (2, "P. 2:5 ack 7"), (5, ". ack 7")] {
        for syn_ack in [true, false] {
            let (mut end, peer) = crossed("and you", Flags::NONE);
            assert_eq!(sent(&mut end), ["S. ack 0"]);
            let extra = if syn_ack { Flags::SYN } else { Flags::NONE };
            let answer = Segment {
                seq: peer.seq + u32::from(!syn_ack),
                ack: Seq::new(ISN[0]) + 1 + taken,
                flags: Flags::ACK | extra,
                payload: Payload::EMPTY,
                ..peer
            };
            end.handle(at(2), answer, Ecn::NotEct);
            assert_eq!(end.state(), State::Established);
            assert_eq!(sent(&mut end), [repeats]);
            assert_eq!(end.readable(), 7);
        }
    }
}

#[test]
fn an_acknowledgement_of_more_than_was_sent_is_refused() {
    let (mut end, peer) = crossed("", Flags::NONE);
    sent(&mut end);
    let absurd = Segment {
        seq: peer.seq + 1,
        ack: Seq::new(ISN[0]) + 7,
        flags: Flags::ACK,
        ..peer
    };
    end.handle(at(2), absurd, Ecn::NotEct);
    assert_eq!(end.state(), State::SynReceived);
    assert_eq!(sent(&mut end), ["R 6"]);
}

#[test]
fn data_and_fin_come_with_a_syn_or_a_syn_ack() {
    for with_syn in [true, false] {
        let flags = if with_syn { Flags::FIN } else { Flags::NONE };
        let (mut end, peer) = crossed(if with_syn { "bye" } else { "" }, flags);
        assert_eq!(sent(&mut end), ["S. ack 0"]);
        assert_eq!(end.readable(), 0, "not before the connection is open");
        let answer = Segment {
            ack: Seq::new(ISN[0]) + 6,
            flags: Flags::SYN | Flags::ACK | Flags::FIN,
            payload: Payload::real(real("bye")),
            ..peer
        };
        end.handle(at(2), answer, Ecn::NotEct);
        assert_eq!(end.state(), State::CloseWait);
        assert_eq!(sent(&mut end), [". ack 4"]);
        let events: Vec<_> = std::iter::from_fn(|| end.poll_event()).collect();
        assert_eq!(
            events,
            [Event::Connected, Event::Readable, Event::PeerClosed]
        );
        assert_eq!(end.read(100).map(|c| c.len()), Some(3));
    }
}

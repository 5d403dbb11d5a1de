//! The surroundings of an endpoint: a stateless listener, ICMP messages, successors in TIME-WAIT, peers that waste
//! memory.

use crate::common::{self, *};
use gargalo_tcp::{Config, Endpoint, Error, Event, State};
use gargalo_units::{Bytes, Duration, Ecn, Seq};
use gargalo_wire::tcp::{Flags, Segment, Timestamps};

/// A client's SYN, the answer of a stateless listener, and a server resumed from the acknowledgement.
fn resumed(config: Config) -> Pair {
    let mut client = Endpoint::connect(config.clone(), fixed(), init(0), at(0));
    let syn = client.poll_transmit(at(0)).unwrap().segment;
    let answer = Endpoint::answer(&config, &init(1), at(10), &syn);
    client.handle(at(20), answer, Ecn::NotEct);
    let ack = client.poll_transmit(at(20)).unwrap().segment;
    assert_eq!(show(0, &ack), ". ack 0");
    let mut server = Endpoint::resume(config, fixed(), init(1), at(30), &syn);
    assert_eq!(
        server.poll_transmit(at(30)),
        None,
        "nothing is answered twice"
    );
    server.handle(at(30), ack, Ecn::NotEct);
    let mut pair = Pair::of([client, server]);
    pair.now = at(30);
    pair
}

#[test]
fn an_answer_is_what_a_listening_endpoint_sends() {
    for timestamps in [true, false] {
        for ecn in [gargalo_tcp::EcnMode::Off, gargalo_tcp::EcnMode::Classic] {
            let config = Config {
                timestamps,
                ecn,
                ..common::config()
            };
            let mut client = Endpoint::connect(config.clone(), fixed(), init(0), at(0));
            let syn = client.poll_transmit(at(0)).unwrap().segment;
            let mut server = Endpoint::listen(config.clone(), fixed(), init(1), at(0));
            server.handle(at(10), syn.clone(), Ecn::NotEct);
            let sent = server.poll_transmit(at(10)).unwrap().segment;
            assert_eq!(Endpoint::answer(&config, &init(1), at(10), &syn), sent);
        }
    }
}

#[test]
fn a_resumed_connection_is_like_any_other() {
    let mut pair = resumed(common::config());
    assert_eq!(pair.states(), [State::Established; 2]);
    pair.ends[0].write(real("from the client"));
    pair.ends[1].write_synthetic(300_000);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.content[1], b"from the client");
    assert_eq!(pair.read[0], 300_000);
    assert_eq!(pair.ends[1].stats().sender.retransmitted_packets, 0);
    for side in [1, 0] {
        pair.ends[side].close(pair.now);
        pair.run_for(ms(50));
    }
    assert_eq!(pair.states(), [State::Closed, State::TimeWait]);
    assert_eq!(
        pair.events[1],
        [
            Event::Connected,
            Event::Readable,
            Event::PeerClosed,
            Event::Closed
        ]
    );
}

#[test]
fn a_resumed_endpoint_opens_by_its_acknowledgement_alone() {
    let config = common::config();
    let mut client = Endpoint::connect(config.clone(), fixed(), init(0), at(0));
    let syn = client.poll_transmit(at(0)).unwrap().segment;
    let mut server = Endpoint::resume(config, fixed(), init(1), at(30), &syn);
    let wrong = Segment {
        src_port: 40_000,
        dst_port: 80,
        seq: syn.seq + 1,
        ack: Seq::new(ISN[1] + 2),
        flags: Flags::ACK,
        options: gargalo_wire::tcp::Options {
            timestamps: Some(Timestamps { value: 9, echo: 0 }),
            ..Default::default()
        },
        ..Segment::default()
    };
    server.handle(at(30), wrong, Ecn::NotEct);
    assert_eq!(server.state(), State::SynReceived);
}

#[test]
fn a_narrower_path_cuts_what_was_sent_and_what_follows() {
    let mut pair = Pair::connected(common::config(), common::config()).with(|side, _, s| {
        match (side, s.payload.len()) {
            (0, 501..) => Fate::Drop,
            _ => Fate::Pass,
        }
    });
    pair.ends[0].write_synthetic(20_000);
    pair.settle(0);
    assert_eq!(pair.ends[0].mss(), 1000);
    let first = Seq::new(ISN[0] + 1);
    assert!(pair.ends[0].is_outstanding(first) && pair.ends[0].is_outstanding(first + 19_999));
    // Without the options: timestamps take 12 bytes.
    let now = pair.now;
    pair.ends[0].set_mss(now, 512);
    pair.run_for(ms(100));
    assert_eq!(pair.ends[0].mss(), 500);
    assert_eq!(pair.read[1], 20_000);
    let stats = pair.ends[0].stats();
    assert_eq!(stats.sender.timeouts + stats.sender.lost_packets, 0);
    assert!(!pair.ends[0].is_outstanding(first) && !pair.ends[0].is_outstanding(first + 20_000));
    // The MSS may grow again up to the negotiated one, and never falls below the room that options need.
    pair.ends[0].set_mss(now, 9000);
    assert_eq!(pair.ends[0].mss(), 1000);
    pair.ends[0].set_mss(now, 1);
    assert_eq!(pair.ends[0].mss(), 48);
}

#[test]
fn a_path_known_before_the_handshake_is_complete() {
    let mut client = Endpoint::connect(common::config(), fixed(), init(0), at(0));
    client.set_mss(at(0), 612);
    let server = Endpoint::listen(common::config(), fixed(), init(1), at(0));
    let mut pair = Pair::of([client, server]);
    pair.run_for(ms(100));
    assert_eq!(pair.ends.each_ref().map(|e| e.mss()), [600, 1000]);
}

#[test]
fn segments_stay_outstanding_until_acknowledged() {
    let mut end = Endpoint::connect(common::config(), fixed(), init(0), at(0));
    let isn = Seq::new(ISN[0]);
    assert!(end.is_outstanding(isn));
    assert!(!end.is_outstanding(isn + 1) && !end.is_outstanding(isn + u32::MAX));
    end.abort(at(0));
    assert!(!end.is_outstanding(isn));
}

#[test]
fn only_an_opening_connection_ends_by_a_hard_error() {
    let mut opening = Endpoint::connect(common::config(), fixed(), init(0), at(0));
    opening.on_unreachable(false);
    assert_eq!(opening.state(), State::SynSent);
    opening.on_unreachable(true);
    assert_eq!(
        (opening.state(), opening.error()),
        (State::Closed, Some(Error::Unreachable))
    );
    assert_eq!(opening.poll_event(), Some(Event::Reset));
    let mut pair = Pair::connected(common::config(), common::config());
    pair.ends[0].on_unreachable(true);
    assert_eq!(pair.states(), [State::Established; 2]);
    // A later segment of the peer clears the error; without one the connection ends as unreachable.
    pair.ends[1].write(real("here I am"));
    pair.run_for(ms(300));
    for (told, expected) in [(false, Error::TimedOut), (true, Error::Unreachable)] {
        let mut pair =
            Pair::connected(common::config(), common::config()).with(|_, _, _| Fate::Drop);
        pair.ends[0].write(real("anybody?"));
        if told {
            pair.ends[0].on_unreachable(false);
        }
        pair.run_for(Duration::from_secs(3600));
        assert_eq!(pair.ends[0].error(), Some(expected));
    }
}

#[test]
fn time_wait_gives_way_to_what_is_later() {
    let mut pair = Pair::connected(common::config(), common::config());
    for side in [1, 0] {
        pair.ends[side].close(pair.now);
        pair.run_for(ms(50));
    }
    assert_eq!(pair.ends[1].state(), State::TimeWait);
    let last = pair
        .log
        .iter()
        .rfind(|l| l.1 == 0)
        .unwrap()
        .2
        .segment
        .clone();
    let recent = last.options.timestamps.unwrap().value;
    let syn = |seq: u32, value: Option<u32>, flags| Segment {
        seq: last.seq + 1 + seq,
        flags,
        options: gargalo_wire::tcp::Options {
            timestamps: value.map(|value| Timestamps { value, echo: 0 }),
            ..Default::default()
        },
        ..Segment::default()
    };
    let end = &pair.ends[1];
    let old = 1u32.wrapping_neg() - 1000;
    for (segment, expected) in [
        (syn(old, Some(recent + 1), Flags::SYN), true),
        (syn(1, Some(recent - 1), Flags::SYN), false),
        (syn(1, Some(recent), Flags::SYN), true),
        (syn(old, Some(recent), Flags::SYN), false),
        (syn(1, None, Flags::SYN), true),
        (syn(old, None, Flags::SYN), false),
        (syn(1, None, Flags::SYN | Flags::ACK), false),
        (syn(1, None, Flags::ACK), false),
    ] {
        assert_eq!(end.may_be_succeeded_by(&segment), expected, "{segment:?}");
    }
    let open = Pair::connected(common::config(), common::config());
    assert!(!open.ends[1].may_be_succeeded_by(&syn(1, Some(recent + 1), Flags::SYN)));
}

#[test]
fn a_timestamp_is_believed_only_with_its_acknowledgement() {
    let mut lone = Lone::new(common::config());
    // In the window, from the future, acknowledging what was never sent.
    let mut forged = lone.segment(Flags::ACK, 0, 10);
    forged.ack = forged.ack + 1_000_000;
    forged.options.timestamps = Some(Timestamps {
        value: 1 << 30,
        echo: 0,
    });
    lone.give(forged);
    assert_eq!(lone.data(0, 1000), [""; 0]);
    assert_eq!(lone.data(1000, 2000), [". ack 2000"]);
}

#[test]
fn a_peer_that_leaves_holes_everywhere_is_refused_more_memory() {
    let config = Config {
        receive_buffer: Bytes::new(1 << 20),
        ..common::config()
    };
    let mut lone = Lone::new(config);
    let mut kept = 0;
    for i in 0..20_000 {
        // Every second byte, from far to near.
        let at = 60_000 - 2 * i;
        if at <= 0 {
            break;
        }
        let mut segment = lone.segment(Flags::ACK, at, 1);
        segment.payload = gargalo_wire::tcp::Payload::real(bytes::Bytes::from_static(b"x"));
        let answer = lone.give(segment);
        let block = format!("<{at}:{}>", at + 1);
        kept += usize::from(answer[0].contains(&block));
    }
    assert_eq!(kept, (1 << 20) / 256);
    // The segment that fills the hole is accepted nevertheless.
    let answer = lone.data(0, 60_002);
    assert!(answer.last().unwrap().starts_with(". ack 60002"));
    assert_eq!(lone.read_all(), 60_002);
}

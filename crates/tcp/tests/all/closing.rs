//! Closing of connections: RFC 9293 §3.6, §3.10.4, §3.10.5.

use crate::common::*;
use gargalo_tcp::{Config, Error, Event, State};
use gargalo_units::Duration;
use gargalo_wire::tcp::{Extra, Flags};

/// TIME-WAIT long enough to be seen.
fn config() -> Config {
    Config {
        time_wait: ms(500),
        ..crate::common::config()
    }
}

fn connected() -> Pair {
    Pair::connected(config(), config())
}

#[test]
fn a_fin_each_way_and_time_wait_for_the_one_who_closed_first() {
    let mut pair = connected();
    pair.ends[0].close(pair.now);
    assert_eq!(pair.ends[0].state(), State::FinWait1);
    pair.run_for(ms(15));
    assert_eq!(pair.states(), [State::FinWait1, State::CloseWait]);
    pair.run_for(ms(15));
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
    pair.ends[1].close(pair.now);
    assert_eq!(pair.ends[1].state(), State::LastAck);
    pair.run_for(ms(50));
    pair.assert_log(&[
        "100 C F. 0 ack 0",
        "110 S . ack 1",
        "130 S F. 0 ack 1",
        "140 C . ack 1",
    ]);
    assert_eq!(pair.states(), [State::TimeWait, State::Closed]);
    pair.run_for(ms(600));
    assert_eq!(pair.states(), [State::Closed, State::Closed]);
    assert_eq!(
        pair.events[0],
        [Event::Connected, Event::PeerClosed, Event::Closed]
    );
    assert_eq!(
        pair.events[1],
        [Event::Connected, Event::PeerClosed, Event::Closed]
    );
    assert_eq!(pair.ends[0].error(), None);
}

#[test]
fn three_segments_are_enough_when_the_peer_closes_at_once() {
    let mut pair = connected();
    pair.ends[0].close(pair.now);
    pair.run_for(ms(10));
    // The FIN has arrived and its acknowledgement has left; a driver that closes before it polls
    // would send both in one segment.
    pair.ends[1].close(pair.now);
    pair.run_for(ms(100));
    assert_eq!(pair.states(), [State::TimeWait, State::Closed]);

    let mut lone = Lone::new(config());
    let fin = lone.segment(
        gargalo_wire::tcp::Flags::ACK | gargalo_wire::tcp::Flags::FIN,
        0,
        0,
    );
    lone.end.handle(lone.now, fin, gargalo_units::Ecn::NotEct);
    lone.end.close(lone.now);
    assert_eq!(lone.sent(), ["F. 0 ack 1"]);
    assert_eq!(lone.end.state(), State::LastAck);
}

#[test]
fn the_fin_travels_with_the_last_data() {
    let mut pair = connected();
    pair.ends[0].write(real("bye"));
    pair.ends[0].close(pair.now);
    pair.run_for(ms(30));
    pair.assert_log(&["100 C FP. 0:3 ack 0", "110 S . ack 4"]);
    assert_eq!(pair.content[1], b"bye");
    assert_eq!(
        pair.events[1],
        [Event::Connected, Event::Readable, Event::PeerClosed]
    );
    assert_eq!(pair.ends[1].read(10), None);
}

#[test]
fn a_closed_half_leaves_the_other_open() {
    let mut pair = connected();
    pair.ends[0].close(pair.now);
    pair.run_for(ms(50));
    assert_eq!(pair.ends[0].write(real("no")), 0);
    pair.ends[1].write_synthetic(250_000);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.read[0], 250_000);
    pair.ends[1].close(pair.now);
    pair.run_for(ms(50));
    assert_eq!(pair.states(), [State::TimeWait, State::Closed]);
}

#[test]
fn both_close_at_once() {
    let mut pair = connected();
    let now = pair.now;
    pair.ends[0].close(now);
    pair.ends[1].close(now);
    pair.run_for(ms(15));
    assert_eq!(pair.states(), [State::Closing, State::Closing]);
    pair.run_for(ms(15));
    assert_eq!(pair.states(), [State::TimeWait, State::TimeWait]);
    pair.assert_log(&[
        "100 C F. 0 ack 0",
        "100 S F. 0 ack 0",
        "110 S . ack 1",
        "110 C . ack 1",
    ]);
    pair.run_for(ms(600));
    assert_eq!(pair.states(), [State::Closed, State::Closed]);
}

#[test]
fn any_segment_of_the_closing_may_be_lost() {
    for side in 0..2 {
        for lost in 0..2 {
            let mut pair = connected().with(move |s, n, _| {
                if s == side && n == lost {
                    Fate::Drop
                } else {
                    Fate::Pass
                }
            });
            pair.ends[0].write_synthetic(500);
            pair.ends[0].close(pair.now);
            pair.run_for(ms(15));
            pair.ends[1].close(pair.now);
            pair.run_for(Duration::from_secs(20));
            assert_eq!(
                pair.states(),
                [State::Closed, State::Closed],
                "{side} {lost}"
            );
            assert_eq!(pair.read[1], 500);
            assert_eq!(pair.events[1].last(), Some(&Event::Closed), "{side} {lost}");
        }
    }
}

#[test]
fn a_repeated_fin_is_acknowledged_and_prolongs_time_wait() {
    let mut lone = Lone::new(config());
    lone.end.close(lone.now);
    assert_eq!(lone.sent(), ["F. 0 ack 0"]);
    let mut fin = lone.segment(Flags::ACK | Flags::FIN, 0, 0);
    fin.ack = fin.ack + 1;
    assert_eq!(lone.give(fin.clone()), [". ack 1"]);
    assert_eq!(lone.end.state(), State::TimeWait);
    let first = lone.end.poll_timeout().unwrap();
    lone.now += ms(300);
    assert_eq!(lone.give(fin), [". ack 1"]);
    assert_eq!(lone.end.poll_timeout().unwrap(), first + ms(300));
    assert_eq!(lone.wait(), [""; 0]);
    assert_eq!(lone.end.state(), State::Closed);
}

#[test]
fn a_fin_ahead_of_a_hole_waits() {
    let mut lone = Lone::new(config());
    let fin = lone.segment(Flags::ACK | Flags::FIN, 100, 50);
    assert_eq!(lone.give(fin), [". ack 0 <100:150>"]);
    assert_eq!(lone.end.state(), State::Established);
    assert_eq!(lone.data(0, 100), [". ack 151"]);
    assert_eq!(lone.end.state(), State::CloseWait);
    assert_eq!(lone.read_all(), 150);
    // Nothing follows it.
    assert_eq!(lone.data(151, 160), [". ack 151"]);
    assert_eq!(lone.read_all(), 0);
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = connected();
    pair.ends[0].write_synthetic(100);
    pair.ends[0].abort(pair.now);
    pair.run_for(ms(50));
    pair.assert_log(&["100 C R. 0 ack 0"]);
    assert_eq!(pair.states(), [State::Closed, State::Closed]);
    assert_eq!(pair.ends[0].error(), Some(Error::Aborted));
    assert_eq!(pair.ends[1].error(), Some(Error::Reset));
    assert_eq!(pair.events[1], [Event::Connected, Event::Reset]);
    assert_eq!(pair.ends[1].poll_timeout(), None);
}

#[test]
fn a_reset_has_timestamps_where_its_connection_has() {
    // RFC 7323 §3.2: an echo of the peer's latest, so that it can check the reset as it checks all else.
    for peers in [Some(100), None] {
        let mut lone = Lone::offering(config(), Extra::default(), peers);
        lone.end.abort(lone.now);
        let sent = lone.sent_segments();
        let [reset] = &sent[..] else {
            panic!("{sent:?}")
        };
        assert!(reset.segment.flags.contains(Flags::RST));
        assert_eq!(reset.segment.options.timestamps.map(|t| t.echo), peers);
    }
}

#[test]
fn what_was_received_can_be_read_after_a_reset() {
    let mut lone = Lone::new(config());
    lone.data(0, 100);
    lone.give(lone.segment(Flags::RST, 100, 0));
    assert_eq!(lone.end.state(), State::Closed);
    assert_eq!(lone.read_all(), 100);
}

#[test]
fn a_reset_after_both_closed_is_no_error_unless_data_is_missing() {
    for (written, error) in [(0, None), (10, Some(Error::Reset))] {
        let mut lone = Lone::new(config());
        lone.give(lone.segment(Flags::ACK | Flags::FIN, 0, 0));
        lone.end.write_synthetic(written);
        lone.end.close(lone.now);
        lone.sent();
        assert_eq!(lone.end.state(), State::LastAck);
        lone.give(lone.segment(Flags::RST, 1, 0));
        assert_eq!(lone.end.state(), State::Closed);
        assert_eq!(lone.end.error(), error);
    }
}

#[test]
fn closing_before_anything_happened_is_silent() {
    use gargalo_tcp::Endpoint;
    let mut end = Endpoint::connect(config(), fixed(), init(0), at(0));
    end.close(at(0));
    assert_eq!(end.state(), State::Closed);
    assert_eq!(end.poll_transmit(at(0)), None);
    assert_eq!(end.poll_event(), Some(Event::Closed));
}

//! ECN (RFC 3168) and keep-alive (RFC 9293 §3.8.4).

use crate::common::*;
use gargalo_tcp::{Config, DelayedAck, EcnMode, Error, Event, KeepAlive, State};
use gargalo_units::{Duration, Ecn};
use gargalo_wire::tcp::Flags;

fn ecn() -> Config {
    Config {
        ecn: EcnMode::Classic,
        ..config()
    }
}

#[test]
fn ecn_needs_both() {
    for (client, server, agreed) in [
        (ecn(), ecn(), true),
        (ecn(), config(), false),
        (config(), ecn(), false),
    ] {
        let mut pair = Pair::new(client, server);
        pair.run_for(ms(100));
        assert_eq!(pair.ends[0].is_ecn_capable(), agreed);
        assert_eq!(pair.ends[1].is_ecn_capable(), agreed);
        if agreed {
            assert_eq!(pair.lines(), ["0 C SEW", "10 S SE. ack 0", "20 C . ack 0"]);
        }
        assert!(pair.log.iter().all(|l| l.2.ecn == Ecn::NotEct));
    }
}

#[test]
fn data_is_capable_and_acknowledgements_are_not() {
    let mut pair = Pair::connected(ecn(), ecn());
    pair.ends[0].write_synthetic(5000);
    pair.run_for(ms(200));
    for (_, side, t) in &pair.log {
        assert_eq!(t.ecn == Ecn::Ect0, *side == 0);
    }
}

#[test]
fn with_l4s_all_data_carries_ect1() {
    let l4s = || Config {
        ecn: EcnMode::L4s,
        ..config()
    };
    let mut pair = Pair::connected(l4s(), l4s()).with(|side, n, _| match side == 0 && n == 0 {
        true => Fate::Drop,
        false => Fate::Pass,
    });
    pair.ends[0].write_synthetic(500);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.read[1], 500);
    let repeated = pair.log.iter().filter(|l| l.1 == 0).count();
    assert!(repeated >= 2, "the first was dropped");
    for (_, side, t) in &pair.log {
        let want = if *side == 0 { Ecn::Ect1 } else { Ecn::NotEct };
        assert_eq!(t.ecn, want);
    }
}

#[test]
fn a_retransmission_is_not_capable() {
    let mut pair = Pair::connected(ecn(), ecn()).with(|side, n, _| {
        if side == 0 && n == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.ends[0].write_synthetic(500);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.read[1], 500);
    let sent: Vec<_> = pair
        .log
        .iter()
        .filter(|l| l.1 == 0)
        .map(|l| l.2.ecn)
        .collect();
    assert_eq!(sent[0], Ecn::Ect0);
    assert!(sent[1..].iter().all(|e| *e == Ecn::NotEct), "{sent:?}");
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_reacted() {
    let mut pair = Pair::connected(ecn(), ecn()).with(|side, n, _| {
        if side == 0 && n == 3 {
            Fate::Mark
        } else {
            Fate::Pass
        }
    });
    pair.ends[0].write_synthetic(300_000);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.read[1], 300_000);
    assert_eq!(pair.ends[1].stats().ce_marks, 1);
    let flags = |side: usize, f: Flags| {
        let all = pair.log.iter().filter(move |l| l.1 == side);
        all.filter(|l| l.2.segment.flags.contains(f)).count()
    };
    assert!(flags(1, Flags::ECE) > 1);
    assert_eq!(flags(0, Flags::CWR), 1);
    let last = pair.log.iter().rev().find(|l| l.1 == 1).unwrap();
    assert!(!last.2.segment.flags.contains(Flags::ECE));
}

/// An established connection whose peer agreed to ECN.
fn marked(config: Config) -> Lone {
    let mut l = Lone {
        now: at(1000),
        end: gargalo_tcp::Endpoint::listen(config, fixed(), init(1), at(0)),
        timestamp: None,
    };
    let syn = l.segment(Flags::SYN | Flags::ECE | Flags::CWR, -1, 0);
    assert_eq!(l.give(syn), ["SE. ack 0"]);
    l.give(l.segment(Flags::ACK, 0, 0));
    l
}

#[test]
fn cwr_ends_the_echo_and_a_new_mark_begins_another() {
    let mut l = marked(ecn());
    l.give_marked(l.segment(Flags::ACK, 0, 10), Ecn::Ce);
    assert_eq!(l.data(10, 20), ["E. ack 20"]);
    l.data(20, 30);
    assert_eq!(l.data(30, 40), ["E. ack 40"]);
    l.give(l.segment(Flags::ACK | Flags::CWR, 40, 10));
    assert_eq!(l.data(50, 60), [". ack 60"]);
    l.give_marked(l.segment(Flags::ACK | Flags::CWR, 60, 10), Ecn::Ce);
    assert_eq!(l.data(70, 80), ["E. ack 80"]);
}

#[test]
fn a_mirror_acknowledges_each_change_separately() {
    let mut l = marked(Config {
        ecn: EcnMode::Dctcp,
        delayed_ack: DelayedAck {
            every: 4,
            ..config().delayed_ack
        },
        ..config()
    });
    assert_eq!(l.data(0, 10), [""; 0]);
    // Pending data is acknowledged without the mark, then the marked segment with it.
    let s = l.segment(Flags::ACK, 10, 10);
    assert_eq!(l.give_marked(s, Ecn::Ce), [". ack 10", "E. ack 20"]);
    let s = l.segment(Flags::ACK, 20, 10);
    assert_eq!(l.give_marked(s, Ecn::Ce), [""; 0]);
    assert_eq!(l.data(30, 40), ["E. ack 30", ". ack 40"]);
    // Nothing waits: one acknowledgement is enough.
    let s = l.segment(Flags::ACK, 40, 10);
    assert_eq!(l.give_marked(s, Ecn::Ce), ["E. ack 50"]);
}

fn keep_alive() -> Config {
    let k = KeepAlive {
        idle: Duration::from_secs(10),
        interval: Duration::from_secs(1),
        probes: 3,
    };
    Config {
        keep_alive: Some(k),
        ..config()
    }
}

#[test]
fn an_idle_connection_is_probed_and_an_answer_keeps_it() {
    let mut pair = Pair::connected(keep_alive(), config());
    pair.run_until(at(25_000));
    pair.assert_log(&[
        "10020 C . ack 0",
        "10030 S . ack 0",
        "20040 C . ack 0",
        "20050 S . ack 0",
    ]);
    assert_eq!(pair.states(), [State::Established; 2]);
}

#[test]
fn a_dead_peer_is_given_up() {
    let mut pair = Pair::connected(keep_alive(), config()).with(|_, _, _| Fate::Drop);
    pair.run_until(at(60_000));
    assert_eq!(pair.ends[0].error(), Some(Error::TimedOut));
    assert_eq!(pair.events[0], [Event::Connected, Event::TimedOut]);
    pair.assert_log(&[
        "10020 C . ack 0",
        "11020 C . ack 0",
        "12020 C . ack 0",
        "13020 C R. 0 ack 0",
    ]);
}

//! Data before the handshake is complete.

use crate::pair::{CLIENT, Link, Pair, SERVER, init, ours, pair_in};
use gargalo_quic::{Config, Crypto, Event, Handshake, Init, Realm};
use gargalo_units::{Duration, Instant};

/// A request of `ask` bytes and an answer; returns the pair after it is settled.
fn request(
    realm: &Realm,
    config: &Config,
    seed: u64,
    start: Instant,
    zero_rtt: bool,
    ask: u64,
    answer: u64,
) -> Pair {
    let with = |side| Init {
        now: start,
        ..init(side, seed)
    };
    let handshake = match zero_rtt {
        true => Handshake::ZeroRtt,
        false => Handshake::OneRtt,
    };
    let config = &Config {
        handshake,
        ..config.clone()
    };
    let link = Link::new(100, 25);
    let ends = [with(CLIENT), with(SERVER)];
    let mut p = pair_in(realm, [config, config], &ours("cubic"), [link; 2], ends);
    p.apps[CLIENT].to_send = vec![ask];
    p.apps[SERVER].answer = Some(answer);
    p.run_until(Duration::from_secs(20), |p| {
        p.is_settled() && p.apps[CLIENT].ended.len() == 1
    });
    assert_eq!(p.apps[CLIENT].read.values().sum::<u64>(), answer);
    assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), ask);
    // Tickets are sent after the handshake.
    p.close();
    p
}

fn taken(p: &Pair, start: Instant) -> f64 {
    (p.apps[CLIENT].ended[0].0 - start).as_secs_f64() * 1e3
}

#[test]
fn certificates_of_p256_serve_as_those_of_ed25519_do() {
    let config = Config::default();
    let realm = Realm::new(1).unwrap();
    let ecdsa = realm.with_ecdsa().unwrap();
    assert_ne!(realm.certificate(), ecdsa.certificate());
    assert_eq!(
        ecdsa.certificate(),
        realm.with_ecdsa().unwrap().certificate()
    );
    let one = |realm: &Realm| request(realm, &config, 1, Instant::ZERO, false, 200, 9_000);
    let payloads = |p: &Pair| -> Vec<_> { p.sent.iter().map(|s| s.payload.clone()).collect() };
    let (first, again) = (
        one(&ecdsa),
        one(&Realm::new(1).unwrap().with_ecdsa().unwrap()),
    );
    assert_eq!(payloads(&first), payloads(&again));
    assert_ne!(payloads(&first), payloads(&one(&Realm::new(1).unwrap())));
    // Early data with the ticket.
    let second = request(&ecdsa, &config, 2, LATER, true, 200, 9_000);
    assert!(taken(&second, LATER) < taken(&first, Instant::ZERO) - 20.0);
}

const LATER: Instant = Instant::from_nanos(10_000_000_000);

#[test]
fn early_data_saves_one_round_trip() {
    for crypto in [Crypto::Tls, Crypto::Null] {
        // Within the initial window, which tickets and a probe of the MTU share with an answer.
        for (ask, answer) in [(200, 9_000), (10_000, 200)] {
            let config = Config {
                crypto,
                ..Config::default()
            };
            let realm = Realm::new(1).unwrap();
            let first = request(&realm, &config, 1, Instant::ZERO, true, ask, answer);
            let early = Event::Connected { early: true };
            assert_eq!(first.happened(CLIENT, &early), None, "no ticket yet");
            let none = Event::HandshakeComplete { zero_rtt: None };
            assert!(first.happened(CLIENT, &none).is_some());
            let second = request(&realm, &config, 2, LATER, true, ask, answer);
            assert_eq!(second.happened(CLIENT, &early), Some(LATER));
            assert!(second.happened(SERVER, &early).is_some());
            let accepted = Event::HandshakeComplete {
                zero_rtt: Some(true),
            };
            assert!(second.happened(CLIENT, &accepted).is_some());
            assert!(second.happened(SERVER, &accepted).is_some());
            let saved = taken(&first, Instant::ZERO) - taken(&second, LATER);
            assert!((49.0..51.0).contains(&saved), "{saved} ms, {ask}, {answer}");
        }
    }
}

#[test]
fn tickets_are_kept_but_not_used_unless_wanted() {
    let (realm, config) = (Realm::new(1).unwrap(), Config::default());
    let first = request(&realm, &config, 1, Instant::ZERO, false, 200, 5_000);
    let second = request(&realm, &config, 2, LATER, false, 200, 5_000);
    let sizes = |p: &Pair| {
        let sent = p.sent.iter().take(6);
        sent.map(|s| (s.from, s.payload.len())).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&first), sizes(&second), "a full handshake again");
    let third = request(&realm, &config, 3, LATER, true, 200, 5_000);
    assert!(
        third
            .happened(CLIENT, &Event::Connected { early: true })
            .is_some()
    );
}

#[test]
fn rejected_early_data_is_sent_again() {
    let (realm, config) = (Realm::new(1).unwrap(), Config::default());
    let _ = request(&realm, &config, 1, Instant::ZERO, false, 200, 5_000);
    realm.forget_tickets(crate::pair::addr(2).ip());
    let p = request(&realm, &config, 2, LATER, true, 30_000, 5_000);
    assert!(
        p.happened(CLIENT, &Event::Connected { early: true })
            .is_some()
    );
    let rejected = Event::HandshakeComplete {
        zero_rtt: Some(false),
    };
    assert!(p.happened(CLIENT, &rejected).is_some());
    assert!(
        p.happened(SERVER, &Event::Connected { early: true })
            .is_none()
    );
    assert_eq!(
        p.events[CLIENT]
            .iter()
            .filter(|(_, e)| matches!(e, Event::Failed(_)))
            .count(),
        0
    );
}

#[test]
fn a_resumed_server_answers_at_once_however_long_its_answer() {
    // The address token removes the limit of three times the received bytes (RFC 9000 §8.1).
    let (realm, config) = (Realm::new(1).unwrap(), Config::default());
    let _ = request(&realm, &config, 1, Instant::ZERO, false, 200, 9_000);
    let p = request(&realm, &config, 2, LATER, true, 200, 9_000);
    let ms = taken(&p, LATER);
    assert!((50.0..54.0).contains(&ms), "{ms} ms");
}

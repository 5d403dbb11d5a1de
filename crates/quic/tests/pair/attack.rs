//! Connections under attack: by an observer without keys, and by a peer that has them.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::BytesMut;
use gargalo_quic::{Config, Crypto, Datagram, Endpoint, Event, Realm, Stack, change_frames};
use gargalo_settings::Switch;
use gargalo_units::{Duration, Ecn};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::abuse::{ALLOWED, NAMES, abuse};
use super::{CLIENT, Link, Pair, SERVER, addr, init, ours, pair_in};

/// The datagrams of an attacker without keys.
pub const OUTSIDE: [&str; 9] = [
    "bits flipped",
    "cut or longer",
    "noise for the connection",
    "noise that looks like a stateless reset",
    "repeated",
    "repeated from elsewhere",
    "Version Negotiation",
    "Retry",
    "Initial of a stranger",
];

/// The result of an attack.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Datagrams without keys, by kind.
    pub outside: [u64; OUTSIDE.len()],
    /// Packets with keys, by kind.
    pub inside: [u64; NAMES.len()],
    /// Connections attacked only without keys; all delivered every byte.
    pub honest: u64,
    /// Connections with a malicious peer, and how many of them ended by it.
    pub abused: u64,
    pub ended: u64,
    /// Most packets that a victim sent in answer to one.
    pub most_answers: u64,
}

const EACH_WAY: u64 = 40_000;
/// Packets of a malicious peer in one connection.
const PACKETS: u64 = 800;

/// Sends about `total` packets, half of them without keys, half with.
pub fn attack(seed: u64, total: u64, watch: &mut dyn FnMut()) -> Outcome {
    let realm = Realm::new(seed).unwrap();
    let mut out = Outcome::default();
    let mut rng = Pcg64::new(seed.into(), 7);
    let sum = |n: &[u64]| n.iter().sum::<u64>();
    let mut round = 0;
    while sum(&out.outside) + sum(&out.inside) < total {
        let all = sum(&out.outside) + sum(&out.inside);
        let left = total - all;
        if sum(&out.outside) <= sum(&out.inside) {
            from_outside(&realm, seed + round, left, &mut rng, &mut out);
        } else {
            from_inside(&realm, seed + round, left, &mut rng, &mut out);
        }
        round += 1;
        if round.is_multiple_of(16) {
            watch();
        }
    }
    out
}

fn between(realm: &Realm, seed: u64, config: &Config) -> Pair {
    let mut p = pair_in(
        realm,
        [config; 2],
        &ours("cubic"),
        [Link::new(50, 5); 2],
        [init(CLIENT, seed), init(SERVER, seed)],
    );
    p.run_until(Duration::from_secs(2), |p| {
        let is_done = |e: &(_, Event)| matches!(e.1, Event::HandshakeComplete { .. });
        p.events.iter().all(|e| e.iter().any(is_done))
    });
    p
}

/// An attacker without keys does no harm: every byte arrives.
fn from_outside(realm: &Realm, seed: u64, most: u64, rng: &mut Pcg64, out: &mut Outcome) {
    let mut p = between(realm, seed, &Config::default());
    p.apps[CLIENT].to_send = vec![EACH_WAY];
    p.apps[SERVER].answer = Some(EACH_WAY);
    let burst = [1, 4, 16][rng.random_range(0..3)];
    let mut made = 0;
    p.run_until(Duration::from_secs(60), |p| {
        for _ in 0..burst {
            if made < most {
                let to = rng.random_range(0..2);
                let (kind, datagram) = forged(p, to, rng);
                out.outside[kind] += 1;
                made += 1;
                let before = p.sent.len();
                p.deliver(to, datagram);
                p.poke();
                out.most_answers = out.most_answers.max((p.sent.len() - before) as u64);
            }
        }
        let kept = p.sent.len().saturating_sub(400);
        p.sent.drain(..kept);
        !p.apps[CLIENT].ended.is_empty() && p.is_settled()
    });
    let read = [SERVER, CLIENT].map(|s| p.apps[s].read.values().sum::<u64>());
    assert_eq!(read, [EACH_WAY; 2]);
    out.honest += 1;
}

fn forged(p: &Pair, to: usize, rng: &mut Pcg64) -> (usize, Datagram) {
    let kind = rng.random_range(0..OUTSIDE.len());
    let real: Vec<_> = p.sent.iter().filter(|s| s.from != to).collect();
    let own = real.get(rng.random_range(0..real.len().max(1)));
    let mut d: Vec<u8> = own.map(|s| s.payload.clone()).unwrap_or_default();
    let mut noise = vec![0; rng.random_range(21..600)];
    rng.fill_bytes(&mut noise);
    let mut from = addr(2 - to as u8);
    match kind {
        0 => flip(&mut d, rng),
        1 if d.len() > 1 && rng.random() => d.truncate(rng.random_range(1..d.len())),
        1 => d.extend(noise),
        2 | 3 => {
            // The first byte and the connection identifier are valid.
            let known = if kind == 2 { 9 } else { 1 };
            d.truncate(known);
            d.extend(noise);
            d[0] = d[0] & 0x3f | 0x40;
        }
        4 => {}
        5 => {
            // A datagram that arrived long ago; a new one would be a valid path (RFC 9000 §9.3.3).
            let old = real
                .iter()
                .rev()
                .find(|s| p.now - s.at > Duration::from_millis(200));
            d = old.map(|s| s.payload.clone()).unwrap_or(noise);
            from = addr(rng.random_range(3..250));
        }
        6..=8 => {
            let version: u32 = [0, 1, 1][kind - 6];
            let first: u8 = [0x80, 0xf0, 0xc0][kind - 6] | rng.random_range(0..16);
            let ids = d.get(1..9).map(<[u8]>::to_vec).unwrap_or_default();
            d = vec![first];
            d.extend(version.to_be_bytes());
            d.push(ids.len() as u8);
            d.extend(&ids);
            d.push(8);
            d.extend(noise);
            if kind == 8 {
                from = addr(rng.random_range(3..250));
                d.resize(1200, 0);
            }
        }
        _ => {}
    }
    let datagram = Datagram {
        payload: BytesMut::from(&d[..]),
        ecn: Ecn::NotEct,
        local: from,
        remote: addr(to as u8 + 1),
    };
    (kind, datagram)
}

fn flip(d: &mut [u8], rng: &mut Pcg64) {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..d.len().max(1));
        if let Some(b) = d.get_mut(at) {
            *b ^= 1 << rng.random_range(0..8);
        }
    }
}

/// The peer's packets carry invalid frames; the connection may end by them, with no other effect.
fn from_inside(realm: &Realm, seed: u64, most: u64, rng: &mut Pcg64, out: &mut Outcome) {
    let config = Config {
        crypto: Crypto::Null,
        multipath: Switch::To(if rng.random_bool(0.3) { 4 } else { 1 }),
        stream_window: 400_000,
        connection_window: 1_000_000,
        ..Config::default()
    };
    let mut p = between(realm, seed, &config);
    let victim = rng.random_range(0..2);
    // Every other one stays within what is allowed; each kind has its turn.
    let (within_bounds, favourite) = (
        out.abused.is_multiple_of(2),
        out.abused as usize / 2 % NAMES.len(),
    );
    let most = most.min(PACKETS);
    let rate = [0.02, 0.3, 1.0][rng.random_range(0..3)];
    let made = Rc::new(RefCell::new([0u64; NAMES.len()]));
    let counted = made.clone();
    p.mangle = Some(Box::new(move |rng, to, payload| {
        if to == victim && rng.random_bool(rate) {
            let kind = match within_bounds {
                true => ALLOWED[rng.random_range(0..ALLOWED.len())],
                false if rng.random() => favourite,
                false => rng.random_range(0..NAMES.len()),
            };
            if change_frames(payload, |f| abuse(rng, kind, f)) {
                counted.borrow_mut()[kind] += 1;
            }
        }
        true
    }));
    for app in &mut p.apps {
        app.unchecked = true;
        app.bulk = 20_000_000;
    }
    p.keep = false;
    p.poke();
    let until = p.now + Duration::from_secs(3);
    while p.now < until && made.borrow().iter().sum::<u64>() < most && p.step() {
        if p.ends.iter().all(Endpoint::is_over) {
            break;
        }
    }
    out.abused += 1;
    let over = |e: &(_, Event)| matches!(e.1, Event::Failed(_) | Event::Closed);
    out.ended += u64::from(p.events[victim].iter().any(over));
    for (sum, n) in out.inside.iter_mut().zip(&*made.borrow()) {
        *sum += n;
    }
}

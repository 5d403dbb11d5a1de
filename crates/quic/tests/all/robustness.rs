//! Lost, late, duplicated, damaged and forged datagrams.

use crate::pair::{CLIENT, Link, Pair, SERVER, addr, ours, pair};
use bytes::BytesMut;
use gargalo_quic::{Config, Crypto, Direction, Event, Stack};
use gargalo_units::{Count, Duration, Ecn, Instant};
use proptest::prelude::*;
use rand::{Rng, RngExt};

fn crypto() -> impl Strategy<Value = Crypto> {
    prop_oneof![Just(Crypto::Tls), Just(Crypto::Null)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bad_networks_deliver_every_byte(
        seed in 0u64..1000,
        crypto in crypto(),
        loss in 0.0..0.15f64,
        duplication in 0.0..0.1f64,
        jitter_ms in 0u64..40,
        streams in prop::collection::vec(0u64..120_000, 1..6),
        answer in 0u64..60_000,
    ) {
        let config = Config { crypto, idle_timeout: Duration::from_secs(86_400), ..Config::default() };
        let mut link = Link::new(20, 10);
        link.loss = loss;
        link.duplication = duplication;
        link.jitter = Duration::from_millis(jitter_ms);
        let mut p = pair(seed, &config, &ours("cubic"), link);
        p.keep = false;
        let (sum, n) = (streams.iter().sum::<u64>(), streams.len());
        p.apps[CLIENT].to_send = streams;
        p.apps[SERVER].answer = Some(answer);
        p.run_until(Duration::from_secs(600), |p| {
            p.is_settled() && p.apps[CLIENT].ended.len() == n
        });
        prop_assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), sum);
        prop_assert_eq!(p.apps[CLIENT].read.values().sum::<u64>(), answer * n as u64);
    }

    #[test]
    fn damaged_datagrams_do_no_harm(seed in 0u64..1000, crypto in crypto(), share in 0.01..0.2f64) {
        let config = Config { crypto, ..Config::default() };
        let mut p = pair(seed, &config, &ours("cubic"), Link::new(20, 10));
        p.keep = false;
        p.mangle = Some(Box::new(move |rng, _, payload| {
            if rng.random_bool(share) {
                match rng.random_range(0..4) {
                    0 => payload.truncate(rng.random_range(0..=payload.len())),
                    1 => rng.fill_bytes(payload),
                    2 => payload.extend_from_slice(&[0x40; 30]),
                    _ => {
                        let at = rng.random_range(0..payload.len());
                        payload[at] ^= 1 << rng.random_range(0..8);
                    }
                }
            }
            !payload.is_empty()
        }));
        p.apps[CLIENT].to_send = vec![60_000; 3];
        // Headers of long packets are not protected before keys are known: a handshake may fail, cleanly.
        p.run_until(Duration::from_secs(300), |p| p.is_settled() || p.ends.iter().any(|e| e.is_over()));
        if p.is_settled() && !p.apps[SERVER].ended.is_empty() {
            prop_assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), 180_000);
        }
    }

    #[test]
    fn invented_datagrams_do_no_harm(
        data in prop::collection::vec(any::<u8>(), 0..1500),
        first in any::<u8>(),
        moment in 0usize..40,
        crypto in crypto(),
    ) {
        let config = Config { crypto, ..Config::default() };
        let mut p = pair(2, &config, &ours("reno"), Link::new(20, 10));
        p.apps[CLIENT].to_send = vec![60_000];
        for _ in 0..moment {
            p.step();
        }
        for side in [CLIENT, SERVER] {
            let mut data = data.clone();
            // From an unknown address, from the peer's, and with a valid connection ID.
            let ids = p.sent.iter().rev().find(|s| s.from != side).map(|s| s.payload.clone());
            for stranger in [true, false, false] {
                let from = addr(if stranger { 9 } else { 2 - side as u8 });
                let now = p.now;
                p.ends[side].handle(now, BytesMut::from(&data[..]), Ecn::NotEct, addr(side as u8 + 1), from);
                if let Some(ids) = &ids {
                    let n = data.len().min(ids.len()).min(20);
                    data[..n].copy_from_slice(&ids[..n]);
                    if n > 0 { data[0] = first; }
                }
            }
        }
        p.run_until(Duration::from_secs(60), |p| p.is_settled() || p.ends.iter().any(|e| e.is_over()));
        prop_assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), 60_000);
    }
}

#[test]
fn handshakes_survive_heavy_loss() {
    let config = Config {
        idle_timeout: Duration::from_secs(86_400),
        ..Config::default()
    };
    let mut timeouts = Count::default();
    for seed in 0..40 {
        let mut link = Link::new(20, 10);
        link.loss = 0.3;
        let mut p = pair(seed, &config, &ours("cubic"), link);
        p.apps[CLIENT].to_send = vec![5_000];
        p.run_until(Duration::from_secs(300), Pair::is_settled);
        assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), 5_000);
        timeouts += p.ends[CLIENT].stats().sender.timeouts;
    }
    assert!(timeouts > 20, "{timeouts}");
}

#[test]
fn probe_timeouts_are_counted() {
    // All of the first data is lost: only a probe detects it.
    let config = Config::default();
    let mut p = pair(1, &config, &ours("cubic"), Link::new(20, 10));
    p.run_until(Duration::from_secs(1), |p| !p.events[CLIENT].is_empty());
    p.apps[CLIENT].to_send = vec![8_000];
    assert_eq!(p.ends[CLIENT].stats().sender.timeouts, 0);
    let blind = p.now + Duration::from_millis(40);
    let now = std::rc::Rc::new(std::cell::Cell::new(p.now));
    let seen = now.clone();
    p.mangle = Some(Box::new(move |_, _, _| seen.get() > blind));
    p.run_until(Duration::from_secs(10), |p| {
        now.set(p.now);
        p.is_settled()
    });
    let stats = p.ends[CLIENT].stats();
    let timeouts = stats.sender.timeouts.get().unwrap();
    assert!((1..=3).contains(&timeouts), "{stats:?}");
    let notices: Vec<_> = std::iter::from_fn(|| p.ends[CLIENT].poll_notice())
        .filter(|n| n.kind == "timeout")
        .collect();
    assert_eq!(notices.len() as u64, timeouts);
}

#[test]
fn silence_ends_a_connection() {
    let config = Config {
        idle_timeout: Duration::from_secs(3),
        ..Config::default()
    };
    let mut p = pair(1, &config, &ours("cubic"), Link::new(20, 10));
    p.apps[CLIENT].to_send = vec![20_000];
    p.run_until(Duration::from_secs(1), Pair::is_settled);
    let quiet = p.now;
    p.run_until(Duration::from_secs(10), |p| {
        p.ends.iter().all(|e| e.is_over())
    });
    let silent = (p.now - quiet).as_secs_f64();
    assert!((2.9..3.2).contains(&silent), "{silent}");
    for side in [CLIENT, SERVER] {
        let (_, last) = p.events[side].last().unwrap();
        assert!(
            matches!(last, Event::Failed(why) if why.contains("timed out")),
            "{last:?}"
        );
        assert_eq!(p.ends[side].write_room(0), 0);
        assert_eq!(p.ends[side].open(p.now, Direction::Bidirectional), None);
        assert_eq!(p.ends[side].poll_timeout(), None);
    }
}

#[test]
fn nobody_there() {
    let config = Config {
        idle_timeout: Duration::from_secs(5),
        ..Config::default()
    };
    let mut link = Link::new(20, 10);
    link.loss = 1.0;
    let mut p = pair(1, &config, &ours("cubic"), link);
    p.run_until(Duration::from_secs(20), |p| p.ends[CLIENT].is_over());
    assert!(matches!(&p.events[CLIENT][..], [(_, Event::Failed(_))]));
    assert!(!p.ends[SERVER].is_over() && p.events[SERVER].is_empty());
    let now = p.now;
    p.ends[SERVER].close(now);
    assert!(p.ends[SERVER].is_over());
}

#[test]
fn either_end_may_close() {
    let config = Config::default();
    for side in [CLIENT, SERVER] {
        let mut p = pair(1, &config, &ours("cubic"), Link::new(20, 10));
        p.apps[CLIENT].to_send = vec![10_000_000];
        p.run_until(Duration::from_secs(1), |p| {
            p.now > Instant::from_nanos(500_000_000)
        });
        let now = p.now;
        p.ends[side].close(now);
        p.ends[side].close(now);
        assert_eq!(p.ends[side].write_room(0), 0);
        p.run_until(Duration::from_secs(10), |p| {
            p.ends.iter().all(|e| e.is_over())
        });
        for s in [CLIENT, SERVER] {
            let closed = p.events[s].iter().filter(|(_, e)| *e == Event::Closed);
            assert_eq!(closed.count(), 1, "{:?}", p.events[s]);
        }
    }
}

//! Migration of clients, and multipath.

use std::net::SocketAddr;

use crate::pair::{CLIENT, Link, Pair, SERVER, addr, ours, pair};
use gargalo_quic::{Config, Crypto, Event, Stack};
use gargalo_settings::Switch;
use gargalo_units::{Duration, Instant, SenderCounters};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_client_may_move() {
    let (other_port, other_address) = (
        SocketAddr::from(([10, 0, 0, 1], 4444)),
        SocketAddr::from(([10, 0, 7, 1], 4433)),
    );
    for to in [other_port, other_address] {
        for upload in [true, false] {
            let mut p = pair(1, &Config::default(), &ours("cubic"), Link::new(20, 10));
            p.watch_addresses();
            p.apps[CLIENT].to_send = vec![if upload { 3_000_000 } else { 100 }];
            p.apps[SERVER].answer = Some(if upload { 100 } else { 3_000_000 });
            p.run_until(Duration::from_secs(10), |p| p.now > at(400));
            let now = p.now;
            p.ends[CLIENT].migrate(now, to);
            p.poke();
            p.run_until(Duration::from_secs(60), |p| {
                p.is_settled() && p.apps[CLIENT].ended.len() == 1
            });
            p.close();
            assert!(p.happened(CLIENT, &Event::Closed).is_some());
            let (last, _) = p.addresses[CLIENT].last().unwrap();
            assert_eq!(*last, to, "the client sends from its new address");
            let (_, last) = p.addresses[SERVER].last().unwrap();
            assert_eq!(*last, to, "and is answered there");
            let taken = (p.apps[CLIENT].ended[0].0 - Instant::ZERO).as_secs_f64();
            assert!(taken < 4.0, "{taken} s, {to}, {upload}");
        }
    }
}

#[test]
fn two_paths_carry_more_than_one() {
    let seconds = |paths, crypto| {
        let config = Config {
            multipath: Switch::To(paths),
            crypto,
            ..Config::default()
        };
        let mut p = pair(1, &config, &ours("cubic"), Link::new(10, 10));
        p.watch_addresses();
        p.second_wires(Link::new(10, 10));
        p.apps[CLIENT].to_send = vec![3_000_000; 2];
        p.run_until(Duration::from_secs(5), |p| p.now > at(100));
        let now = p.now;
        let (local, remote) = (
            SocketAddr::from(([10, 1, 0, 1], 0)),
            SocketAddr::from(([10, 1, 0, 2], 4433)),
        );
        p.ends[CLIENT].open_path(now, local.ip(), remote);
        p.poke();
        p.run_until(Duration::from_secs(60), Pair::is_settled);
        if paths == 2 {
            check_paths(&mut p);
        } else {
            assert!(p.ends[CLIENT].paths().is_empty());
        }
        let used: std::collections::BTreeSet<_> = p.addresses[CLIENT].iter().copied().collect();
        let notices: Vec<_> = std::iter::from_fn(|| p.ends[CLIENT].poll_notice())
            .filter(|n| n.kind == "path")
            .map(|n| n.detail)
            .collect();
        let taken = (p.apps[SERVER].ended[1].0 - Instant::ZERO).as_secs_f64();
        p.close();
        (taken, used.len(), notices)
    };
    let (one, used, notices) = seconds(1, Crypto::Tls);
    assert_eq!(used, 1);
    assert!(notices[0].contains("cannot open"), "{notices:?}");
    let (two, used, notices) = seconds(2, Crypto::Tls);
    assert_eq!(used, 2);
    assert!(
        notices.iter().any(|n| n.contains("established")),
        "{notices:?}"
    );
    assert!(two < 0.65 * one, "{two} s with two, {one} s with one");
    assert_eq!(seconds(2, Crypto::Null).0, two);
    assert_eq!(addr(1).port(), 4433);
}

/// A window of packets waits for a slower path, in more pieces than noq reassembles itself.
#[test]
fn paths_that_differ_fill_the_window_and_no_more() {
    let slow = Link::new(20, 150);
    // The missing amount on this one is below the granularity of window updates.
    let thin = Link {
        buffer: 30_000,
        ..Link::new(1, 10)
    };
    for (window, first) in [(4 << 20, slow), (16 << 20, slow), (4 << 20, thin)] {
        let config = Config {
            multipath: Switch::To(2),
            connection_window: window,
            stream_window: window,
            ..Config::default()
        };
        let mut p = pair(1, &config, &ours("reno"), first);
        p.second_wires(Link::new(400, 2));
        let size = 40_000_000;
        p.apps[CLIENT].to_send = vec![size];
        p.run_until(Duration::from_secs(5), |p| p.now > at(700));
        let (now, remote) = (p.now, SocketAddr::from(([10, 1, 0, 2], 4433)));
        let local = SocketAddr::from(([10, 1, 0, 1], 0)).ip();
        p.ends[CLIENT].open_path(now, local, remote);
        p.poke();
        let mut most = 0;
        p.run_until(Duration::from_secs(120), |p| {
            let sent = p.ends[CLIENT].stats().sender;
            let repeated = sent.retransmitted_packets.get().unwrap() * 1500;
            let read: u64 = p.apps[SERVER].read.values().sum();
            most = most.max(
                sent.sent_bytes
                    .get()
                    .unwrap()
                    .saturating_sub(read + repeated),
            );
            p.is_settled()
        });
        assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), size);
        assert!(
            most > window / 2,
            "{most} of {window}: the window was in use"
        );
        assert!(most <= window + 100, "{most} of {window}");
        p.close();
    }
}

/// Checks that both endpoints have two paths, and the data on each.
fn check_paths(p: &mut Pair) {
    let (near, far) = (p.ends[CLIENT].paths(), p.ends[SERVER].paths());
    assert_eq!((near.len(), far.len()), (2, 2));
    let stats = p.ends[CLIENT].stats();
    for (i, (a, b)) in near.iter().zip(&far).enumerate() {
        assert_eq!((a.id, b.id), (i as u32, i as u32));
        assert_eq!(a.local, b.remote.ip());
        assert_eq!(a.remote.ip(), b.local);
        assert!(a.counters.sent_bytes >= b.received_bytes && b.received_bytes > 1_000_000);
        assert!(a.sender.cwnd.get() > 12_000 && a.sender.srtt.is_some());
        assert_eq!(a.closed, None);
    }
    assert!(near[0].opened < near[1].opened);
    assert_ne!(near[0].sender, near[1].sender);
    let mut sum = SenderCounters::default();
    near.iter().for_each(|p| sum += p.counters);
    assert_eq!(sum.sent_bytes, stats.sender.sent_bytes);
    assert_eq!(sum.lost_packets, stats.sender.lost_packets);
    assert_eq!(sum.timeouts, stats.sender.timeouts);
    assert_eq!(
        sum.retransmitted_packets,
        stats.sender.retransmitted_packets
    );
}

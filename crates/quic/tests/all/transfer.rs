//! Bulk transfers between two endpoints.

use std::sync::{Arc, Mutex};

use crate::pair::{CLIENT, Link, Pair, SERVER, ours, pair};
use gargalo_cc as cc;
use gargalo_quic::{AckFrequency, Config, Congestion, Crypto, Event, Stack};
use gargalo_settings::{Switch, Window};
use gargalo_units::{Bytes, Duration, Instant};

const MB: u64 = 1_000_000;

fn transfer(config: &Config, congestion: &Congestion, link: Link, bytes: u64) -> Pair {
    let mut p = pair(1, config, congestion, link);
    p.apps[CLIENT].to_send = vec![bytes];
    p.run_until(Duration::from_secs(300), Pair::is_settled);
    assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), bytes);
    assert_eq!(p.apps[SERVER].ended.len(), 1);
    p
}

fn seconds(at: Instant) -> f64 {
    (at - Instant::ZERO).as_secs_f64()
}

#[test]
fn connects_transfers_and_closes() {
    for crypto in [Crypto::Tls, Crypto::Null] {
        let config = Config {
            crypto,
            ..Config::default()
        };
        let mut p = transfer(&config, &ours("cubic"), Link::new(100, 10), 5 * MB);
        let connected = p
            .happened(CLIENT, &Event::Connected { early: false })
            .unwrap();
        let ms = seconds(connected) * 1e3;
        assert!((20.0..21.0).contains(&ms), "one round trip, not {ms} ms");
        let taken = seconds(p.apps[SERVER].ended[0].0);
        assert!((0.4..0.7).contains(&taken), "{taken} s");
        p.close();
        assert!(p.happened(CLIENT, &Event::Closed).is_some());
        assert!(p.happened(SERVER, &Event::Closed).is_some());
        let stats = p.ends[CLIENT].stats();
        assert_eq!(stats.sender.sent_bytes, 5 * MB);
        let lost = stats.sender.retransmitted_packets + stats.sender.lost_packets;
        let alarms = stats.sender.timeouts + stats.sender.spurious_losses;
        assert_eq!(lost + alarms, 0);
        let sent = p.sent.iter().filter(|s| s.from == CLIENT);
        assert_eq!(stats.sent_datagrams, sent.clone().count() as u64);
        let bytes: usize = sent.map(|s| s.payload.len()).sum();
        assert_eq!(stats.sent_datagram_bytes, bytes as u64);
    }
}

/// What a control was told with each acknowledgement: when, the sample, and the least round trip of its path.
type Told = Arc<Mutex<Vec<(Instant, Option<Duration>, Option<Duration>)>>>;

#[derive(Clone, Debug)]
struct Witness(Told);

impl cc::Controller for Witness {
    fn on_ack(&mut self, ack: &cc::Acked, path: &cc::Path<'_>) {
        let told = (ack.now, ack.rtt, path.min_rtt);
        self.0.lock().unwrap().push(told);
    }
    fn on_congestion(&mut self, _event: &cc::Congestion, _path: &cc::Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(50_000)
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "slow-start"
    }
    fn clone_box(&self) -> Box<dyn cc::Controller> {
        Box::new(self.clone())
    }
}

/// docs/tcp.md, "The first round trip": the acknowledgements of the handshake are reported as any others, and a Retry
/// is none (RFC 9002 §6.3).
#[test]
fn a_control_begins_with_the_round_trip_of_the_handshake() {
    for retry in [false, true] {
        let config = Config {
            retry,
            ..Config::default()
        };
        let all: Arc<Mutex<Vec<Told>>> = Arc::default();
        let made = all.clone();
        let congestion = Congestion::Ours(Arc::new(move |_| {
            let told = Told::default();
            made.lock().unwrap().push(told.clone());
            Ok(Box::new(Witness(told)))
        }));
        // The window makes a queue of 200 ms, and the server has nothing to send.
        let mut p = transfer(&config, &congestion, Link::new(2, 20), MB);
        let connected = p
            .happened(CLIENT, &Event::Connected { early: false })
            .unwrap();
        p.close();
        // The client's, which sends nearly everything.
        let all = all.lock().unwrap();
        let told = all.iter().max_by_key(|t| t.lock().unwrap().len()).unwrap();
        let told = told.lock().unwrap();
        let (first, rtt, least) = told[0];
        let trips = if retry { 2 } else { 1 };
        let ms = seconds(first) * 1e3 / f64::from(trips);
        assert!((40.0..60.0).contains(&ms), "{ms} ms a round trip");
        assert!(first <= connected);
        let rtt = rtt.unwrap();
        assert_eq!(least, Some(rtt));
        let ms = rtt.as_secs_f64() * 1e3;
        assert!(
            (40.0..60.0).contains(&ms),
            "{ms} ms is that of one round trip"
        );
        let of_data = told
            .iter()
            .filter(|t| t.0 > connected + Duration::from_millis(250));
        let of_data: Vec<_> = of_data.filter(|t| t.1.is_some()).collect();
        assert!(of_data.len() > 100, "{}", of_data.len());
        for (_, sample, least) in of_data {
            assert!(sample.unwrap() > rtt * 2);
            assert!(least.unwrap() <= rtt);
        }
    }
}

#[test]
fn null_crypto_has_the_same_sizes_at_the_same_times() {
    let traces = [Crypto::Tls, Crypto::Null].map(|crypto| {
        let config = Config {
            crypto,
            ..Config::default()
        };
        let mut link = Link::new(50, 20);
        link.loss = 0.002;
        link.buffer = 100_000;
        let mut p = transfer(&config, &ours("cubic"), link, 4 * MB);
        p.close();
        assert!(p.drops > 0);
        p.sent
            .iter()
            .map(|s| (s.at, s.from, s.payload.len()))
            .collect::<Vec<_>>()
    });
    assert!(traces[0].len() > 2000, "past the first key update");
    assert_eq!(traces[0], traces[1]);
}

#[test]
fn every_congestion_control_gets_everything_through() {
    let mut all: Vec<(&str, Congestion)> = gargalo_cc::ALGORITHMS
        .iter()
        .map(|a| (a.name, ours(a.name)))
        .collect();
    all.push(("noq-cubic", Congestion::NoqCubic));
    all.push(("noq-newreno", Congestion::NoqNewReno));
    all.push(("noq-bbr3", Congestion::NoqBbr3));
    let config = Config {
        crypto: Crypto::Null,
        ..Config::default()
    };
    for (name, congestion) in all {
        let mut link = Link::new(20, 10);
        link.loss = 0.001;
        link.buffer = 60_000;
        let mut p = transfer(&config, &congestion, link, 4 * MB);
        let mbps = 8.0 * 4.0 / seconds(p.apps[SERVER].ended[0].0);
        assert!((4.0..20.0).contains(&mbps), "{name}: {mbps} Mbit/s");
        let snapshot = p.ends[CLIENT].snapshot();
        assert!(snapshot.cwnd.get() >= 2400, "{name}: {snapshot:?}");
        assert!(
            snapshot
                .srtt
                .is_some_and(|s| s >= Duration::from_millis(20)),
            "{name}: {snapshot:?}"
        );
        assert!(!snapshot.phase.is_empty());
        let stats = p.ends[CLIENT].stats();
        assert!(stats.sender.lost_packets > 0, "{name}");
        let lost = stats.sender.lost_packets.get().unwrap();
        let again = stats.sender.retransmitted_packets.get().unwrap();
        assert!(again.abs_diff(lost) < 30, "{name}: {stats:?}");
    }
}

#[test]
fn without_pacing_the_initial_window_leaves_at_once() {
    let flight = |pacing| {
        let config = Config {
            pacing,
            mtu_discovery: Switch::Off,
            initial_window: Window::Bytes(Bytes::new(20 * 1200)),
            ..Config::default()
        };
        let p = transfer(&config, &ours("reno"), Link::new(1000, 50), MB);
        let connected = p
            .happened(CLIENT, &Event::Connected { early: false })
            .unwrap();
        let full: Vec<_> = p
            .sent
            .iter()
            .filter(|s| s.from == CLIENT && s.at >= connected && s.payload.len() > 1100)
            .map(|s| (s.at - connected).as_nanos())
            .collect();
        (full[..20].to_vec(), full[20])
    };
    let (burst, next) = flight(false);
    assert!(burst.iter().all(|t| *t < 100), "{burst:?}");
    assert!(next > 90_000_000, "{next}");
    // Ten packets at once, then two windows per round trip.
    let (paced, _) = flight(true);
    assert!(paced[..9].iter().all(|t| *t < 100), "{paced:?}");
    let five = paced[19] - paced[14];
    assert!((12_000_000..13_000_000).contains(&five), "{paced:?}");
}

#[test]
fn datagrams_are_as_large_as_they_are_told_to_be() {
    let largest = |config: Config, mtu| {
        let mut link = Link::new(50, 5);
        link.mtu = mtu;
        // No queue: each probe takes one of the path's round trips.
        let config = Config {
            max_window: Some(Window::Bytes(Bytes::new(60_000))),
            ..config
        };
        let mut p = transfer(&config, &ours("cubic"), link, 2 * MB);
        let notices: Vec<_> = std::iter::from_fn(|| p.ends[CLIENT].poll_notice())
            .filter(|n| n.kind == "mtu")
            .collect();
        let sent = p.sent.iter().filter(|s| s.payload.len() <= mtu);
        (sent.map(|s| s.payload.len()).max().unwrap(), notices.len())
    };
    let found = largest(Config::default(), 65_000);
    assert_eq!(found.0, 1452);
    assert!(found.1 > 0);
    let (found, _) = largest(Config::default(), 1350);
    assert!((1326..=1350).contains(&found), "{found}"); // to within 20 bytes or so
    for size in [1200, 1350, 1500, 9000] {
        let config = Config {
            datagram_size: size,
            mtu_discovery: Switch::Off,
            initial_window: Window::Bytes(Bytes::new(10 * u64::from(size))),
            ..Config::default()
        };
        assert_eq!(largest(config, 65_000), (usize::from(size), 0));
    }
}

#[test]
fn acknowledgements_are_as_rare_as_asked_for() {
    let acks = |frequency| {
        let config = Config {
            ack: frequency,
            ..Config::default()
        };
        let p = transfer(&config, &ours("cubic"), Link::new(50, 20), 3 * MB);
        p.sent.iter().filter(|s| s.from == SERVER).count()
    };
    let each_second = acks(None);
    let each_tenth = acks(Some(AckFrequency {
        every: 10,
        max_delay: None,
        reordering: 3,
    }));
    assert!((1000..1400).contains(&each_second), "{each_second}");
    assert!((200..400).contains(&each_tenth), "{each_tenth}");
}

#[test]
fn congestion_is_marked_only_with_ecn() {
    let run = |ecn| {
        let config = Config {
            ecn,
            ..Config::default()
        };
        let mut link = Link::new(20, 10);
        link.mark_above = Some(30_000);
        link.buffer = 250_000;
        let mut p = transfer(&config, &ours("cubic"), link, 4 * MB);
        let marks = p.ends[SERVER].stats().ce_marks;
        let kinds: Vec<_> = std::iter::from_fn(|| p.ends[CLIENT].poll_notice())
            .map(|n| n.kind)
            .collect();
        (marks, p.drops, kinds)
    };
    let (marks, drops, kinds) = run(true);
    assert!(marks > 10 && kinds.contains(&"ecn"), "{marks} {kinds:?}");
    assert_eq!(drops, 0);
    let (marks, drops, kinds) = run(false);
    assert!(marks == 0 && !kinds.contains(&"ecn"));
    assert!(drops > 0 && kinds.contains(&"recovery"));
}

#[test]
fn a_window_limit_limits() {
    let config = Config {
        max_window: Some(Window::Bytes(Bytes::new(50_000))),
        ..Config::default()
    };
    for congestion in [ours("cubic"), Congestion::NoqCubic] {
        let p = transfer(&config, &congestion, Link::new(100, 50), 2 * MB);
        let mbps = 16.0 / seconds(p.apps[SERVER].ended[0].0);
        assert!((3.0..4.0).contains(&mbps), "{mbps}"); // 50 kB in 100 ms
    }
}

#[test]
fn flow_control_limits() {
    let slow = |config| {
        let p = transfer(&config, &ours("cubic"), Link::new(100, 50), 2 * MB);
        16.0 / seconds(p.apps[SERVER].ended[0].0)
    };
    for config in [
        Config {
            stream_window: 50_000,
            ..Config::default()
        },
        Config {
            connection_window: 50_000,
            ..Config::default()
        },
        Config {
            send_window: 50_000,
            ..Config::default()
        },
    ] {
        let mbps = slow(config);
        assert!((2.0..4.5).contains(&mbps), "{mbps}");
    }
}

#[test]
fn many_streams_share_in_turns() {
    let mut p = pair(3, &Config::default(), &ours("cubic"), Link::new(20, 10));
    p.apps[CLIENT].to_send = vec![60_000; 30];
    p.run_until(Duration::from_secs(60), Pair::is_settled);
    assert_eq!(p.apps[SERVER].ended.len(), 30);
    let fair = seconds(p.apps[SERVER].ended[0].0) / seconds(p.apps[SERVER].ended[29].0);
    assert!(fair > 0.8, "{fair}");
}

#[test]
fn more_streams_than_allowed_wait_for_earlier_ones() {
    // A server allows a hundred at once.
    let mut p = pair(4, &Config::default(), &ours("cubic"), Link::new(20, 10));
    p.apps[CLIENT].to_send = vec![2_000; 340];
    p.apps[SERVER].answer = Some(10_000);
    p.run_until(Duration::from_secs(60), |p| {
        p.is_settled() && p.apps[CLIENT].ended.len() == 340
    });
    assert_eq!(p.apps[CLIENT].read.values().sum::<u64>(), 3_400_000);
}

#[test]
fn thousands_of_packets_may_wait_behind_a_hole() {
    let config = Config {
        crypto: Crypto::Null,
        initial_window: Window::Bytes(Bytes::new(8_000_000)),
        pacing: false,
        ..Config::default()
    };
    let mut p = pair(1, &config, &ours("reno"), Link::new(1000, 10));
    p.keep = false;
    p.apps[CLIENT].to_send = vec![9 * MB, MB];
    let mut n = 0;
    p.mangle = Some(Box::new(move |_, _, payload| {
        n += usize::from(payload.len() > 1000);
        n != 100
    }));
    p.run_until(Duration::from_secs(60), Pair::is_settled);
    assert_eq!(p.apps[SERVER].read.values().sum::<u64>(), 10 * MB);
    assert_eq!(p.apps[SERVER].ended.len(), 2);
}

//! Objects on one connection: order, head-of-line blocking, and TLS in between.

use crate::support::*;
use gargalo_flow::{FlowResult, TcpSpec, TransportSpec};
use gargalo_link::{LinkConfig, LossModel};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Rate};
use gargalo_workload::tls::Tls;
use gargalo_workload::{AppResult, Cbr, ObjectResult, OnOff, Order, Period, Request, Workload};

const FRAMES: Order = Order::Multiplexed;
/// There and back.
const RTT: f64 = 0.040;

fn link() -> LinkConfig {
    pipe(Rate::from_mbps(100), Duration::from_millis(20), 1000)
}

fn request(sizes: &[u64], order: Order) -> Workload {
    let sizes: Vec<Bytes> = sizes.iter().copied().map(Bytes::new).collect();
    Workload::Request(Request {
        order: Some(order),
        ..Request::of(sizes)
    })
}

fn over(tls: Option<Tls>, config: Config) -> TransportSpec {
    match tcp("cubic", config) {
        TransportSpec::Tcp(spec) => TransportSpec::Tcp(TcpSpec { tls, ..spec }),
        _ => panic!("not TCP"),
    }
}

/// One flow over a link whose way back to the client is given.
fn alone(down: LinkConfig, transport: TransportSpec, workload: Workload) -> FlowResult {
    let flows = vec![flow(0, 0, 1, transport, workload)];
    run(simple(link(), down), settings(1, 60.0), flows)
        .flows
        .remove(0)
}

fn objects(f: &FlowResult) -> &[ObjectResult] {
    match &f.application {
        Some(AppResult::Request(r)) => &r.objects,
        other => panic!("no objects but {other:?}"),
    }
}

/// Seconds from each request to its last byte.
fn times(f: &FlowResult) -> Vec<f64> {
    let time = |o: &ObjectResult| o.completion().expect("complete").as_secs_f64();
    objects(f).iter().map(time).collect()
}

/// One lost packet has bytes of three objects at most, but all that were sent after it wait until it was
/// repeated, though their own bytes have arrived.
#[test]
fn one_lost_packet_blocks_objects_that_lost_nothing() {
    let config = || Config {
        initial_window: Some(gargalo_settings::Window::Packets(100)),
        ..Config::modern()
    };
    let sizes = [1000; 60];
    for tls in [None, Some(Tls::FULL)] {
        let clean = alone(link(), over(tls, config()), request(&sizes, FRAMES));
        let lossy = LinkConfig {
            loss: LossModel::Periodic(30),
            ..link()
        };
        let hit = alone(lossy, over(tls, config()), request(&sizes, FRAMES));
        assert_eq!(clean.counters.retransmitted_packets, 0);
        assert_eq!(hit.counters.retransmitted_packets, 1);
        let later: Vec<usize> = times(&clean)
            .iter()
            .zip(times(&hit))
            .enumerate()
            .filter(|(_, (clean, hit))| hit - *clean > 0.9 * RTT)
            .map(|(i, _)| i)
            .collect();
        assert!(later.len() >= 15, "{later:?}");
        assert_eq!(later, (60 - later.len()..60).collect::<Vec<_>>());
        let same = 60 - later.len() - 3;
        assert_eq!(times(&clean)[..same], times(&hit)[..same]);
    }
}

#[test]
fn a_small_object_does_not_wait_behind_a_large_one_in_turns() {
    let sizes = [2_000_000, 10_000];
    let [in_order, in_turns] = [Order::Pipelined, FRAMES]
        .map(|order| alone(link(), over(None, Config::modern()), request(&sizes, order)));
    let (in_order, in_turns) = (times(&in_order), times(&in_turns));
    // 2 MB at 100 Mbit/s are 160 ms besides slow start; the small one fits into the first windows.
    assert!(in_order[1] > in_order[0], "{in_order:?}");
    assert!(in_turns[1] < 2.5 * RTT, "{in_turns:?}");
    // The frames' headers and nothing more.
    assert!(
        (in_turns[0] / in_order[1] - 1.0).abs() < 0.01,
        "{in_order:?} {in_turns:?}"
    );
}

#[test]
fn requests_that_arrive_later_share_what_is_left() {
    // 300 requests are 30 kB: more than the client's first window, so the last ones come a round trip
    // later, when the server is in the midst of its answers.
    let f = alone(
        link(),
        over(None, Config::modern()),
        request(&[20_000; 300], FRAMES),
    );
    let times = times(&f);
    assert_eq!(f.delivered.get(), 6_000_000);
    // All take turns, so that nearly all of them end late.
    let last = times.iter().copied().fold(0.0, f64::max);
    let late = times.iter().filter(|t| **t > 0.7 * last).count();
    assert!(late > 200, "{late} of 300 after 70% of {last} s");
}

#[test]
fn sequential_objects_are_asked_for_one_after_another() {
    let f = alone(
        link(),
        over(None, Config::modern()),
        request(&[1000, 1000, 1000], Order::Sequential),
    );
    let list = objects(&f);
    for (i, o) in list.iter().enumerate() {
        let asked = (o.requested - f.start).as_secs_f64();
        let expected = (i + 1) as f64 * RTT;
        assert!((asked - expected).abs() < 0.002, "object {i}: {asked}");
        assert_eq!(o.first_byte, o.completed);
    }
    assert_eq!(f.handshake, Some(list[0].requested - f.start));
    assert_eq!(f.completion, list[2].completed.map(|t| t - f.start));
}

/// RFC 8446 §2: one round trip more than TCP alone; with early data none.
#[test]
fn tls_costs_a_round_trip_and_early_data_none() {
    let took = |tls| {
        let f = alone(
            link(),
            over(tls, Config::modern()),
            request(&[10_000], Order::Sequential),
        );
        assert_eq!(f.delivered.get(), 10_000, "data of the application alone");
        let handshake = f.handshake.unwrap().as_secs_f64();
        (handshake, f.completion.unwrap().as_secs_f64())
    };
    let (plain, full, early) = (took(None), took(Some(Tls::FULL)), took(Some(Tls::RESUMED)));
    // Within the time that the flights and records take at 100 Mbit/s.
    let near = |a: f64, b: f64| (a - b).abs() < 0.000_2;
    assert!(
        near(full.0 - plain.0, RTT) && near(full.1 - plain.1, RTT),
        "{plain:?} {full:?}"
    );
    assert!(
        near(early.0, plain.0) && near(early.1, plain.1),
        "{plain:?} {early:?}"
    );
    assert!(
        near(plain.0, RTT) && near(plain.1, 2.0 * RTT + 0.000_9),
        "{plain:?}"
    );
}

/// A certificate chain larger than the server's first window costs another round trip.
#[test]
fn a_long_chain_takes_another_round_trip() {
    let handshake = |bytes| {
        let tls = Tls {
            server_flight: Bytes::new(bytes),
            ..Tls::FULL
        };
        let f = alone(
            link(),
            over(Some(tls), Config::modern()),
            request(&[1000], Order::Sequential),
        );
        f.handshake.unwrap().as_secs_f64() / RTT
    };
    assert_eq!(handshake(4_000).round(), 2.0);
    assert_eq!(handshake(20_000).round(), 3.0);
}

#[test]
fn every_workload_delivers_the_same_inside_tls() {
    let cbr = Workload::Cbr(Cbr::constant(Rate::from_mbps(2), Bytes::new(1000)));
    let on_off = Workload::OnOff(OnOff {
        rate: Rate::from_mbps(2),
        packet_size: Bytes::new(1000),
        on: Period::Exponential(Duration::from_millis(200)),
        off: Period::Exponential(Duration::from_millis(200)),
    });
    let sized = [
        bulk(1),
        bulk(16_384),
        bulk(3_000_000),
        request(&[70_000, 1], FRAMES),
    ];
    for tls in [Tls::FULL, Tls::RESUMED] {
        for workload in &sized {
            let transport = |tls| over(tls, Config::modern());
            let plain = alone(link(), transport(None), workload.clone());
            let inside = alone(link(), transport(Some(tls)), workload.clone());
            assert_eq!(plain.delivered, inside.delivered, "{workload:?}");
            assert!(inside.completion >= plain.completion, "{workload:?}");
            assert!(inside.wire.forward > plain.wire.forward, "{workload:?}");
        }
        for workload in [&cbr, &on_off] {
            let f = alone(link(), over(Some(tls), Config::modern()), workload.clone());
            // Up to the last packet on its way at the end; on-off has 150 periods of each kind.
            let rate = f.delivered.get() as f64 * 8.0 / 60.0;
            let share = if matches!(workload, Workload::Cbr(_)) {
                1.0
            } else {
                0.5
            };
            assert!(
                (rate / (2e6 * share) - 1.0).abs() < 0.2,
                "{workload:?}: {rate}"
            );
            assert!(f.completion.is_none());
        }
    }
}

/// Real bytes are carried and compared, and nothing else changes by that.
#[test]
fn content_is_verified_inside_tls_and_in_frames() {
    let lossy = LinkConfig {
        loss: LossModel::Independent(0.02),
        ..link()
    };
    for tls in [None, Some(Tls::FULL), Some(Tls::RESUMED)] {
        let go = |verify| {
            let workload = request(&[100_000; 12], FRAMES);
            let flows = vec![flow(0, 0, 1, over(tls, Config::modern()), workload)];
            let mut settings = settings(3, 60.0);
            settings.verify = verify;
            let out = run(simple(lossy.clone(), lossy.clone()), settings, flows);
            let f = out.flows.into_iter().next().unwrap();
            assert!(f.counters.retransmitted_packets > 0 && !f.corrupted);
            assert_eq!(f.delivered.get(), 1_200_000);
            (objects(&f).to_vec(), f.completion, f.wire)
        };
        assert_eq!(go(true), go(false));
    }
}

#[test]
fn flows_without_rows_keep_no_objects() {
    let spec = gargalo_flow::FlowSpec {
        rows: false,
        ..flow(
            0,
            0,
            1,
            over(None, Config::modern()),
            request(&[1000; 50], FRAMES),
        )
    };
    let out = run(simple(link(), link()), settings(1, 60.0), vec![spec]);
    assert!(out.flows.is_empty());
}

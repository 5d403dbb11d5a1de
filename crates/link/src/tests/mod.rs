//! Tests of whole links under all configurations.

mod properties;

use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Ecn, Instant, Rate};
use rand_pcg::Pcg64;

use crate::trace::CellularModel;
use crate::*;

const MS: Duration = Duration::from_millis(1);

fn ms(n: u64) -> Instant {
    Instant::ZERO + MS * n
}

fn rng() -> Pcg64 {
    Pcg64::new(42, 42)
}

fn packet(id: u32, bytes: u32) -> Packet<u32> {
    Packet {
        bytes,
        flow: id % 5,
        ecn: Ecn::NotEct,
        payload: id,
    }
}

/// The outcome of a packet: time, identity, whether it was the last copy and marked, or why it was dropped.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Arrived(Instant, u32, bool, Ecn),
    Dropped(u32, DropReason),
}

/// Drives a link as the simulator does: polls at its events, sends at the given times, and checks the counters
/// after each step.
fn drive(link: &mut Link<u32>, input: &[(Instant, Packet<u32>)]) -> Vec<Fate> {
    let mut fates = Vec::new();
    let drops = |link: &mut Link<u32>, fates: &mut Vec<Fate>| {
        while let Some((p, reason)) = link.poll_dropped() {
            fates.push(Fate::Dropped(p.payload, reason));
        }
    };
    let advance = |link: &mut Link<u32>, until: Instant, fates: &mut Vec<Fate>| {
        while link.next_event() <= until && link.next_event() < Instant::MAX {
            let now = link.next_event();
            while let Some(d) = link.poll(now) {
                fates.push(Fate::Arrived(now, d.packet.payload, d.last, d.packet.ecn));
            }
            drops(link, fates);
            assert!(link.next_event() > now, "an event that does nothing");
        }
    };
    for (now, p) in input {
        // Polls strictly before, so that sending meets due events, as it may.
        advance(link, *now - Duration::from_nanos(1), &mut fates);
        link.send(*now, *p);
        drops(link, &mut fates);
    }
    advance(link, Instant::MAX, &mut fates);
    fates
}

fn arrivals(fates: &[Fate]) -> Vec<(Instant, u32)> {
    let arrival = |f: &Fate| match f {
        Fate::Arrived(t, id, ..) => Some((*t, *id)),
        Fate::Dropped(..) => None,
    };
    fates.iter().filter_map(arrival).collect()
}

fn bottleneck(mbps: u64, queue: QueueConfig) -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(Rate::from_mbps(mbps)),
        delay: Delay::Constant(MS * 10),
        queue,
        ..LinkConfig::default()
    }
}

fn droptail(packets: u64) -> QueueConfig {
    QueueConfig::DropTail(QueueLimit::Packets(packets))
}

#[test]
fn a_packet_takes_serialisation_and_propagation() {
    let mut link = Link::new(bottleneck(12, droptail(10)), rng()).unwrap();
    let input: Vec<_> = (0..3).map(|i| (ms(0), packet(i, 1500))).collect();
    let expected = [(ms(11), 0), (ms(12), 1), (ms(13), 2)];
    assert_eq!(arrivals(&drive(&mut link, &input)), expected);
}

/// A link that is never idle uses all of its capacity in every window, however short.
#[test]
fn a_busy_link_is_used_to_its_capacity_exactly() {
    let odd = RateModel::Constant(Rate::from_bps(7_000_003));
    let steps = RateModel::Steps(vec![
        (ms(0), Rate::from_bps(7_000_003)),
        (ms(3), Rate::from_bps(0)),
        (ms(5), Rate::from_bps(90_000_001)),
    ]);
    let red = QueueConfig::Red(RedConfig {
        limit: Some(100_u64.into()),
        min_threshold: Some(50.0),
        max_threshold: Some(90.0),
        ..RedConfig::default()
    });
    for (rate, queue) in [odd, steps]
        .into_iter()
        .flat_map(|r| [(r.clone(), droptail(100)), (r, red)])
    {
        let config = LinkConfig {
            rate,
            queue,
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, rng()).unwrap();
        for i in 0..20 {
            link.send(ms(0), packet(i, 1499 - 7 * i));
        }
        let mut before = Carried::default();
        for at in [
            1, 5_000, 1_700_000, 2_999_999, 5_000_001, 5_013_579, 6_000_000,
        ] {
            let carried = link.carried(Instant::from_nanos(at));
            assert_eq!(
                link.utilization(before, carried),
                Some(1.0),
                "until {at} ns"
            );
            before = carried;
        }
        // Over an outage there is no capacity, and none is used.
        assert_eq!(link.utilization(before, before), Some(0.0));
    }
}

#[test]
fn the_packet_in_transmission_is_not_counted() {
    for limit in [
        QueueLimit::Packets(10),
        QueueLimit::Bytes(Bytes::new(15_000)),
        // The eleventh packet waits 10 ms.
        QueueLimit::Time(MS * 10),
    ] {
        let config = bottleneck(12, QueueConfig::DropTail(limit));
        let mut link = Link::new(config, rng()).unwrap();
        for i in 0..20 {
            link.send(ms(0), packet(i, 1500));
        }
        assert_eq!(link.sample(ms(0)).queue_packets, 10, "{limit:?}");
        assert_eq!(link.stats().dropped(DropReason::QueueFull), 9, "{limit:?}");
        let s = link.sample(ms(1));
        // The first has left at 1 ms, so the second is in transmission.
        assert_eq!((s.queue_packets, s.queue_bytes), (9, 13_500));
        assert_eq!((s.sent_packets, s.queue_delay), (2, MS * 10));
    }
}

#[test]
fn time_limits_are_exact_over_rate_steps() {
    let config = LinkConfig {
        rate: RateModel::Steps(vec![
            (ms(0), Rate::from_mbps(12)),
            (ms(5), Rate::from_mbps(120)),
        ]),
        queue: QueueConfig::DropTail(QueueLimit::Time(MS * 6)),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, rng()).unwrap();
    for i in 0..30 {
        link.send(ms(0), packet(i, 1500));
    }
    // Five packets leave in the first 5 ms, then ten a millisecond: begins at 0 .. 5, 5.1 .. 6.0.
    assert_eq!(link.stats().dropped(DropReason::QueueFull), 30 - 16);
}

#[test]
fn effects_come_in_the_documented_order() {
    // Too big comes before loss, loss before the queue.
    let config = LinkConfig {
        loss: LossModel::Periodic(2),
        mtu: 1000,
        ..bottleneck(12, droptail(1))
    };
    let mut link = Link::new(config, rng()).unwrap();
    let input = [1500, 1000, 1000, 1000, 1000, 1000]
        .iter()
        .zip(0..)
        .map(|(bytes, i)| (ms(0), packet(i, *bytes)))
        .collect::<Vec<_>>();
    let fates = drive(&mut link, &input);
    let dropped: Vec<_> = fates
        .iter()
        .filter_map(|f| match f {
            Fate::Dropped(id, reason) => Some((*id, *reason)),
            Fate::Arrived(..) => None,
        })
        .collect();
    let expected = [
        (0, DropReason::TooBig),
        (2, DropReason::Loss),
        (4, DropReason::Loss),
        (5, DropReason::QueueFull),
    ];
    assert_eq!(dropped, expected);
}

#[test]
fn duplicates_share_a_payload_until_the_last_leaves() {
    let config = LinkConfig {
        duplicate: 1.0,
        ..bottleneck(12, droptail(2))
    };
    let mut link = Link::new(config, rng()).unwrap();
    let input: Vec<_> = (0..2).map(|i| (ms(0), packet(i, 1500))).collect();
    let fates = drive(&mut link, &input);
    // Packet 0 and its copy pass, packet 1 passes, its copy finds the queue full: that drop is not reported.
    let n = Ecn::NotEct;
    assert_eq!(
        fates,
        [
            Fate::Arrived(ms(11), 0, false, n),
            Fate::Arrived(ms(12), 0, true, n),
            Fate::Arrived(ms(13), 1, true, n),
        ]
    );
    assert_eq!(link.stats().duplicated_packets, 2);
    assert_eq!(link.stats().dropped_packets(), 1);
    assert_eq!(link.stats().inside_packets(), 0);
}

#[test]
fn a_displaced_packet_is_overtaken() {
    let config = LinkConfig {
        reorder: Some(Reorder {
            probability: 1.0,
            gap: 3,
            late: Some(Duration::from_micros(1500)),
            ..Reorder::new(0.0)
        }),
        ..bottleneck(12, droptail(10))
    };
    let mut link = Link::new(config, rng()).unwrap();
    let input: Vec<_> = (0..6).map(|i| (ms(0), packet(i, 1500))).collect();
    let order: Vec<_> = arrivals(&drive(&mut link, &input))
        .iter()
        .map(|a| a.1)
        .collect();
    assert_eq!(order, [0, 1, 3, 2, 4, 5]);
}

#[test]
fn an_aqm_link_delivers_on_a_trace_by_mahimahis_rule() {
    let trace = Arc::new(DeliveryTrace::parse("2\n5\n9\n").unwrap());
    let codel = QueueConfig::CoDel(CoDelConfig::default());
    for queue in [droptail(100), codel] {
        let config = LinkConfig {
            rate: RateModel::Trace(Arc::clone(&trace).into()),
            queue,
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, rng()).unwrap();
        let input = [
            (ms(0), packet(0, 748)),
            (ms(1), packet(1, 748)),
            (ms(2), packet(2, 1000)),
            (ms(3), packet(3, 1000)),
            // After a silence of many periods.
            (ms(9000), packet(4, 100)),
        ];
        let expected = [
            (ms(2), 0),
            (ms(2), 1),
            (ms(5), 2),
            (ms(9), 3),
            (ms(9002), 4),
        ];
        assert_eq!(arrivals(&drive(&mut link, &input)), expected);
        assert_eq!(link.capacity(ms(0), ms(9)).unwrap().get(), 4500);
    }
}

/// Overloads a 12 Mbit/s link by `load` percent for 20 s and gives the delays of the last 10 s.
fn overload(queue: QueueConfig, load: u64, ecn: Ecn) -> (Link<u32>, DelayHistogram) {
    let mut link = Link::new(bottleneck(12, queue), rng()).unwrap();
    let mut delays = DelayHistogram::default();
    let gap = 1_000_000 * 100 / load;
    let mut sent = Vec::new();
    for i in 0..(20_000_000_000 / gap) {
        let now = Instant::from_nanos(i * gap);
        let mut p = packet(i as u32, 1500);
        p.ecn = ecn;
        sent.push(now);
        while link.next_event() <= now {
            let at = link.next_event();
            while let Some(d) = link.poll(at) {
                let sent: Instant = sent[d.packet.payload as usize];
                if sent > ms(10_000) {
                    delays.record((at - sent) - MS * 11);
                }
            }
            while link.poll_dropped().is_some() {}
        }
        link.send(now, p);
        while link.poll_dropped().is_some() {}
    }
    (link, delays)
}

#[test]
fn pie_holds_its_target_under_overload() {
    for estimator in [PieEstimator::Timestamp, PieEstimator::DepartureRate] {
        let config = PieConfig {
            estimator,
            ..PieConfig::default()
        };
        let (_, delays) = overload(QueueConfig::Pie(config), 125, Ecn::NotEct);
        let median = delays.percentile(50.0);
        assert!(
            (MS * 10..MS * 20).contains(&median),
            "{estimator:?} {median}"
        );
    }
}

#[test]
fn dualpi2_holds_its_target_and_keeps_overload_of_the_low_latency_queue_short() {
    let queue = || QueueConfig::DualPi2(DualPi2Config::default());
    for (ecn, least, most) in [
        (Ecn::NotEct, 12, 18),
        (Ecn::Ect0, 12, 18),
        (Ecn::Ect1, 12, 18),
    ] {
        let (link, delays) = overload(queue(), 125, ecn);
        let median = delays.percentile(50.0);
        assert!(
            (MS * least..MS * most).contains(&median),
            "{ecn:?} {median}"
        );
        // A fifth of the packets exceeds the capacity, and the sender ignores the marks.
        let s = link.stats();
        let dropped = s.dropped(DropReason::Aqm) as f64 / s.offered_packets as f64;
        assert!((dropped - 0.2).abs() < 0.02, "{ecn:?} {dropped}");
    }
}

#[test]
fn red_holds_the_average_between_its_thresholds() {
    // 5% overload needs a drop rate of 4.8%, half way to max_p.
    let (_, delays) = overload(QueueConfig::Red(RedConfig::default()), 105, Ecn::NotEct);
    let median = delays.percentile(50.0);
    assert!((MS * 5..MS * 15).contains(&median), "{median}");
}

#[test]
fn codel_keeps_a_slight_overload_near_its_target() {
    // CoDel raises its drop rate without bound while it is over target, so an unresponsive overload
    // of 2% is brought down, if slowly.
    let (link, delays) = overload(QueueConfig::CoDel(CoDelConfig::default()), 102, Ecn::NotEct);
    assert!(link.stats().dropped(DropReason::Aqm) > 100);
    let median = delays.percentile(50.0);
    assert!(median < MS * 30, "{median}");
}

#[test]
fn fq_codel_protects_a_sparse_flow() {
    let config = bottleneck(12, QueueConfig::FqCoDel(FqCoDelConfig::default()));
    let mut link = Link::new(config, rng()).unwrap();
    let mut input = Vec::new();
    for i in 0..20_000u32 {
        // Flow 1 at 24 Mbit/s, flow 2 a small packet every 20 ms.
        let now = Instant::from_nanos(u64::from(i) * 500_000);
        let mut p = packet(2 * i, 1500);
        p.flow = 1;
        input.push((now, p));
        if i % 40 == 0 {
            let mut p = packet(2 * i + 1, 100);
            p.flow = 2;
            input.push((now, p));
        }
    }
    let fates = drive(&mut link, &input);
    let mut seen = 0;
    for (at, id) in arrivals(&fates).into_iter().filter(|a| a.1 % 2 == 1) {
        let sent = Instant::from_nanos(u64::from(id / 2) * 500_000);
        // At most the packet in transmission and a turn of the other flow are before it.
        assert!(at - sent < MS * 13 + MS / 10, "{id}");
        seen += 1;
    }
    assert_eq!(seen, 500);
}

#[test]
fn ecn_replaces_drops() {
    for queue in [
        QueueConfig::CoDel(CoDelConfig {
            ecn: true,
            ..CoDelConfig::default()
        }),
        QueueConfig::FqCoDel(FqCoDelConfig::default()),
        QueueConfig::Pie(PieConfig {
            ecn: true,
            ..PieConfig::default()
        }),
        QueueConfig::Red(RedConfig {
            ecn: true,
            ..RedConfig::default()
        }),
        QueueConfig::Step(StepConfig::default()),
        QueueConfig::DualPi2(DualPi2Config::default()),
    ] {
        let name = queue.kind();
        let (link, _) = overload(queue, 101, Ecn::Ect0);
        assert!(link.stats().marked_packets > 0, "{name}");
    }
}

/// Runs on a recorded trace if there are some; says so if not.
#[test]
fn a_saturated_link_uses_all_of_a_trace() {
    let generated = CellularModel::default().generate(&mut rng()).unwrap();
    let mut traces = vec![("generated".to_owned(), generated)];
    match std::env::var_os("GARGALO_TRACES") {
        None => eprintln!("recorded traces skipped: GARGALO_TRACES names no folder of them"),
        Some(folder) => {
            let entries = std::fs::read_dir(&folder).expect("GARGALO_TRACES is a folder");
            for path in entries.filter_map(|e| Some(e.ok()?.path())) {
                if path.is_file() {
                    let text = std::fs::read_to_string(&path).expect("a trace is readable");
                    let trace = DeliveryTrace::parse(&text).expect("a trace is valid");
                    traces.push((path.display().to_string(), trace));
                }
            }
        }
    }
    for (name, trace) in traces {
        let info = trace.info();
        assert!(info.min_rate <= info.rate_p50 && info.rate_p50 <= info.max_rate);
        let end = Instant::ZERO + info.duration;
        let config = LinkConfig {
            rate: RateModel::Trace(trace.into()),
            queue: droptail(u64::MAX),
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, rng()).unwrap();
        // One packet at zero for each opportunity.
        for i in 0..info.opportunities {
            link.send(Instant::ZERO, packet(i as u32, 1500));
        }
        let mut delivered = 0u64;
        while link.next_event() <= end {
            let now = link.next_event();
            while link.poll(now).is_some() {
                delivered += 1;
            }
        }
        let capacity = link.capacity(Instant::ZERO, end).unwrap().get();
        assert_eq!(delivered * 1500, capacity, "{name}");
    }
}

#[test]
fn in_an_endless_outage_packets_stay_inside() {
    for queue in [droptail(3), QueueConfig::CoDel(CoDelConfig::default())] {
        let config = LinkConfig {
            rate: RateModel::Steps(vec![(ms(0), Rate::from_mbps(12)), (ms(1), Rate::ZERO)]),
            queue,
            ..LinkConfig::default()
        };
        let mut link = Link::new(config, rng()).unwrap();
        let input: Vec<_> = (0..3).map(|i| (ms(0), packet(i, 1500))).collect();
        assert_eq!(arrivals(&drive(&mut link, &input)), [(ms(1), 0)]);
        assert_eq!(link.next_event(), Instant::MAX);
        assert_eq!(link.stats().inside_packets(), 2);
        assert_eq!(link.sample(ms(5)).queue_packets, 2);
        // An infinite wait is not recorded.
        assert_eq!(link.stats().queue_delay.max(), Duration::ZERO);
    }
}

#[test]
fn outages_lose_what_comes_in_them_and_nothing_else() {
    let config = LinkConfig {
        outages: vec![(ms(10), ms(20)), (ms(30), ms(31))],
        loss: LossModel::Periodic(4),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, rng()).unwrap();
    let input: Vec<_> = (0..40)
        .map(|i| (ms(u64::from(i)), packet(i, 100)))
        .collect();
    let arrived: Vec<u32> = drive(&mut link, &input)
        .into_iter()
        .filter_map(|f| match f {
            Fate::Arrived(_, id, ..) => Some(id),
            Fate::Dropped(..) => None,
        })
        .collect();
    // The loss model advances during an outage.
    let expected: Vec<u32> = (0..40)
        .filter(|i| i % 4 != 3 && !(10..20).contains(i) && *i != 30)
        .collect();
    assert_eq!(arrived, expected);
}

//! The control law, the classification, the scheduling and the decisions of both queues.

use super::*;
use crate::queue::testing::{context, ledger, queued};

const MS: Duration = Duration::from_millis(1);

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn queue(config: DualPi2Config) -> (DualPi2<u32>, Ledger<u32>) {
    (DualPi2::new(config, context(), Pcg64::new(1, 1)), ledger())
}

fn packet(n: u32, ecn: Ecn, came: Instant) -> Queued<u32> {
    let mut q = queued(n, 1500);
    q.item.packet.ecn = ecn;
    q.enqueued = came;
    q
}

#[test]
fn one_update_is_the_control_equation() {
    let config = DualPi2Config::default();
    let mut c = Controller {
        base: 0.1,
        old_delay: MS * 25,
    };
    c.update(&config, MS * 35);
    // 0.16 * 0.020 + 3.2 * 0.010 = 0.0352.
    assert!((c.base - 0.1352).abs() < 1e-12);
    assert_eq!(c.old_delay, MS * 35);
    assert!((c.classic() - 0.1352 * 0.1352).abs() < 1e-12);
    assert!((c.coupled(&config) - 0.2704).abs() < 1e-12);
}

#[test]
fn without_drops_in_overload_the_probability_ends_where_all_is_marked() {
    let config = DualPi2Config {
        drop_on_overload: false,
        ..DualPi2Config::default()
    };
    for (config, most) in [(config, 0.5), (DualPi2Config::default(), 1.0)] {
        let mut c = Controller::default();
        c.update(&config, Duration::from_secs(9));
        assert_eq!(c.base, most);
    }
}

#[test]
fn only_ect1_and_ce_are_in_the_low_latency_queue() {
    let (q, _) = queue(DualPi2Config::default());
    let low = |q: &DualPi2<u32>| [0b00, 0b01, 0b10, 0b11].map(|b| q.is_low(Ecn::from_bits(b)));
    assert_eq!(low(&q), [false, true, false, true]);
    let any_ect = DualPi2Config {
        any_ect: true,
        ..DualPi2Config::default()
    };
    assert_eq!(low(&queue(any_ect).0), [false, true, true, true]);
    let deaf = DualPi2Config {
        ecn: false,
        ..DualPi2Config::default()
    };
    assert_eq!(low(&queue(deaf).0), [false; 4]);
}

#[test]
fn the_low_latency_queue_goes_first_but_for_the_protected_share() {
    let (mut q, mut l) = queue(DualPi2Config::default());
    for n in 0..100 {
        q.enqueue(at(0), packet(n, Ecn::Ect0, at(0)), &mut l);
    }
    for n in 100..200 {
        q.enqueue(at(0), packet(n, Ecn::Ect1, at(0)), &mut l);
    }
    let order: Vec<_> = std::iter::from_fn(|| q.dequeue(at(0), &mut l))
        .map(|p| p.item.packet.payload)
        .collect();
    assert_eq!(order[..9], [100, 101, 102, 103, 104, 105, 106, 107, 108]);
    // A tenth of the first hundred while both have packets.
    let classic = order[..100].iter().filter(|n| **n < 100).count();
    assert_eq!(classic, 10);
    assert_eq!(order.len(), 200);
}

/// The marked ones of ten packets that arrive at once and leave every 300 us.
fn marked(config: DualPi2Config, ecn: Ecn) -> Vec<u32> {
    let (mut q, mut l) = queue(config);
    for n in 0..10 {
        q.enqueue(at(0), packet(n, ecn, at(0)), &mut l);
    }
    (0..10)
        .filter(|n| {
            let p = q.dequeue(at(u64::from(*n) * 300), &mut l).unwrap();
            p.item.packet.ecn == Ecn::Ce
        })
        .collect()
}

#[test]
fn the_step_marks_what_waited_too_long() {
    let config = DualPi2Config::default();
    assert_eq!(marked(config, Ecn::Ect1), [4, 5, 6, 7, 8, 9]);
    assert!(marked(config, Ecn::Ect0).is_empty());
    assert!(marked(config, Ecn::NotEct).is_empty());
    let lenient = DualPi2Config {
        min_step: 3,
        ..config
    };
    assert_eq!(marked(lenient, Ecn::Ect1), [4, 5, 6]);
    let in_packets = DualPi2Config {
        step_threshold: QueueLimit::Packets(6),
        ..config
    };
    assert_eq!(marked(in_packets, Ecn::Ect1), [7, 8, 9]);
}

#[test]
fn the_ramp_rises_from_its_threshold() {
    let config = DualPi2Config {
        step_threshold: QueueLimit::Time(Duration::from_micros(800)),
        ramp: Duration::from_micros(400),
        min_step: 1,
        ..DualPi2Config::default()
    };
    let (q, _) = queue(config);
    for (us, want) in [(800, 0.0), (900, 0.25), (1100, 0.75), (1200, 1.0)] {
        let got = q.native(Duration::from_micros(us), 2);
        assert!((got - want).abs() < 1e-9, "{us} us: {got}");
    }
    assert_eq!(q.native(MS * 9, 1), 0.0, "alone in the queue");
}

/// Shares of packets marked and dropped at a base probability.
fn shares(config: DualPi2Config, ecn: Ecn, base: f64) -> (f64, f64) {
    let config = DualPi2Config {
        step_threshold: QueueLimit::Time(Duration::MAX),
        ..config
    };
    let (mut q, mut l) = queue(config);
    q.controller.base = base;
    for n in 0..20_000 {
        q.enqueue(at(0), packet(n, ecn, at(0)), &mut l);
        q.dequeue(at(0), &mut l);
    }
    let share = |n: u64| n as f64 / 20_000.0;
    (
        share(l.stats.marked_packets),
        share(l.stats.dropped(DropReason::Aqm)),
    )
}

#[test]
fn classic_is_squared_and_low_latency_coupled() {
    for derandomize in [false, true] {
        for drop_early in [false, true] {
            let config = DualPi2Config {
                derandomize,
                drop_early,
                ..DualPi2Config::default()
            };
            for (ecn, base, marks, drops) in [
                (Ecn::NotEct, 0.2, 0.0, 0.04),
                (Ecn::Ect0, 0.2, 0.04, 0.0),
                (Ecn::Ect1, 0.2, 0.4, 0.0),
                // Overload: L is saturated from p' = 1/2 on, and both queues drop.
                (Ecn::NotEct, 0.7, 0.0, 0.49),
                (Ecn::Ect0, 0.7, 0.0, 0.49),
                (Ecn::Ect1, 0.7, 0.51, 0.49),
            ] {
                let got = shares(config, ecn, base);
                let near = (got.0 - marks).abs() < 0.012 && (got.1 - drops).abs() < 0.012;
                assert!(near, "{ecn:?} at {base}: {got:?}, {config:?}");
            }
        }
    }
}

#[test]
fn even_marks_keep_their_distance() {
    let mut c = Chooser::default();
    let mut rng = Pcg64::new(1, 1);
    let hits: Vec<_> = (0..1000)
        .filter(|_| c.hits(0.125, true, &mut rng))
        .collect();
    assert!(hits.windows(2).all(|w| w[1] - w[0] == 8), "{hits:?}");
}

#[test]
fn without_marks_it_is_pi2() {
    let config = DualPi2Config {
        ecn: false,
        ..DualPi2Config::default()
    };
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        let (marks, drops) = shares(config, ecn, 0.3);
        assert!(marks == 0.0 && (drops - 0.09).abs() < 0.012, "{ecn:?}");
    }
}

#[test]
fn both_queues_share_the_limits() {
    let config = DualPi2Config {
        limit: 10,
        memory_limit: Some(Bytes::new(12_000)),
        ..DualPi2Config::default()
    };
    let (mut q, mut l) = queue(config);
    for n in 0..20 {
        let ecn = if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
        q.enqueue(at(0), packet(n, ecn, at(0)), &mut l);
    }
    assert_eq!((q.packets(), q.bytes()), (8, 12_000));
    assert_eq!(l.stats.dropped(DropReason::QueueFull), 12);
    for n in 0..9 {
        let mut small = packet(n, Ecn::NotEct, at(0));
        small.item.packet.bytes = 0;
        q.enqueue(at(0), small, &mut l);
    }
    assert_eq!(q.packets(), 10);
}

#[test]
fn missed_periods_are_made_up_for() {
    let config = DualPi2Config::default();
    // Empty for four periods.
    let (mut q, mut l) = queue(config);
    q.controller.base = 0.5;
    q.advance(at(64_000));
    assert!((q.controller.base - (0.5 - 4.0 * 0.16 * 0.015)).abs() < 1e-12);
    // A packet that waits for three periods: each update uses the delay at the end of its period.
    let (mut q, _) = queue(config);
    q.enqueue(at(0), packet(0, Ecn::NotEct, at(0)), &mut l);
    q.advance(at(50_000));
    let mut want = Controller::default();
    for ms in [16, 32, 48] {
        want.update(&config, MS * ms);
    }
    assert_eq!(q.controller.base, want.base);
    assert_eq!(q.next_update, at(64_000));
    // Days without packets or without service are skipped in one step, and the phase is kept.
    let day = 86_400_000_000;
    q.advance(at(day + 7));
    assert_eq!((q.controller.base, q.next_update), (1.0, at(day + 16_000)));
    assert_eq!(q.controller.old_delay, Duration::from_micros(day));
    let (mut q, _) = queue(config);
    q.advance(at(day + 7));
    assert_eq!((q.controller.base, q.next_update), (0.0, at(day + 16_000)));
}

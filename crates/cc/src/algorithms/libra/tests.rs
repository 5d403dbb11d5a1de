use super::*;
use crate::Controller;
use crate::event::Cause;
use crate::testing::{MSS, ack, congestion, init, path};
use gargalo_units::Instant;

const DEFAULT: LibraParams = LibraParams::DEFAULT;

const MS: fn(u64) -> Duration = Duration::from_millis;
const FIXED: LibraParams = LibraParams {
    capacity: 100.0,
    ..DEFAULT
};

/// In congestion avoidance at `segments`.
fn libra(params: LibraParams, segments: u64) -> WindowBased<Libra> {
    let mut l = Libra::build(params, init());
    l.window_mut().set_cwnd(MSS * segments);
    l.window_mut().exit_slow_start();
    l
}

fn lose(l: &mut WindowBased<Libra>, p: &Path<'_>) {
    let e = congestion(Cause::Loss, l.cwnd());
    l.on_congestion(&e, p);
    l.on_recovered(Instant::ZERO, p);
}

#[test]
fn formulas() {
    assert_eq!(DEFAULT.alpha(100.0, 0.0), 200.0);
    assert!((DEFAULT.alpha(100.0, 1.0) - 200.0 * libm::exp(-2.0)).abs() < 1e-9);
    assert!((DEFAULT.increase(200.0, 0.1) - 200.0 * 0.01 / 1.1).abs() < 1e-12);
    assert!((DEFAULT.decrease(0.1) - 1.0 / 2.2).abs() < 1e-12);
    let bound = LibraParams {
        t0: MS(1),
        t1: Duration::from_secs(100),
        ..DEFAULT
    };
    assert_eq!(bound.decrease(0.0), 0.99);
}

#[test]
fn a_round_trip() {
    let p = path(MS(100));
    let mut l = libra(FIXED, 1000);
    for _ in 0..1000 {
        l.on_ack(&ack(MSS.get()), &p);
    }
    let grown = l.window().segments() - 1000.0;
    assert!((grown - 200.0 * 0.01 / 1.1).abs() < 0.01, "{grown}");
    let before = l.cwnd();
    lose(&mut l, &p);
    assert_eq!(l.cwnd(), before.mul_f64(1.0 - 1.0 / 2.2));
}

#[test]
fn a_queue_slows_the_increase() {
    let full = Path {
        srtt: Some(MS(200)),
        ..path(MS(100))
    };
    let mut l = libra(FIXED, 1000);
    let a = Acked {
        rtt: Some(MS(200)),
        ..ack(MSS.get())
    };
    l.on_ack(&a, &full);
    let got = l.policy().alpha(&full).unwrap();
    assert!((got - 200.0 * libm::exp(-2.0)).abs() < 1e-9, "{got}");
}

#[test]
fn the_rate_does_not_depend_on_the_round_trip_time() {
    // √(2α/(p·T1)) for random loss; a sawtooth of period 1/p differs by a factor near 1 that
    // hardly depends on T.
    let one_in = 2_000;
    let mut rates = Vec::new();
    for ms in [20, 100, 200] {
        let p = path(MS(ms));
        let mut l = libra(FIXED, 50);
        let (mut time, mut segments) = (0.0, 0.0);
        for i in 1..=600 * one_in {
            l.on_ack(&ack(MSS.get()), &p);
            if i % one_in == 0 {
                lose(&mut l, &p);
            }
            if i > 300 * one_in {
                segments += 1.0;
                time += ms as f64 / 1e3 / l.window().segments();
            }
        }
        let want = (2.0 * 200.0 * one_in as f64).sqrt();
        let got: f64 = segments / time;
        assert!((got / want - 1.0).abs() < 0.15, "{got}, not {want}");
        rates.push(got);
    }
    assert!(rates[0] / rates[2] < 1.05 && rates[2] / rates[0] < 1.05);
}

#[test]
fn capacity_is_measured_in_megabits() {
    let p = path(MS(40));
    let mut l = libra(DEFAULT, 1000);
    for i in 0..2 {
        let a = Acked {
            now: Instant::ZERO + MS(40) + Duration::from_micros(400) * i,
            sent_at: Some(Instant::ZERO),
            rtt: Some(MS(40)),
            ..ack(MSS.get())
        };
        l.on_ack(&a, &p);
    }
    let alpha = l.policy().alpha(&p).unwrap(); // 1000 bytes in 400 us are 20 Mbit/s
    assert!((alpha - 40.0).abs() < 1e-6, "{alpha}");
}

#[test]
fn nothing_known_of_the_path() {
    let p = Path {
        min_rtt: None,
        srtt: None,
        latest_rtt: None,
        ..path(MS(1))
    };
    let mut l = libra(DEFAULT, 10);
    l.on_ack(&ack(MSS.get()), &p);
    assert_eq!(l.cwnd(), MSS * 10 + Bytes::new(100));
    assert_eq!(l.pacing_rate(), None);
    lose(&mut l, &p);
    assert_eq!(l.cwnd(), MSS.mul_f64(5.05));
}

#[test]
fn gaps_are_random_around_their_mean() {
    let p = path(MS(100));
    let mut l = libra(FIXED, 1000);
    let (mut sum, n) = (0.0, 4000);
    for _ in 0..n {
        l.on_ack(
            &Acked {
                cwnd_limited: false,
                ..ack(MSS.get())
            },
            &p,
        );
        let gap = 1.2e7 / l.pacing_rate().unwrap().bytes_per_sec();
        assert!((0.49..=1.51).contains(&gap), "{gap}");
        sum += gap;
    }
    assert!((sum / f64::from(n) - 1.0).abs() < 0.02);
    let even = LibraParams {
        random_pacing: false,
        ..FIXED
    };
    let mut l = libra(even, 1000);
    l.on_ack(&ack(MSS.get()), &p);
    assert_eq!(l.pacing_rate(), None);
}

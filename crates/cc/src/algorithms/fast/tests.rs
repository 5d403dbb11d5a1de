use super::*;
use crate::Controller;
use crate::event::{Cause, Spurious};
use crate::round_rtt::bench::Bottleneck;
use crate::testing::{MSS, ack, congestion, init, path};
use gargalo_units::Instant;

const DEFAULT: FastParams = FastParams::DEFAULT;

const BASE: Duration = Duration::from_millis(100);

const FIXED: FastParams = FastParams {
    tuning: false,
    ..DEFAULT
};

fn fast(params: FastParams, segments: u64) -> WindowBased<Fast> {
    let start = Init {
        initial_window: MSS * segments,
        ..init()
    };
    let mut f = Fast::build(params, &start);
    f.window_mut().exit_slow_start();
    f
}

/// A policy with these measurements.
fn measured(base_ms: u64, average_ms: u64, alpha: f64) -> Fast {
    let params = FastParams { alpha, ..FIXED };
    let mut policy = Fast::build(params, &init()).policy().clone();
    policy.base = Duration::from_millis(base_ms);
    policy.average = average_ms as f64 * 1e-3;
    policy
}

#[test]
fn the_equation_by_hand() {
    // 0.5 * 1000 + 0.5 * (0.8 * 1000 + 200) = 1000: the equilibrium, 200 queued.
    assert!((measured(80, 100, 200.0).target(1000.0) - 1000.0).abs() < 1e-9);
    // 0.5 * 1000 + 0.5 * (0.5 * 1000 + 200) = 850
    assert!((measured(50, 100, 200.0).target(1000.0) - 850.0).abs() < 1e-9);
    // No queue: half of alpha more.
    assert!((measured(100, 100, 200.0).target(1000.0) - 1100.0).abs() < 1e-9);
    // Never more than twice.
    assert!((measured(100, 100, 200.0).target(30.0) - 60.0).abs() < 1e-9);
}

#[test]
fn alpha_segments_wait_in_the_queue() {
    for start in [100, 4000] {
        let params = FastParams {
            alpha: 50.0,
            ..FIXED
        };
        let mut f = fast(params, start);
        let backlog = Bottleneck::new(BASE, 1000.0).run(&mut f, 120);
        assert!((49.0..=51.0).contains(&backlog), "{start}: {backlog}");
    }
}

#[test]
fn a_base_measured_behind_a_queue_adds_that_queue() {
    let params = FastParams {
        alpha: 50.0,
        ..FIXED
    };
    let mut f = fast(params, 1300);
    let mut path = Bottleneck::new(BASE, 1000.0);
    path.believed = Duration::from_millis(110);
    let backlog = path.run(&mut f, 200);
    // 10 ms are 100 segments; 1.1 * 1000 + 50.
    assert!((148.0..=152.0).contains(&backlog), "{backlog}");
}

#[test]
fn the_window_moves_every_other_round() {
    let mut f = fast(FIXED, 1000);
    let mut path = Bottleneck::new(BASE, 1e6);
    path.run(&mut f, 1);
    assert_eq!(f.cwnd(), MSS * 1000);
    path.run(&mut f, 1);
    assert_eq!(f.cwnd(), MSS * 1100);
    path.run(&mut f, 1);
    assert_eq!(f.cwnd(), MSS * 1100);
}

#[test]
fn alpha_by_throughput_with_hysteresis() {
    let mut policy = measured(100, 100, 1.0);
    policy.params.tuning = true;
    let mut alpha = |cwnd: f64| {
        policy.tune(cwnd);
        policy.alpha()
    };
    // Segments per 100 ms.
    assert_eq!(alpha(149.0), 8.0);
    assert_eq!(alpha(151.0), 20.0);
    assert_eq!(alpha(126.0), 20.0);
    assert_eq!(alpha(124.0), 8.0);
    assert_eq!(alpha(1600.0), 200.0);
    assert_eq!(alpha(1260.0), 200.0);
    assert_eq!(alpha(1240.0), 20.0);
    assert_eq!(alpha(10.0), 8.0);
}

#[test]
fn slow_start_ends_when_the_average_delay_rises() {
    let mut f = Fast::build(DEFAULT, &init());
    let one = |ms: u64| Acked {
        rtt: Some(Duration::from_millis(ms)),
        ..ack(MSS.get())
    };
    let view = path(BASE);
    for _ in 0..10 {
        f.on_ack(&one(100), &view);
    }
    assert_eq!((f.cwnd(), f.phase()), (MSS * 20, "slow-start"));
    // 3/20 of 5 ms is 0.75 ms, not more; the next sample makes it 1.35 ms.
    f.on_ack(&one(105), &view);
    f.on_ack(&one(105), &view);
    assert_eq!(f.phase(), "congestion-avoidance");
}

#[test]
fn it_paces_at_its_window_once_it_knows_the_round_trip() {
    let mut f = fast(FIXED, 100);
    assert_eq!(f.pacing_rate(), None);
    Bottleneck::new(BASE, 1e6).run(&mut f, 1);
    let rate = f.pacing_rate().unwrap().bytes_per_sec();
    assert!((rate / 1.2e6 - 1.0).abs() < 0.01, "{rate}");
    let silent = FastParams {
        pacing: false,
        ..FIXED
    };
    let mut f = fast(silent, 100);
    Bottleneck::new(BASE, 1e6).run(&mut f, 1);
    assert_eq!(f.pacing_rate(), None);
}

#[test]
fn loss_halves_and_is_undone() {
    let view = path(BASE);
    let mut f = fast(FIXED, 100);
    f.on_congestion(&congestion(Cause::Loss, MSS * 100), &view);
    assert_eq!(f.cwnd(), MSS * 50);
    f.on_spurious(
        &Spurious {
            now: Instant::ZERO,
            cause: Cause::Loss,
        },
        &view,
    );
    assert_eq!(f.cwnd(), MSS * 100);
    f.on_congestion(
        &congestion(Cause::Timeout { consecutive: 1 }, MSS * 100),
        &view,
    );
    assert_eq!((f.cwnd(), f.ssthresh()), (MSS, Some(MSS * 50)));
}

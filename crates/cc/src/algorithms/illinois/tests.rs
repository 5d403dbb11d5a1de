use super::*;
use crate::Controller;
use crate::event::Spurious;
use crate::testing::{MSS, ack, congestion, init, path};
use gargalo_units::Instant;

const DEFAULT: IllinoisParams = IllinoisParams::DEFAULT;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// In congestion avoidance at 100 segments; the base round-trip time is 100 ms.
fn illinois() -> WindowBased<Illinois> {
    let mut i = Illinois::build(DEFAULT, &init());
    i.window_mut().set_cwnd(MSS * 100);
    i.window_mut().exit_slow_start();
    i
}

/// A round trip of `ms`.
fn round(i: &mut WindowBased<Illinois>, ms: u64) {
    let a = Acked {
        rtt: Some(MS(ms)),
        round_start: true,
        cwnd_limited: false,
        ..ack(MSS.get())
    };
    i.on_ack(&a, &path(MS(100)));
}

#[test]
fn alpha_curve() {
    // κ1 = (dm - d1) αmin αmax / (αmax - αmin), κ2 = (dm - d1) αmin / (αmax - αmin) - d1.
    let dm = 0.1;
    let d1 = 0.01 * dm;
    let k1 = (dm - d1) * 0.3 * 10.0 / 9.7;
    let k2 = (dm - d1) * 0.3 / 9.7 - d1;
    for da in [0.001001, 0.005, 0.02, 0.05, 0.1] {
        let want = k1 / (k2 + da);
        assert!((DEFAULT.alpha(da, dm) - want).abs() < 1e-9, "{da}");
    }
    // Continuous at d1, α_min at dm, α_max without a queue.
    assert_eq!(DEFAULT.alpha(d1, dm), 10.0);
    assert!((DEFAULT.alpha(d1 + 1e-12, dm) - 10.0).abs() < 1e-6);
    assert!((DEFAULT.alpha(dm, dm) - 0.3).abs() < 1e-12);
    assert_eq!(DEFAULT.alpha(0.0, 0.0), 10.0);
    // One segment a round trip at about 30 % of the greatest delay.
    assert!((DEFAULT.alpha(0.2856 * dm, dm) - 1.0).abs() < 0.01);
}

#[test]
fn beta_curve() {
    let dm = 0.1;
    for (da, want) in [
        (0.0, 0.125),
        (0.01, 0.125),
        (0.045, 0.3125), // halfway between d2 and d3
        (0.08, 0.5),
        (0.1, 0.5),
    ] {
        assert!((DEFAULT.beta(da, dm) - want).abs() < 1e-9, "{da}");
    }
    assert!((DEFAULT.beta(0.01 + 1e-12, dm) - 0.125).abs() < 1e-9);
    assert!((DEFAULT.beta(0.08 - 1e-12, dm) - 0.5).abs() < 1e-9);
    assert_eq!(DEFAULT.beta(0.0, 0.0), 0.125);
}

#[test]
fn equal_bounds_are_a_constant() {
    let p = IllinoisParams {
        alpha_max: 1.0,
        alpha_min: 1.0,
        beta_min: 0.5,
        ..DEFAULT
    };
    for da in [0.0, 0.05, 0.1] {
        assert_eq!((p.alpha(da, 0.1), p.beta(da, 0.1)), (1.0, 0.5));
    }
}

#[test]
fn a_long_queue_means_slow_growth_and_half() {
    let mut i = illinois();
    round(&mut i, 200);
    assert!((i.policy().alpha - 0.3).abs() < 1e-9);
    let p = path(MS(100));
    for _ in 0..100 {
        i.on_ack(&ack(MSS.get()), &p);
    }
    let grown = i.window().segments() - 100.0;
    assert!((0.295..=0.3).contains(&grown), "{grown}");
    i.on_congestion(&congestion(Cause::Loss, MSS * 100), &p);
    assert_eq!(i.cwnd(), MSS * 50);
}

#[test]
fn a_short_queue_means_an_eighth() {
    let mut i = illinois();
    round(&mut i, 200);
    round(&mut i, 110);
    let p = path(MS(100));
    i.on_congestion(&congestion(Cause::Loss, MSS * 100), &p);
    assert_eq!(i.cwnd(), MSS.mul_f64(87.5));
}

#[test]
fn alpha_max_returns_after_theta_short_round_trips() {
    let mut i = illinois();
    round(&mut i, 100);
    assert_eq!(i.policy().alpha, 10.0); // never a queue
    round(&mut i, 200);
    for _ in 0..4 {
        round(&mut i, 100);
        assert!((i.policy().alpha - 0.3).abs() < 1e-9);
    }
    round(&mut i, 100);
    assert_eq!(i.policy().alpha, 10.0);
}

#[test]
fn the_mean_of_the_round_trip_counts() {
    let mut i = illinois();
    let p = path(MS(100));
    for ms in [140, 160] {
        let a = Acked {
            rtt: Some(MS(ms)),
            cwnd_limited: false,
            ..ack(MSS.get())
        };
        i.on_ack(&a, &p);
    }
    round(&mut i, 210); // 170 ms: da = 70 ms of dm = 110 ms
    assert!((i.policy().alpha - DEFAULT.alpha(0.07, 0.11)).abs() < 1e-9);
}

#[test]
fn reno_in_small_windows_and_without_samples() {
    let mut i = illinois();
    i.window_mut().set_cwnd(MSS * 14);
    round(&mut i, 100);
    assert_eq!((i.policy().alpha, i.policy().beta), (1.0, 0.5));
    let p = Path {
        min_rtt: None,
        srtt: None,
        latest_rtt: None,
        ..path(MS(1))
    };
    let mut i = illinois();
    i.on_ack(
        &Acked {
            round_start: true,
            ..ack(MSS.get())
        },
        &p,
    );
    i.on_congestion(&congestion(Cause::Loss, MSS * 100), &p);
    assert_eq!(i.cwnd(), MSS * 50);
}

#[test]
fn a_timeout_starts_from_reno_and_can_be_undone() {
    let mut i = illinois();
    round(&mut i, 200);
    let alpha = i.policy().alpha;
    let p = path(MS(100));
    let cause = Cause::Timeout { consecutive: 1 };
    i.on_congestion(&congestion(cause, MSS * 100), &p);
    assert_eq!((i.policy().alpha, i.policy().above), (1.0, false));
    i.on_spurious(
        &Spurious {
            now: Instant::ZERO,
            cause,
        },
        &p,
    );
    assert_eq!((i.policy().alpha, i.cwnd()), (alpha, MSS * 100));
}

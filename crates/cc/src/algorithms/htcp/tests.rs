use super::*;
use crate::Controller;
use crate::event::Spurious;
use crate::testing::{MSS, ack, congestion, init, path};

const DEFAULT: HTcpParams = HTcpParams::DEFAULT;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS(ms)
}

/// In congestion avoidance at `segments`.
fn htcp(segments: u64) -> WindowBased<HTcp> {
    let mut h = HTcp::build(DEFAULT, &init());
    h.window_mut().set_cwnd(MSS * segments);
    h.window_mut().exit_slow_start();
    h
}

/// A round trip of `ms` that ends at `end` and delivers a window.
fn round(h: &mut WindowBased<HTcp>, end: u64, ms: u64, bytes: Bytes, p: &Path<'_>) {
    let a = Acked {
        now: at(end),
        rtt: Some(MS(ms)),
        round_start: true,
        ..ack(bytes.get())
    };
    h.on_ack(&a, p);
}

fn lose(h: &mut WindowBased<HTcp>, ms: u64, p: &Path<'_>) {
    let e = Congestion {
        now: at(ms),
        ..congestion(Cause::Loss, h.cwnd())
    };
    h.on_congestion(&e, p);
    h.on_recovered(at(ms), p);
}

#[test]
fn alpha_is_one_for_a_second_and_then_quadratic() {
    for (ms, want) in [
        (0, 1.0),
        (1_000, 1.0),
        (1_500, 6.0625),
        (2_000, 11.25),
        (3_000, 22.0),
        (11_000, 126.0),
    ] {
        assert!((DEFAULT.alpha(MS(ms)) - want).abs() < 1e-9, "{ms} ms");
    }
}

#[test]
fn scaled_by_beta_and_round_trip_time() {
    let mut h = htcp(100).policy().clone();
    // β = 0.5: 2(1 - β) is 1; the reference RTT is 100 ms.
    for (rtt, want) in [(100, 11.25), (50, 5.625), (1, 1.125), (400, 22.5)] {
        assert!((h.alpha(at(2_000), Some(MS(rtt))) - want).abs() < 1e-9);
    }
    h.beta = 0.8;
    assert!((h.alpha(at(2_000), Some(MS(100))) - 4.5).abs() < 1e-9);
    assert!((h.alpha(at(2_000), None) - 4.5).abs() < 1e-9);
    h.params.rtt_scaling = false;
    assert!((h.alpha(at(2_000), Some(MS(1))) - 4.5).abs() < 1e-9);
}

#[test]
fn grows_by_alpha_in_a_window_of_acknowledgements() {
    let p = path(MS(100));
    let mut h = htcp(1000);
    for _ in 0..1000 {
        h.on_ack(
            &Acked {
                now: at(2_000),
                ..ack(MSS.get())
            },
            &p,
        );
    }
    let grown = h.window().segments() - 1000.0;
    assert!((11.15..=11.25).contains(&grown), "{grown}");
    // Long after the latest event, no faster than slow start.
    let mut h = htcp(10);
    h.on_ack(
        &Acked {
            now: at(100_000),
            ..ack(MSS.get())
        },
        &p,
    );
    assert_eq!(h.cwnd(), MSS * 11);
}

#[test]
fn adaptive_backoff() {
    let p = path(MS(100));
    let mut h = htcp(100);
    round(&mut h, 100, 100, MSS * 100, &p);
    round(&mut h, 200, 150, MSS * 100, &p);
    lose(&mut h, 200, &p); // nothing to compare with
    assert_eq!(h.policy().beta, 0.5);
    // RTTmax is 100 + 0.95 * 50 now; the same throughput again.
    round(&mut h, 300, 110, MSS * 100, &p);
    let before = h.cwnd();
    lose(&mut h, 300, &p);
    assert!((h.policy().beta - 100.0 / 147.5).abs() < 1e-9);
    assert_eq!(h.cwnd(), before.mul_f64(100.0 / 147.5));
    // 19 % less throughput is no change, 21 % is.
    round(&mut h, 400, 100, MSS * 100, &p);
    lose(&mut h, 400, &p);
    for (percent, adaptive) in [(81, true), (79, false)] {
        let mut h = h.clone();
        round(&mut h, 500, 100, MSS * percent, &p);
        lose(&mut h, 500, &p);
        assert_eq!(h.policy().beta > 0.5, adaptive, "{percent} %");
    }
}

#[test]
fn beta_stays_within_bounds() {
    for (rtt, want) in [(100, 0.8), (500, 0.5)] {
        let p = path(MS(100));
        let mut h = htcp(100);
        for event in 1..=2 {
            round(&mut h, event * 100, rtt, MSS * 100, &p);
            lose(&mut h, event * 100, &p);
        }
        assert_eq!(h.policy().beta, want);
    }
}

#[test]
fn nothing_known_of_the_path() {
    let p = Path {
        min_rtt: None,
        srtt: None,
        latest_rtt: None,
        ..path(MS(1))
    };
    let mut h = htcp(10);
    h.on_ack(&ack(MSS.get()), &p);
    lose(&mut h, 0, &p);
    lose(&mut h, 0, &p);
    assert_eq!(h.policy().beta, 0.5);
}

#[test]
fn undo_restores_the_clock_and_beta() {
    let p = path(MS(100));
    let mut h = htcp(100);
    let before = format!("{:?}", h.policy());
    let cause = Cause::Timeout { consecutive: 1 };
    let e = Congestion {
        now: at(5_000),
        ..congestion(cause, h.cwnd())
    };
    h.on_congestion(&e, &p);
    assert_eq!((h.cwnd(), h.policy().event), (MSS, at(5_000)));
    h.on_spurious(
        &Spurious {
            now: at(5_100),
            cause,
        },
        &p,
    );
    assert_eq!(format!("{:?}", h.policy()), before);
    assert_eq!(h.cwnd(), MSS * 100);
}

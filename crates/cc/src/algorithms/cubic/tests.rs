use super::*;
use crate::Controller;
use crate::event::{Idle, Spurious};
use crate::testing::{MSS, ack, congestion, init, path, sent};

const RTT: Duration = Duration::from_millis(100);

fn at(secs: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(secs)
}

fn params() -> CubicParams {
    CubicParams {
        window: WindowParams::DEFAULT,
        ..CubicParams::DEFAULT
    }
}

/// In congestion avoidance after one loss at `segments`.
fn after_loss(params: CubicParams, segments: u64) -> WindowBased<Cubic> {
    let mut c = Cubic::build(params, &init());
    c.window_mut().set_cwnd(MSS * segments);
    c.on_congestion(&congestion(Cause::Loss, MSS * segments), &path(RTT));
    c.on_recovered(Instant::ZERO, &path(RTT));
    c
}

fn ack_at(c: &mut WindowBased<Cubic>, secs: f64, segments: u64) {
    let now = at(secs);
    c.on_ack(
        &Acked {
            now,
            ..ack(MSS.get() * segments)
        },
        &path(RTT),
    );
}

/// Acknowledges whole windows, one segment at a time, from `from` to `to` seconds.
fn run(c: &mut WindowBased<Cubic>, from: f64, to: f64) {
    let rtt = RTT.as_secs_f64();
    let mut t = from;
    while t < to {
        let n = c.cwnd().get() / MSS.get();
        for i in 0..n {
            ack_at(c, t + rtt * i as f64 / n as f64, 1);
        }
        t += rtt;
    }
}

#[test]
fn equations_of_section_4_2() {
    // W_max = 1000, cwnd_epoch = 700, C = 0.4: K = cbrt(750).
    let k = k(1000.0, 700.0, 0.4);
    assert!((k - 9.085_602_964).abs() < 1e-8);
    assert!((w_cubic(-k, 0.4, 1000.0) - 700.0).abs() < 1e-9);
    assert_eq!(w_cubic(0.0, 0.4, 1000.0), 1000.0);
    assert!((w_cubic(2.0, 0.4, 1000.0) - 1003.2).abs() < 1e-9);
}

#[test]
fn alpha_of_section_4_3() {
    assert!((params().alpha() - 9.0 / 17.0).abs() < 1e-12); // 3 * 0.3 / 1.7
    let two = CubicParams {
        connections: 2,
        ..params()
    };
    // Google QUIC: beta = (2 - 1 + 0.7) / 2, alpha = 3 N^2 (1 - beta) / (1 + beta).
    assert!((two.aggregate(0.7) - 0.85).abs() < 1e-12);
    assert!((two.alpha() - 12.0 * 0.15 / 1.85).abs() < 1e-12);
}

#[test]
fn two_connections_give_up_half_as_much() {
    let params = CubicParams {
        connections: 2,
        ..params()
    };
    // One of two keeps 0.7, the other all: 0.85. Google's QUIC releases (1 + 0.85) / 2 of the plateau.
    let mut c = after_loss(params, 1000);
    assert_eq!(c.cwnd(), MSS * 850);
    c.on_congestion(&congestion(Cause::Loss, MSS * 850), &path(RTT));
    assert!((c.policy().curve.w_max - 850.0 * (1.0 + 0.85) / 2.0).abs() < 1e-9);
    assert_eq!(c.ssthresh(), Some((MSS * 850).mul_f64(0.85)));
}

#[test]
fn one_connection_is_the_rfc() {
    let one = CubicParams {
        connections: 1,
        ..params()
    };
    assert_eq!(
        (one.aggregate(0.7), one.alpha()),
        (0.7, 3.0 * (1.0 - 0.7) / (1.0 + 0.7))
    );
}

#[test]
fn follows_the_curve_to_the_plateau_and_beyond() {
    let mut c = after_loss(params(), 1000);
    assert_eq!(c.cwnd(), MSS * 700);
    let k = k(1000.0, 700.0, 0.4);
    run(&mut c, 0.0, k);
    // The target is one RTT ahead, approached within a round trip.
    assert!((c.window().segments() - 1000.0).abs() < 2.0, "{}", c.cwnd());
    run(&mut c, k, k + 5.0);
    let expected = w_cubic(5.0, 0.4, 1000.0);
    assert!((c.window().segments() - expected).abs() < 0.01 * expected);
}

#[test]
fn growth_in_a_round_trip_is_at_most_half_the_window() {
    // Far beyond the plateau the target is clamped to 1.5 cwnd.
    let mut c = after_loss(params(), 100);
    ack_at(&mut c, 0.0, 1);
    let before = c.window().segments();
    ack_at(&mut c, 1000.0, 1);
    let growth = c.window().segments() - before;
    assert!(growth <= 0.5 + 1e-3 && growth > 0.49, "{growth}");
}

#[test]
fn reno_friendly_region_grows_by_alpha_then_by_one() {
    // Small windows at a short RTT: cubic growth is negligible.
    let mut c = after_loss(params(), 20);
    let p = path(Duration::from_millis(1));
    let mut t = 0;
    let mut round = |c: &mut WindowBased<Cubic>| {
        let before = c.window().segments();
        for _ in 0..before as u64 {
            t += 50;
            let now = Instant::ZERO + Duration::from_micros(t);
            c.on_ack(
                &Acked {
                    now,
                    ..ack(MSS.get())
                },
                &p,
            );
        }
        c.window().segments() - before
    };
    let first = round(&mut c);
    assert!((first - 9.0 / 17.0).abs() < 0.03, "{first}");
    while c.policy().curve.w_est < c.policy().curve.cwnd_prior {
        round(&mut c);
    }
    let last = round(&mut c);
    assert!((last - 1.0).abs() < 0.06, "{last}");
    let mut plain = after_loss(
        CubicParams {
            reno_friendly: false,
            ..params()
        },
        20,
    );
    assert!(round(&mut plain) < 0.1);
}

#[test]
fn fast_convergence_lowers_the_plateau_and_can_be_switched_off() {
    for (fast_convergence, w_max) in [(true, 70.0 * 0.85), (false, 70.0)] {
        let mut c = after_loss(
            CubicParams {
                fast_convergence,
                ..params()
            },
            100,
        );
        assert_eq!(c.policy().curve.w_max, 100.0);
        c.on_congestion(&congestion(Cause::Loss, MSS * 70), &path(RTT));
        assert!((c.policy().curve.w_max - w_max).abs() < 1e-9);
        assert_eq!(c.policy().curve.cwnd_prior, 70.0);
    }
}

#[test]
fn stage_after_a_timeout_starts_from_its_own_window() {
    let mut c = after_loss(params(), 1000);
    c.on_congestion(
        &congestion(Cause::Timeout { consecutive: 1 }, MSS * 700),
        &path(RTT),
    );
    assert_eq!(c.cwnd(), MSS);
    assert_eq!(c.ssthresh(), Some(MSS * 490)); // beta, not one half
    c.window_mut().set_cwnd(MSS * 490);
    ack_at(&mut c, 1.0, 1);
    assert_eq!((c.policy().curve.k, c.policy().curve.w_max), (0.0, 490.0));
}

#[test]
fn leaving_slow_start_without_loss_has_no_w_max() {
    let mut c = Cubic::build(params(), &init());
    c.window_mut().set_cwnd(MSS * 50);
    c.window_mut().exit_slow_start();
    ack_at(&mut c, 1.0, 1);
    let curve = c.policy().curve;
    assert_eq!((curve.k, curve.w_max, curve.cwnd_prior), (0.0, 50.0, 50.0));
}

#[test]
fn application_limited_time_does_not_count() {
    let mut busy = after_loss(params(), 1000);
    run(&mut busy, 0.0, 3.0);
    let mut paused = busy.clone();
    run(&mut busy, 3.0, 4.0);
    // Limited from 3 s to 60 s, the last part of it idle.
    paused.on_ack(
        &Acked {
            now: at(3.0),
            cwnd_limited: false,
            ..ack(MSS.get())
        },
        &path(RTT),
    );
    paused.on_send(
        &Sent {
            now: at(60.0),
            app_limited: true,
            idle: Some(Idle {
                duration: Duration::from_secs(50),
                rto: Duration::from_millis(300),
                restart_window: None,
                was_app_limited: false,
            }),
            ..sent(MSS, Bytes::ZERO)
        },
        &path(RTT),
    );
    run(&mut paused, 60.0, 61.0);
    let difference = (busy.window().segments() - paused.window().segments()).abs();
    assert!(difference < 1.0, "{difference}");
}

#[test]
fn spurious_loss_restores_the_whole_curve() {
    let mut c = after_loss(params(), 1000);
    run(&mut c, 0.0, 2.0);
    let before = (c.cwnd(), c.ssthresh(), c.policy().curve);
    c.on_congestion(&congestion(Cause::Loss, c.cwnd()), &path(RTT));
    assert_ne!(c.policy().curve, before.2);
    let event = Spurious {
        now: at(2.1),
        cause: Cause::Loss,
    };
    c.on_spurious(&event, &path(RTT));
    assert_eq!((c.cwnd(), c.ssthresh(), c.policy().curve), before);
}

#[test]
fn a_late_undo_keeps_the_greater_window() {
    let mut c = after_loss(params(), 100);
    c.window_mut().set_cwnd(MSS * 200);
    let before = c.policy().curve;
    let event = Spurious {
        now: at(2.1),
        cause: Cause::Loss,
    };
    c.on_spurious(&event, &path(RTT));
    assert_eq!((c.cwnd(), c.policy().curve), (MSS * 200, before));
}

#[test]
fn ecn_reduces_to_one_segment_at_least() {
    let mut c = after_loss(params(), 2);
    c.on_congestion(&congestion(Cause::Ecn, MSS), &path(RTT));
    assert_eq!((c.cwnd(), c.ssthresh()), (MSS, Some(MSS * 2)));
}

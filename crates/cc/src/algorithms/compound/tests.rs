use super::*;
use crate::Controller;
use crate::event::{Idle, Spurious};
use crate::round_rtt::bench::Bottleneck;
use crate::testing::{MSS, congestion, init, path, sent};
use gargalo_units::{Duration, Instant};

const DEFAULT: CompoundParams = CompoundParams::DEFAULT;

const BASE: Duration = Duration::from_millis(100);

fn compound(params: CompoundParams, segments: u64) -> WindowBased<Compound> {
    let start = Init {
        initial_window: MSS * segments,
        ..init()
    };
    let mut c = Compound::build(params, &start);
    c.window_mut().exit_slow_start();
    c
}

fn lose(c: &mut WindowBased<Compound>, cause: Cause) {
    let event = congestion(cause, c.cwnd());
    c.on_congestion(&event, &path(BASE));
    c.on_recovered(Instant::ZERO, &path(BASE));
}

#[test]
fn a_round_without_a_queue_adds_alpha_win_to_the_k() {
    // 256^0.75 = 64: 8 segments, one of which is Reno's.
    let mut c = compound(DEFAULT, 256);
    Bottleneck::new(BASE, 1e6).run(&mut c, 1);
    let grown = c.window().segments() - 256.0;
    assert!((7.9..=8.1).contains(&grown), "{grown}");
    assert!((c.policy().dwnd - 7.0).abs() < 0.1, "{}", c.policy().dwnd);
    // Below 8^(4/3) = 16 segments it is Reno.
    let mut c = compound(DEFAULT, 15);
    Bottleneck::new(BASE, 1e6).run(&mut c, 1);
    assert_eq!(c.policy().dwnd, 0.0);
}

#[test]
fn a_queue_of_gamma_takes_the_delay_window_back() {
    // 40 segments of queue are above gamma: dwnd falls by them, Reno's window grows.
    let mut path = Bottleneck::new(BASE, 360.0);
    let mut c = compound(DEFAULT, 400);
    c.window_mut().set_cwnd(MSS * 400);
    let mut policy = c.policy().clone();
    policy.dwnd = 100.0;
    let mut window = c.window().clone();
    let round = Round {
        base: BASE,
        rtt: path.rtt(400.0),
        samples: 10,
        cwnd: 400.0,
    };
    policy.judge(&mut window, &round, true);
    assert!((policy.dwnd - 60.0).abs() < 1e-3, "{}", policy.dwnd);
    assert!((window.segments() - 360.0).abs() < 1e-2);
    // Without a delay window it is Reno, queue or not.
    path.run(&mut c, 3);
    assert!((402.5..=403.0).contains(&c.window().segments()));
}

#[test]
fn loss_keeps_half_of_the_sum_and_of_the_loss_window() {
    let mut c = compound(DEFAULT, 256);
    Bottleneck::new(BASE, 1e6).run(&mut c, 20);
    let (win, dwnd) = (c.window().segments(), c.policy().dwnd);
    lose(&mut c, Cause::Loss);
    assert!((c.window().segments() - win / 2.0).abs() < 1e-2);
    assert!((c.policy().dwnd - dwnd / 2.0).abs() < 1e-2);
    // With beta = 0.2, more of it is the delay window's.
    let mut c = compound(
        CompoundParams {
            beta: 0.2,
            ..DEFAULT
        },
        100,
    );
    lose(&mut c, Cause::Loss);
    assert_eq!(c.cwnd(), MSS * 80);
    assert!((c.policy().dwnd - 30.0).abs() < 1e-9);
}

#[test]
fn a_timeout_and_an_idle_restart_give_the_delay_window_up() {
    let mut c = compound(DEFAULT, 256);
    Bottleneck::new(BASE, 1e6).run(&mut c, 20);
    lose(&mut c, Cause::Timeout { consecutive: 1 });
    assert_eq!((c.cwnd(), c.policy().dwnd), (MSS, 0.0));
    let mut c = compound(DEFAULT, 256);
    Bottleneck::new(BASE, 1e6).run(&mut c, 20);
    let idle = Idle {
        duration: Duration::from_secs(9),
        rto: Duration::from_secs(1),
        restart_window: Some(MSS * 10),
        was_app_limited: false,
    };
    let again = Sent {
        idle: Some(idle),
        ..sent(MSS, Bytes::ZERO)
    };
    c.on_send(&again, &path(BASE));
    assert_eq!((c.cwnd(), c.policy().dwnd), (MSS * 10, 0.0));
}

#[test]
fn response_function_of_the_paper() {
    // From win/2 to win at alpha win^k per round trip, 1/p packets are sent:
    // 1/p = win^1.25 (1 - 0.5^1.25) / (1.25 alpha). p = 1e-5: 3504 segments.
    let mut path = Bottleneck::new(BASE, 1e7);
    let mut c = compound(DEFAULT, 2000);
    let (mut peak, mut packets) = (0.0, 0.0);
    for _ in 0..1500 {
        packets += c.window().segments();
        path.run(&mut c, 1);
        if packets >= 1e5 {
            packets -= 1e5;
            peak = c.window().segments();
            lose(&mut c, Cause::Loss);
        }
    }
    assert!((peak / 3504.0 - 1.0).abs() < 0.05, "{peak}");
}

#[test]
fn gamma_follows_the_queue_before_losses() {
    let tuned = CompoundParams {
        tune_gamma: true,
        ..DEFAULT
    };
    let mut c = compound(tuned, 100);
    let mut path = Bottleneck::new(BASE, 80.0);
    path.run(&mut c, 1);
    // The loss window alone had 20 segments queued: 0.2 * 30 + 0.8 * 0.75 * 20 = 18.
    lose(&mut c, Cause::Loss);
    assert!(
        (c.policy().gamma - 18.0).abs() < 0.3,
        "{}",
        c.policy().gamma
    );
    // Not twice from one measurement.
    let gamma = c.policy().gamma;
    lose(&mut c, Cause::Loss);
    assert_eq!(c.policy().gamma, gamma);
    lose(&mut c, Cause::Timeout { consecutive: 1 });
    assert_eq!(c.policy().gamma, 30.0);
    // No queue at all: no less than 5.
    let mut c = compound(tuned, 50);
    for _ in 0..5 {
        path.run(&mut c, 4); // the first rounds after a loss say nothing
        lose(&mut c, Cause::Loss);
        c.window_mut().set_cwnd(MSS * 50);
    }
    assert_eq!(c.policy().gamma, 5.0);
}

#[test]
fn undo_restores_both_windows() {
    let mut c = compound(DEFAULT, 256);
    Bottleneck::new(BASE, 1e6).run(&mut c, 20);
    let (cwnd, dwnd) = (c.cwnd(), c.policy().dwnd);
    c.on_congestion(&congestion(Cause::Loss, cwnd), &path(BASE));
    c.on_spurious(
        &Spurious {
            now: Instant::ZERO,
            cause: Cause::Loss,
        },
        &path(BASE),
    );
    assert_eq!((c.cwnd(), c.policy().dwnd), (cwnd, dwnd));
}

use super::*;
use crate::Controller;
use crate::event::{Idle, Spurious};
use crate::testing::{MSS, ack, congestion, init, path, sent};

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// In congestion avoidance after one loss at `segments`.
fn after_loss(segments: u64) -> WindowBased<CubicLinux> {
    let mut c = CubicLinux::build(CubicLinuxParams::DEFAULT, &init());
    c.window_mut().set_cwnd(MSS * segments);
    c.on_congestion(&congestion(Cause::Loss, MSS), &path(RTT));
    c.on_recovered(Instant::ZERO, &path(RTT));
    c
}

fn ack_at(c: &mut WindowBased<CubicLinux>, ms: u64, segments: u64) {
    let acked = Acked {
        now: at(ms),
        rtt: Some(RTT),
        ..ack(MSS.get() * segments)
    };
    c.on_ack(&acked, &path(RTT));
}

fn cwnd(c: &WindowBased<CubicLinux>) -> u64 {
    assert_eq!(c.cwnd().get() % MSS.get(), 0, "whole segments");
    c.cwnd().get() / MSS.get()
}

#[test]
fn k_and_target_in_integers() {
    // 2^40 / 410 = 2681735677; times 300 its cube root is 9300.6, 9.08 s.
    assert_eq!(k(300, 41), 9300);
    assert_eq!(k(0, 41), 0);
    let curve = Curve {
        origin: 1000,
        k: 9300,
        ..Curve::default()
    };
    // 410 * 9300^3 / 2^40 = 299.9; 410 * 2048^3 / 2^40 = 3.2.
    assert_eq!(curve.target(0, 41), 701);
    assert_eq!(curve.target(9300, 41), 1000);
    assert_eq!(curve.target(9300 + 2048, 41), 1003);
}

#[test]
fn a_loss_keeps_717_of_1024_of_the_window_and_not_of_the_data_in_flight() {
    let c = after_loss(100);
    assert_eq!(cwnd(&c), 70); // 71700 / 1024
    assert_eq!(c.policy().curve.last_max, 100);
    assert_eq!(cwnd(&after_loss(2)), 2);
}

#[test]
fn fast_convergence_below_the_former_maximum() {
    let mut c = after_loss(100);
    c.on_congestion(&congestion(Cause::Loss, MSS), &path(RTT));
    // 70 * 1741 / 2048
    assert_eq!((cwnd(&c), c.policy().curve.last_max), (49, 59));
}

#[test]
fn before_the_first_loss_at_least_a_twentieth_in_a_round_trip() {
    let mut c = CubicLinux::build(CubicLinuxParams::DEFAULT, &init());
    c.window_mut().set_cwnd(MSS * 100);
    c.window_mut().exit_slow_start();
    for _ in 0..99 {
        ack_at(&mut c, 1000, 1);
    }
    assert_eq!((c.policy().curve.count, cwnd(&c)), (20, 104));
    ack_at(&mut c, 1000, 1);
    assert_eq!(cwnd(&c), 105);
}

#[test]
fn the_reno_friendly_window_goes_on_with_fifteen_eighths_above_the_former_window() {
    // 10 segments, 7 after the loss: K is 1.96 s, so that the Reno-friendly window leads for a long time.
    let mut c = after_loss(10);
    let mut rounds = 0;
    while cwnd(&c) < 12 && rounds < 100 {
        for _ in 0..cwnd(&c) {
            ack_at(&mut c, 10 + 30 * rounds, 1);
        }
        rounds += 1;
    }
    // 0.53 segments a round trip: five segments need nine to ten rounds, and one for whole steps.
    assert!((9..=12).contains(&rounds), "{rounds} rounds");
    assert_eq!(c.policy().curve.reno, 12);
}

#[test]
fn growth_of_half_a_segment_per_segment_at_most() {
    let mut c = after_loss(100);
    ack_at(&mut c, 4000, 1); // the epoch begins
    let before = cwnd(&c);
    for _ in 0..10 {
        ack_at(&mut c, 60_000, 1);
    }
    assert_eq!((c.policy().curve.count, cwnd(&c)), (2, before + 5));
}

#[test]
fn s_max_bounds_the_growth_per_second() {
    // 700 segments at 0.1 s: 160 segments per second are 16 in a round trip, one per 43 segments.
    let params = CubicLinuxParams {
        s_max: 160,
        ..CubicLinuxParams::DEFAULT
    };
    let mut c = CubicLinux::build(params, &init());
    c.window_mut().set_cwnd(MSS * 1000);
    c.on_congestion(&congestion(Cause::Loss, MSS), &path(RTT));
    c.on_recovered(Instant::ZERO, &path(RTT));
    let mut unbounded = after_loss(1000);
    for c in [&mut c, &mut unbounded] {
        ack_at(c, 4000, 1);
        ack_at(c, 40_000, 1);
    }
    assert_eq!(unbounded.policy().curve.count, 2);
    assert_eq!(c.policy().curve.count, 700_000 / (160 * 100));
}

#[test]
fn the_curve_stands_for_a_32nd_of_a_second_while_the_window_does() {
    let mut c = after_loss(1000);
    ack_at(&mut c, 4000, 1);
    let first = c.policy().curve.updated;
    ack_at(&mut c, 4028, 1); // 7 ticks of 4 ms
    assert_eq!(c.policy().curve.updated, first);
    ack_at(&mut c, 4032, 1);
    assert_eq!(c.policy().curve.updated.1, first.1 + 8);
}

#[test]
fn a_timeout_forgets_the_maximum_and_searches_anew() {
    let mut c = after_loss(100);
    ack_at(&mut c, 4000, 1);
    let timeout = Cause::Timeout { consecutive: 1 };
    c.on_congestion(&congestion(timeout, MSS * 70), &path(RTT));
    assert_eq!((cwnd(&c), c.ssthresh()), (1, Some(MSS * 49)));
    let state = c.policy();
    assert_eq!((state.curve, state.delay_min), (Curve::default(), None));
}

#[test]
fn an_undo_restores_the_window_and_leaves_the_maximum() {
    let mut c = after_loss(100);
    let spurious = Spurious {
        now: at(0),
        cause: Cause::Loss,
    };
    c.on_spurious(&spurious, &path(RTT));
    assert_eq!((cwnd(&c), c.policy().curve.last_max), (100, 100));
}

#[test]
fn a_pause_is_taken_off_the_epoch() {
    let mut c = after_loss(100);
    ack_at(&mut c, 4000, 1);
    let epoch = c.policy().curve.epoch.unwrap();
    let idle = Idle {
        duration: Duration::from_secs(2),
        rto: RTT,
        restart_window: None,
        was_app_limited: false,
    };
    let send = Sent {
        now: at(7000),
        idle: Some(idle),
        ..sent(MSS, Bytes::ZERO)
    };
    c.on_send(&send, &path(RTT));
    assert_eq!(c.policy().curve.epoch, Some(epoch + 500));
}

/// A round of slow start: `n` acknowledgements `spacing_us` apart.
fn round(c: &mut WindowBased<CubicLinux>, from_ms: u64, n: u64, spacing_us: u64, rtt: Duration) {
    for i in 0..n {
        let acked = Acked {
            now: at(from_ms) + Duration::from_micros(i * spacing_us),
            rtt: Some(rtt),
            round_start: i == 0,
            cwnd_limited: false,
            ..ack(MSS.get())
        };
        c.on_ack(&acked, &path(rtt));
    }
}

fn starting(paced: bool) -> WindowBased<CubicLinux> {
    let params = CubicLinuxParams {
        paced,
        ..CubicLinuxParams::DEFAULT
    };
    let mut c = CubicLinux::build(params, &init());
    c.window_mut().set_cwnd(MSS * 50);
    c
}

#[test]
fn a_train_longer_than_half_a_round_trip_ends_slow_start() {
    // (100 ms + 1 ms) / 2: 26 acknowledgements 2 ms apart last 50 ms, 27 last 52.
    let mut c = starting(false);
    round(&mut c, 1000, 26, 2000, RTT);
    assert!(c.in_slow_start());
    round(&mut c, 2000, 27, 2000, RTT);
    assert_eq!(c.ssthresh(), Some(MSS * 50));
    // Paced: the whole round trip, and a gap breaks the train.
    let mut c = starting(true);
    round(&mut c, 1000, 51, 2000, RTT);
    assert!(c.in_slow_start());
    round(&mut c, 2000, 80, 2004, RTT);
    assert!(c.in_slow_start());
    round(&mut c, 3000, 52, 2000, RTT);
    assert!(!c.in_slow_start());
}

#[test]
fn the_ninth_sample_of_a_round_ends_slow_start_if_all_have_risen() {
    for (rtt, rise) in [(20, 4), (80, 10), (200, 16)] {
        let mut c = starting(false);
        round(&mut c, 1000, 9, 3000, Duration::from_millis(rtt));
        let risen = Duration::from_millis(rtt + rise);
        round(&mut c, 2000, 9, 3000, risen);
        assert!(c.in_slow_start(), "{rtt}: more than the rise is needed");
        let risen = risen + Duration::from_micros(1);
        round(&mut c, 3000, 8, 3000, risen);
        assert!(c.in_slow_start(), "{rtt}: eight samples");
        round(&mut c, 4000, 9, 3000, risen);
        assert!(!c.in_slow_start(), "{rtt}");
    }
}

/// Rounds go on while the window is below 16 segments (Linux 6.14 and its stable releases): the ninth sample that
/// counts is that of the round in which the window has come there.
#[test]
fn rounds_go_on_below_16_segments() {
    let mut c = CubicLinux::build(CubicLinuxParams::DEFAULT, &init());
    let mut acknowledge = |ms, rtt: u64, segments: u64, round_start| {
        c.window_mut().set_cwnd(MSS * segments);
        let rtt = Duration::from_millis(rtt);
        let acked = Acked {
            now: at(ms),
            rtt: Some(rtt),
            cwnd_limited: false,
            round_start,
            ..ack(MSS.get())
        };
        c.on_ack(&acked, &path(rtt));
        c.in_slow_start()
    };
    assert!(acknowledge(1000, 100, 14, true));
    // A round begins at 15 segments, and its samples at 16 are the first that count.
    assert!(acknowledge(1100, 200, 15, true));
    for n in 0..8 {
        assert!(acknowledge(1200 + n * 100, 200, 16, false), "{n}");
    }
    assert!(!acknowledge(2000, 200, 16, false));
}

#[test]
fn segments_that_duplicates_stood_for_let_the_window_grow_once_at_most() {
    let grown = |sack| {
        let mut c = CubicLinux::build(CubicLinuxParams::DEFAULT, &init());
        let before = cwnd(&c);
        let acked = Acked {
            acknowledged: MSS,
            ..ack(MSS.get() * 3)
        };
        c.on_ack(&acked, &Path { sack, ..path(RTT) });
        cwnd(&c) - before
    };
    assert_eq!((grown(true), grown(false)), (3, 1));
}

#[test]
fn nothing_is_searched_for_below_16_segments_and_slow_start_counts_segments() {
    let mut c = CubicLinux::build(CubicLinuxParams::DEFAULT, &init());
    c.window_mut().set_cwnd(MSS * 15);
    round(&mut c, 1000, 60, 1000, RTT);
    assert!(c.in_slow_start());
    let start = cwnd(&c);
    // Two segments and a half twice are five.
    for ms in [5000, 5001] {
        let acked = Acked {
            now: at(ms),
            ..ack(2500)
        };
        c.on_ack(&acked, &path(RTT));
    }
    assert_eq!(cwnd(&c), start + 5);
}

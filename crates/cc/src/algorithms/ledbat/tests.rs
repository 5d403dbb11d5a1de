use super::*;
use crate::Controller;
use crate::event::{Cause, Idle, Spurious};
use crate::round_rtt::bench::Bottleneck;
use crate::testing::{MSS, ack, congestion, init, path, sent};

const BASE: Duration = Duration::from_millis(50);
const DEFAULT: LedbatParams = LedbatParams::DEFAULT;

const PLUS_PLUS: LedbatParams = LedbatParams {
    target: Duration::from_millis(60),
    initial_slow_start: true,
    dynamic_gain: true,
    multiplicative_decrease: true,
    slowdowns: true,
    ..DEFAULT
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ledbat(params: LedbatParams, segments: f64) -> WindowBased<Ledbat> {
    let params = LedbatParams {
        init_cwnd: segments,
        ..params
    };
    Ledbat::build(params, &init())
}

/// One acknowledgement of `bytes` with this round-trip time, the window being full.
fn one(l: &WindowBased<Ledbat>, rtt: Duration, bytes: u64) -> Acked {
    Acked {
        rtt: Some(rtt),
        in_flight_before: l.cwnd(),
        ..ack(bytes)
    }
}

fn deliver(l: &mut WindowBased<Ledbat>, rtt: Duration, bytes: u64) {
    let ack = one(l, rtt, bytes);
    l.on_ack(&ack, &path(rtt));
}

#[test]
fn two_segments_to_begin_with_and_no_slow_start() {
    let l = Ledbat::build(DEFAULT, &init());
    assert_eq!((l.cwnd(), l.phase()), (MSS * 2, "congestion-avoidance"));
    let theirs = Ledbat::build(
        LedbatParams {
            init_cwnd: 0.0,
            ..DEFAULT
        },
        &init(),
    );
    assert_eq!(theirs.cwnd(), MSS * 10);
}

#[test]
fn the_window_update_by_hand() {
    // GAIN * off_target * bytes * MSS / cwnd with 50 ms of 100 ms queued: 0.5 * 1000 * 1000 / 40000.
    let mut l = ledbat(
        LedbatParams {
            current_filter: 1,
            ..DEFAULT
        },
        40.0,
    );
    deliver(&mut l, BASE, 0);
    deliver(&mut l, BASE + ms(50), MSS.get());
    assert_eq!(l.cwnd(), Bytes::new(40_012)); // 12.5, the fraction is kept
    // 150 ms queued: off_target is -0.5.
    deliver(&mut l, BASE + ms(150), MSS.get());
    assert_eq!(l.cwnd(), Bytes::new(40_001));
    // At the target nothing moves.
    deliver(&mut l, BASE + ms(100), MSS.get());
    assert_eq!(l.cwnd(), Bytes::new(40_001));
}

#[test]
fn the_queueing_delay_settles_at_the_target() {
    // 100 segments in 50 ms: the target of 100 ms is 200 segments of queue.
    for start in [20.0, 500.0] {
        let mut l = ledbat(DEFAULT, start);
        let mut bottleneck = Bottleneck::new(BASE, 100.0);
        deliver(&mut l, BASE, 0); // the base delay is known
        let backlog = bottleneck.run(&mut l, 1500);
        assert!((198.0..=202.0).contains(&backlog), "{start}: {backlog}");
    }
    // Half the target, half the queue.
    let half = LedbatParams {
        target: ms(50),
        ..DEFAULT
    };
    let mut l = ledbat(half, 20.0);
    let backlog = Bottleneck::new(BASE, 100.0).run(&mut l, 1500);
    assert!((98.0..=102.0).contains(&backlog), "{backlog}");
}

#[test]
fn a_latecomer_takes_the_queue_it_meets_for_the_base() {
    // A queue of 20 ms that was there before: 40 segments more.
    let mut l = ledbat(DEFAULT, 140.0);
    let backlog = Bottleneck::new(BASE, 100.0).run(&mut l, 1500);
    assert!((238.0..=242.0).contains(&backlog), "{backlog}");
}

#[test]
fn a_queue_that_never_empties_becomes_the_base() {
    // At the target for longer than BASE_HISTORY, the flow no longer knows how short the path is.
    let mut l = ledbat(DEFAULT, 20.0);
    let mut bottleneck = Bottleneck::new(BASE, 100.0);
    let settled = bottleneck.run(&mut l, 1500);
    while bottleneck.now < Instant::ZERO + Duration::from_secs(1200) {
        bottleneck.run(&mut l, 1);
    }
    let drifted = bottleneck.run(&mut l, 1);
    assert!(drifted > settled + 100.0, "{settled} then {drifted}");
}

#[test]
fn no_faster_than_reno() {
    let mut l = ledbat(DEFAULT, 30.0);
    Bottleneck::new(BASE, 1e6).run(&mut l, 10);
    let cwnd = l.window().segments();
    assert!((39.0..=40.0).contains(&cwnd), "{cwnd}");
}

#[test]
fn the_window_exceeds_the_flight_by_one_segment_at_most() {
    let mut l = ledbat(DEFAULT, 30.0);
    for _ in 0..100 {
        let ack = Acked {
            in_flight_before: MSS * 30,
            ..one(&l, BASE, MSS.get())
        };
        l.on_ack(&ack, &path(BASE));
    }
    assert_eq!(l.cwnd(), MSS * 31); // ALLOWED_INCREASE
    let little = Acked {
        in_flight_before: MSS * 5,
        ..one(&l, BASE, MSS.get())
    };
    l.on_ack(&little, &path(BASE));
    assert_eq!(l.cwnd(), MSS * 6);
    let nearly_idle = Acked {
        in_flight_before: Bytes::new(10),
        ..little
    };
    l.on_ack(&nearly_idle, &path(BASE));
    assert_eq!(l.cwnd(), MSS * 2); // MIN_CWND
}

#[test]
fn delay_takes_it_to_two_segments_and_a_timeout_to_one() {
    let mut l = ledbat(DEFAULT, 10.0);
    deliver(&mut l, BASE, 0);
    for _ in 0..200 {
        deliver(&mut l, BASE + ms(900), MSS.get());
    }
    assert_eq!(l.cwnd(), MSS * 2);
    let timeout = Cause::Timeout { consecutive: 1 };
    l.on_congestion(&congestion(timeout, MSS * 2), &path(BASE));
    assert_eq!(l.cwnd(), MSS);
    assert_eq!(l.phase(), "congestion-avoidance");
    // The next acknowledgement lifts it to MIN_CWND, whatever the delay.
    deliver(&mut l, BASE + ms(900), MSS.get());
    assert_eq!(l.cwnd(), MSS * 2);
}

#[test]
fn loss_halves_and_is_undone() {
    let mut l = ledbat(DEFAULT, 40.0);
    l.on_congestion(&congestion(Cause::Loss, MSS * 40), &path(BASE));
    assert_eq!(l.cwnd(), MSS * 20);
    let undo = Spurious {
        now: Instant::ZERO,
        cause: Cause::Loss,
    };
    l.on_spurious(&undo, &path(BASE));
    assert_eq!(l.cwnd(), MSS * 40);
    // Nothing below MIN_CWND, nothing above the window.
    let mut l = ledbat(DEFAULT, 3.0);
    l.on_congestion(&congestion(Cause::Loss, MSS * 3), &path(BASE));
    assert_eq!(l.cwnd(), MSS * 2);
}

#[test]
fn slow_start_by_option_ends_short_of_the_target() {
    let mut l = ledbat(
        LedbatParams {
            initial_slow_start: true,
            ..DEFAULT
        },
        2.0,
    );
    assert_eq!(l.phase(), "slow-start");
    deliver(&mut l, BASE, 2 * MSS.get());
    assert_eq!(l.cwnd(), MSS * 4);
    for _ in 0..4 {
        deliver(&mut l, BASE + ms(75), MSS.get());
    }
    assert_eq!(l.phase(), "congestion-avoidance");
}

#[test]
fn old_delays_are_forgotten_after_an_idle_period() {
    let mut l = ledbat(DEFAULT, 20.0);
    deliver(&mut l, BASE, 0);
    deliver(&mut l, BASE + ms(900), 0);
    assert_eq!(l.policy().delays.current(), Some(BASE));
    let idle = Idle {
        duration: Duration::from_secs(9),
        rto: Duration::from_secs(1),
        restart_window: None,
        was_app_limited: false,
    };
    let again = Sent {
        idle: Some(idle),
        ..sent(MSS, Bytes::ZERO)
    };
    l.on_send(&again, &path(BASE));
    assert_eq!(l.policy().delays.current(), None);
    assert_eq!(l.policy().delays.base(), Some(BASE));
}

#[test]
fn ledbat_plus_plus_gain_and_decrease() {
    // base 20 ms: 1 / ceil(120/20) = 1/6; base 5 ms: 1/16; base 200 ms: 1.
    for (base, want) in [(20, 1.0 / 6.0), (5, 1.0 / 16.0), (200, 1.0)] {
        let mut l = ledbat(PLUS_PLUS, 20.0);
        deliver(&mut l, ms(base), 0);
        assert!((l.policy().gain() - want).abs() < 1e-12, "{base}");
    }
    let mut l = ledbat(PLUS_PLUS, 20.0);
    deliver(&mut l, ms(20), 0);
    let policy = l.policy();
    // Below the target always GAIN; 66 ms, a tenth above it: 1/6 - 40/10; far above: half.
    assert_eq!(policy.change(0.3, 40.0), 1.0 / 6.0);
    let change = policy.change(policy.off_target(ms(66)), 40.0);
    assert!((change - (1.0 / 6.0 - 4.0)).abs() < 1e-9, "{change}");
    assert_eq!(policy.change(policy.off_target(ms(600)), 40.0), -20.0);
}

#[test]
fn a_slowdown_empties_the_queue_and_comes_back() {
    let mut bottleneck = Bottleneck::new(BASE, 100.0);
    let mut l = ledbat(PLUS_PLUS, 10.0);
    let (mut low, mut before, mut after) = (0, 0.0, 0.0);
    for _ in 0..400 {
        bottleneck.run(&mut l, 1);
        let cwnd = l.window().segments();
        match l.phase() {
            "slowdown" => {
                low += 1;
                before = l.ssthresh().unwrap().as_f64() / MSS.as_f64();
                assert_eq!(l.cwnd(), MSS * 2);
            }
            "congestion-avoidance" if low > 0 => {
                after = cwnd;
                break;
            }
            _ => {}
        }
    }
    assert!((1..=5).contains(&low), "{low} rounds");
    assert!((after - before).abs() < 3.0, "{before} then {after}");
}

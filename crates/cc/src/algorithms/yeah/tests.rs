use super::*;
use crate::Controller;
use crate::event::Spurious;
use crate::round_rtt::bench::Bottleneck;
use crate::testing::{MSS, congestion, init, path};
use gargalo_units::{Duration, Instant};

const DEFAULT: YeahParams = YeahParams::DEFAULT;

const BASE: Duration = Duration::from_millis(100);

fn yeah(params: YeahParams, segments: u64) -> WindowBased<Yeah> {
    let start = Init {
        initial_window: MSS * segments,
        ..init()
    };
    let mut y = Yeah::build(params, &start);
    y.window_mut().exit_slow_start();
    y
}

#[test]
fn fast_mode_grows_by_a_hundredth_and_by_one_segment_at_least() {
    let mut path = Bottleneck::new(BASE, 1e6);
    let mut y = yeah(DEFAULT, 1000);
    path.run(&mut y, 1);
    let cwnd = y.window().segments();
    assert!((1009.9..=1010.1).contains(&cwnd), "{cwnd}");
    assert_eq!(y.phase(), "fast");
    let mut path = Bottleneck::new(BASE, 1e6);
    let mut y = yeah(DEFAULT, 50);
    path.run(&mut y, 1);
    let cwnd = y.window().segments();
    assert!((50.95..=51.0).contains(&cwnd), "{cwnd}");
}

#[test]
fn a_delay_beyond_an_eighth_means_reno() {
    // 450 segments on a pipe of 400: Q = 50 < 80, but 12.5 ms of queue are an eighth.
    let mut path = Bottleneck::new(BASE, 399.0);
    let mut y = yeah(DEFAULT, 450);
    path.run(&mut y, 1);
    assert_eq!(y.phase(), "slow");
    let before = y.window().segments();
    path.run(&mut y, 1);
    let grown = y.window().segments() - before;
    assert!((0.9..=1.0).contains(&grown), "{grown}");
}

#[test]
fn decongestion_removes_the_queue_it_sees() {
    // Q = 1100 - 1000 > 80.
    let mut path = Bottleneck::new(BASE, 1000.0);
    let mut y = yeah(DEFAULT, 1100);
    path.run(&mut y, 1);
    let cwnd = y.window().segments();
    // It had grown meanwhile in fast mode.
    assert!((1000.0..=1012.0).contains(&cwnd), "{cwnd}");
    // From then on a Reno flow is imagined that started with half of that.
    assert!((y.policy().reno - cwnd / 2.0).abs() < 1.0);
    assert!(!y.window().in_slow_start());
}

#[test]
fn decongestion_takes_half_at_most_and_stops_at_the_reno_window() {
    let mut path = Bottleneck::new(BASE, 100.0);
    let mut y = yeah(DEFAULT, 1000);
    path.run(&mut y, 1);
    let cwnd = y.window().segments();
    assert!((500.0..=506.0).contains(&cwnd), "{cwnd}");
    let floor = y.policy().reno;
    path.run(&mut y, 3);
    assert!(y.window().segments() >= floor);
}

#[test]
fn the_queue_stays_below_q_max_alone() {
    let mut path = Bottleneck::new(BASE, 500.0);
    let mut y = yeah(DEFAULT, 500);
    let (mut most, mut least) = (f64::MIN, f64::MAX);
    for _ in 0..300 {
        let backlog = path.run(&mut y, 1);
        most = most.max(backlog);
        least = least.min(backlog);
    }
    // The judgement is a round or two late, of a few segments each.
    assert!(most < 80.0 + 15.0, "{most}");
    assert!(least > -15.0, "{least}");
}

#[test]
fn loss_costs_the_queue_between_an_eighth_and_a_half() {
    let after = |queue: f64, slow_rounds: u32, cause| {
        let mut y = yeah(DEFAULT, 400);
        y.window_mut().exit_slow_start();
        let mut policy = y.policy().clone();
        (policy.queue, policy.slow_rounds) = (queue, slow_rounds);
        let event = congestion(cause, MSS * 400);
        policy.decrease(y.window(), &event, &path(BASE)).as_f64() / 400_000.0
    };
    assert_eq!(after(0.0, 0, Cause::Loss), 0.875);
    assert_eq!(after(100.0, 15, Cause::Loss), 0.75);
    assert_eq!(after(300.0, 0, Cause::Loss), 0.5);
    assert_eq!(after(100.0, 16, Cause::Loss), 0.5);
    assert_eq!(after(0.0, 0, Cause::Timeout { consecutive: 1 }), 0.5);
    assert_eq!(after(0.0, 0, Cause::Ecn), 0.5);
}

#[test]
fn fifty_fast_rounds_forget_reno_and_a_loss_halves_it() {
    let mut path = Bottleneck::new(BASE, 1000.0);
    let mut y = yeah(DEFAULT, 1100);
    path.run(&mut y, 1);
    let reno = y.policy().reno;
    y.on_congestion(&congestion(Cause::Loss, MSS * 700), &view());
    assert_eq!(y.policy().reno, reno / 2.0);
    y.on_recovered(Instant::ZERO, &view());
    y.window_mut().set_cwnd(MSS * 300);
    path.run(&mut y, 60);
    assert_eq!(y.policy().reno, LEAST);
}

fn view() -> Path<'static> {
    path(BASE)
}

#[test]
fn undo_restores_window_and_counts() {
    let mut y = yeah(DEFAULT, 400);
    let mut path = Bottleneck::new(BASE, 350.0);
    path.run(&mut y, 2);
    let (cwnd, reno, slow) = (y.cwnd(), y.policy().reno, y.policy().slow_rounds);
    y.on_congestion(&congestion(Cause::Loss, cwnd), &view());
    y.on_spurious(
        &Spurious {
            now: Instant::ZERO,
            cause: Cause::Loss,
        },
        &view(),
    );
    assert_eq!(
        (y.cwnd(), y.policy().reno, y.policy().slow_rounds),
        (cwnd, reno, slow)
    );
}

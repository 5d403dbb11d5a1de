use super::*;
use crate::event::Idle;
use crate::params::Params;
use crate::testing::net::{DELAY, Net, RATE};
use crate::testing::{MSS, ack, congestion, init, path, sent};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn copa() -> Copa {
    Copa::new(CopaParams::DEFAULT, &init())
}

/// Out of slow start with this many segments, after round-trip times of 40 ms at zero and `standing`
/// ms a second later.
fn settled(segments: u64, standing: u64) -> Copa {
    let mut c = copa();
    c.observe_rtt(Instant::ZERO, ms(40), ms(40));
    c.observe_rtt(Instant::ZERO + ms(1000), ms(standing), ms(40));
    c.competitive = None;
    c.nearly_empty_at = Instant::ZERO + ms(1000);
    c.cwnd = (MSS * segments).as_f64();
    c.end_slow_start();
    c
}

fn at(millis: u64, rtt: u64, bytes: u64) -> Acked {
    Acked {
        now: Instant::ZERO + ms(millis),
        rtt: Some(ms(rtt)),
        ..ack(bytes)
    }
}

fn segments(c: &Copa) -> f64 {
    c.cwnd / MSS.as_f64()
}

#[test]
fn the_window_steps_towards_the_target_rate() {
    // 20 segments in 50 ms of which 10 ms are queueing: 400 a second, the target is
    // 1 / (0.5 * 10 ms) = 200. One acknowledgement: 1 / (0.5 * 20) less.
    let mut c = settled(20, 50);
    c.on_ack(&at(1001, 50, 1000), &path(ms(40)));
    assert!((segments(&c) - 19.9).abs() < 1e-9);
    // 1 ms of queueing: the target is 2000, the rate 20 / 41 ms = 488.
    let mut c = settled(20, 41);
    c.on_ack(&at(1001, 41, 1000), &path(ms(40)));
    assert!((segments(&c) - 20.1).abs() < 1e-9);
    // A delayed acknowledgement counts for what it acknowledges.
    let mut c = settled(20, 41);
    c.on_ack(&at(1001, 41, 2000), &path(ms(40)));
    assert!((segments(&c) - 20.2).abs() < 1e-9);
}

#[test]
fn slow_start_doubles_until_the_rate_exceeds_the_target() {
    let mut c = copa();
    for _ in 0..10 {
        c.on_ack(&at(40, 40, 1000), &path(ms(40)));
    }
    assert_eq!(c.cwnd(), MSS * 20);
    // 20 / 44 ms = 455 is below 1 / (0.5 * 4 ms) = 500; 30 / 44 ms is above.
    for _ in 0..10 {
        c.on_ack(&at(80, 44, 1000), &path(ms(40)));
    }
    assert_eq!(c.phase(), "default");
    assert!((21.0..24.0).contains(&segments(&c)), "{}", segments(&c));
}

#[test]
fn the_velocity_doubles_after_three_rounds_in_one_direction() {
    let mut v = Velocity::new(10.0);
    let mut seen = Vec::new();
    for cwnd in 11..=17 {
        v.on_round(f64::from(cwnd), 3);
        seen.push(v.v);
    }
    assert_eq!(seen, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
    v.on_round(16.0, 3);
    assert_eq!((v.v, v.is_up), (1.0, Some(false)));
    v.on_round(16.0, 3);
    assert_eq!((v.v, v.is_up), (1.0, None));
}

#[test]
fn a_step_back_ends_a_high_velocity_at_once() {
    let mut c = settled(20, 50);
    c.velocity.is_up = Some(true);
    c.velocity.v = 8.0;
    c.on_ack(&at(1001, 50, 1000), &path(ms(40)));
    assert_eq!(c.velocity.v, 1.0);
    assert!((segments(&c) - 19.9).abs() < 1e-9);
    // In its direction it counts: 8 / (0.5 * 20).
    let mut c = settled(20, 41);
    c.velocity.is_up = Some(true);
    c.velocity.v = 8.0;
    c.on_ack(&at(1001, 41, 1000), &path(ms(40)));
    assert!((segments(&c) - 20.8).abs() < 1e-9);
    // Never more than was acknowledged: 100 / (0.5 * 20) would be ten segments.
    let mut c = settled(20, 41);
    c.velocity.is_up = Some(true);
    c.velocity.v = 100.0;
    c.on_ack(&at(1001, 41, 1000), &path(ms(40)));
    assert!((segments(&c) - 21.0).abs() < 1e-9);
    assert!(c.velocity.v <= 10.5);
}

#[test]
fn five_round_trips_without_an_empty_queue_are_competition() {
    let mut c = settled(20, 50);
    c.on_ack(&at(1200, 50, 1000), &path(ms(40)));
    assert_eq!(c.phase(), "default");
    c.on_ack(&at(1201, 50, 1000), &path(ms(40)));
    assert_eq!((c.phase(), c.inverse_delta()), ("competitive", 2.0));
    for want in [3.0, 4.0, 5.0] {
        c.on_ack(
            &Acked {
                round_start: true,
                ..at(1240, 50, 1000)
            },
            &path(ms(40)),
        );
        assert_eq!(c.inverse_delta(), want);
    }
    // Loss halves 1/delta, at least to the default; that round trip does not add.
    c.on_congestion(&congestion(Cause::Loss, MSS * 20), &path(ms(40)));
    assert_eq!(c.inverse_delta(), 2.5);
    c.on_ack(
        &Acked {
            round_start: true,
            ..at(1280, 50, 1000)
        },
        &path(ms(40)),
    );
    assert_eq!(c.inverse_delta(), 2.5);
    c.on_congestion(&congestion(Cause::Loss, MSS * 20), &path(ms(40)));
    assert_eq!(c.inverse_delta(), 2.0);
    // 0.5 ms of 10 ms: nearly empty, and default mode again.
    c.on_ack(
        &Acked {
            rtt: Some(Duration::from_micros(40_500)),
            ..at(1300, 0, 1000)
        },
        &path(ms(40)),
    );
    assert_eq!((c.phase(), c.inverse_delta()), ("default", 2.0));
}

#[test]
fn mode_switching_can_be_off() {
    let params = CopaParams {
        mode_switching: false,
        ..CopaParams::DEFAULT
    };
    let mut c = Copa::new(params, &init());
    for i in 0..100 {
        let rtt = if i == 0 { 40 } else { 50 };
        c.on_ack(&at(i * 40, rtt, 1000), &path(ms(40)));
    }
    assert_eq!((c.phase(), c.inverse_delta()), ("default", 2.0));
}

#[test]
fn default_mode_ignores_loss_but_for_slow_start() {
    let mut c = copa();
    c.on_congestion(&congestion(Cause::Loss, MSS * 10), &path(ms(40)));
    assert_eq!((c.phase(), c.cwnd()), ("default", MSS * 10));
    let mut c = settled(20, 41);
    c.on_congestion(&congestion(Cause::Loss, MSS * 20), &path(ms(40)));
    assert_eq!(c.cwnd(), MSS * 20);
    assert!(c.governs_recovery());
    let recovering = Acked {
        in_recovery: true,
        ..at(1001, 41, 1000)
    };
    c.on_ack(&recovering, &path(ms(40)));
    assert!((segments(&c) - 20.1).abs() < 1e-9);
}

#[test]
fn a_timeout_starts_over_and_a_spurious_one_is_undone() {
    let mut c = settled(20, 41);
    for consecutive in [1, 2] {
        let timeout = congestion(Cause::Timeout { consecutive }, MSS * 20);
        c.on_congestion(&timeout, &path(ms(40)));
        assert_eq!((c.cwnd(), c.phase()), (MSS, "slow-start"));
    }
    c.on_ack(&at(1001, 41, 1000), &path(ms(40)));
    assert_eq!(c.cwnd(), MSS * 2);
    let spurious = Spurious {
        now: Instant::ZERO,
        cause: Cause::Timeout { consecutive: 1 },
    };
    c.on_spurious(&spurious, &path(ms(40)));
    assert_eq!((c.cwnd(), c.phase()), (MSS * 20, "default"));
    c.on_spurious(&spurious, &path(ms(40)));
    assert_eq!(c.cwnd(), MSS * 20);
}

#[test]
fn an_unused_window_does_not_grow_but_shrinks() {
    let unused = |rtt| Acked {
        cwnd_limited: false,
        ..at(1001, rtt, 1000)
    };
    let mut c = settled(20, 41);
    c.on_ack(&unused(41), &path(ms(40)));
    assert_eq!(c.cwnd(), MSS * 20);
    let mut c = settled(20, 50);
    c.on_ack(&unused(50), &path(ms(40)));
    assert!(segments(&c) < 20.0);
}

#[test]
fn paces_at_two_windows_a_standing_round_trip() {
    let c = settled(20, 50);
    let want = 2.0 * 20_000.0 * 8.0 / 0.05;
    let got = c.pacing_rate().unwrap().as_bps() as f64;
    assert!((got - want).abs() < 10.0, "{got}");
    assert_eq!(copa().pacing_rate(), None, "before the first sample");
}

#[test]
fn an_idle_restart_if_the_transport_wants_it() {
    let mut c = settled(20, 41);
    let mut s = sent(MSS, Bytes::ZERO);
    s.idle = Some(Idle {
        duration: ms(5000),
        rto: ms(1000),
        restart_window: None,
        was_app_limited: false,
    });
    c.on_send(&s, &path(ms(40)));
    assert_eq!(c.cwnd(), MSS * 20);
    s.idle = s.idle.map(|i| Idle {
        restart_window: Some(MSS * 10),
        ..i
    });
    c.on_send(&s, &path(ms(40)));
    assert_eq!((c.cwnd(), c.phase()), (MSS * 10, "slow-start"));
}

#[test]
fn alone_the_queue_swings_between_nothing_and_five_segments() {
    // §3: between 0 and 2.5 / delta segments, every five round trips.
    let mut net = Net::new(copa());
    net.run_until(3.0);
    let rate = net.throughput(10.0);
    assert!(rate.as_bps() * 100 > RATE.as_bps() * 98, "{rate}");
    let (mut least, mut most) = (Bytes::MAX, Bytes::ZERO);
    for _ in 0..4000 {
        net.step();
        least = least.min(net.in_flight());
        most = most.max(net.in_flight());
    }
    let bdp = Net::<Copa>::bdp();
    assert!(least <= bdp + MSS, "{least}");
    assert!(most >= bdp + MSS * 3 && most <= bdp + MSS * 7, "{most}");
}

#[test]
fn a_long_fat_pipe_is_kept_full() {
    let mut net = Net::new(copa());
    net.rate = RATE.mul_f64(25.0);
    net.run_until(5.0);
    let rate = net.throughput(10.0);
    assert!(rate.as_bps() * 100 > RATE.as_bps() * 25 * 97, "{rate}");
}

#[test]
fn loss_alone_costs_nothing() {
    let mut net = Net::new(copa());
    net.buffer = MSS * 3;
    net.run_until(5.0);
    let rate = net.throughput(10.0);
    assert!(rate.as_bps() * 100 > RATE.as_bps() * 95, "{rate}");
}

#[test]
fn without_samples_and_with_tiny_windows_nothing_breaks() {
    let none = Path {
        srtt: None,
        ..path(DELAY)
    };
    let mut c = copa();
    for _ in 0..100 {
        c.on_ack(&ack(1000), &none);
    }
    assert_eq!(c.cwnd(), MSS * 110);
    let mut c = settled(2, 400);
    for i in 0..100 {
        c.on_ack(&at(1001 + i, 400, 1000), &none);
        assert!(c.cwnd() >= MSS * 2);
    }
    c.on_mss(&Path {
        mss: MSS * 5,
        ..none
    });
    assert_eq!(c.cwnd(), MSS * 5);
    c.on_ack(&at(2000, 400, u64::MAX), &none);
    assert!(c.cwnd() >= MSS && c.cwnd() <= MAX_WINDOW);
}

#[test]
fn parameters_reach_the_controller() {
    let params = Params::new()
        .with("delta", 0.1)
        .with("min_rtt_window", "5s")
        .with("mode_switching", false);
    let text = format!("{:?}", (ALGORITHM.build)(&params, init()).unwrap());
    assert!(text.contains("delta: 0.1") && text.contains("mode_switching: false"));
}

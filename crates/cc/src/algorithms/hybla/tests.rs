use super::*;
use crate::Controller;
use crate::event::Cause;
use crate::testing::{MSS, ack, congestion, init, path};
use gargalo_units::Instant;

const DEFAULT: HyblaParams = HyblaParams::DEFAULT;

const MS: fn(u64) -> Duration = Duration::from_millis;
const PLAIN: HyblaParams = HyblaParams {
    scale_initial_window: false,
    bandwidth_estimate: false,
    ..DEFAULT
};

fn hybla(params: HyblaParams) -> WindowBased<Hybla> {
    Hybla::build(params, &init())
}

fn acked(h: &mut WindowBased<Hybla>, segments: u64, p: &Path<'_>) {
    for _ in 0..segments {
        h.on_ack(&ack(MSS.get()), p);
    }
}

#[test]
fn slow_start_grows_by_two_to_the_rho_less_one() {
    for (rtt, growth) in [(25, 1), (50, 3), (75, 7), (100, 15), (5, 1)] {
        let mut h = hybla(PLAIN);
        acked(&mut h, 1, &path(MS(rtt)));
        assert_eq!(h.cwnd(), MSS * (10 + growth), "{rtt} ms");
    }
}

#[test]
fn congestion_avoidance_grows_by_rho_squared_a_round_trip() {
    for (rtt, growth) in [(25, 1.0), (50, 4.0), (100, 16.0), (10, 1.0)] {
        let mut h = hybla(PLAIN);
        h.window_mut().set_cwnd(MSS * 1000);
        h.window_mut().exit_slow_start();
        acked(&mut h, 1000, &path(MS(rtt)));
        let grown = h.window().segments() - 1000.0;
        assert!((grown / growth - 1.0).abs() < 0.02, "{grown}, not {growth}");
    }
}

#[test]
fn the_rate_does_not_depend_on_the_round_trip_time() {
    // Periodic loss: w = rho √(3/2p), so w/RTT = √(3/2p)/RTT0.
    let one_in = 5_000;
    for rtt in [25, 50, 100] {
        let p = path(MS(rtt));
        let mut h = hybla(PLAIN);
        h.window_mut().set_cwnd(MSS * 300);
        h.window_mut().exit_slow_start();
        let (mut time, mut segments) = (0.0, 0.0);
        for i in 1..=100 * one_in {
            acked(&mut h, 1, &p);
            if i % one_in == 0 {
                let e = congestion(Cause::Loss, h.cwnd());
                h.on_congestion(&e, &p);
                h.on_recovered(Instant::ZERO, &p);
            }
            if i > 50 * one_in {
                segments += 1.0;
                time += rtt as f64 / 1e3 / h.window().segments();
            }
        }
        let want = (1.5 * one_in as f64).sqrt() / 0.025;
        let got = segments / time;
        assert!((got / want - 1.0).abs() < 0.03, "{got}, not {want}");
    }
}

#[test]
fn the_initial_window_is_scaled_once() {
    let mut h = hybla(DEFAULT);
    let none = Path {
        min_rtt: None,
        srtt: None,
        latest_rtt: None,
        ..path(MS(1))
    };
    let limited = Acked {
        cwnd_limited: false,
        ..ack(MSS.get())
    };
    h.on_ack(&limited, &none);
    assert_eq!(h.cwnd(), MSS * 10);
    for _ in 0..2 {
        h.on_ack(&limited, &path(MS(100)));
        assert_eq!(h.cwnd(), MSS * 40);
    }
}

#[test]
fn rho_is_bounded_and_measured_as_told() {
    let satellite = path(MS(600));
    let mut h = hybla(PLAIN);
    acked(&mut h, 1, &satellite);
    assert_eq!(h.policy().rho, 16.0);
    assert_eq!(h.cwnd(), MSS * (10 + 65_535));
    acked(&mut h, 10_000, &satellite);
    assert!(h.cwnd() <= MAX_WINDOW);
    let queue = Path {
        srtt: Some(MS(75)),
        ..path(MS(50))
    };
    for (rho_from, rho) in [(RhoFrom::Least, 2.0), (RhoFrom::Smoothed, 3.0)] {
        let mut h = hybla(HyblaParams { rho_from, ..PLAIN });
        acked(&mut h, 1, &queue);
        assert!((h.policy().rho - rho).abs() < 1e-9);
    }
}

#[test]
fn slow_start_ends_at_the_estimate() {
    // Pairs 400 us apart: 2.5 Mbyte/s, at 100 ms 250 segments.
    for (bandwidth_estimate, want) in [(true, 250), (false, 10 + 6 * 15)] {
        let mut h = hybla(HyblaParams {
            bandwidth_estimate,
            ..PLAIN
        });
        let p = path(MS(100));
        let mut i = 0;
        while i < 6 || (bandwidth_estimate && h.ssthresh().is_none()) {
            let a = Acked {
                now: Instant::ZERO + MS(100) + Duration::from_micros(400) * i,
                sent_at: Some(Instant::ZERO),
                rtt: Some(MS(100) + Duration::from_micros(400) * i),
                ..ack(MSS.get())
            };
            h.on_ack(&a, &p);
            i += 1;
        }
        assert_eq!(h.cwnd(), MSS * want);
    }
}

#[test]
fn slow_start_without_an_estimate_is_renos() {
    let mut h = hybla(HyblaParams {
        bandwidth_estimate: true,
        ..PLAIN
    });
    acked(&mut h, 3, &path(MS(600)));
    assert_eq!(h.cwnd(), MSS * 13);
}

#[test]
fn slow_start_after_a_timeout_stops_at_ssthresh() {
    let p = path(MS(100));
    let mut h = hybla(PLAIN);
    let e = congestion(Cause::Timeout { consecutive: 1 }, MSS * 10);
    h.on_congestion(&e, &p);
    assert_eq!(h.cwnd(), MSS);
    acked(&mut h, 2, &p);
    let cwnd = h.cwnd();
    // The rest of the second acknowledgement counts for congestion avoidance: rho² = 16.
    assert!(cwnd >= MSS * 5 && cwnd < MSS * 9, "{cwnd}");
    assert_eq!(h.phase(), "congestion-avoidance");
}

#[test]
fn half_on_loss_and_mark() {
    let p = path(MS(100));
    for cause in [Cause::Loss, Cause::Ecn] {
        let mut h = hybla(PLAIN);
        h.on_congestion(&congestion(cause, MSS * 10), &p);
        assert_eq!(h.cwnd(), MSS * 5);
    }
}

//! Response functions: the average window when every (1/p)-th packet is lost, against the numbers
//! published in RFC 9438 §5.1 and RFC 3649. No transport, no network: acknowledgements in rounds.

use gargalo_cc::{Acked, Cause, Congestion, Controller, Init, Params, Path, build};
use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

const MSS: Bytes = Bytes::new(1000);
/// Loss epochs before and while measuring.
const WARM_UP: u64 = 24;
const MEASURED: u64 = 12;

fn controller(name: &str, params: &Params, window: u64) -> Box<dyn Controller> {
    let init = Init {
        now: Instant::ZERO,
        mss: MSS,
        initial_window: MSS * window,
        rng: Pcg64::new(1, 2),
    };
    build(name, params, init).expect("a registered name with valid parameters")
}

/// The average window in segments, one packet in `period` being lost, over round trips of `rtt`.
fn average_window(mut c: Box<dyn Controller>, period: u64, rtt: Duration) -> f64 {
    let path = Path {
        mss: MSS,
        srtt: Some(rtt),
        latest_rtt: Some(rtt),
        min_rtt: Some(rtt),
        in_flight: Bytes::ZERO,
        siblings: &[],
        index: 0,
        sack: true,
    };
    let mut now = Instant::ZERO;
    // Slow start would overshoot by orders of magnitude before the first of these rare losses.
    lose(&mut *c, now, &path);
    let (mut packets, mut losses) = (0, 0);
    let (mut sum, mut rounds) = (0.0, 0.0);
    while losses < WARM_UP + MEASURED {
        let window = c.cwnd().get() / MSS.get();
        // Large windows are acknowledged in 64 lumps a round trip.
        let lump = window.div_ceil(64);
        let lumps = window.div_ceil(lump);
        if losses >= WARM_UP {
            sum += c.cwnd().as_f64() / MSS.as_f64();
            rounds += 1.0;
        }
        for i in 0..lumps {
            let n = lump.min(window - i * lump);
            let ack = Acked {
                now: now + rtt * (i + 1) / lumps,
                bytes: MSS * n,
                acknowledged: MSS * n,
                ce_bytes: Bytes::ZERO,
                rtt: Some(rtt),
                sent_at: Some(now),
                in_flight_before: c.cwnd(),
                in_flight: c.cwnd() - MSS * n,
                cwnd_limited: true,
                in_recovery: false,
                round_start: i == 0,
                sample: None,
            };
            c.on_ack(&ack, &path);
            packets += n;
            if packets >= period {
                packets -= period;
                losses += 1;
                lose(&mut *c, ack.now, &path);
            }
        }
        now += rtt;
    }
    sum / rounds
}

/// One loss, recovered at once.
fn lose(c: &mut dyn Controller, now: Instant, path: &Path<'_>) {
    let event = Congestion {
        now,
        cause: Cause::Loss,
        lost: MSS,
        in_flight: c.cwnd(),
    };
    c.on_congestion(&event, path);
    c.on_recovered(now, path);
}

#[track_caller]
fn assert_near(got: f64, expected: f64, tolerance: f64, what: &str) {
    let ratio = got / expected;
    assert!(
        (ratio - 1.0).abs() <= tolerance,
        "{what}: {got:.1} segments, published {expected}, ratio {ratio:.3}"
    );
}

#[test]
fn reno_follows_the_square_root_law() {
    // RFC 9438 table 1, column Reno (RFC 3649's 1.2/sqrt(p)).
    for (period, published) in [
        (100, 12.0),
        (1_000, 38.0),
        (10_000, 120.0),
        (100_000, 379.0),
        (1_000_000, 1200.0),
    ] {
        let c = controller("reno", &Params::new(), published as u64);
        let got = average_window(c, period, Duration::from_millis(100));
        assert_near(got, published, 0.10, &format!("p = 1/{period}"));
    }
}

/// Published averages of RFC 9438 for p = 1e-2, 1e-3, ...
fn check_cubic(rtt: Duration, c: f64, published: &[f64]) {
    // One flow alone: fast convergence should be off (RFC 9438 §4.7).
    let params = Params::new().with("c", c).with("fast_convergence", false);
    let mut period = 100;
    for &expected in published {
        let controller = controller("cubic", &params, expected as u64);
        let got = average_window(controller, period, rtt);
        assert_near(
            got,
            expected,
            0.1,
            &format!("C = {c}, RTT {rtt}, p = 1/{period}"),
        );
        period *= 10;
    }
}

#[test]
fn cubic_matches_table_1_at_100_ms() {
    let rtt = Duration::from_millis(100);
    check_cubic(rtt, 0.04, &[12.0, 38.0, 120.0, 593.0, 3332.0]);
    check_cubic(rtt, 0.4, &[12.0, 38.0, 187.0, 1054.0, 5926.0]);
    check_cubic(rtt, 4.0, &[12.0, 59.0, 333.0, 1874.0, 10538.0]);
}

#[test]
fn cubic_matches_table_2_at_10_ms() {
    let rtt = Duration::from_millis(10);
    check_cubic(rtt, 0.04, &[12.0, 38.0, 120.0, 379.0, 1200.0]);
    check_cubic(rtt, 0.4, &[12.0, 38.0, 120.0, 379.0, 1200.0]);
    check_cubic(rtt, 4.0, &[12.0, 38.0, 120.0, 379.0, 1874.0]);
}

#[test]
fn two_emulated_connections_take_about_twice_as_much() {
    let rtt = Duration::from_millis(10);
    let params = Params::new().with("connections", 2.0);
    let one = average_window(controller("cubic", &Params::new(), 120), 10_000, rtt);
    let two = average_window(controller("cubic", &params, 120), 10_000, rtt);
    // AIMD(alpha, beta) of the aggregate: sqrt(alpha (1 + beta) / (2 (1 - beta) p)).
    assert!((1.6..2.4).contains(&(two / one)), "{two} / {one}");
}

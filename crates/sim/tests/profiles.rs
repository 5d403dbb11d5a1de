//! Completion times of small transfers against published figures.

mod support;

use gargalo_tcp::Config;
use gargalo_units::{Duration, Rate};
use support::*;

/// Seconds from the start of the flow to the receiver's last byte.
fn completion(config: Config, congestion: &str, rate: Rate, bytes: u64) -> f64 {
    let link = pipe(rate, Duration::from_millis(50), 100);
    let out = run(
        simple(link.clone(), link),
        settings(1, 60.0),
        vec![flow(0, 0, 1, tcp(congestion, config), bulk(bytes))],
    );
    assert_eq!(out.flows[0].delivered.get(), bytes);
    out.flows[0].completion.expect("complete").as_secs_f64()
}

fn close(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 0.05, "{got:.3} s, not {want} s");
}

#[test]
fn old_defaults_take_as_long_as_in_ns3() {
    for congestion in ["reno", "cubic"] {
        let old = Config::ns3_3_27;
        close(
            completion(old(), congestion, Rate::from_mbps(1000), 1_000_000),
            2.05,
        );
        close(
            completion(old(), congestion, Rate::from_mbps(5), 1_000_000),
            2.58,
        );
    }
}

#[test]
fn modern_defaults_take_as_long_as_computed() {
    let rate = Rate::from_mbps(10);
    close(completion(Config::modern(), "cubic", rate, 10_000), 0.16);
    close(completion(Config::modern(), "cubic", rate, 100_000), 0.46);
}

//! Prague beside CUBIC at the coupled dual queue of RFC 9332.

use crate::support::*;
use gargalo_flow::Outcome;
use gargalo_link::{DualPi2Config, LinkConfig, QueueConfig};
use gargalo_sim::Recording;
use gargalo_tcp::{Config, EcnMode};
use gargalo_units::{Duration, Rate};

/// Flows of these controls, each between hosts of its own, over one DualPI2.
fn compete(mbps: u64, rtt: Duration, controls: &[(&str, EcnMode)]) -> Outcome {
    let access = pipe(Rate::from_mbps(10 * mbps), Duration::ZERO, 100_000);
    let bottleneck = LinkConfig {
        queue: QueueConfig::DualPi2(DualPi2Config::default()),
        ..pipe(Rate::from_mbps(mbps), rtt / 2, 1)
    };
    let pairs = controls.len() as u32;
    let flows = controls.iter().enumerate().map(|(i, (name, ecn))| {
        let config = Config {
            ecn: *ecn,
            ..Config::modern()
        };
        flow(
            i as u64,
            i as u32,
            pairs + i as u32,
            tcp(name, config),
            ENDLESS,
        )
    });
    let mut settings = settings(1, 40.0);
    settings.recording = Recording {
        interval: Some(Duration::from_millis(20)),
        flows: true,
        links: true,
        events: false,
        gauges: false,
        datagrams: false,
    };
    run(
        dumbbell(pairs, access, bottleneck),
        settings,
        flows.collect(),
    )
}

/// Rate in Mbit/s and mean queueing delay in milliseconds (smoothed round-trip time above `rtt`) of a flow
/// from 10 s on.
fn settled(out: &Outcome, flow: u64, rtt: Duration) -> (f64, f64) {
    let samples: Vec<_> = out
        .samples
        .flows
        .iter()
        .filter(|s| s.flow == flow)
        .collect();
    let late: Vec<_> = samples.iter().filter(|s| s.time > secs(10.0)).collect();
    let (first, last) = (late[0], late[late.len() - 1]);
    let bytes = last.delivered.get() - first.delivered.get();
    let rate = bytes as f64 * 8e-6 / (last.time - first.time).as_secs_f64();
    let delays = late.iter().filter_map(|s| s.srtt);
    let sum: f64 = delays.map(|d| d.as_secs_f64() - rtt.as_secs_f64()).sum();
    (rate, 1e3 * sum / late.len() as f64)
}

/// What the coupling of RFC 9332 §2.1 makes of both response functions: at a base probability p' Prague has
/// 2/(2p' max(R, 25 ms)) packets a second, CUBIC in its Reno-friendly region 1.22/(p' (R + 15 ms)) (RFC 9438
/// §4.3, RFC 3649). One flow of each lets p' swing, of which CUBIC has the square: it gets less, up to a half.
fn expected(rtt: Duration) -> f64 {
    let ms = rtt.as_secs_f64() * 1e3;
    (ms + 15.0) / (1.22 * ms.max(25.0))
}

#[test]
fn prague_and_cubic_share_and_each_has_its_delay() {
    for (mbps, ms) in [(40, 10), (40, 40), (120, 20)] {
        let rtt = Duration::from_millis(ms);
        for classic in [EcnMode::Off, EcnMode::Classic] {
            let out = compete(mbps, rtt, &[("prague", EcnMode::L4s), ("cubic", classic)]);
            let (prague, low) = settled(&out, 0, rtt);
            let (cubic, high) = settled(&out, 1, rtt);
            let place = format!(
                "{mbps} Mbit/s, {ms} ms, {classic:?}: {prague:.1} and {cubic:.1} Mbit/s, {low:.2} and {high:.1} ms"
            );
            eprintln!("{place}");
            let off = prague / cubic / expected(rtt);
            assert!(
                (0.5..2.0).contains(&off),
                "{off:.2} of the expected ratio: {place}"
            );
            assert!((0.4..2.5).contains(&(prague / cubic)), "{place}");
            assert!(prague + cubic > 0.9 * mbps as f64, "{place}");
            assert!(low < 1.7, "{place}");
            assert!((8.0..20.0).contains(&high), "{place}");
            assert_eq!(out.flows[0].counters.retransmitted_packets, 0, "{place}");
        }
    }
}

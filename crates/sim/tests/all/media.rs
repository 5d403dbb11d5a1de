//! Calls and videos over networks of known delay, loss and rate.

use crate::support::*;
use gargalo_flow::TransportSpec;
use gargalo_link::LossModel;
use gargalo_tcp::Config;
use gargalo_units::{Duration, Rate};
use gargalo_workload::AppResult;
use gargalo_workload::Workload;
use gargalo_workload::video::{ByBuffer, ByThroughput, Selection, Video, VideoResult};
use gargalo_workload::voice::Voice;

fn call(delay_ms: u64, loss: f64) -> AppResult {
    let mut link = pipe(Rate::from_mbps(10), Duration::from_millis(delay_ms), 1000);
    if loss > 0.0 {
        link.loss = LossModel::Independent(loss);
    }
    let workload = Workload::Voice(Voice::default());
    let flows = vec![flow(0, 0, 1, TransportSpec::Udp, workload)];
    let out = run(simple(link.clone(), link), settings(1, 600.0), flows);
    out.flows[0].application.clone().unwrap()
}

#[test]
fn calls_are_rated_by_delay_and_loss() {
    let AppResult::Voice(good) = call(100, 0.0) else {
        panic!()
    };
    // 100 ms on the way, 20 ms of playout buffer, 20 ms in a packet: 93.2 - 0.024 * 140.
    assert!((good.rating.unwrap() - 89.83).abs() < 0.05, "{good:?}");
    assert_eq!((good.late_packets, good.loss), (0, 0.0));
    let AppResult::Voice(lossy) = call(100, 0.05) else {
        panic!()
    };
    assert!((lossy.loss - 0.05).abs() < 0.006, "{lossy:?}");
    let expected = 89.83 - 30.0 * (1.0 + 15.0 * lossy.loss).ln();
    assert!((lossy.rating.unwrap() - expected).abs() < 0.1, "{lossy:?}");
    let AppResult::Voice(far) = call(400, 0.0) else {
        panic!()
    };
    assert!(far.mos.unwrap() < 3.2, "{far:?}");
}

fn watch(mbps: f64, selection: Selection) -> VideoResult {
    let link = pipe(
        Rate::from_bps_f64(mbps * 1e6),
        Duration::from_millis(20),
        100,
    );
    let workload = Workload::Video(Video {
        selection,
        buffer: Some(Duration::from_secs(40)),
        startup: Some(Duration::from_secs(8)),
        ..Video::default()
    });
    let flows = vec![flow(0, 0, 1, tcp("cubic", Config::modern()), workload)];
    let out = run(simple(link.clone(), link), settings(1, 300.0), flows);
    match &out.flows[0].application {
        Some(AppResult::Video(v)) => v.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_player_finds_the_highest_rate_that_a_link_sustains() {
    let throughput = Selection::Throughput(ByThroughput::default());
    for (mbps, rate) in [(1.0, 750e3), (3.2, 2350e3), (8.0, 5800e3)] {
        let v = watch(mbps, throughput);
        // All but the first few segments are of that rate.
        let mean = v.mean_bitrate.as_bps() as f64;
        assert!(mean <= rate && mean > 0.95 * rate, "{mbps} Mbit/s: {v:?}");
        assert_eq!(
            (v.rebufferings, v.rebuffering),
            (0, Duration::ZERO),
            "{v:?}"
        );
        assert!(v.startup.unwrap() < Duration::from_secs(8));
    }
    let buffer = Selection::Buffer(ByBuffer {
        reservoir: Duration::from_secs(8),
        cushion: Duration::from_secs(24),
    });
    let v = watch(8.0, buffer);
    assert!(
        v.mean_bitrate.as_bps() > 5_000_000 && v.rebufferings == 0,
        "{v:?}"
    );
}

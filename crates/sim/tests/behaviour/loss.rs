//! Loss that is no sign of a full queue.

use super::*;
use gargalo_link::LossModel;

#[test]
fn answers_periodic_loss() {
    each(|name, traits| {
        let mut link = bottleneck(name, Rate::from_mbps(200), RTT * 2, 4 * BDP);
        link.loss = LossModel::Periodic(1000);
        let out = alone(name, link, 90.0, ENDLESS);
        let all: Vec<f64> = windows(&out, 30.0).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        within("mean window in segments", mean, traits.window)
    });
}

#[test]
fn delivers_everything_through_a_fifth_lost() {
    each(|name, _| {
        let mut link = bottleneck(name, Rate::from_mbps(10), RTT, 100);
        link.loss = LossModel::Independent(0.2);
        let out = alone(name, link, 3600.0, bulk(500_000));
        let delivered = out.flows[0].delivered;
        verdict(
            delivered == Bytes::new(500_000),
            format!("{delivered} of 500 kB"),
        )
    });
}

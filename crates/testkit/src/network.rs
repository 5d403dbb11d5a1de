//! Random networks: all impairments of links, in any combination.

use gargalo_link::queue::QueueLimit;
use gargalo_link::{
    CoDelConfig, Delay, GilbertElliott, Jitter, JitterDistribution, LinkConfig, LossModel,
    PieConfig, QueueConfig, RateModel, Reorder,
};
use gargalo_units::{Duration, Instant, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Draws one direction of a link: rates of 64 kbit/s to 10 Gbit/s, delays to 300 ms that may jump,
/// loss to 30%, jitter, reordering, duplication, short and long queues, AQM.
pub fn random_link(rng: &mut Pcg64) -> LinkConfig {
    let chance = |rng: &mut Pcg64, p: f64| rng.random::<f64>() < p;
    let rate = |rng: &mut Pcg64| {
        Rate::from_bps_f64(64_000.0 * libm::pow(10.0, rng.random_range(0.0..5.2)))
    };
    let delay = |rng: &mut Pcg64| Duration::from_micros(rng.random_range(0..300_000));
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    LinkConfig {
        rate: match rng.random_range(0..4) {
            0 => RateModel::Unlimited,
            1 => RateModel::Steps(vec![
                (Instant::ZERO, rate(rng)),
                (at(rng.random_range(1..1_000)), rate(rng)),
                (at(rng.random_range(1_000..5_000)), rate(rng)),
            ]),
            _ => RateModel::Constant(rate(rng)),
        },
        delay: if chance(rng, 0.3) {
            Delay::Steps(vec![
                (Instant::ZERO, delay(rng)),
                (at(rng.random_range(1..2_000)), delay(rng)),
                (at(rng.random_range(2_000..5_000)), delay(rng)),
            ])
        } else {
            Delay::Constant(delay(rng))
        },
        jitter: chance(rng, 0.3).then(|| Jitter {
            distribution: JitterDistribution::Normal,
            scale: Duration::from_micros(rng.random_range(1..30_000)),
        }),
        loss: match rng.random_range(0..5) {
            0 | 1 => LossModel::NONE,
            2 => LossModel::Independent(rng.random_range(0.0..0.3)),
            3 => LossModel::Periodic(rng.random_range(4..200)),
            _ => LossModel::GilbertElliott(GilbertElliott {
                p: rng.random_range(0.001..0.05),
                r: rng.random_range(0.1..0.9),
                h: 0.3,
                k: 1.0,
            }),
        },
        reorder: chance(rng, 0.3).then(|| Reorder {
            probability: rng.random_range(0.0..0.5),
            late: Some(Duration::from_micros(rng.random_range(1..100_000))),
            ..Reorder::new(0.0)
        }),
        duplicate: if chance(rng, 0.3) {
            rng.random_range(0.0..0.3)
        } else {
            0.0
        },
        queue: match rng.random_range(0..5) {
            0 => QueueConfig::CoDel(CoDelConfig::default()),
            1 => QueueConfig::Pie(PieConfig::default()),
            _ => QueueConfig::DropTail(QueueLimit::Packets(rng.random_range(1..300))),
        },
        ..LinkConfig::default()
    }
}

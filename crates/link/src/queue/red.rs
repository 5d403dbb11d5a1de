//! Random Early Detection.
//!
//! S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN
//! 1(4), 1993, with the gentle region of Floyd's note of 2000 and ECN as in RFC 3168 §7.

use gargalo_settings::{Error, Packets, Probability, settings};
use gargalo_units::Instant;
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, Queued};
use crate::chance::uniform;
use crate::ledger::Ledger;
use crate::stats::DropReason;

settings! {
    /// Random Early Detection (Floyd and Jacobson 1993; gentle: Floyd 2000).
    pub struct RedConfig: Copy as "Red", checked by RedConfig::consistent {
        /// Packets that may wait.
        limit: u64 as Packets = 1000, in 1..;
        /// Average queue in packets below which nothing is dropped (min_th).
        min_threshold: f64 = 5.0, in 0.0..;
        /// Average queue in packets from which the probability is `max_probability` (max_th).
        max_threshold: f64 = 15.0, in 0.0..;
        /// Drop probability at `max_threshold` (max_p).
        max_probability: f64 as Probability = 0.1;
        /// Weight of a new sample in the average (w_q).
        weight: f64 as Probability = 0.002;
        /// Grow to probability 1 between once and twice `max_threshold`.
        gentle: bool = true;
        /// Mark ECN-capable packets instead of dropping them, up to `max_threshold` (twice that if gentle).
        ecn: bool = false;
    }
}

impl RedConfig {
    fn consistent(&self) -> Result<(), Error> {
        if self.min_threshold < self.max_threshold && self.max_threshold.is_finite() {
            return Ok(());
        }
        let message = format!(
            "{} and {}: the minimum must be below the maximum",
            self.min_threshold, self.max_threshold
        );
        Err(Error::of("min_threshold", message).help("5 and 15 are usual"))
    }

    /// Probability p_b before the correction for the packets since the last drop (§4, and the gentle
    /// region).
    fn base_probability(&self, average: f64) -> f64 {
        let Self {
            min_threshold: min,
            max_threshold: max,
            max_probability: p,
            ..
        } = *self;
        if average < min {
            0.0
        } else if average < max {
            p * (average - min) / (max - min)
        } else if self.gentle && average < 2.0 * max {
            p + (1.0 - p) * (average - max) / max
        } else {
            1.0
        }
    }
}

#[derive(Debug)]
pub(crate) struct Red<P> {
    config: RedConfig,
    queue: Fifo<P>,
    average: f64,
    /// Packets since the last drop or mark; -1 right after the average rose over the minimum.
    count: i64,
    /// When the queue became empty, if it is.
    idle_since: Option<Instant>,
    /// Typical transmission time in seconds (s of the paper).
    packet_time: f64,
    rng: Pcg64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Signal congestion: mark if the packet is ECN-capable, else drop.
    Signal,
    /// Drop even if the packet is ECN-capable.
    Drop,
}

impl<P: Copy> Red<P> {
    pub(crate) fn new(config: RedConfig, context: LinkContext, rng: Pcg64) -> Self {
        Self {
            config,
            queue: Fifo::new(),
            average: 0.0,
            count: -1,
            idle_since: Some(Instant::ZERO),
            packet_time: context.packet_time.as_secs_f64(),
            rng,
        }
    }

    fn update_average(&mut self, now: Instant) {
        let w = self.config.weight;
        if let Some(since) = self.idle_since.take() {
            // As if m small packets had come to an empty queue in the idle time.
            let idle = (now - since).as_secs_f64();
            self.average *= if self.packet_time > 0.0 {
                libm::pow(1.0 - w, idle / self.packet_time)
            } else {
                0.0
            };
        }
        self.average += w * (self.queue.packets() as f64 - self.average);
    }

    fn judge(&mut self) -> Verdict {
        let base = self.config.base_probability(self.average);
        if base <= 0.0 {
            self.count = -1;
            return Verdict::Pass;
        }
        if base >= 1.0 {
            self.count = 0;
            return Verdict::Drop;
        }
        self.count += 1;
        // p_a = p_b / (1 - count p_b): gaps between drops are uniform instead of geometric.
        let rest = 1.0 - self.count as f64 * base;
        if rest <= 0.0 || uniform(&mut self.rng) < base / rest {
            self.count = 0;
            return Verdict::Signal;
        }
        Verdict::Pass
    }
}

impl<P: Copy> QueueDiscipline<P> for Red<P> {
    fn enqueue(&mut self, now: Instant, mut queued: Queued<P>, ledger: &mut Ledger<P>) {
        self.update_average(now);
        let passes = match self.judge() {
            Verdict::Pass => true,
            Verdict::Signal => self.config.ecn && ledger.mark(&mut queued.item),
            Verdict::Drop => false,
        };
        if !passes {
            ledger.drop(queued.item, DropReason::Aqm);
        } else if self.queue.packets() >= self.config.limit {
            self.count = 0;
            ledger.drop(queued.item, DropReason::QueueFull);
        } else {
            self.queue.push(queued);
        }
        if self.queue.packets() == 0 {
            self.idle_since = Some(now);
        }
    }

    fn dequeue(&mut self, now: Instant, _ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let queued = self.queue.pop();
        if self.queue.packets() == 0 {
            self.idle_since = Some(now);
        }
        queued
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }
    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use gargalo_settings::Setting;
    use gargalo_units::{Duration, Ecn};

    use super::*;
    use crate::queue::testing::{context, ledger, queued};

    #[test]
    fn the_probability_follows_the_paper() {
        let c = RedConfig::default();
        assert_eq!(c.base_probability(4.9), 0.0);
        assert_eq!(c.base_probability(10.0), 0.05);
        assert_eq!(c.base_probability(15.0), 0.1);
        assert!((c.base_probability(22.5) - 0.55).abs() < 1e-12);
        assert_eq!(c.base_probability(30.0), 1.0);
        let steep = RedConfig { gentle: false, ..c };
        assert_eq!(steep.base_probability(15.0), 1.0);
    }

    #[test]
    fn the_average_is_exponentially_weighted() {
        // Floyd and Jacobson §6, eq. 2: after a burst of L packets from empty the average is
        // L + 1 + ((1 - w)^(L+1) - 1) / w, with the packet itself counted.
        let config = RedConfig::default();
        let mut red = Red::new(config, context(), Pcg64::new(1, 1));
        let mut l = ledger();
        for i in 0..50 {
            red.enqueue(Instant::ZERO, queued(i, 1500), &mut l);
        }
        // Here samples are 0, 1, .. 49: the formula for L = 49.
        let (w, n) = (0.002f64, 49.0);
        let expected = n + ((1.0 - w).powf(n + 1.0) - (1.0 - w)) / w;
        assert!(
            (red.average - expected).abs() < 1e-9,
            "{} {expected}",
            red.average
        );
    }

    #[test]
    fn idle_time_decays_the_average() {
        let mut red = Red::<u32>::new(RedConfig::default(), context(), Pcg64::new(1, 1));
        red.average = 10.0;
        red.idle_since = Some(Instant::ZERO);
        // 100 packet times of 1 ms.
        red.update_average(Instant::ZERO + Duration::from_millis(100));
        let expected = 10.0 * 0.998f64.powi(101);
        assert!((red.average - expected).abs() < 1e-9);
    }

    #[test]
    fn gaps_between_drops_are_uniform() {
        // With constant p_b the gap is uniform (§7); counting as in the paper's algorithm (Fig. 2),
        // from 1 to 1 / p_b - 1, mean 1 / (2 p_b).
        let config = RedConfig {
            weight: 0.0,
            ..RedConfig::default()
        };
        let mut red = Red::<u32>::new(config, context(), Pcg64::new(1, 1));
        red.average = 9.0; // p_b = 0.04: gaps of 1 to 24
        let (mut gap, mut gaps) = (0u32, Vec::new());
        red.count = 0;
        for _ in 0..200_000 {
            gap += 1;
            if red.judge() == Verdict::Signal {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = gaps.iter().map(|g| f64::from(*g)).sum::<f64>() / gaps.len() as f64;
        assert!(gaps.iter().all(|g| *g <= 24));
        assert!((mean - 12.5).abs() < 0.3, "{mean}");
    }

    #[test]
    fn ecn_packets_are_marked_not_dropped() {
        let config = RedConfig {
            weight: 0.0,
            ecn: true,
            ..RedConfig::default()
        };
        let mut red = Red::new(config, context(), Pcg64::new(1, 1));
        let mut l = ledger();
        red.average = 14.0;
        for i in 0..100 {
            let mut q = queued(i, 1500);
            q.item.packet.ecn = Ecn::Ect0;
            // A weight of zero keeps the average.
            red.idle_since = None;
            red.enqueue(Instant::ZERO, q, &mut l);
        }
        assert!(l.stats.marked_packets > 5);
        assert_eq!(l.stats.dropped_packets(), 0);
    }

    #[test]
    fn thresholds_are_checked() {
        let bad = RedConfig {
            min_threshold: 20.0,
            ..RedConfig::default()
        };
        assert!(bad.check().is_err());
        assert!(RedConfig::default().check().is_ok());
    }
}

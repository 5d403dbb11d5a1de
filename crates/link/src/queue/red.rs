//! Random Early Detection.
//!
//! S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN
//! 1(4), 1993, with the gentle region of Floyd's note of 2000 and ECN as in RFC 3168 §7.
//!
//! Thresholds follow from the rate of the link unless they are given: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED:
//! An Algorithm for Increasing the Robustness of RED's Active Queue Management", 2001, §4.3. The weight of its §4.2, a
//! time constant of a second, is for its adaptation of max_p, which is not part of this discipline: without it, the
//! average follows too late.

use gargalo_settings::{Error, Packets, Probability, settings};
use gargalo_units::Instant;
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, Queued};
use crate::chance::uniform;
use crate::ledger::Ledger;
use crate::stats::DropReason;

/// Queueing delay that automatic thresholds aim for (Floyd et al. 2001 §4.3).
const TARGET_DELAY: f64 = 0.005;
/// Least automatic minimum, in packets (Floyd et al. 2001 §4.3).
const LEAST_MINIMUM: f64 = 5.0;
/// Least automatic limit, in packets.
const LEAST_LIMIT: u64 = 1000;

settings! {
    /// Random Early Detection (Floyd and Jacobson 1993; gentle: Floyd 2000; automatic values: Floyd et al. 2001).
    pub struct RedConfig: Copy as "Red", checked by RedConfig::consistent {
        /// Packets that may wait. Default: 1000, or four times the maximum threshold if that is more.
        limit: Option<Packets> = None, in Some(Packets(1))..;
        /// Average queue in packets below which nothing is dropped (min_th). Default: what waits 2.5 ms at the rate of
        /// the link, with packets of its MTU, at least 5; at most a third of `max_threshold` if that is given.
        min_threshold: Option<f64> = None, in Some(0.0)..;
        /// Average queue in packets from which the probability is `max_probability` (max_th). Default: three times the
        /// minimum threshold.
        max_threshold: Option<f64> = None, in Some(0.0)..;
        /// Drop probability at `max_threshold` (max_p).
        max_probability: f64 as Probability = 0.1;
        /// Weight of a new sample in the average, a fraction (w_q).
        weight: f64 as Probability = 0.002;
        /// Grow to probability 1 between once and twice `max_threshold`.
        gentle: bool = true;
        /// Mark ECN-capable packets instead of dropping them, up to `max_threshold` (twice that if gentle).
        ecn: bool = false;
    }
}

impl RedConfig {
    fn consistent(&self) -> Result<(), Error> {
        let (Some(min), Some(max)) = (self.min_threshold, self.max_threshold) else {
            let max = self.max_threshold.unwrap_or(1.0);
            return match max > 0.0 && max.is_finite() {
                true => Ok(()),
                false => Err(Error::of("max_threshold", format!("{max} is not possible"))
                    .help("give packets, more than 0")),
            };
        };
        if min < max && max.is_finite() {
            return Ok(());
        }
        let message = format!("{min} and {max}: the minimum must be below the maximum");
        let help = "a maximum of three times the minimum is usual";
        Err(Error::of("min_threshold", message).help(help))
    }
}

/// The parameters in force.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parameters {
    limit: u64,
    min: f64,
    max: f64,
    max_probability: f64,
    weight: f64,
    gentle: bool,
}

impl Parameters {
    /// What was given, and for the rest what follows from the time that a packet takes, in seconds; zero: the link has
    /// no rate.
    fn new(config: &RedConfig, packet_time: f64) -> Self {
        let per_second = if packet_time > 0.0 {
            1.0 / packet_time
        } else {
            0.0
        };
        let usual = (TARGET_DELAY * per_second / 2.0).max(LEAST_MINIMUM);
        let most = config.max_threshold.map_or(f64::INFINITY, |max| max / 3.0);
        let min = config.min_threshold.unwrap_or(usual.min(most));
        // A minimum of 0 needs a maximum above it.
        let above = if min > 0.0 { min } else { LEAST_MINIMUM };
        let max = config.max_threshold.unwrap_or(3.0 * above);
        // The cast saturates.
        let room = LEAST_LIMIT.max((4.0 * max) as u64);
        Self {
            limit: config.limit.map_or(room, |limit| limit.0),
            min,
            max,
            max_probability: config.max_probability,
            weight: config.weight,
            gentle: config.gentle,
        }
    }

    /// Probability p_b before the correction for the packets since the last drop (§4, and the gentle
    /// region).
    fn base_probability(&self, average: f64) -> f64 {
        let Self {
            min,
            max,
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
    parameters: Parameters,
    ecn: bool,
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
        let packet_time = context.packet_time.as_secs_f64();
        Self {
            parameters: Parameters::new(&config, packet_time),
            ecn: config.ecn,
            queue: Fifo::new(),
            average: 0.0,
            count: -1,
            idle_since: Some(Instant::ZERO),
            packet_time,
            rng,
        }
    }

    fn update_average(&mut self, now: Instant) {
        let w = self.parameters.weight;
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
        let base = self.parameters.base_probability(self.average);
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
            Verdict::Signal => self.ecn && ledger.mark(&mut queued.item),
            Verdict::Drop => false,
        };
        if !passes {
            ledger.drop(queued.item, DropReason::Aqm);
        } else if self.queue.packets() >= self.parameters.limit {
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
        // Those of the paper follow where the link has no rate.
        let c = Parameters::new(&RedConfig::default(), 0.0);
        assert_eq!((c.min, c.max, c.weight, c.limit), (5.0, 15.0, 0.002, 1000));
        assert_eq!(c.base_probability(4.9), 0.0);
        assert_eq!(c.base_probability(10.0), 0.05);
        assert_eq!(c.base_probability(15.0), 0.1);
        assert!((c.base_probability(22.5) - 0.55).abs() < 1e-12);
        assert_eq!(c.base_probability(30.0), 1.0);
        let steep = Parameters { gentle: false, ..c };
        assert_eq!(steep.base_probability(15.0), 1.0);
    }

    #[test]
    fn thresholds_follow_from_the_rate() {
        let of = |config: &RedConfig, bps: f64| Parameters::new(config, 1500.0 * 8.0 / bps);
        let auto = RedConfig::default();
        // 1 Gbit/s: 83,333 packets a second, of which 208 wait 2.5 ms.
        let fast = of(&auto, 1e9);
        assert!((fast.min - 208.333).abs() < 0.001, "{}", fast.min);
        assert!((fast.max - 625.0).abs() < 0.001, "{}", fast.max);
        assert_eq!(fast.limit, 2500);
        // 10 Mbit/s: fewer than five packets.
        let slow = of(&auto, 1e7);
        assert_eq!((slow.min, slow.max, slow.limit), (5.0, 15.0, 1000));
        let given = RedConfig {
            limit: Some(Packets(7)),
            max_threshold: Some(9.0),
            weight: 0.5,
            ..auto
        };
        let mixed = of(&given, 1e9);
        assert_eq!((mixed.limit, mixed.min, mixed.max), (7, 3.0, 9.0));
        assert_eq!(mixed.weight, 0.5);
        let minimum = RedConfig {
            min_threshold: Some(0.0),
            ..auto
        };
        assert_eq!(of(&minimum, 1e9).max, 15.0);
    }

    #[test]
    fn the_average_is_exponentially_weighted() {
        // Floyd and Jacobson §6, eq. 2: after a burst of L packets from empty the average is
        // L + 1 + ((1 - w)^(L+1) - 1) / w, with the packet itself counted.
        let config = RedConfig {
            weight: 0.002,
            ..RedConfig::default()
        };
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
        let config = RedConfig {
            weight: 0.002,
            ..RedConfig::default()
        };
        let mut red = Red::<u32>::new(config, context(), Pcg64::new(1, 1));
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
        let thresholds = |min, max| RedConfig {
            min_threshold: min,
            max_threshold: max,
            ..RedConfig::default()
        };
        for (min, max) in [(Some(20.0), Some(15.0)), (None, Some(0.0))] {
            assert!(thresholds(min, max).check().is_err(), "{min:?} {max:?}");
        }
        for (min, max) in [(Some(20.0), None), (None, Some(2.0))] {
            assert!(thresholds(min, max).check().is_ok(), "{min:?} {max:?}");
        }
        assert!(RedConfig::default().check().is_ok());
    }
}

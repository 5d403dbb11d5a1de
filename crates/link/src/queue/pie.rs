//! Proportional Integral controller Enhanced, RFC 8033.

use gargalo_settings::{Packets, Probability, names, settings};
use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, Queued};
use crate::chance::uniform;
use crate::ledger::Ledger;
use crate::stats::DropReason;

/// Bytes of one measurement of the departure rate (DQ_THRESHOLD, RFC 8033 §5.2: 16 KiB).
const DQ_THRESHOLD: u64 = 1 << 14;
/// Weight of a measurement in the average (Appendix A: DQ_THRESHOLD / 2^16).
const DQ_WEIGHT: f64 = 0.25;
/// Mean packet size: nothing is dropped from a queue of at most two packets (§4.1).
const MEAN_PACKET: u64 = 1500;

names! {
    /// How PIE estimates the queueing delay (RFC 8033 §4.3).
    pub enum PieEstimator {
        /// The queueing delay of the last departed packet.
        Timestamp = "timestamp",
        /// Bytes in the queue divided by the departure rate (§5.2).
        DepartureRate = "departure-rate",
    }
}

settings! {
    /// Proportional Integral controller Enhanced (RFC 8033).
    pub struct PieConfig: Copy as "Pie" {
        /// Reference delay (QDELAY_REF).
        target: Duration = Duration::from_millis(15);
        /// Time between two updates of the probability (T_UPDATE).
        update: Duration = Duration::from_millis(15), in Duration::from_nanos(1)..;
        /// Weight of the deviation from the target, per second.
        alpha: f64 = 0.125, in 0.0..=1e6;
        /// Weight of the trend, per second.
        beta: f64 = 1.25, in 0.0..=1e6;
        /// Duration of a burst that passes without drops (MAX_BURST).
        max_burst: Duration = Duration::from_millis(150);
        /// Packets that may wait.
        limit: u64 as Packets = 1000, in 1..;
        /// Mark ECN-capable packets instead of dropping them while the probability is below `mark_threshold`.
        ecn: bool = false;
        /// Drop even ECN-capable packets from this probability on (MARK_ECNTH, §5.1).
        mark_threshold: f64 as Probability = 0.1;
        /// How the queueing delay is estimated.
        estimator: PieEstimator = PieEstimator::Timestamp;
        /// Spread drops evenly: none before the probabilities since the last drop sum up to 0.85, one at the latest
        /// at 8.5 (§5.4).
        derandomize: bool = true;
    }
}

/// By how much the adjustment shrinks at a small drop probability (§4.2, auto-tuning).
fn scale(drop_probability: f64) -> f64 {
    match drop_probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

/// The drop probability and what it is computed from.
#[derive(Clone, Copy, Debug)]
struct Controller {
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    burst_allowance: Duration,
    delay: Duration,
    old_delay: Duration,
}

impl Controller {
    fn new(config: &PieConfig) -> Self {
        Self {
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: config.max_burst,
            delay: Duration::ZERO,
            old_delay: Duration::ZERO,
        }
    }

    fn is_calm(&self, config: &PieConfig) -> bool {
        let half = config.target / 2;
        self.probability == 0.0 && self.delay < half && self.old_delay < half
    }

    /// Whether updates change nothing until another packet is enqueued.
    fn is_settled(&self, config: &PieConfig) -> bool {
        self.probability == 0.0
            && self.delay.is_zero()
            && self.old_delay.is_zero()
            && self.burst_allowance == config.max_burst
    }

    /// One period of the controller (§4.2, with §5.5's bound and decay).
    fn update(&mut self, config: &PieConfig) {
        let (delay, old) = (self.delay.as_secs_f64(), self.old_delay.as_secs_f64());
        let error = config.alpha * (delay - config.target.as_secs_f64());
        let mut p = (error + config.beta * (delay - old)) * scale(self.probability);
        if self.probability >= 0.1 {
            p = p.min(0.02);
        }
        self.probability += p;
        // §4.2: exponential decay when there is no congestion.
        if self.delay.is_zero() && self.old_delay.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_allowance -= config.update;
        if self.is_calm(config) {
            self.burst_allowance = config.max_burst;
        }
        self.old_delay = self.delay;
    }

    /// Whether the next packet is to be dropped or marked (§4.1 and §5.4).
    fn drops(&mut self, config: &PieConfig, bytes: u64, rng: &mut Pcg64) -> bool {
        if !self.burst_allowance.is_zero() {
            return false;
        }
        let small = self.old_delay < config.target / 2 && self.probability < 0.2;
        if small || bytes <= 2 * MEAN_PACKET {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if config.derandomize {
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                self.accumulated = 0.0;
                return true;
            }
        }
        let hit = uniform(rng) < self.probability;
        if hit {
            self.accumulated = 0.0;
        }
        hit
    }
}

/// The average time that DQ_THRESHOLD bytes need to leave (§5.2).
#[derive(Clone, Copy, Debug, Default)]
struct DepartureRate {
    /// Start of the current measurement, and bytes since.
    measuring: Option<(Instant, u64)>,
    /// Seconds; zero until the first measurement ends.
    average: f64,
}

impl DepartureRate {
    fn on_dequeue(&mut self, now: Instant, bytes: u64, backlog: u64) {
        if let Some((since, count)) = &mut self.measuring {
            *count += bytes;
            if *count >= DQ_THRESHOLD {
                let elapsed = (now - *since).as_secs_f64();
                let time = elapsed * DQ_THRESHOLD as f64 / *count as f64;
                self.average = if self.average == 0.0 {
                    time
                } else {
                    self.average + DQ_WEIGHT * (time - self.average)
                };
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && backlog >= DQ_THRESHOLD {
            self.measuring = Some((now, 0));
        }
    }

    fn delay(&self, backlog: u64) -> Duration {
        Duration::from_secs_f64(backlog as f64 * self.average / DQ_THRESHOLD as f64)
    }
}

#[derive(Debug)]
pub(crate) struct Pie<P> {
    config: PieConfig,
    queue: Fifo<P>,
    controller: Controller,
    rate: DepartureRate,
    /// Queueing delay of the last departed packet.
    sojourn: Duration,
    next_update: Instant,
    rng: Pcg64,
}

impl<P: Copy> Pie<P> {
    pub(crate) fn new(config: PieConfig, _context: LinkContext, rng: Pcg64) -> Self {
        Self {
            config,
            queue: Fifo::new(),
            controller: Controller::new(&config),
            rate: DepartureRate::default(),
            sojourn: Duration::ZERO,
            next_update: Instant::ZERO + config.update,
            rng,
        }
    }

    /// Runs the updates of all periods that have ended by `now`: between two packets nothing they depend on
    /// changes, so no timer is needed.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.next_update <= now {
            self.update(now);
        }
    }

    fn update(&mut self, now: Instant) {
        self.controller.delay = match self.config.estimator {
            _ if self.queue.packets() == 0 => Duration::ZERO,
            PieEstimator::Timestamp => self.sojourn,
            PieEstimator::DepartureRate => self.rate.delay(self.queue.bytes()),
        };
        while self.next_update <= now {
            self.controller.update(&self.config);
            self.next_update += self.config.update;
            if self.controller.is_settled(&self.config) {
                // A fixed point: skip the rest of the idle time, keeping the phase.
                let periods = (now.saturating_since(self.next_update)).as_nanos()
                    / self.config.update.as_nanos();
                self.next_update += self.config.update * periods;
                if self.next_update <= now {
                    self.next_update += self.config.update;
                }
            }
        }
    }
}

impl<P: Copy> QueueDiscipline<P> for Pie<P> {
    fn enqueue(&mut self, now: Instant, mut queued: Queued<P>, ledger: &mut Ledger<P>) {
        self.advance(now);
        if self.queue.packets() >= self.config.limit {
            self.controller.accumulated = 0.0;
            return ledger.drop(queued.item, DropReason::QueueFull);
        }
        let bytes = self.queue.bytes();
        if self.controller.drops(&self.config, bytes, &mut self.rng) {
            let may_mark =
                self.config.ecn && self.controller.probability < self.config.mark_threshold;
            if !may_mark || !ledger.mark(&mut queued.item) {
                return ledger.drop(queued.item, DropReason::Aqm);
            }
        }
        self.queue.push(queued);
    }

    fn dequeue(&mut self, now: Instant, _ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.advance(now);
        let queued = self.queue.pop()?;
        self.sojourn = now - queued.enqueued;
        if self.config.estimator == PieEstimator::DepartureRate {
            self.rate
                .on_dequeue(now, queued.item.bytes(), self.queue.bytes());
        }
        Some(queued)
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
    use super::*;
    use crate::queue::testing::{context, ledger, queued};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_adjustment_scales_by_the_table() {
        // RFC 8033 §4.2.
        for (p, divisor) in [
            (0.0, 2048.0),
            (0.000_005, 512.0),
            (0.000_05, 128.0),
            (0.000_5, 32.0),
            (0.005, 8.0),
            (0.05, 2.0),
            (0.5, 1.0),
        ] {
            assert_eq!(scale(p), 1.0 / divisor, "{p}");
        }
    }

    #[test]
    fn one_update_is_the_control_equation() {
        let config = PieConfig::default();
        let mut c = Controller::new(&config);
        c.probability = 0.05;
        c.delay = MS * 35;
        c.old_delay = MS * 25;
        c.update(&config);
        // (0.125 * 0.020 + 1.25 * 0.010) / 2 = 0.0075.
        assert!((c.probability - 0.0575).abs() < 1e-9);
        assert_eq!(c.old_delay, MS * 35);
        // At high probability a step is at most 2%.
        c.probability = 0.3;
        c.delay = MS * 1000;
        c.update(&config);
        assert!((c.probability - 0.32).abs() < 1e-9);
    }

    #[test]
    fn the_probability_decays_without_a_queue() {
        let config = PieConfig::default();
        let mut c = Controller::new(&config);
        c.probability = 0.5;
        c.update(&config);
        // (0.5 - 0.125 * 0.015) * 0.98.
        assert!((c.probability - 0.488_162_5).abs() < 1e-9);
    }

    #[test]
    fn a_short_delay_is_let_alone() {
        // §4.1: below half the target and 20% nothing is dropped.
        let config = PieConfig {
            derandomize: false,
            ..PieConfig::default()
        };
        let mut c = Controller::new(&config);
        c.burst_allowance = Duration::ZERO;
        let mut rng = Pcg64::new(1, 1);
        let mut drops = |delay, probability| {
            (c.old_delay, c.probability) = (delay, probability);
            (0..1000)
                .filter(|_| c.drops(&config, 100_000, &mut rng))
                .count()
        };
        assert_eq!(drops(MS * 7, 0.19), 0);
        assert!(drops(MS * 8, 0.19) > 100);
        assert!(drops(MS * 7, 0.2) > 100);
    }

    #[test]
    fn the_burst_allowance_runs_out_and_comes_back() {
        let config = PieConfig::default();
        let mut c = Controller::new(&config);
        c.delay = MS * 100;
        for i in 1..=10 {
            let mut rng = Pcg64::new(1, 1);
            assert!(!c.drops(&config, 100_000, &mut rng));
            c.update(&config);
            assert_eq!(c.burst_allowance, MS * (150 - 15 * i));
        }
        c.probability = 0.0;
        c.delay = Duration::ZERO;
        c.update(&config);
        assert_eq!(c.burst_allowance, Duration::ZERO);
        c.update(&config);
        assert_eq!(c.burst_allowance, config.max_burst);
    }

    #[test]
    fn drops_are_spread() {
        let config = PieConfig::default();
        let mut c = Controller::new(&config);
        c.probability = 0.1;
        c.old_delay = MS * 20;
        c.burst_allowance = Duration::ZERO;
        let mut rng = Pcg64::new(1, 1);
        let (mut gap, mut gaps) = (0, Vec::new());
        for _ in 0..50_000 {
            gap += 1;
            if c.drops(&config, 100_000, &mut rng) {
                gaps.push(gap);
                gap = 0;
            }
        }
        // The sum reaches 0.85 with the 9th packet and 8.5 with the 85th (or 86th, by rounding).
        assert!(gaps.iter().all(|g| (9..=86).contains(g)));
        // Nothing is dropped with two packets in the queue.
        assert!((0..100).all(|_| !c.drops(&config, 3000, &mut rng)));
    }

    #[test]
    fn the_departure_rate_is_measured() {
        let mut r = DepartureRate::default();
        // A packet of 1500 bytes each millisecond: 16384 bytes in 10.92 ms.
        for i in 0..100 {
            r.on_dequeue(Instant::ZERO + MS * i, 1500, 50_000);
        }
        let d = r.delay(15_000).as_secs_f64();
        assert!((d - 0.010).abs() < 1e-6, "{d}");
    }

    #[test]
    fn idle_periods_are_made_up_for() {
        let config = PieConfig::default();
        let mut p = Pie::new(config, context(), Pcg64::new(1, 1));
        let mut l = ledger();
        p.controller.probability = 0.5;
        p.controller.burst_allowance = Duration::ZERO;
        let mut expected = p.controller;
        for _ in 0..4 {
            expected.update(&config);
        }
        p.enqueue(Instant::ZERO + MS * 60, queued(0, 1500), &mut l);
        assert_eq!(p.controller.probability, expected.probability);
        assert_eq!(p.next_update, Instant::ZERO + MS * 75);
        // A day without packets is skipped in one step, and the phase is kept.
        p.dequeue(Instant::ZERO + MS * 61, &mut l);
        let day = Instant::ZERO + Duration::from_secs(86_400);
        p.enqueue(day + MS * 7, queued(0, 1500), &mut l);
        assert_eq!(p.next_update, day + MS * 15);
        assert_eq!(p.controller.probability, 0.0);
    }
}

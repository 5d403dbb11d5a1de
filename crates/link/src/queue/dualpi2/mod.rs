//! DualPI2, the coupled dual-queue AQM of L4S: RFC 9332 §2 and appendix A, with the defaults of Linux
//! (tc-dualpi2(8)).
//!
//! Packets with ECT(1) or CE go to a low-latency queue (L), all others to a Classic queue (C). One proportional
//! integral controller computes a base probability p' from the larger of both queueing delays. The Classic queue
//! drops or marks with probability p'^2, the L queue marks with probability k p'. A flow whose rate is inversely
//! proportional to the square root of the probability and one whose rate is inversely proportional to the
//! probability then get about equal rates. In addition, the L queue marks packets that waited longer than a shallow
//! threshold of its own.

mod control;

use gargalo_settings::{Error, Packets, Probability, settings};
use gargalo_units::{Bytes, Duration, Ecn, Instant};
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, QueueLimit, Queued};
use crate::ledger::Ledger;
use crate::stats::DropReason;
use control::{Chooser, Controller};

settings! {
    /// The coupled dual queue of L4S (RFC 9332; defaults: tc-dualpi2(8)): packets with ECT(1) or CE in one, all
    /// others in the other.
    pub struct DualPi2Config: Copy as "DualPi2", checked by DualPi2Config::consistent {
        /// Target queueing delay.
        target: Duration = Duration::from_millis(15);
        /// Time between two updates of the base probability (RFC 9332: the target, but at most a third of the
        /// largest round-trip time).
        update: Duration = Duration::from_millis(16), in LEAST_UPDATE..;
        /// Integral gain in Hz: weight of the deviation from the target.
        alpha: f64 = 0.16, in 0.0..=1e6;
        /// Proportional gain in Hz: weight of the trend.
        beta: f64 = 3.2, in 0.0..=1e6;
        /// Factor k: the low-latency queue marks with k times the base probability, the classic queue drops or
        /// marks with its square.
        coupling: f64 = 2.0, in 0.01..=100.0;
        /// Marking threshold of the low-latency queue. A time: packets that waited longer are marked. Packets,
        /// bytes or multiples of BDP: packets that find more than this in the queue are marked.
        step_threshold: QueueLimit = QueueLimit::Time(Duration::from_millis(1));
        /// With a threshold in time: the marking probability rises from 0 at the threshold to 1 at the threshold
        /// plus this. RFC 9332 appendix A uses a ramp of 400us above a threshold of 800us.
        ramp: Duration = Duration::ZERO;
        /// The threshold applies only while more packets than this are in the low-latency queue (Th_len), the
        /// departing packet included. With 1, a single packet on a slow link is not marked.
        min_step: u64 as Packets = 0;
        /// Share of the link that the classic queue gets at least while both have packets.
        classic_protection: f64 as Probability = 0.1;
        /// Drop in both queues when the low-latency queue would mark everything; otherwise queues grow up to the
        /// limit.
        drop_on_overload: bool = true;
        /// Decide by the base probability on arrival, not on departure.
        drop_early: bool = false;
        /// ECT(0) goes to the low-latency queue too, for DCTCP.
        any_ect: bool = false;
        /// Spread marks and drops evenly, as the RFC's pseudocode does, instead of drawing them.
        derandomize: bool = false;
        /// Packets that may wait in both queues.
        limit: u64 as Packets = 10_000, in 1..;
        /// Bytes that may wait in both queues. Default: no limit.
        memory_limit: Option<Bytes> = None;
        /// Use ECN. Without it, all packets use the classic queue and are dropped instead of marked (PI2).
        ecn: bool = true;
    }
}

/// The shortest update period: it bounds the work after a long idle time.
const LEAST_UPDATE: Duration = Duration::from_micros(100);

impl DualPi2Config {
    fn consistent(&self) -> Result<(), Error> {
        let in_time = matches!(self.step_threshold, QueueLimit::Time(_));
        if self.ramp.is_zero() || in_time {
            return Ok(());
        }
        let message = "a ramp needs a step_threshold in time";
        Err(Error::of("ramp", message).help("give step_threshold a time, like 800us"))
    }
}

/// The decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

#[derive(Debug)]
pub(crate) struct DualPi2<P> {
    config: DualPi2Config,
    low: Fifo<P>,
    classic: Fifo<P>,
    controller: Controller,
    low_chooser: Chooser,
    classic_chooser: Chooser,
    /// Service deficit of the Classic queue in bytes; it is served when the deficit covers a packet.
    debt: f64,
    next_update: Instant,
    rng: Pcg64,
}

impl<P: Copy> DualPi2<P> {
    pub(crate) fn new(config: DualPi2Config, _context: LinkContext, rng: Pcg64) -> Self {
        Self {
            config,
            low: Fifo::new(),
            classic: Fifo::new(),
            controller: Controller::default(),
            low_chooser: Chooser::default(),
            classic_chooser: Chooser::default(),
            debt: 0.0,
            next_update: Instant::ZERO + config.update,
            rng,
        }
    }

    /// Whether a packet goes to the L queue (RFC 9331 §5.1: ECT(1) and CE).
    fn is_low(&self, ecn: Ecn) -> bool {
        self.config.ecn
            && match ecn {
                Ecn::Ect1 | Ecn::Ce => true,
                Ecn::Ect0 => self.config.any_ect,
                Ecn::NotEct => false,
            }
    }

    /// The queueing delay of the packet that has waited longest.
    fn delay(&self, now: Instant) -> Duration {
        let wait = |queue: &Fifo<P>| {
            let head = queue.front().map(|q| now.saturating_since(q.enqueued));
            head.unwrap_or(Duration::ZERO)
        };
        wait(&self.low).max(wait(&self.classic))
    }

    /// Runs the updates of all periods that have ended by `now`: between two packets the queues stay as they
    /// are and waits grow with time, so no timer is needed.
    #[inline]
    fn advance(&mut self, now: Instant) {
        while self.next_update <= now {
            let delay = self.delay(self.next_update);
            self.controller.update(&self.config, delay);
            self.next_update += self.config.update;
            self.skip(now);
        }
    }

    /// Skips periods whose updates would change nothing; the phase of the updates is kept.
    fn skip(&mut self, now: Instant) {
        let left = now.saturating_since(self.next_update).as_nanos();
        let periods = left / self.config.update.as_nanos();
        if periods < 2 {
            return;
        }
        let c = &self.controller;
        let empty = self.low.packets() + self.classic.packets() == 0;
        let calm = empty && c.base == 0.0 && c.old_delay.is_zero();
        let full = !empty
            && c.base == Controller::most(&self.config)
            && self.delay(self.next_update) >= c.old_delay.max(self.config.target);
        if calm || full {
            self.next_update += self.config.update * (periods - 1);
            if full {
                let before = self.next_update - self.config.update;
                self.controller.old_delay = self.delay(before);
            }
        }
    }

    /// Decides on a packet of the L queue by the base probability and by `native`, the probability of its own AQM
    /// (RFC 9332 appendix A.1, with its drops in overload).
    fn judge_low(&mut self, native: f64) -> Verdict {
        let c = &self.config;
        let coupled = self.controller.coupled(c);
        let saturated = c.drop_on_overload && coupled >= 1.0;
        let chooser = &mut self.low_chooser;
        if saturated && chooser.hits(self.controller.classic(), c.derandomize, &mut self.rng) {
            return Verdict::Drop;
        }
        let likelihood = native.max(coupled).min(1.0);
        match chooser.hits(likelihood, c.derandomize, &mut self.rng) {
            true => Verdict::Mark,
            false => Verdict::Pass,
        }
    }

    /// Decides on a packet of the Classic queue by the base probability.
    fn judge_classic(&mut self) -> Verdict {
        let c = &self.config;
        let likelihood = self.controller.classic();
        if !(self.classic_chooser).hits(likelihood, c.derandomize, &mut self.rng) {
            return Verdict::Pass;
        }
        // Above this probability the L queue would mark everything: overload.
        let most = 1.0 / (c.coupling * c.coupling);
        match c.ecn && !(c.drop_on_overload && likelihood >= most.min(1.0)) {
            true => Verdict::Mark,
            false => Verdict::Drop,
        }
    }

    /// Marks or drops according to the verdict; `None` if the packet was dropped.
    fn execute(
        verdict: Verdict,
        mut queued: Queued<P>,
        ledger: &mut Ledger<P>,
    ) -> Option<Queued<P>> {
        let stays = match verdict {
            Verdict::Pass => true,
            Verdict::Mark => ledger.mark(&mut queued.item),
            Verdict::Drop => false,
        };
        if stays {
            return Some(queued);
        }
        ledger.drop(queued.item, DropReason::Aqm);
        None
    }

    /// Marking probability of the L queue's own AQM for a packet that leaves after `wait`.
    fn native(&self, wait: Duration, packets: u64) -> f64 {
        let QueueLimit::Time(threshold) = self.config.step_threshold else {
            return 0.0;
        };
        if wait <= threshold || packets <= self.config.min_step {
            return 0.0;
        }
        let ramp = self.config.ramp.as_secs_f64();
        let beyond = (wait - threshold).as_secs_f64();
        if beyond >= ramp { 1.0 } else { beyond / ramp }
    }

    /// Whether the L queue is served next. It has priority over the Classic queue, except for the protected share
    /// (weighted round robin by bytes).
    fn serves_low(&mut self) -> bool {
        let Some(low) = self.low.front().map(|q| q.item.bytes() as f64) else {
            self.debt = 0.0;
            return false;
        };
        let Some(classic) = self.classic.front().map(|q| q.item.bytes() as f64) else {
            self.debt = 0.0;
            return true;
        };
        let share = self.config.classic_protection;
        let due = self.debt > 0.0 && self.debt >= (1.0 - share) * classic;
        if due {
            self.debt -= (1.0 - share) * classic;
        } else {
            self.debt += share * low;
        }
        !due
    }
}

impl<P: Copy> QueueDiscipline<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Instant, mut queued: Queued<P>, ledger: &mut Ledger<P>) {
        self.advance(now);
        let bytes = self.bytes() + queued.item.bytes();
        let too_much = self.config.memory_limit.is_some_and(|m| bytes > m.get());
        if self.packets() >= self.config.limit || too_much {
            return ledger.drop(queued.item, DropReason::QueueFull);
        }
        let low = self.is_low(queued.item.packet.ecn);
        if low {
            let waiting = self.low.packets();
            let beyond = match self.config.step_threshold {
                QueueLimit::Packets(n) => waiting > n,
                QueueLimit::Bytes(n) => Bytes::new(self.low.bytes()) > n,
                QueueLimit::Time(_) | QueueLimit::Bdp(_) => false,
            };
            if beyond && waiting >= self.config.min_step {
                ledger.mark(&mut queued.item);
            }
        }
        if self.config.drop_early {
            let verdict = match low {
                true => self.judge_low(0.0),
                false => self.judge_classic(),
            };
            match Self::execute(verdict, queued, ledger) {
                Some(kept) => queued = kept,
                None => return,
            }
        }
        match low {
            true => self.low.push(queued),
            false => self.classic.push(queued),
        }
    }

    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.advance(now);
        loop {
            let (queued, verdict) = if self.serves_low() {
                let packets = self.low.packets();
                let queued = self.low.pop()?;
                let native = self.native(now.saturating_since(queued.enqueued), packets);
                let verdict = match self.config.drop_early {
                    false => self.judge_low(native),
                    true if native > 0.0 => {
                        let chooser = &mut self.low_chooser;
                        match chooser.hits(native, self.config.derandomize, &mut self.rng) {
                            true => Verdict::Mark,
                            false => Verdict::Pass,
                        }
                    }
                    true => Verdict::Pass,
                };
                (queued, verdict)
            } else {
                let queued = self.classic.pop()?;
                let verdict = match self.config.drop_early {
                    false => self.judge_classic(),
                    true => Verdict::Pass,
                };
                (queued, verdict)
            };
            if let Some(queued) = Self::execute(verdict, queued, ledger) {
                return Some(queued);
            }
        }
    }

    fn packets(&self) -> u64 {
        self.low.packets() + self.classic.packets()
    }
    fn bytes(&self) -> u64 {
        self.low.bytes() + self.classic.bytes()
    }
}

#[cfg(test)]
mod tests;

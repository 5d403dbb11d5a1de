//! DualPI2, the coupled dual-queue AQM of L4S: RFC 9332 §2 and appendix A, with the defaults of Linux
//! (tc-dualpi2(8)).
//!
//! Packets with ECT(1) or CE go to a low-latency queue (L), all others to a Classic queue (C). One
//! proportional integral controller steers a base probability p' by the larger of both queueing delays.
//! The Classic queue drops or marks with its square, the L queue marks with k times it: a flow whose
//! rate falls with the root of the probability and one whose rate falls with the probability itself then
//! get about the same. Beside that, the L queue marks what waits longer than a shallow threshold of its
//! own.

use gargalo_settings::{Error, Packets, Probability, settings};
use gargalo_units::{Bytes, Duration, Ecn, Instant};
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{QueueDiscipline, QueueLimit, Queued, Surroundings};
use crate::chance::uniform;
use crate::ledger::{DropReason, Ledger};

settings! {
    /// The coupled dual queue of L4S (RFC 9332; defaults: tc-dualpi2(8)): packets with ECT(1) or CE in one, all
    /// others in the other.
    pub struct DualPi2Config: Copy as "DualPi2", checked by DualPi2Config::consistent {
        /// Queueing delay that is steered for.
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
        /// The low-latency queue marks packets that waited longer; in packets, bytes or multiples of BDP: that
        /// find more waiting in it.
        step_threshold: QueueLimit = QueueLimit::Time(Duration::from_millis(1));
        /// With a threshold in time: the probability rises from 0 there to 1 so much later. RFC 9332 appendix A
        /// has 400us from 800us on.
        ramp: Duration = Duration::ZERO;
        /// The threshold holds only while more packets than this are in the low-latency queue (Th_len), the
        /// packet that leaves included. On slow links 1 spares a packet that is alone.
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
        /// Mark at all; without, everything is in the classic queue and dropped (PI2).
        ecn: bool = true;
    }
}

/// The shortest period of updates: a longer silence must not take the simulation seconds.
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

/// The base probability p' and what it is computed from.
#[derive(Clone, Copy, Debug, Default)]
struct Controller {
    base: f64,
    old_delay: Duration,
}

impl Controller {
    /// The largest base probability: 1, or where the L queue marks everything if nothing else may
    /// follow.
    fn most(config: &DualPi2Config) -> f64 {
        match config.drop_on_overload {
            true => 1.0,
            false => (1.0 / config.coupling).min(1.0),
        }
    }

    /// One period (RFC 9332 appendix A.1).
    fn update(&mut self, config: &DualPi2Config, delay: Duration) {
        let (now, old) = (delay.as_secs_f64(), self.old_delay.as_secs_f64());
        let error = config.alpha * (now - config.target.as_secs_f64());
        let trend = config.beta * (now - old);
        self.base = (self.base + error + trend).clamp(0.0, Self::most(config));
        self.old_delay = delay;
    }

    /// p_C: what the Classic queue drops or marks.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL before it is bounded: what coupling makes the L queue mark.
    fn coupled(&self, config: &DualPi2Config) -> f64 {
        self.base * config.coupling
    }
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// Turns probabilities into decisions for one queue (`recur` of RFC 9332 appendix A.1).
#[derive(Clone, Copy, Debug, Default)]
struct Chooser {
    count: f64,
}

impl Chooser {
    fn hits(&mut self, probability: f64, derandomize: bool, rng: &mut Pcg64) -> bool {
        if !derandomize {
            return uniform(rng) < probability;
        }
        self.count += probability;
        let hit = self.count > 1.0;
        if hit {
            self.count -= 1.0;
        }
        hit
    }
}

#[derive(Debug)]
pub(crate) struct DualPi2<P> {
    config: DualPi2Config,
    low: Fifo<P>,
    classic: Fifo<P>,
    controller: Controller,
    low_chooser: Chooser,
    classic_chooser: Chooser,
    /// Bytes the L queue owes the Classic queue, which has to be served before it comes to a packet.
    debt: f64,
    next_update: Instant,
    rng: Pcg64,
}

impl<P: Copy> DualPi2<P> {
    pub(crate) fn new(config: DualPi2Config, _around: Surroundings, rng: Pcg64) -> Self {
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

    /// The wait so far of who waits longest.
    fn delay(&self, now: Instant) -> Duration {
        let wait = |queue: &Fifo<P>| {
            let head = queue.front().map(|q| now.saturating_since(q.enqueued));
            head.unwrap_or(Duration::ZERO)
        };
        wait(&self.low).max(wait(&self.classic))
    }

    /// Makes up for the periods that have ended by `now`: between two packets the queues stay as they
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

    /// Where further periods change nothing, goes to the last of them and keeps the phase.
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

    /// What the base probability makes of a packet of the L queue, whose own AQM has the probability
    /// `native` (RFC 9332 appendix A.1, with its drops in overload).
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

    /// The same for the Classic queue.
    fn judge_classic(&mut self) -> Verdict {
        let c = &self.config;
        let likelihood = self.controller.classic();
        if !(self.classic_chooser).hits(likelihood, c.derandomize, &mut self.rng) {
            return Verdict::Pass;
        }
        // From here on the L queue would mark everything: overload.
        let most = 1.0 / (c.coupling * c.coupling);
        match c.ecn && !(c.drop_on_overload && likelihood >= most.min(1.0)) {
            true => Verdict::Mark,
            false => Verdict::Drop,
        }
    }

    /// Marks or drops as the verdict says; `None` if it is gone.
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

    /// Whether the L queue is next: always before the Classic queue, except for the share that is
    /// protected (weighted round robin by bytes).
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
mod tests {
    use super::*;
    use crate::queue::testing::{around, ledger, queued};

    const MS: Duration = Duration::from_millis(1);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn queue(config: DualPi2Config) -> (DualPi2<u32>, Ledger<u32>) {
        (DualPi2::new(config, around(), Pcg64::new(1, 1)), ledger())
    }

    fn packet(n: u32, ecn: Ecn, came: Instant) -> Queued<u32> {
        let mut q = queued(n, 1500);
        q.item.packet.ecn = ecn;
        q.enqueued = came;
        q
    }

    #[test]
    fn one_update_is_the_control_equation() {
        let config = DualPi2Config::default();
        let mut c = Controller {
            base: 0.1,
            old_delay: MS * 25,
        };
        c.update(&config, MS * 35);
        // 0.16 * 0.020 + 3.2 * 0.010 = 0.0352.
        assert!((c.base - 0.1352).abs() < 1e-12);
        assert_eq!(c.old_delay, MS * 35);
        assert!((c.classic() - 0.1352 * 0.1352).abs() < 1e-12);
        assert!((c.coupled(&config) - 0.2704).abs() < 1e-12);
    }

    #[test]
    fn without_drops_in_overload_the_probability_ends_where_all_is_marked() {
        let config = DualPi2Config {
            drop_on_overload: false,
            ..DualPi2Config::default()
        };
        for (config, most) in [(config, 0.5), (DualPi2Config::default(), 1.0)] {
            let mut c = Controller::default();
            c.update(&config, Duration::from_secs(9));
            assert_eq!(c.base, most);
        }
    }

    #[test]
    fn only_ect1_and_ce_are_in_the_low_latency_queue() {
        let (q, _) = queue(DualPi2Config::default());
        let low = |q: &DualPi2<u32>| [0b00, 0b01, 0b10, 0b11].map(|b| q.is_low(Ecn::from_bits(b)));
        assert_eq!(low(&q), [false, true, false, true]);
        let any_ect = DualPi2Config {
            any_ect: true,
            ..DualPi2Config::default()
        };
        assert_eq!(low(&queue(any_ect).0), [false, true, true, true]);
        let deaf = DualPi2Config {
            ecn: false,
            ..DualPi2Config::default()
        };
        assert_eq!(low(&queue(deaf).0), [false; 4]);
    }

    #[test]
    fn the_low_latency_queue_goes_first_but_for_the_protected_share() {
        let (mut q, mut l) = queue(DualPi2Config::default());
        for n in 0..100 {
            q.enqueue(at(0), packet(n, Ecn::Ect0, at(0)), &mut l);
        }
        for n in 100..200 {
            q.enqueue(at(0), packet(n, Ecn::Ect1, at(0)), &mut l);
        }
        let order: Vec<_> = std::iter::from_fn(|| q.dequeue(at(0), &mut l))
            .map(|p| p.item.packet.payload)
            .collect();
        assert_eq!(order[..9], [100, 101, 102, 103, 104, 105, 106, 107, 108]);
        // A tenth of the first hundred while both have packets.
        let classic = order[..100].iter().filter(|n| **n < 100).count();
        assert_eq!(classic, 10);
        assert_eq!(order.len(), 200);
    }

    /// Which of ten packets that came at once and leave every 300 us are marked.
    fn marked(config: DualPi2Config, ecn: Ecn) -> Vec<u32> {
        let (mut q, mut l) = queue(config);
        for n in 0..10 {
            q.enqueue(at(0), packet(n, ecn, at(0)), &mut l);
        }
        (0..10)
            .filter(|n| {
                let p = q.dequeue(at(u64::from(*n) * 300), &mut l).unwrap();
                p.item.packet.ecn == Ecn::Ce
            })
            .collect()
    }

    #[test]
    fn the_step_marks_what_waited_too_long() {
        let config = DualPi2Config::default();
        assert_eq!(marked(config, Ecn::Ect1), [4, 5, 6, 7, 8, 9]);
        assert!(marked(config, Ecn::Ect0).is_empty());
        assert!(marked(config, Ecn::NotEct).is_empty());
        let lenient = DualPi2Config {
            min_step: 3,
            ..config
        };
        assert_eq!(marked(lenient, Ecn::Ect1), [4, 5, 6]);
        let in_packets = DualPi2Config {
            step_threshold: QueueLimit::Packets(6),
            ..config
        };
        assert_eq!(marked(in_packets, Ecn::Ect1), [7, 8, 9]);
    }

    #[test]
    fn the_ramp_rises_from_its_threshold() {
        let config = DualPi2Config {
            step_threshold: QueueLimit::Time(Duration::from_micros(800)),
            ramp: Duration::from_micros(400),
            min_step: 1,
            ..DualPi2Config::default()
        };
        let (q, _) = queue(config);
        for (us, want) in [(800, 0.0), (900, 0.25), (1100, 0.75), (1200, 1.0)] {
            let got = q.native(Duration::from_micros(us), 2);
            assert!((got - want).abs() < 1e-9, "{us} us: {got}");
        }
        assert_eq!(q.native(MS * 9, 1), 0.0, "alone in the queue");
    }

    /// Shares of packets marked and dropped at a base probability.
    fn shares(config: DualPi2Config, ecn: Ecn, base: f64) -> (f64, f64) {
        let config = DualPi2Config {
            step_threshold: QueueLimit::Time(Duration::MAX),
            ..config
        };
        let (mut q, mut l) = queue(config);
        q.controller.base = base;
        for n in 0..20_000 {
            q.enqueue(at(0), packet(n, ecn, at(0)), &mut l);
            q.dequeue(at(0), &mut l);
        }
        let share = |n: u64| n as f64 / 20_000.0;
        (
            share(l.stats.marked_packets),
            share(l.stats.dropped(DropReason::Aqm)),
        )
    }

    #[test]
    fn classic_is_squared_and_low_latency_coupled() {
        for derandomize in [false, true] {
            for drop_early in [false, true] {
                let config = DualPi2Config {
                    derandomize,
                    drop_early,
                    ..DualPi2Config::default()
                };
                for (ecn, base, marks, drops) in [
                    (Ecn::NotEct, 0.2, 0.0, 0.04),
                    (Ecn::Ect0, 0.2, 0.04, 0.0),
                    (Ecn::Ect1, 0.2, 0.4, 0.0),
                    // Overload: L is saturated from p' = 1/2 on, and both queues drop.
                    (Ecn::NotEct, 0.7, 0.0, 0.49),
                    (Ecn::Ect0, 0.7, 0.0, 0.49),
                    (Ecn::Ect1, 0.7, 0.51, 0.49),
                ] {
                    let got = shares(config, ecn, base);
                    let near = (got.0 - marks).abs() < 0.012 && (got.1 - drops).abs() < 0.012;
                    assert!(near, "{ecn:?} at {base}: {got:?}, {config:?}");
                }
            }
        }
    }

    #[test]
    fn even_marks_keep_their_distance() {
        let mut c = Chooser::default();
        let mut rng = Pcg64::new(1, 1);
        let hits: Vec<_> = (0..1000)
            .filter(|_| c.hits(0.125, true, &mut rng))
            .collect();
        assert!(hits.windows(2).all(|w| w[1] - w[0] == 8), "{hits:?}");
    }

    #[test]
    fn without_marks_it_is_pi2() {
        let config = DualPi2Config {
            ecn: false,
            ..DualPi2Config::default()
        };
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            let (marks, drops) = shares(config, ecn, 0.3);
            assert!(marks == 0.0 && (drops - 0.09).abs() < 0.012, "{ecn:?}");
        }
    }

    #[test]
    fn both_queues_share_the_limits() {
        let config = DualPi2Config {
            limit: 10,
            memory_limit: Some(Bytes::new(12_000)),
            ..DualPi2Config::default()
        };
        let (mut q, mut l) = queue(config);
        for n in 0..20 {
            let ecn = if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
            q.enqueue(at(0), packet(n, ecn, at(0)), &mut l);
        }
        assert_eq!((q.packets(), q.bytes()), (8, 12_000));
        assert_eq!(l.stats.dropped(DropReason::QueueFull), 12);
        for n in 0..9 {
            let mut small = packet(n, Ecn::NotEct, at(0));
            small.item.packet.bytes = 0;
            q.enqueue(at(0), small, &mut l);
        }
        assert_eq!(q.packets(), 10);
    }

    #[test]
    fn missed_periods_are_made_up_for() {
        let config = DualPi2Config::default();
        // Empty for four periods.
        let (mut q, mut l) = queue(config);
        q.controller.base = 0.5;
        q.advance(at(64_000));
        assert!((q.controller.base - (0.5 - 4.0 * 0.16 * 0.015)).abs() < 1e-12);
        // A packet that waits for three: the wait is that of each period's end.
        let (mut q, _) = queue(config);
        q.enqueue(at(0), packet(0, Ecn::NotEct, at(0)), &mut l);
        q.advance(at(50_000));
        let mut want = Controller::default();
        for ms in [16, 32, 48] {
            want.update(&config, MS * ms);
        }
        assert_eq!(q.controller.base, want.base);
        assert_eq!(q.next_update, at(64_000));
        // Days of silence or standstill are no loop of days, and the phase stays.
        let day = 86_400_000_000;
        q.advance(at(day + 7));
        assert_eq!((q.controller.base, q.next_update), (1.0, at(day + 16_000)));
        assert_eq!(q.controller.old_delay, Duration::from_micros(day));
        let (mut q, _) = queue(config);
        q.advance(at(day + 7));
        assert_eq!((q.controller.base, q.next_update), (0.0, at(day + 16_000)));
    }
}

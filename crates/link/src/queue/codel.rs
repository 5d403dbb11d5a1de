//! Controlled Delay, RFC 8289.

use gargalo_settings::{Packets, settings};
use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, Queued};
use crate::ledger::Ledger;
use crate::stats::DropReason;

settings! {
    /// Controlled Delay (RFC 8289).
    pub struct CoDelConfig: Copy as "CoDel" {
        /// Acceptable standing delay (TARGET, RFC 8289 §4.4).
        target: Duration = Duration::from_millis(5);
        /// A worst-case round-trip time (INTERVAL, §4.3).
        interval: Duration = Duration::from_millis(100), in Duration::from_nanos(1)..;
        /// Packets that may wait.
        limit: u64 as Packets = 1000, in 1..;
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = false;
        /// Mark every ECN-capable packet that waited longer than this. Default: none.
        ce_threshold: Option<Duration> = None;
    }
}

/// The part of the parameters that the control law needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    pub(super) ecn: bool,
    pub(super) ce_threshold: Option<Duration>,
    /// A queue with no more bytes than this is never over target (MAXPACKET).
    pub(super) max_packet: u64,
}

/// The state of one CoDel queue (§5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Controller {
    /// When the delay will have been over target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// The next time to drop: `t + interval / sqrt(count)` (§5.6, CONTROL_LAW).
fn control_law(t: Instant, interval: Duration, count: u32) -> Instant {
    t + interval.mul_f64(1.0 / libm::sqrt(f64::from(count.max(1))))
}

impl Controller {
    /// Returns the next packet that CoDel does not drop (§5.5).
    pub(super) fn dequeue<P: Copy>(
        &mut self,
        now: Instant,
        law: &Law,
        queue: &mut Fifo<P>,
        ledger: &mut Ledger<P>,
    ) -> Option<Queued<P>> {
        let mut next = self.pop(now, law, queue);
        if self.dropping {
            if !next.ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let Some(mut queued) = next.queued else { break };
                self.count = self.count.saturating_add(1);
                if law.ecn && ledger.mark(&mut queued.item) {
                    self.drop_next = control_law(self.drop_next, law.interval, self.count);
                    next.queued = Some(queued);
                    break;
                }
                ledger.drop(queued.item, DropReason::Aqm);
                next = self.pop(now, law, queue);
                if next.ok_to_drop {
                    self.drop_next = control_law(self.drop_next, law.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if next.ok_to_drop
            && let Some(mut queued) = next.queued
        {
            if law.ecn && ledger.mark(&mut queued.item) {
                next.queued = Some(queued);
            } else {
                ledger.drop(queued.item, DropReason::Aqm);
                next = self.pop(now, law, queue);
            }
            self.enter(now, law);
        }
        let mut queued = next.queued?;
        if law.ce_threshold.is_some_and(|t| now - queued.enqueued > t) {
            ledger.mark(&mut queued.item);
        }
        Some(queued)
    }

    /// Enters the dropping state. If the last dropping state ended recently, its drop rate is continued (§5.5).
    fn enter(&mut self, now: Instant, law: &Law) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let lately = now.saturating_since(self.drop_next) < law.interval * 16;
        self.count = if delta > 1 && lately { delta } else { 1 };
        self.drop_next = control_law(now, law.interval, self.count);
        self.last_count = self.count;
    }

    /// Dequeues a packet, and says whether the delay has been over target for a whole interval (§5.6).
    fn pop<P: Copy>(&mut self, now: Instant, law: &Law, queue: &mut Fifo<P>) -> Popped<P> {
        let Some(queued) = queue.pop() else {
            self.first_above = None;
            return Popped {
                queued: None,
                ok_to_drop: false,
            };
        };
        let sojourn = now - queued.enqueued;
        let mut ok_to_drop = false;
        if sojourn < law.target || queue.bytes() <= law.max_packet {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + law.interval),
                Some(t) => ok_to_drop = now >= t,
            }
        }
        Popped {
            queued: Some(queued),
            ok_to_drop,
        }
    }
}

struct Popped<P> {
    queued: Option<Queued<P>>,
    ok_to_drop: bool,
}

#[derive(Debug)]
pub(crate) struct CoDel<P> {
    law: Law,
    limit: u64,
    queue: Fifo<P>,
    controller: Controller,
}

impl<P: Copy> CoDel<P> {
    pub(crate) fn new(config: CoDelConfig, context: LinkContext, _rng: Pcg64) -> Self {
        Self {
            law: Law {
                target: config.target,
                interval: config.interval,
                ecn: config.ecn,
                ce_threshold: config.ce_threshold,
                max_packet: u64::from(context.mtu),
            },
            limit: config.limit,
            queue: Fifo::new(),
            controller: Controller::default(),
        }
    }
}

impl<P: Copy> QueueDiscipline<P> for CoDel<P> {
    fn enqueue(&mut self, _now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>) {
        if self.queue.packets() >= self.limit {
            ledger.drop(queued.item, DropReason::QueueFull);
        } else {
            self.queue.push(queued);
        }
    }

    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.controller
            .dequeue(now, &self.law, &mut self.queue, ledger)
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
    use gargalo_units::Ecn;

    use super::*;
    use crate::queue::testing::{context, ledger, queued, rng};

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// A queue of packets that all came at zero.
    fn filled(config: CoDelConfig, n: u32, ecn: Ecn) -> (CoDel<u32>, Ledger<u32>) {
        let (mut q, mut l) = (CoDel::new(config, context(), rng()), ledger());
        for i in 0..n {
            let mut packet = queued(i, 1500);
            packet.item.packet.ecn = ecn;
            q.enqueue(Instant::ZERO, packet, &mut l);
        }
        (q, l)
    }

    #[test]
    fn the_control_law_is_an_inverse_square_root() {
        let i = Duration::from_millis(100);
        assert_eq!(control_law(ms(0), i, 1), ms(100));
        assert_eq!(control_law(ms(0), i, 4), ms(50));
        assert_eq!(control_law(ms(7), i, 100), ms(17));
        // 100 ms / sqrt(2) = 70.710678 ms.
        assert_eq!(control_law(ms(0), i, 2).as_nanos(), 70_710_678);
    }

    #[test]
    fn drops_come_at_the_times_of_the_control_law() {
        let (mut q, mut l) = filled(CoDelConfig::default(), 500, Ecn::NotEct);
        let mut drops = Vec::new();
        for t in 10..460 {
            let before = l.stats.dropped_packets();
            q.dequeue(ms(t), &mut l).unwrap();
            if l.stats.dropped_packets() > before {
                drops.push(t);
            }
        }
        // Over target from 10 ms on, so the first drop is at 110; then 100, 70.7, 57.7, 50, 44.7 ms
        // later, each seen at the next whole millisecond.
        assert_eq!(drops, [110, 210, 281, 339, 389, 434]);
    }

    #[test]
    fn a_short_delay_or_a_single_packet_is_never_dropped() {
        let (mut q, mut l) = (
            CoDel::new(CoDelConfig::default(), context(), rng()),
            ledger(),
        );
        for i in 0..10_000u64 {
            // Waits 4 ms each.
            let mut packet = queued(i as u32, 1500);
            packet.enqueued = ms(i);
            q.enqueue(ms(i), packet, &mut l);
            if i >= 4 {
                q.dequeue(ms(i), &mut l);
            }
        }
        assert_eq!(l.stats.dropped_packets(), 0);
        // Far over target, but at most one MTU behind.
        let (mut q, mut l) = (
            CoDel::new(CoDelConfig::default(), context(), rng()),
            ledger(),
        );
        for i in 0..100u64 {
            let mut packet = queued(i as u32, 1500);
            packet.enqueued = ms(500 * i);
            q.enqueue(ms(500 * i), packet, &mut l);
            if i > 0 {
                q.dequeue(ms(500 * i + 400), &mut l);
            }
        }
        assert_eq!(l.stats.dropped_packets(), 0);
    }

    #[test]
    fn exactly_the_target_is_over_it() {
        // RFC 8289 §5.6: only a sojourn below TARGET ends the interval.
        let law = CoDel::<u32>::new(CoDelConfig::default(), context(), rng()).law;
        for (at, above) in [(4, None), (5, Some(ms(105)))] {
            let mut fifo = Fifo::new();
            for i in 0..3 {
                fifo.push(queued(i, 1500));
            }
            let mut c = Controller::default();
            c.pop(ms(at), &law, &mut fifo);
            assert_eq!(c.first_above, above);
        }
    }

    #[test]
    fn a_new_cycle_goes_on_where_the_last_ended() {
        let mut c = Controller {
            count: 10,
            last_count: 4,
            drop_next: ms(1000),
            ..Controller::default()
        };
        let law = CoDel::<u32>::new(CoDelConfig::default(), context(), rng()).law;
        let old = c;
        c.enter(ms(1100), &law);
        assert_eq!(c.count, 6);
        // After 16 intervals the drop rate starts from the beginning.
        c = old;
        c.enter(ms(1000 + 1600), &law);
        assert_eq!(c.count, 1);
        assert_eq!(c.drop_next, ms(2700));
    }

    #[test]
    fn ecn_marks_instead_of_dropping() {
        let config = CoDelConfig {
            ecn: true,
            ..CoDelConfig::default()
        };
        let (mut q, mut l) = filled(config, 500, Ecn::Ect0);
        for t in 10..460 {
            q.dequeue(ms(t), &mut l).unwrap();
        }
        assert_eq!(l.stats.dropped_packets(), 0);
        assert_eq!(l.stats.marked_packets, 6);
    }

    #[test]
    fn the_ce_threshold_marks_at_once() {
        let config = CoDelConfig {
            ce_threshold: Some(Duration::from_millis(1)),
            ..CoDelConfig::default()
        };
        let (mut q, mut l) = filled(config, 10, Ecn::Ect1);
        assert_eq!(q.dequeue(ms(1), &mut l).unwrap().item.packet.ecn, Ecn::Ect1);
        assert_eq!(q.dequeue(ms(2), &mut l).unwrap().item.packet.ecn, Ecn::Ce);
    }

    #[test]
    fn the_limit_holds() {
        let config = CoDelConfig {
            limit: 10,
            ..CoDelConfig::default()
        };
        let (q, l) = filled(config, 15, Ecn::NotEct);
        assert_eq!(q.packets(), 10);
        assert_eq!(l.stats.dropped(DropReason::QueueFull), 5);
    }
}

//! Step marking: tail drop that marks by the instantaneous queue length.
//!
//! The marking that DCTCP requires of a switch (RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010 §3.1): a packet that
//! finds more than K in the queue is marked, without averaging or randomness. It is RED with both thresholds at K
//! and a weight of 1. A threshold in time marks packets that waited longer, when they leave, as the L queue of RFC
//! 9332 does.

use gargalo_settings::{Packets, settings};
use gargalo_units::{Bytes, Instant};
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, QueueLimit, Queued};
use crate::ledger::Ledger;
use crate::stats::DropReason;

settings! {
    /// Tail drop that marks above a threshold, for DCTCP (RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010).
    pub struct StepConfig: Copy as "Step" {
        /// Marking threshold K. Packets, bytes or multiples of BDP, as with `droptail`: ECN-capable packets that
        /// find more than this in the queue are marked. A time: those that waited longer are marked.
        mark_above: QueueLimit = QueueLimit::Packets(20);
        /// Packets that may wait.
        limit: u64 as Packets = 1000, in 1..;
        /// Drop packets that would be marked but are not ECN-capable, as RED does.
        drop_incapable: bool = false;
        /// Mark ECN-capable packets; without it, none is marked.
        ecn: bool = true;
    }
}

#[derive(Debug)]
pub(crate) struct Step<P> {
    config: StepConfig,
    queue: Fifo<P>,
}

impl<P: Copy> Step<P> {
    pub(crate) fn new(config: StepConfig, _context: LinkContext, _rng: Pcg64) -> Self {
        Self {
            config,
            queue: Fifo::new(),
        }
    }

    /// Marks a packet above the threshold; returns whether it is kept.
    fn signal(&self, queued: &mut Queued<P>, ledger: &mut Ledger<P>) -> bool {
        let marked = self.config.ecn && ledger.mark(&mut queued.item);
        marked || !self.config.drop_incapable
    }
}

impl<P: Copy> QueueDiscipline<P> for Step<P> {
    fn enqueue(&mut self, _now: Instant, mut queued: Queued<P>, ledger: &mut Ledger<P>) {
        if self.queue.packets() >= self.config.limit {
            ledger.drop(queued.item, DropReason::QueueFull);
            return;
        }
        let beyond = match self.config.mark_above {
            QueueLimit::Packets(n) => self.queue.packets() > n,
            QueueLimit::Bytes(n) => Bytes::new(self.queue.bytes()) > n,
            QueueLimit::Time(_) | QueueLimit::Bdp(_) => false,
        };
        if beyond && !self.signal(&mut queued, ledger) {
            ledger.drop(queued.item, DropReason::Aqm);
        } else {
            self.queue.push(queued);
        }
    }

    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        loop {
            let mut queued = self.queue.pop()?;
            let beyond = match self.config.mark_above {
                QueueLimit::Time(t) => now - queued.enqueued > t,
                _ => false,
            };
            if beyond && !self.signal(&mut queued, ledger) {
                ledger.drop(queued.item, DropReason::Aqm);
                continue;
            }
            return Some(queued);
        }
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
    use gargalo_units::{Duration, Ecn};

    use super::*;
    use crate::queue::testing::{context, ledger, queued, rng};

    fn capable(n: u32, bytes: u32) -> Queued<u32> {
        let mut q = queued(n, bytes);
        q.item.packet.ecn = Ecn::Ect0;
        q
    }

    fn with(config: StepConfig) -> Step<u32> {
        Step::new(config, context(), rng())
    }

    fn step(mark_above: QueueLimit) -> Step<u32> {
        with(StepConfig {
            mark_above,
            ..StepConfig::default()
        })
    }

    /// The marked ones of twenty packets that arrive at once.
    fn marked(mut s: Step<u32>) -> Vec<u32> {
        let mut l = ledger();
        for n in 0..20 {
            s.enqueue(Instant::ZERO, capable(n, 1000), &mut l);
        }
        std::iter::from_fn(|| s.dequeue(Instant::ZERO, &mut l))
            .filter(|q| q.item.packet.ecn == Ecn::Ce)
            .map(|q| q.item.packet.payload)
            .collect()
    }

    #[test]
    fn a_packet_that_finds_more_than_k_is_marked() {
        // The seventh finds six.
        assert_eq!(
            marked(step(QueueLimit::Packets(5))),
            (6..20).collect::<Vec<_>>()
        );
        let bytes = QueueLimit::Bytes(Bytes::new(5000));
        assert_eq!(marked(step(bytes)), (6..20).collect::<Vec<_>>());
        let none = with(StepConfig {
            ecn: false,
            mark_above: QueueLimit::Packets(5),
            ..StepConfig::default()
        });
        assert!(marked(none).is_empty());
    }

    #[test]
    fn the_present_length_counts_and_nothing_before() {
        let mut s = step(QueueLimit::Packets(2));
        let mut l = ledger();
        for n in 0..10 {
            s.enqueue(Instant::ZERO, capable(n, 1000), &mut l);
        }
        assert_eq!(l.stats.marked_packets, 7);
        while s.dequeue(Instant::ZERO, &mut l).is_some() {}
        s.enqueue(Instant::ZERO, capable(10, 1000), &mut l);
        assert_eq!(l.stats.marked_packets, 7);
    }

    #[test]
    fn by_time_it_marks_what_waited_longer() {
        let mut s = step(QueueLimit::Time(Duration::from_millis(1)));
        let mut l = ledger();
        for n in 0..3 {
            s.enqueue(Instant::ZERO, capable(n, 1000), &mut l);
        }
        for (us, ce) in [(500, false), (1000, false), (1001, true)] {
            let now = Instant::ZERO + Duration::from_micros(us);
            let q = s.dequeue(now, &mut l).unwrap();
            assert_eq!(q.item.packet.ecn == Ecn::Ce, ce, "{us} us");
        }
    }

    #[test]
    fn what_cannot_be_marked_passes_or_is_dropped() {
        for drop_incapable in [false, true] {
            let mut s = with(StepConfig {
                mark_above: QueueLimit::Packets(5),
                limit: 10,
                drop_incapable,
                ..StepConfig::default()
            });
            let mut l = ledger();
            for n in 0..20 {
                s.enqueue(Instant::ZERO, queued(n, 1000), &mut l);
            }
            let (packets, reason) = if drop_incapable {
                (6, DropReason::Aqm)
            } else {
                (10, DropReason::QueueFull)
            };
            assert_eq!(s.packets(), packets);
            assert_eq!(l.stats.dropped[reason as usize], 20 - packets);
        }
    }

    #[test]
    fn dropping_by_time_goes_on_to_the_next() {
        let mut s = with(StepConfig {
            mark_above: QueueLimit::Time(Duration::from_millis(1)),
            drop_incapable: true,
            ..StepConfig::default()
        });
        let mut l = ledger();
        s.enqueue(Instant::ZERO, queued(0, 1000), &mut l);
        s.enqueue(Instant::ZERO, capable(1, 1000), &mut l);
        let later = Instant::ZERO + Duration::from_millis(2);
        assert_eq!(s.dequeue(later, &mut l).unwrap().item.packet.payload, 1);
        assert_eq!(l.stats.dropped[DropReason::Aqm as usize], 1);
        assert!(s.dequeue(later, &mut l).is_none());
    }
}

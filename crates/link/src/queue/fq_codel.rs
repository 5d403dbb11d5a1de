//! Flow queueing with CoDel, RFC 8290.

use std::collections::VecDeque;

use gargalo_settings::{Packets, settings};
use gargalo_units::{Bytes, Duration, Instant};
use rand::Rng;
use rand_pcg::Pcg64;

use super::codel::{Controller, Law};
use super::fifo::Fifo;
use super::{LinkContext, QueueDiscipline, Queued};
use crate::ledger::Ledger;
use crate::stats::DropReason;

settings! {
    /// A queue per flow with CoDel on each (RFC 8290).
    pub struct FqCoDelConfig: Copy as "FqCoDel" {
        /// Queues that flows are hashed to.
        flows: u32 = 1024, in 1..=65_536;
        /// Bytes that a queue may send per round (quantum).
        quantum: u32 as Bytes = 1514, in 1..;
        /// Packets that may wait in all queues.
        limit: u64 as Packets = 10_240, in 1..;
        /// Bytes that may wait in all queues.
        memory_limit: Bytes = Bytes::new(32 << 20);
        /// Maximum number of packets dropped at once from the longest queue.
        drop_batch: u32 as Packets = 64, in 1..;
        /// Acceptable standing delay.
        target: Duration = Duration::from_millis(5);
        /// A worst-case round-trip time.
        interval: Duration = Duration::from_millis(100), in Duration::from_nanos(1)..;
        /// Mark ECN-capable packets instead of dropping them (RFC 8290 §5.2.6).
        ecn: bool = true;
        /// Mark every ECN-capable packet that waited longer than this (§5.2.7). Default: none.
        ce_threshold: Option<Duration> = None;
    }
}

#[derive(Debug)]
struct Flow<P> {
    queue: Fifo<P>,
    controller: Controller,
    /// Bytes it may still send in this round (deficit).
    deficit: i64,
    /// Whether it is in one of the two lists.
    listed: bool,
}

#[derive(Debug)]
pub(crate) struct FqCoDel<P> {
    config: FqCoDelConfig,
    law: Law,
    perturbation: u64,
    flows: Vec<Flow<P>>,
    /// Queues that became active recently: sparse flows, served first (§4.2).
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
}

impl<P: Copy> FqCoDel<P> {
    pub(crate) fn new(config: FqCoDelConfig, context: LinkContext, mut rng: Pcg64) -> Self {
        let flow = || Flow {
            queue: Fifo::new(),
            controller: Controller::default(),
            deficit: 0,
            listed: false,
        };
        Self {
            config,
            law: Law {
                target: config.target,
                interval: config.interval,
                ecn: config.ecn,
                ce_threshold: config.ce_threshold,
                max_packet: u64::from(context.mtu),
            },
            perturbation: rng.next_u64(),
            flows: (0..config.flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// The queue of a flow: a seeded mix (the finaliser of SplitMix64), scaled to the number of queues.
    fn classify(&self, flow: u32) -> u32 {
        let mut z = u64::from(flow) ^ self.perturbation;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (((z >> 32) * u64::from(self.config.flows)) >> 32) as u32
    }

    /// Drops half of the longest queue from its head, at most one batch (§4.1).
    fn drop_from_fattest(&mut self, ledger: &mut Ledger<P>) {
        let mut fattest = 0;
        let mut most = 0;
        for (i, flow) in self.flows.iter().enumerate() {
            if flow.queue.bytes() > most {
                (fattest, most) = (i, flow.queue.bytes());
            }
        }
        let queue = &mut self.flows[fattest].queue;
        for _ in 0..self.config.drop_batch {
            if queue.bytes() * 2 <= most && queue.bytes() < most {
                break;
            }
            let Some(queued) = queue.pop() else { break };
            self.packets -= 1;
            self.bytes -= queued.item.bytes();
            ledger.drop(queued.item, DropReason::QueueFull);
        }
    }
}

impl<P: Copy> QueueDiscipline<P> for FqCoDel<P> {
    fn enqueue(&mut self, _now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>) {
        let index = self.classify(queued.item.packet.flow);
        let flow = &mut self.flows[index as usize];
        self.packets += 1;
        self.bytes += queued.item.bytes();
        flow.queue.push(queued);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.config.quantum);
            self.new.push_back(index);
        }
        while self.packets > self.config.limit || self.bytes > self.config.memory_limit.get() {
            self.drop_from_fattest(ledger);
        }
    }

    fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &self.new } else { &self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum);
                self.take(from_new);
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (flow.queue.packets(), flow.queue.bytes());
            let got = flow
                .controller
                .dequeue(now, &self.law, &mut flow.queue, ledger);
            self.packets -= packets - flow.queue.packets();
            self.bytes -= bytes - flow.queue.bytes();
            if let Some(queued) = got {
                flow.deficit -= i64::from(queued.item.packet.bytes);
                return Some(queued);
            }
            // An empty new queue goes through the old list first, so that a flow cannot stay new by
            // sending just as its queue empties (§4.2).
            if from_new && !self.old.is_empty() {
                self.take(true);
                self.old.push_back(index);
            } else {
                flow.listed = false;
                self.take(from_new);
            }
        }
    }

    fn packets(&self) -> u64 {
        self.packets
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<P> FqCoDel<P> {
    fn take(&mut self, from_new: bool) {
        if from_new {
            self.new.pop_front();
        } else {
            self.old.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{context, ledger, queued};

    fn queue(config: FqCoDelConfig) -> (FqCoDel<u32>, Ledger<u32>) {
        (FqCoDel::new(config, context(), Pcg64::new(1, 1)), ledger())
    }

    fn packet(flow: u32, bytes: u32) -> Queued<u32> {
        let mut q = queued(flow, bytes);
        q.item.packet.flow = flow;
        q
    }

    fn order(q: &mut FqCoDel<u32>, l: &mut Ledger<u32>) -> Vec<u32> {
        std::iter::from_fn(|| q.dequeue(Instant::ZERO, l))
            .map(|p| p.item.packet.flow)
            .collect()
    }

    #[test]
    fn flows_share_by_bytes() {
        let (mut q, mut l) = queue(FqCoDelConfig::default());
        for _ in 0..300 {
            q.enqueue(Instant::ZERO, packet(1, 1500), &mut l);
            for _ in 0..5 {
                q.enqueue(Instant::ZERO, packet(2, 300), &mut l);
            }
        }
        let first: Vec<_> = order(&mut q, &mut l).into_iter().take(600).collect();
        let big = first.iter().filter(|f| **f == 1).count();
        // 600 packets: x of 1500 and 600 - x of 300 bytes with equal bytes give x = 100.
        assert!((98..=102).contains(&big), "{big}");
    }

    /// A bulk flow 1 that has become old and has 928 bytes left in its turn: 7 packets of 300 bytes
    /// from two quanta of 1514.
    fn bulk() -> (FqCoDel<u32>, Ledger<u32>) {
        let (mut q, mut l) = queue(FqCoDelConfig::default());
        for _ in 0..50 {
            q.enqueue(Instant::ZERO, packet(1, 300), &mut l);
        }
        for _ in 0..7 {
            q.dequeue(Instant::ZERO, &mut l).unwrap();
        }
        let index = q.classify(1);
        assert_eq!(q.flows[index as usize].deficit, 928);
        assert_eq!(q.old, [index]);
        (q, l)
    }

    #[test]
    fn a_sparse_flow_is_served_first() {
        let (mut q, mut l) = bulk();
        q.enqueue(Instant::ZERO, packet(2, 100), &mut l);
        assert_eq!(order(&mut q, &mut l)[..2], [2, 1]);
    }

    #[test]
    fn a_flow_cannot_stay_new() {
        let (mut q, mut l) = bulk();
        q.enqueue(Instant::ZERO, packet(2, 300), &mut l);
        let mut next = |q: &mut FqCoDel<u32>| q.dequeue(Instant::ZERO, &mut l).unwrap();
        assert_eq!(next(&mut q).item.packet.flow, 2);
        // Its queue is empty: it goes behind the old flow instead of away.
        assert_eq!(next(&mut q).item.packet.flow, 1);
        q.enqueue(Instant::ZERO, packet(2, 300), &mut ledger());
        assert_eq!(next(&mut q).item.packet.flow, 1);
    }

    #[test]
    fn overflow_drops_from_the_head_of_the_fattest_queue() {
        let config = FqCoDelConfig {
            limit: 100,
            ..FqCoDelConfig::default()
        };
        let (mut q, mut l) = queue(config);
        for _ in 0..10 {
            q.enqueue(Instant::ZERO, packet(2, 100), &mut l);
        }
        for _ in 0..91 {
            q.enqueue(Instant::ZERO, packet(1, 1500), &mut l);
        }
        // The 101st packet exceeds the limit: half of the 91 packets go.
        assert_eq!(l.stats.dropped(DropReason::QueueFull), 46);
        assert_eq!(q.packets(), 55);
        assert_eq!(q.bytes(), 45 * 1500 + 1000);
        while let Some((p, _)) = l.poll_dropped() {
            assert_eq!(p.flow, 1);
        }
    }

    #[test]
    fn the_drop_batch_bounds_the_burst() {
        let config = FqCoDelConfig {
            limit: 1000,
            ..FqCoDelConfig::default()
        };
        let (mut q, mut l) = queue(config);
        for _ in 0..1001 {
            q.enqueue(Instant::ZERO, packet(1, 1500), &mut l);
        }
        assert_eq!(l.stats.dropped(DropReason::QueueFull), 64);
    }

    #[test]
    fn flows_spread_over_the_queues() {
        let (q, _) = queue(FqCoDelConfig::default());
        let mut used: Vec<_> = (0..1024).map(|f| q.classify(f)).collect();
        used.sort_unstable();
        used.dedup();
        // 1024 balls in 1024 bins fill 1 - 1/e of them: 647, deviation about 10.
        assert!((590..=700).contains(&used.len()), "{}", used.len());
    }
}

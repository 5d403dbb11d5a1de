//! Tail drop: first in, first out, bounded.

use std::collections::VecDeque;

use gargalo_units::{Bytes, Duration, Instant};

use super::fifo::Fifo;
use super::{QueueDiscipline, Queued};
use crate::ledger::{DropReason, Ledger};

/// How much may wait in a tail-drop queue. The packet in transmission does not count, and a packet that
/// need not wait always passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets.
    Packets(u64),
    /// So many bytes; a packet that would exceed it is dropped.
    Bytes(Bytes),
    /// A packet that would wait longer than this is dropped. The wait is exact for every rate model.
    Time(Duration),
}

impl Default for QueueLimit {
    /// 1000 packets.
    fn default() -> Self {
        Self::Packets(1000)
    }
}

impl QueueLimit {
    /// `factor` times the bandwidth-delay product, in bytes but at least one packet of 1500 bytes.
    pub fn bdp(rate: gargalo_units::Rate, rtt: Duration, factor: f64) -> Self {
        let bytes = (rate * rtt).mul_f64(factor);
        Self::Bytes(bytes.max(Bytes::new(1500)))
    }
}

/// Tail drop on the fast path: nothing but the begin of service and the size of each waiting packet,
/// forgotten lazily.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Forgets packets whose service has begun by `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some((start, bytes)) = self.waiting.front()
            && *start <= now
        {
            self.bytes -= u64::from(*bytes);
            self.waiting.pop_front();
        }
    }

    /// Admits a packet that will wait until `start`; whether it fits.
    #[inline]
    pub(crate) fn push(&mut self, start: Instant, wait: Duration, bytes: u32) -> bool {
        let fits = match self.limit {
            QueueLimit::Packets(n) => (self.waiting.len() as u64) < n,
            QueueLimit::Bytes(n) => self.bytes + u64::from(bytes) <= n.get(),
            QueueLimit::Time(t) => wait <= t,
        };
        if fits {
            self.waiting.push_back((start, bytes));
            self.bytes += u64::from(bytes);
        }
        fits
    }

    pub(crate) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Tail drop as a discipline like the others: the oracle of the fast path.
///
/// It cannot know a wait in advance, so a limit in time is none here.
#[derive(Debug)]
pub(crate) struct Plain<P> {
    limit: QueueLimit,
    queue: Fifo<P>,
}

impl<P: Copy> Plain<P> {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            queue: Fifo::new(),
        }
    }
}

impl<P: Copy> QueueDiscipline<P> for Plain<P> {
    fn enqueue(&mut self, _now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>) {
        let fits = match self.limit {
            QueueLimit::Packets(n) => self.queue.packets() < n,
            QueueLimit::Bytes(n) => self.queue.bytes() + queued.item.bytes() <= n.get(),
            QueueLimit::Time(_) => true,
        };
        if fits {
            self.queue.push(queued);
        } else {
            ledger.drop(queued.item, DropReason::QueueFull);
        }
    }
    fn dequeue(&mut self, _now: Instant, _ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.queue.pop()
    }
    fn packets(&self) -> u64 {
        self.queue.packets()
    }
    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }
}

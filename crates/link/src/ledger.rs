//! Accounting of the packets inside a link: counters, drops, and duplicates that share one payload.

use std::collections::VecDeque;

use gargalo_units::Ecn;

use crate::packet::Packet;
use crate::stats::{DropReason, LinkStats};

/// A packet inside the link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Item<P> {
    pub(crate) packet: Packet<P>,
    /// Slot of the copies that share this payload, plus one; 0 if there are none.
    slot: u32,
}

impl<P> Item<P> {
    #[inline]
    pub(crate) fn new(packet: Packet<P>) -> Self {
        Self { packet, slot: 0 }
    }
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.slot != 0
    }
    /// Size in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.packet.bytes)
    }
}

/// Number of copies inside the link, by slot.
#[derive(Clone, Debug, Default)]
struct SharedPayloads {
    inside: Vec<u8>,
    free: Vec<u32>,
}

impl SharedPayloads {
    fn pair(&mut self) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.inside[slot as usize] = 2;
                slot + 1
            }
            None => {
                self.inside.push(2);
                self.inside.len() as u32
            }
        }
    }

    /// Removes one of the copies; returns whether it was the last.
    fn leave(&mut self, slot: u32) -> bool {
        let slot = slot - 1;
        let n = &mut self.inside[slot as usize];
        *n -= 1;
        let last = *n == 0;
        if last {
            self.free.push(slot);
        }
        last
    }
}

/// The accounts of a link: every packet that enters or leaves is counted here.
#[derive(Clone, Debug)]
pub(crate) struct Ledger<P> {
    pub(crate) stats: LinkStats,
    copies: SharedPayloads,
    dropped: VecDeque<(Packet<P>, DropReason)>,
}

impl<P: Copy> Ledger<P> {
    pub(crate) fn new() -> Self {
        Self {
            stats: LinkStats::default(),
            copies: SharedPayloads::default(),
            dropped: VecDeque::new(),
        }
    }

    #[inline]
    pub(crate) fn offer(&mut self, packet: Packet<P>) -> Item<P> {
        self.count(packet.bytes);
        Item::new(packet)
    }

    /// Counts a packet that enters.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u32) {
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += u64::from(bytes);
    }

    /// Duplicates a packet; both copies share the payload.
    pub(crate) fn duplicate(&mut self, item: &mut Item<P>) -> Item<P> {
        self.stats.duplicated_packets += 1;
        self.stats.duplicated_bytes += item.bytes();
        item.slot = self.copies.pair();
        *item
    }

    /// Sets CE if the packet is ECN-capable; returns whether it is.
    pub(crate) fn mark(&mut self, item: &mut Item<P>) -> bool {
        if !item.packet.ecn.is_capable() {
            return false;
        }
        if item.packet.ecn != Ecn::Ce {
            item.packet.ecn = Ecn::Ce;
            self.stats.marked_packets += 1;
        }
        true
    }

    /// Records a drop. It is reported to the owner unless a copy with the same payload is still inside.
    pub(crate) fn drop(&mut self, item: Item<P>, reason: DropReason) {
        self.stats.dropped[reason as usize] += 1;
        self.stats.dropped_bytes += item.bytes();
        if self.leave(&item) {
            self.dropped.push_back((item.packet, reason));
        }
    }

    /// Records a delivery; returns whether no copy is left inside.
    #[inline]
    pub(crate) fn deliver(&mut self, item: &Item<P>) -> bool {
        self.stats.delivered_packets += 1;
        self.stats.delivered_bytes += item.bytes();
        self.leave(item)
    }

    #[inline]
    fn leave(&mut self, item: &Item<P>) -> bool {
        !item.is_shared() || self.copies.leave(item.slot)
    }

    #[inline]
    pub(crate) fn poll_dropped(&mut self) -> Option<(Packet<P>, DropReason)> {
        self.dropped.pop_front()
    }
}

//! The counters of a link.

use gargalo_units::{Duration, Instant};

use crate::histogram::DelayHistogram;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// The queue had no room.
    QueueFull,
    /// Active queue management or a policer dropped it.
    Aqm,
    /// The loss model dropped it.
    Loss,
    /// It is larger than the MTU.
    TooBig,
}

impl DropReason {
    pub(crate) const COUNT: usize = 4;

    /// Lower-case name for tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Aqm => "aqm",
            Self::Loss => "loss",
            Self::TooBig => "too-big",
        }
    }
}

/// Counters of one direction of a link since its start.
///
/// Conserved at every instant: `offered + duplicated = delivered + dropped + inside`, in packets and in
/// bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets given to [`crate::Link::send`].
    pub offered_packets: u64,
    /// Bytes of the offered packets, IP headers included.
    pub offered_bytes: u64,
    /// Copies the link made of them.
    pub duplicated_packets: u64,
    /// Bytes of the copies.
    pub duplicated_bytes: u64,
    /// Packets that came out of [`crate::Link::poll`], copies included.
    pub delivered_packets: u64,
    /// Bytes of the delivered packets.
    pub delivered_bytes: u64,
    /// Packets dropped, copies included, by [`DropReason`] (see [`Self::dropped`]).
    pub(crate) dropped: [u64; DropReason::COUNT],
    /// Bytes of all dropped packets.
    pub dropped_bytes: u64,
    /// Packets whose ECN field the queue changed to CE.
    pub marked_packets: u64,
    /// Time from entering the queue until serialisation began (or, on a trace, until the opportunity that took the
    /// first byte), for every packet that got this far; zero if it did not wait. A tail-drop queue records it on
    /// arrival, the others when the packet leaves the queue. Since the last [`crate::Link::take_queue_delays`].
    pub queue_delay: DelayHistogram,
}

impl LinkStats {
    /// Packets dropped for one reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }
    /// Packets dropped for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().sum()
    }
    /// Packets that were not dropped: they wait in the queue or have left it.
    pub(crate) fn admitted_packets(&self) -> u64 {
        self.offered_packets + self.duplicated_packets - self.dropped_packets()
    }
    /// Bytes of the packets that were not dropped.
    pub(crate) fn admitted_bytes(&self) -> u64 {
        self.offered_bytes + self.duplicated_bytes - self.dropped_bytes
    }
    /// Packets in the queue, in transmission or propagating.
    pub fn inside_packets(&self) -> u64 {
        // The counters only grow and a packet is counted in before it is counted out.
        self.offered_packets + self.duplicated_packets
            - self.delivered_packets
            - self.dropped_packets()
    }
    /// Bytes in the queue, in transmission or propagating.
    pub fn inside_bytes(&self) -> u64 {
        self.offered_bytes + self.duplicated_bytes - self.delivered_bytes - self.dropped_bytes
    }
}

/// A link at one instant: the current queue and counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSample {
    /// Packets waiting; the one in transmission is not counted.
    pub queue_packets: u64,
    /// Bytes of the waiting packets.
    pub queue_bytes: u64,
    /// Time to send all waiting packets and the rest of the packet in transmission: the queueing delay of a packet
    /// that arrived now at a FIFO queue.
    pub queue_delay: Duration,
    /// Packets whose serialisation has begun.
    pub sent_packets: u64,
    /// Bytes of the packets whose serialisation has begun.
    pub sent_bytes: u64,
    /// Packets delivered, copies included.
    pub delivered_packets: u64,
    /// Bytes of the delivered packets.
    pub delivered_bytes: u64,
    /// Packets dropped for any reason.
    pub dropped_packets: u64,
    /// Bytes of the dropped packets.
    pub dropped_bytes: u64,
    /// Packets set to CE.
    pub marked_packets: u64,
}

/// The exact amount that a link had carried at an instant ([`crate::Link::carried`]). The default is zero at the
/// start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    pub(crate) at: Instant,
    /// In units of which a byte has [`crate::server::BYTE`].
    pub(crate) work: u128,
}

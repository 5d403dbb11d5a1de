//! The sender of the connection: written data, the subflows that carry it, and retransmissions at data level.

use std::collections::{BTreeSet, VecDeque};

use gargalo_tcp::stream::SendBuffer;
use gargalo_units::Instant;

/// Slots for subflows: bits of a set of carriers.
pub(crate) const SLOTS: usize = 64;

/// A segment that was assigned to at least one subflow and is not acknowledged at data level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    pub(crate) data: u64,
    /// Its position in the stream of the latest carrier.
    pub(crate) subflow: u64,
    pub(crate) sent_at: Instant,
    /// All subflows that carry it, a bit for each slot.
    pub(crate) carriers: u64,
    pub(crate) len: u32,
    /// Slot of the latest carrier, which may have ended and its slot been reused.
    pub(crate) latest: u8,
}

impl Outstanding {
    pub(crate) fn end(&self) -> u64 {
        self.data + u64::from(self.len)
    }
}

/// The state of DATA_FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    /// More may be written.
    Open,
    /// The application has closed; data is still unsent.
    Wanted,
    /// Sent, not acknowledged.
    Sent,
    Acked,
}

/// Send buffer and data-level scoreboard.
#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) buffer: SendBuffer,
    limit: u64,
    /// First byte that is not acknowledged at data level.
    pub(crate) una: u64,
    /// First byte not yet assigned to a subflow.
    pub(crate) next: u64,
    /// End of the written data.
    pub(crate) end: u64,
    /// Right edge of the peer's window.
    pub(crate) edge: u64,
    pub(crate) fin: Fin,
    /// A write was not accepted in full.
    pub(crate) write_blocked: bool,
    /// In the order of the stream, without gaps.
    outstanding: VecDeque<Outstanding>,
    /// Outstanding bytes by the slot of the latest carrier.
    held: [u64; SLOTS],
    /// Starts of segments that must be retransmitted.
    pub(crate) again: BTreeSet<u64>,
    /// Position up to which opportunistic retransmission has proceeded.
    pub(crate) opportunistic_end: u64,
}

impl Send {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            buffer: SendBuffer::default(),
            limit,
            una: 0,
            next: 0,
            end: 0,
            edge: 0,
            fin: Fin::Open,
            write_blocked: false,
            outstanding: VecDeque::new(),
            held: [0; SLOTS],
            again: BTreeSet::new(),
            opportunistic_end: 0,
        }
    }

    pub(crate) fn write(&mut self, data: bytes::Bytes) -> usize {
        let offered = data.len();
        let taken = self.buffer.write(data, self.limit);
        self.write_blocked |= taken < offered;
        self.end += taken as u64;
        taken
    }

    pub(crate) fn write_synthetic(&mut self, n: u64) -> u64 {
        let taken = self.buffer.write_synthetic(n, self.limit);
        self.write_blocked |= taken < n;
        self.end += taken;
        taken
    }

    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.buffer.len())
    }
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.end - self.next
    }
    /// The buffer is full and more may be written: a partial segment waits for it while anything is outstanding
    /// (RFC 1122 §4.2.3.4).
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.fin == Fin::Open && self.una < self.next && self.room() == 0
    }
    /// The window from the first byte that is not acknowledged: the peer's window, or the
    /// buffer if that is smaller.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.una).min(self.limit)
    }
    /// The part of [`window`](Self::window) that new data may fill.
    #[inline]
    pub(crate) fn fillable(&self) -> u64 {
        (self.una + self.window()).saturating_sub(self.next)
    }
    /// Whether new data may be sent as segments of `mss` bytes, regardless of windows.
    #[inline]
    pub(crate) fn has_ready(&self, mss: u64) -> bool {
        let unsent = self.unsent();
        unsent > 0 && (unsent >= mss || !self.is_full())
    }
    /// The part of the peer's window that new data may fill.
    #[inline]
    pub(crate) fn window_room(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }
    /// Whether data is outstanding.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        self.una < self.next || self.fin == Fin::Sent
    }

    /// Whether there is data to send or outstanding.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.una < self.end || self.is_outstanding() || !self.again.is_empty()
    }

    /// Processes a DATA_ACK of `ack` with a window up to `edge`; returns whether anything was new.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: u64, edge: u64) -> bool {
        // DATA_FIN occupies the position after the last byte.
        let most = self.next + u64::from(self.fin == Fin::Sent || self.fin == Fin::Acked);
        if ack > most {
            return false;
        }
        self.edge = self.edge.max(edge);
        if ack > self.end && self.fin == Fin::Sent {
            self.fin = Fin::Acked;
        }
        let data = ack.min(self.end);
        if data <= self.una {
            return false;
        }
        self.una = data;
        while let Some(o) = self.outstanding.front() {
            if o.end() > data {
                break;
            }
            self.held[usize::from(o.latest)] -= u64::from(o.len);
            self.outstanding.pop_front();
        }
        self.buffer.release(data);
        if !self.again.is_empty() {
            let first = self.outstanding.front().map_or(u64::MAX, |o| o.data);
            self.again = self.again.split_off(&first);
        }
        true
    }

    /// Records new data that was sent: `len` bytes from `next` on.
    #[inline]
    pub(crate) fn on_sent(&mut self, o: Outstanding) {
        self.next = o.end();
        self.held[usize::from(o.latest)] += u64::from(o.len);
        self.outstanding.push_back(o);
    }

    fn index(&self, data: u64) -> Option<usize> {
        let i = self.outstanding.partition_point(|o| o.end() <= data);
        (i < self.outstanding.len()).then_some(i)
    }

    /// The segment that holds byte `data`, or the first one after it.
    pub(crate) fn find(&self, data: u64) -> Option<&Outstanding> {
        self.outstanding.get(self.index(data)?)
    }
    pub(crate) fn find_mut(&mut self, data: u64) -> Option<&mut Outstanding> {
        let i = self.index(data)?;
        self.outstanding.get_mut(i)
    }
    pub(crate) fn first(&self) -> Option<&Outstanding> {
        self.outstanding.front()
    }

    /// Bytes of the peer's window that were last assigned to the subflow of a slot.
    #[inline]
    pub(crate) fn held_by(&self, slot: u8) -> u64 {
        self.held[usize::from(slot)]
    }

    /// Records that one more subflow carries the segment with byte `data`; with `delivery` it becomes the latest
    /// carrier, otherwise it carries a copy.
    pub(crate) fn give(&mut self, data: u64, slot: u8, delivery: Option<(u64, Instant)>) {
        let Some(i) = self.index(data) else { return };
        let o = &mut self.outstanding[i];
        o.carriers |= 1 << slot;
        if let Some((subflow, now)) = delivery {
            self.held[usize::from(o.latest)] -= u64::from(o.len);
            self.held[usize::from(slot)] += u64::from(o.len);
            (o.latest, o.subflow, o.sent_at) = (slot, subflow, now);
        }
    }

    /// Queues the segments chosen by `which` for retransmission.
    pub(crate) fn repeat(&mut self, which: impl Fn(&Outstanding) -> bool) {
        let chosen = self.outstanding.iter().filter(|o| which(o));
        self.again.extend(chosen.map(|o| o.data));
    }

    /// Removes an ended subflow from all sets: its slot may be reused.
    pub(crate) fn forget_carrier(&mut self, slot: u8) {
        for o in &mut self.outstanding {
            o.carriers &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(s: &mut Send, len: u32) {
        let o = Outstanding {
            data: s.next,
            subflow: 0,
            sent_at: Instant::ZERO,
            carriers: 1,
            len,
            latest: 0,
        };
        s.on_sent(o);
    }

    #[test]
    fn acknowledgements_release_whole_segments_in_order() {
        let mut s = Send::new(1 << 20);
        assert_eq!(s.write_synthetic(100), 100);
        for _ in 0..4 {
            sent(&mut s, 25);
        }
        s.again.extend([0, 25, 50]);
        assert!(s.on_ack(60, 500));
        assert_eq!((s.una, s.edge, s.buffer.len()), (60, 500, 40));
        assert_eq!(s.first().map(|o| o.data), Some(50));
        assert_eq!(s.again.iter().copied().collect::<Vec<_>>(), [50]);
        assert_eq!(s.find(74).map(|o| o.data), Some(50));
        assert_eq!(s.find(75).map(|o| o.data), Some(75));
        assert!(s.find(100).is_none());
        assert!(!s.on_ack(60, 400), "the edge never moves back");
        assert_eq!(s.edge, 500);
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut s = Send::new(1 << 20);
        s.write_synthetic(100);
        sent(&mut s, 25);
        assert!(!s.on_ack(26, 9000));
        assert_eq!((s.una, s.edge), (0, 0));
        s.fin = Fin::Wanted;
        assert!(!s.on_ack(101, 9000));
        sent(&mut s, 75);
        s.fin = Fin::Sent;
        assert!(s.on_ack(100, 9000));
        assert_eq!(s.fin, Fin::Sent);
        s.on_ack(101, 9000);
        assert_eq!((s.fin, s.una), (Fin::Acked, 100));
    }

    #[test]
    fn a_cut_write_is_remembered() {
        let mut s = Send::new(10);
        assert_eq!(s.write(bytes::Bytes::from_static(b"0123456789abc")), 10);
        assert!(s.write_blocked);
        assert_eq!((s.room(), s.unsent()), (0, 10));
    }
}

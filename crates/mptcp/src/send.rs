//! The sending side of the whole connection: what was written, who carries it, what must go again.

use std::collections::{BTreeSet, VecDeque};

use gargalo_tcp::stream::SendBuffer;
use gargalo_units::Instant;

/// Slots for subflows: bits of a set of carriers.
pub(crate) const SLOTS: usize = 64;

/// A segment that was given to at least one subflow and is not acknowledged at data level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    pub(crate) data: u64,
    /// Where the latest carrier has it.
    pub(crate) subflow: u64,
    pub(crate) sent_at: Instant,
    /// All subflows that carry it, a bit for each slot.
    pub(crate) carriers: u64,
    pub(crate) len: u32,
    /// Slot of the latest carrier, which may have ended and another have taken its slot.
    pub(crate) latest: u8,
}

impl Outstanding {
    pub(crate) fn end(&self) -> u64 {
        self.data + u64::from(self.len)
    }
}

/// How far DATA_FIN has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    /// More may be written.
    Open,
    /// The application has closed; data waits.
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
    /// First byte never given to a subflow.
    pub(crate) next: u64,
    /// End of what was written.
    pub(crate) end: u64,
    /// Right edge of the peer's window.
    pub(crate) edge: u64,
    pub(crate) fin: Fin,
    /// A write was cut short.
    pub(crate) write_blocked: bool,
    /// In the order of the stream, without gaps.
    outstanding: VecDeque<Outstanding>,
    /// Bytes of it by the slot of the latest carrier.
    held: [u64; SLOTS],
    /// Starts of segments that must go again.
    pub(crate) again: BTreeSet<u64>,
    /// Where opportunistic retransmission has come to.
    pub(crate) rescued: u64,
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
            rescued: 0,
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
    /// The buffer takes no more, though more may be written: part of a segment waits for it while
    /// anything is outstanding (RFC 1122 §4.2.3.4).
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.fin == Fin::Open && self.una < self.next && self.room() == 0
    }
    /// How far the stream may go beyond the first byte that is not acknowledged: the peer's window, or the
    /// buffer if that is smaller.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.una).min(self.limit)
    }
    /// What of [`window`](Self::window) new data may fill.
    #[inline]
    pub(crate) fn fillable(&self) -> u64 {
        (self.una + self.window()).saturating_sub(self.next)
    }
    /// Something new may be sent as segments of `mss` bytes, windows apart.
    #[inline]
    pub(crate) fn has_ready(&self, mss: u64) -> bool {
        let unsent = self.unsent();
        unsent > 0 && (unsent >= mss || !self.is_full())
    }
    /// What of the peer's window new data may fill.
    #[inline]
    pub(crate) fn window_room(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }
    /// Something waits for its acknowledgement.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        self.una < self.next || self.fin == Fin::Sent
    }

    /// There is something to send, or something waits for its acknowledgement.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.una < self.end || self.is_outstanding() || !self.again.is_empty()
    }

    /// The peer has everything before `ack` and grants up to `edge`. Whether anything was new.
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

    /// New data left: `len` bytes from `next` on.
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

    /// Bytes of the peer's window that the subflow of a slot was the latest to be given.
    #[inline]
    pub(crate) fn held_by(&self, slot: u8) -> u64 {
        self.held[usize::from(slot)]
    }

    /// The segment that holds byte `data` is carried by one more subflow, which has it at `subflow`; from now
    /// on it is the one to deliver it, unless what it has is a copy only.
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

    /// Segments that `which` chooses must go again.
    pub(crate) fn repeat(&mut self, which: impl Fn(&Outstanding) -> bool) {
        let chosen = self.outstanding.iter().filter(|o| which(o));
        self.again.extend(chosen.map(|o| o.data));
    }

    /// A subflow is gone: its slot may be given to another.
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

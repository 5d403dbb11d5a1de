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
    use rand::RngExt;
    use rand_pcg::Pcg64;

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

    #[test]
    fn whatever_is_carried_and_acknowledged_each_byte_is_held_by_its_latest_carrier() {
        for seed in 0..100 {
            let mut rng = Pcg64::new(seed, 1);
            let mut s = Send::new(3000);
            // Starts, ends, carriers, latest and whether it is sent again; in order.
            let mut model: Vec<(u64, u64, u64, u8, bool)> = Vec::new();
            let (mut una, mut next, mut end) = (0, 0, 0);
            for step in 0..150u64 {
                let now = Instant::from_nanos(step);
                match rng.random_range(0..6) {
                    0 => {
                        let offered = rng.random_range(1..2000);
                        let room = 3000 - (end - una);
                        assert_eq!(s.room(), room);
                        assert_eq!(s.write_synthetic(offered), offered.min(room));
                        end += offered.min(room);
                    }
                    1 | 2 => {
                        let len = rng.random_range(1..500).min(end - next);
                        let slot = rng.random_range(0..3);
                        if len > 0 {
                            s.on_sent(Outstanding {
                                data: next,
                                subflow: 7,
                                sent_at: now,
                                carriers: 1 << slot,
                                len: len as u32,
                                latest: slot,
                            });
                            model.push((next, next + len, 1 << slot, slot, false));
                            next += len;
                        }
                    }
                    3 => {
                        let ack = rng.random_range(una..=next);
                        assert_eq!(s.on_ack(ack, 0), ack > una);
                        una = ack;
                        model.retain(|m| m.1 > una);
                    }
                    4 => {
                        let (at, slot) = (rng.random_range(una..=next), rng.random_range(0..3));
                        let copy = rng.random_bool(0.5);
                        s.give(at, slot, (!copy).then_some((9, now)));
                        if let Some(m) = model.iter_mut().find(|m| m.1 > at) {
                            m.2 |= 1 << slot;
                            m.3 = if copy { m.3 } else { slot };
                            let o = s.find(at).unwrap();
                            assert!(copy || (o.subflow, o.sent_at) == (9, now));
                        }
                    }
                    _ => {
                        let slot = rng.random_range(0..3);
                        if rng.random_bool(0.3) {
                            s.forget_carrier(slot);
                            model.iter_mut().for_each(|m| m.2 &= !(1 << slot));
                        } else {
                            s.repeat(|o| o.latest == slot);
                            model.iter_mut().for_each(|m| m.4 |= m.3 == slot);
                        }
                    }
                }
                let all = s.outstanding.iter();
                let all: Vec<_> = all
                    .map(|o| (o.data, o.end(), o.carriers, o.latest))
                    .collect();
                let expected = model.iter().map(|m| (m.0, m.1, m.2, m.3));
                assert_eq!(all, expected.collect::<Vec<_>>());
                let again = model.iter().filter(|m| m.4).map(|m| m.0);
                assert!(s.again.iter().copied().eq(again));
                for slot in 0..3 {
                    let held = model.iter().filter(|m| m.3 == slot).map(|m| m.1 - m.0);
                    assert_eq!(s.held_by(slot), held.sum::<u64>());
                }
                assert_eq!((s.una, s.unsent()), (una, end - next));
                assert_eq!(s.is_outstanding(), una < next);
                assert_eq!(s.is_busy(), una < end);
            }
        }
    }

    #[test]
    fn new_data_fills_the_smaller_of_the_peers_window_and_the_buffer() {
        let mut s = Send::new(1000);
        s.write_synthetic(1000);
        // Nothing is acknowledged yet: (edge of the peer, window, what new data may fill, what the peer allows).
        for (edge, more, window, fillable, room) in [
            (300, 0, 300, 300, 300),
            (300, 100, 300, 200, 200),
            (300, 200, 300, 0, 0),
            (5000, 0, 1000, 700, 4700),
            (5000, 700, 1000, 0, 4000),
        ] {
            s.on_ack(0, edge);
            if more > 0 {
                sent(&mut s, more);
            }
            assert_eq!((s.window(), s.fillable()), (window, fillable));
            assert_eq!(s.window_room(), room);
        }
        assert!(s.on_ack(400, 0));
        assert_eq!((s.window(), s.fillable()), (1000, 400));
    }

    #[test]
    fn a_partial_segment_waits_only_while_a_full_buffer_has_something_outstanding() {
        let mut s = Send::new(250);
        assert!(!s.has_ready(100), "nothing is written");
        s.write_synthetic(250);
        assert!(!s.is_full() && s.has_ready(300), "nothing is outstanding");
        sent(&mut s, 200);
        assert!(s.is_full() && s.has_ready(50) && !s.has_ready(51));
        // No more will follow, or there is room for it, or all was acknowledged.
        s.fin = Fin::Wanted;
        assert!(!s.is_full() && s.has_ready(51));
        s.fin = Fin::Open;
        s.on_ack(100, 0);
        assert!(!s.is_full());
        s.on_ack(200, 0);
        assert!(!s.is_full() && s.has_ready(51));
    }

    #[test]
    fn data_fin_and_repetitions_keep_a_sender_busy() {
        let mut s = Send::new(100);
        assert!(!s.is_busy() && !s.is_outstanding());
        s.fin = Fin::Sent;
        assert!(s.is_busy() && s.is_outstanding());
        assert!(!s.on_ack(1, 10), "no data was acknowledged");
        assert_eq!(s.fin, Fin::Acked);
        assert!(!s.is_busy() && !s.is_outstanding());
        // Position 1 stays acknowledged, and nothing lies beyond it.
        assert!(!s.on_ack(1, 20) && !s.on_ack(2, 30));
        assert_eq!(s.edge, 20);
        s.again.insert(0);
        assert!(s.is_busy() && !s.is_outstanding());
    }

    #[test]
    fn a_write_that_is_taken_in_full_is_not_blocked() {
        let mut s = Send::new(10);
        assert_eq!(s.write(bytes::Bytes::from_static(b"01234")), 5);
        assert_eq!((s.write_synthetic(5), s.write_blocked), (5, false));
        assert_eq!((s.end, s.room()), (10, 0));
        assert_eq!((s.write_synthetic(1), s.write_blocked), (0, true));
    }
}

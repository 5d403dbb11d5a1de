//! Super-segments: how Linux keeps written data until it is sent.
//!
//! A write fills pieces of several full segments one after the other, up to 64 KiB and half of the largest window of
//! the peer. The room in the send buffer is checked before a new piece only, so that a write is taken in whole
//! pieces; and PSH stands at the end of a piece, where it stays when that is sent again.

use std::collections::VecDeque;

/// The most that segmentation offload takes, and the allowance for headers in it (Linux).
const LARGEST: u64 = 65_536 - 321;
/// Half of a window above this bounds a piece, as does the whole of a smaller one (Linux: `TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;

/// The pieces of the data that was written; offsets of the stream.
#[derive(Debug, Default)]
pub(super) struct SuperSegments {
    /// Where the last piece begins.
    tail: u64,
    /// The latest PSH.
    pushed: u64,
    /// Ends of pieces with PSH that are not acknowledged, ascending.
    marks: VecDeque<u64>,
}

/// What the pieces of a connection depend on now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Payload of a full segment.
    pub(super) mss: u64,
    /// The largest window of the peer so far.
    pub(super) window: u64,
}

impl Sizes {
    /// Length of a piece: full segments, at least one.
    fn piece(self) -> u64 {
        let bound = if self.window > SMALL_WINDOW {
            self.window / 2
        } else {
            self.window
        };
        let mss = self.mss.max(1);
        (LARGEST.min(bound) / mss).max(1) * mss
    }
}

/// The send buffer as a write finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// End of what was written, and of what was sent.
    pub(super) end: u64,
    pub(super) sent: u64,
    /// Bytes that are not acknowledged, and how many there may be before a new piece.
    pub(super) held: u64,
    pub(super) room: u64,
    /// Unsent bytes below which there may be a new piece.
    pub(super) lowat: u64,
}

impl SuperSegments {
    /// Unsent bytes of the last piece, to which more may be added.
    fn open(&self, end: u64, sent: u64, piece: u64) -> u64 {
        let length = end - self.tail.max(sent).min(end);
        if length < piece { length } else { 0 }
    }

    /// How many bytes a write is given now.
    pub(super) fn room(&self, queue: Queue, sizes: Sizes) -> u64 {
        let piece = sizes.piece();
        let open = self.open(queue.end, queue.sent, piece);
        // Linux does not check the room here; it is bounded by one more piece, so that the buffer holds two above its
        // room at most.
        let fill = if open > 0 && queue.held < queue.room + piece {
            piece - open
        } else {
            0
        };
        let unsent = queue.end.saturating_sub(queue.sent);
        let pieces = |limit: u64, used: u64| limit.saturating_sub(used + fill).div_ceil(piece);
        let new = pieces(queue.room, queue.held).min(pieces(queue.lowat, unsent));
        fill.saturating_add(new.saturating_mul(piece))
    }

    /// The first piece of a write when nothing unsent is before it: it leaves before the next is begun.
    pub(super) fn first(end: u64, sent: u64, sizes: Sizes) -> Option<u64> {
        (end <= sent).then(|| sizes.piece())
    }

    /// Data from `from` to `end` was written; `more`: it is not the end of a write that is to be delivered at once.
    pub(super) fn on_write(&mut self, from: u64, end: u64, sent: u64, sizes: Sizes, more: bool) {
        let piece = sizes.piece();
        let open = self.open(from, sent, piece);
        if open > 0 && self.marks.back() == Some(&from) {
            self.marks.pop_back();
        }
        self.tail = from - open;
        let mut full = self.tail + piece;
        while full <= end {
            if full.saturating_sub(self.pushed) > sizes.window / 2 {
                self.mark(full);
            }
            if full < end {
                self.tail = full;
            }
            full += piece;
        }
        if !more {
            self.mark(end);
        }
    }

    fn mark(&mut self, end: u64) {
        if self.marks.back().is_none_or(|last| *last < end) {
            self.marks.push_back(end);
        }
        self.pushed = end;
    }

    /// No more is added to the last piece: a record ends at `end`.
    pub(super) fn close(&mut self, end: u64) {
        self.tail = end;
    }

    /// Everything before `una` is acknowledged.
    #[inline]
    pub(super) fn release(&mut self, una: u64) {
        while self.marks.front().is_some_and(|end| *end <= una) {
            self.marks.pop_front();
        }
    }

    /// Whether a segment that ends at `end` has PSH.
    #[inline]
    pub(super) fn pushes(&self, end: u64) -> bool {
        self.marks.binary_search(&end).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        mss: 1000,
        window: 32_896,
    };

    fn queue(end: u64, sent: u64, room: u64, lowat: u64) -> Queue {
        Queue {
            end,
            sent,
            held: end,
            room,
            lowat,
        }
    }

    #[test]
    fn a_piece_is_at_most_half_of_the_window_and_what_offload_takes() {
        let piece = |window| Sizes { window, ..SIZES }.piece();
        assert_eq!(
            [500, 900, 32_896, 10 << 20].map(piece),
            [1000, 1000, 16_000, 65_000]
        );
    }

    #[test]
    fn a_write_is_taken_in_whole_pieces() {
        let mut s = SuperSegments::default();
        // Three pieces: after two there is room for another byte.
        assert_eq!(s.room(queue(0, 0, 32_001, u64::MAX), SIZES), 48_000);
        assert_eq!(s.room(queue(0, 0, 32_000, u64::MAX), SIZES), 32_000);
        // Few bytes may be unsent: one piece. Of what was sent of it, as much more is taken.
        assert_eq!(s.room(queue(0, 0, 1 << 20, 4000), SIZES), 16_000);
        s.on_write(0, 16_000, 0, SIZES, true);
        assert_eq!(s.room(queue(16_000, 0, 1 << 20, 4000), SIZES), 0);
        assert_eq!(s.room(queue(16_000, 10_000, 1 << 20, 4000), SIZES), 10_000);
        // A record's piece gets no more.
        s.close(16_000);
        assert_eq!(s.room(queue(16_000, 10_000, 1 << 20, 4000), SIZES), 0);
        assert_eq!(s.room(queue(16_000, 16_000, 1 << 20, 4000), SIZES), 16_000);
    }

    #[test]
    fn a_full_buffer_gets_a_piece_more_until_something_is_acknowledged() {
        let mut s = SuperSegments::default();
        s.on_write(0, 48_000, 0, SIZES, true);
        // Half of the last piece was sent, and nothing is acknowledged.
        assert_eq!(s.room(queue(48_000, 40_000, 32_001, u64::MAX), SIZES), 8000);
        assert_eq!(s.room(queue(48_000, 40_000, 32_000, u64::MAX), SIZES), 0);
        // Without anything to add to, only room counts.
        assert_eq!(s.room(queue(48_000, 48_000, 48_000, u64::MAX), SIZES), 0);
    }

    #[test]
    fn psh_ends_writes_and_pieces_beyond_half_a_window() {
        let mut s = SuperSegments::default();
        s.on_write(0, 60_000, 0, SIZES, false);
        // The first piece is less than half of the window; then each second one.
        let marks: Vec<u64> = s.marks.iter().copied().collect();
        assert_eq!(marks, [32_000, 60_000]);
        // The next write continues the last piece.
        s.on_write(60_000, 61_000, 0, SIZES, false);
        assert!(!s.pushes(60_000) && s.pushes(61_000));
        // It was sent: the mark stays, and goes with the acknowledgement.
        s.on_write(61_000, 62_000, 61_000, SIZES, false);
        assert!(s.pushes(61_000) && s.pushes(62_000));
        s.release(61_000);
        assert!(!s.pushes(61_000) && s.pushes(62_000));
    }
}

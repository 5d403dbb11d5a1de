use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use gargalo_wire::tcp::Payload;

use crate::event::Chunk;

/// How many ranges are kept in order of recency; a header has room for at most four blocks.
const RECENT: usize = 4;

/// How many ranges are kept. An insertion in the middle moves up to half of them, 512 KiB: a peer that sends single
/// bytes in any order costs some ten microseconds for each at worst.
const MOST_RANGES: usize = 1 << 16;

/// Data that arrived ahead of a hole.
///
/// Ranges are disjoint and never touch; real bytes are kept beside them, so a range without
/// content costs one entry however long it is. They are in a sorted ring: it is searched in logarithmic time, and
/// an insertion or removal moves the ranges on the nearer side. That is a few: holes are filled from the front,
/// and new ones appear at the back.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Start and end, sorted.
    ranges: VecDeque<(u64, u64)>,
    /// Bytes in all ranges.
    len: u64,
    /// Real bytes by offset: disjoint, each inside a range.
    real: BTreeMap<u64, Bytes>,
    /// Ranges in the order of their latest change, newest first (RFC 2018 §4).
    recent: [(u64, u64); RECENT],
    recent_len: u8,
}

impl Assembler {
    /// Whether no data is stored.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of bytes in all stored ranges.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing more may be inserted: `most_pieces` pieces of content are in memory, or as many ranges as an
    /// insertion may move.
    #[inline]
    pub fn is_full(&self, most_pieces: usize) -> bool {
        self.real.len() >= most_pieces || self.ranges.len() >= MOST_RANGES
    }

    /// Stores `payload` at `offset`; the first copy of a byte wins. Returns the range it is part
    /// of now and, if some of it was there already, the first part that was (RFC 2883 §4).
    pub fn insert(&mut self, offset: u64, payload: &Payload) -> Inserted {
        let (from, to) = (offset, offset + u64::from(payload.len()));
        // Everything before `behind` begins at or before `to`, so the last of them is the first to meet.
        let behind = match self.ranges.back() {
            Some(last) if last.0 > to => self.ranges.partition_point(|r| r.0 <= to),
            _ => self.ranges.len(),
        };
        if behind > 0 && self.ranges[behind - 1].1 == from {
            // The common case: the data continues a range and reaches no other.
            let start = self.ranges[behind - 1].0;
            self.ranges[behind - 1].1 = to;
            self.keep_real(payload, offset, from, to);
            return self.inserted((start, to), to - from, None);
        }
        let mut first = behind;
        while first > 0 && self.ranges[first - 1].1 >= from {
            first -= 1;
        }
        // Those that overlap or touch are from `first` to `behind`.
        let (mut start, mut end) = (from, to);
        let mut duplicate = None;
        let mut covered = from;
        let mut stored = 0;
        for i in first..behind {
            let (s, e) = self.ranges[i];
            self.keep_real(payload, offset, covered, s.min(to));
            let overlap = (s.max(from), e.min(to));
            if overlap.0 < overlap.1 && duplicate.is_none() {
                duplicate = Some(overlap);
            }
            covered = covered.max(e);
            start = start.min(s);
            end = end.max(e);
            stored += e - s;
        }
        self.keep_real(payload, offset, covered, to);
        if first == behind {
            self.ranges.insert(first, (start, end));
        } else {
            self.ranges[first] = (start, end);
            if behind - first == 2 {
                self.ranges.remove(first + 1);
            } else {
                self.ranges.drain(first + 1..behind);
            }
        }
        self.inserted((start, end), end - start - stored, duplicate)
    }

    #[inline]
    fn inserted(
        &mut self,
        range: (u64, u64),
        added: u64,
        duplicate: Option<(u64, u64)>,
    ) -> Inserted {
        self.len += added;
        self.remember(range.0, range.1);
        Inserted { range, duplicate }
    }

    /// Keeps the content of `from..to` if it is real.
    fn keep_real(&mut self, payload: &Payload, offset: u64, from: u64, to: u64) {
        if from >= to {
            return;
        }
        if let Some(bytes) = payload.bytes() {
            let piece = bytes.slice((from - offset) as usize..(to - offset) as usize);
            // A short slice would keep the whole segment in memory.
            let piece = if 2 * piece.len() < bytes.len() {
                Bytes::copy_from_slice(&piece)
            } else {
                piece
            };
            self.real.insert(from, piece);
        }
    }

    /// Puts a range first in the order of recency; ranges merged into it are removed.
    #[inline]
    fn remember(&mut self, start: u64, end: u64) {
        if self.recent_len > 0 && self.recent[0].0 == start {
            self.recent[0].1 = end;
            if self.recent_len == 1 {
                return;
            }
        }
        let mut kept = [(start, end); RECENT];
        let mut n = 1;
        for &(s, e) in &self.recent[..usize::from(self.recent_len)] {
            if (s < start || e > end) && n < RECENT {
                kept[n] = (s, e);
                n += 1;
            }
        }
        self.recent = kept;
        self.recent_len = n as u8;
    }

    /// Removes what has become contiguous with `next`: hands the chunks to `out` in order and
    /// returns the new next offset.
    pub fn drain(&mut self, next: u64, mut out: impl FnMut(Chunk)) -> u64 {
        let mut at = next;
        let before = self.ranges.len();
        while let Some(&(start, end)) = self.ranges.front() {
            if start > at {
                break;
            }
            self.ranges.pop_front();
            self.len -= end - start;
            while let Some(piece) = self.real.first_entry() {
                let s = *piece.key();
                if s >= end {
                    break;
                }
                let mut bytes = piece.remove();
                if s < at {
                    // The in-order segment contained part of it.
                    let skip = usize::try_from(at - s).unwrap_or(usize::MAX);
                    if skip >= bytes.len() {
                        continue;
                    }
                    bytes = bytes.slice(skip..);
                } else if s > at {
                    out(Chunk::Synthetic(s - at));
                    at = s;
                }
                at += bytes.len() as u64;
                out(Chunk::Real(bytes));
            }
            if end > at {
                out(Chunk::Synthetic(end - at));
                at = end;
            }
        }
        if self.ranges.is_empty() {
            self.recent_len = 0;
        } else if self.ranges.len() < before {
            self.forget_before(at);
        }
        at
    }

    fn forget_before(&mut self, next: u64) {
        let mut n = 0;
        for i in 0..usize::from(self.recent_len) {
            if self.recent[i].0 > next {
                self.recent[n] = self.recent[i];
                n += 1;
            }
        }
        self.recent_len = n as u8;
    }

    /// Up to `max` ranges to report: those changed most recently first, then the lowest others
    /// ("as many distinct SACK blocks as possible", RFC 2018 §4).
    pub fn blocks(&self, max: usize, mut report: impl FnMut(u64, u64)) {
        let recent = &self.recent[..usize::from(self.recent_len)];
        let mut n = 0;
        for &(s, e) in recent.iter().take(max) {
            report(s, e);
            n += 1;
        }
        if n == max || self.ranges.len() == n {
            return;
        }
        for &(s, e) in &self.ranges {
            if n == max {
                break;
            }
            if !recent.iter().any(|r| r.0 == s) {
                report(s, e);
                n += 1;
            }
        }
    }

    /// The first part of `..to` that is stored already.
    pub fn first_before(&self, to: u64) -> Option<(u64, u64)> {
        let &(s, e) = self.ranges.front()?;
        (s < to).then(|| (s, e.min(to)))
    }

    /// Offset after the last stored byte; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |r| r.1)
    }

    /// The stored ranges, start and end, sorted: disjoint, and none touches the next.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }

    #[cfg(test)]
    fn all(&self) -> Vec<(u64, u64)> {
        self.ranges().collect()
    }
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The range the new data belongs to.
    pub range: (u64, u64),
    /// The first part of it that had arrived before.
    pub duplicate: Option<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(a: &mut Assembler, from: u64, to: u64) -> Inserted {
        let inserted = a.insert(from, &Payload::synthetic((to - from) as u32));
        assert_eq!(a.len(), sum(a));
        inserted
    }
    fn sum(a: &Assembler) -> u64 {
        a.ranges.iter().map(|(s, e)| e - s).sum()
    }
    fn reported(a: &Assembler, max: usize) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        a.blocks(max, |s, e| out.push((s, e)));
        out
    }

    #[test]
    fn ranges_merge_when_they_touch_or_overlap() {
        let mut a = Assembler::default();
        put(&mut a, 10, 20);
        put(&mut a, 30, 40);
        put(&mut a, 50, 60);
        assert_eq!(a.all(), [(10, 20), (30, 40), (50, 60)]);
        let i = put(&mut a, 20, 30);
        assert_eq!(
            i,
            Inserted {
                range: (10, 40),
                duplicate: None
            }
        );
        let i = put(&mut a, 5, 55);
        assert_eq!(
            i,
            Inserted {
                range: (5, 60),
                duplicate: Some((10, 40))
            }
        );
        let i = put(&mut a, 7, 9);
        assert_eq!(
            i,
            Inserted {
                range: (5, 60),
                duplicate: Some((7, 9))
            }
        );
    }

    #[test]
    fn the_newest_range_is_reported_first_and_the_rest_by_recency() {
        let mut a = Assembler::default();
        put(&mut a, 10, 20);
        put(&mut a, 50, 60);
        put(&mut a, 30, 40);
        assert_eq!(reported(&a, 3), [(30, 40), (50, 60), (10, 20)]);
        put(&mut a, 20, 25);
        assert_eq!(reported(&a, 3), [(10, 25), (30, 40), (50, 60)]);
        // A merge leaves room: older ranges fill it.
        for i in 10..20 {
            put(&mut a, i * 10, i * 10 + 5);
        }
        put(&mut a, 10, 190);
        assert_eq!(reported(&a, 4), [(10, 195)]);
    }

    #[test]
    fn the_first_copy_of_a_byte_wins_and_gaps_between_real_bytes_are_synthetic() {
        let mut a = Assembler::default();
        a.insert(2, &Payload::real(Bytes::from_static(b"cd")));
        put(&mut a, 4, 6);
        a.insert(1, &Payload::real(Bytes::from_static(b"BCDEFGH")));
        let mut out = Vec::new();
        let next = a.drain(1, |c| out.push(c));
        assert_eq!(next, 8);
        assert_eq!(
            out,
            [
                Chunk::Real(Bytes::from_static(b"B")),
                Chunk::Real(Bytes::from_static(b"cd")),
                Chunk::Synthetic(2),
                Chunk::Real(Bytes::from_static(b"GH")),
            ]
        );
        assert!(a.is_empty());
    }

    #[test]
    fn what_came_in_order_meanwhile_is_not_handed_out_again() {
        let mut a = Assembler::default();
        a.insert(5, &Payload::real(Bytes::from_static(b"fgh")));
        a.insert(20, &Payload::real(Bytes::from_static(b"u")));
        let mut out = Vec::new();
        assert_eq!(a.drain(7, |c| out.push(c)), 8);
        assert_eq!(out, [Chunk::Real(Bytes::from_static(b"h"))]);
        assert_eq!(a.drain(9, |_| panic!("nothing is contiguous")), 9);
        assert_eq!(reported(&a, 4), [(20, 21)]);
        // Merged completely.
        assert_eq!(a.drain(30, |_| panic!("already read")), 30);
        assert!(a.is_empty());
    }

    proptest::proptest! {
        /// Against a plain array of bytes.
        #[test]
        fn it_agrees_with_an_array(
            ops in proptest::collection::vec((1u64..200, 1u64..40, proptest::bool::ANY), 1..60),
        ) {
            let mut a = Assembler::default();
            let mut model = [None::<u8>; 256];
            for (i, (from, len, real)) in ops.iter().copied().enumerate() {
                let fill = i as u8 + 1;
                let payload = if real {
                    Payload::real(Bytes::from(vec![fill; len as usize]))
                } else {
                    Payload::synthetic(len as u32)
                };
                let before = (from..from + len).find(|p| model[*p as usize].is_some());
                let inserted = a.insert(from, &payload);
                proptest::prop_assert_eq!(inserted.duplicate.map(|d| d.0), before);
                for p in from..from + len {
                    model[p as usize].get_or_insert(if real { fill } else { 0 });
                }
                let r = inserted.range;
                proptest::prop_assert_eq!(a.len(), sum(&a));
                proptest::prop_assert!((r.0..r.1).all(|p| model[p as usize].is_some()));
                proptest::prop_assert!(model[r.0 as usize - 1].is_none() && model[r.1 as usize].is_none());
                let mut blocks = Vec::new();
                a.blocks(4, |s, e| blocks.push((s, e)));
                proptest::prop_assert_eq!(blocks[0], r);
                let all = a.all();
                proptest::prop_assert_eq!(blocks.len(), all.len().min(4));
                proptest::prop_assert!(blocks.iter().all(|b| all.contains(b)));
            }
            // Fill holes one by one, as retransmissions do, and compare everything that comes out.
            let mut at = 0u64;
            while !a.is_empty() {
                let mut got = Vec::new();
                let next = a.drain(at, |c| match c {
                    Chunk::Real(b) => got.extend_from_slice(&b),
                    Chunk::Synthetic(n) => got.resize(got.len() + n as usize, 0),
                });
                let expected: Vec<u8> = (at..next).map(|p| model[p as usize].unwrap()).collect();
                proptest::prop_assert_eq!(got, expected);
                proptest::prop_assert_eq!(a.len(), sum(&a));
                at = next + 1;
            }
        }
    }
}

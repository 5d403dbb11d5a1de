//! The received parts of a stream, which noq does not report.

use std::collections::BTreeMap;

/// The received parts of a stream.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Everything before this offset has arrived.
    next: u64,
    /// Received ranges beyond it, by start: their ends and numbers of pieces. They are disjoint and do not touch.
    ahead: BTreeMap<u64, (u64, u64)>,
    /// Pieces in `ahead`.
    pieces: u64,
}

impl Arrived {
    /// Adds a received piece; returns how many of its bytes are new.
    #[inline]
    pub(super) fn insert(&mut self, from: u64, to: u64) -> u64 {
        if self.ahead.is_empty() && from <= self.next {
            let new = to.saturating_sub(self.next);
            self.next += new;
            return new;
        }
        self.insert_between(from.max(self.next), to)
    }

    fn insert_between(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let before = self.ahead.range(..from).next_back();
        let reaching = before.filter(|(_, (end, _))| *end >= from);
        let first = reaching.map_or(from, |(begin, _)| *begin);
        let (mut begin, mut end, mut pieces, mut known) = (from, to, 0, 0);
        while let Some((&b, &(e, p))) = self.ahead.range(first..=to).next() {
            self.ahead.remove(&b);
            known += e.min(to).saturating_sub(b.max(from));
            begin = begin.min(b);
            end = end.max(e);
            pieces += p;
        }
        self.pieces -= pieces;
        let new = to - from - known;
        pieces += u64::from(new > 0);
        if begin <= self.next {
            self.next = end;
        } else {
            self.ahead.insert(begin, (end, pieces));
            self.pieces += pieces;
        }
        new
    }

    /// Number of pieces received out of order.
    pub(super) fn waiting(&self) -> u64 {
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_wait_until_what_is_before_them_has_arrived() {
        let mut a = Arrived::default();
        assert_eq!((a.insert(0, 10), a.waiting()), (10, 0));
        assert_eq!((a.insert(20, 30), a.waiting()), (10, 1));
        assert_eq!((a.insert(30, 40), a.waiting()), (10, 2));
        assert_eq!((a.insert(20, 40), a.waiting()), (0, 2), "known");
        assert_eq!((a.insert(50, 60), a.waiting()), (10, 3));
        assert_eq!((a.insert(5, 15), a.waiting()), (5, 3));
        assert_eq!((a.insert(15, 25), a.waiting()), (5, 1));
        assert_eq!((a.insert(0, 60), a.waiting()), (10, 0));
        assert_eq!((a.insert(60, 60), a.insert(7, 9)), (0, 0));
    }

    proptest! {
        #[test]
        fn every_byte_is_new_once(
            pieces in prop::collection::vec((0u64..300, 0u64..40), 0..80),
        ) {
            let mut a = Arrived::default();
            let mut seen = [false; 400];
            for (from, len) in pieces {
                let own = &mut seen[from as usize..(from + len) as usize];
                let new = own.iter().filter(|s| !**s).count();
                own.fill(true);
                prop_assert_eq!(a.insert(from, from + len), new as u64);
                let next = seen.iter().position(|s| !s).unwrap_or(400);
                prop_assert_eq!(a.next, next as u64);
                prop_assert_eq!(a.waiting() == 0, !seen[next..].contains(&true));
                prop_assert_eq!(a.pieces, a.ahead.values().map(|(_, p)| p).sum::<u64>());
            }
        }
    }
}

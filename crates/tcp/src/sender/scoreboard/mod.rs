//! The segments sent and not acknowledged: one entry per segment, in stream order.
//!
//! Every operation is amortised constant per segment. SACK blocks repeat and grow: runs of acknowledged entries are
//! skipped. The two loss detectors use cursors that only move forward: one over the entries (three or more segments
//! acknowledged above, RFC 6675), one over the order of transmission (RACK, RFC 8985), which is the order of
//! entries for originals and a separate queue for retransmissions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gargalo_cc::SendState;
use gargalo_units::Instant;

/// Segments that must be acknowledged above a hole before it counts as lost (RFC 6675 §2), without reordering.
pub(crate) const DUP_THRESH: u32 = 3;

/// A sent segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Offset of its first byte in our stream.
    pub start: u64,
    /// Offsets it covers: payload plus one for a FIN.
    pub len: u32,
    /// Number of entries from here on known to be selectively acknowledged, to be skipped.
    run: u32,
    pub fin: bool,
    sacked: bool,
    /// Marked lost and not yet retransmitted.
    lost: bool,
    /// Its latest transmission has been marked lost before; the mark may have been undone since.
    pub was_lost: bool,
    /// Sent more than once.
    pub retransmitted: bool,
    /// Which transmission of the connection its latest one was.
    pub order: u64,
    /// Its latest transmission repairs a loss and is no probe.
    repairs: bool,
    pub state: SendState,
}

impl Sent {
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    #[inline]
    fn in_pipe(&self) -> bool {
        !self.sacked && !self.lost
    }
}

/// Segments that are acknowledged together, each sent once and in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    /// First offset and end of the first.
    pub start: u64,
    pub end: u64,
    pub last: &'a Sent,
    /// Segments that are acknowledged, the last one perhaps in part.
    pub packets: usize,
}

/// A block that was marked.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    left: u64,
    right: u64,
    /// Absolute indices of its entries: the first, and the one after the last.
    first: u64,
    end: u64,
}

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    entries: VecDeque<Sent>,
    /// Absolute index of the first entry.
    base: u64,
    /// Offsets sent, not acknowledged, not lost (RFC 6675's pipe).
    pipe: u64,
    sacked: u32,
    lost: u32,
    /// Entries that were sent more than once.
    repeats: u32,
    /// Lost entries, lowest first; may hold stale ones.
    to_send: BinaryHeap<Reverse<u64>>,
    /// Entries before this one have been examined by the count above them.
    count_cursor: u64,
    /// Entries from `count_cursor` on that are selectively acknowledged.
    sacked_above: u32,
    /// Originals before this one have been examined by time.
    time_cursor: u64,
    /// Transmissions so far.
    transmissions: u64,
    /// Retransmissions in the order of sending.
    repeated: VecDeque<(u64, Instant)>,
    /// The highest entry that was selectively acknowledged, plus one.
    forward: u64,
    /// Blocks marked lately: an acknowledgement repeats those of the one before, or extends them.
    known: [Block; 4],
    /// Which of them is replaced next.
    oldest: u8,
}

impl Scoreboard {
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        self.pipe
    }
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
    #[inline]
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }
    /// Whether each segment was sent once, none is marked lost and none was selectively acknowledged: then they are in
    /// the order of sending.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.sacked | self.lost | self.repeats == 0
    }
    /// The first segment that is not acknowledged.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Sent> {
        self.entries.front()
    }

    /// A new segment was sent.
    #[inline]
    pub(crate) fn push(&mut self, start: u64, len: u32, fin: bool, state: SendState) {
        self.pipe += u64::from(len);
        self.transmissions += 1;
        self.entries.push_back(Sent {
            start,
            len,
            run: 0,
            fin,
            sacked: false,
            lost: false,
            was_lost: false,
            retransmitted: false,
            repairs: false,
            order: self.transmissions,
            state,
        });
    }

    /// While [`Self::is_plain`]: removes everything before `ack`, which is first passed to `delivered`. An
    /// acknowledgement of a part of a segment keeps the rest.
    #[inline]
    pub(crate) fn acknowledge_plain(&mut self, ack: u64, delivered: impl FnOnce(Run<'_>)) {
        let Some(first) = self.entries.front() else {
            return;
        };
        let (start, end) = (first.start, first.end().min(ack));
        let mut last = first;
        let mut n = 0;
        while let Some(e) = self.entries.get(n)
            && e.start < ack
        {
            last = e;
            n += 1;
        }
        let ends_inside = last.end() > ack;
        delivered(Run {
            start,
            end,
            last,
            packets: n,
        });
        self.pipe -= ack - start;
        if ends_inside {
            n -= 1;
            self.keep_rest(n, ack);
        }
        for _ in 0..n {
            self.entries.pop_front();
        }
        self.forward_to(self.base + n as u64);
    }

    /// Everything before `ack`, inside entry `i`, was acknowledged. What is left of it may lie in a known block now.
    fn keep_rest(&mut self, i: usize, ack: u64) {
        let e = &mut self.entries[i];
        e.len = (e.end() - ack) as u32;
        e.start = ack;
        self.known = Default::default();
    }

    /// The first entry is `base` from now on.
    #[inline]
    fn forward_to(&mut self, base: u64) {
        self.base = base;
        self.count_cursor = self.count_cursor.max(base);
        self.time_cursor = self.time_cursor.max(base);
        if self.entries.is_empty() {
            self.to_send.clear();
            self.repeated.clear();
        }
    }

    /// Removes everything before `ack`; `delivered` is called for newly delivered segments.
    pub(crate) fn acknowledge(&mut self, ack: u64, mut delivered: impl FnMut(&Sent)) {
        let mut base = self.base;
        while let Some(front) = self.entries.front_mut() {
            if front.end() > ack {
                if front.start < ack {
                    // A part of a segment was acknowledged: keep the rest.
                    let part = (ack - front.start) as u32;
                    if front.in_pipe() {
                        self.pipe -= u64::from(part);
                    }
                    if !front.sacked {
                        delivered(&Sent {
                            len: part,
                            ..*front
                        });
                    }
                    self.keep_rest(0, ack);
                }
                break;
            }
            self.repeats -= u32::from(front.retransmitted);
            if front.sacked {
                self.sacked -= 1;
                if base >= self.count_cursor {
                    self.sacked_above -= 1;
                }
            } else {
                if front.lost {
                    self.lost -= 1;
                } else {
                    self.pipe -= u64::from(front.len);
                }
                delivered(front);
            }
            self.entries.pop_front();
            base += 1;
        }
        self.forward_to(base);
    }

    /// The index of the first entry that starts at or after `offset`.
    #[inline]
    fn find(&self, offset: u64) -> usize {
        // Segments are mostly of one size: a guess from the first one usually hits.
        if let Some(first) = self.entries.front()
            && first.len > 0
            && offset >= first.start
        {
            let guess = ((offset - first.start) / u64::from(first.len)) as usize;
            if self.entries.get(guess).is_some_and(|e| e.start == offset) {
                return guess;
            }
        }
        self.entries.partition_point(|e| e.start < offset)
    }

    /// Marks offsets `left..right` as selectively acknowledged; `delivered` is called for newly delivered segments.
    #[inline]
    pub(crate) fn sack(&mut self, left: u64, right: u64, mut delivered: impl FnMut(&Sent)) {
        let same = self.known.iter().position(|b| b.left == left);
        let at = match same {
            Some(at) if self.known[at].right == right => return,
            Some(at) => at,
            None => {
                self.oldest = (self.oldest + 1) % 4;
                let (at, first) = (usize::from(self.oldest), self.base + self.find(left) as u64);
                self.known[at] = Block {
                    left,
                    right,
                    first,
                    end: first,
                };
                at
            }
        };
        let block = &mut self.known[at];
        block.right = right;
        let first = block.first;
        let mut i = block.end.saturating_sub(self.base) as usize;
        while let Some(e) = self.entries.get_mut(i) {
            if e.end() > right {
                break;
            }
            if e.sacked {
                i += e.run.max(1) as usize;
                continue;
            }
            if e.lost {
                e.lost = false;
                self.lost -= 1;
            } else {
                self.pipe -= u64::from(e.len);
            }
            e.sacked = true;
            e.run = 1;
            self.sacked += 1;
            if self.base + i as u64 >= self.count_cursor {
                self.sacked_above += 1;
            }
            delivered(e);
            i += 1;
            self.forward = self.forward.max(self.base + i as u64);
        }
        let end = self.base + i as u64;
        self.known[at].end = end;
        if end > first
            && let Some(first) = first.checked_sub(self.base)
            && let Some(e) = self.entries.get_mut(first as usize)
        {
            e.run = (end - self.base - first) as u32;
        }
    }

    #[inline]
    fn mark_lost(&mut self, i: usize) -> Option<Sent> {
        let e = &mut self.entries[i];
        if !e.in_pipe() {
            return None;
        }
        e.lost = true;
        self.lost += 1;
        self.pipe -= u64::from(e.len);
        self.to_send.push(Reverse(self.base + i as u64));
        let marked = *e;
        e.was_lost = true;
        Some(marked)
    }

    /// Marks segments lost that have `threshold` acknowledged segments above them (RFC 6675 §4, IsLost).
    #[inline]
    pub(crate) fn detect_by_count(&mut self, threshold: u32, mut lost: impl FnMut(&Sent)) {
        while self.sacked_above >= threshold && self.pass_counted(&mut lost) {}
    }

    /// Examines the entry at `count_cursor`, which is lost unless it was selectively acknowledged or retransmitted;
    /// `false` if there is none.
    #[inline]
    fn pass_counted(&mut self, lost: &mut impl FnMut(&Sent)) -> bool {
        let i = (self.count_cursor - self.base) as usize;
        let Some(e) = self.entries.get(i) else {
            return false;
        };
        if e.sacked {
            self.sacked_above -= 1;
        } else if !e.retransmitted
            && let Some(e) = self.mark_lost(i)
        {
            lost(&e);
        }
        self.count_cursor += 1;
        true
    }

    /// Marks segments lost that are `threshold` or more segments below the highest acknowledged one (forward
    /// acknowledgement), and retransmissions after which a segment was sent for the first time that has arrived.
    pub(crate) fn detect_forward(&mut self, threshold: u32, mut lost: impl FnMut(&Sent)) {
        if self.forward <= self.base {
            return;
        }
        let below = self.forward.saturating_sub(u64::from(threshold));
        while self.count_cursor < below && self.pass_counted(&mut lost) {}
        let highest = self.entries.get((self.forward - 1 - self.base) as usize);
        let Some(arrived) = highest.filter(|h| h.sacked && !h.retransmitted) else {
            return;
        };
        let sent_at = arrived.state.sent_at;
        while let Some(&(index, repeated_at)) = self.repeated.front() {
            if repeated_at >= sent_at {
                break;
            }
            self.repeated.pop_front();
            let i = index.checked_sub(self.base).map(|i| i as usize);
            let current = i.filter(|i| {
                let e = self.entries.get(*i);
                e.is_some_and(|e| e.in_pipe() && e.state.sent_at == repeated_at)
            });
            if let Some(e) = current.and_then(|i| self.mark_lost(i)) {
                lost(&e);
            }
        }
    }

    /// Whether a retransmission is in flight.
    pub(crate) fn has_repeated(&self) -> bool {
        self.entries.iter().any(|e| e.retransmitted && e.in_pipe())
    }

    /// Marks every segment lost whose `due(sent)` is not later than `now`; stops at the first that is not due
    /// (`None`: sent after all delivered segments). Returns when the next one is due.
    pub(crate) fn detect_by_time(
        &mut self,
        now: Instant,
        due: impl Fn(&Sent) -> Option<Instant>,
        mut lost: impl FnMut(&Sent),
    ) -> Instant {
        let mut next = Instant::MAX;
        loop {
            let i = (self.time_cursor - self.base) as usize;
            let Some(e) = self.entries.get(i) else { break };
            if e.in_pipe() && !e.retransmitted {
                match due(e) {
                    Some(t) if t <= now => {
                        if let Some(e) = self.mark_lost(i) {
                            lost(&e);
                        }
                    }
                    Some(t) => {
                        next = t;
                        break;
                    }
                    None => break,
                }
            }
            self.time_cursor += 1;
        }
        while let Some(&(index, sent_at)) = self.repeated.front() {
            let i = index.checked_sub(self.base).map(|i| i as usize);
            let current = i.and_then(|i| self.entries.get(i)).filter(|e| {
                // An entry that was retransmitted again has a later place in the queue.
                e.in_pipe() && e.state.sent_at == sent_at
            });
            if let (Some(e), Some(i)) = (current, i) {
                match due(e) {
                    Some(t) if t <= now => {
                        if let Some(e) = self.mark_lost(i) {
                            lost(&e);
                        }
                    }
                    Some(t) => {
                        next = next.min(t);
                        break;
                    }
                    None => break,
                }
            }
            self.repeated.pop_front();
        }
        next
    }

    /// How many segments are lost and not acknowledged, retransmitted since or not, and how many of their
    /// retransmissions are in flight.
    pub(crate) fn repairs(&self) -> (u32, u32) {
        let count = |f: fn(&Sent) -> bool| self.entries.iter().filter(|e| f(e)).count() as u32;
        let resent = count(|e| e.repairs && e.in_pipe());
        (resent + count(|e| e.lost), resent)
    }

    /// Marks the first segment lost (RFC 6582: three duplicate or a partial acknowledgement).
    pub(crate) fn mark_first_lost(&mut self) -> Option<Sent> {
        if self.entries.is_empty() {
            None
        } else {
            self.mark_lost(0)
        }
    }

    /// Marks everything lost that is not selectively acknowledged (after a timeout). If the first entry is
    /// selectively acknowledged, the peer has dropped data that it had reported, and all such marks are cleared
    /// (RFC 2018 §8).
    pub(crate) fn mark_all_lost(&mut self, mut lost: impl FnMut(&Sent)) {
        let reneged = self.entries.front().is_some_and(|e| e.sacked);
        self.known = Default::default();
        for i in 0..self.entries.len() {
            if reneged {
                let e = &mut self.entries[i];
                e.run = 0;
                if e.sacked {
                    e.sacked = false;
                    self.pipe += u64::from(e.len);
                }
            }
            if let Some(e) = self.mark_lost(i) {
                lost(&e);
            }
        }
        if reneged {
            self.sacked = 0;
            self.sacked_above = 0;
            self.forward = 0;
        }
        let end = self.base + self.entries.len() as u64;
        self.time_cursor = end;
        self.repeated.clear();
    }

    /// Removes every loss mark (the event was spurious).
    pub(crate) fn unmark_lost(&mut self) {
        for e in &mut self.entries {
            e.repairs = false;
            if e.lost {
                e.lost = false;
                self.pipe += u64::from(e.len);
            }
        }
        self.lost = 0;
        self.to_send.clear();
        self.time_cursor = self.base;
        self.list_repeated();
    }

    /// Rebuilds the queue of retransmissions in flight.
    fn list_repeated(&mut self) {
        self.repeated.clear();
        for (i, e) in self.entries.iter().enumerate() {
            if e.retransmitted && e.in_pipe() {
                self.repeated
                    .push_back((self.base + i as u64, e.state.sent_at));
            }
        }
        self.repeated.make_contiguous().sort_by_key(|r| r.1);
    }

    /// The lowest lost segment.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<(u64, Sent)> {
        while let Some(Reverse(index)) = self.to_send.peek() {
            let index = *index;
            if let Some(i) = index.checked_sub(self.base)
                && let Some(e) = self.entries.get(i as usize)
                && e.lost
            {
                return Some((index, *e));
            }
            self.to_send.pop();
        }
        None
    }

    /// The first segment that is not acknowledged.
    pub(crate) fn first(&self) -> Option<(u64, Sent)> {
        Some((self.base, *self.entries.front()?))
    }

    /// The last segment that is not selectively acknowledged.
    pub(crate) fn last_unsacked(&self) -> Option<(u64, Sent)> {
        let i = self.entries.iter().rposition(|e| !e.sacked)?;
        Some((self.base + i as u64, self.entries[i]))
    }

    /// Whether there is a hole below a selectively acknowledged segment that was not sent again: further reports may
    /// show it lost.
    pub(crate) fn may_be_reported(&self) -> bool {
        let last = self.entries.iter().rposition(|e| e.sacked).unwrap_or(0);
        let mut below = self.entries.iter().take(last);
        below.any(|e| !e.sacked && !e.retransmitted)
    }

    /// Segment `index` was sent again.
    #[inline]
    pub(crate) fn resent(&mut self, index: u64, state: SendState) {
        let Some(i) = index.checked_sub(self.base) else {
            return;
        };
        let Some(e) = self.entries.get_mut(i as usize) else {
            return;
        };
        if e.lost {
            e.lost = false;
            e.repairs = true;
            self.lost -= 1;
            self.pipe += u64::from(e.len);
        }
        self.repeats += u32::from(!e.retransmitted);
        e.retransmitted = true;
        e.was_lost = false;
        self.transmissions += 1;
        e.order = self.transmissions;
        e.state = state;
        self.repeated.push_back((index, state.sent_at));
    }

    /// Marks unacknowledged segments with more than `mss` bytes of payload as lost; returns whether there are any.
    pub(crate) fn lose_longer(&mut self, mss: u32) -> bool {
        let mut found = false;
        for i in 0..self.entries.len() {
            let e = &self.entries[i];
            if e.len - u32::from(e.fin) > mss {
                found = true;
                self.mark_lost(i);
            }
        }
        found
    }

    /// Splits segments that have become larger than `mss`.
    pub(crate) fn split(&mut self, mss: u32) {
        let old = std::mem::take(&mut self.entries);
        for e in old {
            let mut start = e.start;
            let payload_end = e.end() - u64::from(e.fin);
            loop {
                let mut len = (payload_end.saturating_sub(start)).min(u64::from(mss)) as u32;
                let last = start + u64::from(len) >= payload_end;
                let fin = last && e.fin;
                len += u32::from(fin);
                self.entries.push_back(Sent {
                    start,
                    len,
                    fin,
                    run: 0,
                    ..e
                });
                start += u64::from(len);
                if last {
                    break;
                }
            }
        }
        // Indices have moved: rebuild what refers to them.
        self.known = Default::default();
        self.to_send.clear();
        (self.count_cursor, self.time_cursor) = (self.base, self.base);
        (self.sacked, self.lost, self.repeats) = (0, 0, 0);
        for (i, e) in self.entries.iter().enumerate() {
            self.sacked += u32::from(e.sacked);
            self.repeats += u32::from(e.retransmitted);
            if e.lost {
                self.lost += 1;
                self.to_send.push(Reverse(self.base + i as u64));
            }
        }
        self.sacked_above = self.sacked;
        self.forward = 0;
        self.list_repeated();
    }
}

#[cfg(test)]
mod tests;

//! Records of the packets in flight.

use std::collections::VecDeque;

use gargalo_cc::SendState;
use gargalo_units::Instant;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Its packet number; packets of other number spaces may have the same.
    number: u64,
    bytes: u16,
    done: bool,
    pub(super) state: SendState,
}

/// Packets in flight in the order of sending, at consecutive indices.
///
/// noq does not report the number space of a packet. In the data space numbers only grow, so a packet is found at
/// once; the few packets of a handshake are distinguished by their send time. Packets with equal send time and
/// number are equivalent.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    queue: VecDeque<Record>,
    /// Index of the first in the queue.
    first: u64,
}

impl Records {
    /// Index of the next packet.
    pub(super) fn next_index(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    /// Index of the oldest packet still in flight.
    pub(super) fn oldest_index(&self) -> u64 {
        self.first
    }

    pub(super) fn push(&mut self, number: u64, bytes: u16, state: SendState) {
        self.queue.push_back(Record {
            number,
            bytes,
            done: false,
            state,
        });
    }

    /// Removes the packet of this number (sent at this time) and returns it with its index.
    pub(super) fn take(&mut self, number: u64, sent_at: Option<Instant>) -> Option<(u64, Record)> {
        let fits = |r: &Record| {
            r.number == number && !r.done && sent_at.is_none_or(|t| r.state.sent_at == t)
        };
        let at = self
            .guess(number, fits)
            .or_else(|| self.queue.iter().position(fits))?;
        let record = self.queue[at];
        self.queue[at].done = true;
        let index = self.first + at as u64;
        self.drop_done();
        Some((index, record))
    }

    /// Finds the index by counting from the oldest packet: noq sometimes skips a number, and never reuses one.
    fn guess(&self, number: u64, fits: impl Fn(&Record) -> bool) -> Option<usize> {
        let ahead = number.checked_sub(self.queue.front()?.number)?;
        let mut at = usize::try_from(ahead).ok()?.min(self.queue.len() - 1);
        for _ in 0..32 {
            let record = &self.queue[at];
            if fits(record) {
                return Some(at);
            }
            // Each skipped number in between moves the packet forward.
            if record.number <= number {
                return None;
            }
            at = at.checked_sub(1)?;
        }
        None
    }

    /// Removes packets far below an acknowledged one: they have been reported lost, or will never be reported (MTU
    /// probes, and packets of a completed handshake).
    pub(super) fn forget_below(&mut self, number: u64) {
        while let Some(record) = self.queue.front()
            && (record.done || record.number < number)
        {
            self.queue.pop_front();
            self.first += 1;
        }
    }

    fn drop_done(&mut self) {
        while self.queue.front().is_some_and(|r| r.done) {
            self.queue.pop_front();
            self.first += 1;
        }
    }

    /// Removes all records, after a change of the path.
    pub(super) fn clear(&mut self) {
        self.first = self.next_index();
        self.queue.clear();
    }
}

impl Record {
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use gargalo_units::Duration;

    use super::*;

    fn state(ms: u64) -> SendState {
        SendState {
            sent_at: Instant::ZERO + Duration::from_millis(ms),
            ..SendState::default()
        }
    }

    #[test]
    fn finds_packets_across_gaps_and_spaces() {
        let mut r = Records::default();
        r.push(0, 100, state(0)); // Initial
        r.push(0, 200, state(1)); // Handshake
        for n in (0..50).filter(|n| n % 10 != 3) {
            r.push(n, 300, state(2 + n));
        }
        assert_eq!(r.take(0, Some(state(1).sent_at)).unwrap().1.bytes(), 200);
        assert!(r.take(0, Some(state(1).sent_at)).is_none());
        assert_eq!(r.oldest_index(), 0);
        assert_eq!(r.take(0, Some(state(0).sent_at)).unwrap().0, 0);
        assert_eq!(r.oldest_index(), 2);
        assert!(r.take(13, None).is_none());
        for n in [49, 14, 12, 0, 1, 2] {
            let (index, record) = r.take(n, None).unwrap();
            assert_eq!((record.number, record.bytes()), (n, 300));
            assert_eq!(index, 2 + n - (n + 6) / 10);
        }
        assert_eq!(r.oldest_index(), 5);
        r.forget_below(20);
        assert_eq!(r.oldest_index(), 2 + 20 - 2);
        assert_eq!(r.next_index(), 2 + 45);
        r.clear();
        assert_eq!((r.oldest_index(), r.next_index()), (47, 47));
    }
}

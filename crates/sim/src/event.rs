//! The event queue, with one total order of all events.
//!
//! Events are ordered by (time, target): ties break by the number of the target, so that a run depends neither on the
//! memory layout of a container nor on the moment at which an event was scheduled.
//!
//! [`EventQueue`] is a hierarchical timing wheel. It was chosen by measurement (`benches/event_queue`): about 25 ns
//! per event whatever the population, where the cost of heaps grows with its logarithm.

use std::collections::VecDeque;

use gargalo_units::Instant;

/// The target of an event: an index that the engine interprets.
pub type Target = u32;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    time: u64,
    target: Target,
}

impl Entry {
    /// When the event is due.
    #[inline]
    pub const fn time(&self) -> Instant {
        Instant::from_nanos(self.time)
    }
    /// The target of the event.
    #[inline]
    pub const fn target(&self) -> Target {
        self.target
    }
}

const LEVELS: usize = 8;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Nanoseconds per slot of the lowest level, as a power of two.
const TICK_BITS: u32 = 10;

/// A hierarchical timing wheel (Varghese and Lauck, SOSP 1987): eight levels of 64 slots, the
/// lowest of 1,024 ns; the current slot is a sorted run so that the total order holds.
#[derive(Debug)]
pub struct EventQueue {
    slots: Vec<Vec<Entry>>,
    occupied: [u64; LEVELS],
    /// Tick of the current run.
    tick: u64,
    /// Events of the current tick, in order.
    run: VecDeque<Entry>,
    /// Events beyond the highest level.
    far: Vec<Entry>,
    len: usize,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            slots: vec![Vec::new(); LEVELS * SLOTS],
            occupied: [0; LEVELS],
            tick: 0,
            run: VecDeque::new(),
            far: Vec::new(),
            len: 0,
        }
    }
}

impl EventQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of waiting events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Schedules `target` at `time`, which must not be before the event taken last.
    #[inline]
    pub fn push(&mut self, time: Instant, target: Target) {
        self.len += 1;
        let time = time.as_nanos();
        self.insert(Entry { time, target });
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        let tick = entry.time >> TICK_BITS;
        if tick <= self.tick {
            // Nearly always the latest event of its tick.
            if self.run.back().is_none_or(|e| *e < entry) {
                self.run.push_back(entry);
            } else {
                let at = self.run.partition_point(|e| *e < entry);
                self.run.insert(at, entry);
            }
            return;
        }
        let diff = tick ^ self.tick;
        let level = ((63 - diff.leading_zeros()) / SLOT_BITS) as usize;
        if level >= LEVELS {
            self.far.push(entry);
            return;
        }
        let slot = (tick >> (level as u32 * SLOT_BITS)) as usize & (SLOTS - 1);
        self.slots[level * SLOTS + slot].push(entry);
        self.occupied[level] |= 1 << slot;
    }

    /// Removes and returns the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        while self.run.is_empty() {
            self.advance()?;
        }
        self.len -= 1;
        self.run.pop_front()
    }

    /// Moves to the next occupied slot.
    fn advance(&mut self) -> Option<()> {
        for level in 0..LEVELS {
            if self.occupied[level] == 0 {
                continue;
            }
            // Slots before the current one are empty: their events would be on a higher level.
            let slot = self.occupied[level].trailing_zeros() as usize;
            self.occupied[level] &= !(1 << slot);
            let shift = level as u32 * SLOT_BITS;
            let above = self.tick >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
            self.tick = above | (slot as u64) << shift;
            let mut entries = std::mem::take(&mut self.slots[level * SLOTS + slot]);
            if level == 0 {
                entries.sort_unstable();
                self.run.extend(entries.drain(..));
                self.slots[slot] = entries;
            } else {
                for e in entries.drain(..) {
                    self.insert(e);
                }
                self.slots[level * SLOTS + slot] = entries;
            }
            return Some(());
        }
        let least = self.far.iter().min()?.time >> TICK_BITS;
        self.tick = least;
        for e in std::mem::take(&mut self.far) {
            self.insert(e);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_break_by_target() {
        let mut q = EventQueue::new();
        let t = Instant::from_nanos(5);
        for target in [3, 1, 2] {
            q.push(t, target);
        }
        q.push(Instant::ZERO, 9);
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).map(|e| e.target()).collect();
        assert_eq!(order, [9, 1, 2, 3]);
    }

    proptest! {
        /// The queue agrees with a sorted list under any mix of pushes and pops in which time never decreases, as in a
        /// simulation.
        #[test]
        fn the_total_order_is_kept(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..5_000_000), 1..400)
        ) {
            let mut q = EventQueue::new();
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            let mut n = 0u32;
            for step in steps {
                match step {
                    Some(delay) => {
                        // Coarse times make ties common.
                        let t = now + delay / 1000 * 1000;
                        let at = Instant::from_nanos(t);
                        q.push(at, n ^ 5);
                        model.push((t, n ^ 5));
                        n += 1;
                    }
                    None => {
                        let want = model.iter().copied().min();
                        if let Some(w) = want {
                            model.retain(|e| *e != w);
                            now = w.0;
                        }
                            let got = |e: Option<Entry>| e.map(|e| (e.time().as_nanos(), e.target()));
                        prop_assert_eq!(got(q.pop()), want);
                    }
                }
                prop_assert_eq!(q.len(), model.len());
            }
        }
    }
}

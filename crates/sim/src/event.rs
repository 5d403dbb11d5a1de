//! The event queue, with one total order of all events.
//!
//! Events are ordered by (time, insertion number): ties break by insertion, so that a run never depends on the memory
//! layout of a container. An entry is 16 bytes: the instant, and one word that holds the insertion number (40 bits)
//! above the target (24 bits), so that two integer comparisons order two events.
//!
//! [`EventQueue`] is a hierarchical timing wheel. It was chosen by measurement (`benches/event_queue`): about 25 ns
//! per event whatever the population, where the cost of heaps grows with its logarithm.

use std::collections::VecDeque;

use gargalo_units::Instant;

/// The target of an event: an index that the engine interprets.
pub type Target = u32;

/// Most targets that an engine may have.
pub const MAX_TARGETS: u32 = 1 << TARGET_BITS;

const TARGET_BITS: u32 = 24;
const TARGET_MASK: u64 = (1 << TARGET_BITS) - 1;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    time: u64,
    /// Insertion number, then target.
    order: u64,
}

impl Entry {
    #[inline]
    const fn new(time: Instant, count: u64, target: Target) -> Self {
        Self {
            time: time.as_nanos(),
            order: (count << TARGET_BITS) | target as u64,
        }
    }
    /// When the event is due.
    #[inline]
    pub const fn time(&self) -> Instant {
        Instant::from_nanos(self.time)
    }
    /// The target of the event.
    #[inline]
    pub const fn target(&self) -> Target {
        (self.order & TARGET_MASK) as u32
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
    count: u64,
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
            count: 0,
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

    /// Schedules `target` at `time`, after everything already scheduled for that instant. `time` must not be before
    /// the event taken last.
    #[inline]
    pub fn push(&mut self, time: Instant, target: Target) {
        assert!(target < MAX_TARGETS, "targets have 24 bits");
        let entry = Entry::new(time, self.count, target);
        self.count += 1;
        self.len += 1;
        self.insert(entry);
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
    fn ties_break_by_insertion() {
        let mut q = EventQueue::new();
        let t = Instant::from_nanos(5);
        for target in [3, 1, 2] {
            q.push(t, target);
        }
        q.push(Instant::ZERO, 9);
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).map(|e| e.target()).collect();
        assert_eq!(order, [9, 3, 1, 2]);
    }

    proptest! {
        /// The queue agrees with a sorted list under any mix of pushes and pops in which time never decreases, as in a
        /// simulation.
        #[test]
        fn the_total_order_is_kept(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..5_000_000), 1..400)
        ) {
            let mut q = EventQueue::new();
            let mut model: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            let mut n = 0u64;
            for step in steps {
                match step {
                    Some(delay) => {
                        // Coarse times make ties common.
                        let t = now + delay / 1000 * 1000;
                        let at = Instant::from_nanos(t);
                        q.push(at, n as u32);
                        model.push((t, n));
                        n += 1;
                    }
                    None => {
                        let want = model.iter().copied().min();
                        if let Some(w) = want {
                            model.retain(|e| *e != w);
                            now = w.0;
                        }
                        let want = want.map(|(t, n)| (t, n as u32));
                        let got = |e: Option<Entry>| e.map(|e| (e.time().as_nanos(), e.target()));
                        prop_assert_eq!(got(q.pop()), want);
                    }
                }
                prop_assert_eq!(q.len(), model.len());
            }
        }
    }
}

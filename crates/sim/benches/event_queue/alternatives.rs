//! Event queues that were measured and not chosen; on other machines the result may differ.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gargalo_units::Instant;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    time: u64,
    target: u32,
}

impl Entry {
    #[inline]
    const fn new(time: Instant, target: u32) -> Self {
        let time = time.as_nanos();
        Self { time, target }
    }
    #[inline]
    pub const fn time(&self) -> Instant {
        Instant::from_nanos(self.time)
    }
    #[inline]
    pub const fn target(&self) -> u32 {
        self.target
    }
}

/// The standard library's binary heap.
#[derive(Debug, Default)]
pub struct BinaryHeapQueue {
    heap: BinaryHeap<Reverse<Entry>>,
}

impl BinaryHeapQueue {
    /// Schedules an event.
    #[inline]
    pub fn push(&mut self, time: Instant, target: u32) {
        self.heap.push(Reverse(Entry::new(time, target)));
    }
    /// Removes and returns the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        self.heap.pop().map(|r| r.0)
    }
}

/// A calendar queue (Brown, CACM 1988): buckets of fixed width visited in a circle, each sorted;
/// bucket count and width follow the population.
#[derive(Debug)]
pub struct CalendarQueue {
    buckets: Vec<VecDeque<Entry>>,
    width: u64,
    /// Start of the current bucket's current day.
    day: u64,
    len: usize,
}

impl Default for CalendarQueue {
    fn default() -> Self {
        Self {
            buckets: vec![VecDeque::new(); 16],
            width: 1_000,
            day: 0,
            len: 0,
        }
    }
}

impl CalendarQueue {
    /// Schedules an event, not before the last one taken.
    pub fn push(&mut self, time: Instant, target: u32) {
        self.insert(Entry::new(time, target));
        self.len += 1;
        if self.len > 2 * self.buckets.len() {
            self.resize(self.buckets.len() * 2);
        }
    }

    fn insert(&mut self, entry: Entry) {
        let n = self.buckets.len() as u64;
        let bucket = &mut self.buckets[(entry.time / self.width % n) as usize];
        let at = bucket.partition_point(|e| *e < entry);
        bucket.insert(at, entry);
    }

    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<Entry> {
        if self.len == 0 {
            return None;
        }
        let n = self.buckets.len() as u64;
        for _ in 0..n {
            let bucket = &mut self.buckets[(self.day / self.width % n) as usize];
            if bucket
                .front()
                .is_some_and(|e| e.time < self.day + self.width)
            {
                self.len -= 1;
                let entry = bucket.pop_front();
                if self.len < self.buckets.len() / 4 && self.buckets.len() > 16 {
                    self.resize(self.buckets.len() / 2);
                }
                return entry;
            }
            self.day += self.width;
        }
        // A whole year without an event: jump to the earliest.
        let least = self.buckets.iter().filter_map(|b| b.front()).min()?.time;
        self.day = least / self.width * self.width;
        self.pop()
    }

    fn resize(&mut self, buckets: usize) {
        let mut all: Vec<Entry> = self.buckets.drain(..).flatten().collect();
        all.sort_unstable();
        // Width: three times the mean separation, as Brown proposes.
        if let (Some(a), Some(b)) = (all.first(), all.last())
            && all.len() > 1
        {
            self.width = (3 * (b.time - a.time) / (all.len() as u64 - 1)).max(1);
            self.day = self.day.min(a.time);
        }
        self.day = self.day / self.width * self.width;
        self.buckets = vec![VecDeque::new(); buckets];
        for e in all {
            self.insert(e);
        }
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
pub struct TimingWheel {
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

impl Default for TimingWheel {
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

impl TimingWheel {
    /// Schedules `target` at `time`, which must not be before the event taken last.
    #[inline]
    pub fn push(&mut self, time: Instant, target: u32) {
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

//! Event queues that were measured and not chosen; on other machines the result may differ.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gargalo_units::Instant;

/// A scheduled event, as the engine's queue keeps it: the instant, and an insertion number of 40 bits above the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    time: u64,
    order: u64,
}

impl Entry {
    #[inline]
    const fn new(time: Instant, count: u64, target: u32) -> Self {
        Self {
            time: time.as_nanos(),
            order: (count << 24) | target as u64,
        }
    }
    #[inline]
    const fn key(&self) -> u128 {
        ((self.time as u128) << 64) | self.order as u128
    }
    #[inline]
    pub const fn time(&self) -> Instant {
        Instant::from_nanos(self.time)
    }
    #[inline]
    pub const fn target(&self) -> u32 {
        (self.order & 0xff_ffff) as u32
    }
}

/// The standard library's binary heap.
#[derive(Debug, Default)]
pub struct BinaryHeapQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

impl BinaryHeapQueue {
    /// Schedules an event.
    #[inline]
    pub fn push(&mut self, time: Instant, target: u32) {
        self.heap
            .push(Reverse(Entry::new(time, self.count, target)));
        self.count += 1;
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
    count: u64,
}

impl Default for CalendarQueue {
    fn default() -> Self {
        Self {
            buckets: vec![VecDeque::new(); 16],
            width: 1_000,
            day: 0,
            len: 0,
            count: 0,
        }
    }
}

impl CalendarQueue {
    /// Schedules an event, not before the last one taken.
    pub fn push(&mut self, time: Instant, target: u32) {
        let entry = Entry::new(time, self.count, target);
        self.count += 1;
        self.insert(entry);
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

const ARITY: usize = 4;

/// A 4-ary heap whose root may be a hole: `pop` leaves it, and the next `push` (nearly every event
/// schedules its successor) fills it with a single sift-down.
#[derive(Debug, Default)]
pub struct QuadHeapQueue {
    heap: Vec<Entry>,
    /// The root was popped and its slot is free.
    hole: bool,
    count: u64,
}

impl QuadHeapQueue {
    /// Schedules `target` at `time`, after everything already scheduled for that instant.
    #[inline]
    pub fn push(&mut self, time: Instant, target: u32) {
        let entry = Entry::new(time, self.count, target);
        self.count += 1;
        if self.hole {
            self.hole = false;
            self.sift_down(0, entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        }
    }

    /// Removes and returns the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        self.fill_hole();
        let first = *self.heap.first()?;
        self.hole = true;
        Some(first)
    }

    #[inline]
    fn fill_hole(&mut self) {
        if self.hole {
            self.hole = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sift_down(0, last);
            }
        }
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: Entry) {
        let key = entry.key();
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key() <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    #[inline]
    fn sift_down(&mut self, mut at: usize, entry: Entry) {
        let key = entry.key();
        let len = self.heap.len();
        loop {
            let first = at * ARITY + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            let mut least_key = self.heap[first].key();
            for child in first + 1..(first + ARITY).min(len) {
                let k = self.heap[child].key();
                if k < least_key {
                    least = child;
                    least_key = k;
                }
            }
            if key <= least_key {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = entry;
    }
}

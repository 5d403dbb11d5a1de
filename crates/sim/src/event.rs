//! The event queue, with one total order of all events.
//!
//! Events are ordered by (time, target): ties break by the number of the target, so that a run depends neither on the
//! memory layout of a container nor on the moment at which an event was scheduled.
//!
//! [`EventQueue`] is a 4-ary heap. It was chosen by measurement (docs/simulator.md): most links have one event at a
//! time, so that a hundred flows make some hundreds of entries, which stay in the nearest cache.

use gargalo_units::Instant;

/// The target of an event: an index that the engine interprets.
pub type Target = u32;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Time in nanoseconds, then target.
    key: u128,
}

impl Entry {
    #[inline]
    const fn new(time: Instant, target: Target) -> Self {
        Self {
            key: (time.as_nanos() as u128) << 64 | target as u128,
        }
    }
    /// When the event is due.
    #[inline]
    pub const fn time(&self) -> Instant {
        Instant::from_nanos((self.key >> 64) as u64)
    }
    /// The target of the event.
    #[inline]
    pub const fn target(&self) -> Target {
        self.key as Target
    }
}

const ARITY: usize = 4;

/// A heap whose root may be a hole: [`pop`](Self::pop) leaves it, and the next [`push`](Self::push) fills it on its way
/// down, as nearly every event schedules its successor.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: Vec<Entry>,
    /// The root was taken.
    hole: bool,
}

impl EventQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of waiting events.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole)
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Schedules `target` at `time`.
    #[inline]
    pub fn push(&mut self, time: Instant, target: Target) {
        let entry = Entry::new(time, target);
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(entry);
        }
    }

    /// Removes and returns the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        if self.hole {
            self.hole = false;
            let last = self.heap.pop()?;
            if !self.heap.is_empty() {
                self.sift_down(last);
            }
        }
        let first = *self.heap.first()?;
        self.hole = true;
        Some(first)
    }

    /// Moves the last place up to where `entry` belongs.
    #[inline]
    fn sift_up(&mut self, entry: Entry) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Moves the root down to where `entry` belongs.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let (least, child) = match self.heap.get(first..) {
                Some(&[a, b, c, d, ..]) => {
                    let (ab, cd) = (earlier((a, 0), (b, 1)), earlier((c, 2), (d, 3)));
                    earlier(ab, cd)
                }
                Some([a, rest @ ..]) => {
                    let rest = rest.iter().zip(1..);
                    rest.fold((*a, 0), |least, (e, i)| earlier(least, (*e, i)))
                }
                Some([]) | None => break,
            };
            if entry <= least {
                break;
            }
            self.heap[at] = least;
            at = first + child;
        }
        self.heap[at] = entry;
    }
}

/// The earlier of two entries, each with its place.
#[inline]
fn earlier(a: (Entry, usize), b: (Entry, usize)) -> (Entry, usize) {
    if b.0 < a.0 { b } else { a }
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

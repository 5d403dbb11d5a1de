//! Windowed maximum and minimum in constant space: Kathleen Nichols' algorithm.
//!
//! Three samples are kept: the best of the window, the best since, and the best since that. The
//! answer is exact when the best value is refreshed within the window and otherwise never older
//! than it; the second and third spread over the last three and two quarters of the window so that
//! a successor is available when the best one expires.

use std::marker::PhantomData;

/// Which of two values a filter prefers.
pub trait Order {
    /// Whether `a` is at least as good as `b`.
    fn at_least<V: PartialOrd>(a: V, b: V) -> bool;
}

/// Prefers the greater value.
#[derive(Clone, Copy, Debug)]
pub enum Greatest {}
/// Prefers the lesser value.
#[derive(Clone, Copy, Debug)]
pub enum Least {}

impl Order for Greatest {
    #[inline]
    fn at_least<V: PartialOrd>(a: V, b: V) -> bool {
        a >= b
    }
}
impl Order for Least {
    #[inline]
    fn at_least<V: PartialOrd>(a: V, b: V) -> bool {
        a <= b
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample<V> {
    at: u64,
    value: V,
}

/// The best value over a sliding window of rounds or nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Windowed<V, O> {
    samples: [Sample<V>; 3],
    window: u64,
    order: PhantomData<O>,
}

/// The greatest value over a sliding window.
pub type WindowedMax<V> = Windowed<V, Greatest>;
/// The least value over a sliding window.
pub type WindowedMin<V> = Windowed<V, Least>;

impl<V: Copy + PartialOrd, O: Order> Windowed<V, O> {
    /// A filter over `window` ticks of the caller's clock (rounds, or nanoseconds) that holds
    /// `value` as seen at tick `at`.
    pub fn new(window: u64, at: u64, value: V) -> Self {
        Self {
            samples: [Sample { at, value }; 3],
            window,
            order: PhantomData,
        }
    }

    /// The best value of the window.
    #[inline]
    pub fn get(&self) -> V {
        self.samples[0].value
    }

    /// When the best value was seen.
    #[inline]
    pub fn seen_at(&self) -> u64 {
        self.samples[0].at
    }

    /// From now on the window is this long.
    #[inline]
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Resets the filter to `value`.
    #[inline]
    pub fn reset(&mut self, at: u64, value: V) {
        self.samples = [Sample { at, value }; 3];
    }

    /// Adds a measurement; ticks never decrease. Returns the best value of the window.
    #[inline]
    pub fn update(&mut self, at: u64, value: V) -> V {
        let new = Sample { at, value };
        let [first, second, third] = &mut self.samples;
        if O::at_least(value, first.value) || at.saturating_sub(third.at) > self.window {
            // A new best, or nothing left in the window.
            self.reset(at, value);
            return value;
        }
        if O::at_least(value, second.value) {
            *second = new;
            *third = new;
        } else if O::at_least(value, third.value) {
            *third = new;
        }
        self.age(new);
        self.get()
    }

    /// Moves successors up as time passes.
    #[inline]
    fn age(&mut self, new: Sample<V>) {
        let [first, second, third] = &mut self.samples;
        let elapsed = new.at.saturating_sub(first.at);
        if elapsed > self.window {
            *first = *second;
            *second = *third;
            *third = new;
            if new.at.saturating_sub(first.at) > self.window {
                *first = *second;
                *second = *third;
            }
        } else if second.at == first.at && elapsed > self.window / 4 {
            // A quarter without a better second: take it from the second quarter.
            *second = new;
            *third = new;
        } else if third.at == second.at && elapsed > self.window / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_peak_expires_after_the_window() {
        let mut f: WindowedMax<u64> = Windowed::new(10, 0, 0);
        assert_eq!(f.update(1, 100), 100);
        for t in 2..=11 {
            assert_eq!(f.update(t, 50), 100, "tick {t}");
        }
        assert_eq!(f.update(12, 50), 50);
    }

    #[test]
    fn a_minimum_follows_the_same_rule() {
        let mut f: WindowedMin<u64> = Windowed::new(10, 0, 70);
        assert_eq!(f.update(1, 40), 40);
        assert_eq!(f.update(11, 60), 40);
        assert_eq!(f.update(12, 60), 60);
        assert_eq!(f.update(13, 30), 30);
    }

    #[test]
    fn silence_longer_than_the_window_forgets_everything() {
        let mut f: WindowedMax<u64> = Windowed::new(10, 0, 9);
        assert_eq!(f.update(100, 1), 1);
    }

    proptest! {
        /// The answer is a value of the window, at least as good as everything of its last quarter.
        #[test]
        fn bounded_by_the_exact_filter(
            steps in prop::collection::vec((0u64..4, 0u64..1000), 1..200)
        ) {
            const WINDOW: u64 = 16;
            let mut f: WindowedMax<u64> = Windowed::new(WINDOW, 0, 0);
            let mut seen = vec![(0, 0)];
            let mut t = 0;
            for (dt, v) in steps {
                t += dt;
                seen.push((t, v));
                let got = f.update(t, v);
                let exact = seen
                    .iter()
                    .filter(|(at, _)| t - at <= WINDOW)
                    .map(|&(_, v)| v)
                    .max()
                    .unwrap();
                prop_assert!(got <= exact);
                let recent = seen
                    .iter()
                    .filter(|(at, _)| t - at <= WINDOW / 4)
                    .map(|&(_, v)| v)
                    .max()
                    .unwrap();
                prop_assert!(got >= recent, "{got} < {recent}");
                prop_assert!(t - f.seen_at() <= WINDOW);
            }
        }
    }
}

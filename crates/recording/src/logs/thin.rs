//! Samples that are an interval apart: a log may have many more.

use gargalo_units::{Duration, Instant};

/// What has a time.
pub trait Timed {
    /// It.
    fn time(&self) -> Instant;
}

/// Keeps samples, given in the order of time, that are at least an interval apart, and the last one.
#[derive(Debug)]
pub struct Thin<T> {
    apart: Duration,
    kept: Vec<T>,
    /// The latest, if it is too near to the one before to be kept.
    latest: Option<T>,
}

impl<T: Timed> Thin<T> {
    /// Without samples.
    pub fn new(interval: Duration) -> Self {
        Self {
            // A program that is to write once in each interval is at times a little early.
            apart: interval.mul_f64(0.9),
            kept: Vec::new(),
            latest: None,
        }
    }

    /// Takes a sample.
    pub fn push(&mut self, sample: T) {
        let before = self.kept.last().map(T::time);
        let is_near = |t: Instant| sample.time().saturating_since(t) < self.apart;
        if before.is_some_and(is_near) {
            self.latest = Some(sample);
        } else {
            self.kept.push(sample);
            self.latest = None;
        }
    }

    /// The samples.
    pub fn finish(mut self) -> Vec<T> {
        self.kept.extend(self.latest);
        self.kept
    }

    /// Those of a list that are kept.
    pub fn of(samples: Vec<T>, interval: Duration) -> Vec<T> {
        let mut thin = Self::new(interval);
        samples.into_iter().for_each(|s| thin.push(s));
        thin.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Timed for Instant {
        fn time(&self) -> Instant {
            *self
        }
    }

    #[test]
    fn samples_are_an_interval_apart_and_the_last_one_is_kept() {
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let thinned = |interval: u64, times: &[u64]| {
            let times = times.iter().map(|t| ms(*t)).collect();
            let kept = Thin::of(times, Duration::from_millis(interval));
            let kept: Vec<_> = kept.iter().map(|t| t.as_nanos() / 1_000_000).collect();
            kept
        };
        assert_eq!(
            thinned(100, &[0, 30, 60, 99, 130, 199, 205]),
            [0, 99, 199, 205]
        );
        // One that is written every 100 ms, more or less.
        assert_eq!(thinned(100, &[0, 98, 200, 301]), [0, 98, 200, 301]);
        assert_eq!(thinned(0, &[5, 5, 6]), [5, 5, 6]);
        assert_eq!(thinned(100, &[]), [0u64; 0]);
    }
}

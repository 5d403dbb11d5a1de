//! A log-linear histogram of delays, cheap enough for every packet.

use gargalo_units::Duration;

/// Sub-buckets per power of two, as a power of two.
const PRECISION: u32 = 6;
const SUB: u64 = 1 << PRECISION;

/// How often each delay occurred, with less than 1% relative error.
///
/// Log-linear as in HdrHistogram: 64 equal buckets in every power of two of nanoseconds, exact below
/// 128 ns. A bucket is at most 1/64 of its value wide and is reported by its middle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayHistogram {
    /// Grows to the largest value seen, at most 3776 buckets.
    buckets: Vec<u64>,
    sum: u128,
    max: Duration,
}

#[inline]
fn index(nanos: u64) -> usize {
    // Below 2^PRECISION the shift is zero and the value is its own index.
    let shift = (63 - (nanos | SUB).leading_zeros()).saturating_sub(PRECISION);
    (u64::from(shift) * SUB + (nanos >> shift)) as usize
}

/// Smallest value and width of a bucket.
fn range(index: usize) -> (u64, u64) {
    let i = index as u64;
    if i < 2 * SUB {
        return (i, 1);
    }
    let shift = i / SUB - 1;
    ((i - shift * SUB) << shift, 1 << shift)
}

impl DelayHistogram {
    /// Counts one delay.
    #[inline]
    pub fn record(&mut self, delay: Duration) {
        let i = index(delay.as_nanos());
        match self.buckets.get_mut(i) {
            Some(n) => *n += 1,
            None => self.grow(i),
        }
        self.sum += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }

    /// Counts a delay of zero.
    #[inline]
    pub fn record_zero(&mut self) {
        match self.buckets.first_mut() {
            Some(n) => *n += 1,
            None => self.grow(0),
        }
    }

    #[cold]
    fn grow(&mut self, i: usize) {
        self.buckets.resize(i + 1, 0);
        self.buckets[i] = 1;
    }

    /// How many delays were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The average, exact; zero if empty.
    pub fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count())).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The largest, exact; zero if empty.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The delay that `percent` percent of the packets do not exceed (nearest rank), within 1%;
    /// zero if empty. `percent` is clamped to 0..=100.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = libm::ceil(percent.clamp(0.0, 100.0) / 100.0 * self.count() as f64) as u64;
        let rank = rank.max(1);
        let mut seen = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                let (low, width) = range(i);
                return Duration::from_nanos(low + width / 2).min(self.max);
            }
        }
        self.max
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a += b;
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_contiguous_and_contain_their_values() {
        let mut expected = 0;
        for i in 0..3000 {
            let (low, width) = range(i);
            assert_eq!(low, expected, "bucket {i}");
            assert_eq!(index(low), i);
            assert_eq!(index(low + width - 1), i);
            expected = low + width;
        }
        assert!(index(u64::MAX) < 3776);
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let h = DelayHistogram::default();
        assert_eq!(h.percentile(50.0), Duration::ZERO);
        assert_eq!(h.mean(), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_one_percent(
            mut values in proptest::collection::vec(0u64..10_000_000_000, 1..300),
            percent in 0.0f64..100.0,
        ) {
            let mut h = DelayHistogram::default();
            for v in &values {
                h.record(Duration::from_nanos(*v));
            }
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let got = h.percentile(percent).as_nanos() as f64;
            prop_assert!((got - exact).abs() <= exact * 0.01, "{got} {exact}");
            let mean = values.iter().sum::<u64>() / values.len() as u64;
            prop_assert_eq!(h.mean().as_nanos(), mean);
            prop_assert_eq!(h.max().as_nanos(), *values.last().unwrap());
        }
    }
}

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
    /// How often there was no delay at all: most links never have another.
    zeros: u64,
    /// The bucket with which `buckets` begins: the first of a power of two.
    first: usize,
    /// From the smallest value seen to the largest, at most 3776 buckets.
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
        if delay.is_zero() {
            return self.record_zero();
        }
        let i = index(delay.as_nanos());
        match self.buckets.get_mut(i.wrapping_sub(self.first)) {
            Some(n) => *n += 1,
            None => *self.bucket(i) += 1,
        }
        self.sum += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }

    /// Counts a delay of zero.
    #[inline]
    pub fn record_zero(&mut self) {
        self.zeros += 1;
    }

    /// A bucket, made if it is not there.
    #[cold]
    fn bucket(&mut self, i: usize) -> &mut u64 {
        let octave = i - i % SUB as usize;
        if self.buckets.is_empty() {
            self.first = octave;
        }
        if octave < self.first {
            let more = std::iter::repeat_n(0, self.first - octave);
            self.buckets.splice(0..0, more);
            self.first = octave;
        }
        let at = i - self.first;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, 0);
        }
        &mut self.buckets[at]
    }

    /// How many delays were counted.
    pub fn count(&self) -> u64 {
        self.zeros + self.buckets.iter().sum::<u64>()
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
        let mut seen = self.zeros;
        if seen >= rank {
            return Duration::ZERO;
        }
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                let (low, width) = range(self.first + i);
                return Duration::from_nanos(low + width / 2).min(self.max);
            }
        }
        self.max
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.zeros += other.zeros;
        if let Some(last) = other.buckets.len().checked_sub(1) {
            self.bucket(other.first + last);
            self.bucket(other.first);
            let same = self.buckets.iter_mut().skip(other.first - self.first);
            for (a, b) in same.zip(&other.buckets) {
                *a += b;
            }
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

    #[test]
    fn delays_below_the_first_one_and_none_at_all_are_counted() {
        let ms = Duration::from_millis;
        let near =
            |a: Duration, b: Duration| a.as_nanos().abs_diff(b.as_nanos()) * 100 < b.as_nanos();
        let mut h = DelayHistogram::default();
        h.record_zero();
        h.record_zero();
        assert_eq!((h.count(), h.percentile(100.0)), (2, Duration::ZERO));
        let mut low = DelayHistogram::default();
        low.record(ms(8));
        low.record(ms(2));
        for (percent, expected) in [(50.0, 2), (100.0, 8)] {
            assert!(near(low.percentile(percent), ms(expected)));
        }
        let mut high = DelayHistogram::default();
        high.record(ms(900));
        for (mut one, other) in [(low.clone(), &high), (high.clone(), &low)] {
            one.merge(other);
            one.merge(&h);
            assert_eq!((one.count(), one.max()), (5, ms(900)));
            assert_eq!(one.percentile(40.0), Duration::ZERO);
            assert!(near(one.percentile(60.0), ms(2)));
            assert!(near(one.percentile(80.0), ms(8)));
            assert_eq!(one.percentile(100.0), ms(900));
            assert_eq!(one.mean(), ms(182));
        }
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

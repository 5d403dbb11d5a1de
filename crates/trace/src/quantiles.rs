use gargalo_units::Duration;

/// Linear buckets per power of two, as a power of two: bucket width is at most 1/64 of the value.
const SUB_BITS: u32 = 6;
const SUB: usize = 1 << SUB_BITS;

/// Quantiles of a stream of durations: a log-linear histogram.
///
/// Values below 128 ns are exact; above, a bucket spans 1/64 of its lower bound, so that the
/// reported mid-point is within 0.8% of the true quantile. Minimum, maximum, mean and count are
/// exact. Only the octaves between smallest and largest value are stored (512 bytes each): the
/// round-trip times of a flow take 1 to 4 KiB, where a general HDR histogram of the same precision
/// starts at zero and takes about 20. The result does not depend on the order of the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Counts of the buckets from `first` on.
    counts: Vec<u64>,
    /// Bucket number of `counts[0]`: a multiple of `SUB` unless shrunk.
    first: usize,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Summary of a distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileSummary {
    /// Smallest sample, exact.
    pub min: Duration,
    /// Arithmetic mean, rounded down to a nanosecond.
    pub mean: Duration,
    /// Median, within 0.8%.
    pub p50: Duration,
    /// 95th percentile, within 0.8%.
    pub p95: Duration,
    /// 99th percentile, within 0.8%.
    pub p99: Duration,
    /// Largest sample, exact.
    pub max: Duration,
}

impl Quantiles {
    /// A distribution without samples.
    pub const fn new() -> Self {
        Self {
            counts: Vec::new(),
            first: 0,
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
        }
    }

    /// Adds a sample.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.record_n(value, 1);
    }

    /// Adds `n` samples of the same value.
    #[inline]
    pub fn record_n(&mut self, value: Duration, n: u64) {
        if n == 0 {
            return;
        }
        let v = value.as_nanos();
        let bucket = bucket_of(v);
        // One test covers both sides: below `first` the difference wraps to a huge number.
        let i = bucket.wrapping_sub(self.first);
        if i < self.counts.len() {
            self.counts[i] += n;
        } else {
            self.grow(bucket);
            self.counts[bucket - self.first] += n;
        }
        if self.count == 0 {
            self.min = v;
            self.max = v;
        } else {
            self.min = self.min.min(v);
            self.max = self.max.max(v);
        }
        self.count += n;
        self.sum += u128::from(v) * u128::from(n);
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.grow(other.first);
        self.grow(other.first + other.counts.len() - 1);
        let offset = other.first - self.first;
        for (mine, theirs) in self.counts[offset..].iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        let (min, max) = (other.min, other.max);
        if self.count == 0 {
            (self.min, self.max) = (min, max);
        } else {
            (self.min, self.max) = (self.min.min(min), self.max.max(max));
        }
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Gives back the memory of buckets without a sample below the first and above the last with one.
    pub fn shrink(&mut self) {
        let used = |n: &u64| *n > 0;
        let Some(start) = self.counts.iter().position(used) else {
            return;
        };
        let end = self.counts.iter().rposition(used).map_or(start, |i| i + 1);
        self.counts = self.counts[start..end].to_vec();
        self.first += start;
    }

    /// Number of samples.
    #[inline]
    pub const fn count(&self) -> u64 {
        self.count
    }
    /// Whether there is no sample.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// The smallest sample.
    pub fn min(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.min))
    }
    /// The largest sample.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.max))
    }
    /// The arithmetic mean, rounded down to a nanosecond.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        // A mean of 64-bit values fits in 64 bits.
        Some(Duration::from_nanos(
            u64::try_from(mean).unwrap_or(u64::MAX),
        ))
    }

    /// The `p`-quantile by nearest rank: the smallest value such that at least `p` of the samples are
    /// not above it, within 0.8%. `p` is clamped to 0..=1; NaN counts as 0.
    pub fn quantile(&self, p: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        // The conversion saturates: NaN and negative become 0.
        let rank = libm::ceil(p * self.count as f64) as u64;
        if rank >= self.count {
            return self.max();
        }
        if rank <= 1 {
            return self.min();
        }
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                let v = middle_of(self.first + i).clamp(self.min, self.max);
                return Some(Duration::from_nanos(v));
            }
        }
        self.max()
    }

    /// The summary, if there are samples.
    pub fn summary(&self) -> Option<QuantileSummary> {
        Some(QuantileSummary {
            min: self.min()?,
            mean: self.mean()?,
            p50: self.quantile(0.5)?,
            p95: self.quantile(0.95)?,
            p99: self.quantile(0.99)?,
            max: self.max()?,
        })
    }

    /// Makes room for a bucket, in whole octaves.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        let low = bucket / SUB * SUB;
        if self.counts.is_empty() {
            self.first = low;
        } else if low < self.first {
            let missing = self.first - low;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = low;
        }
        let needed = low + SUB - self.first;
        if self.counts.len() < needed {
            self.counts.resize(needed, 0);
        }
    }
}

#[inline]
fn bucket_of(v: u64) -> usize {
    // Octave 0 and 1 have width 1: v | SUB makes the shift zero there.
    let shift = 63 - SUB_BITS - (v | SUB as u64).leading_zeros();
    ((shift as usize) << SUB_BITS) + (v >> shift) as usize
}

/// The middle of a bucket; exact where the width is one.
fn middle_of(bucket: usize) -> u64 {
    if bucket < 2 * SUB {
        return bucket as u64;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let low = ((bucket - (shift << SUB_BITS)) as u64) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Quantiles {
        let mut q = Quantiles::new();
        for v in values {
            q.record(Duration::from_nanos(*v));
        }
        q
    }

    #[test]
    fn nothing_has_no_quantiles() {
        assert_eq!(Quantiles::new().summary(), None);
        assert_eq!(Quantiles::new().quantile(0.5), None);
    }

    #[test]
    fn buckets_are_contiguous() {
        let edges = (0..4096).chain((12..64).flat_map(|b| [(1u64 << b) - 1, 1 << b]));
        let mut last = 0;
        for v in edges {
            let b = bucket_of(v);
            assert!(b == last || b == last + 1 || v >= 4096, "{v}");
            assert!(b >= last);
            assert_eq!(bucket_of(middle_of(b)), b);
            last = b;
        }
        assert!(middle_of(bucket_of(u64::MAX)) > u64::MAX / 64 * 63);
    }

    #[test]
    fn a_flow_stays_small() {
        let mut q = Quantiles::new();
        for us in 20_000..400_000 {
            q.record(Duration::from_micros(us));
        }
        assert!(q.counts.capacity() * 8 <= 8192);
        let s = q.summary().unwrap();
        assert_eq!(s.min, Duration::from_micros(20_000));
        assert_eq!(s.max, Duration::from_micros(399_999));
        assert_eq!(s.mean, Duration::from_nanos(209_999_500));
    }

    #[test]
    fn what_is_shrunk_holds_its_samples() {
        let mut q = of(&[20_000_000, 21_000_000, 100_000_000]);
        q.shrink();
        assert_eq!(q.counts.capacity(), q.counts.len());
        assert_eq!((q.counts[0], q.counts.last()), (1, Some(&1)));
        let mut none = Quantiles::new();
        none.shrink();
        assert_eq!(none, Quantiles::new());
    }

    proptest! {
        #[test]
        fn within_one_percent_of_the_sorted_list(
            mut values in prop::collection::vec(prop_oneof![0..300u64, 0..10_000_000_000u64, any::<u64>()], 1..200),
            p in 0.0..=1.0f64,
        ) {
            let q = of(&values);
            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let got = q.quantile(p).unwrap().as_nanos() as f64;
            prop_assert!((got - exact).abs() <= exact / 100.0, "{got} for {exact}");
        }

        #[test]
        fn order_and_grouping_do_not_matter(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(0..1_000_000u64, 0..50),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together: Vec<_> = a.iter().chain(&b).copied().collect();
            let backwards: Vec<_> = together.iter().rev().copied().collect();
            prop_assert_eq!(merged.summary(), of(&together).summary());
            prop_assert_eq!(of(&backwards), of(&together));
        }

        #[test]
        fn shrinking_changes_no_quantile(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(0..1_000_000u64, 0..50),
            more in prop::collection::vec(any::<u64>(), 0..10),
        ) {
            let (mut shrunk, mut other) = (of(&a), of(&b));
            let before = shrunk.summary();
            shrunk.shrink();
            prop_assert_eq!(shrunk.summary(), before);
            other.shrink();
            shrunk.merge(&other);
            more.iter().for_each(|v| shrunk.record(Duration::from_nanos(*v)));
            let all: Vec<_> = a.into_iter().chain(b).chain(more).collect();
            prop_assert_eq!(shrunk.summary(), of(&all).summary());
        }
    }
}

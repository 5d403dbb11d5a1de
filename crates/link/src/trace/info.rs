//! Statistics of a trace.

use gargalo_units::{Bytes, Duration, Instant, Rate};

use super::{DeliveryTrace, MS, PAYLOAD_BYTES};

/// Statistics of a trace, for a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceInfo {
    /// Opportunities in a period.
    pub opportunities: usize,
    /// Length of the period.
    pub duration: Duration,
    /// Average rate, 1500 bytes an opportunity.
    pub mean_rate: Rate,
    /// Longest time without an opportunity, over the repetition too.
    pub longest_gap: Duration,
    /// Rate of whole one-second bins (of the whole trace if it is shorter): the smallest.
    pub min_rate: Rate,
    /// 5th percentile of the bins (nearest rank).
    pub rate_p5: Rate,
    /// 25th percentile of the bins.
    pub rate_p25: Rate,
    /// Median of the bins.
    pub rate_p50: Rate,
    /// 75th percentile of the bins.
    pub rate_p75: Rate,
    /// 95th percentile of the bins.
    pub rate_p95: Rate,
    /// Largest rate of a bin.
    pub max_rate: Rate,
}

impl DeliveryTrace {
    /// Rates of consecutive bins of one period, with the begin of each; the last bin is left out
    /// unless it is whole or the only one. Zero-length bins give nothing.
    pub fn rates(&self, bin: Duration) -> Vec<(Instant, Rate)> {
        let (width, period) = (bin.as_nanos(), self.period_nanos());
        if width == 0 {
            return Vec::new();
        }
        let width = width.min(period);
        (0..period / width)
            .map(|i| {
                let begin = Instant::from_nanos(i * width);
                let end = Instant::from_nanos((i + 1) * width);
                // The first bin includes opportunities at zero, which repeat the end of the period.
                let bytes = self.capacity(begin, end).get();
                let rate = Rate::from_transfer(Bytes::new(bytes), Duration::from_nanos(width));
                (begin, rate)
            })
            .collect()
    }

    /// The gaps between consecutive opportunities, in order, and last the gap across the repetition.
    pub fn gaps(&self) -> impl Iterator<Item = Duration> + '_ {
        let first = self.times.first().copied().unwrap_or_default();
        self.times
            .windows(2)
            .map(|w| w[1] - w[0])
            .chain([first])
            .map(|ms| Duration::from_nanos(u64::from(ms) * MS))
    }

    /// Summarises the trace: its length, its gaps and its rates.
    pub fn info(&self) -> TraceInfo {
        let mut rates: Vec<_> = self
            .rates(Duration::from_secs(1))
            .into_iter()
            .map(|(_, rate)| rate)
            .collect();
        rates.sort_unstable();
        let percentile = |p: usize| {
            let rank = (rates.len() * p).div_ceil(100).max(1);
            rates.get(rank - 1).copied().unwrap_or(Rate::ZERO)
        };
        TraceInfo {
            opportunities: self.times.len(),
            duration: self.period(),
            mean_rate: self.mean_rate(),
            longest_gap: self.gaps().max().unwrap_or_default(),
            min_rate: percentile(0),
            rate_p5: percentile(5),
            rate_p25: percentile(25),
            rate_p50: percentile(50),
            rate_p75: percentile(75),
            rate_p95: percentile(95),
            max_rate: percentile(100),
        }
    }

    /// The time from `t` to the next opportunity, across repetitions.
    pub fn wait(&self, t: Instant) -> Duration {
        let period = self.period_nanos();
        let within = t.as_nanos() % period;
        let i = self
            .times
            .partition_point(|ms| u64::from(*ms) * MS <= within);
        // The last opportunity is at the end of the period, so there always is a later one.
        let at = self.times.get(i).map_or(period, |ms| u64::from(*ms) * MS);
        Duration::from_nanos(at - within)
    }

    /// IP bytes of one period.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.times.len() as u64 * PAYLOAD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_arithmetic() {
        // One second at 12 Mbit/s, one at 6, half a second at 12.
        let times = (1..=1000)
            .chain((1002..=2000).step_by(2))
            .chain(2001..=2500);
        let t = DeliveryTrace::from_millis(times).unwrap();
        let info = t.info();
        assert_eq!(info.opportunities, 2000);
        assert_eq!(info.duration, Duration::from_millis(2500));
        assert_eq!(info.mean_rate, Rate::from_bps(9_600_000));
        assert_eq!(info.min_rate, Rate::from_mbps(6));
        assert_eq!(info.max_rate, Rate::from_mbps(12));
        assert_eq!(info.rate_p50, Rate::from_mbps(6));
        assert_eq!(info.longest_gap, Duration::from_millis(2));
        assert_eq!(t.bytes(), Bytes::new(3_000_000));
    }

    #[test]
    fn gaps_go_over_the_repetition() {
        let t = DeliveryTrace::parse("40\n50\n").unwrap();
        let gaps: Vec<_> = t.gaps().map(|g| g.as_millis()).collect();
        assert_eq!(gaps, [10, 40]);
        let wait = |ms| t.wait(Instant::from_nanos(ms * MS)).as_millis();
        assert_eq!(wait(0), 40);
        assert_eq!(wait(40), 10);
        assert_eq!(wait(50), 40);
        assert_eq!(wait(145), 5);
    }

    #[test]
    fn short_traces_have_one_bin() {
        let t = DeliveryTrace::parse("1\n2\n").unwrap();
        assert_eq!(t.rates(Duration::from_secs(1)).len(), 1);
        assert_eq!(t.info().min_rate, t.mean_rate());
        assert!(t.rates(Duration::ZERO).is_empty());
    }
}

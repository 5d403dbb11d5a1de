//! Round trips as a sender measures them, and the timers that it sets by them.

use gargalo_trace::Quantiles;
use gargalo_units::Duration;

/// Least retransmission timeout of today's senders. RFC 6298 has 1 s; Linux and most others take 200 ms.
const MIN_RTO: Duration = Duration::from_millis(200);
const FIRST_RTO: Duration = Duration::from_secs(1);
/// That of a QUIC sender: three times an initial round trip of 333 ms (RFC 9002, section 6.2.2).
const FIRST_PROBE: Duration = Duration::from_millis(999);
/// Granularity of timers of QUIC (RFC 9002, section 6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// All round trips of a direction, and the smoothed one (RFC 6298).
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// The samples.
    pub all: Quantiles,
    latest: Option<Duration>,
    srtt: Option<Duration>,
    variation: Duration,
}

impl RoundTrips {
    /// Takes a sample (RFC 6298, section 2).
    pub fn record(&mut self, sample: Duration) {
        self.record_delayed(sample, Duration::ZERO);
    }

    /// Takes a sample of which the receiver says that it has delayed the acknowledgement for so long: that is taken off
    /// before smoothing, unless the sample gets smaller than the least (RFC 9002, section 5.3).
    pub fn record_delayed(&mut self, sample: Duration, delay: Duration) {
        self.all.record(sample);
        self.latest = Some(sample);
        let least = self.all.min().unwrap_or(sample);
        let is_first = self.srtt.is_none();
        match sample >= least + delay && !is_first {
            true => self.smooth(sample.saturating_sub(delay)),
            false => self.smooth(sample),
        }
    }

    fn smooth(&mut self, sample: Duration) {
        match self.srtt {
            None => {
                self.srtt = Some(sample);
                self.variation = sample.mul_f64(0.5);
            }
            Some(srtt) => {
                let (ns, srtt) = (sample.as_nanos(), srtt.as_nanos());
                let off = ns.abs_diff(srtt);
                let variation = self.variation.as_nanos();
                self.variation = Duration::from_nanos(variation - variation / 4 + off / 4);
                self.srtt = Some(Duration::from_nanos(srtt - srtt / 8 + ns / 8));
            }
        }
    }

    /// The last sample.
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The smoothed round trip; `None` before the first sample.
    pub const fn smoothed(&self) -> Option<Duration> {
        self.srtt
    }

    /// After how long without an acknowledgement a QUIC sender sends a probe, without the receiver's delay and without
    /// backoff (RFC 9002, section 6.2.1).
    pub fn probe_timeout(&self) -> Duration {
        match self.srtt {
            Some(srtt) => srtt + self.variation.saturating_mul(4).max(GRANULARITY),
            None => FIRST_PROBE,
        }
    }

    /// After how long a sender retransmits what nobody acknowledges, at the earliest.
    pub fn timeout(&self) -> Duration {
        match self.srtt {
            Some(srtt) => srtt + self.variation.saturating_mul(4).max(MIN_RTO),
            None => FIRST_RTO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_smoothed_as_in_rfc_6298() {
        let ms = Duration::from_millis;
        let mut trips = RoundTrips::default();
        assert_eq!((trips.smoothed(), trips.timeout()), (None, FIRST_RTO));
        trips.record(ms(80));
        // Variation 40 ms: four of them are less than the least.
        assert_eq!((trips.smoothed(), trips.timeout()), (Some(ms(80)), ms(280)));
        trips.record(ms(480));
        // 80 + 400/8; variation 3/4 of 40 ms and 1/4 of 400 ms.
        assert_eq!(
            (trips.smoothed(), trips.timeout()),
            (Some(ms(130)), ms(130 + 4 * 130))
        );
    }

    #[test]
    fn delays_of_acknowledgements_are_taken_off_as_in_rfc_9002() {
        let ms = Duration::from_millis;
        let mut trips = RoundTrips::default();
        assert_eq!(trips.probe_timeout(), ms(999));
        // The first sample counts as it is.
        trips.record_delayed(ms(80), ms(10));
        assert_eq!(trips.smoothed(), Some(ms(80)));
        // 104 - 24, and 90 without the 20 that would make it less than the least.
        trips.record_delayed(ms(104), ms(24));
        assert_eq!(trips.smoothed(), Some(ms(80)));
        trips.record_delayed(ms(88), ms(20));
        assert_eq!(trips.smoothed(), Some(ms(81)));
        assert_eq!(trips.all.min(), Some(ms(80)));
        // The variation: 40, 30, and 24.5 with the 8 of the last.
        assert_eq!(trips.probe_timeout(), ms(81 + 98));
    }
}

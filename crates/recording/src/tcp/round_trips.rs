//! Round trips as a sender measures them, and the timers that it sets by them.

use gargalo_trace::Quantiles;
use gargalo_units::Duration;

/// Least retransmission timeout of today's senders. RFC 6298 has 1 s; Linux and most others take 200 ms.
const MIN_RTO: Duration = Duration::from_millis(200);
const FIRST_RTO: Duration = Duration::from_secs(1);

/// All round trips of a direction, and the smoothed one (RFC 6298).
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// The samples.
    pub all: Quantiles,
    srtt: Option<Duration>,
    variation: Duration,
}

impl RoundTrips {
    /// Takes a sample (RFC 6298, section 2).
    pub fn record(&mut self, sample: Duration) {
        self.all.record(sample);
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

    /// The smoothed round trip; `None` before the first sample.
    pub const fn smoothed(&self) -> Option<Duration> {
        self.srtt
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
}

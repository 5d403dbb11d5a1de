//! The round-trip times that controllers get.

use gargalo_units::Duration;

use super::ours;

/// RFC 9002 §6.1.2: kGranularity.
const GRANULARITY: Duration = Duration::from_millis(1);

/// Smoothed, latest and minimum round-trip time of a path.
///
/// The smoothed one is noq's, which subtracts the peer's acknowledgement delays. noq updates it after it has
/// reported an acknowledgement, so it lacks the latest sample, except for the first one.
#[derive(Clone, Debug, Default)]
pub(super) struct Rtt {
    pub(super) smoothed: Option<Duration>,
    pub(super) latest: Option<Duration>,
    pub(super) min: Option<Duration>,
    pub(super) var: Duration,
}

impl Rtt {
    /// Sets noq's estimate before the current acknowledgement.
    pub(super) fn before(&mut self, smoothed: std::time::Duration) {
        if self.latest.is_some() {
            self.smoothed = Some(ours(smoothed));
        }
    }

    /// Adds a sample of the current acknowledgement.
    pub(super) fn sample(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.var = rtt / 2;
            }
            Some(s) => {
                let off = s.saturating_sub(rtt).max(rtt.saturating_sub(s));
                self.var = self.var - self.var / 4 + off / 4;
            }
        }
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
    }

    /// Probe timeout without the peer's delay and backoff (RFC 9002 §6.2.1).
    pub(super) fn timeout(&self) -> Duration {
        let spread = (self.var * 4).max(GRANULARITY);
        self.smoothed.unwrap_or(Duration::ZERO) + spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_counts_at_once_and_later_ones_are_noqs() {
        let mut r = Rtt::default();
        let ms = Duration::from_millis;
        r.before(std::time::Duration::from_millis(333)); // a guess: there is no sample yet
        assert_eq!(r.smoothed, None);
        r.sample(ms(100));
        assert_eq!((r.smoothed, r.min), (Some(ms(100)), Some(ms(100))));
        assert_eq!(r.timeout(), ms(300));
        r.before(std::time::Duration::from_millis(99));
        r.sample(ms(91));
        assert_eq!(r.smoothed, Some(ms(99)));
        assert_eq!((r.latest, r.min), (Some(ms(91)), Some(ms(91))));
    }
}

//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use gargalo_units::{Duration, Instant};

use crate::config::Config;

/// Timeout when data transmission begins after a SYN was retransmitted (RFC 6298 §5.7).
const AFTER_SYN_LOSS: Duration = Duration::from_secs(3);
/// Slack of a tail loss probe (Linux: `TCP_TIMEOUT_MIN`).
const MOST_SLACK: Duration = Duration::from_millis(2);
/// The least slack: no host has finer timers.
const LEAST_SLACK: Duration = Duration::from_micros(10);
/// Bound on the backoff: the maximum timeout is reached before.
const MAX_BACKOFF: u32 = 16;

/// SRTT, RTTVAR, RTO and the minimum of a connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    latest: Option<Duration>,
    min: Option<Duration>,
    base: Duration,
    /// The timeout: `base` with its backoff, at most `most`.
    rto: Duration,
    backoff: u32,
    /// Clock granularity G (RFC 6298 §2).
    granularity: Duration,
    least: Duration,
    above_srtt: bool,
    most: Duration,
}

impl RttEstimator {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            srtt: None,
            rttvar: Duration::ZERO,
            latest: None,
            min: None,
            base: config.syn_timeout,
            rto: config.syn_timeout.min(config.max_rto),
            backoff: 0,
            granularity: config.clock_granularity,
            least: config.min_rto,
            above_srtt: config.min_rto_above_srtt,
            most: config.max_rto,
        }
    }

    /// The handshake lost a SYN and gave no sample.
    pub(crate) fn on_syn_lost(&mut self) {
        self.base = self.base.max(AFTER_SYN_LOSS);
        self.set_backoff(self.backoff);
    }

    #[inline]
    fn set_backoff(&mut self, backoff: u32) {
        self.backoff = backoff;
        self.rto = self.base.saturating_mul(1 << backoff).min(self.most);
    }

    /// A sample of an unambiguous segment (RFC 6298 §2.2 and §2.3).
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        let r = rtt.as_nanos();
        let srtt = match self.srtt {
            None => {
                self.rttvar = Duration::from_nanos(r / 2);
                r
            }
            Some(s) => {
                let s = s.as_nanos();
                let v = self.rttvar.as_nanos();
                // beta = 1/4, alpha = 1/8; the sums cannot overflow for spans below centuries.
                self.rttvar = Duration::from_nanos(v - v / 4 + r.abs_diff(s) / 4);
                s - s / 8 + r / 8
            }
        };
        let srtt = Duration::from_nanos(srtt);
        self.srtt = Some(srtt);
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
        let spread = (self.rttvar * 4).max(self.granularity);
        self.base = if self.above_srtt {
            srtt + spread.max(self.least)
        } else {
            (srtt + spread).max(self.least)
        };
        self.backoff = 0;
        self.rto = self.base.min(self.most);
    }

    /// The timer expired (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        self.set_backoff((self.backoff + 1).min(MAX_BACKOFF));
    }

    /// The path works again: there was a measurement.
    #[inline]
    pub(crate) fn reset_backoff(&mut self) {
        self.set_backoff(0);
    }

    /// How often the timeout was doubled.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The timeout with its backoff.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }

    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    pub(crate) fn rttvar(&self) -> Option<Duration> {
        self.srtt.map(|_| self.rttvar)
    }
    #[inline]
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.latest
    }
    #[inline]
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Probe timeout (RFC 8985 §7.2): two round trips, and the peer's longest acknowledgement delay if only one
    /// segment is outstanding; else some slack for timers and hosts: 2 ms, as in Linux, but at most a round trip unless
    /// `fixed`, as 2 ms would be many round trips of a very short path.
    #[inline]
    pub(crate) fn probe_at(
        &self,
        now: Instant,
        single: bool,
        ack_delay: Duration,
        fixed: bool,
    ) -> Instant {
        let Some(srtt) = self.srtt else {
            return now + Duration::from_secs(1);
        };
        let slack = match (single, fixed) {
            (true, _) => ack_delay,
            (false, true) => MOST_SLACK,
            (false, false) => srtt.max(LEAST_SLACK).min(MOST_SLACK),
        };
        now + srtt * 2 + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn first_sample_sets_three_times_itself() {
        // RFC 6298 §2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR = 3R.
        let mut e = RttEstimator::new(&Config::rfc5681());
        assert_eq!(e.rto(), ms(1000));
        e.on_sample(ms(500));
        assert_eq!(
            (e.srtt(), e.rttvar(), e.rto()),
            (Some(ms(500)), Some(ms(250)), ms(1500))
        );
    }

    #[test]
    fn later_samples_are_smoothed() {
        let mut e = RttEstimator::new(&Config::rfc5681());
        e.on_sample(ms(800));
        e.on_sample(ms(400));
        // RTTVAR = 3/4 400 + 1/4 400, SRTT = 7/8 800 + 1/8 400.
        assert_eq!((e.rttvar(), e.srtt()), (Some(ms(400)), Some(ms(750))));
        assert_eq!(e.rto(), ms(2350));
        assert_eq!(e.min(), Some(ms(400)));
    }

    #[test]
    fn the_two_lower_bounds() {
        let mut total = RttEstimator::new(&Config::rfc5681());
        let mut linux = RttEstimator::new(&Config::modern());
        for _ in 0..100 {
            total.on_sample(ms(100));
            linux.on_sample(ms(100));
        }
        assert_eq!(total.rto(), ms(1000));
        assert_eq!(linux.rto(), ms(300));
    }

    #[test]
    fn the_slack_of_a_probe_is_at_most_a_round_trip() {
        // RFC 8985 §7.2: 2 SRTT, which is 40 us here; 2 ms more would be a hundred round trips.
        let after = |rtt, fixed| {
            let mut e = RttEstimator::new(&Config::modern());
            e.on_sample(rtt);
            e.probe_at(Instant::ZERO, false, ms(200), fixed) - Instant::ZERO
        };
        let us = Duration::from_micros;
        assert_eq!(after(us(20), false), us(60));
        assert_eq!(after(us(20), true), us(2040));
        assert_eq!(after(ms(100), false), ms(202));
        assert_eq!(after(ms(100), true), ms(202));
        assert_eq!(after(Duration::ZERO, false), us(10));
    }

    #[test]
    fn backs_off_exponentially_to_the_bound() {
        let mut e = RttEstimator::new(&Config::rfc5681());
        e.on_sample(ms(1000));
        let first = e.rto();
        e.back_off();
        assert_eq!(e.rto(), first * 2);
        for _ in 0..100 {
            e.back_off();
        }
        assert_eq!(e.rto(), Duration::from_secs(60));
        e.reset_backoff();
        assert_eq!(e.rto(), first);
    }
}

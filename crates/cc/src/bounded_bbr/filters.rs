use gargalo_units::{Duration, Instant, Rate};

use crate::path_model;

/// The greatest delivery rate of the current and the previous probing cycle (draft §5.5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaxBw {
    previous: Rate,
    current: Rate,
}

impl MaxBw {
    #[inline]
    pub(crate) fn get(&self) -> Rate {
        self.previous.max(self.current)
    }

    #[inline]
    pub(crate) fn update(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    /// A cycle has ended; one that measured nothing does not count.
    pub(crate) fn advance(&mut self) {
        if !self.current.is_zero() {
            self.previous = self.current;
            self.current = Rate::ZERO;
        }
    }
}

/// The path's round-trip time without queues, in two windows (draft §5.3.4.3): the minimum of the shorter one
/// schedules PROBE_RTT and updates the longer one, which is kept over a PROBE_RTT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinRtt {
    recent: path_model::MinRtt,
    window: Duration,
    value: Option<Duration>,
    seen_at: Instant,
}

impl MinRtt {
    pub(crate) fn new(interval: Duration, window: Duration, now: Instant) -> Self {
        Self {
            recent: path_model::MinRtt::new(interval, now),
            window,
            value: None,
            seen_at: now,
        }
    }

    /// The connection begins: with the round trip of its handshake, if that was measured.
    pub(crate) fn start(&mut self, now: Instant, rtt: Option<Duration>) {
        self.recent.start(now, rtt);
        self.value = rtt;
        self.seen_at = now;
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<Duration> {
        self.value
    }

    /// Processes a sample, if there is one; returns whether it is time for PROBE_RTT.
    #[inline]
    pub(crate) fn update(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.recent.update(now, rtt);
        if let Some(recent) = self.recent.get()
            && (now > self.seen_at + self.window || self.value.is_none_or(|v| recent < v))
        {
            self.value = Some(recent);
            self.seen_at = self.recent.seen_at();
        }
        expired
    }

    /// PROBE_RTT has ended: the next one is due after an interval.
    pub(crate) fn schedule(&mut self, now: Instant) {
        self.recent.refresh(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_remembered_for_two_cycles() {
        let mut m = MaxBw::default();
        m.update(Rate::from_mbps(10));
        m.advance();
        m.advance(); // nothing measured
        assert_eq!(m.get(), Rate::from_mbps(10));
        m.update(Rate::from_mbps(4));
        assert_eq!(m.get(), Rate::from_mbps(10));
        m.advance();
        assert_eq!(m.get(), Rate::from_mbps(4));
    }

    #[test]
    fn the_minimum_outlives_the_probing_interval() {
        let ms = |n| Some(Duration::from_millis(n));
        let s = |n| Instant::ZERO + Duration::from_secs(n);
        let seconds = Duration::from_secs;
        let mut m = MinRtt::new(seconds(5), seconds(10), s(0));
        assert!(!m.update(s(1), ms(40)));
        assert!(!m.update(s(6), ms(50)));
        assert!(m.update(s(7), ms(50)), "five seconds without a lower one");
        assert_eq!(m.get(), ms(40));
        assert!(!m.update(s(11), ms(60)));
        assert_eq!(m.get(), ms(40));
        assert!(!m.update(s(12), ms(60)));
        assert_eq!(m.get(), ms(50), "the least of the last five seconds");
        m.schedule(s(12));
        assert!(!m.update(s(17), ms(60)));
        assert!(m.update(s(18), ms(60)));
    }
}

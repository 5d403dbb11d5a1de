//! State of a subflow whose path may have failed, or whose address is being removed.

use gargalo_units::{Duration, Instant};

/// A path in a retransmission timeout is probed at growing intervals, up to this multiple of the first.
const LONGEST_WAIT: u64 = 4;
/// Time after which lost deliveries are no longer counted.
const LOST_DELIVERY_MEMORY: Duration = Duration::from_secs(60);

/// Probes of a path that is in loss.
#[derive(Debug)]
pub(crate) struct LossProbe {
    /// When it is probed next; MAX: not at all.
    pub(crate) at: Instant,
    /// The present interval.
    after: Duration,
    /// The longest interval.
    most: Duration,
}

impl LossProbe {
    /// The path is not probed.
    pub(crate) const NONE: Self = Self {
        at: Instant::MAX,
        after: Duration::ZERO,
        most: Duration::ZERO,
    };

    /// Begins with this interval.
    pub(crate) fn start(&mut self, now: Instant, first: Duration) {
        self.after = first;
        self.most = first * LONGEST_WAIT;
        self.at = now + first;
    }

    /// A probe was sent: the next comes after twice the time, up to the longest interval.
    pub(crate) fn back_off(&mut self, now: Instant) {
        self.after = (self.after * 2).min(self.most);
        self.at = now + self.after;
    }
}

/// Data that the subflow delivered and the peer did not acknowledge at data level.
#[derive(Debug)]
pub(crate) struct LostDeliveries {
    count: u32,
    /// The last time.
    at: Instant,
}

impl LostDeliveries {
    pub(crate) fn new(now: Instant) -> Self {
        Self { count: 0, at: now }
    }

    /// Counts one more; returns how many there were lately.
    pub(crate) fn record(&mut self, now: Instant) -> u32 {
        if now - self.at > LOST_DELIVERY_MEMORY {
            self.count = 0;
        }
        self.count += 1;
        self.at = now;
        self.count
    }
}

/// The peer has removed the subflow's address, and its path is probed before the subflow ends (RFC 8684 §3.4.2).
#[derive(Debug)]
pub(crate) struct Removal {
    /// The earliest time of an answer to our probe.
    pub(crate) answered_from: Instant,
    /// When the subflow ends without an answer; MAX: the address is not removed.
    pub(crate) at: Instant,
}

impl Removal {
    /// The address is not removed.
    pub(crate) const NONE: Self = Self {
        answered_from: Instant::MAX,
        at: Instant::MAX,
    };

    /// The peer has answered.
    pub(crate) fn cancel(&mut self) {
        *self = Self::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn probes_come_ever_more_rarely_up_to_four_times_the_first_interval() {
        let mut probe = LossProbe::NONE;
        let mut now = Instant::ZERO + S;
        probe.start(now, S);
        let mut waits = Vec::new();
        for _ in 0..5 {
            waits.push((probe.at - now).as_millis());
            now = probe.at;
            probe.back_off(now);
        }
        assert_eq!(waits, [1000, 2000, 4000, 4000, 4000]);
    }

    #[test]
    fn lost_deliveries_are_forgotten_a_minute_after_the_last_one() {
        let start = Instant::ZERO + S;
        let mut lost = LostDeliveries::new(start);
        let counts = [0, 60, 120, 181, 241].map(|s| lost.record(start + S * s));
        assert_eq!(counts, [1, 2, 3, 1, 2]);
    }
}

use gargalo_units::{Duration, Instant};

/// A token bucket: a rate per second, and bursts of a twentieth of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiter {
    /// Time between two tokens; zero: nothing is admitted.
    interval: Duration,
    /// The time in which an empty bucket fills.
    depth: Duration,
    /// The bucket is full from this instant on.
    full_at: Instant,
}

impl Limiter {
    pub(crate) fn new(rate: u32) -> Self {
        let interval = match rate {
            0 => Duration::ZERO,
            n => Duration::from_nanos(1_000_000_000 / u64::from(n)),
        };
        Self {
            interval,
            depth: interval * u64::from((rate / 20).max(1)),
            full_at: Instant::ZERO,
        }
    }

    /// Whether one more may pass now; counts it if so.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + self.interval;
        let admitted = !self.interval.is_zero() && full_at - now <= self.depth;
        if admitted {
            self.full_at = full_at;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut limiter = Limiter::new(100);
        let t = Instant::from_nanos(1);
        assert_eq!((0..50).filter(|_| limiter.admit(t)).count(), 5);
        let second = (1..=1000).map(|ms| t + Duration::from_millis(ms));
        assert_eq!(second.filter(|t| limiter.admit(*t)).count(), 100);
        assert!(!Limiter::new(0).admit(t));
    }
}

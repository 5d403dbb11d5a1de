//! Real time as the links and stacks count it: nanoseconds since the start of the run.

use gargalo_units::{Duration, Instant};

/// A clock that began with the run (CLOCK_MONOTONIC).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long until `at`; zero if that is over.
    pub fn until(&self, at: Instant) -> Duration {
        at.saturating_since(self.now())
    }
}

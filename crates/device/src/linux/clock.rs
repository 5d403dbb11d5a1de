//! Real time as links and stacks count it: nanoseconds since the start of the run.

use gargalo_units::{Duration, Instant};
use nix::libc;

/// A clock that starts with the run (CLOCK_MONOTONIC).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }

    /// The current time.
    #[inline]
    pub fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time left until `at`; zero if that has passed.
    pub fn until(&self, at: Instant) -> Duration {
        at.saturating_since(self.now())
    }
}

/// Makes timers of the calling thread fire when they are due: the default slack of 50 µs is longer than a gap between
/// packets. A refusal by the system is ignored.
pub fn precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

//! The clock that TLS and address tokens read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use gargalo_units::Instant;
use noq_proto::TimeSource;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// The calendar time of [`Instant::ZERO`]: 1 January 2025, 00:00 UTC. No result depends on it.
const START: Duration = Duration::from_secs(1_735_689_600);

/// Virtual time as calendar time; set before each call into the stack.
#[derive(Debug, Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    #[inline]
    pub(crate) fn set(&self, now: Instant) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// The virtual time that was set last.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn since_epoch(&self) -> Duration {
        START + Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.since_epoch()))
    }
}

impl TimeSource for Clock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.since_epoch()
    }
}

use gargalo_units::{Duration, Instant};

/// Limits challenge acknowledgements: at most ten in five seconds (RFC 5961 §7). The limit also ends loops between
/// two peers with inconsistent state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChallengeLimit {
    since: Instant,
    sent: u8,
}

impl ChallengeLimit {
    const PERIOD: Duration = Duration::from_secs(5);
    const MOST: u8 = 10;

    /// Whether one more may be sent now; counts it if so.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        if now - self.since >= Self::PERIOD {
            self.since = now;
            self.sent = 0;
        }
        let admitted = self.sent < Self::MOST;
        self.sent += u8::from(admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_five_seconds() {
        let mut limit = ChallengeLimit::default();
        let t = Instant::from_nanos(7_000_000_000);
        assert_eq!((0..100).filter(|_| limit.admit(t)).count(), 10);
        assert!(!limit.admit(t + Duration::from_millis(4_999)));
        assert!(limit.admit(t + Duration::from_secs(5)));
    }
}

//! Token-bucket policers: packets above a rate are dropped, none is delayed.
//!
//! RFC 2697 §3 with two colours instead of three: a packet for which the bucket has not enough tokens is dropped
//! instead of marked. Operators police traffic this way (Flach et al., "An Internet-Wide Analysis of Traffic
//! Policing", SIGCOMM 2016).

use gargalo_settings::settings;
use gargalo_units::{Bytes, Instant, Rate};

settings! {
    /// A token bucket: drops packets above a rate.
    pub struct Policer: Copy as "Policer" {
        /// Rate at which tokens are added.
        rate: Rate, in Rate::from_bps(1)..;
        /// Size of the bucket, which is full at the start; at least the MTU.
        burst: Bytes;
    }
}

/// The state of a [`Policer`]. Tokens are in bits times nanoseconds, so that none is lost to rounding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    rate: u128,
    most: u128,
    tokens: u128,
    at: Instant,
}

const NANOS: u128 = 1_000_000_000;

impl Bucket {
    pub(crate) fn new(p: &Policer) -> Self {
        let most = u128::from(p.burst.get()) * 8 * NANOS;
        Self {
            rate: u128::from(p.rate.as_bps()),
            most,
            tokens: most,
            at: Instant::ZERO,
        }
    }

    /// Whether a packet that arrives now conforms; if so, its tokens are removed.
    #[inline]
    pub(crate) fn admit(&mut self, now: Instant, bytes: u32) -> bool {
        let new = self.rate * u128::from((now - self.at).as_nanos());
        self.tokens = self.tokens.saturating_add(new).min(self.most);
        self.at = now;
        let cost = u128::from(bytes) * 8 * NANOS;
        let conforms = cost <= self.tokens;
        if conforms {
            self.tokens -= cost;
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use crate::LinkConfig;
    use gargalo_settings::Setting;
    use gargalo_units::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut b = Bucket::new(&Policer {
            rate: Rate::from_mbps(8),
            burst: Bytes::new(10_000),
        });
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let passed = (0..20).filter(|_| b.admit(at(0), 1000)).count();
        assert_eq!(passed, 10);
        assert!(!b.admit(at(999), 1000), "a byte a microsecond");
        assert!(b.admit(at(1000), 1000));
        // Twice the rate for a second: half of it.
        let passed = (0..2000).filter(|i| b.admit(at(1000 + i * 500), 1000));
        assert_eq!(passed.count(), 999);
        // The bucket holds no more than a burst.
        let passed = (0..20).filter(|_| b.admit(at(10_000_000), 1000)).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn what_can_never_pass_is_refused() {
        let policer = |mbps, burst| Policer {
            rate: Rate::from_mbps(mbps),
            burst: Bytes::new(burst),
        };
        let link = |policer| LinkConfig {
            policer: Some(policer),
            ..LinkConfig::default()
        };
        assert!(link(policer(1, 1500)).check().is_ok());
        assert!(link(policer(0, 1500)).check().is_err());
        assert!(link(policer(1, 1499)).check().is_err());
    }
}

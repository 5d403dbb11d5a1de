use std::fmt;
use std::ops::{Add, Div, Mul};

use crate::{Bytes, Duration};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Zero: nothing is sent.
    pub const ZERO: Self = Self(0);
    /// The largest rate, which stands for no limit.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` bits per second.
    #[inline]
    pub const fn from_bps(n: u64) -> Self {
        Self(n)
    }
    /// `n` million bits per second.
    #[inline]
    pub const fn from_mbps(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// Bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Bytes per second, as a float.
    #[inline]
    pub fn bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// Whether the rate is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// From bits per second as a float, rounded; negative and NaN become zero.
    #[inline]
    pub fn from_bps_f64(bps: f64) -> Self {
        Self((bps + 0.5) as u64)
    }
    /// `self` scaled by a factor.
    #[inline]
    pub fn mul_f64(self, k: f64) -> Self {
        Self::from_bps_f64(self.0 as f64 * k)
    }
    /// The average rate of `bytes` over `d`; zero if no time passed.
    #[inline]
    pub fn from_transfer(bytes: Bytes, d: Duration) -> Self {
        if d.is_zero() {
            return Self::ZERO;
        }
        // As in `transmission_time`.
        match bytes.get().checked_mul(8 * NANOS_PER_SEC) {
            Some(n) => Self(n / d.as_nanos()),
            None => Self::from_long_transfer(bytes, d),
        }
    }
    #[cold]
    fn from_long_transfer(bytes: Bytes, d: Duration) -> Self {
        let bits = bytes.get() as u128 * 8 * NANOS_PER_SEC as u128 / d.as_nanos() as u128;
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }
    /// Time to serialise `bytes`, rounded up to a nanosecond; [`Duration::MAX`] at rate zero.
    #[inline]
    pub fn transmission_time(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // Bits times 1e9 fits in 64 bits up to 2.3 GB: the wide path is for larger amounts only.
        match bytes.get().checked_mul(8 * NANOS_PER_SEC) {
            Some(n) => Duration::from_nanos(n.div_ceil(self.0)),
            None => self.long_transmission_time(bytes),
        }
    }
    #[cold]
    fn long_transmission_time(self, bytes: Bytes) -> Duration {
        let n = bytes.get() as u128 * 8 * NANOS_PER_SEC as u128;
        let t = n.div_ceil(self.0 as u128);
        Duration::from_nanos(u64::try_from(t).unwrap_or(u64::MAX))
    }
}

impl Mul<Duration> for Rate {
    type Output = Bytes;
    /// The amount sent in a span of time, rounded down.
    #[inline]
    fn mul(self, d: Duration) -> Bytes {
        if let Some(n) = self.0.checked_mul(d.as_nanos()) {
            return Bytes::new(n / (8 * NANOS_PER_SEC));
        }
        let n = self.0 as u128 * d.as_nanos() as u128 / (8 * NANOS_PER_SEC as u128);
        Bytes::new(u64::try_from(n).unwrap_or(u64::MAX))
    }
}
impl Div<Duration> for Bytes {
    type Output = Rate;
    /// The average rate; zero if no time passed.
    #[inline]
    fn div(self, d: Duration) -> Rate {
        Rate::from_transfer(self, d)
    }
}
impl Div<Rate> for Bytes {
    type Output = Duration;
    /// Serialisation time, rounded up to a nanosecond; [`Duration::MAX`] at rate zero.
    #[inline]
    fn div(self, r: Rate) -> Duration {
        r.transmission_time(self)
    }
}
impl Add for Rate {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self(self.0.saturating_add(o.0))
    }
}
impl Div<u64> for Rate {
    type Output = Self;
    #[inline]
    fn div(self, k: u64) -> Self {
        Self(self.0 / k)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        for (unit, scale) in [
            ("Gbit/s", 1_000_000_000),
            ("Mbit/s", 1_000_000),
            ("kbit/s", 1_000),
        ] {
            if n >= scale {
                return write!(f, "{}{unit}", n as f64 / scale as f64);
            }
        }
        write!(f, "{n}bit/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_beyond_64_bits_are_computed_like_those_below() {
        let edge = u64::MAX / (8 * NANOS_PER_SEC);
        for bytes in [1, 1448, edge - 1, edge, edge + 1, 1 << 40] {
            for n in [1, 999, 1_000_003, 1 << 40] {
                let bits = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC);
                let n_wide = u128::from(n);
                let rate = Rate::from_transfer(Bytes::new(bytes), Duration::from_nanos(n));
                let most = |x: u128| u64::try_from(x).unwrap_or(u64::MAX);
                assert_eq!(rate.as_bps(), most(bits / n_wide), "{bytes} in {n} ns");
                let time = Rate::from_bps(n).transmission_time(Bytes::new(bytes));
                assert_eq!(
                    time.as_nanos(),
                    most(bits.div_ceil(n_wide)),
                    "{bytes} at {n}"
                );
                let sent = Rate::from_bps(bytes << 20) * Duration::from_nanos(n);
                let all = u128::from(bytes << 20) * n_wide / (8 * u128::from(NANOS_PER_SEC));
                assert_eq!(sent.get(), most(all), "{bytes} Mibit/s for {n} ns");
            }
        }
    }
}

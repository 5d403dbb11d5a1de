use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in virtual or real time, in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in integer nanoseconds.
///
/// Unlike `std::time::Duration` (seconds plus nanoseconds, 16 bytes) it is one machine word, which
/// keeps events and per-segment records small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event: a timer that never fires.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds after the start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start as results have them; see [`Duration::decimal_secs`].
    #[inline]
    pub fn decimal_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Seconds since the start.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Time since `earlier`, zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `self + d`, or `None` past the end of time.
    #[inline]
    pub const fn checked_add(self, d: Duration) -> Option<Self> {
        match self.0.checked_add(d.0) {
            Some(t) => Some(Self(t)),
            None => None,
        }
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A duration of `n` nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }
    /// A duration of `n` microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// A duration of `n` milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// A duration of `n` seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }
    /// `s` seconds, rounded to the nearest nanosecond; negative, NaN and overflow saturate.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9 + 0.5) as u64)
    }
    /// The span in nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span in whole microseconds.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// The span in whole milliseconds.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// The span in seconds as results have it: the float that prints as 0.05 for 50 ms.
    #[inline]
    pub fn decimal_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The span in seconds, by the faster multiplication: its last digit may differ.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// Whether the span is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, or zero.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self * k`, at most [`Duration::MAX`].
    #[inline]
    pub const fn saturating_mul(self, k: u64) -> Self {
        Self(self.0.saturating_mul(k))
    }
    /// `self` scaled by a factor, rounded to the nearest nanosecond.
    #[inline]
    pub fn mul_f64(self, k: f64) -> Self {
        Self((self.0 as f64 * k + 0.5) as u64)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub for Instant {
    type Output = Duration;
    /// Time since `earlier`; saturates at zero.
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

amount!(Duration);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        for (unit, scale) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
            if n >= scale {
                return write!(f, "{}{unit}", n as f64 / scale as f64);
            }
        }
        if n == 0 {
            write!(f, "0s")
        } else {
            write!(f, "{n}ns")
        }
    }
}
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}

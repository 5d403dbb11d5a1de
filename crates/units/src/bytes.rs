use std::fmt;
use std::iter::Sum;

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX);

    /// An amount of `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
    /// Whether there is nothing.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, or zero.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Rounded to the nearest byte; negative and NaN become zero.
    #[inline]
    pub fn from_f64(n: f64) -> Self {
        Self((n + 0.5) as u64)
    }
    /// The number of bytes as a float.
    #[inline]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// `self` scaled by a factor, rounded to the nearest byte.
    #[inline]
    pub fn mul_f64(self, k: f64) -> Self {
        Self::from_f64(self.0 as f64 * k)
    }
}

amount!(Bytes);

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(it: I) -> Self {
        it.fold(Self::ZERO, |a, b| a + b)
    }
}
impl From<u16> for Bytes {
    fn from(n: u16) -> Self {
        Self(n.into())
    }
}
impl From<u32> for Bytes {
    fn from(n: u32) -> Self {
        Self(n.into())
    }
}
impl From<u64> for Bytes {
    fn from(n: u64) -> Self {
        Self(n)
    }
}
impl From<Bytes> for u64 {
    fn from(n: Bytes) -> Self {
        n.0
    }
}
impl TryFrom<Bytes> for u16 {
    type Error = std::num::TryFromIntError;
    fn try_from(n: Bytes) -> Result<Self, Self::Error> {
        n.0.try_into()
    }
}
impl TryFrom<Bytes> for u32 {
    type Error = std::num::TryFromIntError;
    fn try_from(n: Bytes) -> Result<Self, Self::Error> {
        n.0.try_into()
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        for (unit, scale) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)] {
            if n >= scale {
                return write!(f, "{}{unit}", n as f64 / scale as f64);
            }
        }
        write!(f, "{n}B")
    }
}

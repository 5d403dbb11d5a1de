use std::fmt;
use std::ops::Add;

/// A TCP sequence number (RFC 9293 §3.4). It is modular and therefore has no total order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

/// An MPTCP data sequence number (RFC 8684 §3.3.1), 64 bits, modular.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataSeq(u64);

impl Seq {
    /// The number as on the wire.
    #[inline]
    pub const fn new(n: u32) -> Self {
        Self(n)
    }
    /// The number as on the wire.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// `self - other` as a signed distance: positive when `self` is ahead.
    #[inline]
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
    /// Whether `self` comes before `other`.
    #[inline]
    pub const fn precedes(self, other: Self) -> bool {
        self.distance(other) < 0
    }
    /// The full stream offset closest to `near` whose low 32 bits are `self - base`.
    #[inline]
    pub const fn unwrap_near(self, base: Self, near: u64) -> Option<u64> {
        let d = self.0.wrapping_sub(base.0.wrapping_add(near as u32)) as i32;
        near.checked_add_signed(d as i64)
    }
}
impl Add<u32> for Seq {
    type Output = Self;
    #[inline]
    fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
}
impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl DataSeq {
    /// The full 64-bit number.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The full 64-bit number.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// `self - other` as a signed distance.
    #[inline]
    pub const fn distance(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }
}
impl Add<u64> for DataSeq {
    type Output = Self;
    #[inline]
    fn add(self, n: u64) -> Self {
        Self(self.0.wrapping_add(n))
    }
}

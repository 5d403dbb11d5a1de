/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: an AQM drops instead of marking.
    #[default]
    NotEct = 0b00,
    /// ECT(1), which L4S uses (RFC 9331).
    Ect1 = 0b01,
    /// ECT(0): the sender is ECN-capable (RFC 3168 §5).
    Ect0 = 0b10,
    /// Congestion experienced: marked on the path (RFC 3168 §5).
    Ce = 0b11,
}

impl Ecn {
    /// Whether a queue may mark instead of dropping.
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
    /// From the two low bits of the traffic class.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Ce,
            _ => Self::NotEct,
        }
    }
}

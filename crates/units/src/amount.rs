//! The operators of amounts, which saturate.

macro_rules! amount {
    ($amount:ty) => {
        impl std::ops::Add for $amount {
            type Output = Self;
            #[inline]
            fn add(self, o: Self) -> Self {
                Self(self.0.saturating_add(o.0))
            }
        }
        impl std::ops::AddAssign for $amount {
            #[inline]
            fn add_assign(&mut self, o: Self) {
                *self = *self + o;
            }
        }
        impl std::ops::Sub for $amount {
            type Output = Self;
            /// Saturates at zero.
            #[inline]
            fn sub(self, o: Self) -> Self {
                self.saturating_sub(o)
            }
        }
        impl std::ops::SubAssign for $amount {
            #[inline]
            fn sub_assign(&mut self, o: Self) {
                *self = *self - o;
            }
        }
        impl std::ops::Mul<u64> for $amount {
            type Output = Self;
            #[inline]
            fn mul(self, k: u64) -> Self {
                Self(self.0.saturating_mul(k))
            }
        }
        impl std::ops::Div<u64> for $amount {
            type Output = Self;
            #[inline]
            fn div(self, k: u64) -> Self {
                Self(self.0 / k)
            }
        }
    };
}

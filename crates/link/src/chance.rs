//! Random draws that give the same numbers on every platform.

use rand::Rng;
use rand_pcg::Pcg64;

/// A new stream, seeded from `parent`.
///
/// Every random effect of a link draws from its own stream, so that enabling one does not change the draws of
/// another.
pub(crate) fn split(parent: &mut Pcg64) -> Pcg64 {
    let mut word = || (u128::from(parent.next_u64()) << 64) | u128::from(parent.next_u64());
    Pcg64::new(word(), word())
}

/// Uniform in [0, 1), 53 bits.
#[inline]
pub(crate) fn uniform(rng: &mut Pcg64) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Uniform in (0, 1], safe for a logarithm or a negative power.
#[inline]
pub(crate) fn uniform_positive(rng: &mut Pcg64) -> f64 {
    1.0 - uniform(rng)
}

/// Standard normal (Box and Muller 1958; the second value is not kept, so that a draw has no state).
pub(crate) fn normal(rng: &mut Pcg64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform_positive(rng)));
    radius * libm::cos(core::f64::consts::TAU * uniform(rng))
}

/// Exponential with mean 1.
pub(crate) fn exponential(rng: &mut Pcg64) -> f64 {
    -libm::log(uniform_positive(rng))
}

/// A Bernoulli trial with a fixed probability and its own stream: one draw and one comparison per trial.
#[derive(Clone, Debug)]
pub(crate) struct Coin {
    threshold: u64,
    rng: Pcg64,
}

impl Coin {
    /// `None` if `probability` is zero or less: no draw is needed.
    pub(crate) fn new(probability: f64, rng: Pcg64) -> Option<Self> {
        (probability > 0.0).then(|| Self {
            threshold: threshold(probability),
            rng,
        })
    }

    #[inline]
    pub(crate) fn throw(&mut self) -> bool {
        self.rng.next_u64() <= self.threshold
    }
}

/// The largest 64-bit draw that counts as a hit; 2^64 times the probability, less one.
pub(crate) fn threshold(probability: f64) -> u64 {
    // Float to integer saturates, so 1.0 becomes the largest number: always a hit.
    ((probability * 18_446_744_073_709_551_616.0) as u128)
        .saturating_sub(1)
        .min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coin_hits_as_often_as_asked() {
        assert!(Coin::new(0.0, Pcg64::new(1, 1)).is_none());
        let mut sure = Coin::new(1.0, Pcg64::new(1, 1)).unwrap();
        assert!((0..1000).all(|_| sure.throw()));
        let mut rare = Coin::new(0.01, Pcg64::new(1, 1)).unwrap();
        let hits = (0..1_000_000).filter(|_| rare.throw()).count();
        // Five standard deviations: sqrt(1e6 * 0.01 * 0.99) = 99.5.
        assert!((9_500..10_500).contains(&hits), "{hits}");
    }

    #[test]
    fn normal_and_exponential_have_their_moments() {
        let mut rng = Pcg64::new(7, 7);
        let n = 200_000;
        let (mut sum, mut squares, mut exp) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = normal(&mut rng);
            sum += x;
            squares += x * x;
            exp += exponential(&mut rng);
        }
        let n = f64::from(n);
        assert!((sum / n).abs() < 0.012, "{}", sum / n);
        assert!((squares / n - 1.0).abs() < 0.016);
        assert!((exp / n - 1.0).abs() < 0.012);
    }

    #[test]
    fn split_streams_differ() {
        let mut parent = Pcg64::new(3, 3);
        let (mut a, mut b) = (split(&mut parent), split(&mut parent));
        assert_ne!(a.next_u64(), b.next_u64());
    }
}

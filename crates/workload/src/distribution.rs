//! Random quantities by inversion of their distribution functions: one uniform draw per value.

use gargalo_units::Duration;
use rand::{Rng, RngExt};

/// A distribution of sizes (bytes), times (seconds) or counts.
///
/// Invalid parameters (a minimum above the maximum, an index of zero) give a value between the bounds and never a
/// panic. The scenario refuses them earlier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// A constant value.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Geometric on 1, 2, … with this mean.
    Geometric(f64),
    /// Pareto from `min` with tail index `alpha`, conditioned on `max` not being exceeded.
    Pareto {
        /// Tail index: the survival function falls like x to the power of minus `alpha`.
        alpha: f64,
        /// Smallest value (the scale of the distribution).
        min: f64,
        /// Largest value: the distribution is truncated there.
        max: f64,
    },
    /// Pareto from `min`, clipped to `max`, then reduced by `min` (as 3GPP2 draws the number of embedded objects).
    ClippedPareto {
        /// Tail index, as for [`Distribution::Pareto`].
        alpha: f64,
        /// Smallest value before the subtraction.
        min: f64,
        /// Largest value before the subtraction of `min`.
        max: f64,
    },
    /// Log-normal, conditioned on lying between `min` and `max`.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Smallest value: the distribution is truncated there.
        min: f64,
        /// Largest value: the distribution is truncated there.
        max: f64,
    },
    /// A log-normal body below `cut` and a Pareto tail from there.
    Hybrid {
        /// Mean of the logarithm of the body.
        mu: f64,
        /// Standard deviation of the logarithm of the body.
        sigma: f64,
        /// Where the tail begins.
        cut: f64,
        /// Share of values in the body.
        body: f64,
        /// Tail index of the values from `cut` on, as for [`Distribution::Pareto`].
        alpha: f64,
        /// Largest value: the tail is truncated there.
        max: f64,
    },
}

/// A distribution with the constants of its quantile function, for many draws.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sampler {
    Fixed(f64),
    Exponential {
        mean: f64,
    },
    Geometric {
        /// Logarithm of the probability of one more.
        more: f64,
    },
    Pareto(Tail),
    ClippedPareto {
        power: f64,
        min: f64,
        max: f64,
    },
    LogNormal(Body),
    Hybrid {
        share: f64,
        body: Body,
        tail: Tail,
    },
}

/// A log-normal distribution between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    mu: f64,
    sigma: f64,
    min: f64,
    max: f64,
    /// Share of the distribution without bounds that is below `min`, and between the bounds.
    below: f64,
    between: f64,
}

impl Body {
    fn new(mu: f64, sigma: f64, min: f64, max: f64) -> Self {
        let share_below = |x: f64| normal_cdf((libm::log(x) - mu) / sigma);
        let below = share_below(min);
        Self {
            mu,
            sigma,
            min,
            max,
            below,
            between: share_below(max) - below,
        }
    }

    fn quantile(&self, u: f64) -> f64 {
        let x = if self.sigma > 0.0 {
            libm::exp(self.mu + self.sigma * normal_quantile(self.below + u * self.between))
        } else {
            libm::exp(self.mu)
        };
        bounded(x, self.min, self.max)
    }
}

/// A Pareto distribution between two bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    min: f64,
    max: f64,
    power: f64,
    /// Share of the distribution without bound that is below `max`.
    below: f64,
}

impl Tail {
    fn new(alpha: f64, min: f64, max: f64) -> Self {
        Self {
            min,
            max,
            power: -1.0 / alpha,
            below: 1.0 - libm::pow(min / max, alpha),
        }
    }

    fn quantile(&self, u: f64) -> f64 {
        let x = self.min * libm::pow(1.0 - u * self.below, self.power);
        bounded(x, self.min, self.max)
    }
}

impl Sampler {
    /// See [`Distribution::quantile`].
    pub(crate) fn quantile(&self, u: f64) -> f64 {
        let u = below_one(u);
        match self {
            Self::Fixed(x) => *x,
            Self::Exponential { mean } => -mean * libm::log1p(-u),
            Self::Geometric { more } => (1.0 + libm::floor(libm::log1p(-u) / more)).max(1.0),
            Self::Pareto(tail) => tail.quantile(u),
            Self::ClippedPareto { power, min, max } => {
                bounded(min * libm::pow(1.0 - u, *power), *min, *max) - min
            }
            Self::LogNormal(body) => body.quantile(u),
            Self::Hybrid { share, body, .. } if u < *share => body.quantile(below_one(u / share)),
            Self::Hybrid { share, tail, .. } => {
                tail.quantile(below_one((u - share) / (1.0 - share)))
            }
        }
    }

    /// Draws a value.
    pub(crate) fn draw<R: Rng>(&self, rng: &mut R) -> f64 {
        self.quantile(rng.random())
    }

    /// Draws a duration; the distribution is in seconds.
    pub(crate) fn draw_span<R: Rng>(&self, rng: &mut R) -> Duration {
        Duration::from_secs_f64(self.draw(rng).max(0.0))
    }
}

impl Distribution {
    /// Its quantile function with the constants worked out.
    pub(crate) fn sampler(&self) -> Sampler {
        match *self {
            Self::Fixed(x) => Sampler::Fixed(x),
            Self::Exponential(mean) => Sampler::Exponential { mean },
            Self::Geometric(mean) => {
                let p = 1.0 / mean.max(1.0);
                if p >= 1.0 {
                    Sampler::Fixed(1.0)
                } else {
                    let more = libm::log1p(-p);
                    Sampler::Geometric { more }
                }
            }
            Self::Pareto { alpha, min, max } => Sampler::Pareto(Tail::new(alpha, min, max)),
            Self::ClippedPareto { alpha, min, max } => Sampler::ClippedPareto {
                power: -1.0 / alpha,
                min,
                max,
            },
            Self::LogNormal {
                mu,
                sigma,
                min,
                max,
            } => Sampler::LogNormal(Body::new(mu, sigma, min, max)),
            Self::Hybrid {
                mu,
                sigma,
                cut,
                body,
                alpha,
                max,
            } => Sampler::Hybrid {
                share: body,
                body: Body::new(mu, sigma, 1.0, cut),
                tail: Tail::new(alpha, cut, max),
            },
        }
    }

    /// The value that a share `u` (0 to 1) of all values does not exceed.
    pub fn quantile(&self, u: f64) -> f64 {
        self.sampler().quantile(u)
    }

    /// Draws a value.
    pub fn draw<R: Rng>(&self, rng: &mut R) -> f64 {
        self.sampler().draw(rng)
    }

    /// Mean of the values, by the numerical integration of [`Distribution::mean_of`].
    pub fn mean(&self) -> f64 {
        self.mean_of(|x| x)
    }

    /// Mean of a function of the value, by the midpoint rule over the quantiles. The grid is finer
    /// towards one, where the values of a heavy tail lie: each of 40 layers has half the mass of the
    /// one before it.
    pub fn mean_of(&self, f: impl Fn(f64) -> f64) -> f64 {
        const LAYERS: u32 = 40;
        const POINTS: u32 = 256;
        if let Self::Fixed(x) = *self {
            return f(x);
        }
        let sampler = self.sampler();
        let mut sum = 0.0;
        let mut rest = 1.0;
        for layer in 0..=LAYERS {
            // The last layer has the remaining mass.
            let mass = if layer == LAYERS { rest } else { rest / 2.0 };
            let start = 1.0 - rest;
            let points = f64::from(POINTS);
            for i in 0..POINTS {
                let u = start + mass * (f64::from(i) + 0.5) / points;
                sum += f(sampler.quantile(u)) * mass / points;
            }
            rest -= mass;
        }
        sum
    }
}

/// The largest number below one that a uniform draw gives.
const ONE_BELOW: f64 = 1.0 - f64::EPSILON / 2.0;

fn below_one(u: f64) -> f64 {
    u.clamp(0.0, ONE_BELOW)
}

fn bounded(x: f64, min: f64, max: f64) -> f64 {
    // Not `clamp`, which panics if the bounds are swapped.
    let x = if x.is_nan() { min } else { x };
    x.min(max).max(min)
}

/// The distribution function of the standard normal distribution.
fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

/// Its inverse, relative accuracy about 1e-16: algorithm AS 241 (PPND16), M. J. Wichura, "The
/// Percentage Points of the Normal Distribution", Applied Statistics 37(3), 1988.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 8] = [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ];
    const B: [f64; 8] = [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ];
    const C: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ];
    const D: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ];
    const E: [f64; 8] = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ];
    const F: [f64; 8] = [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ];
    let ratio = |a: &[f64; 8], b: &[f64; 8], x: f64| {
        let value = |k: &[f64; 8]| k.iter().rev().fold(0.0, |sum, c| sum * x + c);
        value(a) / value(b)
    };
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&A, &B, 0.180_625 - q * q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = libm::sqrt(-libm::log(tail.max(f64::MIN_POSITIVE)));
    let z = if r <= 5.0 {
        ratio(&C, &D, r - 1.6)
    } else {
        ratio(&E, &F, r - 5.0)
    };
    if q < 0.0 { -z } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        // R: qnorm(c(.5, .75, .9, .975, .999, 1e-9)).
        for (p, z) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_5),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_814),
            (1e-9, -5.997_807_015_007_687),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-9, "{p}");
            assert!((normal_cdf(z) - p).abs() < 1e-12);
        }
    }

    #[test]
    fn means_are_those_of_the_closed_forms() {
        let close = |d: Distribution, want: f64| {
            let got = d.mean();
            assert!((got / want - 1.0).abs() < 2e-3, "{d:?}: {got} for {want}");
        };
        close(Distribution::Exponential(7.0), 7.0);
        close(Distribution::Geometric(5.0), 5.0);
        let (alpha, min, max) = (1.1, 1e5, 2e7);
        let r: f64 = min / max;
        let mean = alpha / (alpha - 1.0) * min * (1.0 - libm::pow(r, alpha - 1.0))
            / (1.0 - libm::pow(r, alpha));
        close(Distribution::Pareto { alpha, min, max }, mean);
        let (mu, sigma): (f64, f64) = (3.0, 1.2);
        let (min, max) = (1e-9, 1e30);
        let mean = libm::exp(mu + sigma * sigma / 2.0);
        close(
            Distribution::LogNormal {
                mu,
                sigma,
                min,
                max,
            },
            mean,
        );
        // 3GPP2 C.R1002: 5.64 embedded objects.
        let (alpha, min, max) = (1.1, 2.0, 55.0);
        close(Distribution::ClippedPareto { alpha, min, max }, 5.64);
    }

    #[test]
    fn a_pareto_tail_has_its_index() {
        let d = Distribution::Hybrid {
            mu: 9.357,
            sigma: 1.318,
            cut: 133_000.0,
            body: 0.93,
            alpha: 1.1,
            max: 1e12,
        };
        let mut rng = crate::stream(5, "tail");
        let mut x: Vec<f64> = (0..200_000).map(|_| d.draw(&mut rng)).collect();
        x.sort_unstable_by(|a, b| b.total_cmp(a));
        // Hill's estimator over the largest 5,000; its standard error is alpha/sqrt(k) = 0.016.
        let k = 5_000;
        let hill = x[..k].iter().map(|v| libm::log(v / x[k])).sum::<f64>() / k as f64;
        assert!((1.0 / hill - 1.1).abs() < 0.06, "index {}", 1.0 / hill);
        let tail = x.iter().filter(|v| **v >= 133_000.0).count() as f64 / 200_000.0;
        assert!((tail - 0.07).abs() < 0.003, "{tail}");
    }

    proptest! {
        /// For all parameters: no panic, a value between the bounds, and a monotone quantile function.
        #[test]
        fn any_parameters_are_survived(
            a in prop::num::f64::ANY, b in prop::num::f64::ANY, c in prop::num::f64::ANY,
            d in prop::num::f64::ANY, u in 0.0..1.0f64, v in 0.0..1.0f64,
        ) {
            for d in [
                Distribution::Exponential(a),
                Distribution::Geometric(a),
                Distribution::Pareto { alpha: a, min: b, max: c },
                Distribution::ClippedPareto { alpha: a, min: b, max: c },
                Distribution::LogNormal { mu: a, sigma: b, min: c, max: d },
                Distribution::Hybrid { mu: a, sigma: b, cut: c, body: u, alpha: d, max: 1e9 },
            ] {
                let _ = (d.quantile(u), d.mean());
            }
            let sane = Distribution::Pareto { alpha: 1.1, min: 100.0, max: 1e6 };
            let (low, high) = (sane.quantile(u.min(v)), sane.quantile(u.max(v)));
            prop_assert!((100.0..=1e6).contains(&low) && low <= high && high <= 1e6);
        }
    }
}

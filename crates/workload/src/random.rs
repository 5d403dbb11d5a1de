//! Random sizes, times and counts as settings; [`Distribution`] draws them.

use gargalo_settings::{Error, kinds, settings};
use gargalo_units::{Bytes, Duration};

use super::distribution::Distribution;

kinds! {
    /// Random size of an object or file.
    pub enum Size: Copy as "SizeMap", checked by Size::possible {
        plain {
            /// A constant value.
            Fixed(Bytes);
        }
        tables {
            /// Exponentially distributed with this mean.
            "exponential" => Exponential(Bytes);
            /// Pareto between two bounds.
            "pareto" => Pareto(SizePareto);
            /// Log-normal between two bounds.
            "lognormal" => LogNormal(SizeLogNormal);
            /// A log-normal body and a Pareto tail.
            "hybrid" => Hybrid(SizeHybrid);
        }
    }
}

settings! {
    /// Pareto distribution of sizes, conditioned on the upper bound.
    pub struct SizePareto: Copy as "SizePareto" {
        /// Tail index; below 2 the variance, below 1 the mean would be infinite without the upper bound.
        alpha: f64, in 0.1..=100.0;
        /// Smallest size that is drawn.
        min: Bytes;
        /// Upper bound: larger sizes are not drawn.
        max: Bytes;
    }
}

settings! {
    /// Log-normal distribution of sizes, conditioned on both bounds.
    pub struct SizeLogNormal: Copy as "SizeLogNormal" {
        /// Mean of the logarithm of the size in bytes.
        mu: f64, in 0.0..=27.0;
        /// Standard deviation of the logarithm.
        sigma: f64, in 0.0..=10.0;
        /// Lower bound: smaller sizes are not drawn.
        min: Bytes = Bytes::new(1);
        /// Upper bound: larger sizes are not drawn.
        max: Bytes;
    }
}

settings! {
    /// A log-normal body and a Pareto tail.
    pub struct SizeHybrid: Copy as "SizeHybrid" {
        /// Mean of the logarithm of the sizes in the body, in bytes.
        mu: f64, in 0.0..=27.0;
        /// Standard deviation of the logarithm of the sizes in the body.
        sigma: f64, in 0.0..=10.0;
        /// Share of sizes in the body.
        body: f64, in 0.0..=1.0;
        /// Where the tail begins.
        cut: Bytes;
        /// Tail index of the sizes from `cut` on.
        alpha: f64, in 0.1..=100.0;
        /// Upper bound: larger sizes are not drawn.
        max: Bytes;
    }
}

kinds! {
    /// A random span of time.
    pub enum Time: Copy as "TimeMap", checked by Time::possible {
        plain {
            /// A constant value.
            Fixed(Duration);
        }
        tables {
            /// Exponentially distributed with this mean.
            "exponential" => Exponential(Duration);
            /// Pareto between two bounds.
            "pareto" => Pareto(TimePareto);
        }
    }
}

settings! {
    /// Pareto distribution of times, conditioned on the upper bound.
    pub struct TimePareto: Copy as "TimePareto" {
        /// Tail index; below 2 the variance, below 1 the mean would be infinite without the upper bound.
        alpha: f64, in 0.1..=100.0;
        /// Shortest time that is drawn.
        min: Duration;
        /// Upper bound: longer times are not drawn.
        max: Duration;
    }
}

kinds! {
    /// A random number of things.
    pub enum Count: Copy as "CountMap", checked by Count::possible {
        plain {
            /// A constant value.
            Fixed(u32);
        }
        tables {
            /// Geometric from 1 with this mean.
            "geometric" => Geometric(f64);
            /// Pareto, clipped and shifted to zero.
            "pareto" => Pareto(CountPareto);
        }
    }
}

settings! {
    /// Pareto distribution of a number: drawn from `min`, clipped to `max`, then `min` is subtracted and the result
    /// rounded (3GPP2 C.R1002).
    pub struct CountPareto: Copy as "CountPareto" {
        /// Tail index: a smaller one gives large numbers more often.
        alpha: f64, in 0.1..=100.0;
        /// Smallest value before the subtraction.
        min: f64, in 0.001..=100_000.0;
        /// Largest value before the subtraction of `min`.
        max: f64, in 0.001..=100_000.0;
    }
}

/// Largest size: a terabyte. A million objects of that size still add up to less than 2^63 bytes.
pub(crate) const LARGEST: Bytes = Bytes::new(1_000_000_000_000);
/// Largest fixed count, or mean of a geometric one, that is accepted.
const MOST: u32 = 100_000;

impl Size {
    fn possible(&self) -> Result<(), Error> {
        let (low, high) = match self {
            Self::Fixed(size) | Self::Exponential(size) => (*size, *size),
            Self::Pareto(p) => (p.min, p.max),
            Self::LogNormal(l) => (l.min, l.max),
            Self::Hybrid(h) => (h.cut, h.max),
        };
        let (message, help) = if low.is_zero() {
            ("a size of zero", "give 1B or more")
        } else if high > LARGEST {
            ("a size of more than 1TB", "give less")
        } else if low > high {
            ("the smallest size is above the largest", "swap them")
        } else {
            return Ok(());
        };
        Err(Error::new(message).help(help))
    }
}

impl Time {
    fn possible(&self) -> Result<(), Error> {
        let Self::Pareto(p) = self else {
            return Ok(());
        };
        if p.min.is_zero() {
            let help = "a Pareto distribution begins above zero";
            return Err(Error::new("a shortest time of zero").help(help));
        }
        if p.min > p.max {
            let message = "the shortest time is above the longest";
            return Err(Error::new(message).help("swap them"));
        }
        Ok(())
    }
}

impl Count {
    fn possible(&self) -> Result<(), Error> {
        match self {
            Self::Fixed(n) if *n > MOST => {
                let message = format!("{n} are too many");
                Err(Error::new(message).help(format!("give {MOST} or less")))
            }
            Self::Geometric(mean) if !(1.0..=f64::from(MOST)).contains(mean) => {
                let message = format!("geometric = {mean} is out of range");
                Err(Error::of("geometric", message).help(format!("give 1 to {MOST}")))
            }
            Self::Pareto(p) if p.min > p.max => {
                let message = "the smallest number is above the largest";
                Err(Error::new(message).help("swap them"))
            }
            _ => Ok(()),
        }
    }
}

/// The distribution of sizes in bytes.
impl From<Size> for Distribution {
    fn from(size: Size) -> Self {
        match size {
            Size::Fixed(size) => Self::Fixed(size.as_f64()),
            Size::Exponential(mean) => Self::Exponential(mean.as_f64()),
            Size::Pareto(p) => Self::Pareto {
                alpha: p.alpha,
                min: p.min.as_f64(),
                max: p.max.as_f64(),
            },
            Size::LogNormal(l) => Self::LogNormal {
                mu: l.mu,
                sigma: l.sigma,
                min: l.min.as_f64(),
                max: l.max.as_f64(),
            },
            Size::Hybrid(h) => Self::Hybrid {
                mu: h.mu,
                sigma: h.sigma,
                cut: h.cut.as_f64(),
                body: h.body,
                alpha: h.alpha,
                max: h.max.as_f64(),
            },
        }
    }
}

/// The distribution of times in seconds.
impl From<Time> for Distribution {
    fn from(time: Time) -> Self {
        match time {
            Time::Fixed(time) => Self::Fixed(time.as_secs_f64()),
            Time::Exponential(mean) => Self::Exponential(mean.as_secs_f64()),
            Time::Pareto(p) => Self::Pareto {
                alpha: p.alpha,
                min: p.min.as_secs_f64(),
                max: p.max.as_secs_f64(),
            },
        }
    }
}

impl From<Count> for Distribution {
    fn from(count: Count) -> Self {
        match count {
            Count::Fixed(n) => Self::Fixed(n.into()),
            Count::Geometric(mean) => Self::Geometric(mean),
            Count::Pareto(CountPareto { alpha, min, max }) => {
                Self::ClippedPareto { alpha, min, max }
            }
        }
    }
}

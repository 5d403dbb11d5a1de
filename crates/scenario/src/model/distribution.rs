//! Random sizes, times and counts as written.

use gargalo_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::Quantity;

/// Size of an object or file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SizeSpec {
    /// Always the same.
    Fixed(Quantity<Bytes>),
    /// Random.
    Random(SizeMap),
}

/// Random size of an object or file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SizeMap {
    /// Exponentially distributed with this mean.
    Exponential(Quantity<Bytes>),
    /// Pareto between two bounds.
    Pareto(SizePareto),
    /// Log-normal between two bounds.
    Lognormal(SizeLogNormal),
    /// A log-normal body and a Pareto tail.
    Hybrid(SizeHybrid),
}

/// Pareto distribution of sizes, conditioned on the upper bound.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizePareto {
    /// Tail index; below 2 the variance, below 1 the mean would be infinite without the upper bound.
    #[schemars(range(min = 0.1, max = 100))]
    pub alpha: f64,
    /// Smallest size.
    pub min: Quantity<Bytes>,
    /// Largest size.
    pub max: Quantity<Bytes>,
}

/// Log-normal distribution of sizes, conditioned on both bounds.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeLogNormal {
    /// Mean of the logarithm of the size in bytes.
    #[schemars(range(min = 0, max = 27))]
    pub mu: f64,
    /// Standard deviation of the logarithm.
    #[schemars(range(min = 0, max = 10))]
    pub sigma: f64,
    /// Smallest size.
    #[schemars(extend("default" = "1B"))]
    pub min: Option<Quantity<Bytes>>,
    /// Largest size.
    pub max: Quantity<Bytes>,
}

/// A log-normal body and a Pareto tail.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeHybrid {
    /// Mean of the logarithm of the sizes in the body, in bytes.
    #[schemars(range(min = 0, max = 27))]
    pub mu: f64,
    /// Standard deviation of the logarithm of the sizes in the body.
    #[schemars(range(min = 0, max = 10))]
    pub sigma: f64,
    /// Share of sizes in the body.
    #[schemars(range(min = 0, max = 1))]
    pub body: f64,
    /// Where the tail begins.
    pub cut: Quantity<Bytes>,
    /// Tail index.
    #[schemars(range(min = 0.1, max = 100))]
    pub alpha: f64,
    /// Largest size.
    pub max: Quantity<Bytes>,
}

/// A span of time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TimeSpec {
    /// Always the same.
    Fixed(Quantity<Duration>),
    /// Random.
    Random(TimeMap),
}

/// A random span of time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum TimeMap {
    /// Exponentially distributed with this mean.
    Exponential(Quantity<Duration>),
    /// Pareto between two bounds.
    Pareto(TimePareto),
}

/// Pareto distribution of times, conditioned on the upper bound.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimePareto {
    /// Tail index.
    #[schemars(range(min = 0.1, max = 100))]
    pub alpha: f64,
    /// Shortest time.
    pub min: Quantity<Duration>,
    /// Longest time.
    pub max: Quantity<Duration>,
}

/// A number of things.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CountSpec {
    /// Always the same.
    Fixed(#[schemars(range(max = 100_000))] u32),
    /// Random.
    Random(CountMap),
}

/// A random number of things.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum CountMap {
    /// Geometric from 1 with this mean.
    Geometric(#[schemars(range(min = 1, max = 100_000))] f64),
    /// Pareto, clipped and moved to zero.
    Pareto(CountPareto),
}

/// Pareto distribution of a number: drawn from `min`, what is above `max` becomes `max`, then `min` is
/// taken off and the rest rounded (3GPP2 C.R1002).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountPareto {
    /// Tail index.
    #[schemars(range(min = 0.1, max = 100))]
    pub alpha: f64,
    /// Least before it is taken off.
    #[schemars(range(min = 0.001, max = 100_000))]
    pub min: f64,
    /// Most before `min` is taken off.
    #[schemars(range(min = 0.001, max = 100_000))]
    pub max: f64,
}

//! Synthetic cellular traces.

use gargalo_units::{Duration, Rate};
use rand_pcg::Pcg64;

use super::{DeliveryTrace, PAYLOAD_BYTES, TraceError};
use crate::chance::{exponential, normal, uniform};

/// The model of a cellular link behind Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013, §3.1): opportunities
/// are a Poisson process whose rate lambda follows a Brownian motion, and stays at zero (an outage) until it
/// escapes.
///
/// Lambda moves in ticks of 20 ms, as in the paper, reflects at its maximum, and enters an outage
/// when it reaches zero. The long-run mean follows from the parameters; it cannot be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellularModel {
    /// Rate at the start. Default 5 Mbit/s.
    pub initial_rate: Rate,
    /// Rate that is never exceeded. Default 12 Mbit/s (1000 packets/s, the bound in the paper).
    pub max_rate: Rate,
    /// Volatility of lambda in packets of 1500 bytes per second per square root of a second (sigma).
    /// Default 200, the paper's.
    pub volatility: f64,
    /// Rate of leaving an outage, per second (lambda_z). Default 1, the paper's: outages last 1 s on
    /// average.
    pub outage_escape: f64,
    /// Length. The trace ends with its last opportunity, which may be earlier. Default 60 s.
    pub duration: Duration,
}

impl Default for CellularModel {
    fn default() -> Self {
        Self {
            initial_rate: Rate::from_mbps(5),
            max_rate: Rate::from_mbps(12),
            volatility: 200.0,
            outage_escape: 1.0,
            duration: Duration::from_secs(60),
        }
    }
}

/// Length in milliseconds of a tick, in which lambda is constant.
const TICK_MS: u32 = 20;

impl CellularModel {
    fn validate(&self) -> Result<(), TraceError> {
        let bad = |problem: String| Err(TraceError::new(0, problem));
        let Self {
            initial_rate: initial,
            max_rate: max,
            ..
        } = *self;
        if max.is_zero() || initial > max {
            return bad(format!(
                "rates {initial} and {max}: the maximum must be above zero and not below the initial"
            ));
        }
        if !(self.volatility.is_finite() && self.volatility >= 0.0) {
            let v = self.volatility;
            return bad(format!("volatility {v}; give 0 or more (200 is usual)"));
        }
        if !(self.outage_escape.is_finite() && self.outage_escape > 0.0) {
            let e = self.outage_escape;
            return bad(format!(
                "outage escape rate {e}; give more than 0 (1/s is usual)"
            ));
        }
        let packets = max.bytes_per_sec() / PAYLOAD_BYTES as f64 * self.duration.as_secs_f64();
        if self.duration.as_millis() >= u64::from(u32::MAX) || packets > 1e9 {
            return bad("too long or too fast: at most 49 days and a billion packets".into());
        }
        Ok(())
    }

    /// Generates a trace; the same generator state gives the same trace.
    ///
    /// # Errors
    /// When a parameter is invalid, or there is no opportunity within the duration.
    pub fn generate(&self, rng: &mut Pcg64) -> Result<DeliveryTrace, TraceError> {
        self.validate()?;
        let per_second = |r: Rate| r.bytes_per_sec() / PAYLOAD_BYTES as f64;
        let max = per_second(self.max_rate);
        let tick = f64::from(TICK_MS) * 1e-3;
        let step = self.volatility * libm::sqrt(tick);
        let stay = libm::exp(-self.outage_escape * tick);

        let mut lambda = per_second(self.initial_rate);
        let mut times = Vec::new();
        // A Poisson process of varying rate is one of rate 1 in the integral of lambda.
        let (mut integral, mut next) = (0.0, exponential(rng));
        for ms in 1..=self.duration.as_millis() as u32 {
            integral += lambda * 1e-3;
            while integral >= next {
                times.push(ms);
                next += exponential(rng);
            }
            if ms % TICK_MS == 0 {
                lambda = if lambda > 0.0 {
                    reflect(lambda + step * normal(rng), max)
                } else if uniform(rng) < stay {
                    0.0
                } else {
                    (step * normal(rng)).abs().min(max)
                };
            }
        }
        if times.is_empty() {
            let problem = "no opportunity in this duration; make it longer or the rate higher";
            return Err(TraceError::new(0, problem));
        }
        DeliveryTrace::from_millis(times)
    }
}

/// Reflects lambda at the maximum and keeps it at zero.
fn reflect(lambda: f64, max: f64) -> f64 {
    let down = if lambda > max {
        2.0 * max - lambda
    } else {
        lambda
    };
    down.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides() {
        let model = CellularModel::default();
        let trace = |seed| model.generate(&mut Pcg64::new(seed, 1)).unwrap();
        assert_eq!(trace(1), trace(1));
        assert_ne!(trace(1), trace(2));
    }

    #[test]
    fn without_volatility_it_is_a_poisson_process() {
        let model = CellularModel {
            initial_rate: Rate::from_mbps(6),
            volatility: 0.0,
            duration: Duration::from_secs(200),
            ..CellularModel::default()
        };
        let t = model.generate(&mut Pcg64::new(1, 1)).unwrap();
        // 500 packets/s: 100000, deviation 316.
        let n = t.opportunities() as f64;
        assert!((n - 100_000.0).abs() < 1_600.0, "{n}");
        // Index of dispersion of the counts in bins of 100 ms: 1.
        let bins = t.rates(Duration::from_millis(100));
        let counts: Vec<_> = bins
            .iter()
            .map(|b| b.1.as_bps() as f64 / 120_000.0)
            .collect();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        assert!((variance / mean - 1.0).abs() < 0.2, "{}", variance / mean);
    }

    #[test]
    fn the_rate_is_bounded_and_has_outages() {
        let model = CellularModel {
            duration: Duration::from_secs(600),
            ..CellularModel::default()
        };
        let t = model.generate(&mut Pcg64::new(3, 1)).unwrap();
        let info = t.info();
        // 1000 packets/s and five deviations of a second's Poisson count.
        assert!(info.max_rate < Rate::from_bps(12_000 * 1_160));
        assert!(info.longest_gap > Duration::from_millis(500));
    }

    #[test]
    fn nonsense_is_refused() {
        let default = CellularModel::default();
        for model in [
            CellularModel {
                initial_rate: Rate::from_mbps(20),
                ..default
            },
            CellularModel {
                volatility: f64::NAN,
                ..default
            },
            CellularModel {
                outage_escape: 0.0,
                ..default
            },
            CellularModel {
                duration: Duration::ZERO,
                ..default
            },
            CellularModel {
                duration: Duration::MAX,
                ..default
            },
        ] {
            assert!(model.generate(&mut Pcg64::new(1, 1)).is_err(), "{model:?}");
        }
    }
}

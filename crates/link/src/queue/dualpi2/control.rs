//! The control law: the base probability, and decisions drawn from probabilities.

use gargalo_units::Duration;
use rand_pcg::Pcg64;

use super::DualPi2Config;
use crate::chance::uniform;

/// The base probability p' and what it is computed from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Controller {
    pub(super) base: f64,
    pub(super) old_delay: Duration,
}

impl Controller {
    /// The largest base probability: 1, or the value at which the L queue marks everything if overload must not
    /// cause drops.
    pub(super) fn most(config: &DualPi2Config) -> f64 {
        match config.drop_on_overload {
            true => 1.0,
            false => (1.0 / config.coupling).min(1.0),
        }
    }

    /// One period (RFC 9332 appendix A.1).
    pub(super) fn update(&mut self, config: &DualPi2Config, delay: Duration) {
        let (now, old) = (delay.as_secs_f64(), self.old_delay.as_secs_f64());
        let error = config.alpha * (now - config.target.as_secs_f64());
        let trend = config.beta * (now - old);
        self.base = (self.base + error + trend).clamp(0.0, Self::most(config));
        self.old_delay = delay;
    }

    /// p_C: the drop or mark probability of the Classic queue.
    pub(super) fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL before it is bounded: the marking probability of the L queue by coupling.
    pub(super) fn coupled(&self, config: &DualPi2Config) -> f64 {
        self.base * config.coupling
    }
}

/// Turns probabilities into decisions for one queue (`recur` of RFC 9332 appendix A.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chooser {
    count: f64,
}

impl Chooser {
    pub(super) fn hits(&mut self, probability: f64, derandomize: bool, rng: &mut Pcg64) -> bool {
        if !derandomize {
            return uniform(rng) < probability;
        }
        self.count += probability;
        let hit = self.count > 1.0;
        if hit {
            self.count -= 1.0;
        }
        hit
    }
}

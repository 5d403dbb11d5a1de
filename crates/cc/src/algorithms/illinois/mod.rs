//! TCP-Illinois (S. Liu, T. Basar and R. Srikant, "TCP-Illinois: a loss and delay-based congestion
//! control algorithm for high-speed networks", VALUETOOLS 2006, Performance Evaluation 65, 2008).
//!
//! Loss determines when to reduce; the queueing delay determines the growth (alpha) and the reduction (beta). Both
//! are set once a round trip from the mean delay of that round.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration};

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`Illinois`]; the defaults are those of the paper.
    pub struct IllinoisParams: Copy as "Illinois", const {
        /// Growth without a queue, segments per round trip (α_max).
        alpha_max: f64 = 10.0, in 1.0..=1e4;
        /// Growth at the greatest queueing delay, segments per round trip (α_min).
        alpha_min: f64 = 0.3, in 0.01..=1.0;
        /// Share of the window given up after a loss without a queue (β_min).
        beta_min: f64 = 0.125, in 0.01..=0.5;
        /// Share of the window given up after a loss with a long queue (β_max).
        beta_max: f64 = 0.5, in 0.5..=0.99;
        /// Delay up to which `alpha_max` applies, as a fraction of the greatest (η1 = d1/dm).
        eta1: f64 = 0.01, in 0.0..=0.5;
        /// Delay up to which `beta_min` applies, as a fraction of the greatest (η2 = d2/dm).
        eta2: f64 = 0.1, in 0.0..=0.5;
        /// Delay from which `beta_max` applies, as a fraction of the greatest (η3 = d3/dm).
        eta3: f64 = 0.8, in 0.51..=1.0;
        /// Round trips of low delay before `alpha_max` applies again (θ).
        theta: u64 = 5, in 0..=1_000_000;
        /// Window below which the algorithm is Reno, segments (W_thresh).
        window_threshold: f64 = 15.0, in 0.0..=1e6;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl IllinoisParams {
    /// f1: α at a mean queueing delay of `da`, the greatest being `dm` seconds.
    ///
    /// κ1/(κ2 + da) with numerator and denominator multiplied by (α_max - α_min)/α_min, so that
    /// α_max = α_min needs no exception.
    pub fn alpha(&self, da: f64, dm: f64) -> f64 {
        let d1 = self.eta1 * dm;
        if da <= d1 {
            return self.alpha_max;
        }
        let span = dm - d1;
        let slope = (self.alpha_max - self.alpha_min) / self.alpha_min;
        let alpha = span * self.alpha_max / (span + slope * (da - d1));
        alpha.clamp(self.alpha_min, self.alpha_max)
    }

    /// f2: β at a mean queueing delay of `da`, the greatest being `dm` seconds.
    pub fn beta(&self, da: f64, dm: f64) -> f64 {
        let (d2, d3) = (self.eta2 * dm, self.eta3 * dm);
        if da <= d2 {
            return self.beta_min;
        }
        if da >= d3 {
            return self.beta_max;
        }
        // κ3 + κ4 da
        let k3 = (self.beta_min * d3 - self.beta_max * d2) / (d3 - d2);
        let k4 = (self.beta_max - self.beta_min) / (d3 - d2);
        k3 + k4 * da
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "illinois",
    aliases: &[],
    summary: "queueing delay sets how fast Reno grows and how much it gives up",
    source: "S. Liu, T. Basar, R. Srikant, TCP-Illinois, VALUETOOLS 2006",
    params: IllinoisParams::params,
    build: |params, init| {
        Ok(Box::new(Illinois::build(
            IllinoisParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The policy of TCP-Illinois: increase α and decrease β set by the queueing delay.
#[derive(Clone, Debug)]
pub struct Illinois {
    params: IllinoisParams,
    alpha: f64,
    beta: f64,
    rtt_max: Duration,
    /// Samples of the current round trip.
    sum: Duration,
    samples: u64,
    /// The delay has been beyond d1 since α was α_max.
    above: bool,
    /// Round trips in a row with a delay below d1 since then.
    low: u64,
}

impl Illinois {
    /// In slow start.
    pub fn build(params: IllinoisParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            alpha: params.alpha_max,
            beta: 0.5,
            rtt_max: Duration::ZERO,
            sum: Duration::ZERO,
            samples: 0,
            above: false,
            low: 0,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// A round trip has ended: its mean delay sets α and β.
    fn end_round(&mut self, window: &Window, rtt_min: Duration) {
        if self.samples == 0 {
            return;
        }
        let mean = self.sum / self.samples;
        self.sum = Duration::ZERO;
        self.samples = 0;
        let da = mean.saturating_sub(rtt_min).as_secs_f64();
        let dm = self.rtt_max.saturating_sub(rtt_min).as_secs_f64();
        if window.segments() < self.params.window_threshold {
            self.alpha = 1.0;
            self.beta = 0.5;
            return;
        }
        if da > self.params.eta1 * dm {
            self.above = true;
            self.low = 0;
            self.alpha = self.params.alpha(da, dm);
        } else if !self.above || self.low + 1 >= self.params.theta {
            self.above = false;
            self.low = 0;
            self.alpha = self.params.alpha_max;
        } else {
            self.low += 1; // one short round trip is not sufficient
        }
        self.beta = self.params.beta(da, dm);
    }
}

impl Policy for Illinois {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        if let Some(rtt) = ack.rtt {
            self.rtt_max = self.rtt_max.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
        if ack.round_start
            && let Some(rtt_min) = path.min_rtt
        {
            self.end_round(window, rtt_min);
        }
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        let share = (self.alpha / window.segments()).min(1.0);
        window.grow_by(share * acked.as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let small = window.segments() < self.params.window_threshold;
        let beta = if small { 0.5 } else { self.beta };
        if matches!(event.cause, Cause::Timeout { .. }) {
            // Reno until the next measurement.
            self.alpha = 1.0;
            self.beta = 0.5;
            self.above = false;
            self.low = 0;
            self.sum = Duration::ZERO;
            self.samples = 0;
        }
        window.reduction_base(event).mul_f64(1.0 - beta)
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
        out.push(("beta", self.beta));
    }
}

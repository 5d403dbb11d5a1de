//! FAST TCP (Wei, Jin, Low and Hegde, "FAST TCP: motivation, architecture, algorithms, performance", IEEE/ACM ToN
//! 14(6), 2006): moves the window towards alpha segments in the queue, in steps proportional to the distance.
//!
//! # Differences and choices
//! - α is tuned to the throughput, as in the authors' prototype: 200 segments, the value of the
//!   paper's experiments, above 180 Mbit/s, fewer below. `tuning = false` uses `alpha` always.
//! - Slow start doubles until the average queueing delay exceeds `mi_threshold`; the queue beyond α is then drained
//!   by the equation.
//! - Pacing takes the place of the prototype's burstiness control.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Rate};

use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::settle;
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`Fast`]; the defaults are those of the paper: γ = 1/2 every other round trip,
    /// half the window after a loss, α by table.
    pub struct FastParams: Copy as "Fast", const {
        /// Segments to keep in the queue, if `tuning` is off (α).
        alpha: f64 = 200.0, in 1.0..=1e5;
        /// Choose α by the throughput: 8 segments below 18 Mbit/s, 20 below 180 Mbit/s, 200 above.
        tuning: bool = true;
        /// Part of the way to the target covered in one update (γ).
        gamma: f64 = 0.5, in 0.001..=1.0;
        /// Round trips between updates of the window.
        period: u32 = 2, in 1..=100;
        /// Average queueing delay that ends slow start.
        mi_threshold: Duration = Duration::from_micros(750),
            in Duration::ZERO..=Duration::from_secs(10);
        /// Pace slightly above the window's rate.
        pacing: bool = true;
        /// Window kept after a loss or mark, as a fraction.
        decrease: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "fast",
    aliases: &[],
    summary: "moves towards a number of segments in the queue, in steps proportional to the distance",
    source: "D. X. Wei, C. Jin, S. H. Low, S. Hegde, FAST TCP: motivation, architecture, algorithms, \
             performance, IEEE/ACM ToN 14(6), 2006",
    params: FastParams::params,
    build: |params, init| {
        Ok(Box::new(Fast::build(
            FastParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Pacing rate over the window's rate in slow start, which doubles it within the round.
const SLOW_START_PACE: f64 = 2.0;
/// Pacing rate over the window's rate otherwise: the window, not the pacer, limits the sender.
const PACE: f64 = 1.2;

/// The table of α: (α, throughput in segments per millisecond up to which it holds, and below which
/// the step before holds again).
const LEVELS: [f64; 3] = [8.0, 20.0, 200.0];
const UP: [f64; 2] = [1.5, 15.0];
const DOWN: [f64; 2] = [1.25, 12.5];

/// A window that moves towards base/RTT · w + α.
#[derive(Clone, Debug)]
pub struct Fast {
    params: FastParams,
    /// baseRTT: the least round-trip time; [`Duration::MAX`] before the first sample.
    base: Duration,
    /// Average round-trip time in seconds; zero before the first sample.
    average: f64,
    /// Index of α in `LEVELS`.
    level: usize,
    /// Rounds since the latest update.
    rounds: u32,
}

impl Fast {
    /// In slow start.
    pub fn build(params: FastParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            base: Duration::MAX,
            average: 0.0,
            level: 0,
            rounds: 0,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// baseRTT/RTT with the average round-trip time, at most 1; 1 before the first sample.
    fn ratio(&self) -> f64 {
        if self.average > 0.0 {
            (self.base.as_secs_f64() / self.average).min(1.0)
        } else {
            1.0
        }
    }

    /// The average with weight min(3/w, 1/4) for each sample (§IV-A).
    fn sample(&mut self, rtt: Duration, path: &Path<'_>, cwnd: f64) {
        let least = path.min_rtt.unwrap_or(rtt).min(rtt);
        self.base = self.base.min(least);
        let rtt = rtt.as_secs_f64();
        if self.average > 0.0 {
            self.average += (3.0 / cwnd).min(0.25) * (rtt - self.average);
        } else {
            self.average = rtt;
        }
    }

    fn alpha(&self) -> f64 {
        if self.params.tuning {
            LEVELS[self.level]
        } else {
            self.params.alpha
        }
    }

    /// α for the throughput of `cwnd` segments per average round trip, with hysteresis.
    fn tune(&mut self, cwnd: f64) {
        let per_ms = cwnd / (1e3 * self.average);
        while self.level < UP.len() && per_ms > UP[self.level] {
            self.level += 1;
        }
        while self.level > 0 && per_ms < DOWN[self.level - 1] {
            self.level -= 1;
        }
    }

    /// w ← min(2w, (1 - γ) w + γ (baseRTT/RTT · w + α))
    fn target(&self, cwnd: f64) -> f64 {
        let gamma = self.params.gamma;
        let aim = self.ratio() * cwnd + self.alpha();
        ((1.0 - gamma) * cwnd + gamma * aim).min(2.0 * cwnd)
    }

    fn update(&mut self, window: &mut Window, limited: bool) {
        let cwnd = window.segments();
        self.tune(cwnd);
        let target = self.target(cwnd);
        if target < cwnd {
            settle(window, target, 2.0_f64.min(cwnd));
        } else if limited {
            window.grow_by((target - cwnd) * window.mss().as_f64());
        }
    }
}

impl Policy for Fast {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt, path, window.segments());
        }
        if ack.in_recovery || self.average <= 0.0 {
            return;
        }
        if window.in_slow_start() {
            let queueing = self.average - self.base.as_secs_f64();
            if queueing > self.params.mi_threshold.as_secs_f64() {
                window.exit_slow_start();
                self.rounds = 0;
            }
        } else if ack.round_start {
            self.rounds += 1;
            if self.rounds >= self.params.period {
                self.rounds = 0;
                self.update(window, ack.cwnd_limited);
            }
        }
    }

    fn increase(&mut self, _window: &mut Window, _acked: Bytes, _ack: &Acked, _path: &Path<'_>) {}

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.params.decrease)
    }

    fn reduced(&mut self, _window: &mut Window, _event: &Congestion) {
        self.rounds = 0;
    }

    /// The state has only measurements, which remain valid.
    fn restore(&mut self, _before: &Self) {}

    fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        if !self.params.pacing || self.average <= 0.0 {
            return None;
        }
        let factor = if window.in_slow_start() {
            SLOW_START_PACE
        } else {
            PACE
        };
        let rate = Rate::from_bps_f64(factor * 8.0 * window.cwnd().as_f64() / self.average);
        Some(rate.max(Rate::from_bps(1)))
    }

    fn gauges(&self, window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha_segments", self.alpha()));
        let backlog = window.segments() * (1.0 - self.ratio());
        out.push(("backlog_segments", backlog));
    }
}

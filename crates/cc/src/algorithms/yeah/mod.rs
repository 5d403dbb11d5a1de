//! YeAH-TCP (Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007):
//! Scalable TCP while the queue is short, and Reno that drains the queue when it is long.
//!
//! The constants are those of the authors' Linux module. Precautionary decongestion stops where Reno
//! flows compete: the window never falls below that of a Reno flow since the queue became long.
//!
//! # Differences
//! - The queue is estimated once per round from the minimum round-trip time of the round.
//! - A decongestion in slow start also ends it.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::{Round, RoundRtt, backlog, settle};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`Yeah`]; the defaults are those of the authors' Linux module, and 0.01 for
    /// STCP's increase.
    pub struct YeahParams: Copy as "Yeah", const {
        /// Segments in the queue above which it is emptied (Q_max).
        q_max: f64 = 80.0, in 0.0..=1e6;
        /// Slow mode begins at a queueing delay of the base round-trip time divided by this (φ).
        phy: f64 = 8.0, in 0.01..=1e4;
        /// Decongestion removes the queue divided by this (γ).
        gamma: f64 = 1.0, in 1.0..=1000.0;
        /// Decongestion removes at most cwnd / 2^ε.
        epsilon: f64 = 1.0, in 0.1..=16.0;
        /// A loss costs at least cwnd / 2^δ.
        delta: f64 = 3.0, in 1.0..=16.0;
        /// Rounds in slow mode from which a loss halves the window, as Reno flows are then assumed
        /// (ρ).
        rho: u32 = 16, in 0..=1_000_000;
        /// Rounds in fast mode after which no Reno flows are assumed any more (ζ).
        zeta: u32 = 50, in 0..=1_000_000;
        /// Growth per acknowledged segment in fast mode, segments.
        stcp_increase: f64 = 0.01, in 0.0001..=1.0;
        /// Round-trip samples below which a round is not judged.
        min_samples: u32 = 3, in 1..=1000;
        /// Window kept when Reno flows compete, after a timeout or a mark, as a fraction.
        decrease: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "yeah",
    aliases: &[],
    summary: "Scalable TCP while the queue is short; drains the queue when it is long",
    source: "A. Baiocchi, A. Castellani, F. Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet \
             2007",
    params: YeahParams::params,
    build: |params, init| {
        Ok(Box::new(Yeah::build(
            YeahParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Least window after a decongestion, and least Reno floor, in segments.
const LEAST: f64 = 2.0;

/// Fast and slow mode.
#[derive(Clone, Debug)]
pub struct Yeah {
    params: YeahParams,
    rounds: RoundRtt,
    /// Q of the latest estimated round, in segments.
    queue: f64,
    /// count_reno: rounds in slow mode since the last one in fast mode.
    slow_rounds: u32,
    /// count_fast: rounds in fast mode since the last loss.
    fast_rounds: u32,
    /// cwnd_reno: the window of a Reno flow, in segments; `LEAST` while none is assumed.
    reno: f64,
}

impl Yeah {
    /// In slow start.
    pub fn build(params: YeahParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            rounds: RoundRtt::new(init.initial_window),
            queue: 0.0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno: LEAST,
        };
        WindowBased::new(policy, params.window, init)
    }

    fn judge(&mut self, window: &mut Window, round: &Round) {
        let p = &self.params;
        self.queue = round.backlog();
        let congested = round.queueing().as_nanos() as f64 * p.phy > round.base.as_nanos() as f64;
        if self.queue <= p.q_max && !congested {
            self.fast_rounds = self.fast_rounds.saturating_add(1);
            if self.fast_rounds > p.zeta {
                self.fast_rounds = 0;
                self.reno = LEAST;
            }
            self.slow_rounds = 0;
            return;
        }
        let cwnd = window.segments();
        if self.queue > p.q_max && cwnd > self.reno {
            let most = cwnd * libm::exp2(-p.epsilon);
            settle(
                window,
                cwnd - (self.queue / p.gamma).min(most),
                self.reno.max(LEAST).min(cwnd),
            );
            self.rounds.restart(window.cwnd());
        }
        self.reno = if self.reno <= LEAST {
            (window.segments() / 2.0).max(LEAST)
        } else {
            (self.reno + 1.0).min(1e9)
        };
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }

    fn is_fast(&self) -> bool {
        self.slow_rounds == 0
    }
}

impl Policy for Yeah {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        if let Some(round) = self.rounds.observe(window, ack, path)
            && !ack.in_recovery
            && round.samples >= self.params.min_samples
        {
            self.judge(window, &round);
        }
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        if self.is_fast() {
            // Scalable TCP, but never slower than Reno.
            let share = self.params.stcp_increase.max(1.0 / window.segments());
            window.grow_by(acked.as_f64() * share);
        } else {
            window.additive_increase(acked);
        }
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        let base = window.reduction_base(event);
        let kept = if event.cause == Cause::Loss && self.slow_rounds < self.params.rho {
            // No Reno flows: the window is reduced by the queue, at least by an eighth, at most by half.
            let cwnd = base.as_f64() / window.mss().as_f64();
            // Slow start is far ahead of the latest judgement.
            let now = self.rounds.so_far(window, path);
            let queue = now.map_or(0.0, |r| backlog(cwnd, r.base, r.rtt));
            let least = libm::exp2(-self.params.delta);
            1.0 - (queue.max(self.queue) / cwnd.max(1.0)).max(least).min(0.5)
        } else {
            self.params.decrease
        };
        base.mul_f64(kept)
    }

    fn reduced(&mut self, window: &mut Window, _event: &Congestion) {
        self.rounds.restart(window.cwnd());
        self.fast_rounds = 0;
        self.reno = (self.reno / 2.0).max(LEAST);
    }

    fn on_mss(&mut self, window: &Window, old: Bytes) {
        let scale = old.as_f64() / window.mss().as_f64();
        self.queue *= scale;
        self.reno = (self.reno * scale).max(LEAST);
    }

    fn phase(&self, window: &Window) -> &'static str {
        if window.is_recovering() || window.in_slow_start() {
            window.phase()
        } else if self.is_fast() {
            "fast"
        } else {
            "slow"
        }
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("backlog_segments", self.queue));
        out.push(("reno_segments", self.reno));
    }
}

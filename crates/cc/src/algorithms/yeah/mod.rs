//! YeAH-TCP (Baiocchi, Castellani and Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007):
//! Scalable TCP while the queue is short, Reno that empties the queue itself when it is long.
//!
//! The constants are those of the authors' Linux module. Precautionary decongestion stops where Reno
//! flows compete: what a Reno flow would have had since the queue became long is the window's floor.
//!
//! # Differences
//! - The queue is judged once a round by the least round-trip time of the round.
//! - A decongestion in slow start also ends it.

use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::{BuildError, Param, Params, Values};
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::{Round, RoundRtt, backlog, settle};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

/// Parameters of [`Yeah`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct YeahParams {
    /// Q_max: segments in the queue beyond which it is emptied.
    pub q_max: f64,
    /// φ: the queueing delay may be baseRTT/φ in fast mode.
    pub phy: f64,
    /// γ: decongestion removes Q/γ.
    pub gamma: f64,
    /// ε: decongestion removes at most cwnd/2^ε.
    pub epsilon: f64,
    /// δ: a loss costs at least cwnd/2^δ.
    pub delta: f64,
    /// ρ: rounds in slow mode from which a loss halves the window, Reno flows being assumed.
    pub rho: u32,
    /// ζ: rounds in fast mode after which no Reno flows are assumed any more.
    pub zeta: u32,
    /// STCP's increase per acknowledged segment.
    pub stcp_increase: f64,
    /// Samples without which a round is not judged.
    pub min_samples: u32,
    /// Window kept when Reno flows compete, after a timeout or a mark.
    pub decrease: f64,
    /// The shared part.
    pub window: WindowParams,
}

impl YeahParams {
    /// The values of the authors' Linux module; STCP's 0.01.
    pub const DEFAULT: Self = Self {
        q_max: 80.0,
        phy: 8.0,
        gamma: 1.0,
        epsilon: 1.0,
        delta: 3.0,
        rho: 16,
        zeta: 50,
        stcp_increase: 0.01,
        min_samples: 3,
        decrease: 0.5,
        window: WindowParams::STANDARD,
    };

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            q_max: v.number("q_max"),
            phy: v.number("phy"),
            gamma: v.number("gamma"),
            epsilon: v.number("epsilon"),
            delta: v.number("delta"),
            rho: v.number("rho") as u32,
            zeta: v.number("zeta") as u32,
            stcp_increase: v.number("stcp_increase"),
            min_samples: v.number("min_samples") as u32,
            decrease: v.number("decrease"),
            window: WindowParams::read(&v),
        })
    }
}

impl Default for YeahParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: YeahParams = YeahParams::DEFAULT;

const PARAMS: [Param; 10 + WindowParams::PARAMS] = DEFAULT.window.after([
    Param::number(
        "q_max",
        "segments in the queue beyond which it is emptied",
        DEFAULT.q_max,
        0.0,
        1e6,
    ),
    Param::number(
        "phy",
        "slow mode begins at a queueing delay of the base round-trip time divided by this",
        DEFAULT.phy,
        0.01,
        1e4,
    ),
    Param::number(
        "gamma",
        "decongestion removes the queue divided by this",
        DEFAULT.gamma,
        1.0,
        1000.0,
    ),
    Param::number(
        "epsilon",
        "decongestion removes at most cwnd / 2^epsilon",
        DEFAULT.epsilon,
        0.1,
        16.0,
    ),
    Param::number(
        "delta",
        "a loss costs at least cwnd / 2^delta",
        DEFAULT.delta,
        1.0,
        16.0,
    ),
    Param::integer(
        "rho",
        "rounds in slow mode from which a loss halves the window",
        DEFAULT.rho as f64,
        0.0,
        1e6,
    ),
    Param::integer(
        "zeta",
        "rounds in fast mode after which competing Reno flows are forgotten",
        DEFAULT.zeta as f64,
        0.0,
        1e6,
    ),
    Param::number(
        "stcp_increase",
        "growth per acknowledged segment in fast mode, in segments",
        DEFAULT.stcp_increase,
        0.0001,
        1.0,
    ),
    Param::integer(
        "min_samples",
        "round-trip samples below which a round is not judged",
        DEFAULT.min_samples as f64,
        1.0,
        1000.0,
    ),
    Param::number(
        "decrease",
        "window kept when Reno flows compete, after a timeout or a mark, as a fraction",
        DEFAULT.decrease,
        0.01,
        0.99,
    ),
]);

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "yeah",
    aliases: &[],
    summary: "Scalable TCP while the queue is short; empties the queue itself when it is long",
    source: "A. Baiocchi, A. Castellani, F. Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet \
             2007",
    params: &PARAMS,
    build: |params, init| {
        Ok(Box::new(Yeah::build(
            YeahParams::from_params(params)?,
            &init,
        )))
    },
};

/// Least window a decongestion or a Reno floor asks for, in segments.
const LEAST: f64 = 2.0;

/// Fast and slow mode.
#[derive(Clone, Debug)]
pub struct Yeah {
    params: YeahParams,
    rounds: RoundRtt,
    /// Q of the latest judged round, in segments.
    queue: f64,
    /// count_reno: rounds in slow mode since the last one in fast mode.
    slow_rounds: u32,
    /// count_fast: rounds in fast mode since the last loss.
    fast_rounds: u32,
    /// cwnd_reno: what a Reno flow would have, in segments; `LEAST` while none is assumed.
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
            // No Reno flows: what waits in the queue goes, an eighth at least, half at most.
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

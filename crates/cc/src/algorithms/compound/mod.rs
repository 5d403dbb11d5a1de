//! Compound TCP (Tan, Song, Zhang and Sridharan, "A Compound TCP approach for high-speed and long distance
//! networks", INFOCOM 2006; draft-sridharan-tcpm-ctcp-02): Reno's window plus a delay window that grows with a
//! power of their sum while there is no queue.
//!
//! # Differences
//! - The queue is estimated once per round from the minimum round-trip time of the round.
//! - Timeouts and marks reduce the sum as in RFC 5681 and RFC 3168, and the delay window is reset after a timeout.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion, Sent};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::{Round, RoundRtt, backlog, settle};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`Compound`]; the defaults are those of the paper, and of the draft for the
    /// tuning of γ, which is off.
    pub struct CompoundParams: Copy as "Compound", const {
        /// Factor α of the increase α·win^k, segments per round trip.
        alpha: f64 = 0.125, in 0.0..=10.0;
        /// Part β of the window given up after a loss or mark.
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Exponent k of the increase α·win^k.
        k: f64 = 0.75, in 0.0..=1.0;
        /// Queue length from which the delay window shrinks, segments (γ).
        gamma: f64 = 30.0, in 0.0..=1e5;
        /// The delay window shrinks by this factor times the queue length (ζ).
        zeta: f64 = 1.0, in 0.0..=100.0;
        /// Let γ follow the queue length seen before losses (draft §5).
        tune_gamma: bool = false;
        /// Weight λ of the newest queue length in a tuned γ.
        lambda: f64 = 0.8, in 0.0..=1.0;
        /// Least tuned γ, segments.
        gamma_low: f64 = 5.0, in 0.0..=1e5;
        /// Greatest tuned γ, segments.
        gamma_high: f64 = 30.0, in 0.0..=1e5;
        /// Round-trip samples below which a round is not judged.
        min_samples: u32 = 3, in 1..=1000;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "compound",
    aliases: &["ctcp"],
    summary: "Reno's window plus a delay window that grows fast without a queue and shrinks with one",
    source: "K. Tan, J. Song, Q. Zhang, M. Sridharan, A Compound TCP approach for high-speed and \
             long distance networks, INFOCOM 2006; draft-sridharan-tcpm-ctcp-02",
    params: CompoundParams::params,
    build: |params, init| {
        Ok(Box::new(Compound::build(
            CompoundParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The delay window; [`Window`] holds the sum.
#[derive(Clone, Debug)]
pub struct Compound {
    params: CompoundParams,
    rounds: RoundRtt,
    /// dwnd in segments.
    dwnd: f64,
    /// γ in force.
    gamma: f64,
    /// Diff of the latest estimated round.
    diff: f64,
    /// Diff_reno: the loss window's part of the queue in the latest estimated round; used once, by a loss.
    diff_reno: Option<f64>,
}

impl Compound {
    /// In slow start.
    pub fn build(params: CompoundParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            rounds: RoundRtt::new(init.initial_window),
            dwnd: 0.0,
            gamma: params.gamma,
            diff: f64::NAN,
            diff_reno: None,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// Once a round in congestion avoidance (equation 4, without the case of loss).
    fn judge(&mut self, window: &mut Window, round: &Round, limited: bool) {
        let win = window.segments();
        self.diff = round.backlog();
        let reno = (win - self.dwnd).max(0.0);
        self.diff_reno = Some(backlog(reno, round.base, round.rtt));
        if self.diff < self.gamma {
            if limited {
                // The loss window adds the one segment that is subtracted.
                let growth = (self.params.alpha * libm::pow(win, self.params.k) - 1.0).max(0.0);
                self.dwnd += growth;
                window.grow_by(growth * window.mss().as_f64());
            }
        } else {
            let shrunk = (self.params.zeta * self.diff).min(self.dwnd);
            if shrunk > 0.0 {
                self.dwnd -= shrunk;
                settle(window, win - shrunk, 2.0_f64.min(win));
            }
        }
        self.dwnd = self.dwnd.min(window.segments());
    }

    /// γ after a loss (draft §5): three quarters of the queue that Reno alone made.
    fn tune(&mut self) {
        if let Some(queue) = self.diff_reno.take()
            && self.params.tune_gamma
        {
            let lambda = self.params.lambda;
            self.gamma = ((1.0 - lambda) * self.gamma + lambda * 0.75 * queue)
                .max(self.params.gamma_low)
                .min(self.params.gamma_high);
        }
    }
}

impl Policy for Compound {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        if let Some(round) = self.rounds.observe(window, ack, path)
            && !ack.in_recovery
            && !window.in_slow_start()
            && round.samples >= self.params.min_samples
        {
            self.judge(window, &round, ack.cwnd_limited);
        }
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(acked); // the loss window: 1/win per segment
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let base = window.reduction_base(event);
        let win = base.as_f64() / window.mss().as_f64();
        let target = base.mul_f64(1.0 - self.params.beta);
        if matches!(event.cause, Cause::Timeout { .. }) {
            self.dwnd = 0.0;
            self.gamma = self.params.gamma;
            self.diff_reno = None;
            return target;
        }
        // dwnd = win (1 - beta) - cwnd/2, not negative; the loss window is halved.
        let reno = (win - self.dwnd).max(0.0) / 2.0;
        self.dwnd = (win * (1.0 - self.params.beta) - reno).max(0.0);
        self.tune();
        target.max(Bytes::from_f64(reno * window.mss().as_f64()))
    }

    fn reduced(&mut self, window: &mut Window, _event: &Congestion) {
        self.rounds.restart(window.cwnd());
    }

    fn on_send(&mut self, window: &mut Window, _sent: &Sent, restarted: bool) {
        if restarted {
            self.dwnd = 0.0;
            self.rounds.restart(window.cwnd());
        }
    }

    fn on_mss(&mut self, window: &Window, old: Bytes) {
        self.dwnd *= old.as_f64() / window.mss().as_f64();
        self.dwnd = self.dwnd.min(window.segments());
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("dwnd_segments", self.dwnd));
        out.push(("backlog_segments", self.diff));
        out.push(("gamma_segments", self.gamma));
    }
}

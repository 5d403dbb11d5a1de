//! CUBIC (RFC 9438).
//!
//! # Differences from the RFC's text
//! - §4.4, §4.5: an acknowledgement of n segments adds n times (target - cwnd)/cwnd, so delayed
//!   acknowledgements do not slow CUBIC down.
//! - §4.3: in the Reno-friendly region cwnd is never lowered to W_est: the larger of the two
//!   increases applies.
//! - §4.2: when cwnd at the start of an epoch is not below W_max (after an idle restart), K is 0 and
//!   the curve starts from cwnd.
//! - §4.9.2: a spurious reduction leaves the curve as it was; after a timeout likewise (RFC 4015).
//! - `connections` > 1 emulates that many flows as Google's QUIC does: beta and alpha become those
//!   of the aggregate, and alpha is the number of connections once W_est >= cwnd_prior.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Instant};

use crate::event::{Acked, Cause, Congestion, Sent};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::slow_start::SlowStartKind;
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`Cubic`]; the defaults are those of RFC 9438, with HyStart++ (§4.10).
    pub struct CubicParams: Copy as "Cubic", const {
        /// Aggressiveness C, segments per second cubed (§5.1).
        c: f64 = 0.4, in 1e-4..=1e4;
        /// Window kept after a loss, as a fraction (β_cubic, §4.6).
        beta: f64 = 0.7, in 0.01..=0.99;
        /// Window kept after an ECN mark, as a fraction (§4.6: as after a loss; RFC 8511: 0.85).
        beta_ecn: f64 = 0.7, in 0.01..=0.99;
        /// Give up bandwidth faster when the saturation point has fallen (§4.7).
        fast_convergence: bool = true;
        /// Never grow more slowly than Reno would (§4.3).
        reno_friendly: bool = true;
        /// Number of flows emulated, as in Google's QUIC.
        connections: u32 = 1, in 1..=1000;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams {
            slow_start: SlowStartKind::HyStartPlusPlus,
            ..WindowParams::DEFAULT
        };
    }
}

impl CubicParams {
    /// `beta` of one connection as the share kept by all when one of them reduces.
    fn aggregate(&self, beta: f64) -> f64 {
        let n = f64::from(self.connections.max(1));
        (n - 1.0 + beta) / n
    }

    /// α_cubic (§4.3), times the square of the number of connections: each adds α per round trip
    /// and each keeps only its share.
    fn alpha(&self) -> f64 {
        let n = f64::from(self.connections.max(1));
        let beta = self.aggregate(self.beta);
        3.0 * n * n * (1.0 - beta) / (1.0 + beta)
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    aliases: &[],
    summary: "window grows with the cube of the time since the last loss; the common default",
    source: "RFC 9438",
    params: CubicParams::params,
    build: |params, init| {
        Ok(Box::new(Cubic::build(
            CubicParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The window curve of one congestion-avoidance stage; windows in segments, times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Curve {
    /// t_epoch; `None` until the first acknowledgement of the stage.
    epoch: Option<Instant>,
    /// K: time from the start of the epoch to the plateau of the curve (equation 2).
    k: f64,
    /// The plateau: W_max unless the stage starts above it.
    plateau: f64,
    /// W_max: the window before the latest reduction, lowered by fast convergence (§4.7); in a fresh stage its first
    /// window.
    w_max: f64,
    /// W_est: the window that Reno would have in this stage (§4.3).
    w_est: f64,
    /// cwnd_prior: the window before the latest reduction. From W_est >= cwnd_prior on, α_cubic is 1 for each
    /// connection (§4.3).
    cwnd_prior: f64,
    /// The next stage starts without a W_max: the first one, and the one after a timeout (§4.8,
    /// §4.10).
    fresh: bool,
    /// Since when cwnd has not been updated because it was not the limit (§5.8).
    frozen_since: Option<Instant>,
}

/// The policy of CUBIC: a cubic window curve, and the Reno-friendly region.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    alpha: f64,
    inverse_mss: f64,
    curve: Curve,
}

impl Cubic {
    /// In slow start.
    pub fn build(params: CubicParams, init: &Init) -> WindowBased<Self> {
        let mss = Window::new(init, params.window).mss(); // within its bounds
        let cubic = Self {
            alpha: params.alpha(),
            inverse_mss: 1.0 / mss.as_f64(),
            params,
            curve: Curve {
                fresh: true,
                ..Curve::default()
            },
        };
        WindowBased::new(cubic, params.window, init)
    }

    /// Starts a congestion-avoidance stage; the only computation of a cube root.
    fn begin_epoch(&mut self, window: &Window, now: Instant) {
        let cwnd = window.segments();
        let curve = &mut self.curve;
        curve.epoch = Some(now);
        curve.frozen_since = None;
        curve.w_est = cwnd; // §4.3
        if curve.fresh {
            curve.fresh = false;
            curve.w_max = cwnd; // §4.8, §4.10
            if curve.cwnd_prior == 0.0 {
                curve.cwnd_prior = cwnd; // §4.10
            }
        }
        curve.plateau = curve.w_max.max(cwnd);
        curve.k = k(curve.plateau, cwnd, self.params.c);
    }

    /// Congestion avoidance (§4.2 to §4.5).
    fn avoid_congestion(
        &mut self,
        window: &mut Window,
        now: Instant,
        acked: Bytes,
        srtt: Duration,
    ) {
        let epoch = match self.curve.epoch {
            Some(epoch) => self.thaw(now, epoch),
            None => {
                self.begin_epoch(window, now);
                now
            }
        };
        let cwnd = float(window.cwnd().get()) * self.inverse_mss;
        let curve = &mut self.curve;
        // segments_acked / cwnd: the part of a window this acknowledgement stands for.
        let share = (float(acked.get()) / float(window.cwnd().get())).min(1.0);
        let t = seconds(now - epoch) - curve.k;
        let target =
            w_cubic(t + seconds(srtt), self.params.c, curve.plateau).clamp(cwnd, 1.5 * cwnd);
        let mut growth = (target - cwnd) * share;
        if self.params.reno_friendly {
            let alpha = if curve.w_est < curve.cwnd_prior {
                self.alpha
            } else {
                f64::from(self.params.connections)
            };
            curve.w_est += alpha * share;
            if w_cubic(t, self.params.c, curve.plateau) < curve.w_est {
                growth = growth.max(curve.w_est - cwnd);
            }
        }
        window.grow_by(growth * window.mss().as_f64());
    }

    /// Shifts the epoch by a period in which cwnd was not updated (§5.8); returns the new epoch.
    #[inline]
    fn thaw(&mut self, now: Instant, epoch: Instant) -> Instant {
        match self.curve.frozen_since.take() {
            None => epoch,
            Some(since) => {
                let epoch = (epoch + (now - since.max(epoch))).min(now);
                self.curve.epoch = Some(epoch);
                epoch
            }
        }
    }

    fn freeze(&mut self, since: Instant) {
        if self.curve.epoch.is_some() {
            self.curve.frozen_since.get_or_insert(since);
        }
    }
}

/// A count far below 2^63 as a float: the signed conversion is one instruction.
#[inline]
fn float(n: u64) -> f64 {
    n as i64 as f64
}

/// A span far below 2^63 nanoseconds in seconds.
#[inline]
fn seconds(d: Duration) -> f64 {
    float(d.as_nanos()) * 1e-9
}

/// W_cubic at `t` seconds after the plateau (equation 1 with t - K given).
#[inline]
fn w_cubic(t: f64, c: f64, plateau: f64) -> f64 {
    c * t * t * t + plateau
}

/// K in seconds (equation 2).
fn k(w_max: f64, cwnd_epoch: f64, c: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch) / c)
}

impl Policy for Cubic {
    fn on_send(&mut self, _window: &mut Window, sent: &Sent, restarted: bool) {
        let Some(idle) = &sent.idle else { return };
        if restarted {
            self.curve.epoch = None; // a new stage begins after the slow start
        } else if sent.app_limited || idle.duration > idle.rto {
            self.freeze(sent.now - idle.duration);
        }
    }

    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        let left = window.slow_start(ack);
        if left.is_zero() && !ack.cwnd_limited {
            self.freeze(ack.now);
        }
        left
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, ack: &Acked, path: &Path<'_>) {
        let srtt = path.srtt.unwrap_or(Duration::ZERO);
        self.avoid_congestion(window, ack.now, acked, srtt);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let beta = match event.cause {
            Cause::Ecn => self.params.beta_ecn,
            Cause::Loss | Cause::Timeout { .. } => self.params.beta,
        };
        let beta = self.params.aggregate(beta);
        let curve = &mut self.curve;
        let again = matches!(event.cause, Cause::Timeout { consecutive } if consecutive > 1);
        if !again {
            let cwnd = window.segments();
            // §4.7
            curve.w_max = if self.params.fast_convergence && cwnd < curve.w_max {
                cwnd * (1.0 + beta) / 2.0
            } else {
                cwnd
            };
            curve.cwnd_prior = cwnd;
        }
        curve.epoch = None;
        curve.frozen_since = None;
        curve.fresh = matches!(event.cause, Cause::Timeout { .. }); // §4.8
        window.reduction_base(event).mul_f64(beta)
    }

    fn on_mss(&mut self, window: &Window, old: Bytes) {
        let scale = old.as_f64() / window.mss().as_f64();
        self.inverse_mss = 1.0 / window.mss().as_f64();
        // The curve is in segments; a new stage starts from the same window in bytes.
        self.curve.w_max *= scale;
        self.curve.cwnd_prior *= scale;
        self.curve.epoch = None;
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("w_max_segments", self.curve.w_max));
        out.push(("w_est_segments", self.curve.w_est));
        out.push(("k_s", self.curve.k));
    }
}

//! H-TCP (D. Leith and R. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet
//! 2004; draft-leith-tcp-htcp-06).
//!
//! The increase grows with the time since the latest congestion event, not with the window, so a new flow is as
//! fast as an old one; the decrease just empties the queue.
//!
//! # Where the sources differ or leave a choice
//! - RTT scaling, an option in the sources, is on, as in Linux: ᾱ is multiplied by
//!   RTTmin/100 ms within [0.1, 2], below Δ_L too.
//! - RTTmax: what a congestion event leaves of it is `rtt_max_decay`, 0.95 as implementations have
//!   it; acknowledgements of fast recovery, which reflect the queue before the event, do not count.
//! - The throughput of the 20 % rule is the greatest of the rounds between two events.
//! - The window grows no faster than in slow start.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Instant};

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`HTcp`]; the defaults are those of draft-leith-tcp-htcp-06.
    pub struct HTcpParams: Copy as "HTcp", const {
        /// Time after a congestion event during which the increase is Reno's (Δ_L).
        delta_l: Duration = Duration::from_secs(1), in Duration::ZERO..=Duration::from_secs(1000);
        /// Increase after `delta_l`, segments per round trip and second.
        linear: f64 = 10.0, in 0.0..=1e4;
        /// Increase after `delta_l`, segments per round trip and second squared (1/4 is the factor
        /// of ((Δ - Δ_L)/2)²).
        quadratic: f64 = 0.25, in 0.0..=1e4;
        /// Least window kept after a loss, as a fraction.
        beta_min: f64 = 0.5, in 0.01..=0.5;
        /// Greatest window kept after a loss, as a fraction.
        beta_max: f64 = 0.8, in 0.5..=0.99;
        /// Keep RTTmin/RTTmax of the window after a loss; otherwise `beta_min`.
        adaptive_backoff: bool = true;
        /// Change of the throughput between losses, as a fraction, above which `beta_min` is kept
        /// (Δ_B).
        throughput_change: f64 = 0.2, in 0.0..=100.0;
        /// Part of RTTmax - RTTmin that remains after a congestion event.
        rtt_max_decay: f64 = 0.95, in 0.0..=1.0;
        /// Increase in proportion to the round-trip time.
        rtt_scaling: bool = true;
        /// Round-trip time at which scaling changes nothing.
        rtt_reference: Duration = Duration::from_millis(100),
            in Duration::from_millis(1)..=Duration::from_secs(10);
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl HTcpParams {
    /// ᾱ(Δ): segments of growth per round trip before scaling.
    pub fn alpha(&self, since: Duration) -> f64 {
        let beyond = since.saturating_sub(self.delta_l).as_secs_f64();
        1.0 + (self.linear + self.quadratic * beyond) * beyond
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "htcp",
    aliases: &["h-tcp"],
    summary: "increase that grows with the time since the last loss, decrease to RTTmin/RTTmax",
    source: "D. Leith, R. Shorten, draft-leith-tcp-htcp-06; PFLDnet 2004",
    params: HTcpParams::params,
    build: |params, init| {
        Ok(Box::new(HTcp::build(
            HTcpParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Delivered bytes of the current round trip, and the maximum of the earlier ones.
#[derive(Clone, Copy, Debug)]
struct Throughput {
    since: Instant,
    bytes: Bytes,
    /// Bytes per second, since the latest congestion event.
    greatest: f64,
}

impl Throughput {
    fn on_ack(&mut self, ack: &Acked) {
        self.bytes += ack.bytes;
        if !ack.round_start {
            return;
        }
        let elapsed = (ack.now - self.since).as_secs_f64();
        if elapsed > 0.0 {
            self.greatest = self.greatest.max(self.bytes.as_f64() / elapsed);
        }
        self.since = ack.now;
        self.bytes = Bytes::ZERO;
    }
}

/// The policy of H-TCP: an increase that grows with the time since the latest congestion event, adaptive backoff.
#[derive(Clone, Debug)]
pub struct HTcp {
    params: HTcpParams,
    /// When the latest congestion event was: Δ counts from here.
    event: Instant,
    beta: f64,
    rtt_max: Duration,
    throughput: Throughput,
    /// B: the greatest throughput before the latest congestion event, bytes per second.
    before: Option<f64>,
}

impl HTcp {
    /// In slow start.
    pub fn build(params: HTcpParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            event: init.now,
            beta: params.beta_min,
            rtt_max: Duration::ZERO,
            throughput: Throughput {
                since: init.now,
                bytes: Bytes::ZERO,
                greatest: 0.0,
            },
            before: None,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// α: segments of growth per round trip.
    fn alpha(&self, now: Instant, min_rtt: Option<Duration>) -> f64 {
        let scale = match min_rtt {
            Some(rtt) if self.params.rtt_scaling => {
                (rtt.as_secs_f64() / self.params.rtt_reference.as_secs_f64()).clamp(0.1, 2.0)
            }
            _ => 1.0,
        };
        2.0 * (1.0 - self.beta) * scale * self.params.alpha(now.saturating_since(self.event))
    }

    /// The next β (adaptive backoff).
    fn next_beta(&self, min_rtt: Option<Duration>) -> f64 {
        let p = &self.params;
        let (Some(before), Some(rtt_min)) = (self.before, min_rtt) else {
            return p.beta_min;
        };
        let changed = (self.throughput.greatest - before).abs() > p.throughput_change * before;
        if !p.adaptive_backoff || changed || self.rtt_max.is_zero() {
            return p.beta_min;
        }
        let ratio = rtt_min.as_secs_f64() / self.rtt_max.as_secs_f64();
        ratio.clamp(p.beta_min, p.beta_max)
    }
}

impl Policy for HTcp {
    fn observe(&mut self, _window: &mut Window, ack: &Acked, _path: &Path<'_>) {
        self.throughput.on_ack(ack);
        if let Some(rtt) = ack.rtt
            && !ack.in_recovery
        {
            self.rtt_max = self.rtt_max.max(rtt);
        }
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, ack: &Acked, path: &Path<'_>) {
        let alpha = self.alpha(ack.now, path.min_rtt) * window.mss().as_f64();
        let share = (alpha / window.cwnd().as_f64()).min(1.0);
        window.grow_by(share * acked.as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        if matches!(event.cause, Cause::Timeout { consecutive } if consecutive > 1) {
            self.event = event.now;
            return window.cwnd();
        }
        self.beta = self.next_beta(path.min_rtt);
        self.event = event.now;
        self.before = (self.throughput.greatest > 0.0).then_some(self.throughput.greatest);
        self.throughput.greatest = 0.0;
        if let Some(rtt_min) = path.min_rtt {
            let queued = self.rtt_max.saturating_sub(rtt_min);
            self.rtt_max = rtt_min + queued.mul_f64(self.params.rtt_max_decay);
        }
        window.reduction_base(event).mul_f64(self.beta)
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("beta", self.beta));
        out.push(("rtt_max", self.rtt_max.as_secs_f64()));
    }
}

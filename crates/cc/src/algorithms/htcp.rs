//! H-TCP (D. Leith and R. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet
//! 2004; draft-leith-tcp-htcp-06).
//!
//! The increase grows with the time since the latest congestion event, not with the window, so a new
//! flow is as fast as an old one; the decrease empties the queue and no more.
//!
//! # Where the sources differ or are silent
//! - RTT scaling, an option in the sources, is on, as in Linux: ᾱ is multiplied by
//!   RTTmin/100 ms within [0.1, 2], below Δ_L too.
//! - RTTmax: what a congestion event leaves of it is `rtt_max_decay`, 0.95 as implementations have
//!   it; acknowledgements of fast recovery, which tell of the queue before the event, do not count.
//! - The throughput of the 20 % rule is the greatest of the rounds between two events.
//! - The window grows no faster than in slow start.

use gargalo_units::{Bytes, Duration, Instant};

use crate::event::{Acked, Cause, Congestion};
use crate::params::{BuildError, Param, Params, Values};
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

/// Parameters of [`HTcp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HTcpParams {
    /// Δ_L: until so long after a congestion event ᾱ is 1.
    pub delta_l: Duration,
    /// ᾱ per second beyond Δ_L.
    pub linear: f64,
    /// ᾱ per square second beyond Δ_L: 1/4, from ((Δ - Δ_L)/2)².
    pub quadratic: f64,
    /// Least β.
    pub beta_min: f64,
    /// Greatest β.
    pub beta_max: f64,
    /// β = RTTmin/RTTmax; else always `beta_min`.
    pub adaptive_backoff: bool,
    /// Δ_B: a throughput change by more than this, as a fraction, sets β to `beta_min`.
    pub throughput_change: f64,
    /// What a congestion event leaves of RTTmax - RTTmin.
    pub rtt_max_decay: f64,
    /// Increase in proportion to the round-trip time.
    pub rtt_scaling: bool,
    /// The round-trip time at which scaling changes nothing.
    pub rtt_reference: Duration,
    /// The shared part.
    pub window: WindowParams,
}

impl HTcpParams {
    /// The values of draft-leith-tcp-htcp-06.
    pub const DEFAULT: Self = Self {
        delta_l: Duration::from_secs(1),
        linear: 10.0,
        quadratic: 0.25,
        beta_min: 0.5,
        beta_max: 0.8,
        adaptive_backoff: true,
        throughput_change: 0.2,
        rtt_max_decay: 0.95,
        rtt_scaling: true,
        rtt_reference: Duration::from_millis(100),
        window: WindowParams::STANDARD,
    };

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            delta_l: v.duration("delta_l"),
            linear: v.number("linear"),
            quadratic: v.number("quadratic"),
            beta_min: v.number("beta_min"),
            beta_max: v.number("beta_max"),
            adaptive_backoff: v.bool("adaptive_backoff"),
            throughput_change: v.number("throughput_change"),
            rtt_max_decay: v.number("rtt_max_decay"),
            rtt_scaling: v.bool("rtt_scaling"),
            rtt_reference: v.duration("rtt_reference"),
            window: WindowParams::read(&v),
        })
    }

    /// ᾱ(Δ): segments of growth per round trip before scaling.
    pub fn alpha(&self, since: Duration) -> f64 {
        let beyond = since.saturating_sub(self.delta_l).as_secs_f64();
        1.0 + (self.linear + self.quadratic * beyond) * beyond
    }
}

impl Default for HTcpParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: HTcpParams = HTcpParams::DEFAULT;

const PARAMS: [Param; 10 + WindowParams::PARAMS] = DEFAULT.window.after([
    Param::duration(
        "delta_l",
        "time after a congestion event during which the increase is Reno's (Delta_L)",
        DEFAULT.delta_l,
        Duration::ZERO,
        Duration::from_secs(1000),
    ),
    Param::number(
        "linear",
        "increase beyond delta_l, segments per round trip and second",
        DEFAULT.linear,
        0.0,
        1e4,
    ),
    Param::number(
        "quadratic",
        "increase beyond delta_l, segments per round trip and square second",
        DEFAULT.quadratic,
        0.0,
        1e4,
    ),
    Param::number(
        "beta_min",
        "least window kept after a loss, as a fraction",
        DEFAULT.beta_min,
        0.01,
        0.5,
    ),
    Param::number(
        "beta_max",
        "greatest window kept after a loss, as a fraction",
        DEFAULT.beta_max,
        0.5,
        0.99,
    ),
    Param::bool(
        "adaptive_backoff",
        "keep RTTmin/RTTmax of the window after a loss; otherwise beta_min",
        DEFAULT.adaptive_backoff,
    ),
    Param::number(
        "throughput_change",
        "change of throughput between losses beyond which beta_min is kept, as a fraction (Delta_B)",
        DEFAULT.throughput_change,
        0.0,
        100.0,
    ),
    Param::number(
        "rtt_max_decay",
        "what a congestion event leaves of RTTmax - RTTmin, as a fraction",
        DEFAULT.rtt_max_decay,
        0.0,
        1.0,
    ),
    Param::bool(
        "rtt_scaling",
        "increase in proportion to the round-trip time",
        DEFAULT.rtt_scaling,
    ),
    Param::duration(
        "rtt_reference",
        "round-trip time at which scaling changes nothing",
        DEFAULT.rtt_reference,
        Duration::from_millis(1),
        Duration::from_secs(10),
    ),
]);

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "htcp",
    aliases: &["h-tcp"],
    summary: "increase that grows with the time since the last loss, decrease to RTTmin/RTTmax",
    source: "D. Leith, R. Shorten, draft-leith-tcp-htcp-06; PFLDnet 2004",
    params: &PARAMS,
    build: |params, init| {
        Ok(Box::new(HTcp::build(
            HTcpParams::from_params(params)?,
            &init,
        )))
    },
};

/// Delivered bytes of the round trip under way and the best of the rounds before it.
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

/// H-TCP.
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

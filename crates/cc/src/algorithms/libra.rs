//! TCP Libra (G. Marfia, C. Palazzi, G. Pau, M. Gerla, M. Sanadidi and M. Roccetti, "TCP Libra:
//! exploring RTT-fairness for TCP", UCLA TR-050037, 2005; Networking 2007).
//!
//! Increase and decrease depend on the round-trip time T so that the rate w/T does not: in
//! equilibrium it is √(2α/(p·T1)) segments a second at a loss rate of p, whatever T.
//!
//! # Where the source is silent
//! - The unit of the capacity c in α = k1·c·exp(…) is taken to be Mbit/s.
//! - c is measured by packet pairs, as in CapProbe of the same authors, but never taken for less than
//!   the greatest delivery rate; `capacity` fixes it.
//! - T is the smoothed round-trip time, Tmin and Tmax are the extremes of the connection.
//! - Without a round-trip time the window grows as Reno's and is halved.

use gargalo_units::{Bytes, Duration, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::event::{Acked, Congestion};
use crate::packet_pair::PacketPair;
use crate::params::{BuildError, Param, Params, Values};
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

/// Parameters of [`Libra`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LibraParams {
    /// k1: α per Mbit/s of capacity without a queue.
    pub k1: f64,
    /// k2: how fast α falls with the queueing delay.
    pub k2: f64,
    /// T0.
    pub t0: Duration,
    /// T1.
    pub t1: Duration,
    /// Capacity of the bottleneck in Mbit/s; zero: measured.
    pub capacity: f64,
    /// Draw the gaps between packets at random.
    pub random_pacing: bool,
    /// The shared part.
    pub window: WindowParams,
}

impl LibraParams {
    /// The published values.
    pub const DEFAULT: Self = Self {
        k1: 2.0,
        k2: 2.0,
        t0: Duration::from_secs(1),
        t1: Duration::from_secs(1),
        capacity: 0.0,
        random_pacing: true,
        window: WindowParams::STANDARD,
    };

    fn from_params(params: &Params) -> Result<Self, BuildError> {
        let v = Values::check(ALGORITHM.name, ALGORITHM.params, params)?;
        Ok(Self {
            k1: v.number("k1"),
            k2: v.number("k2"),
            t0: v.duration("t0"),
            t1: v.duration("t1"),
            capacity: v.number("capacity"),
            random_pacing: v.bool("random_pacing"),
            window: WindowParams::read(&v),
        })
    }

    /// α at a capacity of `c` Mbit/s and a round-trip time `queue` of the way from Tmin to Tmax.
    pub fn alpha(&self, c: f64, queue: f64) -> f64 {
        self.k1 * c * libm::exp(-self.k2 * queue)
    }

    /// Segments of growth per round trip of `t` seconds.
    pub fn increase(&self, alpha: f64, t: f64) -> f64 {
        alpha * t * t / (t + self.t0.as_secs_f64())
    }

    /// The share of the window given up after a loss at a round-trip time of `t` seconds.
    pub fn decrease(&self, t: f64) -> f64 {
        let share = self.t1.as_secs_f64() / (2.0 * (t + self.t0.as_secs_f64()));
        share.min(0.99)
    }
}

impl Default for LibraParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const DEFAULT: LibraParams = LibraParams::DEFAULT;

const PARAMS: [Param; 6 + WindowParams::PARAMS] = DEFAULT.window.after([
    Param::number(
        "k1",
        "increase per Mbit/s of capacity, segments per second",
        DEFAULT.k1,
        1e-6,
        1e6,
    ),
    Param::number(
        "k2",
        "how fast the increase falls with the queueing delay",
        DEFAULT.k2,
        0.0,
        100.0,
    ),
    Param::duration(
        "t0",
        "T0, beyond which the round-trip time tells in increase and decrease",
        DEFAULT.t0,
        Duration::from_millis(1),
        Duration::from_secs(100),
    ),
    Param::duration(
        "t1",
        "T1, the decrease in proportion to T0",
        DEFAULT.t1,
        Duration::from_millis(1),
        Duration::from_secs(100),
    ),
    Param::number(
        "capacity",
        "capacity of the bottleneck, Mbit/s; 0: measured by packet pairs",
        DEFAULT.capacity,
        0.0,
        1e7,
    ),
    Param::bool(
        "random_pacing",
        "where the transport paces, draw each gap from half to one and a half times its mean",
        DEFAULT.random_pacing,
    ),
]);

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "libra",
    aliases: &[],
    summary: "increase and decrease that make the rate independent of the round-trip time",
    source: "G. Marfia et al., TCP Libra: exploring RTT-fairness for TCP, Networking 2007",
    params: &PARAMS,
    build: |params, init| {
        Ok(Box::new(Libra::build(
            LibraParams::from_params(params)?,
            init,
        )))
    },
};

/// TCP Libra.
#[derive(Clone, Debug)]
pub struct Libra {
    params: LibraParams,
    rng: Pcg64,
    pair: PacketPair,
    srtt: Option<Duration>,
    rtt_max: Duration,
    /// What the next gap is multiplied with.
    gap: f64,
}

impl Libra {
    /// In slow start.
    pub fn build(params: LibraParams, init: Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            rng: init.rng.clone(),
            pair: PacketPair::default(),
            srtt: None,
            rtt_max: Duration::ZERO,
            gap: 1.0,
        };
        WindowBased::new(policy, params.window, &init)
    }

    /// α; `None` before anything is known of the path.
    fn alpha(&self, path: &Path<'_>) -> Option<f64> {
        let c = if self.params.capacity > 0.0 {
            self.params.capacity
        } else {
            self.pair.capacity()? * 8e-6
        };
        let (t, least) = (self.srtt?, path.min_rtt?);
        let greatest = self.rtt_max.saturating_sub(least).as_secs_f64();
        let queue = if greatest > 0.0 {
            t.saturating_sub(least).as_secs_f64() / greatest
        } else {
            0.0
        };
        Some(self.params.alpha(c, queue.min(1.0)))
    }
}

impl Policy for Libra {
    fn observe(&mut self, _window: &mut Window, ack: &Acked, path: &Path<'_>) {
        self.pair.on_ack(ack);
        self.srtt = path.srtt;
        if let Some(rtt) = ack.rtt {
            self.rtt_max = self.rtt_max.max(rtt);
        }
        if self.params.random_pacing {
            self.gap = self.rng.random_range(0.5..1.5);
        }
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, path: &Path<'_>) {
        let per_round = match (self.alpha(path), self.srtt) {
            (Some(alpha), Some(t)) => self.params.increase(alpha, t.as_secs_f64()),
            _ => 1.0,
        };
        // No faster than slow start.
        let share = (per_round / window.segments()).min(1.0);
        window.grow_by(share * acked.as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        let share = match path.srtt {
            Some(t) => self.params.decrease(t.as_secs_f64()),
            None => 0.5,
        };
        window.reduction_base(event).mul_f64(1.0 - share)
    }

    fn restore(&mut self, before: &Self) {
        // Random numbers are not drawn twice; the rest is measured, not decided.
        self.gap = before.gap;
    }

    /// cwnd in 1/2 (slow start) or 1/1.2 of a round-trip time, each gap drawn at random.
    fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        if !self.params.random_pacing {
            return None;
        }
        let t = self.srtt.filter(|t| !t.is_zero())?;
        let gain = if window.in_slow_start() { 2.0 } else { 1.2 };
        Some(Rate::from_transfer(window.cwnd(), t).mul_f64(gain / self.gap))
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        if let Some(rate) = self.pair.capacity() {
            out.push(("capacity", rate * 8.0));
        }
    }
}

//! TCP Libra (G. Marfia, C. Palazzi, G. Pau, M. Gerla, M. Sanadidi and M. Roccetti, "TCP Libra:
//! exploring RTT-fairness for TCP", UCLA TR-050037, 2005; Networking 2007).
//!
//! Increase and decrease depend on the round-trip time T so that the rate w/T does not: in
//! equilibrium it is √(2α/(p·T1)) segments a second at a loss rate of p, whatever T.
//!
//! # Where the source leaves a choice
//! - The unit of the capacity c in α = k1·c·exp(…) is taken to be Mbit/s.
//! - c is measured by packet pairs, as in CapProbe of the same authors, but never taken for less than
//!   the greatest delivery rate; `capacity` fixes it.
//! - T is the smoothed round-trip time, Tmin and Tmax are the extremes of the connection.
//! - Without a round-trip time the window grows as Reno's and is halved.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::event::{Acked, Congestion};
use crate::packet_pair::PacketPair;
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

settings! {
    /// Parameters of [`Libra`]; the defaults are the published values.
    pub struct LibraParams: Copy as "Libra", const {
        /// Increase per Mbit/s of capacity without a queue, segments per second.
        k1: f64 = 2.0, in 1e-6..=1e6;
        /// How fast the increase falls with the queueing delay.
        k2: f64 = 2.0, in 0.0..=100.0;
        /// T0, the round-trip time that increase and decrease are relative to.
        t0: Duration = Duration::from_secs(1),
            in Duration::from_millis(1)..=Duration::from_secs(100);
        /// T1, the decrease in proportion to T0.
        t1: Duration = Duration::from_secs(1),
            in Duration::from_millis(1)..=Duration::from_secs(100);
        /// Capacity of the bottleneck, Mbit/s; 0: measured by packet pairs.
        capacity: f64 = 0.0, in 0.0..=1e7;
        /// Where the transport paces, draw each gap at random between half and one and a half times
        /// its mean.
        random_pacing: bool = true;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl LibraParams {
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

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "libra",
    aliases: &[],
    summary: "increase and decrease that make the rate independent of the round-trip time",
    source: "G. Marfia et al., TCP Libra: exploring RTT-fairness for TCP, Networking 2007",
    params: LibraParams::params,
    build: |params, init| {
        Ok(Box::new(Libra::build(
            LibraParams::from_params(ALGORITHM.name, params)?,
            init,
        )))
    },
};

/// The policy of TCP Libra: increase and decrease depend on the round-trip time so that the rate does not.
#[derive(Clone, Debug)]
pub struct Libra {
    params: LibraParams,
    rng: Pcg64,
    pair: PacketPair,
    srtt: Option<Duration>,
    rtt_max: Duration,
    /// The factor of the next gap.
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

    /// α; `None` without measurements of the path.
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
        // Random numbers are not drawn again; the rest is measurements.
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

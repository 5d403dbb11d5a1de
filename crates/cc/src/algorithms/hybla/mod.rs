//! TCP Hybla (C. Caini and R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! International Journal of Satellite Communications and Networking 22(5), 2004).
//!
//! A connection with a round-trip time of rho times RTT0 sends at the rate that Reno would have at
//! RTT0: 2^rho - 1 segments of growth per segment acknowledged in slow start, rho²/cwnd after it.
//!
//! # Where the sources differ or leave a choice
//! - rho follows the least round-trip time by default, as Linux (which takes the least smoothed one):
//!   with the smoothed one a queue makes the window grow faster still.
//! - rho is at most `rho_max`: 2^rho - 1 is 65535 segments per acknowledgement already at Linux's 16.
//! - Hoe's bandwidth estimate, which the paper adopts, ends the initial slow start where the window
//!   reaches it, and until there is one that slow start is Reno's: at a growth of 2^rho per round trip an
//!   overshoot would be detected too late. Linux has no estimate. Packet spacing, the paper's other measure against
//!   bursts, is done by the transport.

use gargalo_settings::{names, settings};
use gargalo_units::{Bytes, Duration};

use crate::event::{Acked, Congestion};
use crate::packet_pair::PacketPair;
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{MAX_WINDOW, Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

names! {
    /// The round-trip time that determines rho.
    pub enum RhoFrom {
        /// The least one.
        Least = "least",
        /// The smoothed one.
        Smoothed = "smoothed",
    }
}

settings! {
    /// Parameters of [`Hybla`]; the defaults are those of the paper, `rho_max` is Linux's.
    pub struct HyblaParams: Copy as "Hybla", const {
        /// Round-trip time of the reference connection (RTT0).
        rtt0: Duration = Duration::from_millis(25),
            in Duration::from_millis(1)..=Duration::from_secs(10);
        /// Round-trip time that determines rho: the least or the smoothed one.
        rho_from: RhoFrom = RhoFrom::Least;
        /// Upper limit of rho, which is RTT/RTT0 and at least 1.
        rho_max: f64 = 16.0, in 1.0..=64.0;
        /// Multiply the initial window by rho when the first round-trip time is known.
        scale_initial_window: bool = true;
        /// End the initial slow start at the bandwidth-delay product measured by packet pairs.
        bandwidth_estimate: bool = true;
        /// Window kept after a loss or mark, as a fraction.
        beta: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl HyblaParams {
    /// rho = RTT/RTT0, never below 1.
    fn rho(&self, rtt: Duration) -> f64 {
        let rho = rtt.as_secs_f64() / self.rtt0.as_secs_f64();
        rho.min(self.rho_max).max(1.0)
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "hybla",
    aliases: &[],
    summary: "Reno's rate at a round-trip time of 25 ms on any path, for satellite links",
    source: "C. Caini, R. Firrincieli, TCP Hybla, Int. J. Satellite Communications 2004",
    params: HyblaParams::params,
    build: |params, init| {
        Ok(Box::new(Hybla::build(
            HyblaParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The policy of TCP Hybla: growth that depends on rho, the round-trip time divided by RTT0.
#[derive(Clone, Debug)]
pub struct Hybla {
    params: HyblaParams,
    /// 1 before the first sample.
    rho: f64,
    /// 2^rho - 2: the growth of slow start in addition to Reno's.
    extra: f64,
    scaled: bool,
    pair: PacketPair,
}

impl Hybla {
    /// In slow start.
    pub fn build(params: HyblaParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            rho: 1.0,
            extra: 0.0,
            scaled: !params.scale_initial_window,
            pair: PacketPair::default(),
        };
        WindowBased::new(policy, params.window, init)
    }

    fn update_rho(&mut self, rtt: Duration) {
        let rho = self.params.rho(rtt);
        if rho != self.rho {
            self.rho = rho;
            self.extra = libm::exp2(rho) - 2.0;
        }
    }

    /// Capacity times least round-trip time.
    fn estimate(&self, path: &Path<'_>) -> Option<Bytes> {
        let product = self.pair.pair()? * path.min_rtt?.as_secs_f64();
        Some(Bytes::from_f64(product.min(MAX_WINDOW.as_f64())))
    }

    /// Adds the growth that Reno's slow start, which has grown the window from `before`, lacks to 2^rho - 1.
    fn grow(&self, window: &mut Window, before: Bytes) {
        let extra = (window.cwnd() - before).mul_f64(self.extra);
        // The last byte below ssthresh is left to the window, which ends slow start there.
        let end = window.ssthresh().unwrap_or(MAX_WINDOW) - Bytes::new(1);
        if window.cwnd() < end {
            window.set_cwnd((window.cwnd() + extra.min(MAX_WINDOW)).min(end));
        }
    }
}

impl Policy for Hybla {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        self.pair.on_ack(ack);
        let rtt = match self.params.rho_from {
            RhoFrom::Least => path.min_rtt,
            RhoFrom::Smoothed => path.srtt,
        };
        let Some(rtt) = rtt else { return };
        self.update_rho(rtt);
        if !self.scaled {
            self.scaled = true;
            if window.ssthresh().is_none() {
                window.set_cwnd(window.cwnd().mul_f64(self.rho));
            }
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) -> Bytes {
        let before = window.cwnd();
        let starting = window.in_slow_start();
        let left = window.slow_start(ack);
        if !starting || !window.in_slow_start() {
            return left;
        }
        if !self.params.bandwidth_estimate || window.ssthresh().is_some() {
            self.grow(window, before);
        } else if let Some(estimate) = self.estimate(path) {
            self.grow(window, before);
            if window.cwnd() >= estimate {
                window.set_cwnd(estimate.max(before));
                window.exit_slow_start();
            }
        }
        left
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        let growth = self.rho * self.rho * window.mss().as_f64() * acked.as_f64();
        window.grow_by(growth / window.cwnd().as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.params.beta)
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("rho", self.rho));
    }
}

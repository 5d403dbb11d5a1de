//! LEDBAT (RFC 6817): background transfers that keep the queueing delay near a target and yield to other traffic.
//!
//! # Differences from the RFC
//! - The RFC measures one-way delays; here they are round trips, so a queue on the return path counts as well.
//!   There is no clock offset to cancel.
//! - Window and reductions during loss recovery are the transport's (proportional rate reduction).
//!
//! # LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus)
//! LEDBAT++ is `dynamic_gain`, `multiplicative_decrease`, `slowdowns` and `initial_slow_start` with a `target` of
//! 60 ms.

mod delay;
mod params;
mod slowdown;

use gargalo_units::{Bytes, Duration, Instant};

use self::delay::Delays;
pub use self::params::LedbatParams;
use self::slowdown::{Slowdown, Step};
use crate::event::{Acked, Congestion, Sent};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::settle;
use crate::window::Window;
use crate::window_based::{Policy, WindowBased};

#[cfg(test)]
mod tests;

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "ledbat",
    aliases: &[],
    summary: "background transfers: keeps the queueing delay at a target and yields to others",
    source: "RFC 6817; options of draft-irtf-iccrg-ledbat-plus-plus",
    params: LedbatParams::params,
    build: |params, init| {
        Ok(Box::new(Ledbat::build(
            LedbatParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// LEDBAT++ §4.2: the divisor of the gain is no greater.
const MOST_DIVISOR: f64 = 16.0;

/// Low extra delay background transport.
#[derive(Clone, Debug)]
pub struct Ledbat {
    params: LedbatParams,
    delays: Delays,
    slowdown: Slowdown,
    /// A fraction of a byte not yet added to cwnd, or taken from it.
    fraction: f64,
}

impl Ledbat {
    /// With INIT_CWND segments.
    pub fn build(params: LedbatParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            delays: Delays::new(params.current_filter as usize, params.base_history as usize),
            slowdown: Slowdown::Starting,
            fraction: 0.0,
        };
        let mut controller = WindowBased::new(policy, params.window, init);
        if !params.initial_slow_start {
            controller.window_mut().exit_slow_start();
        }
        controller
    }

    /// off_target = (TARGET - queuing_delay) / TARGET.
    fn off_target(&self, queueing: Duration) -> f64 {
        1.0 - queueing.as_nanos() as f64 / self.params.target.as_nanos() as f64
    }

    fn gain(&self) -> f64 {
        let mut gain = self.params.gain;
        if self.params.dynamic_gain
            && let Some(base) = self.delays.base()
        {
            let target = self.params.target.as_nanos() as f64;
            let ratio = libm::ceil(2.0 * target / base.as_nanos().max(1) as f64);
            gain /= ratio.clamp(1.0, MOST_DIVISOR);
        }
        gain
    }

    /// The change of the window per window of acknowledgements at this distance from the target, in segments.
    fn change(&self, off_target: f64, cwnd: f64) -> f64 {
        let gain = self.gain();
        if !self.params.multiplicative_decrease {
            return gain * off_target; // RFC 6817 §2.4.2
        }
        if off_target >= 0.0 {
            return gain;
        }
        // LEDBAT++ §4.3: W += max(GAIN - Constant * W * (delay/target - 1), -W/2), Constant = 1
        (gain + cwnd * off_target).max(-cwnd / 2.0)
    }

    /// Congestion avoidance: moves the window by `change` times the acknowledged share of it, to at least MIN_CWND and
    /// at most ALLOWED_INCREASE segments more than were in flight.
    fn steer(&mut self, window: &mut Window, ack: &Acked, queueing: Duration) {
        let cwnd = window.segments();
        let mss = window.mss().as_f64();
        let change = self.change(self.off_target(queueing), cwnd);
        // It grows for acknowledged data; whatever was delivered may shrink it.
        let acked = if change > 0.0 {
            ack.acknowledged
        } else {
            ack.bytes
        };
        let share = (acked.as_f64() / window.cwnd().as_f64()).min(1.0);
        let bytes = self.fraction + change * share * mss;
        let whole = libm::trunc(bytes);
        self.fraction = bytes - whole;
        // max_allowed_cwnd = flightsize + ALLOWED_INCREASE * MSS
        let allowed = ack.in_flight_before.as_f64() / mss + self.params.allowed_increase;
        let wanted = (cwnd + whole / mss).min(allowed).max(self.params.min_cwnd);
        if wanted != cwnd {
            settle(window, wanted, 1.0);
        }
    }

    fn slow_down(&mut self, window: &mut Window, now: Instant, path: &Path<'_>) {
        let Some(rtt) = path.srtt else { return };
        let starting = window.in_slow_start();
        if self.slowdown.step(now, rtt, starting) == Step::Enter {
            window.exit_slow_start(); // ssthresh = cwnd: where the ramp ends
            window.set_cwnd(window.mss() * 2);
        }
    }
}

impl Policy for Ledbat {
    const WATCHES_SENDS: bool = true;

    fn first_window(&self, given: Bytes, mss: Bytes) -> Bytes {
        if self.params.init_cwnd > 0.0 {
            mss.mul_f64(self.params.init_cwnd)
        } else {
            given
        }
    }

    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        if let Some(rtt) = ack.rtt {
            self.delays.observe(ack.now, rtt);
        }
        if self.params.slowdowns && !ack.in_recovery {
            self.slow_down(window, ack.now, path);
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        let Some(queueing) = self.delays.queueing() else {
            return Bytes::ZERO;
        };
        if ack.in_recovery || self.slowdown.is_low() {
            return Bytes::ZERO;
        }
        if !window.in_slow_start() {
            self.steer(window, ack, queueing);
            return Bytes::ZERO;
        }
        let ramp = matches!(self.slowdown, Slowdown::Ramp { .. });
        if !ramp && self.off_target(queueing) <= 1.0 - self.params.slow_start_exit {
            window.exit_slow_start();
            return Bytes::ZERO;
        }
        let gain = self.gain().min(1.0);
        window.slow_start(&Acked {
            acknowledged: ack.acknowledged.mul_f64(gain),
            ..*ack
        });
        Bytes::ZERO
    }

    fn increase(&mut self, _window: &mut Window, _acked: Bytes, _ack: &Acked, _path: &Path<'_>) {}

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        // RFC 6817 §2.4.2: min(cwnd, max(cwnd/2, MIN_CWND * MSS)).
        let least = window.mss().mul_f64(self.params.min_cwnd);
        window
            .reduction_base(event)
            .mul_f64(self.params.decrease)
            .max(least)
    }

    fn reduced(&mut self, window: &mut Window, event: &Congestion) {
        self.fraction = 0.0;
        self.slowdown.interrupt(event.now);
        if window.in_slow_start() && !self.params.initial_slow_start {
            window.exit_slow_start(); // the RFC has none after a timeout either
        }
    }

    fn on_send(&mut self, window: &mut Window, sent: &Sent, _restarted: bool) {
        if sent.idle.is_some_and(|i| i.duration > i.rto) {
            self.delays.forget_current();
        }
        if window.in_slow_start() && !self.params.initial_slow_start && !self.params.slowdowns {
            window.exit_slow_start();
        }
    }

    /// The state has only measurements, which remain valid.
    fn restore(&mut self, _before: &Self) {}

    fn phase(&self, window: &Window) -> &'static str {
        if self.slowdown.is_low() && !window.is_recovering() {
            "slowdown"
        } else {
            window.phase()
        }
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        let seconds = |d: Option<Duration>| d.map_or(f64::NAN, Duration::as_secs_f64);
        out.push(("base_delay_s", seconds(self.delays.base())));
        out.push(("queueing_delay_s", seconds(self.delays.queueing())));
    }
}

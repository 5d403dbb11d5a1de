//! CUBIC as Linux 6 computes it: in whole segments and clock ticks.
//!
//! # Differences from RFC 9438
//! - §4.3: the Reno-friendly window goes on with α = 3(1-β)/(1+β) (as in RFC 8312), also above the window before the
//!   reduction. In integers: a segment per 15·cwnd/8 segments acknowledged.
//! - §4.8, §4.10: a connection without a W_max (before its first loss, and after a timeout) starts at the inflection
//!   point and grows by a segment per 20 segments acknowledged at least.
//! - §4.10: hybrid slow start with both searches, in every slow start until one of them ends it; after a timeout the
//!   state begins anew.
//! - §4.4: the window grows by half a segment per segment acknowledged at most.
//! - §4.6: a reduction is of the congestion window, not of the data in flight.
//! - §4.9: an undo restores the window; W_max and the epoch stay as the reduction left them.
//! - §5.8: only time in which nothing was in flight is taken off the epoch.
//! - The window is updated in steps of a segment, and the curve is computed once a tick, and once in 1/32 s while
//!   the window stands.
//!
//! The cube root is exact; that of Linux is within 0.2% of it.

use gargalo_settings::{names, settings};
use gargalo_units::{Bytes, Duration, Instant};

use crate::event::{Acked, Cause, Congestion, Sent};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::slow_start::SlowStartKind;
use crate::window::{ReduceFrom, Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

mod hystart;
#[cfg(test)]
mod tests;

use hystart::HyStart;

names! {
    /// The searches of hybrid slow start.
    pub enum HyStartDetect {
        /// Slow start ends with a loss.
        Off = "off",
        /// A train of acknowledgements of half a round trip.
        Train = "train",
        /// A rise of the round-trip time.
        Delay = "delay",
        /// Both searches; the first to succeed ends slow start.
        Both = "both",
    }
}

settings! {
    /// Parameters of [`CubicLinux`]; the defaults are those of the module, and 250 ticks per second.
    pub struct CubicLinuxParams: Copy as "CubicLinux", const {
        /// Aggressiveness C, in 1/1024 segments per second cubed (41: 0.04, times 10 for a round trip of 100 ms).
        bic_scale: u64 = 41, in 1..=10_000;
        /// Window kept after a loss or mark, in 1/1024.
        beta: u64 = 717, in 1..=1023;
        /// Give up bandwidth faster when the saturation point has fallen.
        fast_convergence: bool = true;
        /// Most growth of the curve per second, segments; 0: no limit (S_max of CUBIC in 2005: 160).
        s_max: u64 = 0, in 0..=1_000_000;
        /// Never grow more slowly than Reno would.
        tcp_friendliness: bool = true;
        /// The searches of hybrid slow start.
        hystart_detect: HyStartDetect = HyStartDetect::Both;
        /// Window below which hybrid slow start does not search, segments.
        hystart_low_window: u64 = 16, in 0..=1_000_000;
        /// Acknowledgements at most this far apart belong to one train.
        hystart_ack_delta: Duration = Duration::from_millis(2), in Duration::ZERO..=Duration::from_secs(1);
        /// The sender is paced (queueing discipline fq): a train must last a whole round trip.
        paced: bool = false;
        /// Clock ticks per second (CONFIG_HZ: 100, 250, 300 or 1000).
        hz: u64 = 250, in 100..=1000;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "cubic-linux",
    aliases: &[],
    summary: "CUBIC as Linux 6 computes it, in whole segments and clock ticks, with hybrid slow start",
    source: "Linux 6 (net/ipv4/tcp_cubic.c); RFC 8312; S. Ha, I. Rhee, Taming the elephants, 2011",
    params: CubicLinuxParams::params,
    build: |params, init| {
        Ok(Box::new(CubicLinux::build(
            CubicLinuxParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Times of the curve are in units of 2^-10 s.
const TIME_BITS: u32 = 10;

/// Windows in segments, times in ticks unless they have a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Curve {
    /// Segments to be acknowledged per segment of growth.
    count: u64,
    /// W_max; zero: none.
    last_max: u64,
    /// The window and the time of the latest update.
    updated: (u64, u64),
    /// The window at the inflection point.
    origin: u64,
    /// K, 2^-10 s.
    k: u64,
    epoch: Option<u64>,
    /// Acknowledged and not yet counted in `reno`.
    acked: u64,
    /// The Reno-friendly window.
    reno: u64,
}

/// CUBIC of Linux.
#[derive(Clone, Debug)]
pub struct CubicLinux {
    params: CubicLinuxParams,
    curve: Curve,
    hystart: HyStart,
    /// Least round-trip time since the latest timeout.
    delay_min: Option<Duration>,
    /// Bytes acknowledged that are not yet a segment.
    partial: Bytes,
    /// Segments acknowledged since the window last grew.
    window_count: u64,
}

impl CubicLinux {
    /// In slow start.
    pub fn build(params: CubicLinuxParams, init: &Init) -> WindowBased<Self> {
        let shared = WindowParams {
            slow_start: SlowStartKind::Standard,
            reduce_from: ReduceFrom::Cwnd,
            ..WindowParams::DEFAULT
        };
        let policy = Self {
            params,
            curve: Curve::default(),
            hystart: HyStart::default(),
            delay_min: None,
            partial: Bytes::ZERO,
            window_count: 0,
        };
        WindowBased::new(policy, shared, init)
    }

    fn ticks(&self, now: Instant) -> u64 {
        let ns = u128::from((now - Instant::ZERO).as_nanos());
        (ns * u128::from(self.params.hz) / 1_000_000_000) as u64
    }

    /// Computes `count` for a window of `cwnd` segments, `acked` segments being acknowledged.
    fn update(&mut self, cwnd: u64, acked: u64, now: Instant) {
        let now = self.ticks(now);
        let params = self.params;
        let delay = self.delay_min.unwrap_or_default();
        let curve = &mut self.curve;
        curve.acked += acked;
        if curve.updated.0 == cwnd && now - curve.updated.1 <= params.hz / 32 {
            return;
        }
        let same_tick = curve.epoch.is_some() && curve.updated.1 == now;
        if !same_tick {
            curve.updated = (cwnd, now);
            let epoch = *curve.epoch.get_or_insert_with(|| {
                curve.acked = acked;
                curve.reno = cwnd;
                curve.origin = curve.last_max.max(cwnd);
                curve.k = k(curve.origin - cwnd, params.bic_scale);
                now
            });
            let delay_ns = delay.as_nanos();
            let delay_ticks = delay_ns.saturating_mul(params.hz).div_ceil(1_000_000_000);
            let t = (now - epoch) + delay_ticks;
            let target = curve.target((t << TIME_BITS) / params.hz, params.bic_scale);
            curve.count = match target.checked_sub(cwnd) {
                None | Some(0) => 100 * cwnd,
                Some(growth) => cwnd / growth,
            };
            // The growth in a round trip is cwnd / count.
            let most = u128::from(params.s_max) * u128::from(delay_ns);
            if let Some(least) = (u128::from(cwnd) * 1_000_000_000).checked_div(most) {
                curve.count = curve.count.max(least as u64);
            }
            if curve.last_max == 0 {
                curve.count = curve.count.min(20);
            }
        }
        if params.tcp_friendliness {
            curve.friendly(cwnd, params.beta);
        }
        curve.count = curve.count.max(2);
    }

    /// Congestion avoidance: a segment more for each `count` segments acknowledged.
    fn grow(&mut self, window: &mut Window, acked: u64) {
        let count = self.curve.count;
        let mut growth = 0;
        if self.window_count >= count {
            self.window_count = 0;
            growth = 1;
        }
        self.window_count += acked;
        growth += self.window_count / count;
        self.window_count %= count;
        if growth > 0 {
            window.set_cwnd(window.mss() * (segments(window) + growth));
        }
    }
}

impl Curve {
    /// The window of the cubic function `t` after the start of the epoch.
    fn target(&self, t: u64, bic_scale: u64) -> u64 {
        let offset = u128::from(t.abs_diff(self.k));
        let cube = u128::from(bic_scale * 10) * offset * offset * offset;
        let delta = (cube >> (10 + 3 * TIME_BITS)).min(1 << 40) as u64;
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin + delta
        }
    }

    /// Advances the Reno-friendly window, and follows it where it is larger.
    fn friendly(&mut self, cwnd: u64, beta: u64) {
        let scale = 8 * (1024 + beta) / 3 / (1024 - beta);
        let step = ((cwnd * scale) >> 3).max(1);
        // The last step is counted only when it is exceeded.
        let steps = self.acked.saturating_sub(1) / step;
        self.acked -= steps * step;
        self.reno += steps;
        if let Some(ahead @ 1..) = self.reno.checked_sub(cwnd) {
            self.count = self.count.min(cwnd / ahead);
        }
    }
}

/// K of a curve that starts `below` segments below its inflection point, 2^-10 s.
fn k(below: u64, bic_scale: u64) -> u64 {
    let factor = (1u64 << (10 + 3 * TIME_BITS)) / (bic_scale * 10);
    let cube = u128::from(factor) * u128::from(below);
    // cbrt is off by one at most where it is not exact.
    let mut root = libm::cbrt(cube as f64) as u64;
    while u128::from(root + 1).pow(3) <= cube {
        root += 1;
    }
    while u128::from(root).pow(3) > cube {
        root -= 1;
    }
    root
}

/// The window in whole segments.
fn segments(window: &Window) -> u64 {
    window.cwnd().get() / window.mss().get()
}

impl Policy for CubicLinux {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        let Some(rtt) = ack.rtt else { return };
        // Samples of the first second of an epoch are of the queue that fast recovery has left.
        let now = self.ticks(ack.now);
        if self.curve.epoch.is_some_and(|e| now - e < self.params.hz) {
            return;
        }
        let rtt = rtt.max(Duration::from_micros(1));
        let least = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(least);
        if window.in_slow_start()
            && self
                .hystart
                .is_over(&self.params, ack, rtt, least, window, path)
        {
            window.exit_slow_start();
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) -> Bytes {
        if ack.in_recovery || !ack.cwnd_limited || ack.acknowledged.is_zero() {
            return Bytes::ZERO;
        }
        // A segment that a duplicate acknowledgement has stood for was delivered then, when the window could not grow.
        let delivered = match path.sack {
            true => ack.bytes,
            false => ack.bytes.min(ack.acknowledged),
        };
        let bytes = self.partial + delivered;
        let acked = bytes.get() / window.mss().get();
        self.partial = bytes - window.mss() * acked;
        let acked = window.mss() * acked;
        let room = window.ssthresh().unwrap_or(Bytes::MAX);
        let room = room.saturating_sub(window.cwnd());
        let growth = acked.min(room);
        window.set_cwnd(window.cwnd() + growth);
        acked - growth
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, ack: &Acked, _path: &Path<'_>) {
        let acked = acked.get() / window.mss().get();
        if acked > 0 {
            self.update(segments(window), acked, ack.now);
            self.grow(window, acked);
        }
    }

    fn on_send(&mut self, _window: &mut Window, sent: &Sent, _restarted: bool) {
        let (Some(idle), Some(epoch)) = (&sent.idle, self.curve.epoch) else {
            return;
        };
        let now = self.ticks(sent.now);
        let pause = now - self.ticks(sent.now - idle.duration);
        self.curve.epoch = Some((epoch + pause).min(now));
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let (cwnd, beta) = (segments(window), self.params.beta);
        if matches!(event.cause, Cause::Timeout { .. }) {
            self.curve = Curve::default();
            self.delay_min = None;
            self.hystart = HyStart::default();
        } else {
            let fell = self.params.fast_convergence && cwnd < self.curve.last_max;
            self.curve.last_max = if fell {
                cwnd * (1024 + beta) / 2048
            } else {
                cwnd
            };
            self.curve.epoch = None;
        }
        self.window_count = 0;
        window.mss() * (cwnd * beta / 1024).max(2)
    }

    fn restore(&mut self, _before: &Self) {
        // The window is as before the reduction; the curve is not.
    }

    fn on_mss(&mut self, window: &Window, old: Bytes) {
        let scaled = u128::from(self.curve.last_max) * u128::from(old.get());
        self.curve.last_max = (scaled / u128::from(window.mss().get())) as u64;
        self.curve.epoch = None;
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("w_max_segments", self.curve.last_max as f64));
        out.push(("w_est_segments", self.curve.reno as f64));
        out.push(("k_s", self.curve.k as f64 / 1024.0));
    }
}

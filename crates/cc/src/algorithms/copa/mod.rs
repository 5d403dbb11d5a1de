//! Copa (Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
//! NSDI 2018).
//!
//! The window moves towards the rate 1/(δ d_q), d_q being the queueing delay; δ is the weight of delay against
//! throughput. If other flows fill the buffer, which Copa detects by a queue that is never nearly empty, δ is
//! adapted by additive increase and multiplicative decrease of 1/δ.
//!
//! # Where the paper leaves a choice
//! - An acknowledgement of n segments counts n times, so that delayed acknowledgements do not slow Copa down; an
//!   unused window does not grow, but may shrink.
//! - The velocity falls to 1 at once when a step goes against the direction, as in Meta's
//!   implementation; the paper's end of the window is too late if v is large, and the pipe becomes empty.
//! - A step is at most a segment for each one acknowledged: v is at most δ cwnd (the authors'
//!   implementation: "update_amt").
//! - Competitive mode is never less aggressive than the default one: δ is at most the default, and at
//!   least 2^-20.
//! - A loss ends slow start, without a reduction; in default mode it does nothing else. A timeout means
//!   a window of one segment and slow start, as in RFC 5681. ECN marks count as losses.
//! - The queue also counts as nearly empty when the round-trip time does not vary at all.

mod params;
#[cfg(test)]
mod tests;

pub use params::{ALGORITHM, CopaParams};

use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::Controller;
use crate::event::{Acked, Cause, Congestion, Established, Sent, Spurious};
use crate::filter::{Windowed, WindowedMax, WindowedMin};
use crate::path::Path;
use crate::registry::Init;
use crate::window::MAX_WINDOW;

/// 1/δ grows no further.
const MOST_INVERSE_DELTA: f64 = (1u64 << 20) as f64;

/// Filters of the round-trip time; values and the time of the filters are in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    /// RTTmin: the least of the latest `min_rtt_window`.
    min: WindowedMin<u64>,
    /// RTTstanding: the least of the latest `standing_window` smoothed round-trip times.
    standing: WindowedMin<u64>,
    /// RTTmax, of the oscillation.
    max: WindowedMax<u64>,
}

impl Rtts {
    /// d_q: RTTstanding - RTTmin.
    fn queueing(&self) -> u64 {
        self.standing.get().saturating_sub(self.min.get())
    }
}

/// The direction of the window and its velocity.
#[derive(Clone, Copy, Debug)]
struct Velocity {
    v: f64,
    is_up: Option<bool>,
    /// Round trips in that direction.
    rounds: u32,
    /// Window in bytes when the round trip began.
    cwnd: f64,
}

impl Velocity {
    fn new(cwnd: f64) -> Self {
        Self {
            v: 1.0,
            is_up: None,
            rounds: 0,
            cwnd,
        }
    }

    /// A round trip has ended (§2.1 step 4).
    fn on_round(&mut self, cwnd: f64, patience: u32) {
        let is_up = match cwnd - self.cwnd {
            d if d > 0.0 => Some(true),
            d if d < 0.0 => Some(false),
            _ => None,
        };
        self.cwnd = cwnd;
        if is_up.is_none() || is_up != self.is_up {
            self.v = 1.0;
            self.is_up = is_up;
            self.rounds = 1;
            return;
        }
        if self.rounds >= patience {
            self.v *= 2.0;
        }
        self.rounds = self.rounds.saturating_add(1);
    }

    /// A step against the direction: a high velocity applies only to the other direction.
    fn turn(&mut self, is_up: bool, cwnd: f64) {
        if self.v > 1.0 && self.is_up != Some(is_up) {
            *self = Self::new(cwnd);
            self.is_up = Some(is_up);
        }
    }
}

/// The state that an undo restores.
#[derive(Clone, Copy, Debug)]
struct Saved {
    cwnd: f64,
    slow_start: bool,
    inverse_delta: f64,
}

/// Copa: a window that moves towards the target rate 1/(δ d_q), with pacing.
#[derive(Clone, Debug)]
pub struct Copa {
    params: CopaParams,
    mss: f64,
    /// Congestion window in bytes, with fractions.
    cwnd: f64,
    slow_start: bool,
    rtts: Option<Rtts>,
    velocity: Velocity,
    /// 1/δ in competitive mode; `None` in default mode.
    competitive: Option<f64>,
    /// When the queue was last nearly empty.
    nearly_empty_at: Instant,
    /// Loss in the current round trip.
    loss_in_round: bool,
    saved: Option<Saved>,
}

impl Copa {
    /// In slow start.
    pub fn new(params: CopaParams, init: &Init) -> Self {
        let mss = init.mss.max(Bytes::new(1)).min(MAX_WINDOW).as_f64();
        let cwnd = init.initial_window.min(MAX_WINDOW).as_f64().max(mss);
        Self {
            params,
            mss,
            cwnd,
            slow_start: true,
            rtts: None,
            velocity: Velocity::new(cwnd),
            competitive: None,
            nearly_empty_at: init.now,
            loss_in_round: false,
            saved: None,
        }
    }

    /// The current 1/δ: that of competitive mode, otherwise that of the parameter `delta`.
    fn inverse_delta(&self) -> f64 {
        self.competitive.unwrap_or(1.0 / self.params.delta)
    }

    fn observe_rtt(&mut self, now: Instant, rtt: Duration, srtt: Duration) {
        let (at, rtt) = (now.as_nanos(), rtt.as_nanos());
        let window = |rtts: f64| srtt.mul_f64(rtts).as_nanos();
        let (standing, oscillation) = (
            window(self.params.standing_window),
            window(self.params.oscillation_rtts),
        );
        let rtts = self.rtts.get_or_insert_with(|| Rtts {
            min: Windowed::new(self.params.min_rtt_window.as_nanos(), at, rtt),
            standing: Windowed::new(standing, at, rtt),
            max: Windowed::new(oscillation, at, rtt),
        });
        rtts.standing.set_window(standing);
        rtts.max.set_window(oscillation);
        rtts.min.update(at, rtt);
        rtts.standing.update(at, rtt);
        rtts.max.update(at, rtt);
        let oscillation = rtts.max.get().saturating_sub(rtts.min.get()) as f64;
        if rtts.queueing() as f64 <= self.params.nearly_empty * oscillation {
            self.nearly_empty_at = now;
        }
        self.choose_mode(now, srtt);
    }

    /// §2.2: a queue that is not nearly empty for five round trips is filled by other flows.
    fn choose_mode(&mut self, now: Instant, srtt: Duration) {
        let patience = srtt.mul_f64(self.params.competitive_rtts);
        if !self.params.mode_switching || now - self.nearly_empty_at <= patience {
            self.competitive = None;
        } else if self.competitive.is_none() {
            self.competitive = Some(self.inverse_delta());
        }
    }

    fn on_round(&mut self) {
        if !self.slow_start {
            self.velocity.on_round(self.cwnd, self.params.velocity_rtts);
        }
        if let Some(inverse) = &mut self.competitive
            && !self.loss_in_round
        {
            *inverse = (*inverse + self.params.increase).min(MOST_INVERSE_DELTA);
        }
        self.loss_in_round = false;
    }

    /// Whether the present rate is at most the target rate: cwnd / RTTstanding ≤ 1 / (δ d_q).
    fn is_below_target(&self) -> bool {
        self.rtts.is_none_or(|r| {
            let segments = self.cwnd / self.mss;
            segments * r.queueing() as f64 <= self.inverse_delta() * r.standing.get() as f64
        })
    }

    /// §2.1 steps 2 and 3.
    fn move_window(&mut self, ack: &Acked) {
        let below = self.is_below_target();
        let acked = ack.bytes.as_f64();
        if self.slow_start && !below {
            self.end_slow_start();
        }
        if below && !ack.cwnd_limited {
            return;
        }
        if self.slow_start {
            self.set_cwnd(self.cwnd + acked);
            return;
        }
        self.velocity.turn(below, self.cwnd);
        let segments = self.cwnd / self.mss;
        // v/δ segments in a round trip, at most as many as are acknowledged.
        let step = (self.velocity.v * self.inverse_delta() / segments).min(1.0) * acked;
        self.set_cwnd(if below {
            self.cwnd + step
        } else {
            self.cwnd - step
        });
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        let least = self.mss * self.params.min_window as f64;
        let most = MAX_WINDOW.as_f64().max(self.mss);
        // A window that a timeout has reduced below the minimum may grow.
        let least = least.min(self.cwnd.max(self.mss)).min(most);
        self.cwnd = cwnd.max(least).min(most);
        let fastest = (self.cwnd / self.mss / self.inverse_delta()).max(1.0);
        self.velocity.v = self.velocity.v.min(fastest);
    }

    fn end_slow_start(&mut self) {
        self.slow_start = false;
        self.velocity = Velocity::new(self.cwnd);
    }

    fn save(&mut self) {
        self.saved = Some(Saved {
            cwnd: self.cwnd,
            slow_start: self.slow_start,
            inverse_delta: self.inverse_delta(),
        });
    }
}

impl Controller for Copa {
    fn on_send(&mut self, sent: &Sent, _path: &Path<'_>) {
        let Some(idle) = &sent.idle else { return };
        if let Some(window) = idle.restart_window
            && idle.duration > idle.rto
            && window.as_f64() < self.cwnd
        {
            self.set_cwnd(window.as_f64());
            self.slow_start = true;
        }
        // An idle time gives no information about the queue.
        self.nearly_empty_at = sent.now;
    }

    fn watches_sends(&self) -> bool {
        false
    }

    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>) {
        if let Some(rtt) = ack.rtt {
            self.observe_rtt(ack.now, rtt, path.srtt.unwrap_or(rtt));
        }
        if ack.round_start {
            self.on_round();
        }
        self.move_window(ack);
    }

    fn on_congestion(&mut self, event: &Congestion, _path: &Path<'_>) {
        match event.cause {
            Cause::Ecn => self.saved = None, // a mark cannot be spurious
            Cause::Timeout { consecutive } if consecutive > 1 => {}
            Cause::Loss | Cause::Timeout { .. } => self.save(),
        }
        self.loss_in_round = true;
        if let Some(inverse) = &mut self.competitive {
            *inverse = (*inverse * self.params.beta).max(1.0 / self.params.delta);
        }
        if self.slow_start {
            self.end_slow_start();
        }
        if matches!(event.cause, Cause::Timeout { .. }) {
            self.cwnd = self.mss;
            self.velocity = Velocity::new(self.cwnd);
            self.slow_start = true;
        }
    }

    fn on_spurious(&mut self, event: &Spurious, _path: &Path<'_>) {
        if event.cause == Cause::Ecn {
            return;
        }
        let Some(saved) = self.saved.take() else {
            return;
        };
        self.cwnd = self.cwnd.max(saved.cwnd);
        self.slow_start = saved.slow_start;
        if let Some(inverse) = &mut self.competitive {
            *inverse = inverse.max(saved.inverse_delta);
        }
        self.velocity = Velocity::new(self.cwnd);
    }

    fn on_recovered(&mut self, _now: Instant, _path: &Path<'_>) {
        self.saved = None;
    }

    /// RTTmin is the least round trip observed (§2.1), and that of the handshake is the first.
    fn on_established(&mut self, established: &Established, path: &Path<'_>) {
        self.on_mss(path);
        self.cwnd = established.window.min(MAX_WINDOW).as_f64().max(self.mss);
        self.velocity = Velocity::new(self.cwnd);
        self.nearly_empty_at = established.now;
        if let Some(rtt) = path.latest_rtt {
            self.observe_rtt(established.now, rtt, path.srtt.unwrap_or(rtt));
        }
    }

    fn on_mss(&mut self, path: &Path<'_>) {
        self.mss = path.mss.max(Bytes::new(1)).min(MAX_WINDOW).as_f64();
        self.cwnd = self.cwnd.max(self.mss);
    }

    fn cwnd(&self) -> Bytes {
        Bytes::from_f64(self.cwnd)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.rtts?.standing.get();
        let rtt = Duration::from_nanos(standing.max(1));
        Some((self.cwnd() / rtt).mul_f64(self.params.pacing_gain))
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn in_slow_start(&self) -> bool {
        self.slow_start
    }

    fn phase(&self) -> &'static str {
        if self.slow_start {
            "slow-start"
        } else if self.competitive.is_some() {
            "competitive"
        } else {
            "default"
        }
    }

    fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        let seconds = |nanos: Option<u64>| nanos.map_or(f64::NAN, |n| n as f64 / 1e9);
        out.push(("delta", 1.0 / self.inverse_delta()));
        out.push(("velocity", self.velocity.v));
        out.push(("queueing_delay_s", seconds(self.rtts.map(|r| r.queueing()))));
        out.push(("min_rtt_s", seconds(self.rtts.map(|r| r.min.get()))));
        let standing = self.rtts.map(|r| r.standing.get());
        out.push(("standing_rtt_s", seconds(standing)));
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

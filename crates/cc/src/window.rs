//! The common part of loss-based algorithms: cwnd, ssthresh, slow start, reductions, undo, idle restart.
//!
//! An algorithm holds a [`Window`], asks it on each acknowledgement how many bytes are left for
//! congestion avoidance ([`Window::slow_start`]), and decides alone how cwnd grows from them and how
//! far it falls.

use gargalo_settings::{names, settings};
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion, Sent, Spurious};
use crate::registry::Init;
use crate::slow_start::{Growth, SlowStart, SlowStartKind};

/// No window grows beyond this (1 TiB), so that arithmetic on windows cannot overflow.
pub const MAX_WINDOW: Bytes = Bytes::new(1 << 40);

names! {
    /// The base of a reduction.
    pub enum ReduceFrom {
        /// The bytes in flight, but no more than cwnd (RFC 5681 equation 4).
        FlightSize = "flight-size",
        /// cwnd, as many stacks do; sound because cwnd only grows while it limits the sender.
        Cwnd = "cwnd",
    }
}

settings! {
    /// The parameters that window-based algorithms share; the defaults are those of RFC 5681 and RFC 3465.
    pub struct WindowParams: Copy as "Window", const {
        /// Slow start: RFC 5681 (standard), RFC 3742 (limited), hybrid slow start (hystart) or RFC 9406
        /// (hystart++).
        slow_start: SlowStartKind = SlowStartKind::Standard;
        /// Slow start: most segments of growth per acknowledgement (L, RFC 3465 §2.2); 0: 8 for hystart++, 2
        /// for the others. After a timeout it is 1 (RFC 3465 §2.3).
        abc_limit: u64 = 0, in 0..=1_000_000;
        /// Slow-start threshold at the start, segments; 0: none, so that only a loss or a delay ends slow start (RFC
        /// 5681 §3.1: arbitrarily high).
        initial_slow_start_threshold: u64 = 0, in 0..=1_000_000;
        /// The base of a reduction (RFC 5681: flight-size; many stacks: cwnd).
        reduce_from: ReduceFrom = ReduceFrom::FlightSize;
    }
}

/// The state that an undo restores.
#[derive(Clone, Copy, Debug)]
struct Saved {
    cwnd: Bytes,
    ssthresh: Bytes,
    timeout: bool,
}

/// The congestion window of a loss-based algorithm.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: Bytes,
    /// [`Bytes::MAX`] while infinite.
    ssthresh: Bytes,
    mss: Bytes,
    /// A fraction of a byte not yet added to cwnd.
    fraction: f64,
    params: WindowParams,
    slow_start: SlowStart,
    after_timeout: bool,
    recovering: bool,
    saved: Option<Saved>,
    /// The least ssthresh, segments.
    least_threshold: u64,
}

impl Window {
    /// The initial window, in slow start.
    pub fn new(init: &Init, params: WindowParams) -> Self {
        let mss = init.mss.max(Bytes::new(1)).min(MAX_WINDOW);
        Self {
            cwnd: init.initial_window.max(mss).min(MAX_WINDOW),
            ssthresh: match params.initial_slow_start_threshold {
                0 => Bytes::MAX,
                segments => mss * segments,
            },
            mss,
            fraction: 0.0,
            params,
            slow_start: SlowStart::new(params.slow_start),
            after_timeout: false,
            recovering: false,
            saved: None,
            least_threshold: 2,
        }
    }

    /// The congestion window.
    #[inline]
    pub fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// The slow-start threshold; `None` while infinite.
    #[inline]
    pub fn ssthresh(&self) -> Option<Bytes> {
        (self.ssthresh != Bytes::MAX).then_some(self.ssthresh)
    }

    /// The maximum segment size.
    #[inline]
    pub fn mss(&self) -> Bytes {
        self.mss
    }

    /// The congestion window in segments.
    #[inline]
    pub fn segments(&self) -> f64 {
        self.cwnd.as_f64() / self.mss.as_f64()
    }

    /// Whether slow start is in force (RFC 5681 §3.1: cwnd < ssthresh).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether fast recovery is under way, between a congestion event and
    /// [`Window::on_recovered`]; recovery after a timeout is slow start and does not count.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// One word for plots.
    pub fn phase(&self) -> &'static str {
        if self.recovering {
            "recovery"
        } else if !self.in_slow_start() {
            "congestion-avoidance"
        } else if self.slow_start.is_conservative() {
            "conservative-slow-start"
        } else {
            "slow-start"
        }
    }

    /// Grows the window in slow start and returns the acknowledged bytes that are left for
    /// congestion avoidance: none in recovery, or when cwnd did not limit the sender.
    #[inline]
    pub fn slow_start(&mut self, ack: &Acked) -> Bytes {
        if ack.in_recovery {
            return Bytes::ZERO;
        }
        if self.in_slow_start() {
            return self.slow_start_ack(ack);
        }
        if ack.cwnd_limited {
            ack.acknowledged
        } else {
            Bytes::ZERO
        }
    }

    fn slow_start_ack(&mut self, ack: &Acked) -> Bytes {
        let divisor = match self.slow_start.on_ack(ack, self.segments()) {
            Growth::Divided(d) => d.max(1),
            Growth::Exit => {
                self.exit_slow_start();
                return Bytes::ZERO;
            }
        };
        if !ack.cwnd_limited {
            return Bytes::ZERO;
        }
        let limit = match (self.after_timeout, self.params.abc_limit) {
            (true, _) => 1, // RFC 3465 §2.3
            (false, 0) => self.params.slow_start.default_abc_limit(),
            (false, l) => l,
        };
        // RFC 5681 equation 2 with RFC 3465's L for the 1.
        let growth = ack.acknowledged.min(self.mss * limit) / divisor;
        let room = self.ssthresh - self.cwnd;
        if growth < room {
            self.set_cwnd(self.cwnd + growth);
            return Bytes::ZERO;
        }
        // ssthresh is reached: what is left counts for congestion avoidance.
        self.set_cwnd(self.ssthresh);
        self.after_timeout = false;
        growth - room
    }

    /// Leaves slow start without a congestion event: ssthresh = cwnd.
    pub fn exit_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
        self.slow_start.end_initial();
        self.after_timeout = false;
        self.fraction = 0.0;
    }

    /// Congestion avoidance with appropriate byte counting: SMSS * acked / cwnd (RFC 5681 §3.1
    /// equation 3, RFC 3465 §2.1), one segment a round trip. Growing with every acknowledgement and
    /// not in steps of a segment keeps the mean half a segment higher, as in the response function.
    #[inline]
    pub fn additive_increase(&mut self, acked: Bytes) {
        self.grow_by(self.mss.as_f64() * acked.as_f64() / self.cwnd.as_f64());
    }

    /// Grows the window by a fractional number of bytes; negative and NaN change nothing.
    #[inline]
    pub fn grow_by(&mut self, bytes: f64) {
        // f64::max ignores NaN, and the bound keeps both conversions in the fast signed range.
        let sum = self.fraction + bytes.max(0.0).min(MAX_WINDOW.as_f64());
        let whole = sum as i64;
        self.fraction = sum - whole as f64;
        self.set_cwnd(self.cwnd + Bytes::new(whole as u64));
    }

    /// Shrinks the window by a fractional number of bytes without a congestion event, to no less than
    /// a segment; negative and NaN change nothing. Congestion avoidance goes on: ssthresh falls along.
    pub fn shrink_by(&mut self, bytes: f64) {
        let avoiding = !self.in_slow_start();
        let rest = self.fraction - bytes.max(0.0).min(MAX_WINDOW.as_f64());
        let whole = libm::floor(rest);
        self.fraction = rest - whole;
        if whole < 0.0 {
            self.set_cwnd(self.cwnd.saturating_sub(Bytes::new(-whole as u64)));
        }
        if avoiding {
            self.ssthresh = self.ssthresh.min(self.cwnd);
        }
    }

    /// Halves the window to whole segments, one at least, without a congestion event; ssthresh too, to two at least,
    /// unless the window was in slow start (Linux' Multipath TCP).
    pub fn halve(&mut self) {
        let half = |b: Bytes| self.mss * (b.get() / self.mss.get() / 2);
        let (cwnd, ssthresh) = (half(self.cwnd), half(self.ssthresh));
        if !self.in_slow_start() {
            self.ssthresh = ssthresh.max(self.mss * 2);
        }
        self.set_cwnd(cwnd);
        self.fraction = 0.0;
    }

    /// Reductions leave ssthresh at `segments` at least: 2 (RFC 5681 equation 4) unless set otherwise.
    #[inline]
    pub fn set_least_threshold(&mut self, segments: u64) {
        self.least_threshold = segments.clamp(1, 2);
    }

    /// Sets the window, between one segment and [`MAX_WINDOW`].
    #[inline]
    pub fn set_cwnd(&mut self, cwnd: Bytes) {
        self.cwnd = cwnd.min(MAX_WINDOW).max(self.mss);
    }

    /// Sets the slow-start threshold; `None`: infinite.
    pub fn set_ssthresh(&mut self, ssthresh: Option<Bytes>) {
        self.ssthresh = ssthresh.unwrap_or(Bytes::MAX);
    }

    /// Sets [`WindowParams::abc_limit`] in segments; 0: the default of the slow start.
    #[inline]
    pub fn set_abc_limit(&mut self, segments: u64) {
        self.params.abc_limit = segments;
    }

    /// The base of this event's reduction. FlightSize never counts more than cwnd, since
    /// limited transmit sends beyond it (RFC 5681 §3.2 step 1).
    pub fn reduction_base(&self, event: &Congestion) -> Bytes {
        match self.params.reduce_from {
            ReduceFrom::FlightSize => event.in_flight.min(self.cwnd),
            ReduceFrom::Cwnd => self.cwnd,
        }
    }

    /// Reduces the window because of `event`, `target` being the new threshold.
    ///
    /// Loss: ssthresh = cwnd = target, at least two segments (RFC 5681 equation 4; see
    /// [`Window::set_least_threshold`]). ECN: cwnd may
    /// fall to one segment (RFC 3168 §6.1.2). Timeout: cwnd is one segment; ssthresh is held when
    /// the timer expires again for the same segment (RFC 5681 §3.1). Never grows the window.
    pub fn reduce(&mut self, event: &Congestion, target: Bytes) {
        let least = self.mss * self.least_threshold;
        let target = target.min(MAX_WINDOW);
        match event.cause {
            Cause::Loss => {
                self.save(false);
                self.ssthresh = target.max(least);
                self.set_cwnd(self.ssthresh.min(self.cwnd));
                self.recovering = true;
            }
            Cause::Ecn => {
                self.saved = None; // a mark cannot be spurious
                self.ssthresh = target.max(least);
                self.set_cwnd(target.min(self.cwnd));
                self.recovering = true;
            }
            Cause::Timeout { consecutive } => {
                if consecutive <= 1 {
                    self.save(true);
                    self.ssthresh = target.max(least);
                }
                self.set_cwnd(self.mss);
                self.after_timeout = true;
                self.recovering = false;
            }
        }
        self.fraction = 0.0;
        self.slow_start.end_initial();
    }

    fn save(&mut self, timeout: bool) {
        self.saved = Some(Saved {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            timeout,
        });
    }

    /// Restores what the latest congestion event changed, if `event` withdraws that one. Returns
    /// whether it did; a window that has meanwhile grown beyond the saved one is kept.
    pub fn undo(&mut self, event: &Spurious) -> bool {
        let Some(saved) = self.saved else {
            return false;
        };
        if saved.timeout != matches!(event.cause, Cause::Timeout { .. })
            || event.cause == Cause::Ecn
        {
            return false;
        }
        self.saved = None;
        self.recovering = false;
        self.after_timeout = false;
        if self.cwnd >= saved.cwnd {
            return false;
        }
        self.set_cwnd(saved.cwnd);
        self.ssthresh = saved.ssthresh;
        true
    }

    /// Recovery has ended.
    pub fn on_recovered(&mut self) {
        self.recovering = false;
    }

    /// Restarts from the restart window after an idle period longer than the retransmission
    /// timeout (RFC 5681 §4.1), if the transport is configured to. Returns whether cwnd changed.
    #[inline]
    pub fn on_send(&mut self, sent: &Sent) -> bool {
        let Some(idle) = &sent.idle else {
            return false;
        };
        match idle.restart_window {
            Some(restart) if idle.duration > idle.rto && restart < self.cwnd => {
                self.set_cwnd(restart);
                self.fraction = 0.0;
                true
            }
            _ => false,
        }
    }

    /// The segment size changed: the window keeps its bytes, but holds at least one segment.
    pub fn on_mss(&mut self, mss: Bytes) {
        self.mss = mss.max(Bytes::new(1)).min(MAX_WINDOW);
        self.set_cwnd(self.cwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Idle;
    use crate::testing::{MSS, ack, congestion, init, sent};
    use gargalo_units::{Duration, Instant};

    fn window() -> Window {
        Window::new(&init(), WindowParams::DEFAULT)
    }

    fn spurious(cause: Cause) -> Spurious {
        Spurious {
            now: Instant::ZERO,
            cause,
        }
    }

    #[test]
    fn slow_start_counts_bytes_up_to_two_segments_an_ack() {
        let mut w = window();
        let start = w.cwnd();
        assert_eq!(w.slow_start(&ack(700)), Bytes::ZERO);
        assert_eq!(w.cwnd(), start + Bytes::new(700));
        w.slow_start(&ack(5 * MSS.get()));
        assert_eq!(w.cwnd(), start + Bytes::new(700) + MSS * 2);
    }

    #[test]
    fn slow_start_ends_at_the_first_threshold() {
        let params = WindowParams {
            initial_slow_start_threshold: 12,
            ..WindowParams::DEFAULT
        };
        let mut w = Window::new(&init(), params);
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS * 10, Some(MSS * 12)));
        w.slow_start(&ack(2 * MSS.get()));
        assert!(!w.in_slow_start());
    }

    #[test]
    fn slow_start_after_a_timeout_counts_one_segment_an_ack() {
        let mut w = window();
        let e = congestion(Cause::Timeout { consecutive: 1 }, w.cwnd());
        w.reduce(&e, MSS * 5);
        assert_eq!(w.cwnd(), MSS);
        w.slow_start(&ack(2 * MSS.get()));
        assert_eq!(w.cwnd(), MSS * 2);
    }

    #[test]
    fn growth_stops_at_ssthresh_and_the_rest_is_left() {
        let mut w = window();
        w.reduce(
            &congestion(Cause::Timeout { consecutive: 1 }, w.cwnd()),
            MSS * 5,
        );
        w.set_cwnd(MSS * 5 - Bytes::new(300));
        let left = w.slow_start(&ack(MSS.get()));
        assert_eq!(w.cwnd(), MSS * 5);
        assert_eq!(left, MSS - Bytes::new(300));
    }

    #[test]
    fn no_growth_in_recovery_or_when_the_application_is_the_limit() {
        let mut w = window();
        let before = w.cwnd();
        let recovery = Acked {
            in_recovery: true,
            ..ack(1000)
        };
        let limited = Acked {
            cwnd_limited: false,
            ..ack(1000)
        };
        assert!(w.slow_start(&recovery).is_zero());
        assert!(w.slow_start(&limited).is_zero());
        w.exit_slow_start();
        assert!(w.slow_start(&limited).is_zero());
        assert_eq!(w.cwnd(), before);
    }

    #[test]
    fn repeated_timeouts_hold_ssthresh_and_undo_restores_the_first() {
        let mut w = window();
        let first = w.cwnd();
        w.reduce(
            &congestion(Cause::Timeout { consecutive: 1 }, first),
            first / 2,
        );
        let held = w.ssthresh();
        w.reduce(&congestion(Cause::Timeout { consecutive: 2 }, MSS), MSS);
        assert_eq!(w.ssthresh(), held);
        assert!(!w.undo(&spurious(Cause::Loss)), "another cause");
        assert!(w.undo(&spurious(Cause::Timeout { consecutive: 2 })));
        assert_eq!((w.cwnd(), w.ssthresh()), (first, None));
        assert!(
            !w.undo(&spurious(Cause::Timeout { consecutive: 2 })),
            "once"
        );
    }

    #[test]
    fn ecn_may_reach_one_segment_and_cannot_be_undone() {
        let mut w = window();
        w.reduce(&congestion(Cause::Ecn, MSS), Bytes::new(10));
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, Some(MSS * 2)));
        assert!(!w.undo(&spurious(Cause::Ecn)));
    }

    #[test]
    fn idle_longer_than_rto_restarts_from_the_restart_window() {
        let mut w = window();
        w.set_cwnd(MSS * 100);
        let idle = |ms| Sent {
            idle: Some(Idle {
                duration: Duration::from_millis(ms),
                rto: Duration::from_millis(300),
                restart_window: Some(MSS * 10),
                was_app_limited: false,
            }),
            ..sent(MSS, Bytes::ZERO)
        };
        assert!(!w.on_send(&idle(300)));
        assert!(w.on_send(&idle(301)));
        assert_eq!(w.cwnd(), MSS * 10);
        assert!(!w.on_send(&idle(301)), "never grows");
    }

    #[test]
    fn fractions_accumulate() {
        let mut w = window();
        let start = w.cwnd();
        for _ in 0..1000 {
            w.grow_by(0.25);
        }
        assert_eq!(w.cwnd(), start + Bytes::new(250));
        w.grow_by(f64::NAN);
        w.grow_by(-5.0);
        assert_eq!(w.cwnd(), start + Bytes::new(250));
        w.grow_by(f64::INFINITY);
        assert_eq!(w.cwnd(), MAX_WINDOW);
    }

    #[test]
    fn shrinking_needs_no_congestion_and_does_not_begin_slow_start_anew() {
        let mut w = window();
        w.exit_slow_start();
        let start = w.cwnd();
        for _ in 0..1000 {
            w.grow_by(0.25);
            w.shrink_by(0.5);
        }
        assert_eq!(w.cwnd(), start - Bytes::new(250));
        assert_eq!(w.ssthresh(), Some(w.cwnd()));
        w.shrink_by(f64::NAN);
        w.shrink_by(-5.0);
        assert_eq!(w.cwnd(), start - Bytes::new(250));
        w.shrink_by(f64::INFINITY);
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, Some(MSS)));
        assert!(!w.in_slow_start());
    }

    #[test]
    fn half_of_the_window_is_taken_in_whole_segments() {
        let mut w = window();
        w.set_cwnd(MSS * 21 + Bytes::new(5));
        w.halve();
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS * 10, None), "slow start");
        w.exit_slow_start();
        for left in [5, 2, 1, 1] {
            w.halve();
            assert_eq!(w.cwnd(), MSS * left);
            assert_eq!(w.ssthresh(), Some(MSS * left.max(2)));
        }
    }

    #[test]
    fn a_lower_least_threshold() {
        let mut w = window();
        w.set_least_threshold(1);
        w.reduce(&congestion(Cause::Loss, MSS), MSS / 2);
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, Some(MSS)));
    }
}

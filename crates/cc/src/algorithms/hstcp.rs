//! HighSpeed TCP (RFC 3649).
//!
//! Beyond `w_low` segments the increase a(w) and the decrease b(w) follow from a response function
//! that is a straight line in the log-log plane between (`p_low`, `w_low`) and (`p_high`, `w_high`);
//! up to `w_low` it is Reno.
//!
//! # Differences from the RFC's text
//! - a(w) and b(w) are computed from the parameters (§5), not from the rounded p(w) = 0.078/w^1.2
//!   behind Appendix B, whose whole numbers are met within 3.5 %.
//! - §5 interpolates up to `w_high` only: beyond it b(w) stays at `high_decrease`, and a(w) goes on
//!   with the response function.
//! - a(w) is at least 1 (§5: 0.96 at `w_low`) and at most w, the pace of slow start.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`HsTcp`]; the defaults are those of RFC 3649 §5.
    pub struct HsTcpParams: Copy as "HsTcp", const {
        /// Window up to which the algorithm is Reno, segments (Low_Window, §5).
        w_low: f64 = 38.0, in 2.0..=1e4;
        /// Window at the end of the response function, segments (High_Window, §5).
        w_high: f64 = 83_000.0, in 2e4..=1e9;
        /// Loss rate at `w_low` (Low_P, §5).
        p_low: f64 = 1e-3, in 1e-5..=0.5;
        /// Loss rate at `w_high` (High_P, §5).
        p_high: f64 = 1e-7, in 1e-15..=1e-6;
        /// Share of the window given up after a loss at `w_high` (High_Decrease, §5).
        high_decrease: f64 = 0.1, in 0.01..=0.5;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl HsTcpParams {
    /// log(w_high / w_low).
    fn span(&self) -> f64 {
        libm::log(self.w_high / self.w_low)
    }

    /// The loss rate at which the window averages `w` segments, and log(w / w_low) as a share of the
    /// span (the response function of §5, solved for p).
    fn loss_rate(&self, w: f64) -> (f64, f64) {
        let position = libm::log(w / self.w_low) / self.span();
        let p = self.p_low * libm::exp(position * libm::log(self.p_high / self.p_low));
        (p, position)
    }

    /// b(w), the share of the window given up after a loss.
    pub fn b(&self, w: f64) -> f64 {
        if w <= self.w_low {
            return 0.5;
        }
        self.b_at(libm::log(w / self.w_low) / self.span())
    }

    fn b_at(&self, position: f64) -> f64 {
        (0.5 - (0.5 - self.high_decrease) * position).max(self.high_decrease)
    }

    /// a(w), segments of growth per round trip.
    pub fn a(&self, w: f64) -> f64 {
        if w <= self.w_low {
            return 1.0;
        }
        let (p, position) = self.loss_rate(w);
        let b = self.b_at(position);
        (w * w * p * 2.0 * b / (2.0 - b)).min(w).max(1.0)
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "hstcp",
    aliases: &["highspeed"],
    summary: "increase and decrease that depend on the window, for windows of thousands of segments",
    source: "RFC 3649",
    params: HsTcpParams::params,
    build: |params, init| {
        Ok(Box::new(HsTcp::build(
            HsTcpParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Reno whose increase and decrease depend on the window.
#[derive(Clone, Debug)]
pub struct HsTcp {
    params: HsTcpParams,
    /// The whole number of segments `a` was computed for.
    segments: u64,
    /// a(w): computed again only when the window has moved by a segment.
    a: f64,
}

impl HsTcp {
    /// In slow start.
    pub fn build(params: HsTcpParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            segments: 0,
            a: 1.0,
        };
        WindowBased::new(policy, params.window, init)
    }
}

impl Policy for HsTcp {
    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        let segments = window.cwnd().get() / window.mss().get();
        if segments != self.segments {
            self.segments = segments;
            self.a = self.params.a(segments as f64);
        }
        window.grow_by(self.a * window.mss().as_f64() * acked.as_f64() / window.cwnd().as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let keep = 1.0 - self.params.b(window.segments());
        window.reduction_base(event).mul_f64(keep)
    }

    fn gauges(&self, window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("a", self.params.a(window.segments())));
        out.push(("b", self.params.b(window.segments())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::{Cause, Spurious};
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::{Duration, Instant};

    const DEFAULT: HsTcpParams = HsTcpParams::DEFAULT;

    /// In congestion avoidance at `segments`.
    fn at(segments: u64) -> WindowBased<HsTcp> {
        let mut h = HsTcp::build(DEFAULT, &init());
        h.window_mut().set_cwnd(MSS * segments);
        h.window_mut().exit_slow_start();
        h
    }

    #[test]
    fn appendix_b() {
        // (w, a, b) of RFC 3649 Appendix B.
        let table = [
            (38.0, 1.0, 0.50),
            (118.0, 2.0, 0.44),
            (221.0, 3.0, 0.41),
            (347.0, 4.0, 0.38),
            (495.0, 5.0, 0.37),
            (663.0, 6.0, 0.35),
            (851.0, 7.0, 0.34),
            (1058.0, 8.0, 0.33),
            (1284.0, 9.0, 0.32),
            (1529.0, 10.0, 0.31),
            (4596.0, 19.0, 0.25),
            (10661.0, 30.0, 0.21),
            (84035.0, 71.0, 0.10),
        ];
        for (w, a, b) in table {
            let (got_a, got_b) = (DEFAULT.a(w), DEFAULT.b(w));
            assert!((got_a / a - 1.0).abs() < 0.035, "a({w}) = {got_a}, not {a}");
            assert!((got_b - b).abs() < 0.0075, "b({w}) = {got_b}, not {b}");
        }
        // §5: a(83000) = 72, b(83000) = 0.1
        assert_eq!(DEFAULT.a(83_000.0).floor(), 72.0);
        assert!((DEFAULT.b(83_000.0) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn appendix_b_exactly_with_its_rounded_response_function() {
        for (w, a) in [
            (118.0, 2.0),
            (1058.0, 8.0),
            (10661.0, 30.0),
            (84035.0, 71.0),
        ] {
            let b = DEFAULT.b_at(libm::log(w / 38.0) / DEFAULT.span());
            let p = 0.078 / libm::pow(w, 1.2);
            assert_eq!((w * w * p * 2.0 * b / (2.0 - b)).round(), a);
        }
    }

    #[test]
    fn response_function_of_section_5() {
        // Loss rate, window: w = 0.12 / p^0.835.
        let table = [
            (1e-3, 38.0),
            (1e-4, 263.0),
            (1e-5, 1795.0),
            (1e-6, 12279.0),
            (1e-7, 83981.0),
            (1e-8, 574356.0),
            (1e-9, 3928088.0),
            (1e-10, 26864653.0),
        ];
        for (p, w) in table {
            let got = DEFAULT.loss_rate(w).0;
            assert!((got / p - 1.0).abs() < 0.03, "p({w}) = {got}, not {p}");
        }
    }

    #[test]
    fn a_and_b_follow_the_response_function_in_a_window_of_losses() {
        // A sawtooth with constant a and b averages √(a(2 - b)/(2bp)) segments.
        for w in [100.0, 1e3, 1e4, 8e4] {
            let (a, b) = (DEFAULT.a(w), DEFAULT.b(w));
            let average = (a * (2.0 - b) / (2.0 * b * DEFAULT.loss_rate(w).0)).sqrt();
            assert!((average / w - 1.0).abs() < 1e-9, "{average} at {w}");
        }
    }

    #[test]
    fn reno_up_to_low_window() {
        let p = path(Duration::from_millis(100));
        let mut h = at(30);
        for _ in 0..30 {
            h.on_ack(&ack(MSS.get()), &p);
        }
        assert!((h.window().segments() - 31.0).abs() < 0.03);
        let base = h.cwnd();
        h.on_congestion(&congestion(Cause::Loss, base), &p);
        assert_eq!(h.cwnd(), base.mul_f64(0.5));
    }

    #[test]
    fn a_segments_more_per_round_trip_and_b_less_on_loss() {
        let p = path(Duration::from_millis(100));
        let mut h = at(10_661);
        for _ in 0..10_661 {
            h.on_ack(&ack(MSS.get()), &p);
        }
        let grown = h.window().segments() - 10_661.0;
        assert!((29.5..31.0).contains(&grown), "{grown}");
        let before = h.window().segments();
        let base = h.cwnd();
        h.on_congestion(&congestion(Cause::Loss, base), &p);
        assert!((h.window().segments() / before - 0.79).abs() < 0.01);
    }

    #[test]
    fn timeout_mark_and_undo() {
        let p = path(Duration::from_millis(100));
        let mut h = at(1058);
        h.on_congestion(&congestion(Cause::Ecn, MSS * 1058), &p);
        assert!((h.window().segments() / 1058.0 - 0.67).abs() < 0.01);
        let mut h = at(1058);
        let e = congestion(Cause::Timeout { consecutive: 1 }, MSS * 1058);
        h.on_congestion(&e, &p);
        assert_eq!(h.cwnd(), MSS);
        h.on_spurious(
            &Spurious {
                now: Instant::ZERO,
                cause: e.cause,
            },
            &p,
        );
        assert_eq!(h.cwnd(), MSS * 1058);
    }

    #[test]
    fn finite_at_every_window_and_bound() {
        for p in [
            DEFAULT,
            HsTcpParams {
                w_low: 1e4,
                w_high: 2e4,
                p_low: 1e-5,
                p_high: 1e-15,
                ..DEFAULT
            },
            HsTcpParams {
                w_low: 2.0,
                w_high: 1e9,
                p_low: 0.5,
                p_high: 1e-6,
                ..DEFAULT
            },
        ] {
            for w in [1.0, 2.0, 39.0, 1e5, 1e12] {
                let (a, b) = (p.a(w), p.b(w));
                assert!(a >= 1.0 && a <= w, "{a} at {w}");
                assert!((p.high_decrease..=0.5).contains(&b), "{b} at {w}");
            }
        }
    }
}

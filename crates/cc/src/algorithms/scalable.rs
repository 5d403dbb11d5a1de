//! Scalable TCP (T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks",
//! Computer Communication Review 33(2), 2003).
//!
//! The window grows by a constant for every segment acknowledged, so the time to recover from a loss
//! does not depend on the window: ln(1/(1 - b))/ln(1 + a) round trips, 13.4 by default. Up to the
//! legacy window it is Reno.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Scalable`]; the defaults are those of the paper.
    pub struct ScalableParams: Copy as "Scalable", const {
        /// Growth per segment acknowledged, segments.
        a: f64 = 0.01, in 1e-5..=1.0;
        /// Share of the window given up after a loss or mark.
        b: f64 = 0.125, in 0.01..=0.99;
        /// Window up to which the algorithm is Reno, segments (lwnd).
        legacy_window: f64 = 16.0, in 0.0..=1e6;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "scalable",
    aliases: &["stcp"],
    summary: "one hundredth of a segment per segment acknowledged, an eighth less on loss",
    source: "T. Kelly, Scalable TCP: improving performance in highspeed wide area networks, CCR 2003",
    params: ScalableParams::params,
    build: |params, init| {
        Ok(Box::new(Scalable::build(
            ScalableParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Multiplicative increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct Scalable {
    params: ScalableParams,
}

impl Scalable {
    /// In slow start.
    pub fn build(params: ScalableParams, init: &Init) -> WindowBased<Self> {
        WindowBased::new(Self { params }, params.window, init)
    }

    fn is_legacy(&self, window: &Window) -> bool {
        window.segments() <= self.params.legacy_window
    }
}

impl Policy for Scalable {
    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        if self.is_legacy(window) {
            window.additive_increase(acked);
        } else {
            window.grow_by(self.params.a * acked.as_f64());
        }
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let keep = if self.is_legacy(window) {
            0.5
        } else {
            1.0 - self.params.b
        };
        window.reduction_base(event).mul_f64(keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::{Cause, Spurious};
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::{Duration, Instant};

    const DEFAULT: ScalableParams = ScalableParams::DEFAULT;

    /// In congestion avoidance at `segments`.
    fn at(segments: u64) -> WindowBased<Scalable> {
        let mut s = Scalable::build(DEFAULT, &init());
        s.window_mut().set_cwnd(MSS * segments);
        s.window_mut().exit_slow_start();
        s
    }

    #[test]
    fn a_hundredth_of_what_is_acknowledged_and_an_eighth_less() {
        let p = path(Duration::from_millis(100));
        let mut s = at(1000);
        for _ in 0..500 {
            s.on_ack(&ack(2 * MSS.get()), &p);
        }
        assert_eq!(s.cwnd(), MSS * 1010);
        s.on_congestion(&congestion(Cause::Loss, MSS * 1000), &p);
        assert_eq!((s.cwnd(), s.ssthresh()), (MSS * 875, Some(MSS * 875)));
    }

    #[test]
    fn reno_up_to_the_legacy_window() {
        let p = path(Duration::from_millis(100));
        let mut s = at(10);
        for _ in 0..10 {
            s.on_ack(&ack(MSS.get()), &p);
        }
        assert!((s.window().segments() - 11.0).abs() < 0.06);
        let mut s = at(16);
        s.on_congestion(&congestion(Cause::Loss, MSS * 16), &p);
        assert_eq!(s.cwnd(), MSS * 8);
        let mut s = at(17);
        s.on_congestion(&congestion(Cause::Loss, MSS * 17), &p);
        assert_eq!(s.cwnd(), MSS.mul_f64(17.0 * 0.875));
    }

    #[test]
    fn recovery_takes_13_round_trips_whatever_the_window() {
        // ln(8/7) / ln(1.01) = 13.4; the paper: about 13.42 round trips.
        let p = path(Duration::from_millis(100));
        for start in [200, 20_000] {
            let mut s = at(start);
            s.on_congestion(&congestion(Cause::Loss, MSS * start), &p);
            s.on_recovered(Instant::ZERO, &p);
            let mut rounds = 0;
            while s.cwnd() < MSS * start {
                s.on_ack(&ack(s.cwnd().get()), &p);
                rounds += 1;
            }
            assert_eq!(rounds, 14);
        }
    }

    #[test]
    fn response_function() {
        // Periodic loss: 12.5 w segments between losses at a peak of w, so the peak is 0.08/p and
        // the mean over time 0.08/p · (1/8)/ln(8/7).
        let p = path(Duration::from_millis(100));
        for one_in in [1_000_u64, 10_000] {
            let mut s = at(50);
            let (mut sum, mut time) = (0.0, 0.0);
            for i in 0..200 * one_in {
                s.on_ack(&ack(MSS.get()), &p);
                if i % one_in == 0 {
                    let flight = s.cwnd();
                    s.on_congestion(&congestion(Cause::Loss, flight), &p);
                    s.on_recovered(Instant::ZERO, &p);
                }
                if i > 100 * one_in {
                    time += 1.0 / s.window().segments();
                    sum += 1.0;
                }
            }
            let want = 0.08 * one_in as f64 * 0.125 / libm::log(8.0 / 7.0);
            let got = sum / time;
            assert!((got / want - 1.0).abs() < 0.02, "{got}, not {want}");
        }
    }

    #[test]
    fn timeout_mark_and_undo() {
        let p = path(Duration::from_millis(100));
        let mut s = at(80);
        s.on_congestion(&congestion(Cause::Ecn, MSS * 80), &p);
        assert_eq!(s.cwnd(), MSS * 70);
        let mut s = at(80);
        let cause = Cause::Timeout { consecutive: 1 };
        s.on_congestion(&congestion(cause, MSS * 80), &p);
        assert_eq!((s.cwnd(), s.ssthresh()), (MSS, Some(MSS * 70)));
        s.on_spurious(
            &Spurious {
                now: Instant::ZERO,
                cause,
            },
            &p,
        );
        assert_eq!(s.cwnd(), MSS * 80);
    }
}

//! BIC (L. Xu, K. Harfoush and I. Rhee, "Binary increase congestion control for fast long-distance
//! networks", INFOCOM 2004).
//!
//! The window at the latest loss and the window after it bound the optimal one, which is searched by bisection: in
//! steps of at most S_max towards the maximum, then beyond it in growing steps.
//!
//! # Where the sources differ or leave a choice
//! - `beta` is Linux's (819/1024, here 0.8); the paper keeps 0.875.
//! - S_max is 32 and the bisection is at 1/2, as in the paper; Linux has 16 and 1/4 (`search` = 4).
//! - Max probing starts with S_min and doubles every round trip up to S_max, as in the paper's text;
//!   its pseudocode starts with 1.
//! - Without a maximum (slow start left without a loss) the window grows by S_max, as with the
//!   paper's infinite initial maximum; a timeout sets the maximum as a loss does.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Bic`]; the defaults are those of the paper, except `beta`.
    pub struct BicParams: Copy as "Bic", const {
        /// Most growth per round trip, segments (S_max; Linux: 16).
        s_max: f64 = 32.0, in 1.0..=1e5;
        /// Least growth per round trip, segments (S_min).
        s_min: f64 = 0.01, in 1e-4..=1.0;
        /// Window kept after a loss or mark, as a fraction (1 - β of the paper: 0.875).
        beta: f64 = 0.8, in 0.01..=0.99;
        /// Window below which the algorithm is Reno, segments (low_window).
        low_window: f64 = 14.0, in 0.0..=1e6;
        /// Each round trip covers 1/`search` of the way to the maximum (Linux: 4).
        search: f64 = 2.0, in 1.0..=100.0;
        /// Give up bandwidth faster when the maximum has fallen.
        fast_convergence: bool = true;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "bic",
    aliases: &[],
    summary: "binary search for the window between the last loss and the window after it",
    source: "L. Xu, K. Harfoush, I. Rhee, Binary increase congestion control, INFOCOM 2004",
    params: BicParams::params,
    build: |params, init| {
        Ok(Box::new(Bic::build(
            BicParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The phase of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Search {
    /// Below `max`, the window the latest loss suggests.
    Below { max: f64 },
    /// Beyond the old maximum: `step` segments a round trip, doubled when the window reaches `next`.
    Probing { step: f64, next: f64 },
    /// The maximum is unknown.
    Unbounded,
}

/// The policy of BIC: binary search for the window in congestion avoidance.
#[derive(Clone, Debug)]
pub struct Bic {
    params: BicParams,
    search: Search,
    /// The maximum of the latest congestion event, after fast convergence.
    last_max: Option<f64>,
}

impl Bic {
    /// In slow start.
    pub fn build(params: BicParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            search: Search::Unbounded,
            last_max: None,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// Segments of growth per round trip at a window of `cwnd` segments.
    fn step(&mut self, cwnd: f64) -> f64 {
        let (s_min, s_max) = (self.params.s_min, self.params.s_max);
        if cwnd < self.params.low_window {
            return 1.0;
        }
        match &mut self.search {
            Search::Below { max } if cwnd < *max => {
                let to_target = (*max - cwnd) / self.params.search;
                to_target.max(s_min).min(s_max)
            }
            Search::Below { .. } => {
                self.search = Search::Probing {
                    step: s_min,
                    next: cwnd + s_min,
                };
                s_min
            }
            Search::Probing { step, next } => {
                if cwnd >= *next && *step < s_max {
                    *step = (*step * 2.0).min(s_max);
                    *next = cwnd + *step;
                }
                *step
            }
            Search::Unbounded => s_max,
        }
    }
}

impl Policy for Bic {
    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        let cwnd = window.segments();
        let share = (self.step(cwnd) / cwnd).min(1.0);
        window.grow_by(share * acked.as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let cwnd = window.segments();
        let low = cwnd < self.params.low_window;
        let beta = if low { 0.5 } else { self.params.beta };
        if !matches!(event.cause, Cause::Timeout { consecutive } if consecutive > 1) {
            let fell = self.last_max.is_some_and(|last| cwnd < last);
            let max = if self.params.fast_convergence && fell && !low {
                cwnd * (1.0 + beta) / 2.0
            } else {
                cwnd
            };
            self.last_max = Some(max);
            self.search = Search::Below { max };
        }
        window.reduction_base(event).mul_f64(beta)
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        if let Some(max) = self.last_max {
            out.push(("last_max", max));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Spurious;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::{Duration, Instant};

    const DEFAULT: BicParams = BicParams::DEFAULT;

    fn p() -> Path<'static> {
        path(Duration::from_millis(100))
    }

    /// After a loss at `segments`.
    fn after_loss(segments: u64, params: BicParams) -> WindowBased<Bic> {
        let mut b = Bic::build(params, &init());
        b.window_mut().set_cwnd(MSS * segments);
        lose(&mut b);
        b
    }

    fn lose(b: &mut WindowBased<Bic>) {
        let e = congestion(Cause::Loss, b.cwnd());
        b.on_congestion(&e, &p());
        b.on_recovered(Instant::ZERO, &p());
    }

    /// The growth of a round trip, in segments.
    fn round(b: &mut WindowBased<Bic>) -> f64 {
        let before = b.window().segments();
        for _ in 0..before as u64 {
            b.on_ack(&ack(MSS.get()), &p());
        }
        b.window().segments() - before
    }

    #[test]
    fn additive_then_bisection_then_max_probing() {
        let mut b = after_loss(1000, DEFAULT);
        assert_eq!(b.cwnd(), MSS * 800);
        // More than 2 S_max below the maximum: S_max a round trip, four times.
        for _ in 0..4 {
            let grown = round(&mut b);
            assert!((31.0..=32.1).contains(&grown), "{grown}");
        }
        // Then half of what is left, again and again: the gap falls by exp(-1/2) a round trip.
        let gap = |b: &WindowBased<Bic>| 1000.0 - b.window().segments();
        let start = gap(&b);
        assert!((60.0..75.0).contains(&start), "{start}");
        round(&mut b);
        for _ in 0..6 {
            let before = gap(&b);
            round(&mut b);
            let ratio = gap(&b) / before;
            assert!((ratio - libm::exp(-0.5)).abs() < 0.01, "{ratio}");
        }
        while b.window().segments() < 1000.0 {
            round(&mut b);
        }
        // 0.01, 0.02, 0.04 ... segments a round trip, until S_max.
        let mut rounds = 0;
        let mut last = round(&mut b);
        while last < 31.0 {
            let grown = round(&mut b);
            assert!(
                grown <= 32.1 && grown >= last * 0.99,
                "{grown} after {last}"
            );
            last = grown;
            rounds += 1;
            assert!(rounds < 30);
        }
        assert!((10..=16).contains(&rounds), "{rounds}"); // log2(32 / 0.01) = 11.6
    }

    #[test]
    fn fast_convergence_aims_lower_when_the_maximum_falls() {
        let mut b = after_loss(1000, DEFAULT);
        b.window_mut().set_cwnd(MSS * 900);
        lose(&mut b);
        assert_eq!(b.policy().search, Search::Below { max: 810.0 }); // 900 (1 + 0.8) / 2
        b.window_mut().set_cwnd(MSS * 900);
        lose(&mut b);
        assert_eq!(b.policy().search, Search::Below { max: 900.0 });
        let mut b = after_loss(
            1000,
            BicParams {
                fast_convergence: false,
                ..DEFAULT
            },
        );
        lose(&mut b);
        assert_eq!(b.policy().search, Search::Below { max: 800.0 });
    }

    #[test]
    fn linux_constants() {
        let linux = BicParams {
            s_max: 16.0,
            search: 4.0,
            beta: 819.0 / 1024.0,
            ..DEFAULT
        };
        let mut b = after_loss(1000, linux);
        assert_eq!(b.cwnd(), (MSS * 1000).mul_f64(819.0 / 1024.0));
        assert!((15.5..=16.1).contains(&round(&mut b)));
        // 40 below the maximum: a quarter of it.
        assert_eq!(b.policy().clone().step(960.0), 10.0);
    }

    #[test]
    fn reno_below_the_low_window() {
        let mut b = Bic::build(DEFAULT, &init());
        b.window_mut().set_cwnd(MSS * 13);
        lose(&mut b);
        assert_eq!(b.cwnd(), MSS.mul_f64(6.5));
        let grown = round(&mut b);
        assert!((0.85..=1.0).contains(&grown), "{grown}");
    }

    #[test]
    fn no_maximum_no_search() {
        let mut b = Bic::build(DEFAULT, &init());
        b.window_mut().set_cwnd(MSS * 500);
        b.window_mut().exit_slow_start();
        assert!((31.0..=32.1).contains(&round(&mut b)));
        // Never faster than slow start.
        let mut b = Bic::build(DEFAULT, &init());
        b.window_mut().set_cwnd(MSS * 16);
        b.window_mut().exit_slow_start();
        b.on_ack(&ack(MSS.get()), &p());
        assert_eq!(b.cwnd(), MSS * 17);
    }

    #[test]
    fn timeouts_marks_and_undo() {
        let mut b = after_loss(1000, DEFAULT);
        let before = format!("{:?}", b.policy());
        let cwnd = b.cwnd();
        for consecutive in 1..=2 {
            let cause = Cause::Timeout { consecutive };
            b.on_congestion(&congestion(cause, cwnd), &p());
        }
        assert_eq!((b.cwnd(), b.ssthresh()), (MSS, Some(MSS * 640)));
        assert_eq!(b.policy().search, Search::Below { max: 720.0 });
        b.on_spurious(
            &Spurious {
                now: Instant::ZERO,
                cause: Cause::Timeout { consecutive: 2 },
            },
            &p(),
        );
        assert_eq!(format!("{:?}", b.policy()), before);
        assert_eq!(b.cwnd(), cwnd);
        b.on_congestion(&congestion(Cause::Ecn, cwnd), &p());
        assert_eq!(b.cwnd(), MSS * 640);
    }
}

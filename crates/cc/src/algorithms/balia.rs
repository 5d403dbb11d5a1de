//! BALIA, the balanced linked adaptation of Peng, Walid, Hwang and Low ("Multipath TCP: analysis, design,
//! and implementation", IEEE/ACM ToN 24(1), 2016; draft-walid-mptcp-congestion-control-04): between LIA's
//! responsiveness and OLIA's friendliness.
//!
//! With x = w/rtt and a = max(x)/x the ratio of the best subflow's rate to this one's, both the increase and the
//! decrease depend on a. Slow start is TCP's. Alone on a path (a = 1) it equals [`super::reno`] to the byte.
//!
//! # Choices
//! - The decrease uses a as a real number, as paper and draft do. Linux' out-of-tree MPTCP divided integers, so
//!   that a reduction was either w/2 or 3w/4: `whole_ratio = true`.
//! - Marks and timeouts reduce like losses (one function in Linux; the paper has losses only); the flight size is
//!   reduced, as for Reno (RFC 5681 equation 4), to two segments at least.
//! - Bytes acknowledged count, as in the draft (Linux: acknowledgements).
//! - `arithmetic = "linux"` is Linux' module, release 0.90: a segment more after (Σ x)² · 10w / ((x + max(x)) (4x +
//!   max(x))) acknowledgements, rounded down, with rates in B/s; a loss takes half of the window or three quarters,
//!   which may leave one segment. The module computes both when its window or state changes, here with each
//!   acknowledgement.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::coupled::{Arithmetic, Coupling, Subflow, Whole, eighths, has_siblings, segments};
use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Balia`]; the defaults are those of the paper and the draft.
    pub struct BaliaParams: Copy as "Balia", const {
        /// A loss takes min(a, `most`)/2 of the window, where a is the best subflow's rate over
        /// this subflow's.
        most: f64 = 1.5, in 1.0..=2.0;
        /// Round a down, so that a loss takes either half or three quarters of the window (Linux).
        whole_ratio: bool = false;
        /// Real numbers (exact), or the integers of Linux' module (linux), to which `whole_ratio` belongs.
        arithmetic: Arithmetic = Arithmetic::Exact;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl BaliaParams {
    /// The share of the window that a loss takes.
    fn cut(&self, ratio: f64) -> f64 {
        let ratio = if self.whole_ratio {
            libm::floor(ratio)
        } else {
            ratio
        };
        0.5 * ratio.min(self.most)
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "balia",
    aliases: &[],
    summary: "multipath: increase and decrease by the ratio to the best subflow's rate",
    source: "Q. Peng, A. Walid, J. Hwang, S. H. Low, Multipath TCP: analysis, design, and implementation, \
             IEEE/ACM ToN 24(1), 2016; draft-walid-mptcp-congestion-control-04",
    params: BaliaParams::params,
    build: |params, init| {
        Ok(Box::new(Balia::build(
            BaliaParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Balanced linked adaptation.
#[derive(Clone, Debug)]
pub struct Balia {
    params: BaliaParams,
    whole: Whole,
    /// The latest ratio, for [`Policy::gauges`].
    ratio: f64,
}

impl Balia {
    /// In slow start.
    pub fn build(params: BaliaParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            whole: Whole::default(),
            ratio: f64::NAN,
        };
        WindowBased::new(policy, params.window, init)
    }
}

/// a: the largest rate over this subflow's, at least one.
fn ratio(coupling: &Coupling<'_>) -> f64 {
    coupling.totals.fastest / coupling.own.rate()
}

/// x/(rtt·(Σ x)²) · (1 + a)/2 · (4 + a)/5, in 1/bytes.
fn gain(coupling: &Coupling<'_>, ratio: f64) -> f64 {
    coupling.linked() * ((1.0 + ratio) / 2.0) * ((4.0 + ratio) / 5.0)
}

/// Rates are scaled down in steps of 32 while the largest is above this.
const LARGEST_RATE: u64 = 1 << 25;

/// How many acknowledgements a segment more takes in Linux' module.
fn needed(coupling: &Coupling<'_>, mss: Bytes) -> u64 {
    let rate = |s: &Subflow| {
        (u128::from(mss.get() * segments(s, mss)) * 8_000_000 / u128::from(eighths(s))) as u64
    };
    let mut largest = coupling.all().map(|s| rate(&s)).max().unwrap_or(1);
    let mut shift = 0;
    while largest > LARGEST_RATE {
        largest >>= 5;
        shift += 5;
    }
    let sum: u128 = coupling.all().map(|s| u128::from(rate(&s) >> shift)).sum();
    let (own, largest) = (
        u128::from(rate(&coupling.own) >> shift),
        u128::from(largest),
    );
    let window = u128::from(segments(&coupling.own, mss));
    let needed = (sum * sum * 10 / (own + largest).max(1)) * window / (4 * own + largest).max(1);
    let needed = if needed == 0 { window } else { needed };
    u64::try_from(needed).unwrap_or(u64::MAX)
}

impl Policy for Balia {
    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        match self.params.arithmetic {
            Arithmetic::Exact => window.slow_start(ack),
            Arithmetic::Linux => Whole::slow_start(window, ack),
        }
    }

    fn observe(&mut self, window: &mut Window, _ack: &Acked, path: &Path<'_>) {
        if self.params.arithmetic == Arithmetic::Linux {
            window.set_least_threshold(if has_siblings(path) { 1 } else { 2 });
        }
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, path: &Path<'_>) {
        let Some(coupling) = Coupling::of(window.cwnd(), path) else {
            self.ratio = 1.0;
            return window.additive_increase(acked);
        };
        self.ratio = ratio(&coupling);
        if self.params.arithmetic == Arithmetic::Linux {
            let needed = needed(&coupling, window.mss());
            return self.whole.count(window, needed);
        }
        let gain = gain(&coupling, self.ratio);
        window.grow_by(gain * acked.as_f64() * window.mss().as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        let ratio = Coupling::of(window.cwnd(), path).map_or(1.0, |c| ratio(&c));
        let kept = 1.0 - self.params.cut(ratio);
        let target = window.reduction_base(event).mul_f64(kept);
        self.params.arithmetic.rounded(target, window)
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("ratio", self.ratio));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Cause;
    use crate::path::Sibling;
    use crate::testing::subflows::{among, any_siblings, grown, quiet, sibling};
    use crate::testing::{MSS, congestion, init};
    use proptest::prelude::*;

    /// Growth per segment acknowledged and cut, in segments, of every subflow.
    fn computed(siblings: &[Sibling]) -> Vec<(f64, f64)> {
        let one = |i: usize| {
            let start = Init {
                initial_window: siblings[i].cwnd,
                ..init()
            };
            let c = Coupling::of(start.initial_window, &among(siblings, i)).unwrap();
            let grows = gain(&c, ratio(&c)) * MSS.as_f64();
            let mut balia = Balia::build(BaliaParams::DEFAULT, &start);
            let before = balia.window().segments();
            let loss = congestion(Cause::Loss, start.initial_window);
            balia.on_congestion(&loss, &among(siblings, i));
            (grows, before - balia.window().segments())
        };
        (0..siblings.len()).map(one).collect()
    }

    #[track_caller]
    fn check(siblings: &[Sibling], expected: &[(f64, f64)]) {
        let got = computed(siblings);
        assert_eq!(got.len(), expected.len());
        for (g, e) in got.iter().zip(expected) {
            assert!(
                (g.0 - e.0).abs() < 1e-6 && (g.1 - e.1).abs() < 1e-3,
                "{got:?}"
            );
        }
    }

    #[test]
    fn increase_and_decrease_by_hand() {
        // Equal: a = 1, so 1000/200² and w/2.
        check(
            &[sibling(10, 100), sibling(10, 100)],
            &[(0.025, 5.0), (0.025, 5.0)],
        );
        check(&[sibling(10, 100); 3], &[(1.0 / 90.0, 5.0); 3]);
        // a = 4: 1000/500² · 5/2 · 8/5 = 0.016 and 3w/4; the best: 4000/500² and w/2.
        check(
            &[sibling(10, 100), sibling(40, 100)],
            &[(0.016, 7.5), (0.016, 20.0)],
        );
        // x = 1500 and 200, a = 7.5: 2000/1700² · 4.25 · 2.3.
        check(
            &[sibling(30, 20), sibling(20, 100)],
            &[(75_000.0 / 2.89e6, 15.0), (19_550.0 / 2.89e6, 15.0)],
        );
        // a = 1.2: between half and three quarters, 10 · 0.6; 1000/220² · 1.1 · 1.04.
        check(
            &[sibling(10, 100), sibling(12, 100)],
            &[(1144.0 / 48_400.0, 6.0), (1200.0 / 48_400.0, 6.0)],
        );
        // 1 ms beside 1 s: x = 1000 and 100, a = 10: 100/1.21e6 · 5.5 · 2.8 = 0.00127, far below 1/100.
        check(
            &[sibling(1, 1), sibling(100, 1000)],
            &[(1e6 / 1.21e6, 0.0), (1540.0 / 1.21e6, 75.0)],
        );
    }

    #[test]
    fn in_linux_the_cut_has_two_steps() {
        let linux = BaliaParams {
            whole_ratio: true,
            ..BaliaParams::DEFAULT
        };
        for (ratio, exact, stepped) in [
            (1.0, 0.5, 0.5),
            (1.4, 0.7, 0.5),
            (1.99, 0.75, 0.5),
            (2.0, 0.75, 0.75),
            (50.0, 0.75, 0.75),
        ] {
            assert!((BaliaParams::DEFAULT.cut(ratio) - exact).abs() < 1e-12);
            assert!((linux.cut(ratio) - stepped).abs() < 1e-12);
        }
    }

    #[test]
    fn linux_counts_acknowledgements() {
        let needs = |siblings: &[Sibling], i: usize| {
            let c = Coupling::of(siblings[i].cwnd, &among(siblings, i)).unwrap();
            needed(&c, MSS)
        };
        // The inverse of the growth in `increase_and_decrease_by_hand`: 0.025, 1/90, 0.016.
        assert_eq!(needs(&[sibling(10, 100), sibling(10, 100)], 0), 40);
        assert_eq!(needs(&[sibling(10, 100); 3], 0), 90);
        assert_eq!(needs(&[sibling(10, 100), sibling(40, 100)], 0), 62);
        assert_eq!(needs(&[sibling(4, 100); 25], 0), 2500);
        // 1000 segments of 1000 bytes in a millisecond are above 2^25 B/s.
        assert_eq!(needs(&[sibling(1000, 1); 2], 0), 4000);
        let linux = BaliaParams {
            arithmetic: Arithmetic::Linux,
            whole_ratio: true,
            ..BaliaParams::DEFAULT
        };
        let two = [sibling(10, 100), sibling(10, 100)];
        let start = Init {
            initial_window: MSS * 10,
            ..init()
        };
        let mut balia = Balia::build(linux, &start);
        balia.window_mut().exit_slow_start();
        // Slow start includes the threshold. Then 40 acknowledgements are counted, and the next one adds.
        assert_eq!(grown(&mut balia, &two, 0, 1), MSS.as_f64());
        assert_eq!(needs(&[sibling(11, 100), sibling(10, 100)], 0), 40);
        assert_eq!(grown(&mut balia, &two, 0, 40), 0.0);
        assert_eq!(grown(&mut balia, &two, 0, 1), MSS.as_f64());
        let loss = congestion(Cause::Loss, MSS * 12);
        balia.on_congestion(&loss, &among(&two, 0));
        assert_eq!(balia.cwnd(), MSS * 6);
    }

    #[test]
    fn what_a_round_adds_in_bytes() {
        let mut balia = Balia::build(BaliaParams::DEFAULT, &init());
        balia.window_mut().exit_slow_start();
        let added = grown(&mut balia, &[sibling(10, 100), sibling(40, 100)], 0, 10);
        assert!((155.0..=162.0).contains(&added), "{added}");
        let mut gauges = Vec::new();
        balia.gauges(&mut gauges);
        assert!((3.9..=4.0).contains(&gauges[0].1), "{gauges:?}");
    }

    #[test]
    fn an_idle_sibling_counts() {
        let idle = Sibling {
            rate: 0.0,
            since_loss: Bytes::ZERO,
            ..sibling(40, 100)
        };
        check(&[sibling(10, 100), idle], &[(0.016, 7.5), (0.016, 20.0)]);
    }

    proptest! {
        #![proptest_config(quiet())]

        #[test]
        fn bounds(siblings in any_siblings(), index in 0..6usize, window in 1..1u64 << 40) {
            let path = among(&siblings, index);
            if let Some(c) = Coupling::of(Bytes::new(window), &path) {
                let a = ratio(&c);
                prop_assert!(a >= 1.0 && a.is_finite(), "{a}");
                // Never above Reno's 1/w: (4 + a)/(10 (1 + a)) of it at most for a > 1.
                let reno = gain(&c, a) * window as f64;
                prop_assert!((0.0..=1.0 + 1e-9).contains(&reno), "{reno}");
                let cut = BaliaParams::DEFAULT.cut(a);
                prop_assert!((0.5..=0.75).contains(&cut), "{cut}");
            }
        }
    }
}

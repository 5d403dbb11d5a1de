//! LIA, the linked increases of RFC 6356: the subflows of a connection together grow like one Reno flow on the best
//! of their paths, and none faster than Reno alone.
//!
//! Only the increase of congestion avoidance is coupled; slow start, the response to loss and everything else are
//! [`super::reno`]'s. Alone on a path it equals Reno to the byte.
//!
//! # Where the RFC leaves a choice
//! - alpha is computed anew for every acknowledgement, in floating point (§4.1 allows once a round trip
//!   or per drop; Linux' out-of-tree MPTCP did it when a window had changed, in fixed point).
//! - The increase is per acknowledged byte (RFC 3465), as in equation 1; Linux counted acknowledgements, so that
//!   delayed ones halved the growth.
//! - A subflow without a round-trip time, or that cannot send, is excluded from all sums; an idle one is included
//!   (Linux).
//! - A subflow in recovery counts with its ssthresh (Linux' OLIA; the RFC says nothing).
//! - `arithmetic = "linux"` is Linux' module, release 0.90: alpha over the sum of windows has 12 binary places and is
//!   one unit at least, so that a subflow needs 4096 acknowledgements for a segment at most, or as many as its window
//!   has segments if those are more. The path with the largest w/rtt² is found in units of 2⁻³² segments per (µs/8)²:
//!   from 26 ms on a window of ten segments is zero there, and the last subflow counts as the best.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use super::reno::{Reno, RenoParams};
use crate::coupled::{Arithmetic, Coupling, Subflow, Whole, eighths, segments};
use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::Window;
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Lia`]; the defaults are those of RFC 6356.
    pub struct LiaParams: Copy as "Lia", const {
        /// Real numbers (exact), or the integers of Linux' module (linux).
        arithmetic: Arithmetic = Arithmetic::Exact;
    }
    with {
        /// The parameters of Reno.
        reno: RenoParams = RenoParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "lia",
    aliases: &[],
    summary: "multipath: all subflows together as aggressive as one Reno flow on the best path",
    source: "RFC 6356",
    params: LiaParams::params,
    build: |params, init| {
        Ok(Box::new(Lia::build(
            LiaParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The policy of LIA: Reno with an increase that is coupled over the subflows of a connection.
#[derive(Clone, Debug)]
pub struct Lia {
    reno: Reno,
    arithmetic: Arithmetic,
    whole: Whole,
    /// The latest alpha, for [`Policy::gauges`].
    alpha: f64,
}

impl Lia {
    /// In slow start.
    pub fn build(params: LiaParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            reno: Reno::policy(params.reno),
            arithmetic: params.arithmetic,
            whole: Whole::default(),
            alpha: f64::NAN,
        };
        WindowBased::new(policy, params.reno.window, init)
    }
}

/// RFC 6356 equation 2: w_total · max(w/rtt²) / (Σ w/rtt)².
fn alpha(coupling: &Coupling<'_>) -> f64 {
    let all = &coupling.totals;
    all.window * all.best / (all.rate * all.rate)
}

/// RFC 6356 equation 1, growth per byte acknowledged and byte of MSS, in 1/bytes.
fn gain(coupling: &Coupling<'_>, alpha: f64) -> f64 {
    (alpha / coupling.totals.window).min(1.0 / coupling.own.window)
}

/// How many acknowledgements a segment more takes in Linux' module.
fn needed(coupling: &Coupling<'_>, mss: Bytes) -> u64 {
    let measure = |s: &Subflow| {
        let rtt = u128::from(eighths(s));
        (u128::from(segments(s, mss)) << 32) / (rtt * rtt)
    };
    // Of equals the last, as `max_by_key` gives it.
    let best = coupling.all().max_by_key(measure).unwrap_or(coupling.own);
    let best_rtt = u128::from(eighths(&best));
    let parts = coupling
        .all()
        .map(|s| (u128::from(segments(&s, mss)) << 10) * best_rtt / u128::from(eighths(&s)));
    let sum: u128 = parts.sum();
    let alpha = (u128::from(segments(&best, mss)) << 32) / sum.saturating_mul(sum).max(1);
    let needed = u64::try_from(4096 / alpha.max(1)).unwrap_or(u64::MAX);
    needed.max(segments(&coupling.own, mss))
}

impl Policy for Lia {
    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        match self.arithmetic {
            Arithmetic::Exact => window.slow_start(ack),
            Arithmetic::Linux => Whole::slow_start(window, ack),
        }
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, path: &Path<'_>) {
        let Some(coupling) = Coupling::of(window.cwnd(), path) else {
            self.alpha = 1.0;
            return window.additive_increase(acked);
        };
        self.alpha = alpha(&coupling);
        if self.arithmetic == Arithmetic::Linux {
            let needed = needed(&coupling, window.mss());
            return self.whole.count(window, needed);
        }
        let gain = gain(&coupling, self.alpha);
        window.grow_by(gain * acked.as_f64() * window.mss().as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        let target = self.reno.decrease(window, event, path);
        self.arithmetic.rounded(target, window)
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Cause;
    use crate::path::Sibling;
    use crate::testing::subflows::{among, any_siblings, grown, quiet, sibling};
    use crate::testing::{MSS, ack, congestion, init};
    use proptest::prelude::*;

    /// alpha, and growth in segments per segment acknowledged, of every subflow.
    fn computed(siblings: &[Sibling]) -> (f64, Vec<f64>) {
        let mut a = 0.0;
        let gains = (0..siblings.len()).map(|i| {
            let c = Coupling::of(siblings[i].cwnd, &among(siblings, i)).unwrap();
            a = alpha(&c);
            gain(&c, a) * MSS.as_f64()
        });
        let gains = gains.collect();
        (a, gains)
    }

    #[track_caller]
    fn check(siblings: &[Sibling], expected_alpha: f64, expected: &[f64]) {
        let (a, gains) = computed(siblings);
        assert!((a / expected_alpha - 1.0).abs() < 1e-6, "alpha {a}");
        for (got, want) in gains.iter().zip(expected) {
            assert!((got - want).abs() < 1e-6, "{gains:?}");
        }
        assert_eq!(gains.len(), expected.len());
    }

    #[test]
    fn linux_counts_acknowledgements_up_to_4096() {
        let needs = |siblings: &[Sibling], i: usize| {
            let c = Coupling::of(siblings[i].cwnd, &among(siblings, i)).unwrap();
            needed(&c, MSS)
        };
        // The inverse of 0.025 and 0.016 in `equations_1_and_2_by_hand`, from alpha's 102 and 65 of 4096 parts.
        assert_eq!(needs(&[sibling(10, 10), sibling(10, 10)], 0), 40);
        assert_eq!(needs(&[sibling(10, 10), sibling(40, 10)], 0), 63);
        // With 100 ms w/rtt² is zero in these integers, and the last subflow counts as the best: 10 · 4096/50² is 16.
        assert_eq!(needs(&[sibling(40, 100), sibling(10, 100)], 0), 256);
        // 25 subflows of 20 segments need 12,500; a part is the least.
        assert_eq!(needs(&[sibling(20, 100); 25], 0), 4096);
        assert_eq!(needs(&[sibling(5000, 100); 25], 0), 5000);
        let linux = LiaParams {
            arithmetic: Arithmetic::Linux,
            ..LiaParams::DEFAULT
        };
        let start = Init {
            initial_window: MSS * 10,
            ..init()
        };
        let mut lia = Lia::build(linux, &start);
        lia.window_mut().exit_slow_start();
        let two = [sibling(10, 10), sibling(10, 10)];
        assert_eq!(grown(&mut lia, &two, 0, 1), MSS.as_f64(), "slow start");
        // 11² segments over 21² of 4096 parts each: 102; 40 are counted.
        assert_eq!(grown(&mut lia, &two, 0, 40), 0.0);
        assert_eq!(grown(&mut lia, &two, 0, 1), MSS.as_f64());
    }

    #[test]
    fn equations_1_and_2_by_hand() {
        // Two equal paths: alpha = 20 · 1000 / 200² = 1/2, so each adds a quarter of a segment a round and
        // the pair half of one: with half of Reno's window each that is Reno's balance with loss.
        check(&[sibling(10, 100), sibling(10, 100)], 0.5, &[0.025, 0.025]);
        // 50 · 4000 / 500² = 0.8.
        check(&[sibling(10, 100), sibling(40, 100)], 0.8, &[0.016, 0.016]);
        // 50 · 30/0.02² / (30/0.02 + 20/0.1)² = 50 · 75,000 / 1700².
        check(
            &[sibling(30, 20), sibling(20, 100)],
            3.75e6 / 2.89e6,
            &[0.0259516, 0.0259516],
        );
        // 1 ms beside 1 s: 101 · 1e6 / 1100² = 83.5; the slow one is held at Reno's 1/100.
        check(
            &[sibling(1, 1), sibling(100, 1000)],
            101e6 / 1.21e6,
            &[1e6 / 1.21e6, 0.01],
        );
        // Three equal ones: 30 · 1000 / 300² = 1/3.
        check(&[sibling(10, 100); 3], 1.0 / 3.0, &[1.0 / 90.0; 3]);
    }

    #[test]
    fn what_a_round_adds_in_bytes() {
        // alpha = 1/2: a window of acknowledgements adds a quarter of a segment, 24 to 25 bytes for each
        // 1000 as the window grows.
        let mut lia = Lia::build(LiaParams::DEFAULT, &init());
        lia.window_mut().exit_slow_start();
        let two = [sibling(10, 100), sibling(10, 100)];
        let added = grown(&mut lia, &two, 0, 10);
        assert!((245.0..=250.0).contains(&added), "{added}");
        let mut gauges = Vec::new();
        lia.gauges(&mut gauges);
        assert!((gauges[0].1 - 0.5).abs() < 0.01, "{gauges:?}");
    }

    #[test]
    fn an_idle_sibling_counts_and_one_in_slow_start_with_the_window_it_has_reached() {
        // Idle: nothing acknowledged, nothing delivered; its window still belongs to the connection.
        let idle = Sibling {
            rate: 0.0,
            since_loss: Bytes::ZERO,
            ..sibling(10, 100)
        };
        check(&[sibling(10, 100), idle], 0.5, &[0.025, 0.025]);
        // 90 · 80/0.01 / 900² with the windows of a sibling that doubles.
        check(
            &[sibling(10, 100), sibling(80, 100)],
            90.0 * 8000.0 / 810_000.0,
            &[8.0 / 810.0, 8.0 / 810.0],
        );
    }

    #[test]
    fn without_a_sample_of_the_other_it_is_reno() {
        let unmeasured = Sibling {
            srtt: None,
            ..sibling(1000, 1)
        };
        let mut lia = Lia::build(LiaParams::DEFAULT, &init());
        let mut reno = Reno::build(RenoParams::DEFAULT, &init());
        lia.window_mut().exit_slow_start();
        reno.window_mut().exit_slow_start();
        for _ in 0..1000 {
            lia.on_ack(&ack(1000), &among(&[sibling(10, 100), unmeasured], 0));
            reno.on_ack(&ack(1000), &among(&[], 0));
        }
        assert_eq!(lia.cwnd(), reno.cwnd());
    }

    #[test]
    fn loss_halves_whatever_the_others_do() {
        let path = [sibling(10, 100), sibling(90, 10)];
        let mut lia = Lia::build(LiaParams::DEFAULT, &init());
        lia.on_congestion(&congestion(Cause::Loss, MSS * 10), &among(&path, 0));
        assert_eq!(lia.cwnd(), MSS * 5);
    }

    proptest! {
        #![proptest_config(quiet())]

        /// RFC 6356 §2: no more than a Reno flow would take on any of the paths.
        #[test]
        fn bounds(siblings in any_siblings(), index in 0..6usize, window in 1..1u64 << 40) {
            let path = among(&siblings, index);
            if let Some(c) = Coupling::of(Bytes::new(window), &path) {
                let a = alpha(&c);
                // The best path alone gives w_total/w_best at most, and alpha is positive.
                let square = |s: &Subflow| s.rate() / s.rtt;
                let best = c.all().max_by(|x, y| square(x).total_cmp(&square(y))).unwrap();
                prop_assert!(a > 0.0 && a <= c.totals.window / best.window * (1.0 + 1e-9), "{a}");
                let gain = gain(&c, a);
                prop_assert!(gain > 0.0 && gain <= 1.0 / window as f64);
                // What all add in a second is what one Reno flow adds on the best path, or less:
                // Σ x · gain ≤ max 1/rtt (each acknowledged byte of x adds gain).
                let each = a / c.totals.window;
                let added: f64 = c.all().map(|s| s.rate() * each.min(1.0 / s.window)).sum();
                let reno = c.all().map(|s| 1.0 / s.rtt).fold(0.0, f64::max);
                prop_assert!(added <= reno * (1.0 + 1e-9), "{added} > {reno}");
            }
        }
    }
}

//! OLIA, the opportunistic linked increases of Khalili, Gast, Popovic and Le Boudec ("MPTCP is not Pareto-optimal:
//! performance issues and a possible solution", CoNEXT 2012; draft-khalili-mptcp-congestion-control-05): Kelly and
//! Voice's optimal coupling, and a second term that moves window from the paths with the largest windows to the
//! best paths with smaller ones.
//!
//! Slow start, the response to loss and everything else are [`super::reno`]'s. Alone on a path it equals Reno to
//! the byte.
//!
//! # Choices
//! - The best paths are those of the largest l/rtt², as in the paper (√(2l)/rtt is the rate a TCP would
//!   have) and in Linux' out-of-tree MPTCP; other implementations that cite the draft take l²/rtt:
//!   `best = "squared-bytes"`.
//! - The second term may be negative. The window then shrinks without a loss, to one segment at least,
//!   and ssthresh with it; in Linux the threshold stayed, so that slow start restored the window.
//! - With several subflows ssthresh may be one segment (the draft; Reno's minimum is two), so that
//!   a congested path is only probed. Linux' module has two: `least_window = 2`, for ssthresh and for what
//!   the second term leaves. Windows of one segment wait for delayed acknowledgements.
//! - The sum of both terms can exceed Reno's increase by the factor 1 + 1/|R|: neither paper nor draft
//!   bounds it.
//! - Bytes acknowledged count, as in the draft (Linux: acknowledgements). Windows are compared in bytes.
//! - `arithmetic = "linux"` is Linux' module, release 0.90. It keeps the increase in units of 1/1024 segment and rounds
//!   each one down. So the first term is nothing where 1024 times it is less than one: of n alike subflows none with
//!   more than 1024/n² segments grows, which for 25 is one segment. What the second term takes may fall to one segment,
//!   below the threshold: slow start then gives it back.

use gargalo_settings::{names, settings};
use gargalo_units::Bytes;

use super::reno::{Reno, RenoParams};
use crate::coupled::{Arithmetic, Coupling, Subflow, Whole, eighths, has_siblings, segments};
use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::Window;
use crate::window_based::{Policy, WindowBased};

names! {
    /// The measure of the presumably best paths; l is the larger of the bytes acknowledged since the last
    /// loss and between the last two losses.
    pub enum Best {
        /// l/rtt²: the square of a TCP's rate on that path.
        Rate = "rate",
        /// l²/rtt, as in other implementations that cite the draft.
        SquaredBytes = "squared-bytes",
    }
}

impl Best {
    fn measure(self, s: &Subflow) -> f64 {
        match self {
            Self::Rate => s.between_losses / (s.rtt * s.rtt),
            Self::SquaredBytes => s.between_losses * s.between_losses / s.rtt,
        }
    }
}

settings! {
    /// Parameters of [`Olia`]: the paper's best paths, the draft's least window, RFC 5681's
    /// decrease.
    pub struct OliaParams: Copy as "Olia", const {
        /// The best paths are those with the largest l/rtt² (rate) or l²/rtt (squared-bytes), where
        /// l is the number of bytes between losses.
        best: Best = Best::Rate;
        /// Segments that a loss or the second term leaves at least, with several subflows (draft:
        /// 1, Linux: 2).
        least_window: u64 = 1, in 1..=2;
        /// Real numbers (exact), or the integers of Linux' module (linux), which has a least threshold of two segments.
        arithmetic: Arithmetic = Arithmetic::Exact;
    }
    with {
        /// The parameters of Reno.
        reno: RenoParams = RenoParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "olia",
    aliases: &[],
    summary: "multipath: LIA's successor that leaves congested paths to others (Pareto-optimal)",
    source: "R. Khalili, N. Gast, M. Popovic, J.-Y. Le Boudec, MPTCP is not Pareto-optimal, CoNEXT 2012; \
             draft-khalili-mptcp-congestion-control-05",
    params: OliaParams::params,
    build: |params, init| {
        Ok(Box::new(Olia::build(
            OliaParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Opportunistic linked increases.
#[derive(Clone, Debug)]
pub struct Olia {
    best: Best,
    least_window: u64,
    reno: Reno,
    arithmetic: Arithmetic,
    whole: Whole,
    /// The latest alpha, for [`Policy::gauges`].
    alpha: f64,
}

impl Olia {
    /// In slow start.
    pub fn build(params: OliaParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            best: params.best,
            least_window: params.least_window,
            reno: Reno::policy(params.reno),
            arithmetic: params.arithmetic,
            whole: Whole::default(),
            alpha: f64::NAN,
        };
        WindowBased::new(policy, params.reno.window, init)
    }
}

/// The numerator of the second term, which moves window from the paths with the largest windows (M) to the best
/// paths that are not among them (C); zero if C is empty.
fn alpha(coupling: &Coupling<'_>, best: Best) -> f64 {
    let top = coupling.all().map(|s| best.measure(&s)).fold(0.0, f64::max);
    let is_largest = |s: &Subflow| s.window >= coupling.totals.largest;
    let is_collected = |s: &Subflow| best.measure(s) >= top && !is_largest(s);
    let (mut all, mut m, mut c) = (0.0, 0.0, 0.0);
    for s in coupling.all() {
        all += 1.0;
        m += f64::from(u8::from(is_largest(&s)));
        c += f64::from(u8::from(is_collected(&s)));
    }
    if c == 0.0 {
        0.0
    } else if is_collected(&coupling.own) {
        1.0 / (all * c)
    } else if is_largest(&coupling.own) {
        -1.0 / (all * m)
    } else {
        0.0
    }
}

/// Parts of a segment in Linux' module.
const SCALE: i64 = 1024;

/// The increase in [`SCALE`]ths of a segment for one acknowledgement, in the integers of Linux' module: α/w +
/// (w/rtt²)/(Σ x)², rounded towards zero. Products are those of 64 bits there, which wrap.
fn step(coupling: &Coupling<'_>, alpha: f64, mss: Bytes) -> i64 {
    let own = &coupling.own;
    let (w, rtt) = (segments(own, mss), eighths(own));
    let mut rate = 1_u64;
    for s in coupling.all() {
        rate = rate.wrapping_add((segments(&s, mss) << 10).wrapping_mul(rtt) / eighths(&s));
    }
    rate = rate.wrapping_mul(rate);
    let denominator = if alpha == 0.0 {
        1
    } else {
        libm::round(1.0 / alpha.abs()) as u64
    };
    let scaled = (w << 10).wrapping_mul(w << 10).wrapping_mul(denominator);
    let (sum, sign) = if alpha >= 0.0 {
        (scaled.wrapping_add(if alpha > 0.0 { rate } else { 0 }), 1)
    } else if scaled < rate {
        (rate - scaled, -1)
    } else {
        (scaled - rate, 1)
    };
    let per_segment = denominator.wrapping_mul(w).wrapping_mul(rate).max(1);
    sign * i64::try_from((sum << 10) / per_segment).unwrap_or(i64::MAX)
}

impl Policy for Olia {
    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        match self.arithmetic {
            Arithmetic::Exact => window.slow_start(ack),
            Arithmetic::Linux => Whole::slow_start(window, ack),
        }
    }

    fn observe(&mut self, window: &mut Window, _ack: &Acked, path: &Path<'_>) {
        let coupled = self.arithmetic == Arithmetic::Exact && has_siblings(path);
        window.set_least_threshold(if coupled { self.least_window } else { 2 });
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, path: &Path<'_>) {
        let Some(coupling) = Coupling::of(window.cwnd(), path) else {
            self.alpha = 0.0;
            return window.additive_increase(acked);
        };
        self.alpha = alpha(&coupling, self.best);
        if self.arithmetic == Arithmetic::Linux {
            let step = step(&coupling, self.alpha, window.mss());
            return self.whole.add(window, step, SCALE);
        }
        let gain = coupling.linked() + self.alpha / coupling.own.window;
        let bytes = gain * acked.as_f64() * window.mss().as_f64();
        if bytes < 0.0 {
            let least = window.mss() * self.least_window;
            window.shrink_by((-bytes).min(window.cwnd().saturating_sub(least).as_f64()));
        } else {
            window.grow_by(bytes);
        }
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
mod tests;

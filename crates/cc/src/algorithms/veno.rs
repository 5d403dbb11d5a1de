//! Veno (Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks",
//! IEEE JSAC 21(2), 2003): Reno that distinguishes random and congestive losses by Vegas' backlog.
//!
//! With fewer than beta segments in the queue a loss counts as random and reduces the window by a fifth; with more,
//! congestion avoidance grows at half speed and a loss halves the window.

use gargalo_settings::{names, settings};
use gargalo_units::{Bytes, Duration};

use crate::event::{Acked, Cause, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::{RoundRtt, backlog};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

names! {
    /// The round-trip time that determines the backlog.
    pub enum VenoRtt {
        /// The smoothed one, as in the paper.
        Smoothed = "smoothed",
        /// The least of the latest round, which jitter and delayed acknowledgements do not inflate.
        Least = "least",
    }
}

settings! {
    /// Parameters of [`Veno`]; the defaults are those of the paper.
    pub struct VenoParams: Copy as "Veno", const {
        /// Segments in the queue from which a loss counts as congestion (β).
        beta: f64 = 3.0, in 0.0..=1e4;
        /// Window kept after a random loss, as a fraction.
        random: f64 = 0.8, in 0.01..=0.99;
        /// Window kept after a congestive loss, a timeout or a mark, as a fraction.
        decrease: f64 = 0.5, in 0.01..=0.99;
        /// Growth with β or more segments in the queue, as a fraction of Reno's.
        slow_growth: f64 = 0.5, in 0.0..=1.0;
        /// Measure the base round-trip time again after each loss (Linux: false).
        reset_base: bool = true;
        /// Round-trip time that determines the backlog (Linux: least, the least of the latest
        /// round).
        rtt: VenoRtt = VenoRtt::Smoothed;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "veno",
    aliases: &[],
    summary: "Reno that distinguishes random loss from congestion by Vegas' estimate of the queue",
    source: "C. P. Fu, S. C. Liew, TCP Veno, IEEE JSAC 21(2), 2003",
    params: VenoParams::params,
    build: |params, init| {
        Ok(Box::new(Veno::build(
            VenoParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Reno with a smaller reduction for losses without a queue.
#[derive(Clone, Debug)]
pub struct Veno {
    params: VenoParams,
    rounds: RoundRtt,
    /// BaseRTT: the least round-trip time, with `reset_base` only since the latest loss; [`Duration::MAX`] without a
    /// sample.
    base: Duration,
    /// N in segments; NaN before the first sample.
    backlog: f64,
}

impl Veno {
    /// In slow start.
    pub fn build(params: VenoParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            rounds: RoundRtt::new(init.initial_window),
            base: Duration::MAX,
            backlog: f64::NAN,
        };
        WindowBased::new(policy, params.window, init)
    }
}

impl Policy for Veno {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        let round = self.rounds.observe(window, ack, path);
        let Some(sample) = ack.rtt else { return };
        self.base = self.base.min(path.min_rtt.unwrap_or(sample)).min(sample);
        if ack.in_recovery {
            return; // the decision is kept until the loss is repaired
        }
        match (self.params.rtt, round) {
            (VenoRtt::Smoothed, _) => {
                let rtt = path.srtt.unwrap_or(sample);
                self.backlog = backlog(window.segments(), self.base, rtt);
            }
            (VenoRtt::Least, Some(round)) => {
                self.backlog = backlog(window.segments(), self.base, round.rtt);
            }
            (VenoRtt::Least, None) => {}
        }
    }

    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        let share = if self.backlog >= self.params.beta {
            self.params.slow_growth // every other acknowledgement
        } else {
            1.0
        };
        let mss = window.mss().as_f64();
        window.grow_by(share * mss * acked.as_f64() / window.cwnd().as_f64());
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        // NaN, nothing known yet, is congestion.
        let random = event.cause == Cause::Loss && self.backlog < self.params.beta;
        let kept = if random {
            self.params.random
        } else {
            self.params.decrease
        };
        window.reduction_base(event).mul_f64(kept)
    }

    fn reduced(&mut self, window: &mut Window, event: &Congestion) {
        self.rounds.restart(window.cwnd());
        if self.params.reset_base && event.cause != Cause::Ecn {
            self.base = Duration::MAX;
        }
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("backlog_segments", self.backlog));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::Spurious;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::Instant;

    const DEFAULT: VenoParams = VenoParams::DEFAULT;

    const BASE: Duration = Duration::from_millis(80);

    /// Avoiding congestion with 30 segments, whose round-trip time has become `rtt_ms`.
    fn veno(params: VenoParams, rtt_ms: u64) -> WindowBased<Veno> {
        let mut v = Veno::build(params, &init());
        v.window_mut().set_cwnd(MSS * 30);
        v.window_mut().exit_slow_start();
        observe(&mut v, 80, 0);
        observe(&mut v, rtt_ms, 0);
        v
    }

    /// One acknowledgement whose sample and smoothed round-trip time are `rtt_ms`.
    fn observe(v: &mut WindowBased<Veno>, rtt_ms: u64, bytes: u64) {
        let rtt = Duration::from_millis(rtt_ms);
        let one = Acked {
            rtt: Some(rtt),
            round_start: true,
            ..ack(bytes)
        };
        v.on_ack(&one, &path(rtt));
    }

    fn lose(v: &mut WindowBased<Veno>, cause: Cause) -> f64 {
        let event = congestion(cause, v.cwnd());
        v.on_congestion(&event, &path(BASE));
        v.window().segments()
    }

    #[test]
    fn loss_without_a_queue_costs_a_fifth() {
        // N = 30 * 8/88 = 2.7 < 3
        assert_eq!(lose(&mut veno(DEFAULT, 88), Cause::Loss), 24.0);
        // N = 30 * 10/90 = 3.3
        assert_eq!(lose(&mut veno(DEFAULT, 90), Cause::Loss), 15.0);
        let least = VenoParams {
            rtt: VenoRtt::Least,
            ..DEFAULT
        };
        assert_eq!(lose(&mut veno(least, 88), Cause::Loss), 24.0);
        assert_eq!(lose(&mut veno(least, 90), Cause::Loss), 15.0);
    }

    #[test]
    fn timeouts_marks_and_ignorance_are_congestion() {
        assert_eq!(lose(&mut veno(DEFAULT, 80), Cause::Ecn), 15.0);
        let mut v = veno(DEFAULT, 80);
        assert_eq!(lose(&mut v, Cause::Timeout { consecutive: 1 }), 1.0);
        assert_eq!(v.ssthresh(), Some(MSS * 15));
        let mut unseen = Veno::build(DEFAULT, &init());
        assert_eq!(lose(&mut unseen, Cause::Loss), 5.0);
    }

    #[test]
    fn growth_halves_once_beta_segments_wait() {
        let grown = |rtt_ms: u64| {
            let mut v = veno(DEFAULT, rtt_ms);
            for _ in 0..30 {
                observe(&mut v, rtt_ms, MSS.get());
            }
            v.window().segments() - 30.0
        };
        let (free, busy) = (grown(80), grown(100));
        assert!((0.97..=1.0).contains(&free), "{free}");
        assert!((0.48..=0.5).contains(&busy), "{busy}");
    }

    #[test]
    fn the_base_is_forgotten_with_a_loss_and_comes_back_with_an_undo() {
        let mut v = veno(DEFAULT, 100);
        lose(&mut v, Cause::Loss);
        observe(&mut v, 90, 0);
        assert_eq!(v.policy().base.as_millis(), 90);
        assert_eq!(v.policy().backlog, 0.0);
        v.on_spurious(
            &Spurious {
                now: Instant::ZERO,
                cause: Cause::Loss,
            },
            &path(BASE),
        );
        assert_eq!((v.policy().base, v.cwnd()), (BASE, MSS * 30));
        let kept = VenoParams {
            reset_base: false,
            ..DEFAULT
        };
        let mut v = veno(kept, 100);
        lose(&mut v, Cause::Loss);
        assert_eq!(v.policy().base, BASE);
    }

    #[test]
    fn the_verdict_stands_during_recovery() {
        let mut v = veno(DEFAULT, 100);
        let before = v.policy().backlog;
        let one = Acked {
            rtt: Some(BASE),
            in_recovery: true,
            ..ack(MSS.get())
        };
        v.on_ack(&one, &path(BASE));
        assert_eq!(v.policy().backlog, before);
    }
}

//! Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet",
//! IEEE JSAC 13(8), 1995): keeps between alpha and beta segments in the queue of the bottleneck.
//!
//! # Differences from the paper
//! - The round-trip time is the least of the round's samples, not that of one distinguished segment:
//!   the burst a slow start sends is not mistaken for a queue. In slow start the first samples of a round are used.
//! - When slow start ends, cwnd is set to the capacity of the path without a queue plus one segment; the paper does
//!   not say where congestion avoidance begins.
//! - A round with fewer than `min_samples` samples (a window of two or three segments) grows like Reno.
//! - Loss, which the transport detects, halves the window; RACK-TLP replaces the paper's fine-grained
//!   retransmission.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::round_rtt::{Round, RoundRtt, settle};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Vegas`]; the defaults are Vegas-2,4 of the paper's table 1 (the other is
    /// Vegas-1,3), as deployed since, and half of the window after a loss (RFC 5681).
    pub struct VegasParams: Copy as "Vegas", const {
        /// Segments in the queue below which the window grows (α).
        alpha: f64 = 2.0, in 0.0..=1e4;
        /// Segments in the queue above which the window shrinks (β).
        beta: f64 = 4.0, in 0.0..=1e4;
        /// Segments in the queue above which slow start ends (γ).
        gamma: f64 = 1.0, in 0.0..=1e4;
        /// Slow start grows in every other round trip only.
        alternate: bool = true;
        /// Round-trip samples below which a round grows like Reno.
        min_samples: u32 = 3, in 1..=1000;
        /// Window kept after a loss or mark, as a fraction.
        decrease: f64 = 0.5, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "vegas",
    aliases: &[],
    summary: "keeps a few segments in the queue, measured by the round-trip time",
    source: "L. Brakmo, L. Peterson, TCP Vegas: end to end congestion avoidance on a global \
             Internet, IEEE JSAC 13(8), 1995",
    params: VegasParams::params,
    build: |params, init| {
        Ok(Box::new(Vegas::build(
            VegasParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// A backlog between alpha and beta.
#[derive(Clone, Debug)]
pub struct Vegas {
    params: VegasParams,
    rounds: RoundRtt,
    /// Slow start may grow in this round.
    growing: bool,
    /// Diff · BaseRTT of the paper, in segments.
    backlog: f64,
}

impl Vegas {
    /// In slow start.
    pub fn build(params: VegasParams, init: &Init) -> WindowBased<Self> {
        WindowBased::new(Self::policy(params, init), params.window, init)
    }

    /// For algorithms that are Vegas with thresholds of their own.
    pub(super) fn policy(params: VegasParams, init: &Init) -> Self {
        Self {
            params,
            rounds: RoundRtt::new(init.initial_window),
            growing: true,
            backlog: f64::NAN,
        }
    }

    /// The window has jumped: samples of the current rounds do not apply to it.
    pub(super) fn restart(&mut self, window: &Window) {
        self.rounds.restart(window.cwnd());
        self.growing = true;
    }

    /// Processes an acknowledgement; at the end of a round of congestion avoidance the window moves towards a
    /// backlog within the bounds that `band` returns for the round. Returns the round if it had enough samples.
    pub(super) fn steer(
        &mut self,
        window: &mut Window,
        ack: &Acked,
        path: &Path<'_>,
        band: impl FnOnce(&Round) -> (f64, f64),
    ) -> Option<Round> {
        let finished = self.rounds.observe(window, ack, path);
        if ack.in_recovery {
            return None;
        }
        if window.in_slow_start() {
            self.look_for_the_end(window, path);
            return None;
        }
        let judged = finished?;
        if judged.samples < self.params.min_samples {
            if ack.cwnd_limited {
                window.grow_by(window.mss().as_f64());
            }
            return None;
        }
        self.backlog = judged.backlog();
        let (alpha, beta) = band(&judged);
        if self.backlog > beta {
            let cwnd = window.segments();
            settle(window, cwnd - 1.0, cwnd.min(2.0));
        } else if self.backlog < alpha && ack.cwnd_limited {
            window.grow_by(window.mss().as_f64());
        }
        Some(judged)
    }

    /// Slow start ends as soon as the first packets of a round show a queue: they were sent when the
    /// window had not changed for a round.
    fn look_for_the_end(&mut self, window: &mut Window, path: &Path<'_>) {
        let Some(round) = self.rounds.so_far(window, path) else {
            return;
        };
        if round.samples < self.params.min_samples {
            return;
        }
        self.backlog = round.backlog();
        if self.backlog > self.params.gamma {
            let cwnd = window.segments().min(round.pipe() + 1.0);
            settle(window, cwnd, 2.0);
            self.rounds.restart(window.cwnd());
        }
    }
}

impl Policy for Vegas {
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        let band = (self.params.alpha, self.params.beta);
        self.steer(window, ack, path, |_| band);
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Acked, _path: &Path<'_>) -> Bytes {
        if window.in_slow_start() && self.growing {
            window.slow_start(ack);
        }
        if ack.round_start {
            self.growing = !self.growing || !self.params.alternate;
        }
        Bytes::ZERO // congestion avoidance acts once a round
    }

    fn increase(&mut self, _window: &mut Window, _acked: Bytes, _ack: &Acked, _path: &Path<'_>) {}

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.params.decrease)
    }

    fn reduced(&mut self, window: &mut Window, _event: &Congestion) {
        self.restart(window);
    }

    /// The state has only measurements, which remain valid.
    fn restore(&mut self, _before: &Self) {}

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("backlog_segments", self.backlog));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::{Cause, Spurious};
    use crate::round_rtt::bench::Bottleneck;
    use crate::testing::{MSS, ack, congestion, init, path};
    use gargalo_units::{Duration, Instant};

    const DEFAULT: VegasParams = VegasParams::DEFAULT;

    const BASE: Duration = Duration::from_millis(100);

    fn vegas(params: VegasParams) -> WindowBased<Vegas> {
        Vegas::build(params, &init())
    }

    /// In congestion avoidance with this window.
    fn avoiding(segments: u64) -> WindowBased<Vegas> {
        let start = Init {
            initial_window: MSS * segments,
            ..init()
        };
        let mut v = Vegas::build(DEFAULT, &start);
        v.window_mut().exit_slow_start();
        v
    }

    #[test]
    fn slow_start_doubles_every_other_round() {
        let mut path = Bottleneck::new(BASE, 1000.0);
        let mut v = vegas(DEFAULT);
        let windows: Vec<u64> = (0..5)
            .map(|_| {
                path.run(&mut v, 1);
                v.cwnd().get() / MSS.get()
            })
            .collect();
        assert_eq!(windows, [20, 20, 40, 40, 80]);
        let mut each = vegas(VegasParams {
            alternate: false,
            ..DEFAULT
        });
        let mut path = Bottleneck::new(BASE, 1000.0);
        path.run(&mut each, 3);
        assert!(each.cwnd() > MSS * 39, "{}", each.cwnd());
    }

    #[test]
    fn slow_start_ends_where_the_queue_begins() {
        let mut path = Bottleneck::new(BASE, 60.0);
        let mut v = vegas(DEFAULT);
        for _ in 0..20 {
            path.run(&mut v, 1);
            if !v.window().in_slow_start() {
                break;
            }
        }
        // The capacity of the path, plus one segment.
        let cwnd = v.window().segments();
        assert!((60.0..=61.5).contains(&cwnd), "{cwnd}");
        assert_eq!(v.phase(), "congestion-avoidance");
    }

    #[test]
    fn the_backlog_settles_between_alpha_and_beta() {
        for start in [20, 300] {
            let mut path = Bottleneck::new(BASE, 60.5);
            let mut v = avoiding(start);
            let backlog = path.run(&mut v, 400);
            assert!((1.99..=4.01).contains(&backlog), "{start}: {backlog}");
            let later = path.run(&mut v, 50);
            assert!((later - backlog).abs() < 1e-9, "it rests there");
        }
    }

    #[test]
    fn a_base_measured_behind_a_queue_moves_the_operating_point_by_that_queue() {
        // 60 segments in 100 ms; a connection that has measured at least 110 ms assumes a pipe of 66 and adds its
        // alpha to beta to it.
        let mut path = Bottleneck::new(BASE, 60.0);
        path.believed = Duration::from_millis(110);
        let mut v = avoiding(70);
        let backlog = path.run(&mut v, 400);
        assert!((7.5..=10.5).contains(&backlog), "{backlog}");
    }

    #[test]
    fn between_the_thresholds_nothing_moves_and_a_round_moves_one_segment() {
        let view = path(BASE);
        let judged = |rtt_ms: u64| {
            let mut v = avoiding(30);
            for i in 0..4 {
                let one = Acked {
                    rtt: Some(Duration::from_millis(rtt_ms)),
                    round_start: i == 3,
                    ..ack(MSS.get())
                };
                v.on_ack(&one, &view);
            }
            v.window().segments()
        };
        assert_eq!(judged(105), 31.0); // 30 * 5/105 = 1.4 < 2
        assert_eq!(judged(110), 30.0); // 2.7
        assert_eq!(judged(120), 29.0); // 5 > 4
    }

    #[test]
    fn too_few_samples_mean_reno() {
        let view = path(BASE);
        let mut v = avoiding(2);
        let one = Acked {
            rtt: Some(BASE * 10), // however long the queue
            round_start: true,
            ..ack(2 * MSS.get())
        };
        v.on_ack(&one, &view);
        assert_eq!(v.cwnd(), MSS * 3);
        // And none at all neither judge nor grow.
        v.on_ack(&Acked { rtt: None, ..one }, &view);
        assert_eq!(v.cwnd(), MSS * 3);
    }

    #[test]
    fn never_below_two_segments_on_delay() {
        let mut path = Bottleneck::new(BASE, 60.0);
        path.believed = Duration::from_millis(1);
        let mut v = avoiding(30);
        path.run(&mut v, 200);
        assert!(v.cwnd() >= MSS * 2 && v.cwnd() <= MSS * 6, "{}", v.cwnd());
    }

    #[test]
    fn an_application_limited_sender_does_not_grow() {
        let view = path(BASE);
        let mut v = avoiding(30);
        for i in 0..30 {
            v.on_ack(
                &Acked {
                    rtt: Some(BASE),
                    round_start: i % 5 == 4,
                    cwnd_limited: false,
                    ..ack(MSS.get())
                },
                &view,
            );
        }
        assert_eq!(v.cwnd(), MSS * 30);
    }

    #[test]
    fn loss_halves_and_is_undone() {
        let view = path(BASE);
        let mut v = avoiding(40);
        v.on_congestion(&congestion(Cause::Loss, MSS * 40), &view);
        assert_eq!(v.cwnd(), MSS * 20);
        v.on_spurious(
            &Spurious {
                now: Instant::ZERO,
                cause: Cause::Loss,
            },
            &view,
        );
        assert_eq!(v.cwnd(), MSS * 40);
        v.on_congestion(
            &congestion(Cause::Timeout { consecutive: 1 }, MSS * 40),
            &view,
        );
        assert_eq!((v.cwnd(), v.ssthresh()), (MSS, Some(MSS * 20)));
    }
}

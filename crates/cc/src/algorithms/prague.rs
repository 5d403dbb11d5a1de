//! Prague, the congestion control of L4S: draft-briscoe-iccrg-prague-congestion-control-04, for the
//! requirements of RFC 9331 §4.
//!
//! It is DCTCP for the Internet. Packets carry ECT(1) (`ecn = "l4s"`, which is the default for this algorithm), so
//! that a queue of L4S (`queue = "dualpi2"`) separates them from Classic traffic and marks early and often; the
//! window is reduced by half of the marked share and keeps growing at the same time. Marks are reported as by
//! DCTCP's receiver (RFC 8257 §3.2).
//!
//! # Differences from the draft's text
//! - Feedback is not AccECN (RFC 9768) but the mirrored echo of RFC 8257, exact as long as no
//!   acknowledgement is lost.
//! - No detection (optional) of a queue that marks ECT(1) as RFC 3168 would.
//! - Instead of one reduction in the longer round of §2.4.4 each of the flow's own rounds reduces by its share,
//!   with the same result.
//! - Windows below one segment are not supported.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::event::{Acked, Cause, Congestion, Lost};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{ReduceFrom, Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Prague`]; the defaults are those of the draft.
    pub struct PragueParams: Copy as "Prague", const {
        /// Weight g of the newest round in the share of marked bytes (1/16, as in DCTCP).
        gain: f64 = 1.0 / 16.0, in 1e-4..=1.0;
        /// Share of marked bytes assumed at the first mark; 1 makes it halve the window.
        initial_alpha: f64 = 1.0, in 0.0..=1.0;
        /// Window kept after a loss, as a fraction (1/2, as in Reno).
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Flows with a shorter round-trip time behave as if they had this one (§2.4.4: 25 ms); 0:
        /// never.
        reference_rtt: Duration = Duration::from_millis(25),
            in Duration::ZERO..=Duration::from_secs(1);
        /// Rounds of congestion avoidance before they do (§2.4.4: 500), so that short flows are
        /// fast.
        transition_rounds: u64 = 500, in 0..=1_000_000_000;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams {
            reduce_from: ReduceFrom::Cwnd,
            ..WindowParams::DEFAULT
        };
    }
}

/// Longest burst when pacing, in time at the pacing rate.
const BURST: Duration = Duration::from_micros(250);

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "prague",
    aliases: &[],
    summary: "DCTCP for the Internet: scalable, ECT(1), the low-latency side of L4S queues",
    source: "draft-briscoe-iccrg-prague-congestion-control-04; RFC 9331",
    params: PragueParams::params,
    build: |params, init| {
        Ok(Box::new(Prague::build(
            PragueParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Additive increase by unmarked bytes, decrease by half of the marked share.
#[derive(Clone, Debug)]
pub struct Prague {
    params: PragueParams,
    /// The share of bytes marked, averaged over rounds.
    alpha: f64,
    /// A mark was received: from now on alpha is an average.
    marked_once: bool,
    /// In the current round.
    acked: Bytes,
    marked: Bytes,
    round_began: Instant,
    /// Rounds of congestion avoidance so far.
    rounds: u64,
    srtt: Option<Duration>,
    /// The latest reduction because of a mark: when, and by how much.
    cut: Option<(Instant, Bytes)>,
    /// The latest episode began with a mark, and no loss has followed.
    by_mark: bool,
}

impl Prague {
    /// In slow start.
    pub fn build(params: PragueParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            alpha: params.initial_alpha,
            marked_once: false,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
            round_began: Instant::ZERO,
            rounds: 0,
            srtt: None,
            cut: None,
            by_mark: false,
        };
        WindowBased::new(policy, params.window, init)
    }

    /// The emulated round-trip time, if it is longer than its own (§2.4.4).
    fn longer_rtt(&self) -> Option<Duration> {
        let reference = self.params.reference_rtt;
        let applies = self.rounds >= self.params.transition_rounds;
        (applies && self.srtt.is_some_and(|own| own < reference)).then_some(reference)
    }

    /// Whether one emulated round-trip time has passed since `then`; one of its own has.
    fn is_over(&self, then: Instant, now: Instant) -> bool {
        self.longer_rtt()
            .is_none_or(|rtt| now.saturating_since(then) >= rtt)
    }

    /// The ratio of its round-trip time to the emulated one.
    fn part_of_round(&self) -> f64 {
        match (self.srtt, self.longer_rtt()) {
            (Some(own), Some(longer)) => own.as_secs_f64() / longer.as_secs_f64(),
            _ => 1.0,
        }
    }

    /// One segment a round trip of congestion avoidance, of a longer round-trip time (own/longer)² (§2.4.4).
    fn grow(&self, window: &mut Window, acked: Bytes) {
        let ratio = self.part_of_round();
        let share = acked.as_f64() / window.cwnd().as_f64();
        window.grow_by(window.mss().as_f64() * ratio * ratio * share);
    }

    /// The size of the last reduction, if it was in this round: a loss is applied to the window before it, so that
    /// both together are one halving.
    fn recent_cut(&self, now: Instant) -> Bytes {
        let rtt = self.longer_rtt().or(self.srtt).unwrap_or_default();
        match self.cut {
            Some((at, bytes)) if now.saturating_since(at) < rtt => bytes,
            _ => Bytes::ZERO,
        }
    }
}

impl Policy for Prague {
    #[inline]
    fn observe(&mut self, window: &mut Window, ack: &Acked, path: &Path<'_>) {
        self.srtt = path.srtt.or(path.latest_rtt);
        let marked = ack.ce_bytes.min(ack.bytes);
        self.acked += ack.bytes;
        self.marked += marked;
        self.marked_once |= !marked.is_zero();
        if ack.round_start {
            self.rounds += u64::from(!window.in_slow_start());
            if self.is_over(self.round_began, ack.now) {
                if self.marked_once && !self.acked.is_zero() {
                    let share = self.marked.as_f64() / self.acked.as_f64();
                    self.alpha += self.params.gain * (share - self.alpha);
                }
                self.acked = Bytes::ZERO;
                self.marked = Bytes::ZERO;
                self.round_began = ack.now;
            }
        }
        // Unmarked bytes increase the window during a reduction too, unlike DCTCP; otherwise it would not grow at
        // all with marks in every round.
        if ack.in_recovery && self.by_mark && ack.cwnd_limited {
            self.grow(window, ack.acknowledged.saturating_sub(marked));
        }
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, ack: &Acked, _path: &Path<'_>) {
        self.grow(window, acked.saturating_sub(ack.ce_bytes));
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _path: &Path<'_>) -> Bytes {
        let base = window.reduction_base(event);
        match event.cause {
            Cause::Ecn => {
                self.by_mark = true;
                // §2.4.2: once a round, of which one's own is a part.
                let kept = base.mul_f64(1.0 - self.alpha / 2.0 * self.part_of_round());
                self.cut = Some((event.now, window.cwnd().saturating_sub(kept)));
                kept
            }
            Cause::Loss | Cause::Timeout { .. } => {
                self.by_mark = false;
                let before = base + self.recent_cut(event.now);
                self.cut = None;
                before.mul_f64(self.params.beta)
            }
        }
    }

    /// For the transport a loss during a reduction is part of it; here the window is halved nevertheless.
    fn lost(&mut self, window: &mut Window, lost: &Lost, _path: &Path<'_>) {
        if !self.by_mark || !window.is_recovering() {
            return;
        }
        self.by_mark = false;
        let before = window.cwnd() + self.recent_cut(lost.now);
        self.cut = None;
        let kept = before.mul_f64(self.params.beta).max(window.mss() * 2);
        window.set_cwnd(kept.min(window.cwnd()));
        window.exit_slow_start();
    }

    /// Measurements are kept when a loss was spurious.
    fn restore(&mut self, _before: &Self) {}

    /// RFC 9331 §4.3 requires small bursts: paced at one window per round trip, in slow start at two.
    fn pacing_rate(&self, window: &Window) -> Option<Rate> {
        let srtt = self.srtt?.as_secs_f64();
        let factor = if window.in_slow_start() { 2.0 } else { 1.0 };
        let bps = factor * window.cwnd().as_f64() * 8.0 / srtt.max(1e-6);
        Some(Rate::from_bps(bps as u64))
    }

    /// The amount sent in 250 µs, at least a segment: longer bursts would be marked.
    fn send_quantum(&self, window: &Window) -> Option<Bytes> {
        let rate = self.pacing_rate(window)?;
        Some((rate * BURST).max(window.mss()))
    }

    /// After a mark the transport uses the window unchanged; after a loss it spreads the reduction (PRR).
    fn governs_recovery(&self) -> bool {
        self.by_mark
    }

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::{MSS, ack, congestion, init, path};

    const RTT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn prague(params: PragueParams) -> WindowBased<Prague> {
        Prague::build(params, &init())
    }

    /// A window of ten segments of which `marked` carry a mark, acknowledged at `now`.
    fn round(p: &mut WindowBased<Prague>, now: Instant, marked: u64, rtt: Duration) {
        for i in 0..10 {
            let ce_bytes = if i < marked { MSS } else { Bytes::ZERO };
            let a = Acked {
                now,
                ce_bytes,
                round_start: i == 9,
                cwnd_limited: false, // keeps the window as it is
                ..ack(MSS.get())
            };
            p.on_ack(&a, &path(rtt));
        }
    }

    fn mark(p: &mut WindowBased<Prague>, now: Instant, rtt: Duration) {
        let event = Congestion {
            now,
            ..congestion(Cause::Ecn, MSS * 10)
        };
        p.on_congestion(&event, &path(rtt));
    }

    #[test]
    fn the_first_mark_halves_and_alpha_is_an_average_from_then_on() {
        let mut p = prague(PragueParams::DEFAULT);
        for n in 0..100 {
            round(&mut p, at(50 * n), 0, RTT);
        }
        assert_eq!(p.policy().alpha, 1.0, "no mark, nothing to average");
        mark(&mut p, at(5000), RTT);
        assert_eq!((p.cwnd(), p.ssthresh()), (MSS * 5, Some(MSS * 5)));
        round(&mut p, at(5000), 4, RTT);
        assert!((p.policy().alpha - (15.0 / 16.0 + 0.4 / 16.0)).abs() < 1e-12);
        for n in 0..400 {
            round(&mut p, at(5050 + 50 * n), 2, RTT);
        }
        assert!((p.policy().alpha - 0.2).abs() < 1e-6);
        p.window_mut().set_cwnd(MSS * 10);
        mark(&mut p, at(30_000), RTT);
        assert_eq!(p.cwnd(), MSS * 9);
    }

    #[test]
    fn what_is_not_marked_grows_the_window_in_a_reduction_too() {
        let mut p = prague(PragueParams::DEFAULT);
        mark(&mut p, at(0), RTT);
        let before = p.cwnd();
        for (bytes, ce, want) in [(5 * MSS.get(), 0, 1.0), (5 * MSS.get(), 5 * MSS.get(), 1.0)] {
            let a = Acked {
                ce_bytes: Bytes::new(ce),
                in_recovery: true,
                ..ack(bytes)
            };
            p.on_ack(&a, &path(RTT));
            let grown = (p.cwnd() - before).as_f64() / MSS.as_f64();
            assert!((grown - want).abs() < 0.01, "{grown}");
        }
        p.on_recovered(at(50), &path(RTT));
        let before = p.window().segments();
        let a = Acked {
            ce_bytes: MSS * 3,
            ..ack(6 * MSS.get())
        };
        p.on_ack(&a, &path(RTT));
        assert!((p.window().segments() - before - 0.5).abs() < 0.01);
        assert!(p.governs_recovery());
    }

    #[test]
    fn a_short_round_trip_behaves_like_the_reference() {
        let own = Duration::from_millis(5);
        let mut p = prague(PragueParams {
            transition_rounds: 3,
            ..PragueParams::DEFAULT
        });
        mark(&mut p, at(0), own);
        p.on_recovered(at(5), &path(own));
        let grown = |p: &mut WindowBased<Prague>, now| {
            let before = p.window().segments();
            let a = Acked {
                now,
                round_start: true,
                ..ack(p.cwnd().get())
            };
            p.on_ack(&a, &path(own));
            p.window().segments() - before
        };
        for ms in [5, 10] {
            assert!((grown(&mut p, at(ms)) - 1.0).abs() < 0.01);
        }
        // The third round: a fifth of the round-trip time, a 25th of the growth.
        assert!((grown(&mut p, at(15)) - 0.04).abs() < 0.002);
        // A fifth of the reduction: of alpha / 2.
        p.window_mut().set_cwnd(MSS * 10);
        assert_eq!(p.policy().alpha, 1.0);
        mark(&mut p, at(20), own);
        assert_eq!(p.cwnd(), MSS * 9);
    }

    #[test]
    fn a_loss_halves_with_what_a_mark_took_just_before() {
        // Long before, just before as an episode of its own, and within the reduction.
        for (gap, recovered, want) in [(500, true, 4500), (20, true, 5000), (20, false, 5000)] {
            let mut p = prague(PragueParams {
                initial_alpha: 0.2,
                ..PragueParams::DEFAULT
            });
            round(&mut p, at(0), 0, RTT);
            mark(&mut p, at(1000), RTT);
            assert_eq!(p.cwnd(), MSS * 9);
            let now = at(1000 + gap);
            if recovered {
                p.on_recovered(now, &path(RTT));
                let event = Congestion {
                    now,
                    ..congestion(Cause::Loss, MSS * 9)
                };
                p.on_congestion(&event, &path(RTT));
            } else {
                let lost = Lost {
                    now,
                    bytes: MSS,
                    state: Default::default(),
                    new_burst: true,
                    in_flight: MSS * 8,
                };
                p.on_loss(&lost, &path(RTT));
                p.on_loss(&lost, &path(RTT));
            }
            assert_eq!(p.cwnd(), Bytes::new(want), "{gap} {recovered}");
            assert!(!p.governs_recovery());
        }
    }

    #[test]
    fn it_paces_at_the_window_a_round_trip() {
        let mut p = prague(PragueParams::DEFAULT);
        round(&mut p, at(0), 0, RTT);
        // Ten segments of 1000 bytes in 50 ms.
        assert_eq!(p.pacing_rate(), Some(Rate::from_bps(3_200_000)));
        p.window_mut().exit_slow_start();
        assert_eq!(p.pacing_rate(), Some(Rate::from_bps(1_600_000)));
        assert_eq!(p.send_quantum(), Some(MSS));
        p.window_mut().set_cwnd(MSS * 1000);
        // 160 Mbit/s.
        assert_eq!(p.send_quantum(), Some(MSS * 5));
    }
}

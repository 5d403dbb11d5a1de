//! Westwood+ (Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and
//! Vegas TCP congestion control", ACM CCR 34(2), 2004): Westwood with one bandwidth sample a round
//! trip, which compressed acknowledgements do not inflate.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Instant};

use super::westwood::pipe;
use crate::event::{Acked, Congestion, Sent};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`WestwoodPlus`]; the defaults are those of the paper's equation 1, and a
    /// sample spans one round trip, however short.
    pub struct WestwoodPlusParams: Copy as "WestwoodPlus", const {
        /// Weight α of the old bandwidth estimate against a new sample (Linux: 7/8).
        alpha: f64 = 0.9, in 0.0..=0.999;
        /// Shortest time that a bandwidth sample spans (Linux: 50 ms).
        min_interval: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(10);
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "westwood+",
    aliases: &["westwood-plus"],
    summary: "Westwood with one bandwidth sample a round trip",
    source: "L. A. Grieco, S. Mascolo, Performance evaluation and comparison of Westwood+, New Reno, \
             and Vegas TCP congestion control, ACM CCR 34(2), 2004",
    params: WestwoodPlusParams::params,
    build: |params, init| {
        Ok(Box::new(WestwoodPlus::build(
            WestwoodPlusParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// Reno with adaptive decrease.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    params: WestwoodPlusParams,
    /// BWE in bytes per second; zero before the first sample.
    estimate: f64,
    /// Start of the current sample.
    since: Option<Instant>,
    /// D: acknowledged since then.
    acked: Bytes,
}

impl WestwoodPlus {
    /// In slow start.
    pub fn build(params: WestwoodPlusParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            params,
            estimate: 0.0,
            since: None,
            acked: Bytes::ZERO,
        };
        WindowBased::new(policy, params.window, init)
    }

    fn sample(&mut self, bandwidth: f64) {
        self.estimate = if self.estimate > 0.0 {
            self.params.alpha * self.estimate + (1.0 - self.params.alpha) * bandwidth
        } else {
            bandwidth // there is nothing to be smoothed yet
        };
    }
}

impl Policy for WestwoodPlus {
    fn on_send(&mut self, _window: &mut Window, sent: &Sent, _restarted: bool) {
        // Idle times of the application are not idle times of the path.
        if self.since.is_none() || sent.idle.is_some() {
            self.since = Some(sent.now);
            self.acked = Bytes::ZERO;
        }
    }

    fn observe(&mut self, _window: &mut Window, ack: &Acked, _path: &Path<'_>) {
        self.acked += ack.bytes;
        let since = *self.since.get_or_insert(ack.now);
        let interval = ack.now - since;
        if ack.round_start && !interval.is_zero() && interval >= self.params.min_interval {
            self.sample(self.acked.as_f64() / interval.as_secs_f64());
            self.since = Some(ack.now);
            self.acked = Bytes::ZERO;
        }
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(acked);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        // Half, as in Reno, while there is no estimate.
        pipe(self.estimate, path).unwrap_or_else(|| window.reduction_base(event) / 2)
    }

    /// The state has only measurements, which remain valid.
    fn restore(&mut self, _before: &Self) {}

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("bandwidth_bytes_per_s", self.estimate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::{Cause, Idle, Spurious};
    use crate::testing::{MSS, ack, congestion, init, path, sent};

    const BASE: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn round(w: &mut WindowBased<WestwoodPlus>, ms: u64, segments: u64) {
        let one = Acked {
            now: at(ms),
            round_start: true,
            cwnd_limited: false,
            ..ack(segments * MSS.get())
        };
        w.on_ack(&one, &path(BASE));
    }

    /// Ten segments have left at time zero.
    fn westwood(params: WestwoodPlusParams) -> WindowBased<WestwoodPlus> {
        let mut w = WestwoodPlus::build(params, &init());
        w.on_send(&sent(MSS * 10, Bytes::ZERO), &path(BASE));
        w
    }

    #[test]
    fn filter_by_hand() {
        let mut w = westwood(WestwoodPlusParams::DEFAULT);
        let near = |w: &WindowBased<WestwoodPlus>, want: f64| {
            let got = w.policy().estimate;
            assert!((got - want).abs() < 1e-6, "{got} not {want}");
        };
        round(&mut w, 100, 10); // the first sample is taken as it is
        near(&w, 100_000.0);
        round(&mut w, 200, 20);
        near(&w, 0.9 * 100_000.0 + 0.1 * 200_000.0);
        round(&mut w, 400, 10);
        near(&w, 0.9 * 110_000.0 + 0.1 * 50_000.0);
    }

    #[test]
    fn compressed_acknowledgements_change_nothing() {
        let view = path(BASE);
        let (mut even, mut burst) = (
            westwood(WestwoodPlusParams::DEFAULT),
            westwood(WestwoodPlusParams::DEFAULT),
        );
        for r in 0..50 {
            for i in 1..=10 {
                let one = |now| Acked {
                    now,
                    round_start: i == 10,
                    cwnd_limited: false,
                    ..ack(MSS.get())
                };
                even.on_ack(&one(at(100 * r + 10 * i)), &view);
                // All ten within the round's last microseconds.
                let late = Duration::from_micros(i);
                burst.on_ack(&one(at(100 * r + 100) + late), &view);
            }
        }
        let (a, b) = (even.policy().estimate, burst.policy().estimate);
        assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
        assert!((a / 100_000.0 - 1.0).abs() < 1e-3, "{a}");
    }

    #[test]
    fn samples_span_the_least_interval() {
        let mut w = westwood(WestwoodPlusParams {
            min_interval: Duration::from_millis(50),
            ..WestwoodPlusParams::DEFAULT
        });
        for i in 1..=4 {
            round(&mut w, 10 * i, 1);
        }
        assert_eq!(w.policy().estimate, 0.0);
        round(&mut w, 50, 1);
        assert_eq!(w.policy().estimate, 100_000.0);
    }

    #[test]
    fn an_idle_application_is_not_a_slow_path() {
        let view = path(BASE);
        let mut w = westwood(WestwoodPlusParams::DEFAULT);
        round(&mut w, 100, 10);
        let idle = Idle {
            duration: Duration::from_secs(9),
            rto: Duration::from_secs(1),
            restart_window: None,
            was_app_limited: false,
        };
        let again = Sent {
            now: at(9_100),
            idle: Some(idle),
            ..sent(MSS, Bytes::ZERO)
        };
        w.on_send(&again, &view);
        round(&mut w, 9_200, 10);
        assert_eq!(w.policy().estimate, 100_000.0);
    }

    #[test]
    fn loss_means_the_measured_pipe_and_a_timeout_remembers_it() {
        let view = path(BASE);
        let mut w = westwood(WestwoodPlusParams::DEFAULT);
        for i in 1..20 {
            round(&mut w, 100 * i, 12);
        }
        w.window_mut().set_cwnd(MSS * 30);
        w.window_mut().exit_slow_start();
        w.on_congestion(&congestion(Cause::Loss, MSS * 30), &view);
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS * 12, Some(MSS * 12)));
        let undo = Spurious {
            now: at(0),
            cause: Cause::Loss,
        };
        w.on_spurious(&undo, &view);
        assert_eq!(w.cwnd(), MSS * 30);
        let timeout = Cause::Timeout { consecutive: 1 };
        w.on_congestion(&congestion(timeout, MSS * 30), &view);
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, Some(MSS * 12)));
    }

    #[test]
    fn without_an_estimate_it_is_reno() {
        let mut w = westwood(WestwoodPlusParams::DEFAULT);
        w.on_congestion(&congestion(Cause::Loss, MSS * 10), &path(BASE));
        assert_eq!(w.cwnd(), MSS * 5);
        let mut w = westwood(WestwoodPlusParams::DEFAULT);
        let unmeasured = Path {
            min_rtt: None,
            ..path(BASE)
        };
        round(&mut w, 100, 10);
        w.on_congestion(&congestion(Cause::Loss, MSS * 10), &unmeasured);
        assert_eq!(w.cwnd(), MSS * 5);
    }
}

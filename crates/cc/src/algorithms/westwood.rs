//! Westwood (Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: bandwidth estimation for enhanced transport
//! over wireless links", MobiCom 2001): Reno that reduces to the measured bandwidth times the minimum round-trip
//! time.
//!
//! Every acknowledgement is a bandwidth sample; a low-pass filter of time constant tau smooths them,
//! discretised by Tustin's method for samples at irregular intervals. When no acknowledgement has
//! come for tau/m, samples of zero are assumed.
//!
//! # Differences from the paper
//! - Virtual samples have no timer: they are added at the next acknowledgement or congestion event, with the same
//!   result.
//! - The data behind duplicate and delayed acknowledgements is known from SACK, not estimated.
//! - Acknowledgements at the same instant are one sample.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Instant};

use crate::event::{Acked, Congestion};
use crate::params::Declared;
use crate::path::Path;
use crate::registry::{Algorithm, Init};
use crate::window::{Window, WindowParams};
use crate::window_based::{Policy, WindowBased};

settings! {
    /// Parameters of [`Westwood`]; the default of `m` is the least that the paper allows (the
    /// sampling theorem).
    pub struct WestwoodParams: Copy as "Westwood", const {
        /// Time constant τ of the bandwidth filter.
        tau: Duration = Duration::from_millis(500),
            in Duration::from_micros(10)..=Duration::from_secs(1000);
        /// After τ/m without an acknowledgement a sample of zero is assumed.
        m: f64 = 2.0, in 2.0..=1000.0;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

/// The table entry.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "westwood",
    aliases: &[],
    summary: "Reno that reduces to measured bandwidth times minimum round-trip time, filtered per ack",
    source: "S. Mascolo, C. Casetti, M. Gerla, M. Y. Sanadidi, R. Wang, TCP Westwood, MobiCom 2001",
    params: WestwoodParams::params,
    build: |params, init| {
        Ok(Box::new(Westwood::build(
            WestwoodParams::from_params(ALGORITHM.name, params)?,
            &init,
        )))
    },
};

/// The window that carries `bandwidth` bytes per second without a queue; `None` while either is
/// unknown.
pub(super) fn pipe(bandwidth: f64, path: &Path<'_>) -> Option<Bytes> {
    let base = path.min_rtt?;
    (bandwidth > 0.0).then(|| Bytes::from_f64(bandwidth * base.as_secs_f64()))
}

/// The low-pass filter; bandwidths in bytes per second.
#[derive(Clone, Copy, Debug)]
struct Filter {
    tau: f64,
    /// τ/m in seconds.
    silence: f64,
    estimate: f64,
    /// b_{k-1}: the bandwidth of the previous sample, before the filter.
    previous: f64,
    /// Time of the latest acknowledgement.
    last: Option<Instant>,
    /// Time already accounted for by virtual samples since then, in seconds.
    assumed: f64,
    /// Acknowledged at `last` after its sample was taken.
    pending: Bytes,
}

impl Filter {
    fn new(params: &WestwoodParams) -> Self {
        let tau = params.tau.as_secs_f64();
        Self {
            tau,
            silence: tau / params.m,
            estimate: 0.0,
            previous: 0.0,
            last: None,
            assumed: 0.0,
            pending: Bytes::ZERO,
        }
    }

    /// α_k = (2τ - Δ)/(2τ + Δ).
    fn alpha(&self, interval: f64) -> f64 {
        (2.0 * self.tau - interval) / (2.0 * self.tau + interval)
    }

    /// b̂_k = α_k b̂_{k-1} + (1 - α_k)(b_k + b_{k-1})/2
    fn sample(&mut self, interval: f64, bandwidth: f64) {
        let alpha = self.alpha(interval);
        self.estimate = alpha * self.estimate + (1.0 - alpha) * (bandwidth + self.previous) / 2.0;
        self.previous = bandwidth;
    }

    /// Samples of zero, τ/m apart, up to `gap` seconds after the latest acknowledgement.
    fn assume_silence(&mut self, gap: f64) {
        let missing = libm::floor((gap - self.assumed) / self.silence);
        if missing < 1.0 {
            return;
        }
        self.sample(self.silence, 0.0);
        // From the second on both samples of the mean are zero.
        self.estimate *= libm::pow(self.alpha(self.silence), missing - 1.0);
        self.assumed += missing * self.silence;
    }

    fn on_ack(&mut self, now: Instant, bytes: Bytes) {
        self.pending += bytes;
        let Some(last) = self.last else {
            // Nothing to measure from yet.
            self.last = Some(now);
            self.pending = Bytes::ZERO;
            return;
        };
        let gap = (now - last).as_secs_f64();
        if gap <= 0.0 {
            return;
        }
        self.assume_silence(gap);
        let interval = (gap - self.assumed).max(0.0);
        self.sample(interval, self.pending.as_f64() / gap);
        self.last = Some(now);
        self.assumed = 0.0;
        self.pending = Bytes::ZERO;
    }

    fn on_silence(&mut self, now: Instant) {
        if let Some(last) = self.last {
            self.assume_silence((now - last).as_secs_f64());
        }
    }
}

/// Reno with adaptive decrease.
#[derive(Clone, Debug)]
pub struct Westwood {
    filter: Filter,
}

impl Westwood {
    /// In slow start.
    pub fn build(params: WestwoodParams, init: &Init) -> WindowBased<Self> {
        let policy = Self {
            filter: Filter::new(&params),
        };
        WindowBased::new(policy, params.window, init)
    }
}

impl Policy for Westwood {
    fn observe(&mut self, _window: &mut Window, ack: &Acked, _path: &Path<'_>) {
        self.filter.on_ack(ack.now, ack.bytes);
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, acked: Bytes, _ack: &Acked, _path: &Path<'_>) {
        window.additive_increase(acked);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, path: &Path<'_>) -> Bytes {
        self.filter.on_silence(event.now);
        // Half, as in Reno, while there is no estimate.
        pipe(self.filter.estimate, path).unwrap_or_else(|| window.reduction_base(event) / 2)
    }

    /// The state has only measurements, which remain valid.
    fn restore(&mut self, _before: &Self) {}

    fn gauges(&self, _window: &Window, out: &mut Vec<(&'static str, f64)>) {
        out.push(("bandwidth_bytes_per_s", self.filter.estimate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::event::{Cause, Spurious};
    use crate::testing::{MSS, ack, congestion, init, path};

    const BASE: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn near(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-9, "{got} not {want}");
    }

    #[test]
    fn tustin_by_hand() {
        // τ = 0.5 s: with Δ = 0.1 s, α = (1 - 0.1)/(1 + 0.1) = 9/11.
        let mut f = Filter::new(&WestwoodParams::DEFAULT);
        f.on_ack(at(0), MSS);
        assert_eq!(f.estimate, 0.0);
        f.on_ack(at(100), MSS); // b = 10000
        near(f.estimate, 2.0 / 11.0 * 5_000.0);
        f.on_ack(at(200), MSS * 2); // b = 20000
        near(
            f.estimate,
            9.0 / 11.0 * (2.0 / 11.0 * 5_000.0) + 2.0 / 11.0 * 15_000.0,
        );
        let before = f.estimate;
        f.on_ack(at(250), MSS); // Δ = 0.05: α = 0.95/1.05; b = 20000
        near(f.estimate, 0.95 / 1.05 * before + 0.1 / 1.05 * 20_000.0);
    }

    #[test]
    fn a_steady_stream_is_learnt_with_the_time_constant() {
        let mut f = Filter::new(&WestwoodParams::DEFAULT);
        for i in 0..=1000 {
            f.on_ack(at(i), MSS); // 1 MB/s
            if i == 500 {
                // 1 - 1/e after τ.
                assert!((f.estimate / 1e6 - 0.632).abs() < 0.002, "{}", f.estimate);
            }
        }
        assert!((f.estimate / 1e6 - 0.865).abs() < 0.002, "{}", f.estimate);
    }

    #[test]
    fn silence_counts_as_samples_of_zero() {
        // τ/m = 250 ms: α = (1 - 0.25)/(1 + 0.25) = 0.6.
        let mut f = Filter::new(&WestwoodParams::DEFAULT);
        (f.estimate, f.previous, f.last) = (1e6, 1e6, Some(at(0)));
        f.on_silence(at(249));
        near(f.estimate, 1e6);
        f.on_silence(at(600)); // two of them
        near(f.estimate, 0.6 * (0.6 * 1e6 + 0.4 * 0.5e6));
        f.on_silence(at(740)); // the same two
        near(f.estimate, 0.6 * (0.6 * 1e6 + 0.4 * 0.5e6));
        let before = f.estimate;
        f.on_ack(at(800), MSS * 8); // the third, and 10000 B/s with Δ = 50 ms
        let third = 0.6 * before;
        near(f.estimate, 0.95 / 1.05 * third + 0.1 / 1.05 * 5_000.0);
        // Timely or in one go, it is the same filter.
        let mut at_once = Filter::new(&WestwoodParams::DEFAULT);
        (at_once.estimate, at_once.previous, at_once.last) = (1e6, 1e6, Some(at(0)));
        at_once.on_ack(at(800), MSS * 8);
        near(at_once.estimate, f.estimate);
    }

    #[test]
    fn acknowledgements_of_one_instant_are_one_sample() {
        let (mut one, mut two) = (
            Filter::new(&WestwoodParams::DEFAULT),
            Filter::new(&WestwoodParams::DEFAULT),
        );
        for i in 0..20 {
            one.on_ack(at(10 * i), MSS * 2);
            two.on_ack(at(10 * i), MSS);
            two.on_ack(at(10 * i), MSS);
        }
        // The second of each pair is counted one interval later.
        assert!((one.estimate / two.estimate - 1.0).abs() < 0.1);
    }

    /// 10 segments every 100 ms: 100 kB/s, a pipe of 10 segments.
    fn measured() -> WindowBased<Westwood> {
        let view = path(BASE);
        let mut w = Westwood::build(WestwoodParams::DEFAULT, &init());
        for i in 0..2000 {
            let one = Acked {
                now: at(10 * i),
                cwnd_limited: false,
                ..ack(MSS.get())
            };
            w.on_ack(&one, &view);
        }
        w.window_mut().set_cwnd(MSS * 30);
        w.window_mut().exit_slow_start();
        w
    }

    #[test]
    fn loss_means_the_measured_pipe() {
        let view = path(BASE);
        let mut w = measured();
        let event = Congestion {
            now: at(20_000),
            ..congestion(Cause::Loss, MSS * 30)
        };
        w.on_congestion(&event, &view);
        let cwnd = w.window().segments();
        assert!((9.99..=10.01).contains(&cwnd), "{cwnd}");
        w.on_spurious(
            &Spurious {
                now: at(20_001),
                cause: Cause::Loss,
            },
            &view,
        );
        assert_eq!(w.cwnd(), MSS * 30);
    }

    #[test]
    fn a_pipe_beyond_the_window_leaves_the_window() {
        let view = path(BASE * 10); // 100 segments
        let mut w = measured();
        let event = Congestion {
            now: at(20_000),
            ..congestion(Cause::Loss, MSS * 30)
        };
        w.on_congestion(&event, &view);
        assert_eq!(w.cwnd(), MSS * 30);
        assert!(w.ssthresh() > Some(MSS * 99));
    }

    #[test]
    fn a_timeout_counts_the_silence_before_it() {
        let view = path(BASE);
        let mut w = measured();
        let event = Congestion {
            now: at(20_000) + Duration::from_secs(2),
            ..congestion(Cause::Timeout { consecutive: 1 }, MSS * 30)
        };
        w.on_congestion(&event, &view);
        assert_eq!((w.cwnd(), w.ssthresh()), (MSS, Some(MSS * 2)));
    }

    #[test]
    fn without_an_estimate_it_is_reno() {
        let mut w = Westwood::build(WestwoodParams::DEFAULT, &init());
        w.on_congestion(&congestion(Cause::Loss, MSS * 10), &path(BASE));
        assert_eq!(w.cwnd(), MSS * 5);
    }

    #[test]
    fn parameters_at_their_bounds_stay_finite() {
        for (tau, m) in [
            (Duration::from_micros(10), 1000.0),
            (Duration::from_secs(1000), 2.0),
        ] {
            let mut f = Filter::new(&WestwoodParams {
                tau,
                m,
                ..WestwoodParams::DEFAULT
            });
            for ns in [0, 1, 2, 1_000_000, u64::MAX / 2] {
                f.on_ack(Instant::from_nanos(ns), Bytes::new(1 << 40));
                assert!(f.estimate.is_finite() && f.estimate >= 0.0, "{f:?}");
            }
        }
    }
}

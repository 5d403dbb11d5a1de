//! Hybrid slow start as in Linux 6.
//!
//! It differs from [`crate::slow_start::HyStart`] in these points: the train must be longer than half of the least
//! round-trip time and an allowance for aggregation; it is not watched while the window is below the low window; the
//! search by delay looks at the ninth sample of a round; a new search begins after a timeout.

use gargalo_units::{Duration, Instant};

use super::{CubicLinuxParams, HyStartDetect};
use crate::event::Acked;
use crate::path::Path;
use crate::window::Window;

/// Samples of the round-trip time that the minimum of a round needs.
const SAMPLES: u32 = 8;
/// Bounds of the rise of the round-trip time that ends slow start.
const RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// Largest burst of segmentation offload, bytes.
const LARGEST_BURST: f64 = 65_536.0;

/// The searches of one slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    found: bool,
    round: Option<Round>,
}

/// One round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    started: Instant,
    /// The latest acknowledgement of the train.
    train_end: Instant,
    rtt: Duration,
    samples: u32,
}

impl HyStart {
    /// Observes an acknowledgement with a sample of the round-trip time; whether slow start is over.
    pub(super) fn is_over(
        &mut self,
        params: &CubicLinuxParams,
        ack: &Acked,
        rtt: Duration,
        least: Duration,
        window: &Window,
        path: &Path<'_>,
    ) -> bool {
        if self.found {
            return false;
        }
        if ack.round_start || self.round.is_none() {
            self.round = Some(Round {
                started: ack.now,
                train_end: ack.now,
                rtt: Duration::MAX,
                samples: 0,
            });
        }
        let Some(round) = &mut self.round else {
            return false;
        };
        if window.segments() < params.hystart_low_window as f64 {
            return false;
        }
        let detect = params.hystart_detect;
        let train = matches!(detect, HyStartDetect::Train | HyStartDetect::Both);
        let delay = matches!(detect, HyStartDetect::Delay | HyStartDetect::Both);
        let train = train && round.train_is_long(params, ack.now, least, window, path);
        let delay = delay && round.delay_rose(rtt, least);
        self.found = train || delay;
        self.found
    }
}

impl Round {
    fn train_is_long(
        &mut self,
        params: &CubicLinuxParams,
        now: Instant,
        least: Duration,
        window: &Window,
        path: &Path<'_>,
    ) -> bool {
        if now - self.train_end > params.hystart_ack_delta {
            return false;
        }
        self.train_end = now;
        let threshold = least + aggregation(window, path);
        let threshold = if params.paced {
            threshold
        } else {
            threshold / 2
        };
        now - self.started > threshold
    }

    fn delay_rose(&mut self, rtt: Duration, least: Duration) -> bool {
        self.rtt = self.rtt.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.rtt > least + (least / 8).max(RISE.0).min(RISE.1)
    }
}

/// Allowance for acknowledgements of whole bursts: the time of four of the largest bursts at the pacing rate, 1 ms at
/// most. The pacing rate is twice the window per round-trip time, 1.2 times above half of the threshold.
fn aggregation(window: &Window, path: &Path<'_>) -> Duration {
    let Some(srtt) = path.srtt else {
        return Duration::ZERO;
    };
    let is_fast = window.ssthresh().is_none_or(|s| window.cwnd() < s / 2);
    let factor = if is_fast { 2.0 } else { 1.2 };
    let rate = factor * window.cwnd().as_f64() / srtt.as_secs_f64().max(1e-6);
    Duration::from_secs_f64(4.0 * LARGEST_BURST / rate.max(1.0)).min(Duration::from_millis(1))
}

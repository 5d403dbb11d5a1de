//! What the coupled controls of the out-of-tree Linux (multipath-tcp.org, release 0.90) have in common: windows of
//! whole segments that grow by one after so many acknowledgements, and slow start up to a segment above the threshold.

use gargalo_settings::names;
use gargalo_units::Bytes;

use super::Subflow;
use crate::event::Acked;
use crate::window::Window;

names! {
    /// How a coupled increase is computed.
    pub enum Arithmetic {
        /// In real numbers, for each byte acknowledged.
        Exact = "exact",
        /// In the integers of Linux' out-of-tree Multipath TCP: for each acknowledgement, so that delayed ones halve
        /// the growth, and with the rounding of its modules. Slow start goes to one segment above the threshold,
        /// whatever an acknowledgement covers. Windows have whole segments.
        Linux = "linux",
    }
}

impl Arithmetic {
    /// A threshold, in whole segments with Linux' arithmetic.
    pub(crate) fn rounded(self, threshold: Bytes, window: &Window) -> Bytes {
        match self {
            Self::Exact => threshold,
            Self::Linux => window.mss() * (threshold.get() / window.mss().get()),
        }
    }
}

/// The count towards the next whole segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    count: i64,
}

impl Whole {
    /// One acknowledgement; the window grows by a segment with the first after `needed` of them.
    pub fn count(&mut self, window: &mut Window, needed: u64) {
        if u64::try_from(self.count).is_ok_and(|n| n >= needed) {
            window.set_cwnd(window.cwnd() + window.mss());
            self.count = 0;
        } else {
            self.count += 1;
        }
    }

    /// Adds `step` parts of a segment, of which it has `scale`: the window changes by a segment when all but one are
    /// there. It may fall to one segment, below the threshold.
    pub fn add(&mut self, window: &mut Window, step: i64, scale: i64) {
        self.count = self.count.saturating_add(step);
        if self.count >= scale - 1 {
            window.set_cwnd(window.cwnd() + window.mss());
        } else if self.count <= 1 - scale {
            window.set_cwnd(window.cwnd().saturating_sub(window.mss()));
        } else {
            return;
        }
        self.count = 0;
    }

    /// Slow start as long as the window is not above the threshold; what goes beyond is not counted. Returns what is
    /// left for congestion avoidance.
    pub fn slow_start(window: &mut Window, ack: &Acked) -> Bytes {
        if ack.in_recovery || !ack.cwnd_limited {
            return Bytes::ZERO;
        }
        let most = window.ssthresh().map_or(Bytes::MAX, |t| t + window.mss());
        if window.cwnd() >= most {
            return ack.acknowledged;
        }
        window.set_cwnd((window.cwnd() + ack.acknowledged).min(most));
        Bytes::ZERO
    }
}

/// A window in whole segments, one at least.
pub(crate) fn segments(s: &Subflow, mss: Bytes) -> u64 {
    ((s.window / mss.as_f64() + 1e-9) as u64).max(1)
}

/// A smoothed round-trip time in eighths of a microsecond, as in this kernel.
pub(crate) fn eighths(s: &Subflow) -> u64 {
    ((s.rtt * 8e6) as u64).max(1)
}

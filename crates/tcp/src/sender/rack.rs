//! RACK (RFC 8985): a segment is lost when one sent sufficiently later has been delivered.

use gargalo_units::{Duration, Instant};

use super::scoreboard::{DUP_THRESH, Sent};

/// Round trips for which a widened reordering window is kept (RFC 8985 §6.2.4: 16 recoveries).
const PERSIST: u32 = 16;
const MAX_MULTIPLIER: u32 = 254;

/// State of RACK (RFC 8985 §5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Send time and end of the newest segment delivered so far.
    newest: Option<(Instant, u64)>,
    rtt: Duration,
    /// Highest offset delivered.
    highest: u64,
    reordering_seen: bool,
    multiplier: u32,
    persist: u32,
    /// Widen at most once per round trip: nothing before this offset counts again.
    dsack_round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            highest: 0,
            reordering_seen: false,
            multiplier: 1,
            persist: 0,
            dsack_round: None,
        }
    }
}

impl Rack {
    /// A segment was delivered (RFC 8985 §6.2 steps 1 to 3).
    #[inline]
    pub(crate) fn on_delivered(&mut self, now: Instant, sent: &Sent, min_rtt: Option<Duration>) {
        let end = sent.end();
        if end > self.highest {
            self.highest = end;
        } else if !sent.retransmitted && end < self.highest {
            self.reordering_seen = true;
        }
        let rtt = now - sent.state.sent_at;
        if sent.retransmitted && min_rtt.is_some_and(|m| rtt < m) {
            return; // the acknowledgement is of the original
        }
        let this = (sent.state.sent_at, end);
        if self.newest.is_none_or(|n| this > n) {
            self.newest = Some(this);
            self.rtt = rtt;
        }
    }

    /// A duplicate report: the window was too narrow (RFC 8985 §6.2.4 step 4).
    pub(crate) fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_none_or(|round| una >= round) {
            self.multiplier = (self.multiplier + 1).min(MAX_MULTIPLIER);
            self.persist = PERSIST;
            self.dsack_round = Some(nxt);
        }
    }

    /// A recovery has ended.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// The reordering window (RFC 8985 §6.2.4).
    #[inline]
    pub(crate) fn window(
        &self,
        in_recovery: bool,
        sacked: u32,
        min_rtt: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Duration {
        if !self.reordering_seen && (in_recovery || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        let quarter = min_rtt.unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.multiplier)).min(srtt.unwrap_or(Duration::ZERO))
    }

    /// When `sent` counts as lost; `None` while nothing sent after it has been delivered.
    #[inline]
    pub(crate) fn due(&self, sent: &Sent, window: Duration) -> Option<Instant> {
        let newest = self.newest?;
        if newest <= (sent.state.sent_at, sent.end()) {
            return None;
        }
        Some(sent.state.sent_at + self.rtt + window)
    }
}

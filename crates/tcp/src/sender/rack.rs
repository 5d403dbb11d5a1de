//! RACK (RFC 8985): a segment is lost when one that was sent sufficiently later has been delivered.

use gargalo_units::{Duration, Instant};

use super::scoreboard::{DUP_THRESH, Run, Sent};

/// Round trips for which a widened reordering window is kept (RFC 8985 §6.2 step 4: 16 recoveries).
const PERSIST: u32 = 16;
const MAX_MULTIPLIER: u32 = 254;

/// State of RACK (RFC 8985 §5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Send time of the newest segment delivered so far, and which transmission it was: of two at one time the later
    /// one is newer (RFC 8985 §6.2 takes the sequence number, as it does not know the order). The first one is number
    /// 1.
    newest: (Instant, u64),
    rtt: Duration,
    /// Highest offset delivered.
    highest: u64,
    reordering_seen: bool,
    /// By the acknowledgement that is being processed.
    seen_now: bool,
    /// Acknowledgements that showed reordering.
    reorderings: u64,
    /// Most bytes from the begin of a segment to the end of what had arrived before it, outside of retransmissions.
    extent: u64,
    multiplier: u32,
    persist: u32,
    /// The window is widened at most once per round trip: D-SACKs before this offset are ignored.
    dsack_round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            highest: 0,
            reordering_seen: false,
            seen_now: false,
            reorderings: 0,
            extent: 0,
            multiplier: 1,
            persist: 0,
            dsack_round: None,
        }
    }
}

impl Rack {
    /// A segment was delivered (RFC 8985 §6.2 steps 1 to 3).
    #[inline]
    ///
    /// `echo` is the echoed timestamp in milliseconds: one from before the retransmission shows that the original
    /// arrived. Without timestamps only an impossibly short round trip shows it.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        sent: &Sent,
        min_rtt: Option<Duration>,
        echo: Option<u32>,
    ) {
        let end = sent.end();
        if end > self.highest {
            self.highest = end;
        } else if !sent.retransmitted && end < self.highest {
            self.reordering_seen = true;
            self.seen_now = true;
            self.on_late(sent.start);
        }
        let rtt = now - sent.state.sent_at;
        let resent_at = (sent.state.sent_at.as_nanos() / 1_000_000) as u32;
        let before = echo.is_some_and(|e| (e.wrapping_sub(resent_at) as i32) < 0);
        if sent.retransmitted && (before || min_rtt.is_some_and(|m| rtt < m)) {
            return; // the acknowledgement is of the original
        }
        let this = (sent.state.sent_at, sent.order);
        if this > self.newest {
            self.newest = this;
            self.rtt = rtt;
        }
    }

    /// The same for all before `ack`, when nothing sent after it has been delivered before.
    #[inline]
    pub(crate) fn on_run(&mut self, run: &Run<'_>, ack: u64, rtt: Duration) {
        if run.end < self.highest {
            self.reordering_seen = true;
            self.reorderings += 1;
            self.on_late(run.start);
        }
        self.highest = self.highest.max(ack);
        self.newest = (run.last.state.sent_at, run.last.order);
        self.rtt = rtt;
    }

    /// Whether neither this segment nor one that was sent after it has been delivered: then none of them can be due.
    #[inline]
    pub(crate) fn awaits(&self, sent: &Sent) -> bool {
        self.newest < (sent.state.sent_at, sent.order)
    }

    /// An original that begins at `start` arrived after later data. The extent has the segment itself, so that the
    /// threshold is above what arrived before it.
    #[inline]
    pub(crate) fn on_late(&mut self, start: u64) {
        self.extent = self.extent.max(self.highest.saturating_sub(start));
    }

    /// The measured reordering was too large: a timeout came before the duplicate threshold was reached.
    pub(crate) fn forget_extent(&mut self) {
        self.extent = 0;
    }

    /// An acknowledgement was processed.
    #[inline]
    pub(crate) fn end_of_ack(&mut self) {
        self.reorderings += u64::from(std::mem::take(&mut self.seen_now));
    }

    /// Acknowledgements that showed reordering.
    pub(crate) fn reorderings(&self) -> u64 {
        self.reorderings
    }

    /// Whether an original arrived after later data.
    #[inline]
    pub(crate) fn has_reordering(&self) -> bool {
        self.reordering_seen
    }

    /// The duplicate threshold: the reordering seen so far in segments of `mss` bytes, from [`DUP_THRESH`] to `most`.
    #[inline]
    pub(crate) fn dup_thresh(&self, mss: u32, most: u32) -> u32 {
        if most <= DUP_THRESH || self.extent == 0 {
            return DUP_THRESH;
        }
        let segments = self.extent.div_ceil(u64::from(mss)).min(u64::from(most)) as u32;
        segments.max(DUP_THRESH)
    }

    /// Processes a D-SACK: the window was too narrow (RFC 8985 §6.2 step 4).
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

    /// The reordering window (RFC 8985 §6.2 step 4); `reached`: as many segments as the duplicate threshold are
    /// selectively acknowledged.
    #[inline]
    pub(crate) fn window(
        &self,
        in_recovery: bool,
        reached: bool,
        min_rtt: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Duration {
        if !self.reordering_seen && (in_recovery || reached) {
            return Duration::ZERO;
        }
        let quarter = min_rtt.unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.multiplier)).min(srtt.unwrap_or(Duration::ZERO))
    }

    /// When `sent` counts as lost; `None` while nothing sent after it has been delivered.
    #[inline]
    pub(crate) fn due(&self, sent: &Sent, window: Duration) -> Option<Instant> {
        if self.newest <= (sent.state.sent_at, sent.order) {
            return None;
        }
        Some(sent.state.sent_at + self.rtt + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_cc::SendState;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }
    fn at(n: u64) -> Instant {
        Instant::ZERO + ms(n)
    }

    /// Segment `n` of 1000 bytes, sent at `sent_at`.
    fn segment(n: u64, sent_at: u64, retransmitted: bool) -> Sent {
        let mut board = super::super::scoreboard::Scoreboard::default();
        let state = SendState {
            sent_at: at(sent_at),
            ..SendState::default()
        };
        board.push(n * 1000, 1000, false, state);
        let (_, mut sent) = board.last_unsacked().expect("just pushed");
        sent.retransmitted = retransmitted;
        sent.order = n;
        sent
    }

    fn window(r: &Rack, in_recovery: bool, sacked: u32) -> Duration {
        r.window(
            in_recovery,
            sacked >= DUP_THRESH,
            Some(ms(40)),
            Some(ms(100)),
        )
    }

    #[test]
    fn without_reordering_three_above_or_a_recovery_leave_no_time() {
        // RFC 8985 §6.2 step 4: RACK_update_reo_wnd.
        let mut r = Rack::default();
        assert_eq!(window(&r, false, 2), ms(10));
        assert_eq!(window(&r, false, 3), Duration::ZERO);
        assert_eq!(window(&r, true, 0), Duration::ZERO);
        r.on_delivered(at(50), &segment(2, 0, false), None, None);
        r.on_delivered(at(51), &segment(1, 0, false), None, None);
        assert_eq!(window(&r, true, 5), ms(10), "segment 1 came after 2");
    }

    #[test]
    fn a_retransmission_that_fills_a_hole_is_no_reordering() {
        let mut r = Rack::default();
        r.on_delivered(at(50), &segment(2, 0, false), None, None);
        r.on_delivered(at(100), &segment(1, 50, true), None, None);
        assert_eq!(window(&r, true, 0), Duration::ZERO);
    }

    #[test]
    fn duplicate_reports_widen_once_a_round_up_to_srtt_for_sixteen_recoveries() {
        let mut r = Rack::default();
        r.on_dsack(1000, 9000);
        r.on_dsack(2000, 9500);
        assert_eq!(window(&r, false, 0), ms(20), "one round trip, one step");
        r.on_dsack(9000, 20_000);
        assert_eq!(window(&r, false, 0), ms(30));
        for round in 2..100 {
            r.on_dsack(round * 10_000, (round + 1) * 10_000);
        }
        assert_eq!(window(&r, false, 0), ms(100), "at most srtt");
        for _ in 0..15 {
            r.on_recovered();
        }
        assert_eq!(window(&r, false, 0), ms(100));
        r.on_recovered();
        assert_eq!(window(&r, false, 0), ms(10));
    }

    #[test]
    fn due_is_the_round_trip_of_the_newest_delivery_after_sending() {
        let mut r = Rack::default();
        assert_eq!(r.due(&segment(0, 0, false), ms(10)), None);
        r.on_delivered(at(60), &segment(5, 10, false), None, None);
        assert_eq!(r.due(&segment(0, 5, false), ms(10)), Some(at(5 + 50 + 10)));
        // Sent at the same time, the order of sending decides.
        assert_eq!(
            r.due(&segment(4, 10, false), ms(10)),
            Some(at(10 + 50 + 10))
        );
        assert_eq!(r.due(&segment(6, 10, false), ms(10)), None);
        assert_eq!(r.due(&segment(0, 11, true), ms(10)), None);
    }

    #[test]
    fn an_answer_faster_than_the_path_is_of_the_original() {
        let mut r = Rack::default();
        r.on_delivered(at(60), &segment(5, 50, true), Some(ms(40)), None);
        assert_eq!(r.due(&segment(0, 5, false), ms(10)), None);
    }

    #[test]
    fn an_echo_from_before_the_retransmission_is_of_the_original() {
        // Sent again at 50 ms; the acknowledgement at 200 ms echoes a timestamp of 10 ms.
        let mut r = Rack::default();
        r.on_delivered(at(200), &segment(1, 50, true), Some(ms(40)), Some(10));
        assert_eq!(
            r.due(&segment(2, 20, false), ms(0)),
            None,
            "nothing later was delivered"
        );
        r.on_delivered(at(200), &segment(1, 50, true), Some(ms(40)), Some(50));
        assert_eq!(r.due(&segment(2, 20, false), ms(0)), Some(at(170)));
    }
}

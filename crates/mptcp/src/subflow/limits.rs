//! Limits of what a subflow may have in flight, beside its congestion window.

use gargalo_units::{Duration, Instant};

/// The limit of a penalised subflow, which blocked the window for others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Penalty {
    /// Maximum bytes in flight; `None`: no penalty.
    pub(crate) cap: Option<u64>,
    /// No change before this.
    pub(super) until: Instant,
    /// Recent penalties: the more, the slower the cap rises.
    strikes: u32,
}

const MOST_STRIKES: u32 = 5;

impl Penalty {
    /// Halves the cap of a subflow that filled the window, at most once per round trip; less than two segments
    /// count as none. Returns whether it changed.
    pub(crate) fn halve(&mut self, now: Instant, in_flight: u64, mss: u64, rtt: Duration) -> bool {
        // A pending rise does not delay a further reduction.
        let since = self.until - rtt.saturating_mul((1 << self.strikes) - 1);
        if now < since {
            return false;
        }
        let half = self.cap.unwrap_or(u64::MAX).min(in_flight) / 2;
        self.cap = Some(if half >= 2 * mss { half } else { 0 });
        self.strikes = (self.strikes + 1).min(MOST_STRIKES);
        self.until = now + rtt.saturating_mul(1 << self.strikes);
        true
    }

    /// Raises the cap by a sixteenth and one segment after a time without a new penalty: at first one round trip,
    /// after repeated penalties up to 32.
    #[inline]
    pub(crate) fn relax(&mut self, now: Instant, cwnd: u64, mss: u64, rtt: Duration) {
        let Some(cap) = self.cap else { return };
        if now < self.until {
            return;
        }
        let cap = cap + cap / 16 + mss;
        self.cap = (cap < cwnd).then_some(cap);
        if self.cap.is_none() {
            self.strikes = self.strikes.saturating_sub(1);
        }
        self.until = now + rtt.saturating_mul(1 << self.strikes.saturating_sub(1));
    }
}

/// Limits the burst of a subflow after it had to wait for others: its whole window has room then, and sent at once
/// it would overflow a queue. Data clocked by acknowledgements is never delayed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Burst {
    /// When everything sent so far has been paid for.
    pub(super) paid_at: Instant,
    /// Nanoseconds per byte; 0 while the round-trip time is unknown.
    price: f64,
    /// The allowed burst, in nanoseconds.
    credit: Duration,
}

/// Burst in segments; or an eighth of the window, if that is larger.
const LEAST_BURST: u64 = 16;

impl Burst {
    /// Sets the rate: two windows per round trip in slow start, 5/4 of a window afterwards.
    pub(super) fn set(&mut self, srtt: Option<Duration>, cwnd: u64, starting: bool, mss: u64) {
        let Some(srtt) = srtt else { return };
        // The window may be zero by a penalty.
        let cwnd = cwnd.max(2 * mss);
        let per_round = cwnd as f64 * if starting { 2.0 } else { 1.25 };
        self.price = srtt.as_nanos() as f64 / per_round;
        let burst = (LEAST_BURST * mss).max(cwnd / 8);
        self.credit = Duration::from_nanos((burst as f64 * self.price) as u64);
    }

    /// Records that `len` bytes are sent.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Instant, len: u32) {
        if self.price == 0.0 {
            return;
        }
        let time = Duration::from_nanos((f64::from(len) * self.price) as u64);
        self.paid_at = self.paid_at.max(now - self.credit) + time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_spread_and_a_steady_stream_is_not() {
        const MS: Duration = Duration::from_millis(1);
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        let mut b = Burst::default();
        b.on_send(at(1000), 1000);
        assert!(b.paid_at <= at(1000), "nothing is known yet");
        // 100 segments per 100 ms, 125 are paid for: 0.8 ms each, and 16 may leave at once.
        b.set(Some(MS * 100), 100_000, false, 1000);
        let sent = (0..100).take_while(|_| {
            let ready = b.paid_at <= at(1000);
            b.on_send(at(1000), 1000);
            ready
        });
        assert_eq!(sent.count(), 17);
        let mut b = Burst::default();
        b.set(Some(MS * 100), 100_000, false, 1000);
        for ms in 1000..2000 {
            assert!(b.paid_at <= at(ms));
            b.on_send(at(ms), 1000);
        }
        // Without a window it is not blocked for ever.
        b.set(Some(MS * 100), 0, false, 1000);
        b.on_send(at(3000), 1000);
        assert!(b.paid_at < at(3100));
    }

    #[test]
    fn penalties_halve_and_fade_more_slowly_each_time() {
        const RTT: Duration = Duration::from_millis(100);
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        let mut p = Penalty::default();
        assert!(p.halve(at(0), 20_000, 1000, RTT));
        assert_eq!(p.cap, Some(10_000));
        assert!(!p.halve(at(99), 20_000, 1000, RTT), "once a round trip");
        assert!(p.halve(at(100), 5_000, 1000, RTT));
        assert_eq!(p.cap, Some(2_500));
        assert!(p.halve(at(200), 2_500, 1000, RTT));
        assert_eq!(p.cap, Some(0), "less than two segments are none");
        // After three penalties the cap rises first after 8 round trips, then every 4.
        p.relax(at(999), 50_000, 1000, RTT);
        assert_eq!(p.cap, Some(0));
        let mut t = 1000;
        let mut caps = Vec::new();
        while p.cap.is_some() {
            p.relax(at(t), 5_000, 1000, RTT);
            caps.extend(p.cap);
            p.relax(at(t + 399), 5_000, 1000, RTT);
            t += 400;
        }
        assert_eq!(caps, [1_000, 2_062, 3_190, 4_389]);
        assert!(p.halve(at(t), 20_000, 1000, RTT));
    }

    #[test]
    fn a_burst_is_an_eighth_of_a_large_window_and_slow_start_is_paid_twice_as_fast() {
        const RTT: Duration = Duration::from_millis(100);
        let start = Instant::from_nanos(1_000_000_000);
        // Window in segments, slow start; segments that leave at once, and nanoseconds that each of the others waits.
        for (cwnd, starting, at_once, each) in [
            (100, false, 17, 800_000),
            (100, true, 17, 500_000),
            (800, false, 101, 100_000),
            // A window is two segments at least.
            (1, false, 17, 40_000_000),
        ] {
            let mut b = Burst::default();
            b.set(Some(RTT), 1000 * cwnd, starting, 1000);
            b.set(None, 1, true, 1000);
            for n in 1..200 {
                let waits = b.paid_at.saturating_since(start).as_nanos();
                assert_eq!(waits == 0, n <= at_once, "{cwnd}: segment {n}");
                if n > at_once {
                    assert!(waits.abs_diff((n - at_once) * each) <= n, "{waits}");
                }
                b.on_send(start, 1000);
            }
            // A pause earns one burst and no more.
            let later = start + Duration::from_secs(100);
            let sent = (0..200).take_while(|_| {
                let ready = b.paid_at <= later;
                b.on_send(later, 1000);
                ready
            });
            assert_eq!(sent.count() as u64, at_once);
        }
    }

    #[test]
    fn each_of_up_to_five_penalties_doubles_the_time_until_the_cap_rises() {
        const RTT: Duration = Duration::from_millis(100);
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        for (penalties, rounds) in [(1, 2), (2, 4), (3, 8), (5, 32), (6, 32), (9, 32)] {
            let mut p = Penalty::default();
            let mut now = 0;
            for n in 0..penalties {
                // Each comes as early as it may.
                now = 100 * n;
                assert!(n == 0 || !p.halve(at(now - 1), 64_000 << 10, 1000, RTT));
                assert!(p.halve(at(now), 64_000 << 10, 1000, RTT));
            }
            let cap = (64_000 << 10) >> penalties;
            assert_eq!(p.cap, Some(cap));
            let rises = now + 100 * rounds;
            p.relax(at(rises - 1), u64::MAX, 1000, RTT);
            assert_eq!(p.cap, Some(cap));
            p.relax(at(rises), u64::MAX, 1000, RTT);
            assert_eq!(p.cap, Some(cap + cap / 16 + 1000));
        }
    }

    #[test]
    fn a_cap_ends_at_the_window_and_small_ones_are_none() {
        const RTT: Duration = Duration::from_millis(100);
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        for (in_flight, cap) in [(4000, 2000), (3999, 0), (0, 0)] {
            let mut p = Penalty::default();
            p.relax(at(0), 1, 1000, RTT);
            assert_eq!(p.cap, None);
            p.halve(at(0), in_flight, 1000, RTT);
            assert_eq!(p.cap, Some(cap));
        }
        let mut p = Penalty::default();
        p.halve(at(0), 4000, 1000, RTT);
        p.relax(at(200), 3126, 1000, RTT);
        assert_eq!(p.cap, Some(2000 + 125 + 1000));
        p.relax(at(300), 4321, 1000, RTT);
        assert_eq!(p.cap, Some(3125 + 195 + 1000));
        p.relax(at(400), 5590, 1000, RTT);
        assert_eq!(p.cap, None, "4320 + 270 + 1000 is the window");
    }
}

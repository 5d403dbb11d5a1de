//! Pacing: spreads packets over time at a rate, in bursts of one quantum.
//!
//! A burst of up to `quantum` bytes is sent back to back; the next one waits until its time at the rate has passed.
//! A sender that wakes late is credited the delay, at most half of a packet's serialisation time each, so that
//! coarse timers do not lower the rate (the rule of Linux's internal pacing); an idle sender gains no more than
//! that either. Integer arithmetic only.

use gargalo_units::{Bytes, Duration, Instant, Rate};

/// The longest wait one packet may cause, whatever the rate: a controller that reports a rate near
/// zero slows a connection but cannot stop it.
const MAX_GAP: Duration = Duration::from_secs(1);

/// Decides when the next packet may leave.
///
/// Before sending: if [`Pacer::next_release`] is later than now, wait until then. After each packet:
/// [`Pacer::on_send`].
#[derive(Clone, Debug)]
pub struct Pacer {
    /// When the time of everything sent so far has passed.
    next: Instant,
    /// Bytes that the current burst may still send.
    left: Bytes,
    quantum: Bytes,
    /// Lateness not yet credited.
    credit: Duration,
}

impl Pacer {
    /// A pacer that releases bursts of `quantum` bytes (at least one packet leaves whatever its
    /// size).
    pub fn new(quantum: Bytes) -> Self {
        Self {
            next: Instant::ZERO,
            left: Bytes::ZERO,
            quantum,
            credit: Duration::ZERO,
        }
    }

    /// Sets the burst size for bursts that start from now on.
    #[inline]
    pub fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = quantum;
    }

    /// The earliest time the next packet may leave; `now` when it may leave at once.
    #[inline]
    pub fn next_release(&self, now: Instant) -> Instant {
        if self.left.is_zero() {
            self.next.max(now)
        } else {
            now
        }
    }

    /// Whether a packet may leave at `now`.
    #[inline]
    pub fn can_send(&self, now: Instant) -> bool {
        !self.left.is_zero() || self.next <= now
    }

    /// A packet of `bytes` left at `now`; `rate` is the pacing rate in force, `None` for no pacing.
    #[inline]
    pub fn on_send(&mut self, now: Instant, bytes: Bytes, rate: Option<Rate>) {
        let Some(rate) = rate else {
            *self = Self {
                next: now,
                left: Bytes::ZERO,
                credit: Duration::ZERO,
                ..*self
            };
            return;
        };
        if self.next <= now {
            // The time of all packets has passed: a new burst, credited with its lateness.
            self.credit = now - self.next;
            self.next = now;
            self.left = self.quantum;
        }
        let gap = rate.transmission_time(bytes).min(MAX_GAP);
        let credited = self.credit.min(gap / 2);
        self.credit -= credited;
        self.next += gap - credited;
        self.left -= bytes;
    }
}

/// The pacing rate of a window-based sender: `gain` times cwnd per smoothed round-trip time.
/// Linux: gain 2 in slow start, 1.2 in congestion avoidance.
#[inline]
pub fn rate_of_window(cwnd: Bytes, srtt: Duration, gain: f64) -> Option<Rate> {
    if srtt.is_zero() {
        return None;
    }
    let rate = Rate::from_bps_f64(cwnd.as_f64() * 8.0 * gain / srtt.as_secs_f64());
    Some(rate.max(Rate::from_bps(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1250);

    /// Sends whenever allowed until `end`, waking `late` after each release time.
    fn sent_until(pacer: &mut Pacer, end: Instant, rate: Rate, late: Duration) -> u64 {
        let mut now = Instant::ZERO;
        let mut packets = 0;
        while now < end {
            if pacer.can_send(now) {
                pacer.on_send(now, PACKET, Some(rate));
                packets += 1;
            } else {
                now = pacer.next_release(now) + late;
            }
        }
        packets
    }

    #[test]
    fn spaces_bursts_at_the_rate() {
        // 10 Mbit/s: a packet a millisecond, two in a burst.
        let rate = Rate::from_mbps(10);
        let mut p = Pacer::new(PACKET * 2);
        let t0 = Instant::ZERO;
        p.on_send(t0, PACKET, Some(rate));
        assert_eq!(p.next_release(t0), t0);
        p.on_send(t0, PACKET, Some(rate));
        assert_eq!(p.next_release(t0), t0 + Duration::from_millis(2));
        assert!(!p.can_send(t0 + Duration::from_micros(1999)));
    }

    #[test]
    fn long_run_rate_is_exact_even_when_waking_late() {
        let rate = Rate::from_mbps(10);
        let end = Instant::ZERO + Duration::from_secs(10);
        for late in [0, 1, 300, 490] {
            let n = sent_until(
                &mut Pacer::new(PACKET),
                end,
                rate,
                Duration::from_micros(late),
            );
            assert!((9_990..=10_010).contains(&n), "{late} us late: {n} packets");
        }
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let rate = Rate::from_mbps(10);
        let mut p = Pacer::new(PACKET * 2);
        p.on_send(Instant::ZERO, PACKET, Some(rate));
        let now = Instant::ZERO + Duration::from_secs(5);
        let mut burst = 0;
        while p.can_send(now) {
            p.on_send(now, PACKET, Some(rate));
            burst += 1;
        }
        assert_eq!(burst, 2);
        assert_eq!(p.next_release(now), now + Duration::from_millis(1));
    }

    #[test]
    fn no_rate_delays_nothing_and_forgets_debt() {
        let mut p = Pacer::new(PACKET);
        let now = Instant::from_nanos(5);
        p.on_send(now, PACKET, Some(Rate::from_bps(1000)));
        assert!(!p.can_send(now));
        p.on_send(now, PACKET, None);
        assert!(p.can_send(now));
    }

    #[test]
    fn a_rate_of_zero_does_not_stop() {
        let mut p = Pacer::new(PACKET);
        let now = Instant::ZERO;
        assert!(p.can_send(now));
        p.on_send(now, PACKET, Some(Rate::ZERO));
        assert_eq!(p.next_release(now), now + MAX_GAP);
    }

    #[test]
    fn rate_of_a_window() {
        let r = rate_of_window(Bytes::new(125_000), Duration::from_millis(100), 1.2);
        assert_eq!(r, Some(Rate::from_mbps(12)));
        assert_eq!(rate_of_window(PACKET, Duration::ZERO, 2.0), None);
    }

    proptest! {
        /// However late and irregularly the sender wakes: never more than the rate and one quantum.
        #[test]
        fn never_exceeds_the_rate_by_more_than_a_quantum(
            kbps in 100..10_000_000u64,
            packets in 1..40u64,
            naps in prop::collection::vec((0..5_000_000u64, 1..100u32), 1..200),
        ) {
            let rate = Rate::from_bps(kbps * 1000);
            let quantum = PACKET * packets;
            let mut pacer = Pacer::new(quantum);
            let mut now = Instant::ZERO;
            let mut sent = Bytes::ZERO;
            for (nap, wanted) in naps {
                now += Duration::from_nanos(nap);
                for _ in 0..wanted {
                    if !pacer.can_send(now) {
                        break;
                    }
                    pacer.on_send(now, PACKET, Some(rate));
                    sent += PACKET;
                }
                let allowed = rate * (now - Instant::ZERO) + quantum + PACKET;
                prop_assert!(sent <= allowed, "{sent} > {allowed} at {now}");
            }
        }
    }
}

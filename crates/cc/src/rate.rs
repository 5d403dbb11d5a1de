//! Delivery-rate estimation, after draft-cheng-iccrg-delivery-rate-estimation-02.
//!
//! The transport owns one [`RateSampler`] per path and keeps the [`SendState`] it returns with each
//! segment in flight; controllers only see the finished [`RateSample`].
//!
//! # Order of calls
//! Sending: [`RateSampler::on_send`] for every transmission and retransmission, before the segment
//! counts as in flight; the returned state replaces the segment's earlier one.
//!
//! One incoming acknowledgement:
//! 1. [`RateSampler::set_app_limited`] if the application does not use the window (§3.4);
//! 2. [`RateSampler::on_delivered`] once for each segment that is newly acknowledged, cumulatively
//!    or selectively; a segment already reported (by an earlier SACK) is not reported again;
//! 3. [`RateSampler::on_lost`] for each segment newly marked lost;
//! 4. [`RateSampler::finish`], exactly once, even if nothing was delivered;
//! 5. the controller's calls; then new segments may be sent.
//!
//! `set_app_limited` is also called before the application's new data is queued, and before a
//! timer retransmits, when nothing waits to be sent, less than the window is in flight and no lost
//! segment waits for retransmission. Losses found by a timer are reported with `on_lost` alone.

use gargalo_units::{Bytes, Duration, Instant};

use crate::event::{RateSample, SendState};

/// Measures how fast a path delivers.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    /// C.delivered: bytes delivered so far.
    delivered: Bytes,
    /// C.delivered_time: when something was last delivered, or sent with nothing in flight.
    delivered_at: Instant,
    /// C.first_sent_time: when the newest acknowledged segment, or the first one after nothing was in flight, was sent.
    first_sent_at: Instant,
    lost: Bytes,
    /// C.app_limited: the `delivered` total that ends the bubble; zero when not limited.
    app_limited: Bytes,
    /// The most recently sent segment acknowledged by the current acknowledgement.
    newest: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    state: SendState,
    retransmission: bool,
}

impl RateSampler {
    /// A sampler that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A segment of `bytes` is sent while `in_flight` bytes are in flight without it (§3.2).
    #[inline]
    pub fn on_send(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) -> SendState {
        if in_flight.is_zero() {
            // A new flight: any delivery from here on falls into an interval that starts now.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendState {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight: in_flight + bytes,
            app_limited: !self.app_limited.is_zero(),
        }
    }

    /// A segment of `bytes`, last sent in `state`, is newly acknowledged (§3.3,
    /// `UpdateRateSample`); `retransmission` says whether that transmission repeated data.
    #[inline]
    pub fn on_delivered(
        &mut self,
        now: Instant,
        state: &SendState,
        bytes: Bytes,
        retransmission: bool,
    ) {
        self.delivered += bytes;
        self.delivered_at = now;
        let newer = match &self.newest {
            None => true,
            Some(n) => {
                // Ties happen within one flight: the later transmission is the newer.
                (state.delivered, state.sent_at) >= (n.state.delivered, n.state.sent_at)
            }
        };
        if newer {
            self.first_sent_at = state.sent_at;
            self.newest = Some(Newest {
                state: *state,
                retransmission,
            });
        }
    }

    /// `bytes` were marked lost.
    #[inline]
    pub fn on_lost(&mut self, bytes: Bytes) {
        self.lost += bytes;
    }

    /// Ends the processing of one acknowledgement (§3.3, `GenerateRateSample`).
    ///
    /// `None` when nothing was delivered, or when the interval is shorter than `min_rtt`, the least
    /// round-trip time of the path, which only an ambiguous or spurious retransmission can cause.
    #[inline]
    pub fn finish(&mut self, min_rtt: Option<Duration>) -> Option<RateSample> {
        if self.delivered > self.app_limited {
            self.app_limited = Bytes::ZERO; // the bubble is acknowledged and gone
        }
        let newest = self.newest.take()?;
        self.sample(&newest.state, newest.retransmission, min_rtt)
    }

    /// [`RateSampler::on_delivered`] and [`RateSampler::finish`] of an acknowledgement of `bytes` in segments that were
    /// sent once each; `state` is that of the last one sent.
    #[inline]
    pub fn on_acknowledged(
        &mut self,
        now: Instant,
        state: &SendState,
        bytes: Bytes,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        self.delivered += bytes;
        self.delivered_at = now;
        self.first_sent_at = state.sent_at;
        if self.delivered > self.app_limited {
            self.app_limited = Bytes::ZERO;
        }
        self.sample(state, false, min_rtt)
    }

    #[inline]
    fn sample(
        &self,
        state: &SendState,
        retransmission: bool,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let send_elapsed = state.sent_at - state.first_sent_at;
        let ack_elapsed = self.delivered_at - state.delivered_at;
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || min_rtt.is_some_and(|m| interval < m) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - state.delivered,
            lost: self.lost - state.lost,
            interval,
            send_elapsed,
            ack_elapsed,
            prior_delivered: state.delivered,
            total_delivered: self.delivered,
            tx_in_flight: state.in_flight,
            app_limited: state.app_limited,
            retransmission,
        })
    }

    /// The application does not use the window while `in_flight` bytes are in flight: segments
    /// sent until those are delivered yield samples marked `app_limited` (§3.4).
    #[inline]
    pub fn set_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited = (self.delivered + in_flight).max(Bytes::new(1));
    }

    /// Whether segments sent now count as application-limited.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        !self.app_limited.is_zero()
    }

    /// Bytes delivered so far.
    #[inline]
    pub fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// Bytes marked lost so far.
    #[inline]
    pub fn lost(&self) -> Bytes {
        self.lost
    }

    /// When something was last delivered (or, with nothing in flight since, sent).
    #[inline]
    pub fn delivered_at(&self) -> Instant {
        self.delivered_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1000);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn steady_flight_measures_the_bottleneck() {
        // One segment a millisecond, RTT 10 ms: 8 Mbit/s.
        let mut s = RateSampler::new();
        let mut states = Vec::new();
        for i in 0..40u64 {
            if i >= 10 {
                let st: SendState = states[i as usize - 10];
                s.on_delivered(ms(i), &st, MSS, false);
                let sample = s.finish(Some(Duration::from_millis(10))).unwrap();
                if i >= 20 {
                    assert_eq!(sample.delivery_rate().as_bps(), 8_000_000);
                    assert_eq!(sample.tx_in_flight, MSS * 10);
                    assert_eq!(sample.prior_delivered, st.delivered);
                }
            }
            states.push(s.on_send(ms(i), MSS, MSS * i.min(9)));
        }
        assert_eq!(s.delivered(), MSS * 30);
    }

    #[test]
    fn compressed_acks_do_not_inflate_the_rate() {
        // Ten segments sent over 9 ms arrive acknowledged in one instant (§2.3).
        let mut s = RateSampler::new();
        let st: Vec<_> = (0..10).map(|i| s.on_send(ms(i), MSS, MSS * i)).collect();
        s.on_delivered(ms(20), &st[0], MSS, false);
        s.finish(None).unwrap();
        for p in &st[1..] {
            s.on_delivered(ms(20), p, MSS, false);
        }
        let sample = s.finish(None).unwrap();
        assert_eq!(sample.delivered, MSS * 10);
        assert_eq!(sample.interval, Duration::from_millis(20));
        assert_eq!(sample.send_elapsed, Duration::from_millis(9));
    }

    #[test]
    fn a_stretch_ack_uses_the_newest_segment_in_any_order() {
        let run = |order: [usize; 3]| {
            let mut s = RateSampler::new();
            let st = [
                s.on_send(ms(0), MSS, Bytes::ZERO),
                s.on_send(ms(1), MSS, MSS),
                s.on_send(ms(2), MSS, MSS * 2),
            ];
            for i in order {
                s.on_delivered(ms(12), &st[i], MSS, i == 2);
            }
            let r = s.finish(None).unwrap();
            (r.delivered, r.interval, r.send_elapsed, r.retransmission)
        };
        assert_eq!(run([0, 1, 2]), run([2, 0, 1]));
        assert_eq!(run([0, 1, 2]).2, Duration::from_millis(2));
        assert!(run([2, 1, 0]).3);
    }

    #[test]
    fn app_limited_marks_until_the_bubble_is_delivered() {
        let mut s = RateSampler::new();
        let a = s.on_send(ms(0), MSS, Bytes::ZERO);
        s.set_app_limited(MSS);
        let b = s.on_send(ms(1), MSS, MSS);
        assert!(!a.app_limited && b.app_limited);
        s.on_delivered(ms(10), &a, MSS, false);
        assert!(!s.finish(None).unwrap().app_limited);
        assert!(s.is_app_limited(), "delivered must exceed the mark");
        s.on_delivered(ms(11), &b, MSS, false);
        assert!(s.finish(None).unwrap().app_limited);
        assert!(!s.is_app_limited());
    }

    #[test]
    fn implausibly_short_intervals_and_empty_acks_give_nothing() {
        let mut s = RateSampler::new();
        assert!(s.finish(None).is_none());
        let a = s.on_send(ms(0), MSS, Bytes::ZERO);
        s.on_delivered(ms(5), &a, MSS, true);
        assert!(s.finish(Some(Duration::from_millis(6))).is_none());
        assert!(s.finish(None).is_none(), "a sample is taken once");
        assert_eq!(s.delivered(), MSS);
    }

    #[test]
    fn loss_over_the_interval_is_counted() {
        let mut s = RateSampler::new();
        s.on_lost(MSS);
        let a = s.on_send(ms(0), MSS, Bytes::ZERO);
        s.on_lost(MSS * 3);
        s.on_delivered(ms(10), &a, MSS, false);
        assert_eq!(s.finish(None).unwrap().lost, MSS * 3);
        assert_eq!(s.lost(), MSS * 4);
    }
}

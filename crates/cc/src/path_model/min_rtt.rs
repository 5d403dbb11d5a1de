use gargalo_units::{Bytes, Duration, Instant};

use super::Round;
use crate::event::Acked;

/// The minimum round-trip time over a window, and when it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinRtt {
    window: Duration,
    value: Option<Duration>,
    seen_at: Instant,
}

impl MinRtt {
    pub(crate) fn new(window: Duration, now: Instant) -> Self {
        Self {
            window,
            value: None,
            seen_at: now,
        }
    }

    /// The connection begins: with the round trip of its handshake, if that was measured.
    pub(crate) fn start(&mut self, now: Instant, rtt: Option<Duration>) {
        *self = Self {
            value: rtt,
            seen_at: now,
            ..*self
        };
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<Duration> {
        self.value
    }

    /// Processes a sample, if there is one; returns whether the previous minimum has expired.
    #[inline]
    pub(crate) fn update(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = now > self.seen_at + self.window;
        if let Some(rtt) = rtt
            && (expired || self.value.is_none_or(|v| rtt < v))
        {
            self.value = Some(rtt);
            self.seen_at = now;
        }
        expired
    }

    /// When the minimum was seen.
    pub(crate) fn seen_at(&self) -> Instant {
        self.seen_at
    }

    /// PROBE_RTT has ended: the minimum counts as fresh.
    pub(crate) fn refresh(&mut self, now: Instant) {
        self.seen_at = now;
    }
}

/// PROBE_RTT of BBR: keeps a small window for a time and at least a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeRtt {
    /// When it may end; set once few enough bytes are in flight.
    done_at: Option<Instant>,
    round_done: bool,
    /// Segments sent while the `delivered` total was in this range were limited by PROBE_RTT:
    /// their samples count as application-limited.
    held_back: Option<(Bytes, Bytes)>,
}

impl ProbeRtt {
    pub(crate) fn enter(&mut self, delivered: Bytes) {
        *self = Self {
            held_back: Some((delivered, delivered)),
            ..Self::default()
        };
    }

    /// An acknowledgement during PROBE_RTT: waits until no more than `floor` is in flight, then holds
    /// that for `hold` and a round. Returns whether it has ended.
    pub(crate) fn on_ack(
        &mut self,
        ack: &Acked,
        delivered: Bytes,
        floor: Bytes,
        hold: Duration,
        round: &mut Round,
    ) -> bool {
        self.hold_back(delivered, ack.in_flight);
        if self.done_at.is_none() {
            if ack.in_flight <= floor {
                self.done_at = Some(ack.now + hold);
                round.restart(delivered);
            }
            return false;
        }
        self.round_done |= round.is_start();
        self.round_done && self.has_waited(ack.now)
    }

    /// Extends the range of segments held back: those sent until what is in flight is delivered.
    pub(crate) fn hold_back(&mut self, delivered: Bytes, in_flight: Bytes) {
        if let Some((_, until)) = &mut self.held_back {
            *until = delivered + in_flight;
        }
    }

    /// Whether PROBE_RTT held back a segment sent when `prior` bytes were delivered.
    #[inline]
    pub(crate) fn held_back(&self, prior: Bytes) -> bool {
        self.held_back
            .is_some_and(|(from, until)| from <= prior && prior <= until)
    }

    /// Whether the window has been held long enough.
    pub(crate) fn has_waited(&self, now: Instant) -> bool {
        self.done_at.is_some_and(|t| now > t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(n)
    }

    #[test]
    fn the_minimum_is_replaced_after_ten_seconds() {
        let ms = |n| Some(Duration::from_millis(n));
        let mut m = MinRtt::new(Duration::from_secs(10), s(0));
        assert!(!m.update(s(1), ms(40)));
        assert!(!m.update(s(11), ms(50)));
        assert_eq!(m.get(), ms(40));
        assert!(m.update(s(11) + Duration::from_nanos(1), ms(50)));
        assert_eq!(m.get(), ms(50));
        assert!(!m.update(s(12), None));
    }
}

use gargalo_units::{Duration, Instant};

/// When received data is acknowledged (RFC 9293 §3.8.6.3, RFC 5681 §4.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckPolicy {
    /// At the latest after this many segments.
    every: u32,
    /// Or after this time.
    timeout: Duration,
    /// Segments still to be acknowledged at once: in slow start the sender's window grows with each
    /// acknowledgement.
    quick: u32,
    /// Segments in order and not acknowledged yet.
    waiting: u32,
    /// One is due now.
    demanded: bool,
    /// When the timer fires; [`Instant::MAX`]: not armed.
    deadline: Instant,
}

impl AckPolicy {
    /// Acknowledges every `every`-th segment or after `timeout`, and each of the first `quick`.
    pub(crate) fn new(every: u32, timeout: Duration, quick: u32) -> Self {
        Self {
            every,
            timeout,
            quick,
            waiting: 0,
            demanded: false,
            deadline: Instant::MAX,
        }
    }

    /// A segment arrived in order.
    #[inline]
    pub(crate) fn on_in_order(&mut self, now: Instant) {
        self.waiting += 1;
        if self.quick > 0 {
            self.quick -= 1;
            self.demanded = true;
        } else if self.waiting >= self.every {
            self.demanded = true;
        } else if self.deadline == Instant::MAX {
            self.deadline = now + self.timeout;
        }
    }

    /// The next segment in order is acknowledged at once.
    pub(crate) fn quicken(&mut self) {
        self.quick = self.quick.max(1);
    }

    /// Requests an acknowledgement at once: for segments out of order, a filled hole, a FIN or a probe.
    #[inline]
    pub(crate) fn demand(&mut self) {
        self.demanded = true;
    }

    /// An acknowledgement is due.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.demanded
    }

    /// Segments wait to be acknowledged.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The timer may have fired.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.deadline <= now {
            self.demanded = true;
            self.deadline = Instant::MAX;
        }
    }

    /// A segment that carries the acknowledgement is sent.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.waiting = 0;
        self.demanded = false;
        self.deadline = Instant::MAX;
    }

    /// When the timer fires; [`Instant::MAX`]: not armed.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Instant = Instant::from_nanos(1_000);
    const DELAY: Duration = Duration::from_millis(40);

    #[test]
    fn every_second_segment_or_the_timer() {
        let mut a = AckPolicy::new(2, DELAY, 0);
        a.on_in_order(T0);
        assert!(!a.is_due() && a.is_waiting());
        assert_eq!(a.deadline(), T0 + DELAY);
        a.on_in_order(T0 + Duration::from_millis(1));
        assert!(a.is_due());
        a.on_sent();
        assert!(!a.is_due() && !a.is_waiting());
        assert_eq!(a.deadline(), Instant::MAX);
        a.on_in_order(T0);
        a.on_timeout(T0);
        assert!(!a.is_due());
        a.on_timeout(T0 + DELAY);
        assert!(a.is_due());
    }

    #[test]
    fn the_first_segments_are_acknowledged_at_once() {
        let mut a = AckPolicy::new(2, DELAY, 3);
        for _ in 0..3 {
            a.on_in_order(T0);
            assert!(a.is_due());
            a.on_sent();
        }
        a.on_in_order(T0);
        assert!(!a.is_due());
    }
}

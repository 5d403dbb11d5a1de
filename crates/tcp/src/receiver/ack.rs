use gargalo_units::{Duration, Instant};

/// The least payload of a segment that may count as full, in bytes.
const LEAST_FULL: u32 = 48;

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
    /// The size of the peer's full segments.
    full: FullSize,
    /// Segments in order and not acknowledged yet; one of several times the full size counts as several.
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
            full: FullSize::new(u32::MAX),
            waiting: 0,
            demanded: false,
            deadline: Instant::MAX,
        }
    }

    /// The handshake agreed on segments of at most `mss` bytes.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.full = FullSize::new(mss);
    }

    /// The estimated size of a full segment.
    pub(crate) fn full_size(&self) -> u32 {
        self.full.size
    }

    /// A segment of `len` bytes arrived in order; `push` says whether it ends a write of the peer (PSH).
    #[inline]
    pub(crate) fn on_in_order(&mut self, now: Instant, len: u32, push: bool) {
        self.waiting += self.full.count(len, push);
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

/// The estimated size of the peer's full segments. A driver may pass several of them as one (receive offload), and
/// they may be smaller than agreed: the path MTU is known to the peer only.
#[derive(Clone, Copy, Debug)]
struct FullSize {
    /// The agreed size.
    most: u32,
    size: u32,
    /// Length of the latest shorter segment without PSH.
    shorter: u32,
}

impl FullSize {
    fn new(mss: u32) -> Self {
        Self {
            most: mss,
            size: mss,
            shorter: 0,
        }
    }

    /// How many full segments a segment counts as, at least one.
    #[inline]
    fn count(&mut self, len: u32, push: bool) -> u32 {
        if len == self.size {
            return 1;
        }
        self.learn(len, push);
        (len / self.size).max(1)
    }

    /// Two equal segments in a row that do not end a write are full. A longer one that is not a multiple shows that
    /// full segments are longer.
    fn learn(&mut self, len: u32, push: bool) {
        if len > self.size {
            if len == self.most || !len.is_multiple_of(self.size) {
                self.size = len.min(self.most);
            }
        } else if !push {
            if len == self.shorter && len >= LEAST_FULL {
                self.size = len;
            }
            self.shorter = len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_several_times_the_full_size_counts_as_several() {
        let counts = |lens: &[(u32, bool)]| {
            let mut full = FullSize::new(1448);
            let count = |(len, push): &(u32, bool)| full.count(*len, *push);
            lens.iter().map(count).collect::<Vec<_>>()
        };
        assert_eq!(
            counts(&[(1448, false), (2896, false), (7240, true)]),
            [1, 2, 5]
        );
        assert_eq!(
            counts(&[(100, true), (2900, false), (1448, false)]),
            [1, 2, 1]
        );
        // The path carries less: learned from two equal segments, until a longer one arrives.
        let small = (536, false);
        assert_eq!(
            counts(&[small, (1072, false), small, small, (1072, false)]),
            [1, 1, 1, 1, 2]
        );
        assert_eq!(
            counts(&[small, small, (1448, false), (1072, false)]),
            [1, 1, 1, 1]
        );
        // Short messages are not full segments.
        assert_eq!(counts(&[(100, true), (100, true), (200, true)]), [1, 1, 1]);
        assert_eq!(counts(&[(1, false), (1, false), (1000, false)]), [1, 1, 1]);
    }

    const T0: Instant = Instant::from_nanos(1_000);
    const DELAY: Duration = Duration::from_millis(40);

    #[test]
    fn every_second_segment_or_the_timer() {
        let mut a = AckPolicy::new(2, DELAY, 0);
        a.on_in_order(T0, 1000, true);
        assert!(!a.is_due() && a.is_waiting());
        assert_eq!(a.deadline(), T0 + DELAY);
        a.on_in_order(T0 + Duration::from_millis(1), 1000, true);
        assert!(a.is_due());
        a.on_sent();
        assert!(!a.is_due() && !a.is_waiting());
        assert_eq!(a.deadline(), Instant::MAX);
        a.on_in_order(T0, 1000, true);
        a.on_timeout(T0);
        assert!(!a.is_due());
        a.on_timeout(T0 + DELAY);
        assert!(a.is_due());
    }

    #[test]
    fn the_first_segments_are_acknowledged_at_once() {
        let mut a = AckPolicy::new(2, DELAY, 3);
        for _ in 0..3 {
            a.on_in_order(T0, 1000, true);
            assert!(a.is_due());
            a.on_sent();
        }
        a.on_in_order(T0, 1000, true);
        assert!(!a.is_due());
    }
}

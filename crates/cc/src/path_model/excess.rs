use gargalo_units::{Bytes, Instant, Rate};

/// The excess of acknowledged bytes over bandwidth times time since acknowledgements last arrived no faster than
/// expected: the amount of aggregation on the path or at the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess {
    since: Instant,
    acked: Bytes,
}

impl Excess {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            acked: Bytes::ZERO,
        }
    }

    /// A new sampling epoch starts.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// The excess after `acked` more; an epoch ends latest with `reset_after` bytes.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        acked: Bytes,
        bandwidth: Rate,
        reset_after: Bytes,
    ) -> Bytes {
        let mut expected = super::volume(bandwidth, now - self.since);
        if self.acked <= expected || self.acked + acked >= reset_after {
            self.restart(now);
            expected = Bytes::ZERO;
        }
        self.acked += acked;
        self.acked - expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_units::Duration;

    #[test]
    fn an_epoch_ends_when_acknowledgements_come_as_expected() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut e = Excess::new(at(0));
        let mut ack = |ms, n| {
            let rate = Rate::from_mbps(8); // 1000 bytes a millisecond
            e.on_ack(at(ms), Bytes::new(n), rate, Bytes::MAX).get()
        };
        assert_eq!(ack(10, 5_000), 5_000);
        assert_eq!(ack(12, 5_000), 8_000);
        assert_eq!(ack(30, 1_000), 1_000, "10 kB in 20 ms is nothing special");
        assert_eq!(ack(31, 1_000), 1_000);
    }
}

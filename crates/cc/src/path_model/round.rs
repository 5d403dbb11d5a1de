use gargalo_units::Bytes;

/// Counts packet-timed round trips: one ends when a segment sent after the previous
/// one ended is delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    end: Bytes,
    count: u64,
    start: bool,
}

impl Round {
    /// `prior` is the delivered total when the newest delivered segment was sent, `delivered` the
    /// total now.
    #[inline]
    pub(crate) fn on_sample(&mut self, prior: Bytes, delivered: Bytes) {
        self.start = prior >= self.end;
        if self.start {
            self.end = delivered;
            self.count += 1;
        }
    }

    /// An acknowledgement without a sample starts no round.
    #[inline]
    pub(crate) fn no_sample(&mut self) {
        self.start = false;
    }

    /// A round starts now, without being counted.
    pub(crate) fn restart(&mut self, delivered: Bytes) {
        self.end = delivered;
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the latest acknowledgement started a round.
    #[inline]
    pub(crate) fn is_start(&self) -> bool {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_per_flight() {
        let mut r = Round::default();
        let b = Bytes::new;
        r.on_sample(b(0), b(1));
        assert!(r.is_start());
        // Sent while the total was 0: still the first flight.
        r.on_sample(b(0), b(2));
        assert!(!r.is_start());
        r.on_sample(b(1), b(10));
        assert!(r.is_start());
        r.on_sample(b(9), b(11));
        assert!(!r.is_start());
        r.on_sample(b(10), b(20));
        assert_eq!((r.is_start(), r.count()), (true, 3));
    }
}

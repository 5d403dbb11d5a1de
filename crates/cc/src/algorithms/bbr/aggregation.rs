use gargalo_units::{Bytes, Instant, Rate};

use crate::path_model::Excess;

/// Rounds after which one of the two maxima is renewed: the filter spans 5 to 10 rounds.
const WINDOW_ROUNDS: u32 = 5;

/// How much more than bandwidth times time is acknowledged at once (Linux since 5.1): aggregation on the path or at
/// the receiver makes acknowledgements arrive in bursts, and without additional data in flight the sender would
/// pause between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    excess: Excess,
    maxima: [Bytes; 2],
    current: usize,
    rounds: u32,
}

/// The inputs of one acknowledgement for the estimate of aggregation.
pub(super) struct Observed {
    pub(super) now: Instant,
    pub(super) acked: Bytes,
    pub(super) bandwidth: Rate,
    pub(super) cwnd: Bytes,
    pub(super) round_start: bool,
    /// Acknowledged bytes after which an epoch is too old.
    pub(super) reset_after: Bytes,
}

impl Aggregation {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            excess: Excess::new(now),
            maxima: [Bytes::ZERO; 2],
            current: 0,
            rounds: 0,
        }
    }

    /// The greatest excess of the last 5 to 10 rounds.
    #[inline]
    pub(super) fn extra_acked(&self) -> Bytes {
        self.maxima[0].max(self.maxima[1])
    }

    /// A new sampling epoch starts.
    pub(super) fn restart(&mut self, now: Instant) {
        self.excess.restart(now);
    }

    pub(super) fn on_ack(&mut self, o: &Observed) {
        if o.round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.maxima[self.current] = Bytes::ZERO;
            }
        }
        let extra = self
            .excess
            .on_ack(o.now, o.acked, o.bandwidth, o.reset_after)
            .min(o.cwnd);
        let max = &mut self.maxima[self.current];
        *max = (*max).max(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_units::Duration;

    fn observe(a: &mut Aggregation, ms: u64, acked: u64, round_start: bool) {
        a.on_ack(&Observed {
            now: Instant::ZERO + Duration::from_millis(ms),
            acked: Bytes::new(acked),
            bandwidth: Rate::from_mbps(8), // 1000 bytes a millisecond
            cwnd: Bytes::new(50_000),
            round_start,
            reset_after: Bytes::new(1 << 30),
        });
    }

    #[test]
    fn lumps_are_the_excess_over_the_expected() {
        let mut a = Aggregation::new(Instant::ZERO);
        // 10 kB every 10 ms, each in two acknowledgements.
        for t in 1..5 {
            observe(&mut a, t * 10, 5_000, false);
            observe(&mut a, t * 10, 5_000, false);
        }
        assert_eq!(a.extra_acked(), Bytes::new(10_000));
    }

    #[test]
    fn old_maxima_are_forgotten_after_ten_rounds() {
        let mut a = Aggregation::new(Instant::ZERO);
        observe(&mut a, 10, 40_000, false);
        assert_eq!(a.extra_acked(), Bytes::new(40_000));
        for t in 1..=10 {
            observe(&mut a, 1000 + t * 10, 1_000, true);
        }
        assert_eq!(a.extra_acked(), Bytes::new(1_000));
    }
}

//! Token-bucket policers (Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM
//! 2016), recognised as Linux's BBR does: two consecutive intervals of at least four rounds, both
//! ending with a loss, with at least 20 % loss and nearly the same throughput.

use gargalo_units::{Bytes, Instant, Rate};

const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
const LOSS_THRESHOLD: f64 = 0.2;
/// Two rates are consistent if they differ by at most an eighth, or by 4 kbit/s.
const CONSISTENT_RATIO: f64 = 0.125;
const CONSISTENT_RATE: Rate = Rate::from_bps(4_000);
/// Rounds for which the policed rate is used.
const USE_ROUNDS: u32 = 48;
const MIN_INTERVAL: gargalo_units::Duration = gargalo_units::Duration::from_millis(1);

/// The inputs of one acknowledgement (or timeout) for the detection of policers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) now: Instant,
    /// Total of bytes delivered on the path so far.
    pub(super) delivered: Bytes,
    /// Total of bytes marked lost so far.
    pub(super) lost: Bytes,
    /// Something was lost just now.
    pub(super) loss: bool,
    pub(super) round_start: bool,
    pub(super) app_limited: bool,
}

/// Long-term bandwidth sampling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    in_use: bool,
    rate: Option<Rate>,
    start: Option<Observed>,
    rounds: u32,
}

impl Policer {
    /// The policed rate, while it is to be used.
    #[inline]
    pub(super) fn rate(&self) -> Option<Rate> {
        if self.in_use { self.rate } else { None }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// A round has started in PROBE_BW while the policed rate is used; whether to probe again.
    pub(super) fn on_round_in_use(&mut self) -> bool {
        self.rounds += 1;
        let over = self.rounds >= USE_ROUNDS;
        if over {
            self.reset();
        }
        over
    }

    pub(super) fn on_sample(&mut self, o: &Observed) {
        if !self.sampling {
            // Until the first loss the bucket still has tokens.
            if !o.loss {
                return;
            }
            self.begin(o);
            self.sampling = true;
        }
        if o.app_limited {
            self.reset();
            return;
        }
        if o.round_start {
            self.rounds += 1;
        }
        if self.rounds < MIN_ROUNDS {
            return;
        }
        if self.rounds > MAX_ROUNDS {
            self.reset();
            return;
        }
        let Some(start) = self.start else { return };
        // An interval ends with a loss: the bucket is empty again.
        let delivered = o.delivered - start.delivered;
        let lost = o.lost - start.lost;
        let elapsed = o.now - start.now;
        if !o.loss
            || delivered.is_zero()
            || lost.as_f64() < LOSS_THRESHOLD * delivered.as_f64()
            || elapsed < MIN_INTERVAL
        {
            return;
        }
        self.end_interval(delivered / elapsed, o);
    }

    fn begin(&mut self, o: &Observed) {
        self.start = Some(*o);
        self.rounds = 0;
    }

    fn end_interval(&mut self, rate: Rate, o: &Observed) {
        if let Some(before) = self.rate {
            let difference = Rate::from_bps(rate.as_bps().abs_diff(before.as_bps()));
            if difference <= before.mul_f64(CONSISTENT_RATIO) || difference <= CONSISTENT_RATE {
                self.rate = Some((rate + before) / 2);
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = Some(rate);
        self.begin(o);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_units::Duration;

    /// Rounds of 100 ms, each delivering 100 kB and losing `lost` bytes.
    fn run(p: &mut Policer, rounds: u64, lost: u64) {
        for i in 1..=rounds {
            p.on_sample(&Observed {
                now: Instant::ZERO + Duration::from_millis(100 * i),
                delivered: Bytes::new(100_000 * i),
                lost: Bytes::new(lost * i),
                loss: lost > 0,
                round_start: true,
                app_limited: false,
            });
        }
    }

    #[test]
    fn steady_heavy_loss_is_a_policer() {
        let mut p = Policer::default();
        run(&mut p, 12, 30_000);
        assert_eq!(p.rate(), Some(Rate::from_mbps(8)));
        for _ in 1..USE_ROUNDS {
            assert!(!p.on_round_in_use());
        }
        assert!(p.on_round_in_use());
        assert_eq!(p.rate(), None);
    }

    #[test]
    fn light_loss_is_none() {
        let mut p = Policer::default();
        run(&mut p, 100, 10_000);
        assert_eq!(p.rate(), None);
    }
}

use gargalo_units::Rate;

/// Estimates whether STARTUP has filled the pipe (draft §4.3.2.2): the bandwidth has stopped growing
/// for some rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullPipe {
    growth: f64,
    rounds_needed: u32,
    baseline: Rate,
    rounds: u32,
    filled: bool,
}

impl FullPipe {
    pub(super) fn new(growth: f64, rounds_needed: u32) -> Self {
        Self {
            growth,
            rounds_needed,
            baseline: Rate::ZERO,
            rounds: 0,
            filled: false,
        }
    }

    #[inline]
    pub(super) fn is_filled(&self) -> bool {
        self.filled
    }

    /// Rounds without growth so far.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// A round that the application did not limit has ended with this bandwidth estimate.
    pub(super) fn on_round(&mut self, bandwidth: Rate) {
        if self.filled {
            return;
        }
        if bandwidth >= self.baseline.mul_f64(self.growth) {
            self.baseline = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.filled = self.rounds >= self.rounds_needed;
    }

    /// A timeout: the baseline is measured again.
    pub(super) fn on_timeout(&mut self) {
        self.baseline = Rate::ZERO;
    }

    /// A reduction was spurious: estimate again, unless the pipe is already full.
    pub(super) fn restart(&mut self) {
        self.baseline = Rate::ZERO;
        self.rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_below_a_quarter_of_growth() {
        let mut f = FullPipe::new(1.25, 3);
        for mbps in [10, 20, 40] {
            f.on_round(Rate::from_mbps(mbps));
        }
        for mbps in [49, 49] {
            f.on_round(Rate::from_mbps(mbps));
            assert!(!f.is_filled());
        }
        f.on_round(Rate::from_mbps(49));
        assert!(f.is_filled());
    }

    #[test]
    fn exactly_a_quarter_is_growth() {
        let mut f = FullPipe::new(1.25, 1);
        f.on_round(Rate::from_mbps(40));
        f.on_round(Rate::from_mbps(50));
        assert!(!f.is_filled());
    }
}

use gargalo_units::Rate;

/// Estimates whether an accelerating flow has filled the pipe (draft §5.3.1.2): the delivery rate has
/// stopped growing for some rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullBw {
    growth: f64,
    rounds_needed: u32,
    /// BBR.full_bw: a round shows growth if its delivery rate is at least `growth` times this.
    baseline: Rate,
    /// BBR.full_bw_count: rounds without growth in a row.
    rounds: u32,
    /// BBR.full_bw_now: since the last reset.
    now: bool,
    /// BBR.full_bw_reached: set once the pipe is full, and cleared only if the losses that ended STARTUP were spurious.
    reached: bool,
}

impl FullBw {
    pub(crate) fn new(growth: f64, rounds_needed: u32) -> Self {
        Self {
            growth,
            rounds_needed,
            baseline: Rate::ZERO,
            rounds: 0,
            now: false,
            reached: false,
        }
    }

    /// Whether it was reached since the last reset.
    #[inline]
    pub(crate) fn is_now(&self) -> bool {
        self.now
    }

    /// Whether it was ever reached.
    #[inline]
    pub(crate) fn is_reached(&self) -> bool {
        self.reached
    }

    /// Rounds without growth so far.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Sets it as reached, by losses or marks.
    pub(crate) fn set_reached(&mut self) {
        self.now = true;
        self.reached = true;
    }

    /// Clears it, as the losses were spurious.
    pub(crate) fn clear_reached(&mut self) {
        self.reached = false;
    }

    /// Starts again from this delivery rate.
    pub(crate) fn reset(&mut self, baseline: Rate) {
        self.baseline = baseline;
        self.rounds = 0;
        self.now = false;
    }

    /// A round that the application did not limit has ended.
    pub(crate) fn on_round(&mut self, delivery_rate: Rate) {
        if self.now {
            return;
        }
        if delivery_rate >= self.baseline.mul_f64(self.growth) {
            self.reset(delivery_rate);
            return;
        }
        self.rounds += 1;
        if self.rounds >= self.rounds_needed {
            self.set_reached();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mbps(n: u64) -> Rate {
        Rate::from_mbps(n)
    }

    #[test]
    fn three_rounds_below_a_quarter_of_growth() {
        let mut f = FullBw::new(1.25, 3);
        for rate in [10, 20, 40, 50, 62, 62] {
            f.on_round(mbps(rate));
            assert!(!f.is_now());
        }
        f.on_round(mbps(62));
        assert!(f.is_now() && f.is_reached());
    }

    #[test]
    fn a_new_search_forgets_now_but_not_ever() {
        let mut f = FullBw::new(1.25, 1);
        f.on_round(mbps(10));
        f.on_round(mbps(10));
        f.reset(mbps(10));
        assert!(!f.is_now() && f.is_reached());
        f.on_round(mbps(12));
        assert!(f.is_now());
    }
}

use gargalo_units::Instant;
use rand::Rng;
use rand_pcg::Pcg64;

/// Pacing gains of PROBE_BW's eight phases (draft §4.3.4.1): probe, drain, six at the estimate.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// PROBE_BW's gain cycle.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    index: usize,
    since: Instant,
    rng: Pcg64,
}

impl Cycle {
    pub(super) fn new(now: Instant, rng: Pcg64) -> Self {
        Self {
            index: 0,
            since: now,
            rng,
        }
    }

    /// Starts at random in any phase but the draining one (draft §4.3.4.3).
    pub(super) fn start(&mut self, now: Instant) {
        let back = (self.rng.next_u64() % 7) as usize;
        self.index = GAINS.len() - 1 - back;
        self.advance(now);
    }

    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        self.index = (self.index + 1) % GAINS.len();
        self.since = now;
    }

    #[inline]
    pub(super) fn gain(&self) -> f64 {
        GAINS[self.index]
    }

    /// Whether this is the phase that probes for more bandwidth.
    #[inline]
    pub(super) fn is_probing(&self) -> bool {
        self.index == 0
    }

    #[inline]
    pub(super) fn since(&self) -> Instant {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_anywhere_but_in_the_draining_phase() {
        let mut c = Cycle::new(Instant::ZERO, Pcg64::new(7, 7));
        let mut seen = [0; 8];
        for _ in 0..1000 {
            c.start(Instant::ZERO);
            seen[c.index] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen.iter().enumerate().all(|(i, &n)| i == 1 || n > 80));
    }

    #[test]
    fn the_mean_gain_is_one_and_draining_follows_probing() {
        assert_eq!(GAINS.iter().sum::<f64>(), 8.0);
        let mut c = Cycle::new(Instant::ZERO, Pcg64::new(7, 7));
        while !c.is_probing() {
            c.advance(Instant::ZERO);
        }
        assert_eq!(c.gain(), 1.25);
        c.advance(Instant::ZERO);
        assert_eq!(c.gain(), 0.75);
    }
}

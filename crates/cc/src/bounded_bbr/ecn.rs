use gargalo_settings::names;
use gargalo_units::Bytes;

names! {
    /// The response to Congestion Experienced marks. The draft requires a response if ECN is enabled and leaves its
    /// form open (§3.7).
    pub enum EcnResponse {
        /// As to a loss (RFC 3168): a mark ends STARTUP and probes, and at other times reduces by beta, at
        /// most once a round trip.
        Classic = "classic",
        /// By the share of marked bytes, as in Linux's BBRv3; needs a receiver that reports each mark.
        Proportional = "proportional",
        /// Marks have no effect on the model.
        None = "off",
    }
}

/// Rounds with too many marks in a row that end STARTUP (Linux).
const FULL_ROUNDS: u32 = 2;

/// The share of bytes marked, round by round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    gain: f64,
    threshold: f64,
    /// Averaged over rounds.
    alpha: f64,
    acked: Bytes,
    marked: Bytes,
    high_rounds: u32,
}

/// The marks of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// There were marks.
    pub(crate) marked: bool,
    /// The share of marks reached the threshold.
    pub(crate) too_many: bool,
    /// It has done so for enough rounds to end STARTUP.
    pub(crate) full: bool,
}

impl Marks {
    pub(crate) fn new(gain: f64, threshold: f64) -> Self {
        Self {
            gain,
            threshold,
            alpha: 1.0,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
            high_rounds: 0,
        }
    }

    #[inline]
    pub(crate) fn alpha(&self) -> f64 {
        self.alpha
    }

    #[inline]
    pub(crate) fn on_ack(&mut self, acked: Bytes, marked: Bytes) {
        self.acked += acked;
        self.marked += marked.min(acked);
    }

    /// A round has ended.
    pub(crate) fn end_round(&mut self) -> Round {
        let share = if self.acked.is_zero() {
            0.0
        } else {
            self.marked.as_f64() / self.acked.as_f64()
        };
        let marked = !self.marked.is_zero();
        self.alpha += self.gain * (share - self.alpha);
        let too_many = marked && share >= self.threshold;
        self.high_rounds = if too_many { self.high_rounds + 1 } else { 0 };
        self.acked = Bytes::ZERO;
        self.marked = Bytes::ZERO;
        Round {
            marked,
            too_many,
            full: self.high_rounds >= FULL_ROUNDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_averaged_and_two_bad_rounds_are_enough() {
        let mut m = Marks::new(1.0 / 16.0, 0.5);
        let b = Bytes::new;
        m.on_ack(b(100), b(0));
        let quiet = m.end_round();
        assert!(!quiet.marked && m.alpha() == 15.0 / 16.0);
        m.on_ack(b(50), b(50));
        m.on_ack(b(50), b(0));
        assert_eq!(
            m.end_round(),
            Round {
                marked: true,
                too_many: true,
                full: false
            }
        );
        assert!((m.alpha() - (225.0 / 256.0 + 1.0 / 32.0)).abs() < 1e-12);
        m.on_ack(b(100), b(60));
        assert!(m.end_round().full);
        m.on_ack(b(100), b(40));
        assert!(!m.end_round().too_many);
    }
}

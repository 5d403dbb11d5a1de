//! Was it really a loss? Detection of spurious recoveries and timeouts.

use gargalo_units::Instant;

/// What is remembered of a recovery to tell whether it was spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// An episode that can still be undone is open.
    open: bool,
    /// When its first retransmission was sent.
    first_resent: Option<Instant>,
    /// Retransmissions that no duplicate report has withdrawn yet; `None` once something else than a
    /// retransmission explains a delivery.
    unexplained: u32,
    resent: u32,
}

impl Undo {
    /// An episode begins.
    pub(crate) fn begin(&mut self) {
        *self = Self {
            open: true,
            ..Self::default()
        };
    }

    /// It ended, or can no longer be undone.
    pub(crate) fn end(&mut self) {
        self.open = false;
    }

    #[inline]
    pub(crate) fn on_resent(&mut self, now: Instant) {
        if self.open {
            self.first_resent.get_or_insert(now);
            self.unexplained += 1;
            self.resent += 1;
        }
    }

    /// A duplicate report: one retransmission was unnecessary. Whether all were (RFC 3708 §2).
    pub(crate) fn on_dsack(&mut self) -> bool {
        if !self.open || self.resent == 0 {
            return false;
        }
        self.unexplained = self.unexplained.saturating_sub(1);
        self.unexplained == 0
    }

    /// An acknowledgement that advanced echoes a timestamp from before the first retransmission:
    /// it is of the original (Eifel, RFC 3522 §3.2). Ticks are milliseconds.
    #[inline]
    pub(crate) fn is_eifel(&self, echo_ticks: Option<u32>) -> bool {
        match (self.open, self.first_resent, echo_ticks) {
            (true, Some(at), Some(echo)) => {
                let resent = (at.as_nanos() / 1_000_000) as u32;
                (echo.wrapping_sub(resent) as i32) < 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_units::Duration;

    #[test]
    fn eifel_compares_with_the_first_retransmission() {
        let mut u = Undo::default();
        u.begin();
        assert!(!u.is_eifel(Some(5)), "nothing was sent again");
        u.on_resent(Instant::ZERO + Duration::from_millis(100));
        u.on_resent(Instant::ZERO + Duration::from_millis(200));
        assert!(u.is_eifel(Some(99)));
        assert!(!u.is_eifel(Some(100)), "of the retransmission, perhaps");
        assert!(!u.is_eifel(None));
    }

    #[test]
    fn every_retransmission_must_be_reported_twice_received() {
        let mut u = Undo::default();
        u.begin();
        u.on_resent(Instant::ZERO);
        u.on_resent(Instant::ZERO);
        assert!(!u.on_dsack());
        assert!(u.on_dsack());
    }
}

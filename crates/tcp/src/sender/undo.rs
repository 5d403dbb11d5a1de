//! Was it really a loss? Detection of spurious recoveries and timeouts.

use gargalo_units::Instant;

/// What is remembered of a recovery to tell whether it was spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// An episode that can still be undone is open.
    open: bool,
    /// Left edge when it began: what lies below is of earlier episodes.
    marker: u64,
    /// When its first retransmission was sent.
    first_resent: Option<Instant>,
    /// Retransmissions that no duplicate report has withdrawn yet; `None` once something else than a
    /// retransmission explains a delivery.
    unexplained: u32,
    resent: u32,
}

impl Undo {
    /// An episode begins with this left edge.
    pub(crate) fn begin(&mut self, una: u64) {
        *self = Self {
            open: true,
            marker: una,
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

    /// A report that everything up to `right` came twice: one retransmission was unnecessary.
    /// Whether all were (RFC 3708 §2).
    pub(crate) fn on_dsack(&mut self, right: u64) -> bool {
        if !self.open || self.resent == 0 || right <= self.marker {
            return false;
        }
        self.unexplained = self.unexplained.saturating_sub(1);
        self.unexplained == 0
    }

    /// An acknowledgement that covers a segment that was sent again at `resent` echoes a timestamp
    /// from before that and from before the first retransmission of the episode: it is of the
    /// original (Eifel, RFC 3522 §3.2). Ticks are milliseconds.
    ///
    /// The segment's own time matters because retransmissions of an earlier episode may still be on
    /// their way when one begins.
    #[inline]
    pub(crate) fn is_eifel(&self, echo_ticks: Option<u32>, resent: Option<Instant>) -> bool {
        let before = |at: Instant, echo: u32| {
            let ticks = (at.as_nanos() / 1_000_000) as u32;
            (echo.wrapping_sub(ticks) as i32) < 0
        };
        match (self.first_resent, resent, echo_ticks) {
            (Some(first), Some(own), Some(echo)) if self.open => {
                before(first, echo) && before(own, echo)
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
        let at = |n| Instant::ZERO + Duration::from_millis(n);
        let own = Some(at(100));
        u.begin(0);
        assert!(!u.is_eifel(Some(5), None), "nothing was sent again");
        u.on_resent(at(100));
        u.on_resent(at(200));
        assert!(u.is_eifel(Some(99), own));
        assert!(
            !u.is_eifel(Some(100), own),
            "of the retransmission, perhaps"
        );
        assert!(!u.is_eifel(None, own));
        // Sent again in an earlier episode.
        assert!(!u.is_eifel(Some(60), Some(at(50))));
    }

    #[test]
    fn every_retransmission_must_be_reported_twice_received() {
        let mut u = Undo::default();
        u.begin(5000);
        u.on_resent(Instant::ZERO);
        u.on_resent(Instant::ZERO);
        assert!(!u.on_dsack(5000), "of an earlier episode");
        assert!(!u.on_dsack(6000));
        assert!(u.on_dsack(7000));
    }
}

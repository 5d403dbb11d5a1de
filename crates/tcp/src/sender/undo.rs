//! Detection of spurious recoveries and timeouts.

use gargalo_units::Instant;

/// The state of a recovery that is needed to detect whether it was spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// There is a recovery that can still be undone.
    open: bool,
    /// SND.UNA when it began: reports below it belong to earlier recoveries.
    marker: u64,
    /// When its first retransmission was sent.
    first_resent: Option<Instant>,
    /// Retransmissions that no D-SACK has reported as unnecessary yet.
    unexplained: u32,
    resent: u32,
}

impl Undo {
    /// A recovery begins at this SND.UNA.
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

    /// Processes a D-SACK up to `right`: one retransmission was unnecessary. Returns whether all were (RFC 3708
    /// §3, section unchecked).
    pub(crate) fn on_dsack(&mut self, right: u64) -> bool {
        if !self.open || self.resent == 0 || right <= self.marker {
            return false;
        }
        self.unexplained = self.unexplained.saturating_sub(1);
        self.unexplained == 0
    }

    /// Whether an acknowledgement that covers a segment retransmitted at `resent` is for the original: its echoed
    /// timestamp is older than that and than the first retransmission of the recovery (Eifel, RFC 3522 §3.2). Ticks
    /// are milliseconds.
    ///
    /// The segment's own time is needed because retransmissions of an earlier recovery may still be in flight when
    /// one begins.
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

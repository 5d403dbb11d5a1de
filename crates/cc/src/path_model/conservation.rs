use gargalo_units::Bytes;

use crate::event::Acked;

/// Packet conservation of BBR: in the first round trip of a fast recovery cwnd follows what is delivered
/// (draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.3.4, -02 §4.6.4.4; later versions have none).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Conservation {
    #[default]
    Off,
    /// Recovery was announced; the next acknowledgement starts the first round.
    Entering,
    Active,
}

impl Conservation {
    /// A fast recovery begins.
    pub(crate) fn enter(&mut self) {
        *self = Self::Entering;
    }

    /// A round trip has ended.
    #[inline]
    pub(crate) fn end_round(&mut self) {
        if *self == Self::Active {
            *self = Self::Off;
        }
    }

    /// Recovery is over, or a timeout has ended it.
    pub(crate) fn end(&mut self) {
        *self = Self::Off;
    }

    /// Whether the next acknowledgement starts the first round.
    #[inline]
    pub(crate) fn is_entering(self) -> bool {
        self == Self::Entering
    }

    /// Whether cwnd does not grow by the model.
    #[inline]
    pub(crate) fn is_active(self) -> bool {
        self == Self::Active
    }

    /// cwnd after an acknowledgement before which `lost` was marked lost.
    #[inline]
    pub(crate) fn modulate(&mut self, cwnd: Bytes, ack: &Acked, lost: Bytes, mss: Bytes) -> Bytes {
        let kept = (cwnd - lost).max(mss);
        let conserved = ack.in_flight + ack.bytes;
        match self {
            Self::Off => kept,
            Self::Active => kept.max(conserved),
            Self::Entering => {
                *self = Self::Active;
                conserved
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, ack};

    #[test]
    fn one_round_of_conservation_and_then_only_losses_count() {
        let acked = Acked {
            in_flight: MSS * 50,
            ..ack(MSS.get() * 2)
        };
        let mut c = Conservation::default();
        assert_eq!(c.modulate(MSS * 100, &acked, MSS * 3, MSS), MSS * 97);
        c.enter();
        c.end_round();
        assert!(c.is_entering() && !c.is_active());
        assert_eq!(c.modulate(MSS * 100, &acked, MSS * 3, MSS), MSS * 52);
        assert_eq!(c.modulate(MSS * 40, &acked, MSS, MSS), MSS * 52);
        assert!(c.is_active());
        c.end_round();
        assert_eq!(c.modulate(MSS * 52, &acked, MSS, MSS), MSS * 51);
        assert_eq!(c.modulate(MSS, &acked, MSS, MSS), MSS);
    }
}

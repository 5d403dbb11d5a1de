use gargalo_units::Ecn;

/// How a receiver reports Congestion Experienced marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Echo {
    /// ECN was not negotiated.
    #[default]
    Off,
    /// ECE on every segment until the sender answers with CWR (RFC 3168 §6.1.3).
    UntilCwr,
    /// ECE mirrors the mark of the segments acknowledged (RFC 8257 §3.2).
    Mirror,
}

/// The ECN state of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnReceiver {
    echo: Echo,
    ece: bool,
    marks: u64,
}

impl EcnReceiver {
    /// The state after negotiation.
    pub(crate) fn new(echo: Echo) -> Self {
        Self {
            echo,
            ..Self::default()
        }
    }

    /// A segment with data arrived. If the mark has changed and the echo follows the marks, pending data must be
    /// acknowledged now, with the former ECE (RFC 8257 §3.2).
    #[inline]
    pub(crate) fn on_data(&mut self, ecn: Ecn, cwr: bool) -> Changed {
        let marked = ecn == Ecn::Ce;
        self.marks += u64::from(marked);
        let former = self.ece;
        match self.echo {
            Echo::Off => return Changed::No,
            Echo::UntilCwr => {
                // CWR answers the marks before this segment; a new mark counts again.
                self.ece = (self.ece && !cwr) || marked;
                return Changed::No;
            }
            Echo::Mirror => self.ece = marked,
        }
        if former == marked {
            Changed::No
        } else {
            Changed::From(former)
        }
    }

    /// Whether acknowledgements carry ECE.
    #[inline]
    pub(crate) fn ece(&self) -> bool {
        self.ece
    }

    /// Congestion Experienced marks received on data.
    pub(crate) fn marks(&self) -> u64 {
        self.marks
    }
}

/// Whether the echo changed, at a receiver whose echo follows the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    No,
    /// It changed; this is the former value.
    From(bool),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ece_stays_until_cwr() {
        let mut e = EcnReceiver::new(Echo::UntilCwr);
        e.on_data(Ecn::Ect0, false);
        assert!(!e.ece());
        e.on_data(Ecn::Ce, false);
        e.on_data(Ecn::Ect0, false);
        assert!(e.ece());
        e.on_data(Ecn::Ect0, true);
        assert!(!e.ece());
        e.on_data(Ecn::Ce, true);
        assert!(e.ece());
        assert_eq!(e.marks(), 2);
    }

    #[test]
    fn a_mirror_tells_each_change() {
        let mut e = EcnReceiver::new(Echo::Mirror);
        assert_eq!(e.on_data(Ecn::Ect0, false), Changed::No);
        assert_eq!(e.on_data(Ecn::Ce, false), Changed::From(false));
        assert_eq!(e.on_data(Ecn::Ce, false), Changed::No);
        assert_eq!(e.on_data(Ecn::Ect0, false), Changed::From(true));
        assert!(!e.ece());
    }

    #[test]
    fn without_ecn_marks_are_counted_only() {
        let mut e = EcnReceiver::default();
        assert_eq!(e.on_data(Ecn::Ce, false), Changed::No);
        assert!(!e.ece());
        assert_eq!(e.marks(), 1);
    }
}

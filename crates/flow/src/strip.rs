//! A middlebox that removes Multipath TCP options from packets, as some firewalls do.

use gargalo_link::Strip;
use gargalo_wire::tcp::{Flags, Segment};

/// A middlebox at the entrance to one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Stripper {
    strip: Strip,
    /// TCP payload bytes that have passed.
    passed: u64,
}

impl Stripper {
    /// Creates the state before any packet.
    pub const fn new(strip: Strip) -> Self {
        Self { strip, passed: 0 }
    }

    /// Whether the options of the next TCP segment are removed.
    pub fn wants(&mut self, is_syn: bool, payload: u64) -> bool {
        let wanted = match self.strip {
            Strip::None => false,
            Strip::All => true,
            Strip::Syn => is_syn,
            Strip::Rest => !is_syn,
            Strip::After(bytes) => self.passed >= bytes,
        };
        self.passed += payload;
        wanted
    }

    /// Processes a segment. No-operation options replace the removed ones; a [`Segment`] does not show them, so the
    /// caller keeps the size that it had.
    pub fn pass(&mut self, segment: &mut Segment) {
        let is_syn = segment.flags.contains(Flags::SYN);
        if self.wants(is_syn, u64::from(segment.payload.len())) {
            segment.options.mptcp = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_takes_its_packets() {
        let taken = |strip| {
            let mut s = Stripper::new(strip);
            [(true, 0), (false, 900), (false, 200), (false, 0)].map(|(syn, len)| s.wants(syn, len))
        };
        assert_eq!(taken(Strip::All), [true; 4]);
        assert_eq!(taken(Strip::Syn), [true, false, false, false]);
        assert_eq!(taken(Strip::Rest), [false, true, true, true]);
        assert_eq!(taken(Strip::After(1000)), [false, false, false, true]);
        assert_eq!(taken(Strip::After(900)), [false, false, true, true]);
    }
}

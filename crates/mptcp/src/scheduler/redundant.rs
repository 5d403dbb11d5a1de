//! Redundant: every segment on every path. The path with the lowest round-trip time gets it first, the others get
//! copies as soon as they have room; segments acknowledged in the meantime are not copied.

use gargalo_cc::params::{Declared, NoParams};

use super::{Choice, Context, Entry, Scheduler};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "redundant",
    aliases: &[],
    summary: "every segment on every path: the first copy counts",
    source: "Linux MPTCP v0.9x, mptcp_redundant; Lopez et al., ISCC 2015",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Redundant))
    },
};

#[derive(Debug)]
struct Redundant;

impl Scheduler for Redundant {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        let first = context.lowest_latency();
        first.map_or(Choice::Wait, Choice::SendAll)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;

    #[test]
    fn the_fastest_first() {
        let paths = [path(0, 40, 10, 2), path(1, 20, 10, 2)];
        assert_eq!(Redundant.select(&context(&paths)), Choice::SendAll(1));
        assert_eq!(Redundant.select(&context(&[])), Choice::Wait);
    }
}

//! Passive: accepts the subflows that the peer opens, opens none and announces no address.

use gargalo_cc::params::{Declared, NoParams};

use super::{Entry, Open, PathManager, View};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "default",
    aliases: &[],
    summary: "accepts subflows, opens none",
    source: "Linux MPTCP v0.9x (\"default\")",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(Passive))
    },
};

#[derive(Debug)]
struct Passive;

impl PathManager for Passive {
    fn missing(&mut self, _view: &View<'_>) -> Vec<Open> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn nothing_is_ever_missing() {
        let given = missing(&mut Passive, &local(3), &remote(3), &[subflow(0, 0)]);
        assert_eq!(given, []);
        assert!(!Passive.announces());
    }
}

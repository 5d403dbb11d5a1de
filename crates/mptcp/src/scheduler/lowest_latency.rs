//! Lowest latency: of the paths that can send, the one with the lowest smoothed round-trip time. The default of
//! Linux's out-of-tree MPTCP.

use gargalo_cc::params::{Declared, NoParams};

use super::{Choice, Context, Entry, Scheduler};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "lowest-latency",
    aliases: &[],
    summary: "the path with the lowest smoothed round-trip time that has room",
    source: "Raiciu et al., NSDI 2012; Linux MPTCP v0.9x (\"default\")",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(LowestLatency))
    },
};

#[derive(Debug)]
struct LowestLatency;

impl Scheduler for LowestLatency {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        context.lowest_latency().map_or(Choice::Wait, Choice::Send)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;

    #[test]
    fn least_round_trip_that_has_room_is_regular_and_not_in_loss() {
        let mut paths = [path(0, 40, 10, 2), path(1, 20, 10, 2), path(2, 20, 10, 2)];
        let select = |paths: &[_]| LowestLatency.select(&context(paths));
        assert_eq!(select(&paths), Choice::Send(1), "of equals the earlier");
        paths[1].can_send = false;
        assert_eq!(select(&paths), Choice::Send(2));
        paths[2].in_loss = true;
        assert_eq!(select(&paths), Choice::Send(0));
        paths[0].backup = true;
        // The full path is regular, so the backup stays unused.
        assert_eq!(select(&paths), Choice::Wait);
        paths[1].usable = false;
        assert_eq!(select(&paths), Choice::Send(0));
        assert_eq!(select(&[]), Choice::Wait);
    }

    #[test]
    fn an_unknown_round_trip_comes_last() {
        let mut paths = [path(0, 40, 10, 2), path(1, 20, 10, 2)];
        paths[1].srtt = None;
        assert_eq!(LowestLatency.select(&context(&paths)), Choice::Send(0));
    }
}

//! Lowest time-space: the path with the lowest smoothed round-trip time per segment of room in the congestion
//! window. If no path has room, the one with the lowest smoothed round-trip time. Ties go to the later path.

use std::cmp::Reverse;

use gargalo_cc::params::{Declared, NoParams};

use super::{Choice, Context, Entry, PathView, Scheduler};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "lowest-time-space",
    aliases: &[],
    summary: "the path with the lowest round-trip time per segment of room in its window",
    source: "MPTCP schedulers, master's dissertation, UNIFEI 2017 (LTS)",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(LowestTimeSpace))
    },
};

#[derive(Debug)]
pub(super) struct LowestTimeSpace;

/// Nanoseconds per segment times 2^32; the rounding error is negligible.
fn ratio(p: &PathView) -> u128 {
    (u128::from(p.latency().as_nanos()) << 32) / p.space().max(1) as u128
}

impl Scheduler for LowestTimeSpace {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        let open = context.ready().filter(|(_, p)| p.space() > 0);
        // The last of equal elements, as `max_by_key` gives it.
        match open.max_by_key(|(_, p)| Reverse(ratio(p))) {
            Some((i, _)) => Choice::Send(i),
            None => context.lowest_latency().map_or(Choice::Wait, Choice::Send),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;

    fn select(paths: &[PathView]) -> Choice {
        LowestTimeSpace.select(&context(paths))
    }

    #[test]
    fn round_trip_and_room_are_weighed() {
        // 20 ms / 2 against 80 ms / 10.
        assert_eq!(
            select(&[path(0, 20, 10, 8), path(1, 80, 12, 2)]),
            Choice::Send(1)
        );
        // 20 ms / 4 against 80 ms / 10.
        assert_eq!(
            select(&[path(0, 20, 10, 6), path(1, 80, 12, 2)]),
            Choice::Send(0)
        );
        // Equal: 40/4 and 80/8.
        assert_eq!(
            select(&[path(0, 40, 10, 6), path(1, 80, 10, 2)]),
            Choice::Send(1)
        );
    }

    #[test]
    fn a_path_without_room_is_not_divided_by() {
        let mut paths = [path(0, 30, 10, 10), path(1, 20, 5, 9)];
        for p in &mut paths {
            p.can_send = true;
        }
        assert_eq!((paths[0].space(), paths[1].space()), (0, -4));
        assert_eq!(select(&paths), Choice::Send(1));
        let with_room = [paths[0], paths[1], path(2, 500, 2, 1)];
        assert_eq!(select(&with_room), Choice::Send(2));
    }
}

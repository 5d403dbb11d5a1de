//! Largest window space: the path whose congestion window has the most room, in segments. If none has room, the one
//! with the lowest smoothed round-trip time; ties go to the later path.

use gargalo_cc::params::{Declared, NoParams};

use super::{Choice, Context, Entry, Scheduler};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "largest-window-space",
    aliases: &[],
    summary: "the path with the most room in its congestion window",
    source: "MPTCP schedulers, master's dissertation, UNIFEI 2017 (LWS)",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(LargestWindowSpace))
    },
};

#[derive(Debug)]
pub(super) struct LargestWindowSpace;

impl Scheduler for LargestWindowSpace {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        // The last of equal elements, as `max_by_key` gives it.
        match context.ready().max_by_key(|(_, p)| p.space()) {
            Some((i, p)) if p.space() > 0 => Choice::Send(i),
            _ => context.lowest_latency().map_or(Choice::Wait, Choice::Send),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;

    fn select(paths: &[super::super::PathView]) -> Choice {
        LargestWindowSpace.select(&context(paths))
    }

    #[test]
    fn most_room_wins_and_of_equals_the_later() {
        assert_eq!(
            select(&[path(0, 10, 10, 8), path(1, 90, 10, 2)]),
            Choice::Send(1)
        );
        assert_eq!(
            select(&[path(0, 10, 12, 4), path(1, 90, 10, 2)]),
            Choice::Send(1)
        );
        assert_eq!(
            select(&[path(0, 10, 13, 4), path(1, 90, 10, 2)]),
            Choice::Send(0)
        );
    }

    #[test]
    fn without_room_anywhere_the_least_round_trip() {
        let mut paths = [path(0, 50, 10, 10), path(1, 20, 5, 9), path(2, 90, 4, 4)];
        assert_eq!(select(&paths), Choice::Wait);
        for p in &mut paths {
            p.can_send = true; // a window may be overrun by what is sent again
        }
        assert_eq!(paths[1].space(), -4);
        assert_eq!(select(&paths), Choice::Send(1));
    }
}

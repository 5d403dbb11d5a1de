//! Round robin: the paths in turn, a few segments each. By default a path whose window is full is skipped, so that
//! each carries what its congestion control allows.

use gargalo_cc::params::Declared;
use gargalo_settings::settings;

use super::{Choice, Context, Entry, Scheduler};

settings! {
    /// Parameters of [`RoundRobin`].
    struct RoundRobinParams: Copy as "RoundRobin", const {
        /// Segments in a row on one path.
        segments: u32 = 1, in 1..=1000;
        /// Skip paths without room; false: wait for the one whose turn it is.
        cwnd_limited: bool = true;
    }
}

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "round-robin",
    aliases: &[],
    summary: "the paths in turn",
    source: "Linux MPTCP v0.9x, mptcp_rr (num_segments, cwnd_limited)",
    params: RoundRobinParams::params,
    build: |params| {
        let params = RoundRobinParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(RoundRobin {
            params,
            last: None,
            row: 0,
        }))
    },
};

#[derive(Debug)]
struct RoundRobin {
    params: RoundRobinParams,
    /// The subflow that sent last.
    last: Option<u32>,
    /// How many segments in a row.
    row: u32,
}

impl Scheduler for RoundRobin {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        // A closed path is skipped: the next one is that with the next higher number.
        let last = self.last;
        let stays = |id: u32| Some(id) == last && self.row < self.params.segments;
        let turn = |id: u32| match last {
            Some(l) if stays(id) => (0, id.wrapping_sub(l)),
            Some(l) => (1, id.wrapping_sub(l).wrapping_sub(1)),
            None => (1, id),
        };
        let next = if self.params.cwnd_limited {
            context.ready().min_by_key(|(_, p)| turn(p.id))
        } else {
            let next = context.candidates().min_by_key(|(_, p)| turn(p.id));
            next.filter(|(_, p)| p.can_send)
        };
        let Some((i, p)) = next else {
            return Choice::Wait;
        };
        self.row = if Some(p.id) == last && stays(p.id) {
            self.row + 1
        } else {
            1
        };
        self.last = Some(p.id);
        Choice::Send(i)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;
    use gargalo_cc::params::Params;

    fn order(params: Params, paths: &[super::super::PathView], n: usize) -> Vec<Choice> {
        let mut s = (ENTRY.build)(&params).unwrap();
        (0..n).map(|_| s.select(&context(paths))).collect()
    }
    fn sends(indices: &[usize]) -> Vec<Choice> {
        indices.iter().map(|i| Choice::Send(*i)).collect()
    }

    #[test]
    fn each_in_turn_and_full_ones_are_skipped() {
        let mut paths = [path(3, 10, 9, 0), path(5, 90, 9, 0), path(9, 20, 9, 0)];
        assert_eq!(order(Params::new(), &paths, 5), sends(&[0, 1, 2, 0, 1]));
        paths[1].can_send = false;
        assert_eq!(order(Params::new(), &paths, 4), sends(&[0, 2, 0, 2]));
        let waits = Params::new().with("cwnd_limited", false);
        let mut expected = sends(&[0]);
        expected.extend([Choice::Wait, Choice::Wait]);
        assert_eq!(order(waits, &paths, 3), expected);
    }

    #[test]
    fn several_in_a_row() {
        let paths = [path(0, 10, 9, 0), path(1, 90, 9, 0)];
        let params = Params::new().with("segments", 2.0);
        assert_eq!(order(params, &paths, 6), sends(&[0, 0, 1, 1, 0, 0]));
    }

    #[test]
    fn a_path_that_vanished_loses_its_turn() {
        let mut s = (ENTRY.build)(&Params::new()).unwrap();
        let paths = [path(0, 10, 9, 0), path(1, 90, 9, 0), path(2, 90, 9, 0)];
        s.select(&context(&paths));
        assert_eq!(s.select(&context(&paths)), Choice::Send(1));
        assert_eq!(s.select(&context(&[paths[0], paths[2]])), Choice::Send(1));
        assert_eq!(s.select(&context(&[paths[0], paths[2]])), Choice::Send(0));
    }
}

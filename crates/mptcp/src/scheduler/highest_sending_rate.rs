//! Highest sending rate: the path with the largest cwnd / RTT by the latest round-trip sample; ties go to the later
//! path.

use gargalo_cc::params::{Declared, NoParams};

use super::{Choice, Context, Entry, PathView, Scheduler};

/// The table entry.
pub const ENTRY: Entry = Entry {
    name: "highest-sending-rate",
    aliases: &[],
    summary: "the path with the largest congestion window per round-trip time",
    source: "MPTCP schedulers, master's dissertation, UNIFEI 2017 (HSR)",
    params: NoParams::params,
    build: |params| {
        NoParams::from_params(ENTRY.name, params)?;
        Ok(Box::new(HighestSendingRate))
    },
};

#[derive(Debug)]
pub(super) struct HighestSendingRate;

/// Bytes per second times a constant; paths without a round-trip sample come last.
fn rate(p: &PathView) -> u128 {
    let rtt = p.latest_rtt.or(p.srtt).map_or(u64::MAX, |r| r.as_nanos());
    (u128::from(p.cwnd) << 64) / u128::from(rtt.max(1))
}

impl Scheduler for HighestSendingRate {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        // The last of equal elements, as `max_by_key` gives it.
        let best = context.ready().max_by_key(|(_, p)| rate(p));
        best.map_or(Choice::Wait, |(i, _)| Choice::Send(i))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, path};
    use super::*;
    use gargalo_units::Duration;

    fn select(paths: &[PathView]) -> Choice {
        HighestSendingRate.select(&context(paths))
    }

    #[test]
    fn window_per_round_trip_whatever_is_in_flight() {
        assert_eq!(
            select(&[path(0, 10, 10, 1), path(1, 50, 60, 59)]),
            Choice::Send(1)
        );
        assert_eq!(
            select(&[path(0, 10, 10, 1), path(1, 50, 50, 1)]),
            Choice::Send(1)
        );
        assert_eq!(
            select(&[path(0, 10, 10, 1), path(1, 50, 60, 60)]),
            Choice::Send(0)
        );
    }

    #[test]
    fn the_latest_sample_counts() {
        let mut paths = [path(0, 10, 10, 1), path(1, 50, 50, 1)];
        paths[0].latest_rtt = Some(Duration::from_millis(11));
        assert_eq!(select(&paths), Choice::Send(1));
        paths[1].latest_rtt = None;
        paths[1].srtt = None;
        assert_eq!(select(&paths), Choice::Send(0));
    }
}

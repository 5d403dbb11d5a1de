//! Decisions of all schedulers on the same path states.

use gargalo_cc::params::Params;
use gargalo_units::{Duration, Instant, Rate};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::testing::{MSS, context, path};
use super::{Choice, Context, PathView, SCHEDULERS};

/// The choice of a new scheduler: the index, and whether it is for all paths.
fn choice(name: &str, context: &Context<'_>) -> Option<(usize, bool)> {
    let mut s = (crate::registry::find::<dyn super::Scheduler>(name)
        .unwrap()
        .build)(&Params::new())
    .unwrap();
    match s.select(context) {
        Choice::Send(i) => Some((i, false)),
        Choice::SendAll(i) => Some((i, true)),
        Choice::Wait => None,
    }
}

/// Every scheduler chooses `expected`, except those in `others`.
#[track_caller]
fn all_choose(paths: &[PathView], expected: Option<usize>, others: &[(&str, Option<usize>)]) {
    let c = context(paths);
    for entry in SCHEDULERS {
        let other = others.iter().find(|o| o.0 == entry.name);
        let expected = other.map_or(expected, |o| o.1);
        let expected = expected.map(|i| (i, entry.name == "redundant"));
        assert_eq!(choice(entry.name, &c), expected, "{}", entry.name);
    }
}

#[test]
fn no_usable_path_means_waiting() {
    all_choose(&[], None, &[]);
    let states: [fn(&mut PathView); 3] = [
        |p| p.usable = false,
        |p| p.in_loss = true,
        |p| p.can_send = false,
    ];
    for state in states {
        let mut paths = [path(0, 20, 10, 2), path(1, 40, 10, 2)];
        paths.iter_mut().for_each(state);
        all_choose(&paths, None, &[]);
        // One path is left: it is used whatever its state. ecf and blest hold back small amounts of data for a fast
        // path that is only full; here there is much data.
        paths[1] = path(1, 40, 10, 2);
        all_choose(&paths, Some(1), &[]);
    }
}

#[test]
fn backups_carry_only_when_nothing_else_can() {
    let mut paths = [path(0, 20, 50, 2), path(1, 40, 10, 2)];
    paths[0].backup = true;
    all_choose(&paths, Some(1), &[]);
    paths[1].can_send = false; // a full path is still usable
    all_choose(&paths, None, &[]);
    paths[1].in_loss = true;
    all_choose(&paths, Some(0), &[]);
    paths[1] = path(1, 40, 10, 2);
    paths[1].backup = true;
    // Both are backups: the usual rules apply among them.
    all_choose(&paths, Some(0), &[]);
}

/// As in the listings of the dissertation, which compare with <= and >=.
#[test]
fn ties_go_to_the_earlier_path_but_to_the_later_with_the_dissertations_schedulers() {
    let names = [
        "largest-window-space",
        "lowest-time-space",
        "highest-sending-rate",
        "adaptive",
    ];
    let later = names.map(|name| (name, Some(1)));
    all_choose(&[path(0, 20, 10, 2), path(1, 20, 10, 2)], Some(0), &later);
}

#[test]
fn without_space_the_least_round_trip() {
    for (cwnd, in_flight, space) in [(10, 10, 0), (5, 9, -4), (0, 0, 0)] {
        let mut paths = [path(0, 50, cwnd, in_flight), path(1, 20, cwnd, in_flight)];
        for p in &mut paths {
            p.can_send = true; // retransmissions may exceed the window
            assert_eq!(p.space(), space);
        }
        // Round robin alternates.
        let others = [("round-robin", Some(0))];
        all_choose(&paths, Some(1), &others);
    }
}

#[test]
fn an_unknown_round_trip_comes_last() {
    let mut paths = [path(0, 90, 10, 2), path(1, 40, 10, 2)];
    paths[0].srtt = None;
    paths[0].latest_rtt = None;
    paths[0].rto = Duration::from_secs(1);
    paths[0].delivery_rate = None;
    // Schedulers by window space and by turns are not affected.
    let others = [("round-robin", Some(0))];
    all_choose(&paths, Some(1), &others);
}

fn random_path(rng: &mut Pcg64, id: u32) -> PathView {
    let time = |rng: &mut Pcg64| match rng.random_range(0..6) {
        0 => None,
        1 => Some(Duration::ZERO),
        2 => Some(Duration::MAX),
        3 => Some(Duration::from_nanos(rng.next_u64())),
        _ => Some(Duration::from_millis(rng.random_range(1..500))),
    };
    let amount = |rng: &mut Pcg64| match rng.random_range(0..6) {
        0 => 0,
        1 => u64::MAX >> rng.random_range(1..64),
        _ => rng.random_range(0..200) * MSS,
    };
    let rate = |rng: &mut Pcg64| {
        let bps = rng.next_u64() >> rng.random_range(0..64);
        [None, Some(Rate::from_bps(bps))][rng.random_range(0..2)]
    };
    PathView {
        id,
        srtt: time(rng),
        rttvar: time(rng),
        latest_rtt: time(rng),
        min_rtt: time(rng),
        rto: time(rng).unwrap_or(Duration::from_secs(1)),
        cwnd: amount(rng),
        ssthresh: [None, Some(amount(rng))][rng.random_range(0..2)],
        in_slow_start: rng.random_range(0..2) == 0,
        in_flight: amount(rng),
        queued: 0,
        held: amount(rng),
        mss: [0, 1, MSS][rng.random_range(0..3)],
        delivery_rate: rate(rng),
        pacing_rate: rate(rng),
        backup: rng.random_range(0..3) == 0,
        in_loss: rng.random_range(0..4) == 0,
        usable: rng.random_range(0..4) != 0,
        can_send: rng.random_range(0..2) == 0,
        sent_packets: amount(rng),
        lost_packets: amount(rng),
        version: 0,
    }
}

#[test]
fn whatever_the_paths_are_like_only_one_that_may_is_chosen() {
    for entry in SCHEDULERS {
        let mut rng = Pcg64::new(7, 7);
        let mut s = (entry.build)(&Params::new()).unwrap();
        let mut sent = 0;
        for i in 0..20_000u64 {
            let n = rng.random_range(0..5);
            let paths: Vec<_> = (0..n).map(|id| random_path(&mut rng, id)).collect();
            let mut c = context(&paths);
            c.now = Instant::from_nanos(i * 1_000_000);
            c.unsent = rng.next_u64() >> rng.random_range(0..64);
            c.window = rng.next_u64() >> rng.random_range(0..64);
            c.more = rng.random_range(0..2) == 0;
            c.blocked = i / 100;
            let chosen = match s.select(&c) {
                Choice::Send(i) | Choice::SendAll(i) => i,
                Choice::Wait => continue,
            };
            sent += 1;
            let may = c.ready().any(|(i, _)| i == chosen);
            assert!(may, "{}: {chosen} of {paths:?}", entry.name);
        }
        assert!(sent > 1000, "{} waits always", entry.name);
    }
}

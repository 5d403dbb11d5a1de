//! Links whose MTU is less than what a sender knows: with ICMP errors it learns, without them the path is a black hole.

use crate::support::*;
use gargalo_flow::{FlowResult, Topology, TransportSpec};
use gargalo_link::LinkConfig;
use gargalo_tcp::{Config, MtuProbing};
use gargalo_units::{Duration, Rate};

const BYTES: u64 = 200_000;

fn link() -> LinkConfig {
    pipe(Rate::from_mbps(20), Duration::from_millis(5), 100)
}

fn narrow(icmp: bool) -> LinkConfig {
    LinkConfig {
        mtu: 1000,
        icmp,
        ..link()
    }
}

/// The result of a transfer, and how many of its packets were too large.
fn transfer(
    topology: Topology,
    (from, to): (u32, u32),
    transport: TransportSpec,
) -> (FlowResult, u64) {
    let flows = vec![flow(0, from, to, transport, bulk(BYTES))];
    let mut outcome = run(topology, settings(1, 30.0), flows);
    let too_big = outcome.links.iter().map(|l| l.too_big).sum();
    (outcome.flows.remove(0), too_big)
}

#[test]
fn a_sender_of_tcp_learns_the_mtu_of_any_link_of_its_path() {
    let topologies = [
        (simple(narrow(true), link()), (0, 1)),
        // The links of hosts carry 1500 bytes: a router reports.
        (dumbbell(1, link(), narrow(true)), (0, 1)),
    ];
    for (topology, ends) in topologies {
        let (done, too_big) = transfer(topology, ends, tcp("reno", Config::modern()));
        assert_eq!(done.delivered.get(), BYTES, "{done:?}");
        assert!((1..=10).contains(&too_big), "{too_big} of the first window");
        // What was too large is split and sent again at once, with no effect on the window (RFC 1191 §6.4).
        assert_eq!(done.counters.timeouts, 0);
    }
}

#[test]
fn a_path_without_errors_is_a_black_hole_that_only_probing_leaves() {
    let hole = || simple(narrow(false), link());
    let (stuck, lost) = transfer(hole(), (0, 1), tcp("reno", Config::modern()));
    assert_eq!(stuck.delivered.get(), 0);
    assert!(lost > 10 && stuck.counters.timeouts > 3);
    let config = Config {
        mtu_probing: MtuProbing::BlackHole,
        ..Config::modern()
    };
    let hole = || {
        let narrow = LinkConfig {
            mtu: 1200,
            ..narrow(false)
        };
        simple(narrow, link())
    };
    let (found, _) = transfer(hole(), (0, 1), tcp("reno", config));
    assert_eq!(found.delivered.get(), BYTES);
}

#[test]
fn a_subflow_learns_the_mtu_of_its_own_path() {
    let mut both = simple(link(), link());
    let mut second = simple(narrow(true), link()).links.remove(0);
    second.name = "second".into();
    both.links.push(second);
    let (done, too_big) = transfer(both, (0, 1), mptcp(Config::modern()));
    assert_eq!(done.delivered.get(), BYTES, "{done:?}");
    assert!(too_big > 0);
}

//! The topology parking-lot: hosts by group and by bottleneck, their round trips, and what is refused.

use gargalo_units::Duration;

use super::slips::rejects;
use super::{bad, ok};
use crate::Scenario;

fn with(keys: &str) -> String {
    format!(
        "duration = \"1s\"\n[topology.parking-lot]\nhops = 3\nbottleneck = {{ rate = \"10Mbit/s\", delay = \"14ms\" \
         }}\n{keys}\n"
    )
}

fn names(s: &Scenario) -> String {
    let hosts = s.nodes.iter().filter(|n| n.is_host);
    hosts.map(|n| n.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// Delays of both directions of the links between a host and its router, in microseconds.
fn delays(s: &Scenario, link: &str) -> [u64; 2] {
    let link = &s.links[s.link(link).unwrap_or_else(|| panic!("no link {link}"))];
    [&link.up, &link.down].map(|c| c.delay.minimum().as_nanos() / 1000)
}

#[test]
fn without_groups_there_is_one_pair_at_the_ends() {
    let s = ok(&with("access = { delay = \"2ms\" }"));
    assert_eq!(
        names(&s),
        "left right cross0 cross1 cross2 sink0 sink1 sink2"
    );
    for link in ["left-router0", "router3-right", "router1-sink0"] {
        assert_eq!(delays(&s, link), [2000; 2]);
    }
    assert_eq!(s.document["topology"]["parking-lot"]["cross"]["pairs"], 1);
    let same = ok(&with(
        "access = { delay = \"2ms\" }\ngroups = []\ncross = { pairs = 1 }",
    ));
    assert_eq!(same.hash(), s.hash());
}

#[test]
fn each_group_has_the_round_trip_that_it_asks_for() {
    let text = with(
        "access = { rate = \"100Mbit/s\" }\ngroups = [{ pairs = 2, rtt = \"90ms\" }, { rtt = \"180ms\" }, {}]\n\
         cross = { pairs = 2, rtt = \"30ms\" }",
    );
    let s = ok(&text);
    assert_eq!(
        names(&s),
        "left0-0 left0-1 left1-0 left2-0 right0-0 right0-1 right1-0 right2-0 \
         cross0 cross1 cross2 cross3 cross4 cross5 sink0 sink1 sink2 sink3 sink4 sink5"
    );
    for (link, delay) in [
        ("left0-1-router0", 1500),
        ("router3-right0-0", 1500),
        ("left1-0-router0", 24_000),
        ("router3-right1-0", 24_000),
        ("left2-0-router0", 0),
        ("cross0-router0", 500),
        ("cross4-router1", 500),
        ("router2-sink4", 500),
        ("router3-sink5", 500),
    ] {
        assert_eq!(delays(&s, link), [delay; 2], "{link}");
        let link = &s.links[s.link(link).unwrap()];
        assert_eq!(link.up.rate.mean().as_bps(), 100_000_000);
    }
    // The flows of a group by the names of its hosts; start jitter shows their round trips.
    let flows = "start_jitter = \"1RTT\"\nflows = [\n\
        { from = \"left0-*\", to = \"right0-*\", transport.tcp = {} },\n\
        { from = \"left1-*\", to = \"right1-*\", count = 1, transport.tcp = {} },\n\
        { from = \"cross*\", to = \"sink*\", transport.tcp = {} },\n]\n";
    let s = ok(&format!("{flows}{}", text.replace("\"1s\"", "\"10s\"")));
    let trips: Vec<Duration> = s.flows.iter().map(|f| f.start_jitter).collect();
    let ms = [90, 90, 180, 30, 30, 30, 30, 30, 30];
    assert_eq!(trips, ms.map(Duration::from_millis));
    // Bottlenecks that are not alike: the rest is for the access links.
    let unlike = with("groups = [{ rtt = \"100ms\" }]\ncross = { rtt = \"40ms\" }").replace(
        "{ rate = \"10Mbit/s\", delay = \"14ms\" }",
        "[{ delay = \"10ms\" }, { delay = \"20ms\" }, { up.delay = \"5ms\", down.delay = \"15ms\" }]",
    );
    let s = ok(&unlike);
    assert_eq!(delays(&s, "left0-0-router0"), [5000; 2]);
    let cross = ["cross0-router0", "cross1-router1", "cross2-router2"];
    assert_eq!(cross.map(|l| delays(&s, l)[0]), [5000, 0, 5000]);
}

#[test]
fn the_resolved_scenario_is_the_same_again() {
    let text = with("groups = [{ pairs = 2, rtt = \"90ms\" }]\ncross = { rtt = \"30ms\" }");
    let s = ok(&text);
    let again = ok(&crate::to_toml(&s.document).unwrap());
    assert_eq!((again.hash(), &again.links), (s.hash(), &s.links));
    let lot = &s.document["topology"]["parking-lot"];
    assert_eq!(
        (&lot["groups"][0]["rtt"], &lot["groups"][0]["pairs"]),
        (&"90ms".into(), &2.into())
    );
}

#[test]
fn a_round_trip_must_fit_the_bottlenecks() {
    let refused = |keys: &str, message: &str, help: &str| {
        rejects(&with(keys), message, help, 5);
        assert_eq!(bad(&with(keys)).iter().count(), 1, "{keys}");
    };
    refused(
        "groups = [{ rtt = \"90ms\" }, { rtt = \"80ms\" }]",
        "a round trip of 80ms, but the chain of bottlenecks alone takes 84ms",
        "give 84ms or more, or lower the delay",
    );
    let path = bad(&with("groups = [{ rtt = \"90ms\" }, { rtt = \"80ms\" }]"));
    assert_eq!(
        path.iter().next().unwrap().path.as_deref(),
        Some("topology.parking-lot.groups.1.rtt")
    );
    refused(
        "cross = { rtt = \"20ms\" }",
        "a round trip of 20ms, but bottleneck0 alone takes 28ms",
        "give 28ms or more",
    );
    refused(
        "access = { delay = \"1ms\" }\ngroups = [{ rtt = \"90ms\" }]",
        "both the delay of the access links and a round trip are given",
        "leave `delay` out",
    );
    refused(
        "groups = [{ pairs = 6000 }, { pairs = 3998 }]",
        "10001 pairs of hosts in all, more than 10000",
        "see `count` of a flow",
    );
    refused(
        "cross = { pairs = 4000 }",
        "12000 pairs of hosts in all",
        "lower `pairs`",
    );
    refused("groups = [{ pairs = 0 }]", "out of range", "1");
    refused("cross = { rtt = 30 }", "30", "");
}

//! What makes repeats different runs, and how equal ones are known.

use gargalo_units::{Duration, Instant};

use super::grammar::simple;
use super::ok;
use crate::build::{self, RunOptions};
use crate::jitter;
use crate::resolved::Scenario;
use crate::streams::Streams;

const PAIR: &str = r#"
duration = "2s"
start_jitter = "1RTT"
[topology.dumbbell]
pairs = 2
access = { delay = "5ms" }
bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = { droptail = "20 packets" } }
[[flows]]
from = "left0"
to = "right0"
count = 3
transport.tcp = { congestion = "reno" }
[[flows]]
from = "left1"
to = "right1"
start = "1s"
arrivals = { rate = "5/s" }
workload.bulk = { bytes = "10kB" }
transport.tcp = { congestion = "reno" }
"#;

fn later(scenario: &Scenario) -> Vec<Duration> {
    jitter::later(scenario, &Streams::of(scenario))
}

fn found(text: &str, seed: u64) -> String {
    let mut scenario = ok(text);
    scenario.seed = seed;
    let run = build::run(&scenario, RunOptions::default()).unwrap();
    run.json["run"]["results_hash"].as_str().unwrap().to_owned()
}

#[test]
fn starts_move_against_each_other_within_a_round_trip() {
    let mut scenario = ok(PAIR);
    let rtt = Duration::from_millis(40);
    assert_eq!(scenario.flows[0].start_jitter, rtt);
    assert_eq!(
        scenario.flows[3].start_jitter,
        Duration::ZERO,
        "random anyway"
    );
    let mut seen = Vec::new();
    for seed in 0..200 {
        scenario.seed = seed;
        let by = later(&scenario);
        assert_eq!(by, later(&scenario), "the same each time");
        assert_eq!(by[..3].iter().min(), Some(&Duration::ZERO));
        assert!(by.iter().all(|d| *d < rtt));
        assert_eq!(by[3], Duration::ZERO);
        seen.push(by[0]);
    }
    // Each is first about as often as the others.
    let first = seen.iter().filter(|d| d.is_zero()).count();
    assert!((40..95).contains(&first), "{first} of 200");
    assert_eq!(scenario.flows[0].start, Instant::ZERO, "as written");
}

#[test]
fn a_flow_has_at_least_half_of_its_time() {
    let short = PAIR.replace("count = 3", "count = 2\nstop = \"10ms\"");
    assert_eq!(ok(&short).flows[0].start_jitter, Duration::from_millis(5));
    let long = PAIR.replace("1RTT", "90s");
    assert_eq!(ok(&long).flows[0].start_jitter, Duration::from_secs(1));
    let none = PAIR.replace("1RTT", "0s");
    let plain = PAIR.replace("start_jitter = \"1RTT\"\n", "");
    assert_eq!(ok(&none).hash(), ok(&plain).hash());
    assert_ne!(ok(PAIR).hash(), ok(&plain).hash());
}

#[test]
fn runs_without_chance_have_one_hash() {
    let calm = PAIR.split("[[flows]]").take(2).collect::<Vec<_>>();
    let calm = calm.join("[[flows]]");
    let still = calm.replace("1RTT", "0s");
    assert_eq!(
        found(&still, 1),
        found(&still, 2),
        "nothing depends on the seed"
    );
    assert_eq!(found(&calm, 1), found(&calm, 1));
    assert_ne!(found(&calm, 1), found(&calm, 2));
    let slower = still.replace("10Mbit/s", "11Mbit/s");
    assert_ne!(found(&still, 1), found(&slower, 1));
    // All flows later alike is no other run: a flow alone does not move.
    let alone = calm.replace("count = 3", "");
    assert_eq!(found(&alone, 1), found(&alone, 2));
}

#[test]
fn a_flow_alone_moves_where_the_network_changes_with_time() {
    let alone = PAIR.split("[[flows]]").take(2).collect::<Vec<_>>();
    let alone = alone.join("[[flows]]").replace("count = 3", "");
    let with = |rate: &str| alone.replace("rate = \"10Mbit/s\"", rate);
    for varying in [
        r#"rate = { steps = [["0s", "10Mbit/s"], ["1s", "5Mbit/s"]] }"#,
        r#"rate = "10Mbit/s", outages = [["1s", "1200ms"]]"#,
    ] {
        let text = with(varying);
        let mut scenario = ok(&text);
        let starts: Vec<_> = (0..20)
            .map(|seed| {
                scenario.seed = seed;
                later(&scenario)[0]
            })
            .collect();
        assert!(starts.iter().all(|d| *d < Duration::from_millis(40)));
        assert!(starts.iter().any(|d| *d != starts[0]), "{starts:?}");
        assert_ne!(found(&text, 1), found(&text, 2), "{varying}");
        let still = text.replace("1RTT", "0s");
        assert_eq!(found(&still, 1), found(&still, 2));
    }
    // One step from the start on is a constant rate.
    let constant = with(r#"rate = { steps = [["0s", "10Mbit/s"]] }"#);
    assert_eq!(found(&constant, 1), found(&constant, 2));
}

/// A hundred thousand copies of a flow take no more than one.
#[test]
fn the_setup_does_not_grow_with_copies() {
    let [few, many] = [3, 3000].map(|n| ok(&PAIR.replace("count = 3", &format!("count = {n}"))));
    let json: serde_json::Value = serde_json::from_str(&many.compact_json()).unwrap();
    assert_eq!(json["flows"].as_array().unwrap().len(), 2);
    let size = |s: &Scenario| s.compact_json().len();
    assert!(size(&many) < size(&few) + 10);
    let mut all = Vec::new();
    for flow in json["flows"].as_array().unwrap() {
        let mut one = flow.clone();
        let count = one.as_object_mut().unwrap().remove("count");
        let first = flow["id"].as_u64().unwrap();
        for id in first..first + count.map_or(1, |n| n.as_u64().unwrap()) {
            one["id"] = id.into();
            all.push(one.clone());
        }
    }
    assert_eq!(many.to_json()["flows"], serde_json::Value::from(all));
}

/// The hash is made of one flow, link and node at a time.
#[test]
fn the_hash_is_that_of_the_canonical_text() {
    use sha2::{Digest, Sha256};
    let udp = "\n[[flows]]\nfrom = \"left0\"\nto = \"right0\"\ntransport.udp = {}\nworkload.cbr = \
        { rate = \"1Mbit/s\" }";
    let odd = simple(
        r#"up = { delay = "3ms", loss = 0.01 }, outages = [["1s", "2s"]]"#,
        "transport.tcp = {}",
    );
    for text in [PAIR.to_owned(), format!("{PAIR}{udp}"), odd] {
        let scenario = ok(&text);
        let mut json = scenario.to_json();
        let map = json.as_object_mut().unwrap();
        map.remove("name");
        map.remove("description");
        let bytes = Sha256::digest(crate::canonical::text(&json).as_bytes());
        let expected: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(scenario.hash(), expected);
    }
}

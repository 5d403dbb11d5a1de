//! Scenarios: diagnostics or a run, never a panic; and text and tree agree.

mod grow;
mod toml_text;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use arbitrary::Unstructured;
use gargalo_scenario::{Diagnostics, Names, Origin, Scenario, build, parse, parse_json};
use gargalo_units::Bytes;
use serde_json::Value;

/// A run is stopped after this many events: fuzzing needs many short runs.
const EVENTS: u64 = 100_000;
/// Memory limit of a run: a scenario may ask for any number of samples.
const MEMORY: Bytes = Bytes::new(256 << 20);
/// Most diagnostics that are reported.
const MOST_TOLD: usize = 50;
/// Longest diagnostic.
const LONGEST_REPORT: usize = 1 << 20;

/// Scenarios from which inputs are derived.
pub(crate) const EXAMPLES: &[&str] = &[
    include_str!("../../../../examples/cubic-vs-bbr.toml"),
    include_str!("../../../../examples/graph.toml"),
    include_str!("../../../../examples/l4s.toml"),
    include_str!("../../../../examples/lossy-wifi.toml"),
    include_str!("../../../../examples/media.toml"),
    include_str!("../../../../examples/mptcp.toml"),
    include_str!("../../../../examples/page-load.toml"),
    include_str!("../../../../examples/parking-lot.toml"),
    include_str!("../../../../examples/quic.toml"),
    include_str!("../../../../examples/request.toml"),
    include_str!("../../../../examples/background.toml"),
    include_str!("../../../../examples/lab-mixed.toml"),
];

/// Words of the scenario language.
pub(crate) const WORDS: &[&str] = &[
    "[[flows]]\n",
    "[topology.dumbbell]\n",
    "[topology.graph]\n",
    "duration = \"1s\"\n",
    "from = \"left*\"\n",
    "transport.quic = {}\n",
    "transport.mptcp = {}\n",
    "workload.bulk = { bytes = \"10kB\" }\n",
    "{ steps = [[\"0s\", \"1Mbit/s\"]] }",
    "\"unlimited\"",
    "\"1BDP\"",
    "\"-1ms\"",
    "\"1e300s\"",
    "\"99999999999Gbit/s\"",
    "18446744073709551616",
    "[[[[[[[[",
    "{ a = ",
    "'''",
    "\\u0000",
];

/// Checks a tree: generated from the schema, or an example with parts generated again.
pub(crate) fn tree(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let Ok(mut tree) = grow::scenario(&mut u) else {
        return;
    };
    grow::bound(&mut tree);
    let overrides = grow::overrides(&mut u, &tree).unwrap_or_default();
    let by_tree = parse_json(&tree, &Origin::default(), &overrides, &Names::default());
    if !tree.is_object() {
        return; // no text can express it
    }
    let text = toml_text::write(&tree);
    let by_text = parse(&text, &Origin::default(), &overrides);
    match (by_tree, by_text) {
        (Ok(a), Ok(b)) => {
            assert_eq!(a, b, "tree and text differ:\n{text}");
            same(&a, &b);
            if overrides.is_empty() {
                run(&a);
            }
        }
        (Err(a), Err(b)) => {
            report(&a);
            report(&b);
            // Further ones are not reported.
            if a.len().max(b.len()) < MOST_TOLD {
                assert_eq!(messages(&a), messages(&b), "of tree and text:\n{text}");
            }
        }
        (a, b) => panic!("tree: {:?}\ntext: {:?}\n{text}", a.map(drop), b.map(drop)),
    }
}

/// Checks any text.
pub(crate) fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let parsed = parse(&text, &Origin::default(), &[]);
    match &parsed {
        Ok(s) => match parse(&text, &Origin::default(), &[]) {
            Ok(again) => same(s, &again),
            Err(e) => panic!("it was accepted before: {}", e.render(false)),
        },
        Err(e) => report(e),
    }
    // If it is TOML, it is shortened to something that can run.
    let Ok(mut tree) = toml::from_str::<Value>(&text) else {
        return;
    };
    grow::bound(&mut tree);
    match parse_json(&tree, &Origin::default(), &[], &Names::default()) {
        Ok(s) => run(&s),
        Err(e) => report(&e),
    }
}

fn same(a: &Scenario, b: &Scenario) {
    let text = a.canonical_json();
    assert_eq!(text, b.canonical_json());
    assert_eq!(a.hash(), b.hash());
    let read: Value = serde_json::from_str(&text).expect("the canonical text is JSON");
    let keys = |v: &Value| {
        v.as_object()
            .map(|m| m.keys().cloned().collect::<BTreeSet<_>>())
    };
    assert_eq!(keys(&read), keys(&a.to_json()));
}

/// The messages without positions, which a tree does not have.
fn messages(e: &Diagnostics) -> BTreeSet<(String, Option<String>)> {
    e.iter()
        .map(|d| (d.message.clone(), d.help.clone()))
        .collect()
}

fn report(e: &Diagnostics) {
    assert!(!e.is_empty());
    for color in [false, true] {
        let text = e.render(color);
        assert!(!text.is_empty() && text.len() < LONGEST_REPORT);
    }
}

fn run(scenario: &Scenario) {
    let options = build::RunOptions {
        progress: Some(Box::new(|p| {
            assert!(p.now <= p.end, "{} of {}", p.now, p.end);
            match p.events < EVENTS {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })),
        memory_limit: Some(MEMORY),
        ..build::RunOptions::default()
    };
    match build::run(scenario, options) {
        Ok(outcome) => {
            let text = outcome.json.to_string();
            let read: Value = serde_json::from_str(&text).expect("the outcome is JSON");
            assert!(read["summary"].is_object(), "{text}");
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}

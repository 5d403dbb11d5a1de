//! Tests of the whole crate: the grammar, the diagnostics, the examples.

mod capabilities;
mod document;
mod expect;
mod grammar;
#[cfg(target_os = "linux")]
mod kernel;
mod media_frames;
mod memory;
mod mptcp;
mod parking_lot;
mod pings;
mod places;
mod quic;
mod repeats;
mod requests;
mod slips;
mod sources;

use std::path::Path;

use serde_json::Value as Json;

use crate::build::{Outcome, RunOptions, run};
use crate::{Diagnostics, Origin, Scenario, parse};

/// A workload over UDP over a link of 10 ms each way, of 8 Mbit/s: a microsecond a byte.
fn over_udp(head: &str, link: &str, flow: &str, workload: &str) -> String {
    format!(
        r#"duration = "5s"
{head}
[topology.simple]
link = {{ rate = "8Mbit/s", delay = "10ms"{link} }}
[[flows]]
from = "client"
to = "server"
transport.udp = {{}}
{workload}
{flow}
"#
    )
}

fn results(text: &str) -> Outcome {
    run(&ok(text), RunOptions::default()).unwrap()
}

fn near(value: &Json, seconds: f64) -> bool {
    (value.as_f64().unwrap() - seconds).abs() < 1e-9
}

#[track_caller]
fn ok(text: &str) -> Scenario {
    match set(text, &[]) {
        Ok(s) => s,
        Err(e) => panic!("{}{text}", e.render(false)),
    }
}

#[track_caller]
fn bad(text: &str) -> Diagnostics {
    match set(text, &[]) {
        Ok(_) => panic!("accepted: {text}"),
        Err(e) => e,
    }
}

fn set(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, Diagnostics> {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    parse(text, &Origin::default(), &overrides)
}

#[test]
fn examples_parse() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("\n[axes]") {
            continue; // a sweep of scenarios, for Python
        }
        found += 1;
        let origin = Origin { path: Some(path) };
        // Traces are generated, and need not be there when the tests run.
        match parse(&text, &origin, &[]) {
            Ok(s) => assert!(
                !s.flows.is_empty() && !s.description.is_empty(),
                "{}",
                s.name
            ),
            Err(e) => assert!(
                e.iter().all(|d| d.message.contains("cannot be read")),
                "{}",
                e.render(false)
            ),
        }
    }
    assert!(found >= 6, "{found} examples");
}

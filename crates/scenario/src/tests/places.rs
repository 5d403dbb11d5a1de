//! Diagnostics are values: their path, line and column point at the key that is wrong.

use std::ops::Range;

use super::grammar::{DUMBBELL, simple};
use super::{bad, set};
use crate::diagnostic::{Diagnostic, Diagnostics, Origin, Place};
use crate::tree::{Node, Value, joined};

/// Line and column, from 1, of a byte of a text.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.split('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default();
    (line, column.chars().count() + 1)
}

/// A key of a scenario: its path, where it was written, where its value was, and that value.
type Key = (String, Range<usize>, Range<usize>, Value);

fn keys(node: &Node, path: &str, out: &mut Vec<Key>) {
    match &node.value {
        Value::Table(entries) => {
            for e in entries {
                let path = joined(path, &e.key);
                if let (Place::File(key), Place::File(value)) = (&e.place, &e.value.place) {
                    let entry = (path.clone(), key.clone(), value.clone());
                    out.push((entry.0, entry.1, entry.2, e.value.value.clone()));
                }
                keys(&e.value, &path, out);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                keys(item, &joined(path, &i.to_string()), out);
            }
        }
        _ => {}
    }
}

/// Whether the position of a diagnostic is that of its path: the key, its value, or where the key is
/// missing, the table or list around it.
pub(super) fn points_at_its_path(text: &str, d: &Diagnostic) -> bool {
    let mut nothing = Diagnostics::new(&Origin::default(), text, &[]);
    let (Some(path), Some(tree)) = (&d.path, Node::from_toml(text, &mut nothing)) else {
        return true;
    };
    let mut all = Vec::new();
    keys(&tree, "", &mut all);
    let mut fitting: Vec<usize> = Vec::new();
    for (known, key, value, _) in &all {
        if known == path {
            fitting.extend([key.start, value.start]);
        }
    }
    // Items of lists, and tables around a key that is missing.
    if let Place::File(span) = tree.place(path) {
        fitting.push(span.start);
    }
    let here = (d.line, d.column);
    fitting.iter().any(|at| position(text, *at) == here)
}

#[track_caller]
fn points_at(text: &str, path: &str, at: usize) {
    let errors = bad(text);
    let here = position(text, at);
    assert!(
        errors
            .iter()
            .any(|d| d.path.as_deref() == Some(path) && (d.line, d.column) == here),
        "nothing at {path} {here:?} in {errors:#?}\n{text}"
    );
    for d in errors.iter() {
        assert!(points_at_its_path(text, d), "{d:#?}\n{text}");
    }
}

/// Scenarios with all kinds of tables: headers, inline, dotted keys, lists of lists.
fn texts() -> Vec<String> {
    let mut texts = vec![DUMBBELL.to_owned(), DUMBBELL.replace('\n', "\r\n")];
    let graph = r#"# Stra\u{df}e: \u{1f6a6}
description = "caf\u{e9} \u{1f6a6}"
duration = "9s"
[topology.graph]
nodes = ["a", "b"]
links = [{ from = "a", to = "b", rate = { steps = [["0s", "1Mbit/s"], ["5s", "2Mbit/s"]] }, queue = { codel = { target = "5ms" } }, delay = "3ms", loss.independent = 0.1 }]
[record]
interval = "1s"
captures = ["a-b"]
[[flows]]
from = "a"
to = "b"
start = "1s"
count = 2
transport.tcp.congestion.cubic = { beta = 0.8 }
workload.request = { size = "10kB", objects = 3 }
[[flows]]
from = "b"
to = "a"
transport.udp = {}
[flows.workload]
cbr.rate = "1Mbit/s"
cbr.packet_size = "100B"
"#;
    texts.push(
        graph
            .replace(r"\u{df}", "\u{df}")
            .replace(r"\u{e9}", "\u{e9}")
            .replace(r"\u{1f6a6}", "\u{1f6a6}"),
    );
    let flow = "transport.mptcp = { scheduler = \"round-robin\", path_manager = { ndiffports = { subflows = 2 } } }";
    texts.push(simple("rate = \"5Mbit/s\", queue = { red = {} }", flow));
    for text in &texts {
        super::ok(text);
    }
    texts
}

#[test]
fn a_misspelt_key_is_pointed_at() {
    let mut tried = 0;
    for text in texts() {
        for (path, key, _, _) in all(&text) {
            let mut slip = text.clone();
            slip.replace_range(key.clone(), "zqxj");
            let wrong = match path.rsplit_once('.') {
                Some((table, _)) => format!("{table}.zqxj"),
                None => "zqxj".to_owned(),
            };
            points_at(&slip, &wrong, key.start);
            tried += 1;
        }
    }
    assert!(tried > 80, "{tried}");
}

fn all(text: &str) -> Vec<Key> {
    let mut nothing = Diagnostics::new(&Origin::default(), text, &[]);
    let tree = Node::from_toml(text, &mut nothing).unwrap();
    let mut found = Vec::new();
    keys(&tree, "", &mut found);
    found
}

#[test]
fn a_value_of_a_wrong_kind_or_of_no_sense_is_pointed_at() {
    let (mut kinds, mut senses) = (0, 0);
    for text in texts() {
        for (path, _, value, kind) in all(&text) {
            let is_written_here = match kind {
                Value::Table(_) => text[value.start..].starts_with('{'),
                Value::Array(ref items) => {
                    !matches!(items[0].value, Value::Table(_))
                        || text[value.start..].starts_with("[{")
                }
                _ => true,
            };
            if !is_written_here {
                continue;
            }
            let mut slip = text.clone();
            slip.replace_range(value.clone(), "1979-05-27");
            points_at(&slip, &path, value.start);
            kinds += 1;
            // Some texts may be anything; where they may not, the place is right.
            let mut slip = text.clone();
            slip.replace_range(value.clone(), "\"zqxj\"");
            if set(&slip, &[]).is_err() {
                points_at(&slip, &path, value.start);
                senses += 1;
            }
        }
    }
    assert!(kinds > 60 && senses > 50, "{kinds} {senses}");
}

#[test]
fn what_is_missing_has_the_path_that_it_would_have() {
    for (line, path) in [
        ("duration = \"60s\"", "duration"),
        ("from = \"left0\"", "flows.0.from"),
    ] {
        let text = DUMBBELL.replacen(line, "", 1);
        assert_ne!(text, DUMBBELL);
        let errors = bad(&text);
        assert_eq!(errors.len(), 1);
        for d in errors.iter() {
            assert_eq!(d.path.as_deref(), Some(path));
            assert!(points_at_its_path(&text, d), "{d:#?}");
        }
    }
    // In a list, and beside another of which there may be only one.
    let steps = simple(
        "rate = { steps = [[\"0s\", \"1Mbit/s\"], [\"5s\"]] }",
        "transport.tcp = {}",
    );
    points_at(
        &steps,
        "topology.simple.link.rate.steps.1",
        steps.find("[\"5s\"]").unwrap(),
    );
    let both = simple("rate = \"1Mbit/s\"", "transport = { tcp = {}, udp = {} }");
    points_at(&both, "flows.0.transport.udp", both.find("udp").unwrap());
    let odd = simple("\"a.b\" = 1", "transport.tcp = {}");
    points_at(
        &odd,
        "topology.simple.link.\"a.b\"",
        odd.find("\"a.b\"").unwrap(),
    );
}

#[test]
fn overrides_have_a_path_and_no_line() {
    for (key, value, path) in [
        ("duration", "5", "duration"),
        (
            "topology.dumbbell",
            "{ pairs = 2, botleneck = {} }",
            "topology.dumbbell.botleneck",
        ),
        ("flows.*.start", "7", "flows.0.start"),
        ("flows.7.start", "1s", "flows.7.start"),
        ("flows.1.from", "left9", "flows.1.from"),
    ] {
        let errors = set(DUMBBELL, &[(key, value)]).unwrap_err();
        let d = errors.iter().next().unwrap();
        assert_eq!(d.path.as_deref(), Some(path), "{d:#?}");
        assert_eq!((d.line, d.column), (0, 0), "{d:#?}");
        assert_eq!(d.file, format!("--set {key}={value}"));
    }
    let errors = set(DUMBBELL, &[("flows.*.start", "7")]).unwrap_err();
    assert_eq!(errors.len(), 1, "one mistake is reported once");
    let json = serde_json::json!({ "duration": "1s", "flows": [{ "from": 1 }] });
    let errors =
        crate::parse_json(&json, &Origin::default(), &[], &Default::default()).unwrap_err();
    let paths: Vec<_> = errors.iter().map(|d| d.path.as_deref()).collect();
    assert!(paths.contains(&Some("flows.0.from")), "{paths:?}");
    assert_eq!(bad("duration = ").iter().next().unwrap().path, None);
}

//! What each world can do of what a scenario can ask for: one table, which is asked while a scenario is resolved for
//! the world that is to run it.
//!
//! What no row of [`LIMITS`] names, every world does. When a world learns something, its row goes.

use gargalo_settings::{Json, names};
use gargalo_workload::Workload;

use crate::diagnostic::{Diagnostics, Origin, Place};
use crate::model::{Topology, Transport};
use crate::schema;
use crate::tree::{Node, Value, joined};

names! {
    /// Where a scenario runs.
    pub enum World {
        /// In virtual time.
        Sim = "sim",
        /// In real time on this machine.
        Lab = "lab",
    }
}

/// Something that one world does and the other does not.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The key that asks for it; `*` stands for any item of a list and any name.
    pub key: &'static str,
    /// The value, as JSON, with which the key asks for nothing; empty: it always asks.
    pub idle: &'static str,
    /// A value that asks for it, as a scenario writes it.
    pub example: &'static str,
    /// The world that does not do it.
    pub lacking: World,
    /// Why not, in a sentence without full stop.
    pub reason: &'static str,
}

/// Only the simulator does it: key, value that asks for nothing, example, reason.
const fn sim(
    key: &'static str,
    idle: &'static str,
    example: &'static str,
    reason: &'static str,
) -> Limit {
    let lacking = World::Lab;
    Limit {
        key,
        idle,
        example,
        lacking,
        reason,
    }
}

/// Only the lab does it.
const fn lab(
    key: &'static str,
    idle: &'static str,
    example: &'static str,
    reason: &'static str,
) -> Limit {
    let lacking = World::Sim;
    Limit {
        key,
        idle,
        example,
        lacking,
        reason,
    }
}

/// The table: one row, one line.
#[rustfmt::skip]
pub const LIMITS: &[Limit] = &[
    sim("flows.*.transport.quic", "", "{}", "QUIC runs in the simulator only"),
    sim("flows.*.transport.tcp.receiver", "\"honest\"", "\"optimistic\"", "misbehaving receivers are in the simulator only"),
    sim("flows.*.transport.mptcp.gateways", "[]", "[\"router\"]", "packets choose their gateway in the simulator only"),
    sim("flows.*.workload.web", "", "{ load = \"10%\" }", "flows that a source makes at random are in the simulator only"),
    sim("flows.*.workload.ftp", "", "{ load = \"10%\" }", "flows that a source makes at random are in the simulator only"),
    sim("flows.*.workload.mix", "", "{ load = \"10%\" }", "flows that a source makes at random are in the simulator only"),
    sim("flows.*.arrivals", "", "{ rate = \"10/s\" }", "flows that arrive at random are in the simulator only"),
    sim("flows.*.record", "\"full\"", "\"summary\"", "totals without rows are kept in the simulator only"),
    sim("record.gauges", "false", "true", "quantities of congestion controls are recorded in the simulator only"),
    sim("record.decisions", "false", "true", "decisions of schedulers are recorded in the simulator only"),
    sim("record.qlog", "false", "true", "traces of QUIC are written in the simulator only"),
    lab("hosts.*.stack", "\"gargalo\"", "\"kernel\"", "the stack of the kernel is in the lab only"),
    lab("lab.stack", "\"gargalo\"", "\"kernel\"", "the stack of the kernel is in the lab only"),
    lab("commands", "[]", "[{ host = \"client\", run = \"true\" }]", "programs run in the lab only"),
];

/// Something that a scenario can ask for, and who does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The key, as in [`Limit::key`].
    pub key: String,
    /// A value that asks for it, as a scenario writes it; empty: any.
    pub example: &'static str,
    /// Why the simulator does not; `None`: it does.
    pub sim: Option<&'static str>,
    /// Why the lab does not; `None`: it does.
    pub lab: Option<&'static str>,
}

/// Topologies, transports, workloads, what can be recorded, and every key that one world lacks.
pub fn capabilities() -> Vec<Capability> {
    let kinds = |key: &str, kinds: &[&str]| -> Vec<String> {
        kinds.iter().map(|kind| format!("{key}.{kind}")).collect()
    };
    let mut keys = kinds("topology", Topology::KINDS);
    keys.extend(kinds("flows.*.transport", Transport::KINDS));
    keys.extend(kinds("flows.*.workload", Workload::KINDS));
    let recorded = schema::internal().pointer("/$defs/Record/properties");
    let recorded = recorded.and_then(Json::as_object).into_iter().flatten();
    keys.extend(recorded.map(|(key, _)| format!("record.{key}")));
    for limit in LIMITS {
        if keys.iter().all(|key| key != limit.key) {
            // Beside what it belongs to.
            let parent = limit.key.rsplit_once('.').map_or("", |(parent, _)| parent);
            let after = keys.iter().rposition(|key| key == parent);
            keys.insert(after.map_or(keys.len(), |i| i + 1), limit.key.to_owned());
        }
    }
    let row = |key: String| {
        let why_not = |world: World| {
            let mut all = LIMITS.iter();
            all.find(|l| l.key == key && l.lacking == world)
        };
        let (sim, lab) = (why_not(World::Sim), why_not(World::Lab));
        Capability {
            example: sim.or(lab).map_or("", |l| l.example),
            sim: sim.map(|l| l.reason),
            lab: lab.map(|l| l.reason),
            key,
        }
    };
    keys.into_iter().map(row).collect()
}

/// Notes what this world lacks of what a scenario asks for, each at the first key that asks for it.
pub(crate) fn ask(tree: &Node, world: World, errors: &mut Diagnostics) {
    for limit in LIMITS.iter().filter(|l| l.lacking == world) {
        let parts: Vec<&str> = limit.key.split('.').collect();
        let Some((path, place)) = first(tree, &parts, "", &tree.place, limit.idle) else {
            continue;
        };
        let (here, there) = match world {
            World::Sim => ("the simulator", World::Lab),
            World::Lab => ("the lab", World::Sim),
        };
        let help = format!("leave it out, or run it with --world {}", there.name());
        let label = format!("not in {here}");
        errors.add(place, &path, label, limit.reason, Some(help));
    }
}

/// The path of the first key that fits and asks for something, and where the key was written.
fn first(
    node: &Node,
    parts: &[&str],
    path: &str,
    place: &Place,
    idle: &str,
) -> Option<(String, Place)> {
    let Some((part, rest)) = parts.split_first() else {
        let is_idle = serde_json::from_str::<Json>(idle).is_ok_and(|idle| idle == node.to_json());
        return (!is_idle).then(|| (path.to_owned(), place.clone()));
    };
    match &node.value {
        Value::Table(entries) => {
            let mut fitting = entries.iter().filter(|e| *part == "*" || e.key == *part);
            fitting.find_map(|e| first(&e.value, rest, &joined(path, &e.key), &e.place, idle))
        }
        Value::Array(items) if *part == "*" => {
            let mut items = items.iter().enumerate();
            items.find_map(|(i, n)| first(n, rest, &joined(path, &i.to_string()), &n.place, idle))
        }
        _ => None,
    }
}

/// What this world lacks of what a scenario asks for, in its own words as JSON.
///
/// # Errors
/// Everything that it lacks; the diagnostics have no lines.
pub fn check(document: &Json, world: World) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::new(&Origin::default(), "", &[]);
    if let Some(tree) = Node::from_json(document) {
        ask(&tree, world, &mut errors);
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors),
    }
}

/// Likewise of a text that need not be right otherwise: a sentence each.
pub fn missing(text: &str, world: World) -> Vec<String> {
    let mut errors = Diagnostics::new(&Origin::default(), text, &[]);
    if let Some(tree) = Node::from_toml(text, &mut errors) {
        ask(&tree, world, &mut errors);
    }
    errors.sort();
    errors.iter().map(|d| d.message.clone()).collect()
}

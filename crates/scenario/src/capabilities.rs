//! The features that each world supports: one table, which is checked while a scenario is resolved for the world that
//! will run it.
//!
//! Every world supports what no row of [`LIMITS`] names. When a world learns a feature, its row is removed.

use gargalo_settings::Json;
use gargalo_workload::Workload;

use crate::diagnostic::{Diagnostics, Origin, Place};
use crate::model::{Topology, Transport};
use crate::resolved::Scenario;
use crate::schema;
use crate::tree::{Node, Value, joined};
use crate::world::World;

/// A feature that one world supports and the other does not.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The key that requests it; `*` stands for any item of a list and any name.
    pub key: &'static str,
    /// The value, as JSON, with which the key requests nothing; empty: it always requests the feature.
    pub idle: &'static str,
    /// An example that requests it, as a scenario writes it: below a flow if the key is one of flows.
    pub example: &'static str,
    /// The world that does not support it.
    pub lacking: World,
    /// The reason, a sentence without full stop.
    pub reason: &'static str,
}

/// A feature of the simulator only: key, value that requests nothing, example, reason.
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

/// A feature of the lab only.
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

/// The table: one row, one line or two.
#[rustfmt::skip]
pub const LIMITS: &[Limit] = &[
    sim("flows.*.transport.tcp.receiver", "\"honest\"", "transport.tcp.receiver = \"optimistic\"",
        "misbehaving receivers are in the simulator only"),
    sim("flows.*.transport.mptcp.gateways", "[]", "transport.mptcp.gateways = [\"router\"]",
        "packets choose their gateway in the simulator only"),
    lab("hosts.*.stack", "\"gargalo\"", "hosts.client.stack = \"kernel\"",
        "the stack of the kernel is in the lab only"),
    lab("lab.stack", "\"gargalo\"", "lab.stack = \"kernel\"", "the stack of the kernel is in the lab only"),
    lab("commands", "[]", "commands = [{ host = \"client\", run = \"true\" }]", "programs run in the lab only"),
];

/// A feature that a scenario can request, and the worlds that support it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The key, as in [`Limit::key`].
    pub key: String,
    /// An example that requests it, as a scenario writes it (below a flow if the key is one of flows); empty if both
    /// worlds support it.
    pub example: &'static str,
    /// Why the simulator does not support it; `None`: it does.
    pub sim: Option<&'static str>,
    /// Why the lab does not support it; `None`: it does.
    pub lab: Option<&'static str>,
}

/// Returns topologies, transports, workloads, records, and every key that one world does not support.
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
            // Next to the entry that it belongs to.
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

/// Reports every feature that this world does not support, each at the first key that requests it. `document` is the
/// scenario with every default, or the part that is known; `text` gives the positions.
pub(crate) fn ask(document: &Json, world: World, text: &Node, errors: &mut Diagnostics) {
    for limit in LIMITS.iter().filter(|l| l.lacking == world) {
        let parts: Vec<&str> = limit.key.split('.').collect();
        let mut path = Vec::new();
        if !asks(document, &parts, limit.idle, &mut path) {
            continue;
        }
        let (here, there) = match world {
            World::Sim => ("the simulator", World::Lab),
            World::Lab => ("the lab", World::Sim),
        };
        let help = format!("leave it out, or run it with --world {}", there.name());
        let label = format!("not in {here}");
        let place = place(text, &path);
        let path = path
            .iter()
            .fold(String::new(), |path, key| joined(&path, key));
        errors.add(place, &path, label, limit.reason, Some(help));
    }
}

/// Whether a value requests the feature of a key; `path` receives the path of the first key that does.
fn asks(value: &Json, parts: &[&str], idle: &str, path: &mut Vec<String>) -> bool {
    let Some((part, rest)) = parts.split_first() else {
        let idle = serde_json::from_str::<Json>(idle);
        return !value.is_null() && idle.ok().as_ref() != Some(value);
    };
    let inside: Vec<(String, &Json)> = match value {
        Json::Object(table) if *part == "*" => table.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Json::Object(table) => table
            .get_key_value(*part)
            .map(|(k, v)| (k.clone(), v))
            .into_iter()
            .collect(),
        Json::Array(items) if *part == "*" => {
            let items = items.iter().enumerate();
            items.map(|(i, v)| (i.to_string(), v)).collect()
        }
        _ => Vec::new(),
    };
    for (key, value) in inside {
        path.push(key);
        if asks(value, rest, idle, path) {
            return true;
        }
        path.pop();
    }
    false
}

/// The position of a key, or of the closest table around it.
fn place(text: &Node, path: &[String]) -> Place {
    let (mut node, mut place) = (text, &text.place);
    for key in path {
        let found = match &node.value {
            Value::Table(entries) => {
                let entry = entries.iter().find(|e| e.key == *key);
                entry.map(|e| (&e.value, &e.place))
            }
            Value::Array(items) => {
                let item = key.parse().ok().and_then(|i: usize| items.get(i));
                item.map(|n| (n, &n.place))
            }
            _ => None,
        };
        match found {
            Some(found) => (node, place) = found,
            None => break,
        }
    }
    place.clone()
}

/// Checks a resolved scenario for features that this world does not support.
///
/// # Errors
/// Returns all of them; the diagnostics have no lines.
pub fn check(scenario: &Scenario, world: World) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::new(&Origin::default(), "", &[]);
    let nowhere = Node {
        value: Value::Table(Vec::new()),
        place: Place::Nowhere,
    };
    ask(&scenario.document, world, &nowhere, &mut errors);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors),
    }
}

/// Lists the unsupported features of a text, a sentence each. Other errors in it are not reported, such as names of
/// classes that only Python knows; defaults are then unknown.
pub fn missing(text: &str, world: World) -> Vec<String> {
    let mut errors = Diagnostics::new(&Origin::default(), text, &[]);
    let Some(tree) = Node::from_toml(text, &mut errors) else {
        return Vec::new();
    };
    let resolved = crate::parse(text, &Origin::default(), &[]);
    let document = resolved.map_or_else(|_| tree.to_json(), |scenario| scenario.document);
    ask(&document, world, &tree, &mut errors);
    errors.sort();
    errors.iter().map(|d| d.message.clone()).collect()
}

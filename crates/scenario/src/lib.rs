//! The scenario model, defined once: TOML in, precise diagnostics or a resolved scenario out.
//!
//! [`model`] is the scenario as written. Its JSON Schema ([`schema()`]) and reference page ([`reference()`]) are
//! derived from it, and every text is checked against that schema, so that several mistakes are reported at once, each
//! with file, line and likely fix. [`Scenario`] is the resolved scenario: one graph of nodes and links, one list of
//! flows, every default filled in.
//!
//! ```
//! use gargalo_scenario::{Origin, parse};
//!
//! let text = r#"
//! duration = "10s"
//! [topology.simple]
//! link = { rate = "10Mbit/s", delay = "50ms", queue = { droptail = "1BDP" } }
//! [[flows]]
//! from = "client"
//! to = "server"
//! transport.tcp = { congestion = "bbr" }
//! "#;
//! let scenario = parse(text, &Origin::default(), &[])?;
//! assert_eq!(scenario.nodes.len(), 2);
//!
//! let slip = text.replace("\"50ms\"", "50");
//! let errors = parse(&slip, &Origin::default(), &[]).unwrap_err();
//! let first = errors.iter().next().unwrap();
//! assert_eq!(first.line, 4);
//! assert!(first.help.as_ref().unwrap().contains("\"50ms\""));
//! # Ok::<(), gargalo_scenario::Diagnostics>(())
//! ```
#![forbid(unsafe_code)]

pub mod audit;
mod background;
pub mod build;
mod canonical;
pub mod capabilities;
mod check;
mod diagnostic;
mod jitter;
#[cfg(target_os = "linux")]
pub mod lab;
mod media_frames;
pub mod memory;
pub mod model;
mod multipath;
mod name;
mod objects;
mod options;
mod pings;
mod printable;
pub mod quantity;
mod reference;
mod resolve;
pub mod resolved;
mod schema;
mod streams;
mod summary;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod world;

pub use diagnostic::{Diagnostic, Diagnostics, Origin};
pub use name::bad_name;
pub use reference::reference;
pub use resolved::Scenario;
pub use schema::schema;
pub use world::World;

use std::path::Path;

use gargalo_settings::{Files, Setting};

use check::Checker;
use tree::{Node, Value};

/// Writes a scenario as the text of a file, from JSON of the same structure.
///
/// # Errors
/// When it contains what TOML cannot express: null, or a number above 2^63.
pub fn to_toml(document: &serde_json::Value) -> Result<String, toml::ser::Error> {
    toml::to_string(document)
}

/// Names that the registries do not know but the caller does, such as those of Python classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of congestion controls.
    pub congestion: Vec<String>,
    /// Schedulers of Multipath TCP.
    pub schedulers: Vec<String>,
    /// Path managers of Multipath TCP.
    pub path_managers: Vec<String>,
    /// Names of QUIC stacks.
    pub stacks: Vec<String>,
    /// QUIC stacks that would be loaded if the scenario named them.
    pub installed: Vec<String>,
}

/// Parses, checks and resolves a scenario.
///
/// `overrides` are pairs of a dotted key and a value, like `("flows.0.start", "5s")`; the value is
/// TOML if it parses as such and text otherwise, `*` in a key stands for every item of a list.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(
    text: &str,
    origin: &Origin,
    overrides: &[(String, String)],
) -> Result<Scenario, Diagnostics> {
    parse_with(text, origin, overrides, &Names::default())
}

/// Like [`parse`], with names that the registries do not know but the caller does. Their parameters are not checked.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_with(
    text: &str,
    origin: &Origin,
    overrides: &[(String, String)],
    extra: &Names,
) -> Result<Scenario, Diagnostics> {
    parse_text(text, origin, overrides, extra, None)
}

/// Like [`parse_with`], for the world that will run it: features that it does not support are errors, too (see
/// [`capabilities`]). For the lab this checks whether the machine's kernel has the congestion controls of the hosts
/// with its stack.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_for(
    world: World,
    text: &str,
    origin: &Origin,
    overrides: &[(String, String)],
    extra: &Names,
) -> Result<Scenario, Diagnostics> {
    parse_text(text, origin, overrides, extra, Some(world))
}

fn parse_text(
    text: &str,
    origin: &Origin,
    overrides: &[(String, String)],
    extra: &Names,
    world: Option<World>,
) -> Result<Scenario, Diagnostics> {
    let mut errors = Diagnostics::new(origin, text, overrides);
    match Node::from_toml(text, &mut errors) {
        Some(tree) => finish(tree, origin, overrides, extra, errors, world),
        None => Err(errors),
    }
}

/// Like [`parse_with`], from JSON of the same structure (as the schema describes it).
///
/// # Errors
/// Everything that is wrong with it; the diagnostics have no lines.
pub fn parse_json(
    json: &serde_json::Value,
    origin: &Origin,
    overrides: &[(String, String)],
    extra: &Names,
) -> Result<Scenario, Diagnostics> {
    let errors = Diagnostics::new(origin, "", overrides);
    let empty = || Node {
        value: Value::Table(Vec::new()),
        place: diagnostic::Place::Nowhere,
    };
    let tree = Node::from_json(json).unwrap_or_else(empty);
    finish(tree, origin, overrides, extra, errors, None)
}

fn finish(
    mut tree: Node,
    origin: &Origin,
    overrides: &[(String, String)],
    extra: &Names,
    mut errors: Diagnostics,
    world: Option<World>,
) -> Result<Scenario, Diagnostics> {
    for (i, (key, value)) in overrides.iter().enumerate() {
        let new = Node::from_override(value, i);
        let path: Vec<&str> = key.trim().split('.').collect();
        if let Err(no_place) = tree.set(&path, &new) {
            let help = no_place.help(&path, &new, value);
            let why = no_place.why;
            let place = diagnostic::Place::Override(i);
            errors.add(
                place,
                key.trim(),
                "no such place",
                format!("cannot set \"{key}\": {why}"),
                Some(help),
            );
        }
    }
    name::check(&tree, "", &mut errors);
    if !errors.is_empty() {
        // Later checks do not quote such a text.
        errors.sort();
        return Err(errors);
    }
    Checker::new(schema::internal(), extra, &mut errors).check(&tree);
    if !errors.is_empty() {
        errors.sort();
        return Err(errors);
    }
    let mut files = Files::new(origin.path.as_deref().and_then(Path::parent));
    let read = model::Scenario::read(&tree.to_json(), &mut files);
    let mut context = resolve::Context {
        tree: &tree,
        errors: &mut errors,
        origin,
        files,
        world,
    };
    let raw = match read {
        Ok(raw) => raw,
        Err(e) => {
            context.refuse("", e);
            return Err(errors);
        }
    };
    let scenario = resolve::resolve(&raw, &mut context);
    if let Some(world) = world {
        capabilities::ask(&scenario.document, world, &tree, &mut errors);
    }
    if errors.is_empty() {
        return Ok(scenario);
    }
    errors.sort();
    Err(errors)
}

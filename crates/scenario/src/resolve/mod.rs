//! Resolves a scenario as written.

mod expect;
mod flows;
mod hosts;
mod lab;
mod links;
mod mptcp;
mod network;
mod parking_lot;
mod quic;
mod routes;
mod sourced;
mod sources;
mod tcp;
mod transport;

use gargalo_settings::{Files, Setting};
use gargalo_units::{Instant, nearest};

use crate::diagnostic::{Diagnostics, Origin};
use crate::model;
use crate::model::Record;
use crate::resolved::{Link, Node, Scenario};
use crate::tree::Node as Tree;
use crate::world::World;

/// The context of every step of the resolution: the tree for positions, and the list of errors.
pub(crate) struct Context<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) errors: &'a mut Diagnostics,
    pub(crate) origin: &'a Origin,
    /// The files that settings name.
    pub(crate) files: Files,
    /// The world that will run it, if known.
    pub(crate) world: Option<World>,
}

impl Context<'_> {
    /// Reports an error at a dotted path.
    pub(crate) fn error(&mut self, path: &str, label: &str, message: String, help: String) {
        let place = self.tree.place(path);
        let help = (!help.is_empty()).then_some(help);
        self.errors.add(place, path, label, message, help);
    }

    /// Reads a setting that was written at a dotted path; `None`: an error is reported.
    pub(crate) fn read<T: Setting>(
        &mut self,
        written: &model::Written<T>,
        path: &str,
    ) -> Option<T> {
        let read = T::read(written.json(), &mut self.files);
        read.map_err(|e| self.refuse(path, e)).ok()
    }

    /// Reports an error of a setting that was written at a dotted path.
    pub(crate) fn refuse(&mut self, path: &str, error: gargalo_settings::Error) {
        let error = error.at(path);
        let place = self.tree.place(&error.path);
        self.errors.add(
            place,
            &error.path,
            "not possible",
            error.message,
            error.help,
        );
    }
}

/// The network to which the topology was lowered.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// For each link, the path at which it was written.
    pub(crate) paths: Vec<String>,
    /// Limits in bandwidth-delay products, to be set when the routes of flows are known.
    pub(crate) bdp: Vec<links::BdpLimit>,
}

/// Resolves the model; errors are added to the context, and the result is valid only if there are none.
pub(crate) fn resolve(raw: &model::Scenario, cx: &mut Context<'_>) -> Scenario {
    if raw.duration.is_zero() {
        let help = "give how long to watch, like `duration = \"60s\"`".to_owned();
        cx.error(
            "duration",
            "nothing would happen",
            "duration is zero".to_owned(),
            help,
        );
    }
    let (topology, mut network) = network::lower(&raw.topology, cx);
    let expanded = flows::resolve(raw, &mut network, cx);
    let record = record(&raw.record, &network.links, cx);
    let measure = measure(raw, cx);
    let lab = lab::resolve(raw, &network.nodes, cx);
    expect::check(raw, cx);
    #[cfg(target_os = "linux")]
    if cx.world == Some(World::Lab) {
        lab::ask_kernel(raw, &expanded, &lab.stacks, cx);
    }
    let stem = cx.origin.path.as_ref().and_then(|p| p.file_stem());
    let stem = stem.map(|s| crate::name::made_of(&s.to_string_lossy()));
    if let Some(why) = raw.name.as_deref().and_then(crate::name::bad_name) {
        let help = "results are kept under it: use letters, digits, - and _".to_owned();
        cx.error("name", "not the name of a directory", why, help);
    }
    let name = raw.name.clone().or(stem);
    let name = name.unwrap_or_else(|| "scenario".to_owned());
    let document = model::Scenario {
        name: Some(name.clone()),
        ..raw.clone()
    };
    let mut document = document.write();
    for (i, transport) in expanded.transports.into_iter().enumerate() {
        document["flows"][i]["transport"] = transport;
    }
    Scenario {
        name,
        description: raw.description.clone().unwrap_or_default(),
        seed: raw.seed,
        duration: raw.duration,
        topology,
        nodes: network.nodes,
        links: network.links,
        flows: expanded.flows,
        groups: expanded.groups,
        record,
        measure,
        lab,
        document,
    }
}

/// The measured window; `None`: the whole run.
fn measure(raw: &model::Scenario, cx: &mut Context<'_>) -> Option<(Instant, Instant)> {
    if raw.measure == model::Measure::default() {
        return None;
    }
    let duration = raw.duration;
    let from = raw.measure.from;
    let until = raw.measure.until.unwrap_or(duration);
    let (key, label, message) = if until > duration {
        ("measure.until", "after the end of the run", "ends after it")
    } else if from >= duration {
        (
            "measure.from",
            "not before the end of the run",
            "begins when it is over",
        )
    } else if from >= until {
        ("measure.until", "nothing would be measured", "is empty")
    } else {
        return Some((Instant::ZERO + from, Instant::ZERO + until));
    };
    let message = format!("the run takes {duration}, and the part that is measured {message}");
    let help = format!("choose instants between 0s and {duration}, `from` before `until`");
    cx.error(key, label, message, help);
    None
}

/// Resolves what is recorded, with links by their names.
fn record(raw: &Record, links: &[Link], cx: &mut Context<'_>) -> Record {
    let mut captures: Vec<String> = Vec::new();
    for (i, pattern) in raw.captures.iter().enumerate() {
        let fits = |name: &str| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        let names = links.iter().map(|l| l.name.as_str());
        let before = captures.len();
        for name in names.clone().filter(|n| fits(n)) {
            if !captures.iter().any(|c| c == name) {
                captures.push(name.to_owned());
            }
        }
        if before == captures.len() && !names.clone().any(fits) {
            let near = nearest(pattern, names.clone());
            let help = did_you_mean(near, "links", names);
            let path = format!("record.captures.{i}");
            cx.error(
                &path,
                "no such link",
                format!("there is no link \"{pattern}\""),
                help,
            );
        }
    }
    Record {
        captures,
        ..raw.clone()
    }
}

/// A help text with the nearest name and the first few names.
pub(crate) fn did_you_mean<'a>(
    near: Option<&str>,
    what: &str,
    names: impl Iterator<Item = &'a str>,
) -> String {
    const SHOWN: usize = 20;
    let all: Vec<&str> = names.collect();
    let mut list = all[..all.len().min(SHOWN)].join(", ");
    if all.len() > SHOWN {
        list = format!("{list}, … ({} in all)", all.len());
    }
    match near {
        Some(near) => format!("did you mean `{near}`? {what}: {list}"),
        None => format!("{what}: {list}"),
    }
}

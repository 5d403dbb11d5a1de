//! Topologies as graphs.

use gargalo_units::nearest;

use crate::model::{Direction, Link as Spec, OneOrMany, Topology};
use crate::resolved::Node;

use super::links::{self, Ends};
use super::{Context, Network, did_you_mean};

/// Lowers a topology to nodes and links; the text is its kind.
pub(crate) fn lower(topology: &Topology, cx: &mut Context<'_>) -> (&'static str, Network) {
    let mut net = Network::default();
    let kind = match topology {
        Topology::Simple(t) => {
            let (a, b) = (net.host("client"), net.host("server"));
            net.link(
                "link",
                (a, b),
                Source::of(&t.link, "topology.simple.link"),
                cx,
            );
            "simple"
        }
        Topology::Multipath(t) => {
            let (a, b) = (net.host("client"), net.host("server"));
            for (i, path) in t.paths.iter().enumerate() {
                let at = format!("topology.multipath.paths.{i}");
                net.link(&format!("path{i}"), (a, b), Source::of(path, &at), cx);
            }
            "multipath"
        }
        Topology::Dumbbell(t) => {
            let pairs = t.pairs.unwrap_or(1) as usize;
            let at = "topology.dumbbell.access";
            if !counts(t.access.as_ref(), pairs, at, "pairs", cx) {
                return ("dumbbell", net);
            }
            let left: Vec<_> = (0..pairs).map(|i| net.host(&format!("left{i}"))).collect();
            let right: Vec<_> = (0..pairs).map(|i| net.host(&format!("right{i}"))).collect();
            let (router_l, router_r) = (net.router("routerL"), net.router("routerR"));
            let bottleneck = Source::of(&t.bottleneck, "topology.dumbbell.bottleneck");
            net.link("bottleneck", (router_l, router_r), bottleneck, cx);
            for (i, (l, r)) in left.into_iter().zip(right).enumerate() {
                let (spec, at) = nth(t.access.as_ref(), i, at);
                let source = Source::maybe(spec, &at);
                net.link(
                    &format!("left{i}-routerL"),
                    (l, router_l),
                    source.clone(),
                    cx,
                );
                net.link(&format!("routerR-right{i}"), (router_r, r), source, cx);
            }
            "dumbbell"
        }
        Topology::ParkingLot(t) => {
            let hops = t.hops as usize;
            let at = "topology.parking-lot.bottleneck";
            if !counts(Some(&t.bottleneck), hops, at, "hops", cx) {
                return ("parking-lot", net);
            }
            let (left, right) = (net.host("left"), net.host("right"));
            let cross: Vec<_> = (0..hops).map(|i| net.host(&format!("cross{i}"))).collect();
            let sinks: Vec<_> = (0..hops).map(|i| net.host(&format!("sink{i}"))).collect();
            let routers: Vec<_> = (0..=hops)
                .map(|i| net.router(&format!("router{i}")))
                .collect();
            for (i, ends) in routers.windows(2).enumerate() {
                let (spec, at) = nth(Some(&t.bottleneck), i, at);
                let source = Source::maybe(spec, &at);
                net.link(&format!("bottleneck{i}"), (ends[0], ends[1]), source, cx);
            }
            let access = Source::maybe(t.access.as_ref(), "topology.parking-lot.access");
            net.link("left-router0", (left, routers[0]), access.clone(), cx);
            let name = format!("router{hops}-right");
            net.link(&name, (routers[hops], right), access.clone(), cx);
            for i in 0..hops {
                let name = format!("cross{i}-router{i}");
                net.link(&name, (cross[i], routers[i]), access.clone(), cx);
                let name = format!("router{}-sink{i}", i + 1);
                net.link(&name, (routers[i + 1], sinks[i]), access.clone(), cx);
            }
            "parking-lot"
        }
        Topology::Graph(t) => {
            graph(t, &mut net, cx);
            "graph"
        }
    };
    (kind, net)
}

fn graph(t: &crate::model::Graph, net: &mut Network, cx: &mut Context<'_>) {
    let mut index = std::collections::BTreeMap::new();
    for (i, name) in t.nodes.iter().enumerate() {
        let at = format!("topology.graph.nodes.{i}");
        if index.contains_key(name.as_str()) {
            let message = format!("node \"{name}\" is listed twice");
            cx.error(&at, "again", message, "remove one".to_owned());
        } else if name.is_empty() || name.ends_with('*') {
            let message = format!("\"{name}\" cannot be the name of a node");
            let help = "a name is not empty and does not end in *".to_owned();
            cx.error(&at, "no name", message, help);
        } else {
            index.insert(name.as_str(), net.router(name));
        }
    }
    let find = |name: &str, at: &str, cx: &mut Context<'_>| {
        let found = index.get(name).copied();
        if found.is_none() {
            let names = || t.nodes.iter().map(String::as_str);
            let help = did_you_mean(nearest(name, names()), "nodes", names());
            cx.error(
                at,
                "no such node",
                format!("there is no node \"{name}\""),
                help,
            );
        }
        found
    };
    let mut pairs = std::collections::BTreeMap::new();
    let mut names = std::collections::BTreeSet::new();
    let mut degree = vec![0_u32; net.nodes.len()];
    for (i, l) in t.links.iter().enumerate() {
        let at = format!("topology.graph.links.{i}");
        let a = find(&l.from, &format!("{at}.from"), cx);
        let b = find(&l.to, &format!("{at}.to"), cx);
        let (Some(a), Some(b)) = (a, b) else {
            continue;
        };
        if a == b {
            let message = format!("a link from \"{}\" to itself", l.from);
            cx.error(
                &format!("{at}.to"),
                "the same node",
                message,
                "name two nodes".to_owned(),
            );
            continue;
        }
        let name = l
            .name
            .clone()
            .unwrap_or_else(|| format!("{}-{}", l.from, l.to));
        // A link has two directions, so that one the other way round is a second one.
        let again = pairs.insert((a.min(b), a.max(b)), i).is_some();
        if again && l.name.is_none() {
            let message = format!(
                "there is a link between \"{}\" and \"{}\" already",
                l.from, l.to
            );
            let help = "a link works in both directions: remove one, or, if two links are meant, \
                        give this one a name; for several paths see [topology.multipath]";
            cx.error(&at, "duplicate link", message, help.to_owned());
            continue;
        }
        if !names.insert(name.clone()) {
            let message = format!("two links are named \"{name}\"");
            cx.error(&at, "again", message, "give one another name".to_owned());
            continue;
        }
        degree[a] += 1;
        degree[b] += 1;
        let source = Source {
            base: Some(l.direction()),
            up: l.up.as_deref(),
            down: l.down.as_deref(),
            at: &at,
        };
        net.link(&name, (a, b), source, cx);
    }
    match &t.hosts {
        None => {
            for (node, degree) in net.nodes.iter_mut().zip(&degree) {
                node.is_host = *degree <= 1;
            }
        }
        Some(hosts) => {
            for (i, name) in hosts.iter().enumerate() {
                if let Some(n) = find(name, &format!("topology.graph.hosts.{i}"), cx) {
                    net.nodes[n].is_host = true;
                }
            }
        }
    }
}

/// Whether a list has as many items as needed.
fn counts(list: Option<&OneOrMany>, n: usize, at: &str, what: &str, cx: &mut Context<'_>) -> bool {
    let Some(OneOrMany::Many(list)) = list else {
        return true;
    };
    if list.len() != n {
        let message = format!("{} links are given for {what} = {n}", list.len());
        let help = format!("give {n}, or one table for all, or correct {what}");
        cx.error(at, "count mismatch", message, help);
    }
    list.len() == n
}

fn nth<'a>(list: Option<&'a OneOrMany>, i: usize, at: &str) -> (Option<&'a Spec>, String) {
    match list {
        None => (None, at.to_owned()),
        Some(OneOrMany::One(one)) => (Some(one), at.to_owned()),
        Some(OneOrMany::Many(many)) => (many.get(i), format!("{at}.{i}")),
    }
}

/// A link as written.
#[derive(Clone)]
struct Source<'a> {
    base: Option<Direction>,
    up: Option<&'a Direction>,
    down: Option<&'a Direction>,
    at: &'a str,
}

impl<'a> Source<'a> {
    fn of(spec: &'a Spec, at: &'a str) -> Self {
        Self::maybe(Some(spec), at)
    }
    fn maybe(spec: Option<&'a Spec>, at: &'a str) -> Self {
        Self {
            base: spec.map(Spec::direction),
            up: spec.and_then(|s| s.up.as_deref()),
            down: spec.and_then(|s| s.down.as_deref()),
            at,
        }
    }
}

impl Network {
    fn node(&mut self, name: &str, is_host: bool) -> usize {
        self.nodes.push(Node {
            name: name.to_owned(),
            is_host,
        });
        self.nodes.len() - 1
    }
    fn host(&mut self, name: &str) -> usize {
        self.node(name, true)
    }
    fn router(&mut self, name: &str) -> usize {
        self.node(name, false)
    }

    fn link(&mut self, name: &str, ends: (usize, usize), source: Source<'_>, cx: &mut Context<'_>) {
        let link = links::resolve(
            Ends {
                index: self.links.len(),
                name,
                ends,
            },
            [
                (source.base.as_ref(), source.up, "up"),
                (source.base.as_ref(), source.down, "down"),
            ],
            source.at,
            &mut self.bdp,
            cx,
        );
        self.links.push(link);
        self.paths.push(source.at.to_owned());
    }
}

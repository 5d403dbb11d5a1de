//! Resolves topologies as graphs.

use gargalo_units::nearest;

use crate::model::Topology;
use crate::resolved::Node;

use super::links::{Links, counts};
use super::{Context, Network, did_you_mean, parking_lot};

/// Lowers a topology to nodes and links; also returns its kind.
pub(crate) fn lower(topology: &Topology, cx: &mut Context<'_>) -> (&'static str, Network) {
    let mut net = Network::default();
    let kind = match topology {
        Topology::Simple(t) => {
            let (a, b) = (net.host("client"), net.host("server"));
            let at = "topology.simple.link";
            net.link("link", (a, b), &t.link, at);
            "simple"
        }
        Topology::Multipath(t) => {
            let (a, b) = (net.host("client"), net.host("server"));
            for (i, path) in t.paths.iter().enumerate() {
                let at = format!("topology.multipath.paths.{i}");
                net.link(&format!("path{i}"), (a, b), path, &at);
            }
            "multipath"
        }
        Topology::Dumbbell(t) => {
            let pairs = t.pairs as usize;
            let at = "topology.dumbbell.access";
            if !counts(t.access.as_ref(), pairs, at, "pairs", cx) {
                return ("dumbbell", net);
            }
            let left: Vec<_> = (0..pairs).map(|i| net.host(&format!("left{i}"))).collect();
            let right: Vec<_> = (0..pairs).map(|i| net.host(&format!("right{i}"))).collect();
            let (router_l, router_r) = (net.router("routerL"), net.router("routerR"));
            let access = Links::of(t.access.as_ref(), at);
            let at = "topology.dumbbell.bottleneck";
            let ends = (router_l, router_r);
            net.link("bottleneck", ends, &t.bottleneck, at);
            for (i, (l, r)) in left.into_iter().zip(right).enumerate() {
                let (link, at) = access.nth(i);
                net.link(&format!("left{i}-routerL"), (l, router_l), link, &at);
                net.link(&format!("routerR-right{i}"), (router_r, r), link, &at);
            }
            "dumbbell"
        }
        Topology::ParkingLot(t) => {
            parking_lot::lower(t, &mut net, cx);
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
        // A link has two directions, so a link between the same nodes in reverse order is a second one.
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
        net.link(&name, (a, b), &l.link, &at);
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

impl Network {
    fn node(&mut self, name: &str, is_host: bool) -> usize {
        self.nodes.push(Node {
            name: name.to_owned(),
            is_host,
        });
        self.nodes.len() - 1
    }
    pub(super) fn host(&mut self, name: &str) -> usize {
        self.node(name, true)
    }
    pub(super) fn router(&mut self, name: &str) -> usize {
        self.node(name, false)
    }
}

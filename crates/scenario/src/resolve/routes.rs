//! Routes of flows, for what depends on them: bandwidth-delay products, segment sizes, reachability.

use std::collections::{BTreeMap, VecDeque};

use gargalo_units::Duration;

use super::Network;
use super::links::base_delay;

/// Paths with the fewest links, ties by the order of the links, as the simulator takes them.
pub(crate) struct Routes {
    /// For each node, its neighbours and the links to them.
    neighbours: Vec<Vec<(usize, usize)>>,
    /// Trees of routes by their root.
    trees: BTreeMap<usize, Tree>,
}

/// For each node, the previous node and the link from there; `None` if it cannot be reached.
type Tree = Vec<Option<(usize, usize)>>;

/// A route as a list of links, each with whether it is taken from its second end to its first.
pub(crate) type Route = Vec<(usize, bool)>;

impl Routes {
    pub(crate) fn new(net: &Network) -> Self {
        let mut neighbours = vec![Vec::new(); net.nodes.len()];
        for (i, l) in net.links.iter().enumerate() {
            neighbours[l.a].push((l.b, i));
            neighbours[l.b].push((l.a, i));
        }
        Self {
            neighbours,
            trees: BTreeMap::new(),
        }
    }

    /// The route between two nodes, if there is one.
    pub(crate) fn find(&mut self, net: &Network, from: usize, to: usize) -> Option<Route> {
        // A tree is as large as the network: keep a few, for copies that share a host.
        if self.trees.len() >= 16 && !self.trees.contains_key(&from) {
            self.trees.clear();
        }
        let neighbours = &self.neighbours;
        let tree = self.trees.entry(from).or_insert_with(|| {
            let mut tree: Tree = vec![None; neighbours.len()];
            let mut queue = VecDeque::from([from]);
            while let Some(at) = queue.pop_front() {
                if at != from && net.nodes[at].is_host {
                    continue; // hosts do not forward
                }
                for &(next, link) in &neighbours[at] {
                    if next != from && tree[next].is_none() {
                        tree[next] = Some((at, link));
                        queue.push_back(next);
                    }
                }
            }
            tree
        });
        let mut route = Vec::new();
        let mut at = to;
        while at != from {
            let (previous, link) = tree[at]?;
            route.push((link, net.links[link].b == previous));
            at = previous;
        }
        route.reverse();
        Some(route)
    }
}

/// Base round-trip time over a route and back: propagation alone.
pub(crate) fn base_rtt(net: &Network, route: &Route) -> Duration {
    let both = route.iter().map(|(link, _)| {
        let l = &net.links[*link];
        base_delay(&l.up)
            .as_nanos()
            .saturating_add(base_delay(&l.down).as_nanos())
    });
    Duration::from_nanos(both.fold(0, u64::saturating_add))
}

/// The smallest MTU on a route and back.
pub(crate) fn mtu(net: &Network, route: &Route) -> u32 {
    let both = route.iter().map(|(link, _)| {
        let l = &net.links[*link];
        l.up.mtu.min(l.down.mtu)
    });
    both.min().unwrap_or(65_535)
}

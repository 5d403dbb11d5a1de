//! Shortest routes in a network, found without visiting unrelated nodes.
//!
//! A search visits routers only and ends when it has met the target: between two hosts of a dumbbell it visits three
//! nodes, however many pairs of hosts there are.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Index of a node.
pub type NodeId = u32;
/// Index of one direction of a link: twice the link's index, plus one for down (b to a).
pub type DirectionId = u32;

/// Searches for shortest routes by hop count. Of several, it takes the one whose nodes, from the last back to the
/// first, have the lowest numbers, and between two nodes the first link.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    ends: Vec<(NodeId, NodeId)>,
    /// The links of each node in their order: the node at the other end, and the direction that leads to it.
    links: Vec<Vec<(NodeId, DirectionId)>>,
    /// Of these links, the ones that lead to routers.
    onward: Vec<Vec<(NodeId, DirectionId)>>,
    /// Number of the current search: marks of earlier searches do not count.
    search: u32,
    /// For each node, the search that met it, and from where.
    met: Vec<(u32, NodeId, DirectionId)>,
    /// For each node, the search whose target is its neighbour, and the direction that leads to it.
    last: Vec<(u32, DirectionId)>,
    visited: u64,
}

impl Routing {
    /// Creates the search for nodes, some of which are hosts, which do not forward, and links between them.
    pub fn new(
        hosts: impl IntoIterator<Item = bool>,
        links: impl IntoIterator<Item = (NodeId, NodeId)>,
    ) -> Self {
        let hosts: Vec<bool> = hosts.into_iter().collect();
        let none = vec![Vec::new(); hosts.len()];
        let mut made = Self {
            links: none.clone(),
            onward: none,
            met: vec![(0, 0, 0); hosts.len()],
            last: vec![(0, 0); hosts.len()],
            ..Self::default()
        };
        for (i, (a, b)) in links.into_iter().enumerate() {
            let up = 2 * i as DirectionId;
            made.ends.push((a, b));
            for (from, to, direction) in [(a, b, up), (b, a, up + 1)] {
                made.links[from as usize].push((to, direction));
                if !hosts[to as usize] {
                    made.onward[from as usize].push((to, direction));
                }
            }
        }
        made
    }

    /// Number of nodes that all searches together have visited: a measure of their cost.
    pub const fn visited(&self) -> u64 {
        self.visited
    }

    /// The links of a node, in order.
    pub fn links_of(&self, node: NodeId) -> impl Iterator<Item = usize> {
        self.links[node as usize].iter().map(|l| l.1 as usize / 2)
    }

    /// The directions that a packet takes from `from` to `to`, if there is a route.
    pub fn route(&mut self, from: NodeId, to: NodeId) -> Option<Vec<DirectionId>> {
        self.find(from, to, |_| true)
    }

    /// Up to `most` routes that share no link, the shortest first: each is the shortest over the links that those
    /// before it left unused. Empty if there is no route.
    pub fn disjoint(&mut self, from: NodeId, to: NodeId, most: usize) -> Vec<Vec<DirectionId>> {
        let mut used = BTreeSet::new();
        let mut routes = Vec::new();
        while routes.len() < most.max(1) {
            let Some(route) = self.find(from, to, |link| !used.contains(&link)) else {
                break;
            };
            used.extend(route.iter().map(|d| *d as usize / 2));
            routes.push(route);
            if from == to {
                break;
            }
        }
        routes
    }

    /// The route of this number among the disjoint ones; 0 is the usual one. `None`: there are not so many.
    pub fn nth(&mut self, from: NodeId, to: NodeId, number: u8) -> Option<Vec<DirectionId>> {
        let number = usize::from(number);
        self.disjoint(from, to, number + 1).into_iter().nth(number)
    }

    /// The links of a host in order: its interfaces. The link of the usual route to `towards` comes first.
    pub fn interfaces(&mut self, of: NodeId, towards: NodeId) -> Vec<usize> {
        let usual = self.route(of, towards);
        let usual = usual.and_then(|r| r.first().map(|d| *d as usize / 2));
        let others = self.links_of(of).filter(|l| Some(*l) != usual);
        usual.into_iter().chain(others).collect()
    }

    /// The shortest route that begins with the link `first` and ends with the link `last`. Where there is none, as
    /// between hosts with links of their own, the shortest that begins with `first`: packets leave by the interface of
    /// their source address.
    pub fn between(
        &mut self,
        (from, first): (NodeId, usize),
        (to, last): (NodeId, usize),
    ) -> Option<Vec<DirectionId>> {
        let ends = std::mem::take(&mut self.ends);
        let touches = |link: usize, n: NodeId| ends[link].0 == n || ends[link].1 == n;
        let begins = |link: usize| link == first || !touches(link, from);
        let strict = |link: usize| begins(link) && (link == last || !touches(link, to));
        let found = self.find(from, to, strict);
        let found = found.or_else(|| self.find(from, to, begins));
        self.ends = ends;
        found
    }

    /// The least sum of a cost over the directions of any route from `from` to `to`; `None`: there is no route.
    pub fn least(
        &mut self,
        from: NodeId,
        to: NodeId,
        cost: impl Fn(DirectionId) -> u64,
    ) -> Option<u64> {
        self.search += 1;
        let search = self.search;
        for &(node, direction) in &self.links[to as usize] {
            let last = &mut self.last[node as usize];
            if last.0 != search || cost(direction ^ 1) < cost(last.1) {
                *last = (search, direction ^ 1);
            }
        }
        let mut next = BinaryHeap::from([Reverse((0_u64, from))]);
        while let Some(Reverse((so_far, node))) = next.pop() {
            self.visited += 1;
            if node == to {
                return Some(so_far);
            }
            if self.met[node as usize].0 == search {
                continue;
            }
            self.met[node as usize] = (search, node, 0);
            let (known, last) = self.last[node as usize];
            if known == search {
                next.push(Reverse((so_far.saturating_add(cost(last)), to)));
            }
            for &(onward, direction) in &self.onward[node as usize] {
                if self.met[onward as usize].0 != search {
                    next.push(Reverse((so_far.saturating_add(cost(direction)), onward)));
                }
            }
        }
        None
    }

    /// The shortest route over the links that are open.
    fn find(
        &mut self,
        from: NodeId,
        to: NodeId,
        is_open: impl Fn(usize) -> bool,
    ) -> Option<Vec<DirectionId>> {
        if from == to {
            return Some(Vec::new());
        }
        self.search += 1;
        let search = self.search;
        for &(node, direction) in &self.links[to as usize] {
            let last = &mut self.last[node as usize];
            if last.0 != search && is_open(direction as usize / 2) {
                *last = (search, direction ^ 1);
            }
        }
        self.met[from as usize] = (search, from, 0);
        let mut next = BinaryHeap::from([Reverse((0_u32, from))]);
        while let Some(Reverse((distance, node))) = next.pop() {
            self.visited += 1;
            let (known, direction) = self.last[node as usize];
            if known == search {
                return Some(self.trace(from, node, direction));
            }
            for &(onward, direction) in &self.onward[node as usize] {
                let met = &mut self.met[onward as usize];
                if met.0 != search && is_open(direction as usize / 2) {
                    *met = (search, node, direction);
                    next.push(Reverse((distance + 1, onward)));
                }
            }
        }
        None
    }

    /// The route by which a search reached `node`, followed by `last`.
    fn trace(&self, from: NodeId, mut node: NodeId, last: DirectionId) -> Vec<DirectionId> {
        let mut route = vec![last];
        while node != from {
            let (_, previous, direction) = self.met[node as usize];
            route.push(direction);
            node = previous;
        }
        route.reverse();
        route
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: distances from `from` over all nodes that forward, relaxed in the order of distance and then of
    /// nodes.
    fn by_definition(
        hosts: &[bool],
        links: &[(NodeId, NodeId)],
        from: NodeId,
        to: NodeId,
    ) -> Option<Vec<DirectionId>> {
        let mut distance = vec![u32::MAX; hosts.len()];
        let mut via = vec![None; hosts.len()];
        let mut heap = BinaryHeap::from([Reverse((0, from))]);
        distance[from as usize] = 0;
        while let Some(Reverse((d, node))) = heap.pop() {
            if node == to || (node != from && hosts[node as usize]) {
                continue;
            }
            for (i, &(a, b)) in links.iter().enumerate() {
                let i = 2 * i as u32;
                for (at, next, direction) in [(a, b, i), (b, a, i + 1)] {
                    if at == node && d + 1 < distance[next as usize] {
                        distance[next as usize] = d + 1;
                        via[next as usize] = Some((node, direction));
                        heap.push(Reverse((d + 1, next)));
                    }
                }
            }
        }
        let (mut route, mut at) = (Vec::new(), to);
        while at != from {
            let (previous, direction) = via[at as usize]?;
            route.push(direction);
            at = previous;
        }
        route.reverse();
        Some(route)
    }

    proptest! {
        #[test]
        fn routes_are_those_of_the_definition(
            hosts in prop::collection::vec(any::<bool>(), 2..12),
            links in prop::collection::vec((0_u32..12, 0_u32..12), 0..40),
        ) {
            let n = hosts.len() as u32;
            let links: Vec<_> = links
                .into_iter()
                .map(|(a, b)| (a % n, b % n))
                .filter(|(a, b)| a != b)
                .collect();
            let mut routing = Routing::new(hosts.clone(), links.clone());
            for from in 0..n {
                for to in 0..n {
                    prop_assert_eq!(
                        routing.route(from, to),
                        by_definition(&hosts, &links, from, to),
                        "from {} to {}", from, to
                    );
                }
            }
        }
    }

    proptest! {
        /// All sums, relaxed until nothing changes (Bellman and Ford).
        #[test]
        fn the_least_cost_is_that_of_the_definition(
            hosts in prop::collection::vec(any::<bool>(), 2..10),
            links in prop::collection::vec((0_u32..10, 0_u32..10), 0..30),
            costs in prop::collection::vec(0_u64..50, 60..61),
        ) {
            let n = hosts.len() as u32;
            let links: Vec<_> = links.into_iter().map(|(a, b)| (a % n, b % n)).filter(|(a, b)| a != b).collect();
            let mut routing = Routing::new(hosts.clone(), links.clone());
            for from in 0..n {
                let mut least = vec![None; n as usize];
                least[from as usize] = Some(0);
                for _ in 0..n {
                    for (i, &(a, b)) in links.iter().enumerate() {
                        for (at, next, direction) in [(a, b, 2 * i), (b, a, 2 * i + 1)] {
                            let forwards = at == from || !hosts[at as usize];
                            if let Some(so_far) = least[at as usize].filter(|_| forwards) {
                                let there = so_far + costs[direction];
                                let known = &mut least[next as usize];
                                *known = Some(known.map_or(there, |k: u64| k.min(there)));
                            }
                        }
                    }
                }
                for to in 0..n {
                    let found = routing.least(from, to, |d| costs[d as usize]);
                    prop_assert_eq!(found, least[to as usize], "from {} to {}", from, to);
                }
            }
        }
    }

    #[test]
    fn a_route_of_a_dumbbell_costs_the_same_whatever_its_size() {
        let cost = |pairs: u32| {
            let hosts = (0..2 * pairs).map(|_| true).chain([false, false]);
            let (left, right) = (2 * pairs, 2 * pairs + 1);
            let access = (0..pairs).flat_map(|i| [(i, left), (right, pairs + i)]);
            let mut routing = Routing::new(hosts, [(left, right)].into_iter().chain(access));
            for i in 0..pairs {
                assert_eq!(routing.route(i, pairs + i).unwrap().len(), 3);
                assert_eq!(routing.route(pairs + i, i).unwrap().len(), 3);
                assert_eq!(routing.least(i, pairs + i, |_| 5), Some(15));
            }
            routing.visited() / u64::from(pairs)
        };
        assert_eq!((cost(10), cost(10_000)), (10, 10));
    }
}

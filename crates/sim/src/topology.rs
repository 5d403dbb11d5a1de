//! Nodes, links and routes of a world.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gargalo_link::LinkConfig;

use crate::BuildError;
use crate::strip::Strip;

/// Index of a node.
pub type NodeId = u32;
/// Index of one direction of a link: twice the link's index, plus one for down (b to a).
pub type DirectionId = u32;

/// A host or a router.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name in the scenario.
    pub name: String,
    /// Routers forward, hosts do not.
    pub is_host: bool,
}

/// A link between two nodes.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its name in the scenario.
    pub name: String,
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// What happens from `a` to `b`.
    pub up: LinkConfig,
    /// What happens from `b` to `a`.
    pub down: LinkConfig,
    /// What takes Multipath TCP options out of packets from `a` to `b`, and from `b` to `a`.
    pub strip: [Option<Strip>; 2],
}

/// The network: a graph whose routes are shortest paths by hop count, then by order of the links.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All links.
    pub links: Vec<LinkSpec>,
}

impl Topology {
    /// The directions a packet takes from `from` to `to`.
    ///
    /// # Errors
    /// When no path exists.
    pub fn route(&self, from: NodeId, to: NodeId) -> Result<Vec<DirectionId>, BuildError> {
        self.route_without(from, to, &[])
    }

    /// Up to `most` routes that share no link, the shortest first: each is the shortest over the links
    /// that those before it left.
    ///
    /// # Errors
    /// When no path exists.
    pub fn disjoint_routes(
        &self,
        from: NodeId,
        to: NodeId,
        most: usize,
    ) -> Result<Vec<Vec<DirectionId>>, BuildError> {
        let first = self.route(from, to)?;
        let mut used = vec![false; self.links.len()];
        let mut routes = vec![first];
        while routes.len() < most {
            for direction in routes.iter().flatten() {
                used[*direction as usize / 2] = true;
            }
            match self.route_without(from, to, &used) {
                Ok(route) => routes.push(route),
                Err(_) => break,
            }
        }
        Ok(routes)
    }

    /// The links of a host in order, that of the usual route between two hosts first: its interfaces.
    pub fn interfaces(&self, of: NodeId, towards: NodeId) -> Vec<usize> {
        let usual = self.route(of, towards).ok();
        let usual = usual.and_then(|r| r.first().map(|d| *d as usize / 2));
        let own = |(i, l): (usize, &LinkSpec)| {
            ((l.a == of || l.b == of) && Some(i) != usual).then_some(i)
        };
        let others = self.links.iter().enumerate().filter_map(own);
        usual.into_iter().chain(others).collect()
    }

    /// The shortest route that begins with the link `first` and ends with the link `last`; where there is
    /// none, as between hosts with links of their own, the shortest that begins with `first`: packets
    /// leave by the interface of their source address.
    ///
    /// # Errors
    /// When nothing leads there.
    pub fn route_between(
        &self,
        (from, first): (NodeId, usize),
        (to, last): (NodeId, usize),
    ) -> Result<Vec<DirectionId>, BuildError> {
        let touches = |l: &LinkSpec, n: NodeId| l.a == n || l.b == n;
        let closed = |with_last: bool| -> Vec<bool> {
            let closed = |(i, l): (usize, &LinkSpec)| {
                (touches(l, from) && i != first) || (with_last && touches(l, to) && i != last)
            };
            self.links.iter().enumerate().map(closed).collect()
        };
        let strict = self.route_without(from, to, &closed(true));
        strict.or_else(|_| self.route_without(from, to, &closed(false)))
    }

    /// The shortest route over links that are not `used`; an empty list means none is.
    fn route_without(
        &self,
        from: NodeId,
        to: NodeId,
        used: &[bool],
    ) -> Result<Vec<DirectionId>, BuildError> {
        const FAR: u32 = u32::MAX;
        let n = self.nodes.len();
        let mut distance = vec![FAR; n];
        let mut via: Vec<Option<(NodeId, DirectionId)>> = vec![None; n];
        let mut heap = BinaryHeap::new();
        let neighbours = self.neighbours();
        distance[from as usize] = 0;
        heap.push(Reverse((0, from)));
        while let Some(Reverse((d, node))) = heap.pop() {
            if d > distance[node as usize] || node == to {
                continue;
            }
            if node != from && self.nodes[node as usize].is_host {
                continue; // hosts do not forward
            }
            for &(next, direction) in &neighbours[node as usize] {
                if used.get(direction as usize / 2) == Some(&true) {
                    continue;
                }
                if d + 1 < distance[next as usize] {
                    distance[next as usize] = d + 1;
                    via[next as usize] = Some((node, direction));
                    heap.push(Reverse((d + 1, next)));
                }
            }
        }
        let mut route = Vec::new();
        let mut at = to;
        while at != from {
            let Some((previous, direction)) = via[at as usize] else {
                return Err(BuildError::Unreachable {
                    from: self.nodes[from as usize].name.clone(),
                    to: self.nodes[to as usize].name.clone(),
                });
            };
            route.push(direction);
            at = previous;
        }
        route.reverse();
        Ok(route)
    }

    fn neighbours(&self) -> Vec<Vec<(NodeId, DirectionId)>> {
        let mut out = vec![Vec::new(); self.nodes.len()];
        for (i, l) in self.links.iter().enumerate() {
            let i = 2 * i as u32;
            out[l.a as usize].push((l.b, i));
            out[l.b as usize].push((l.a, i + 1));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(hosts: &[bool], links: &[(u32, u32)]) -> Topology {
        Topology {
            nodes: hosts
                .iter()
                .enumerate()
                .map(|(i, h)| Node {
                    name: format!("n{i}"),
                    is_host: *h,
                })
                .collect(),
            links: links
                .iter()
                .enumerate()
                .map(|(i, (a, b))| LinkSpec {
                    name: format!("l{i}"),
                    a: *a,
                    b: *b,
                    up: LinkConfig::default(),
                    down: LinkConfig::default(),
                    strip: [None; 2],
                })
                .collect(),
        }
    }

    #[test]
    fn routes_are_shortest_and_avoid_hosts() {
        // 0 (host) - 1 - 2 - 3 (host), and a shortcut through host 4 that must not forward.
        let t = graph(
            &[true, false, false, true, true],
            &[(0, 1), (1, 2), (3, 2), (0, 4), (4, 3)],
        );
        assert_eq!(t.route(0, 3).unwrap(), [0, 2, 5]);
        assert_eq!(t.route(3, 0).unwrap(), [4, 3, 1]);
        assert_eq!(t.route(0, 4).unwrap(), [6]);
    }

    #[test]
    fn disjoint_routes_share_no_link() {
        // Two parallel links and a way around over router 2.
        let t = graph(&[true, true, false], &[(0, 1), (0, 1), (0, 2), (2, 1)]);
        let routes = t.disjoint_routes(0, 1, 8).unwrap();
        assert_eq!(routes, [vec![0], vec![2], vec![4, 6]]);
        assert_eq!(t.disjoint_routes(1, 0, 2).unwrap(), [vec![1], vec![3]]);
    }

    #[test]
    fn routes_between_interfaces_leave_by_the_source_address() {
        // Host 0 has two links to router 1 and one straight to host 3; router 1 leads to host 3.
        let t = graph(
            &[true, false, false, true],
            &[(0, 1), (0, 1), (0, 3), (1, 3), (1, 2), (2, 3)],
        );
        assert_eq!(t.interfaces(0, 3), [2, 0, 1]);
        assert_eq!(t.interfaces(3, 0), [2, 3, 5]);
        assert_eq!(t.route_between((0, 1), (3, 3)).unwrap(), [2, 6]);
        assert_eq!(t.route_between((0, 0), (3, 5)).unwrap(), [0, 8, 10]);
        assert_eq!(t.route_between((3, 5), (0, 0)).unwrap(), [11, 9, 1]);
        // Nothing leads from link 0 to link 2: by link 0, and then the shortest.
        assert_eq!(t.route_between((0, 0), (3, 2)).unwrap(), [0, 6]);
        assert!(t.route_between((0, 4), (3, 2)).is_err());
    }

    #[test]
    fn no_path_is_an_error() {
        let t = graph(&[true, true], &[]);
        assert!(matches!(t.route(0, 1), Err(BuildError::Unreachable { .. })));
    }
}

//! Nodes, links and routes of a world.

use gargalo_link::LinkConfig;

use crate::routing::{NodeId, Routing};

/// There is no route from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no path from {from} to {to}: add a link or correct the flow's hosts")]
pub struct Unreachable {
    /// Name of the source host.
    pub from: String,
    /// Name of the destination host.
    pub to: String,
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name in the scenario.
    pub name: String,
    /// Routers forward, hosts do not.
    pub is_host: bool,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name in the scenario.
    pub name: String,
    /// The node at one end.
    pub a: NodeId,
    /// The node at the other end.
    pub b: NodeId,
    /// Configuration of the direction from `a` to `b`.
    pub up: LinkConfig,
    /// Configuration of the direction from `b` to `a`.
    pub down: LinkConfig,
}

/// The network: a graph whose routes are shortest paths by hop count, then by order of the links.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// All nodes; their index is the [`NodeId`].
    pub nodes: Vec<Node>,
    /// All links; their order decides between routes of equal length.
    pub links: Vec<LinkSpec>,
}

impl Topology {
    /// Creates a search for routes, which serves many queries.
    pub fn routing(&self) -> Routing {
        let hosts = self.nodes.iter().map(|n| n.is_host);
        Routing::new(hosts, self.links.iter().map(|l| (l.a, l.b)))
    }

    /// The error for two nodes without a route between them.
    pub fn unreachable(&self, from: NodeId, to: NodeId) -> Unreachable {
        Unreachable {
            from: self.nodes[from as usize].name.clone(),
            to: self.nodes[to as usize].name.clone(),
        }
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
                })
                .collect(),
        }
    }

    #[test]
    fn routes_are_shortest_and_avoid_hosts() {
        // 0 (host) - 1 - 2 - 3 (host), and a shortcut through host 4, which must not forward.
        let t = graph(
            &[true, false, false, true, true],
            &[(0, 1), (1, 2), (3, 2), (0, 4), (4, 3)],
        );
        assert_eq!(t.routing().route(0, 3).unwrap(), [0, 2, 5]);
        assert_eq!(t.routing().route(3, 0).unwrap(), [4, 3, 1]);
        assert_eq!(t.routing().route(0, 4).unwrap(), [6]);
    }

    #[test]
    fn disjoint_routes_share_no_link() {
        // Two parallel links and a way around over router 2.
        let t = graph(&[true, true, false], &[(0, 1), (0, 1), (0, 2), (2, 1)]);
        let routes = t.routing().disjoint(0, 1, 8);
        assert_eq!(routes, [vec![0], vec![2], vec![4, 6]]);
        assert_eq!(t.routing().disjoint(1, 0, 2), [vec![1], vec![3]]);
    }

    #[test]
    fn routes_between_interfaces_leave_by_the_source_address() {
        // Host 0 has two links to router 1 and one directly to host 3; router 1 leads to host 3.
        let t = graph(
            &[true, false, false, true],
            &[(0, 1), (0, 1), (0, 3), (1, 3), (1, 2), (2, 3)],
        );
        assert_eq!(t.routing().interfaces(0, 3), [2, 0, 1]);
        assert_eq!(t.routing().interfaces(3, 0), [2, 3, 5]);
        assert_eq!(t.routing().between((0, 1), (3, 3)).unwrap(), [2, 6]);
        assert_eq!(t.routing().between((0, 0), (3, 5)).unwrap(), [0, 8, 10]);
        assert_eq!(t.routing().between((3, 5), (0, 0)).unwrap(), [11, 9, 1]);
        // No route leads from link 0 to link 2: the result begins with link 0 and is then the shortest.
        assert_eq!(t.routing().between((0, 0), (3, 2)).unwrap(), [0, 6]);
        assert!(t.routing().between((0, 4), (3, 2)).is_none());
    }

    #[test]
    fn without_a_path_there_is_no_route() {
        let t = graph(&[true, true], &[]);
        assert_eq!(t.routing().route(0, 1), None);
    }
}

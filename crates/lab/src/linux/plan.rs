//! Addresses of hosts and paths between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gargalo_flow::{MptcpSpec, NodeId, Routing, Topology, Unreachable};

use crate::linux::fabric::{Direction, PortId};

/// Most interfaces of all hosts together.
const MOST: usize = 60_000;

/// A network interface of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The host that the interface belongs to.
    pub host: NodeId,
    /// Index of the link it is attached to.
    pub link: u32,
    /// Number among the interfaces of its host.
    pub number: u32,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
    /// Another IPv4 address, to which a QUIC client can migrate.
    pub other: Ipv4Addr,
}

impl Interface {
    fn new(host: NodeId, link: u32, number: u32, index: usize) -> Self {
        let (high, low) = ((index / 250) as u8, (index % 250) as u8 + 1);
        Self {
            host,
            link,
            number,
            v4: Ipv4Addr::new(10, 77, high, low),
            other: Ipv4Addr::new(10, 78, high, low),
            v6: Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, index as u16 + 1),
        }
    }

    /// Returns all its addresses.
    pub fn addresses(&self) -> [IpAddr; 3] {
        [self.v4.into(), self.v6.into(), self.other.into()]
    }
}

/// A path from one interface to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its first interface: index in [`Plan::interfaces`], which is also the port number.
    pub from: PortId,
    /// Its last interface.
    pub to: PortId,
    /// Link directions between them.
    pub hops: Vec<Direction>,
}

/// Interfaces and paths of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// All interfaces, by host, then by link.
    pub interfaces: Vec<Interface>,
    /// Paths of all requested pairs of hosts.
    pub ways: Vec<Way>,
    /// For pairs of hosts with Multipath TCP: the paths of packets from each interface to each address of the peer.
    /// Packets leave by the interface of their source address.
    pub mesh: Vec<Passage>,
}

/// The path of packets from an interface to the addresses of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The interface to whose addresses the packets are sent; they may arrive at another interface of the same host.
    pub destination: PortId,
    /// The interfaces at its ends, and the link directions between them.
    pub way: Way,
}

/// Why a plan is not possible.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no route.
    #[error(transparent)]
    Route(#[from] Unreachable),
    /// There are more interfaces than addresses.
    #[error("hosts have {0} interfaces in all, more than the {MOST} that can get addresses")]
    Interfaces(usize),
}

impl Plan {
    /// Assigns an address to every attachment of a host to a link, and to each of these pairs of hosts its paths in
    /// both directions: as many as share no link, the shortest first.
    ///
    /// Those of `pairs` that are in `multipath` also get a mesh.
    ///
    /// # Errors
    /// When a pair has no route, or there are too many interfaces.
    pub fn new(
        topology: &Topology,
        pairs: &[(NodeId, NodeId)],
        multipath: &[(NodeId, NodeId)],
    ) -> Result<Self, PlanError> {
        let mut interfaces = Vec::new();
        let mut at: BTreeMap<(NodeId, u32), PortId> = BTreeMap::new();
        for (host, node) in topology.nodes.iter().enumerate() {
            if !node.is_host {
                continue;
            }
            let host = host as NodeId;
            let attached = topology.links.iter().enumerate();
            let attached = attached.filter(|(_, l)| l.a == host || l.b == host);
            for (number, (link, _)) in attached.enumerate() {
                let index = interfaces.len();
                at.insert((host, link as u32), index as PortId);
                interfaces.push(Interface::new(host, link as u32, number as u32, index));
            }
        }
        if interfaces.len() > MOST {
            return Err(PlanError::Interfaces(interfaces.len()));
        }
        let mut routing = topology.routing();
        let mut ways = Vec::new();
        let mut done = std::collections::BTreeSet::new();
        for &(a, b) in pairs {
            let pair = (a.min(b), a.max(b));
            if a == b || !done.insert(pair) {
                continue;
            }
            let routes = routing.disjoint(pair.0, pair.1, usize::MAX);
            if routes.is_empty() {
                return Err(topology.unreachable(pair.0, pair.1).into());
            }
            for hops in routes {
                let ends = hops.first().zip(hops.last());
                let end = |host, direction: &Direction| at.get(&(host, direction / 2)).copied();
                let Some((first, last)) = ends else { continue };
                let (Some(from), Some(to)) = (end(pair.0, first), end(pair.1, last)) else {
                    continue;
                };
                let back = hops.iter().rev().map(|d| d ^ 1).collect();
                ways.push(Way { from, to, hops });
                ways.push(Way {
                    from: to,
                    to: from,
                    hops: back,
                });
            }
        }
        let mut mesh = Vec::new();
        let mut done = std::collections::BTreeSet::new();
        for &(a, b) in multipath {
            if a == b || !done.insert((a.min(b), a.max(b))) {
                continue;
            }
            for (from, to) in [(a, b), (b, a)] {
                mesh.extend(passages(&mut routing, &at, from, to));
            }
        }
        Ok(Self {
            interfaces,
            ways,
            mesh,
        })
    }

    /// The interfaces of a host that a flow with a peer may use, the usual one first.
    pub fn towards(&self, topology: &Topology, host: NodeId, peer: NodeId) -> Vec<&Interface> {
        let links = topology.routing().interfaces(host, peer);
        let own = |link: usize| self.of(host).find(|(_, i)| i.link as usize == link);
        links.into_iter().filter_map(own).map(|(_, i)| i).collect()
    }

    /// The interfaces of a host, with their port numbers.
    pub fn of(&self, host: NodeId) -> impl Iterator<Item = (PortId, &Interface)> {
        let all = self.interfaces.iter().enumerate();
        all.filter(move |(_, i)| i.host == host)
            .map(|(p, i)| (p as PortId, i))
    }

    /// The interfaces at both ends of each path between two hosts, the shortest path first.
    pub fn ways_between(
        &self,
        from: NodeId,
        to: NodeId,
    ) -> impl Iterator<Item = (&Interface, &Interface)> {
        let ends = self.ways.iter().map(|w| {
            let interface = |p: PortId| &self.interfaces[p as usize];
            (interface(w.from), interface(w.to))
        });
        ends.filter(move |(a, b)| a.host == from && b.host == to)
    }
}

/// The paths of packets from each interface of a host to each interface of another.
fn passages(
    routing: &mut Routing,
    at: &BTreeMap<(NodeId, u32), PortId>,
    from: NodeId,
    to: NodeId,
) -> Vec<Passage> {
    let port = |host, link: usize| at.get(&(host, link as u32)).copied();
    let mut all = Vec::new();
    for near in routing.interfaces(from, to) {
        for far in routing.interfaces(to, from) {
            let Some(hops) = routing.between((from, near), (to, far)) else {
                continue;
            };
            let exit = hops.last().and_then(|d| port(to, *d as usize / 2));
            let ends = (port(from, near), port(to, far), exit);
            if let (Some(near), Some(destination), Some(exit)) = ends {
                let way = Way {
                    from: near,
                    to: exit,
                    hops,
                };
                all.push(Passage { destination, way });
            }
        }
    }
    all
}

/// An interface that a flow may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) address: IpAddr,
    pub(crate) link: usize,
    /// It is used from the beginning.
    pub(crate) up: bool,
    pub(crate) backup: bool,
}

/// The interfaces of a host that a flow with a peer may use, in the order of their use.
pub(crate) fn taking_part<'a>(
    plan: &'a Plan,
    topology: &Topology,
    (host, peer): (NodeId, NodeId),
    mptcp: &MptcpSpec,
) -> Vec<(&'a Interface, Part)> {
    let all = plan.towards(topology, host, peer).into_iter();
    let part = |i: &Interface| {
        let link = i.link as usize;
        Part {
            address: i.v4.into(),
            link,
            up: mptcp.links.as_ref().is_none_or(|l| l.contains(&link)),
            backup: mptcp.backups.contains(&link),
        }
    };
    all.map(|i| (i, part(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_flow::{LinkSpec, Node};
    use gargalo_link::LinkConfig;

    fn topology(hosts: &[bool], links: &[(u32, u32)]) -> Topology {
        let node = |(i, is_host): (usize, &bool)| Node {
            name: format!("n{i}"),
            is_host: *is_host,
        };
        let link = |(i, (a, b)): (usize, &(u32, u32))| LinkSpec {
            name: format!("l{i}"),
            a: *a,
            b: *b,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
        };
        Topology {
            nodes: hosts.iter().enumerate().map(node).collect(),
            links: links.iter().enumerate().map(link).collect(),
        }
    }

    #[test]
    fn every_path_has_its_own_pair_of_addresses() {
        let plan = Plan::new(
            &topology(&[true, true], &[(0, 1), (0, 1)]),
            &[(0, 1), (1, 0)],
            &[(1, 0)],
        )
        .unwrap();
        assert_eq!(plan.interfaces.len(), 4);
        let ends: Vec<_> = plan
            .ways
            .iter()
            .map(|w| (w.from, w.to, w.hops.clone()))
            .collect();
        assert_eq!(
            ends,
            [
                (0, 2, vec![0]),
                (2, 0, vec![1]),
                (1, 3, vec![2]),
                (3, 1, vec![3]),
            ]
        );
        // Across, a packet leaves by the link of its source and arrives at the other end of that link.
        let across = plan
            .mesh
            .iter()
            .find(|m| (m.way.from, m.destination) == (0, 3));
        assert_eq!(
            across.map(|m| (m.way.to, m.way.hops.clone())),
            Some((2, vec![0]))
        );
        assert_eq!(plan.mesh.len(), 8);
        let (a, b) = plan.ways_between(1, 0).next().unwrap();
        assert_eq!((a.v4.octets()[3], b.v4.octets()[3]), (3, 1));
    }

    #[test]
    fn ways_lead_over_routers_and_back() {
        let plan = Plan::new(
            &topology(&[true, false, true], &[(0, 1), (2, 1)]),
            &[(0, 2)],
            &[],
        )
        .unwrap();
        assert_eq!(plan.ways[0].hops, [0, 3]);
        assert_eq!(plan.ways[1].hops, [2, 1]);
        let apart = Plan::new(&topology(&[true, true], &[]), &[(0, 1)], &[]);
        assert!(matches!(apart, Err(PlanError::Route(_))));
    }
}

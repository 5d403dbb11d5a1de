//! One end of a Multipath TCP flow: its connection, its interfaces and its subflows.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gargalo_flow::{NodeId, SubflowResult, Topology, describe_subflow};
use gargalo_mptcp::{Addresses, Connection};
use gargalo_units::Instant;

use crate::address::{address, interface_address};

/// One end of a Multipath TCP flow.
#[derive(Debug)]
pub(crate) struct MptcpSide {
    pub connection: Connection,
    /// The local node and the peer's.
    pub nodes: (NodeId, NodeId),
    /// The links of the local interfaces and of the peer's.
    pub links: (Arc<[usize]>, Arc<[usize]>),
    /// Whether the address of each interface is present.
    pub up: Vec<bool>,
    /// Handles of routes by local interface, then by the peer's: not looked up yet, no route, or a route.
    pub routes: Vec<Option<Option<u32>>>,
    /// Gateways by which packets may be sent, with the routes.
    pub gateways: Vec<(NodeId, u32)>,
    /// Results of the subflows so far.
    pub subflows: Vec<SubflowResult>,
    /// Most bytes in the reordering queue.
    pub out_of_order_max: u64,
}

/// The interface of an address; see [`interface_address`].
pub(crate) fn interface(address: SocketAddr) -> Option<u8> {
    match address.ip() {
        IpAddr::V4(a) => Some(a.octets()[1]),
        IpAddr::V6(_) => None,
    }
}

/// The address of a router, for the path manager.
pub(crate) fn router_address(node: NodeId) -> IpAddr {
    address(node).into()
}

impl MptcpSide {
    /// Creates the end at the first of two nodes, before it has subflows. `links` are those of its interfaces and of
    /// the peer's.
    pub(crate) fn new(
        connection: Connection,
        nodes: (NodeId, NodeId),
        links: (&Arc<[usize]>, &Arc<[usize]>),
        up: Vec<bool>,
        gateways: Vec<(NodeId, u32)>,
    ) -> Self {
        Self {
            connection,
            nodes,
            routes: vec![None; links.0.len() * links.1.len()],
            links: (Arc::clone(links.0), Arc::clone(links.1)),
            up,
            gateways,
            subflows: Vec::new(),
            out_of_order_max: 0,
        }
    }

    pub(crate) fn address(&self, interface: u8, port: u16) -> SocketAddr {
        SocketAddr::new(interface_address(self.nodes.0, interface).into(), port)
    }

    pub(crate) fn peer_address(&self, interface: u8, port: u16) -> SocketAddr {
        SocketAddr::new(interface_address(self.nodes.1, interface).into(), port)
    }

    pub(crate) fn is_up(&self, interface: u8) -> bool {
        self.up.get(usize::from(interface)) == Some(&true)
    }

    pub(crate) fn known(&mut self, id: u32) -> Option<&mut SubflowResult> {
        let mut all = self.subflows.iter_mut().rev();
        all.find(|s| s.id == id)
    }

    /// The links of a subflow's interfaces, local and remote.
    pub(crate) fn links_of(&self, addresses: Addresses) -> Option<(usize, usize)> {
        let near = self.links.0.get(usize::from(interface(addresses.local)?));
        let far = self.links.1.get(usize::from(interface(addresses.remote)?));
        Some((*near?, *far?))
    }

    /// Records the state of subflows that have ended.
    pub(crate) fn note(&mut self, now: Instant) {
        while let Some(s) = self.connection.poll_ended() {
            if let Some(k) = self.known(s.id) {
                k.record(&s);
                k.closed = Some(now);
            }
        }
    }

    /// Records the state of all subflows.
    pub(crate) fn look(&mut self, now: Instant) {
        self.note(now);
        let live: Vec<_> = self.connection.subflows(now).collect();
        for s in &live {
            if let Some(k) = self.known(s.id) {
                k.record(s);
            }
        }
    }

    /// The gateway of an address: its node and the route by it.
    pub(crate) fn gateway(&self, address: IpAddr) -> Option<(NodeId, u32)> {
        let mut all = self.gateways.iter().copied();
        all.find(|(node, _)| router_address(*node) == address)
    }

    /// Describes a subflow for the events table.
    pub(crate) fn about(&self, topology: &Topology, id: u32, addresses: Addresses) -> String {
        let name = |l: usize| topology.links[l].name.as_str();
        match self.links_of(addresses) {
            Some((near, far)) => describe_subflow(id, (name(near), name(far))),
            None => format!("subflow={id} {addresses}"),
        }
    }

    /// Records a subflow that has opened.
    pub(crate) fn opened(&mut self, id: u32, addresses: Addresses, now: Instant) {
        let Some((link, reverse_link)) = self.links_of(addresses) else {
            return;
        };
        let mut open = self.connection.subflows(now);
        let gateway = open.find(|s| s.id == id).and_then(|s| s.gateway);
        drop(open);
        let gateway = gateway.and_then(|g| self.gateway(g)).map(|(n, _)| n);
        self.subflows.push(SubflowResult::opened(
            id,
            (link, reverse_link),
            gateway,
            now,
        ));
    }
}

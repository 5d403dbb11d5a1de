//! Routes of flows, for settings that depend on them: bandwidth-delay products, segment sizes, reachability.

use gargalo_flow::Routing;
use gargalo_units::Duration;

use super::Network;
use super::links::base_delay;

/// Finds the same routes as the simulator.
pub(crate) struct Routes(Routing);

/// A route as a list of links, each with whether it is taken from its second end to its first.
pub(crate) type Route = Vec<(usize, bool)>;

impl Routes {
    pub(crate) fn new(net: &Network) -> Self {
        let hosts = net.nodes.iter().map(|n| n.is_host);
        let links = net.links.iter().map(|l| (l.a, l.b));
        Self(Routing::new(hosts, links))
    }

    /// The route between two nodes on the path of this number, if there is one.
    pub(crate) fn find(&mut self, from: usize, to: usize, path: u8) -> Option<Route> {
        let route = self.0.nth(from as u32, to as u32, path)?;
        let step = |d: u32| (d as usize / 2, d % 2 == 1);
        Some(route.into_iter().map(step).collect())
    }

    /// The links of a node, in order.
    pub(crate) fn links_of(&self, node: usize) -> impl Iterator<Item = usize> {
        self.0.links_of(node as u32)
    }
}

/// Base round-trip time of a route: propagation only.
pub(crate) fn base_rtt(net: &Network, route: &Route) -> Duration {
    let both = route.iter().map(|(link, _)| {
        let l = &net.links[*link];
        base_delay(&l.up)
            .as_nanos()
            .saturating_add(base_delay(&l.down).as_nanos())
    });
    Duration::from_nanos(both.fold(0, u64::saturating_add))
}

/// The smallest MTU on a route, in both directions.
pub(crate) fn mtu(net: &Network, route: &Route) -> u32 {
    let both = route.iter().map(|(link, _)| {
        let l = &net.links[*link];
        l.up.mtu.min(l.down.mtu)
    });
    both.min().unwrap_or(65_535)
}

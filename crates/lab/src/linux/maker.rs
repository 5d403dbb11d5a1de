//! Creates a flow of a scenario and its two ends at hosts of the lab.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gargalo_device::NetNs;
use gargalo_flow::{FlowSpec, NodeId, Topology, TransportSpec, rng};
use gargalo_mptcp::Names;

use crate::linux::plan::Plan;
use crate::linux::plan::{Part, taking_part};
use crate::linux::traffic::{Flow, Inbox, Surroundings, client_port, server_port};
use crate::linux::{kernel, station};
use crate::{Error, Result};

/// Creates flows, and passes their ends to hosts.
pub(crate) struct Maker {
    pub(crate) plan: Arc<Plan>,
    pub(crate) topology: Topology,
    pub(crate) seed: u64,
    /// Settings common to all flows.
    pub(crate) around: Surroundings,
    /// The link of each address.
    pub(crate) names: Names,
    /// The namespaces of hosts with the kernel's stack, by node.
    pub(crate) kernels: Vec<Option<Arc<NetNs>>>,
    /// The inbox of ends at hosts with the kernel's stack,
    pub(crate) to_kernel: Arc<Inbox<kernel::End>>,
    /// and those of ends at hosts with our stack, by node.
    pub(crate) to_stations: Vec<Arc<Inbox<station::End>>>,
}

/// An end of a flow, with its host.
pub(crate) enum HostEnd {
    Kernel(kernel::End),
    Station(NodeId, station::End),
}

impl Maker {
    /// Creates a flow with random streams of this name, and its two ends, the server first.
    pub(crate) fn make(
        &self,
        spec: FlowSpec,
        stream: &str,
        around: Surroundings,
    ) -> Result<(Arc<Flow>, [HostEnd; 2])> {
        let (from, to) = (spec.from, spec.to);
        let parts = |host, peer| match &spec.transport {
            TransportSpec::Mptcp(mptcp) => {
                let all = taking_part(&self.plan, &self.topology, (host, peer), mptcp);
                all.into_iter().map(|(_, part)| part).collect()
            }
            _ => Vec::new(),
        };
        let (near, far) = (parts(from, to), parts(to, from));
        let paths = paths(&self.plan, &spec, &near, &far);
        let Some([client, server]) = paths.first().copied() else {
            return Err(self.no_way(&spec));
        };
        let streams = |what: &str| rng::stream(self.seed, &format!("{stream}/{what}"));
        let mut ways = self.plan.ways_between(from, to);
        let first = ways.nth(spec.path.into());
        let around = Surroundings {
            other: first.map(|(near, _)| near.other.into()),
            ..around
        };
        let flow = Arc::new(Flow::new(spec, paths, around, streams));
        if let (Some(run), Some(quic)) = (&flow.run, flow.quic()) {
            run.check(&flow.spec, quic, flow.paths[0])?;
        }
        let place = |(side, node, local, remote, parts): (usize, NodeId, _, _, Vec<Part>)| {
            let flow = Arc::clone(&flow);
            match &self.kernels[node as usize] {
                Some(host) => HostEnd::Kernel(kernel::End {
                    flow,
                    side,
                    host: Arc::clone(host),
                    local,
                    remote,
                }),
                None => HostEnd::Station(
                    node,
                    station::End {
                        flow,
                        side,
                        local,
                        remote,
                        parts,
                        names: self.names.clone(),
                    },
                ),
            }
        };
        let ends = [
            (1, to, server, client, far),
            (0, from, client, server, near),
        ];
        let ends = ends.map(place);
        Ok((flow, ends))
    }

    /// Passes an end to its host, which is running.
    pub(crate) fn hand_over(&self, end: HostEnd) {
        match end {
            HostEnd::Kernel(end) => self.to_kernel.push(end),
            HostEnd::Station(node, end) => self.to_stations[node as usize].push(end),
        }
    }

    fn no_way(&self, spec: &FlowSpec) -> Error {
        let router = [spec.from, spec.to].map(|n| &self.topology.nodes[n as usize]);
        let why = match router.iter().find(|n| !n.is_host) {
            Some(n) => format!(
                "{0} forwards packets of others and has no interfaces; name {0} in topology.graph.hosts",
                n.name
            ),
            None => "no path".to_owned(),
        };
        Error::Unsupported(format!("flow {} ({}): {why}", spec.id, spec.label))
    }
}

/// The addresses and ports between which a flow's connection is opened; for multipath QUIC those of all its paths.
fn paths(plan: &Plan, flow: &FlowSpec, near: &[Part], far: &[Part]) -> Vec<[SocketAddr; 2]> {
    let ports = [client_port(flow.id), server_port(flow.id)];
    let with_ports = |(near, far): (IpAddr, IpAddr)| {
        [
            SocketAddr::new(near, ports[0]),
            SocketAddr::new(far, ports[1]),
        ]
    };
    if let TransportSpec::Mptcp(_) = &flow.transport {
        let first = |parts: &[Part]| parts.iter().find(|p| p.up).map(|p| p.address);
        let ends = first(near).zip(first(far));
        return ends.map(with_ports).into_iter().collect();
    }
    let most = match &flow.transport {
        TransportSpec::Quic(quic) => quic.config.paths() as usize,
        _ => 1,
    };
    let ways = plan.ways_between(flow.from, flow.to);
    let ways = ways.skip(flow.path.into()).take(most);
    ways.map(|(a, b)| with_ports((a.v4.into(), b.v4.into())))
        .collect()
}

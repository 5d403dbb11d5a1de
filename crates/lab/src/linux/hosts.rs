//! Hosts of a scenario: namespaces with interfaces, addresses and routes, or our own stacks.

use std::fmt::Write;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;

use gargalo_flow::{FlowSpec, NodeId, Topology, TransportSpec, rng};
use gargalo_host::HostConfig;
use gargalo_units::{Bytes, Instant};
use rand::Rng;

use crate::linux::engine::Engine;
use crate::linux::fabric::PortId;
use crate::linux::plan::taking_part;
use crate::linux::plan::{Interface, Plan};
use crate::linux::station::{self, Station};
use crate::linux::traffic::{Inbox, Recorder};
use crate::linux::{kernel, sandbox};
use crate::multipath::KernelMptcp;
use crate::spec::{LabSpec, Stack};
use crate::{Error, Result};
use gargalo_device::Device;
use gargalo_device::NetNs;
use gargalo_device::netlink::{Netlink, Route, any};
use gargalo_device::path_manager::{Endpoint, PathManager};

/// Largest socket buffers, the same as those of our own stack: they must not limit the window of a flow.
const BUFFERS: &str = "4096 131072 67108864";

/// Datagrams that a socket of our stack holds: as many bytes as a kernel socket here.
const UDP_BUFFER: Bytes = Bytes::new(4 << 20);

/// A host with the kernel's stack.
#[derive(Clone, Debug)]
pub(crate) struct KernelHost {
    pub(crate) namespace: Arc<NetNs>,
    /// Congestion control to be set on every route, because the namespace cannot set it itself.
    congestion: Option<String>,
}

/// Creates a namespace for every host with the kernel's stack.
pub(crate) fn make_hosts(spec: &LabSpec, plan: &Plan) -> Result<Vec<Option<KernelHost>>> {
    let mut hosts = Vec::with_capacity(spec.stacks.len());
    for (i, stack) in spec.stacks.iter().enumerate() {
        let takes_part = plan.of(i as NodeId).next().is_some();
        let host = match stack {
            Stack::Kernel {
                congestion,
                settings,
            } if takes_part => {
                let host = NetNs::new()?;
                configure(&host, spec, i as NodeId)?;
                // A setting that the system does not permit every user is not permitted in any namespace but the
                // first; routes are.
                let chosen = congestion
                    .as_ref()
                    .map(|name| host.set("ipv4/tcp_congestion_control", name));
                let by_route = match chosen {
                    Some(Err(gargalo_device::Error::System { reason, .. }))
                        if reason.kind() == ErrorKind::PermissionDenied =>
                    {
                        congestion.clone()
                    }
                    Some(Err(e)) => return Err(e.into()),
                    Some(Ok(())) | None => None,
                };
                for (name, value) in settings {
                    let name = name.strip_prefix("net.").unwrap_or(name);
                    host.set(&name.replace('.', "/"), value)?;
                }
                Some(KernelHost {
                    namespace: Arc::new(host),
                    congestion: by_route,
                })
            }
            _ => None,
        };
        hosts.push(host);
    }
    Ok(hosts)
}

/// Makes the settings that are needed to compare runs with each other and with our stack.
fn configure(host: &NetNs, spec: &LabSpec, node: NodeId) -> Result<()> {
    // Metrics of earlier connections must not affect later ones.
    host.set("ipv4/tcp_no_metrics_save", "1")?;
    host.set("ipv4/tcp_rmem", BUFFERS)?;
    host.set("ipv4/tcp_wmem", BUFFERS)?;
    let sources = spec.population.sources.iter();
    let by_sources = sources
        .filter(|s| s.pairs.iter().any(|(a, b)| [*a, *b].contains(&node)))
        .any(|s| kernel::wants_ecn(&s.transport.config));
    let ecn = by_sources
        || flows(spec).any(|f| {
            let here = f.from == node || f.to == node;
            let tcp = match &f.transport {
                TransportSpec::Tcp(tcp) => Some(&tcp.config),
                TransportSpec::Mptcp(mptcp) => Some(&mptcp.config.tcp),
                _ => None,
            };
            here && tcp.is_some_and(|tcp| kernel::wants_ecn(tcp))
        });
    if ecn {
        host.set("ipv4/tcp_ecn", "1")?;
    }
    if has_multipath(spec, node) {
        if host.get("mptcp/enabled").is_ok_and(|v| v != "1") {
            host.set("mptcp/enabled", "1")?;
        }
        // A response may leave by another interface than the one at which the request arrived.
        host.set("ipv4/conf/all/rp_filter", "0")?;
        host.set("ipv4/conf/default/rp_filter", "0")?;
    }
    Ok(())
}

/// The flows that exist from the beginning, and those that start later.
fn flows(spec: &LabSpec) -> impl Iterator<Item = &FlowSpec> {
    spec.flows.iter().chain(&spec.population.flows)
}

/// Whether a flow with Multipath TCP begins or ends at the host.
fn has_multipath(spec: &LabSpec, node: NodeId) -> bool {
    let here = |f: &&FlowSpec| f.from == node || f.to == node;
    let mut flows = flows(spec).filter(here);
    flows.any(|f| matches!(f.transport, TransportSpec::Mptcp(_)))
}

/// The configuration of the path manager at a host with the kernel's stack.
fn path_manager_config(spec: &LabSpec, plan: &Plan, node: NodeId) -> Result<KernelMptcp> {
    if let Some(given) = spec.multipath.kernels.get(&node) {
        return Ok(given.clone());
    }
    let mut all = KernelMptcp::default();
    for f in flows(spec) {
        let TransportSpec::Mptcp(mptcp) = &f.transport else {
            continue;
        };
        let peer = match node {
            n if n == f.from => f.to,
            n if n == f.to => f.from,
            _ => continue,
        };
        let part = taking_part(plan, &spec.topology, (node, peer), mptcp);
        let paths: Vec<(u32, bool)> = part
            .iter()
            .filter(|(_, p)| p.up)
            .map(|(i, p)| (i.number, p.backup))
            .collect();
        let manager = mptcp.config.path_manager.name();
        let one = KernelMptcp::suggested(manager, node == f.from, &paths);
        all.merge(one.map_err(|name| {
            Error::Unsupported(format!(
                "flow {} ({}): the kernel's path manager cannot do what {name} does; take default, \
                 single-mesh or full-mesh, or give the host stack = \"gargalo\"",
                f.id, f.label
            ))
        })?);
    }
    Ok(all)
}

/// Configures the path manager of a host.
fn manage_paths(spec: &LabSpec, plan: &Plan, node: NodeId, host: &KernelHost) -> Result<()> {
    let config = path_manager_config(spec, plan, node)?;
    let address = |number| {
        plan.of(node)
            .find(|(_, i)| i.number == number)
            .map(|(_, i)| i.v4)
    };
    host.namespace.run(|| {
        let mut manager = PathManager::open()?;
        manager.set_limits(config.subflows, config.accepted)?;
        for e in &config.endpoints {
            let address = address(e.interface).ok_or_else(|| {
                Error::Unsupported(format!(
                    "an MPTCP endpoint is on interface {}, which its host does not have",
                    e.interface
                ))
            })?;
            manager.add(&Endpoint {
                address: address.into(),
                id: None,
                signal: e.signal,
                subflow: e.subflow,
                backup: e.backup,
                fullmesh: e.fullmesh,
            })?;
        }
        Ok(())
    })
}

/// Attaches every interface to the network, in the order of the plan; returns the kind of device.
pub(crate) fn attach(
    spec: &LabSpec,
    plan: &Plan,
    hosts: &[Option<KernelHost>],
    engine: &mut Engine,
    (mut ends, inboxes): (Vec<Vec<station::End>>, &[Arc<Inbox<station::End>>]),
    recorder: &Arc<Recorder>,
) -> Result<&'static str> {
    let mut kind = "none";
    let mut done = vec![false; hosts.len()];
    // The plan lists the interfaces of each host in sequence.
    for (port, interface) in plan.interfaces.iter().enumerate() {
        let node = interface.host as usize;
        let link = &spec.topology.links[interface.link as usize];
        let mtu = link.up.mtu.min(link.down.mtu);
        if let Some(host) = &hosts[node] {
            let name = format!("eth{}", interface.number);
            let device = Device::new(&host.namespace, &name, mtu, spec.devices)?;
            kind = device.kind();
            let (index, congestion) = (device.index(), host.congestion.as_deref());
            let by_source = has_multipath(spec, interface.host);
            host.namespace
                .run(|| address(plan, port as u32, interface, index, congestion, by_source))?;
            engine.attach_device(device);
            continue;
        }
        if std::mem::replace(&mut done[node], true) {
            continue;
        }
        let own: Vec<&Interface> = plan.of(interface.host).map(|(_, i)| i).collect();
        let ports: Vec<Vec<IpAddr>> = own.iter().map(|i| i.addresses().to_vec()).collect();
        let seed = rng::stream(spec.seed, &format!("host/{node}")).next_u64();
        let config = HostConfig {
            mtu,
            seed,
            udp_buffer: UDP_BUFFER,
            ..HostConfig::new(ports.concat())
        };
        let (inbox, recorder) = (Arc::clone(&inboxes[node]), Arc::clone(recorder));
        let mut station = Station::new(config, inbox, recorder, Instant::ZERO)?;
        for end in std::mem::take(&mut ends[node]) {
            station.add(end)?;
        }
        engine.attach_station(Box::new(station), &ports);
    }
    for (node, host) in hosts.iter().enumerate() {
        if let Some(host) = host
            && has_multipath(spec, node as NodeId)
        {
            manage_paths(spec, plan, node as NodeId, host)?;
        }
    }
    Ok(kind)
}

/// First of the routing tables for packets from the addresses of one interface.
const TABLES: u32 = 1000;

/// Gives an interface its addresses, and routes to everything that is reachable from it. `by_source`: packets from its
/// addresses leave by it, whatever their destination.
fn address(
    plan: &Plan,
    port: u32,
    interface: &Interface,
    index: u32,
    congestion: Option<&str>,
    by_source: bool,
) -> Result<()> {
    let mut netlink = Netlink::open()?;
    let mut route = |table, destination, prefix, own| {
        netlink.add(&Route {
            index,
            destination,
            prefix,
            source: Some(own),
            congestion,
            table,
        })
    };
    let table = TABLES + interface.number;
    for own in interface.addresses() {
        let prefix = if own.is_ipv4() { 32 } else { 128 };
        Netlink::open()?.add_address(index, own, prefix)?;
        if by_source {
            route(Some(table), any(own), 0, own)?;
            Netlink::open()?.add_rule(own, table)?;
        }
        if interface.number == 0 {
            route(None, any(own), 0, own)?;
        }
        for far in reached(plan, port) {
            let far = plan.interfaces[far as usize].addresses();
            for there in far.into_iter().filter(|a| a.is_ipv4() == own.is_ipv4()) {
                route(None, there, prefix, own)?;
            }
        }
    }
    Ok(())
}

/// The interfaces whose addresses are reached by a port when a program did not choose one: each by the path that ends
/// there, or else by the first path that leads there.
fn reached(plan: &Plan, port: PortId) -> Vec<PortId> {
    let host = |p: PortId| plan.interfaces[p as usize].host;
    let own = plan.ways.iter().filter(|w| w.from == port).map(|w| w.to);
    let mut all: Vec<PortId> = own.collect();
    for m in plan.mesh.iter().filter(|m| m.way.from == port) {
        let same = |from: PortId, to: PortId| host(from) == host(port) && to == m.destination;
        let exact = plan.ways.iter().any(|w| same(w.from, w.to));
        let mut others = plan.mesh.iter().filter(|o| same(o.way.from, o.destination));
        if !exact && others.next() == Some(m) {
            all.push(m.destination);
        }
    }
    all
}

/// `GARGALO_NAME` is the first address of every host, for programs.
pub(crate) fn environment(topology: &Topology, plan: &Plan) -> Vec<(String, String)> {
    let hosts = topology.nodes.iter().enumerate().filter(|(_, n)| n.is_host);
    hosts
        .filter_map(|(i, node)| {
            let (_, first) = plan.of(i as NodeId).next()?;
            let name: String = node
                .name
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() {
                        c.to_ascii_uppercase()
                    } else {
                        '_'
                    }
                })
                .collect();
            Some((format!("GARGALO_{name}"), first.v4.to_string()))
        })
        .collect()
}

/// Lets programs find hosts by name: each first interface by `NAME`, the further ones also by `NAME-1`, ….
pub(crate) fn name_hosts(topology: &Topology, plan: &Plan) -> Result<()> {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for i in &plan.interfaces {
        let name = &topology.nodes[i.host as usize].name;
        let own = match i.number {
            0 => name.clone(),
            n => format!("{name}-{n}"),
        };
        let _ = writeln!(text, "{} {own}\n{} {own}", i.v4, i.v6);
    }
    sandbox::set_host_names(&text)
}

//! A scenario in real time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

pub use gargalo_flow::Watch;
use gargalo_flow::{FlowSpec, NodeId, Outcome, Phase, Progress, TransportSpec, Window, rng};
use gargalo_mptcp::Names;
use gargalo_units::Instant;

use crate::capture::Capture;
use crate::commands::{CommandResult, Commands};
use crate::counters;
use crate::engine::{Engine, EngineStats, Stop};
use crate::hosts::{KernelHost, attach, environment, make_hosts, name_hosts};
use crate::kernel::{self, KernelTraffic};
use crate::multipath::{HostCounters, MultipathReport, Part, taking_part};
use crate::network::{LinkObserver, fabric};
use crate::plan::Plan;
use crate::spec::{LabSpec, Stack};
use crate::station;
use crate::traffic::{Flow, QuicRun, Recorder, client_port, server_port};
use crate::{Error, Result};
use gargalo_device::Clock;

/// What a run in real time produced.
#[derive(Debug)]
pub struct LabOutcome {
    /// The same as a simulation's.
    pub outcome: Outcome,
    /// Programs, in the order they were given.
    pub commands: Vec<CommandResult>,
    /// What the loop did.
    pub engine: EngineStats,
    /// "tun", "veth" or "none".
    pub device: &'static str,
    /// What became of Multipath TCP, by flow and side.
    pub multipath: Vec<MultipathReport>,
    /// The counters of every host with the kernel's stack at which a flow had Multipath TCP.
    pub counters: Vec<HostCounters>,
}

/// Runs it. Hosts with the kernel's stack need the
/// [sandbox](crate::sandbox).
///
/// # Errors
/// When the network cannot be made or a flow asks for what the lab has not.
pub fn run(spec: LabSpec, watch: &mut Watch<'_>) -> Result<LabOutcome> {
    check(&spec)?;
    let pairs = pairs(&spec);
    let plan = Plan::new(&spec.topology, &pairs, &multipath_pairs(&spec))
        .map_err(|e| Error::Unsupported(e.to_string()))?;
    let hosts = make_hosts(&spec, &plan)?;
    let mut fabric = fabric(&spec, &plan)?;
    if let Some(captures) = &spec.captures {
        fabric.set_witness(Box::new(Capture::create(captures, &spec.topology)?));
    }
    let links = plan.interfaces.iter();
    let links = links.flat_map(|i| i.addresses().map(|a| (a, i.link as usize)));
    let named = |(a, link): (IpAddr, usize)| (a, spec.topology.links[link].name.as_str().into());
    let names: Names = links.clone().map(named).collect();
    let of_links = spec.topology.links.iter().map(|l| l.name.clone());
    let recorder = Arc::new(Recorder::new(links.collect(), of_links.collect()));
    let mut engine = Engine::new(fabric, spec.tuning);
    let mut kernel_ends = Vec::new();
    let mut own_ends: Vec<Vec<station::End>> = Vec::new();
    own_ends.resize_with(spec.topology.nodes.len(), Vec::new);
    let quic = quic_run(&spec)?;
    let mut flows = Vec::with_capacity(spec.flows.len());
    for f in &spec.flows {
        let (from, to) = (f.from, f.to);
        let parts = |host, peer| match &f.transport {
            TransportSpec::Mptcp(mptcp) => {
                let all = taking_part(&plan, &spec.topology, (host, peer), mptcp).into_iter();
                all.map(|(_, part)| part).collect()
            }
            _ => Vec::new(),
        };
        let paths = paths(&plan, f, &parts(from, to), &parts(to, from));
        let Some([client, server]) = paths.first().copied() else {
            let nodes = &spec.topology.nodes;
            let router = [from, to].map(|n| &nodes[n as usize]);
            let why = match router.iter().find(|n| !n.is_host) {
                Some(n) => format!(
                    "{0} forwards packets of others and has no interfaces; name {0} in topology.graph.hosts",
                    n.name
                ),
                None => "no path".to_owned(),
            };
            return Err(Error::Unsupported(format!(
                "flow {} ({}): {why}",
                f.id, f.label
            )));
        };
        let stream = |what: &str| rng::stream(spec.seed, &format!("flow/{}/{what}", f.id));
        let life = (spec.end, spec.verify);
        let flow = Arc::new(Flow::new(f.clone(), life, paths, quic.clone(), stream));
        if let (Some(run), Some(spec)) = (&quic, flow.quic()) {
            run.check(&flow, spec)?;
        }
        for (side, host, local, remote) in [(0, from, client, server), (1, to, server, client)] {
            let flow = Arc::clone(&flow);
            let peer = if side == 0 { to } else { from };
            match &hosts[host as usize] {
                Some(kernel) => kernel_ends.push(kernel::End {
                    flow,
                    side,
                    host: Arc::clone(&kernel.namespace),
                    local,
                    remote,
                }),
                None => own_ends[host as usize].push(station::End {
                    parts: parts(host, peer),
                    names: names.clone(),
                    flow,
                    side,
                    local,
                    remote,
                }),
            }
        }
        flows.push(flow);
    }
    let counted = counted(&spec, &hosts)?;
    let device = attach(&spec, &plan, &hosts, &mut engine, own_ends, &recorder)?;
    let environment = environment(&spec.topology, &plan);
    let programs = spec.commands.iter().filter_map(|c| {
        let host = hosts[c.host as usize].as_ref()?;
        Some((c.clone(), Arc::clone(&host.namespace)))
    });
    let mut commands = Commands::new(programs.collect(), &environment, &spec.directory)?;
    if !spec.commands.is_empty() {
        name_hosts(&spec.topology, &plan)?;
    }

    let stop = Stop::new()?;
    let sampling = spec.interval.filter(|_| spec.sample_flows);
    let traffic = KernelTraffic::new(
        kernel_ends,
        Arc::clone(&recorder),
        sampling,
        Window::new(spec.measure),
    )?;
    let mut observer = LinkObserver::new(&spec, flows.clone());
    let clock = Clock::start();
    let mut interrupted = false;
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let stats = std::thread::scope(|scope| {
        let (stop, failure) = (&stop, &failure);
        let thread = scope.spawn(move || {
            let done = traffic.run(clock, stop);
            if let Err(e) = done {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                stop.stop();
            }
        });
        let waits = commands.any_in_foreground();
        let mut over = |now: Instant, _idle: bool| {
            let progress = Progress {
                fraction: (now.as_secs_f64() / spec.end.as_secs_f64()).min(1.0),
                now,
                recorded: recorder.bytes(),
                ..Progress::begin(Phase::Running, spec.end)
            };
            if watch(&progress).is_break() {
                interrupted = true;
                return true;
            }
            if let Err(e) = commands.advance(now) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                return true;
            }
            let flows_done = flows.iter().all(|f| f.is_over());
            flows_done && commands.are_done() && (waits || !flows.is_empty())
        };
        let stats = engine.run(clock, spec.end, stop, &mut observer, &mut over);
        recorder.end();
        engine.sample(clock.now());
        engine.close(clock.now());
        stop.stop();
        let _ = thread.join();
        stats
    });
    commands.finish();
    let failed = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(e) = failed {
        return Err(e);
    }
    if let Some(witness) = engine.fabric_mut().take_witness() {
        witness.finish()?;
    }
    // The network has been served until now, a little longer than the run.
    let links = observer.results(clock.now(), engine.fabric_mut());
    let now = clock.now().min(spec.end);
    let window = observer.window();
    let (mut samples, last) = recorder.take();
    samples.links = observer.samples;
    let fabric = engine.fabric_mut().stats();
    Ok(LabOutcome {
        outcome: Outcome {
            flows: flows.iter().map(|f| f.result(now, &window)).collect(),
            groups: Vec::new(),
            links,
            routes: BTreeMap::new(),
            samples,
            last,
            end: now,
            measured: window.had(now),
            packets: fabric.packets,
            events: fabric.arrivals,
            peak_flows: flows.len(),
            interrupted,
        },
        commands: commands.into_results(),
        engine: stats?,
        device,
        multipath: flows.iter().flat_map(|f| f.reports()).collect(),
        counters: counters(counted, &hosts)?,
    })
}

/// Counters of hosts before the run: whose, and how they stood.
type Counted = Vec<(NodeId, BTreeMap<String, u64>)>;

fn counted(spec: &LabSpec, hosts: &[Option<KernelHost>]) -> Result<Counted> {
    let pairs = multipath_pairs(spec).into_iter();
    let nodes: BTreeSet<NodeId> = pairs.flat_map(|(a, b)| [a, b]).collect();
    let mut counted = Vec::new();
    for node in nodes {
        if let Some(host) = &hosts[node as usize] {
            counted.push((node, counters::read(&host.namespace)?));
        }
    }
    Ok(counted)
}

fn counters(before: Counted, hosts: &[Option<KernelHost>]) -> Result<Vec<HostCounters>> {
    let mut all = Vec::new();
    for (node, before) in before {
        let Some(host) = &hosts[node as usize] else {
            continue;
        };
        let after = counters::read(&host.namespace)?;
        let both = after.into_iter().map(|(name, n)| {
            let first = before.get(&name).copied().unwrap_or(0);
            (name, (first, n))
        });
        all.push(HostCounters {
            host: node,
            counts: both.collect(),
        });
    }
    Ok(all)
}

/// What the lab has not.
fn check(spec: &LabSpec) -> Result<()> {
    let name = |node: NodeId| &spec.topology.nodes[node as usize].name;
    for f in &spec.flows {
        let refused = |what: &str| {
            let text = format!("flow {} ({}): {what}", f.id, f.label);
            Err(Error::Unsupported(text))
        };
        if let TransportSpec::Quic(quic) = &f.transport
            && quic
                .config
                .migration
                .is_some_and(|m| m.change == gargalo_quic::Change::Address)
        {
            return refused(
                "a host keeps its address in the lab; let the client's port change, or --world sim",
            );
        }
        if let TransportSpec::Mptcp(mptcp) = &f.transport {
            if !mptcp.gateways.is_empty() {
                return refused("gateways are simulated only; run it with --world sim");
            }
            let kernel = |side: u8| {
                let host = if side == 0 { f.from } else { f.to };
                spec.stacks.get(host as usize) != Some(&Stack::Gargalo)
            };
            if mptcp.changes.iter().any(|c| kernel(c.side)) {
                return refused(
                    "addresses that come and go need stack = \"gargalo\" at their host, or --world sim",
                );
            }
        }
        if let TransportSpec::Tcp(tcp) = &f.transport
            && tcp.misbehaviour != gargalo_flow::Misbehaviour::None
        {
            return refused("misbehaving receivers are simulated; run it with --world sim");
        }
        if f.arrivals.is_some() || f.group.is_some() {
            return refused(
                "sources of many flows run in the simulator only; list the flows, or run iperf3 or \
                 curl as [[commands]]",
            );
        }
    }
    for c in &spec.commands {
        if spec.stacks.get(c.host as usize) == Some(&Stack::Gargalo) {
            return Err(Error::Unsupported(format!(
                "command `{}`: host {} has our own stack, which programs cannot use; give it \
                 stack = \"kernel\"",
                c.run,
                name(c.host)
            )));
        }
    }
    if spec.flows.is_empty() && spec.commands.is_empty() {
        return Err(Error::Unsupported(
            "there is neither a flow nor a command: nothing would happen".to_owned(),
        ));
    }
    Ok(())
}

/// The addresses and ports between which a flow's connection is opened; of multipath QUIC those of all its paths.
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
        return first(near)
            .zip(first(far))
            .map(with_ports)
            .into_iter()
            .collect();
    }
    let most = match &flow.transport {
        TransportSpec::Quic(quic) => quic.config.paths() as usize,
        _ => 1,
    };
    let ways = plan.ways_between(flow.from, flow.to).take(most);
    ways.map(|(a, b)| with_ports((a.v4.into(), b.v4.into())))
        .collect()
}

/// What the QUIC connections of a run share; `None`: there are none.
fn quic_run(spec: &LabSpec) -> Result<Option<QuicRun>> {
    let is_quic = |f: &FlowSpec| matches!(f.transport, TransportSpec::Quic(_));
    if !spec.flows.iter().any(is_quic) {
        return Ok(None);
    }
    let keys = spec.captures.as_ref();
    let keys = keys.map(|c| c.path.with_file_name("keys.log"));
    QuicRun::new(spec.seed, spec.qlog.clone(), keys).map(Some)
}

/// The hosts of flows with Multipath TCP.
fn multipath_pairs(spec: &LabSpec) -> Vec<(NodeId, NodeId)> {
    let flows = spec.flows.iter();
    let flows = flows.filter(|f| matches!(f.transport, TransportSpec::Mptcp(_)));
    flows.map(|f| (f.from, f.to)).collect()
}

/// Which hosts talk: those of flows; with programs, every pair.
fn pairs(spec: &LabSpec) -> Vec<(NodeId, NodeId)> {
    let mut pairs: Vec<_> = spec.flows.iter().map(|f| (f.from, f.to)).collect();
    if !spec.commands.is_empty() {
        let nodes = spec.topology.nodes.iter().enumerate();
        let hosts: Vec<NodeId> = nodes
            .filter(|(_, n)| n.is_host)
            .map(|(i, _)| i as NodeId)
            .collect();
        for (i, a) in hosts.iter().enumerate() {
            pairs.extend(hosts[i + 1..].iter().map(|b| (*a, *b)));
        }
    }
    pairs
}

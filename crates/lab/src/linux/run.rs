//! Runs a scenario in real time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

pub use gargalo_flow::Watch;
use gargalo_flow::{FlowSpec, NodeId, Outcome, Phase, Progress, TransportSpec, Window};
use gargalo_mptcp::Names;
use gargalo_units::Instant;

use crate::linux::capture::Capture;
use crate::linux::commands::{CommandResult, Commands};
use crate::linux::counters;
use crate::linux::engine::{Engine, EngineStats, Stop};
use crate::linux::hosts::{KernelHost, attach, environment, make_hosts, name_hosts};
use crate::linux::kernel::{self, KernelTraffic};
use crate::linux::maker::{HostEnd, Maker};
use crate::linux::network::{LinkObserver, fabric};
use crate::linux::plan::Plan;
use crate::linux::station;
use crate::linux::traffic::{
    Flow, Inbox, Make, QuicRun, Recorder, Sources, Surroundings, Tables, WireCounter,
};
use crate::multipath::{HostCounters, MultipathReport};
use crate::spec::{LabSpec, Stack};
use crate::{Error, Result};
use gargalo_device::Clock;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// What a run in real time produced.
#[derive(Debug)]
pub struct LabOutcome {
    /// The same as the outcome of a simulation.
    pub outcome: Outcome,
    /// Results of the programs, in the order in which they were given.
    pub commands: Vec<CommandResult>,
    /// Counters of the loop.
    pub engine: EngineStats,
    /// "tun", "veth" or "none".
    pub device: &'static str,
    /// Multipath TCP results, by flow and side.
    pub multipath: Vec<MultipathReport>,
    /// The Multipath TCP counters of every host with the kernel's stack at which a flow used it.
    pub counters: Vec<HostCounters>,
}

/// Runs the scenario. Hosts with the kernel's stack need the [sandbox](crate::sandbox).
///
/// # Errors
/// When the network cannot be created or a flow requests something that the lab does not support.
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
    let recorder = Arc::new(Recorder::new(
        links.collect(),
        of_links.collect(),
        Tables {
            gauges: spec.gauges,
            events: spec.events,
            datagrams: spec.datagrams,
        },
    ));
    let plan = Arc::new(plan);
    let maker = maker(&spec, &plan, &hosts, names)?;
    let mut engine = Engine::new(fabric, spec.tuning);
    if let Some(counter) = &maker.around.wire {
        engine.set_wire_counter(counter.clone());
    }
    let sampling = spec.interval.filter(|_| spec.sample_flows);
    let window = Window::new(spec.measure);
    let inbox = Arc::clone(&maker.to_kernel);
    let mut traffic = KernelTraffic::new(inbox, Arc::clone(&recorder), sampling, window);
    let (flows, kernel_ends, own_ends) = make_flows(&spec, &maker)?;
    let counted = counted(&spec, &hosts)?;
    let stations = (own_ends, maker.to_stations.as_slice());
    let device = attach(&spec, &plan, &hosts, &mut engine, stations, &recorder)?;
    // Their addresses exist now.
    for end in kernel_ends {
        traffic.add(end)?;
    }
    let sources = sources(&spec, maker)?;
    let environment = environment(&spec.topology, &plan);
    let programs = spec.commands.iter().filter_map(|c| {
        let host = hosts[c.host as usize].as_ref()?;
        Some((c.clone(), Arc::clone(&host.namespace)))
    });
    let mut commands = Commands::new(programs.collect(), &environment, &spec.directory)?;
    if !spec.commands.is_empty() {
        name_hosts(&spec.topology, &plan)?;
    }

    let mut observer = LinkObserver::new(&spec, flows.clone(), sources);
    let clock = Clock::start();
    let mut running = Running {
        spec: &spec,
        engine: &mut engine,
        observer: &mut observer,
        commands: &mut commands,
        flows: &flows,
        recorder: &recorder,
    };
    let (stats, interrupted) = running.serve(traffic, clock, watch)?;
    if let Some(witness) = engine.fabric_mut().take_witness() {
        witness.finish()?;
    }
    // The network has been served until now, a little longer than the run.
    let links = observer.results(clock.now(), engine.fabric_mut());
    let now = clock.now().min(spec.end);
    let window = observer.window();
    let (mut samples, last) = recorder.take();
    samples.links = observer.samples;
    let peak = flows.len() + observer.sources.peak();
    let (more, groups) = observer.sources.finish(now, &window);
    let results = flows.iter().map(|f| f.result(now, &window));
    let mut results: Vec<_> = results.chain(more).collect();
    results.sort_by_key(|f| f.id);
    let fabric = engine.fabric_mut().stats();
    Ok(LabOutcome {
        outcome: Outcome {
            flows: results,
            groups,
            links,
            routes: BTreeMap::new(),
            samples,
            last,
            end: now,
            measured: window.had(now),
            packets: fabric.packets,
            events: fabric.arrivals,
            peak_flows: peak,
            interrupted,
        },
        commands: commands.into_results(),
        engine: stats,
        device,
        multipath: flows.iter().flat_map(|f| f.reports()).collect(),
        counters: counters(counted, &hosts)?,
    })
}

/// The state of a run in progress.
struct Running<'a> {
    spec: &'a LabSpec,
    engine: &'a mut Engine,
    observer: &'a mut LinkObserver,
    commands: &'a mut Commands,
    flows: &'a [Arc<Flow>],
    recorder: &'a Recorder,
}

impl Running<'_> {
    /// Serves the network, the kernel's sockets on a thread of their own, and programs, until all are over or the
    /// caller stops the run. Returns the counters of the loop, and whether it was interrupted.
    fn serve(
        &mut self,
        traffic: KernelTraffic,
        clock: Clock,
        watch: &mut Watch<'_>,
    ) -> Result<(EngineStats, bool)> {
        let (spec, flows, recorder) = (self.spec, self.flows, self.recorder);
        let mut interrupted = false;
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        let fails = |e: Error| *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        let stop = Stop::new()?;
        let stats = std::thread::scope(|scope| {
            let (stop, fails) = (&stop, &fails);
            let thread = scope.spawn(move || {
                if let Err(e) = traffic.run(clock, stop) {
                    fails(e);
                    stop.stop();
                }
            });
            let waits = self.commands.any_in_foreground();
            let (populated, left) = (!spec.population.is_empty(), self.observer.sources.left());
            let commands = &mut self.commands;
            let mut told = 0;
            let mut over = |now: Instant, _idle: bool| {
                let samples = recorder.since(&mut told);
                let progress = Progress {
                    samples: &samples,
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
                    fails(e);
                    return true;
                }
                let flows_done = flows.iter().all(|f| f.is_over()) && !left.is_any();
                let any = waits || populated || !flows.is_empty();
                flows_done && commands.are_done() && any
            };
            let stats = self
                .engine
                .run(clock, spec.end, stop, self.observer, &mut over);
            recorder.end();
            self.engine.sample(clock.now());
            self.engine.close(clock.now());
            stop.stop();
            let _ = thread.join();
            stats
        });
        self.commands.finish();
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(e) => Err(e),
            None => Ok((stats?, interrupted)),
        }
    }
}

/// Counters of hosts before the run, with the host.
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

/// Refuses what the lab does not support.
fn check(spec: &LabSpec) -> Result<()> {
    let name = |node: NodeId| &spec.topology.nodes[node as usize].name;
    for f in spec.flows.iter().chain(&spec.population.flows) {
        let refused = |what: &str| {
            let text = format!("flow {} ({}): {what}", f.id, f.label);
            Err(Error::Unsupported(text))
        };
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
    if spec.flows.is_empty() && spec.population.is_empty() && spec.commands.is_empty() {
        return Err(Error::Unsupported(
            "there is neither a flow nor a command: nothing would happen".to_owned(),
        ));
    }
    Ok(())
}

/// The state that the QUIC connections of a run share; `None`: there are none.
fn quic_run(spec: &LabSpec) -> Result<Option<QuicRun>> {
    let is_quic = |f: &FlowSpec| matches!(f.transport, TransportSpec::Quic(_));
    if !spec.flows.iter().chain(&spec.population.flows).any(is_quic) {
        return Ok(None);
    }
    let keys = spec.captures.as_ref();
    let keys = keys.map(|c| c.path.with_file_name("keys.log"));
    QuicRun::new(spec.seed, spec.qlog.clone(), keys).map(Some)
}

/// Creates the maker of flows, with the inboxes of the hosts.
fn maker(
    spec: &LabSpec,
    plan: &Arc<Plan>,
    hosts: &[Option<KernelHost>],
    names: Names,
) -> Result<Maker> {
    let namespace = |h: &Option<KernelHost>| h.as_ref().map(|h| Arc::clone(&h.namespace));
    Ok(Maker {
        plan: Arc::clone(plan),
        topology: spec.topology.clone(),
        seed: spec.seed,
        around: Surroundings {
            end: spec.end,
            verify: spec.verify,
            quic: quic_run(spec)?,
            // Only totals of groups need it.
            wire: (!spec.population.groups.is_empty()).then(WireCounter::default),
            ..Surroundings::default()
        },
        names,
        kernels: hosts.iter().map(namespace).collect(),
        to_kernel: Inbox::new(Some(wake_up()?)),
        to_stations: hosts.iter().map(|_| Inbox::new(None)).collect(),
    })
}

/// Flows, their ends at hosts with the kernel's stack, and those at hosts with our stack, by node.
type Made = (Vec<Arc<Flow>>, Vec<kernel::End>, Vec<Vec<station::End>>);

/// Creates the flows that exist from the beginning.
fn make_flows(spec: &LabSpec, maker: &Maker) -> Result<Made> {
    let (mut flows, mut kernel_ends) = (Vec::new(), Vec::new());
    let nodes = spec.topology.nodes.iter();
    let mut own_ends: Vec<Vec<station::End>> = nodes.map(|_| Vec::new()).collect();
    for f in &spec.flows {
        let name = f.stream_name();
        let (flow, ends) = maker.make(f.clone(), &name, maker.around.clone())?;
        for end in ends {
            match end {
                HostEnd::Kernel(end) => kernel_ends.push(end),
                HostEnd::Station(node, end) => own_ends[node as usize].push(end),
            }
        }
        flows.push(flow);
    }
    Ok((flows, kernel_ends, own_ends))
}

/// Creates the event that wakes a thread.
fn wake_up() -> Result<EventFd> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    EventFd::from_flags(flags).map_err(|e| Error::system("making an event", e))
}

/// Creates the flows that start and end during the run.
fn sources(spec: &LabSpec, maker: Maker) -> Result<Sources> {
    let known = spec
        .flows
        .iter()
        .chain(&spec.population.flows)
        .map(|f| f.id);
    let known = known.chain(spec.population.sources.iter().map(|s| s.id));
    let next_id = known.max().map_or(0, |id| id + 1);
    if spec.population.is_empty() {
        maker.to_kernel.close();
    }
    let make: Make = Box::new(move |template, id, start, stream, notices| {
        let mut spec = template.clone();
        (spec.id, spec.start) = (id, start);
        if spec.arrivals.take().is_some() {
            spec.stop = None;
        }
        let around = Surroundings {
            template: Some(template.id),
            notices: Some(notices),
            ..maker.around.clone()
        };
        let (flow, ends) = maker.make(spec, stream, around)?;
        ends.into_iter().for_each(|end| maker.hand_over(end));
        Ok(flow)
    });
    Sources::new(
        spec.population.clone(),
        (spec.seed, spec.end),
        next_id,
        make,
    )
}

/// The pairs of hosts of flows with Multipath TCP.
fn multipath_pairs(spec: &LabSpec) -> Vec<(NodeId, NodeId)> {
    let flows = spec.flows.iter().chain(&spec.population.flows);
    let flows = flows.filter(|f| matches!(f.transport, TransportSpec::Mptcp(_)));
    flows.map(|f| (f.from, f.to)).collect()
}

/// The pairs of hosts that communicate: those of flows; with programs, every pair.
fn pairs(spec: &LabSpec) -> Vec<(NodeId, NodeId)> {
    let mut pairs: Vec<_> = spec.flows.iter().map(|f| (f.from, f.to)).collect();
    pairs.extend(spec.population.pairs());
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

//! Builds a world from a scenario and runs it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_flow::{
    CaptureSpec, ControllerFactory, FlowSpec, GeneratorSpec, LinkSpec, Node, Outcome as SimOutcome,
    Phase, Progress, QuicSpec, Registered, TcpSpec, Topology, TransportSpec, Watch as SimWatch,
};
use gargalo_mptcp::Factory;
use gargalo_mptcp::path_manager::PathManager;
use gargalo_mptcp::scheduler::Scheduler;
use gargalo_sim::{BuildError, Recording, Settings, World};
use gargalo_trace::Tables;
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_workload::Workload;
use gargalo_workload::plan::Model;
use gargalo_workload::tls::TlsVersion;
use serde_json::{Value as Json, json};

use crate::audit;
use crate::canonical::results_hash;
use crate::capabilities;
use crate::diagnostic::Diagnostics;
use crate::jitter;
use crate::memory::{Estimate, Guard, TooMuch};
use crate::multipath;
use crate::resolved::{Flow, Scenario, Transport};
use crate::summary;
use crate::tables::{rows, tables};

/// A callback that is told the progress of a run and may stop it: results until then are kept, except while they are
/// being written.
pub type Watch = Box<dyn FnMut(&Progress) -> ControlFlow<()> + Send>;

/// Options of a run besides the scenario.
#[derive(Default)]
pub struct RunOptions {
    /// Called regularly; if it breaks, the run stops and keeps what was recorded.
    pub progress: Option<Watch>,
    /// Congestion controls in addition to the registry's, by name.
    pub controllers: BTreeMap<String, Arc<dyn ControllerFactory>>,
    /// Schedulers of Multipath TCP in addition to the registry's, by name.
    pub schedulers: BTreeMap<String, Arc<dyn Factory<dyn Scheduler>>>,
    /// Path managers of Multipath TCP in addition to the registry's, by name.
    pub path_managers: BTreeMap<String, Arc<dyn Factory<dyn PathManager>>>,
    /// Folder for captures.
    pub output: Option<PathBuf>,
    /// Memory limit of the run, records and their tables included; `None`: no limit.
    pub memory_limit: Option<Bytes>,
}

/// What a run produced.
#[derive(Debug)]
pub struct Outcome {
    /// `{"summary", "flows", "subflows", "links", "run"}`, all SI.
    pub json: Json,
    /// Results tables.
    pub tables: Tables,
    /// It was stopped before its end.
    pub interrupted: bool,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The world cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A scheduler or path manager is unknown.
    #[error("{0}")]
    Multipath(String),
    /// A congestion control is unknown.
    #[error("{0}")]
    Congestion(String),
    /// The records would exceed the memory limit.
    #[error(transparent)]
    Memory(#[from] TooMuch),
    /// It was stopped while results were being written.
    #[error("stopped while results were being written; nothing was kept")]
    Stopped,
    /// Captures need a folder.
    #[error("{0} were asked for, but no output directory: add --output DIR")]
    NoOutput(&'static str),
    /// The world does not support something that the scenario asks for.
    #[error(transparent)]
    Lacking(#[from] Diagnostics),
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] gargalo_lab::Error),
    /// The folder of the traces could not be created.
    #[error("cannot create {}: {reason}; choose another --output", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
}

/// Builds the world and runs it.
///
/// # Errors
/// When something cannot be built, or a capture cannot be written.
pub fn run(scenario: &Scenario, mut options: RunOptions) -> Result<Outcome, RunError> {
    let mut go_on: Watch = Box::new(|_| ControlFlow::Continue(()));
    let mut progress = options.progress.take();
    let watch = &mut **progress.as_mut().unwrap_or(&mut go_on);
    Estimate::of(scenario).check(scenario, options.memory_limit)?;
    let mut guard = Guard::new(options.memory_limit);
    let mut guarded = |p: &Progress| match guard.is_exceeded(p) {
        true => ControlFlow::Break(()),
        false => watch(p),
    };
    let world = world(scenario, &options, &mut guarded)?;
    let start = std::time::Instant::now();
    let out = world.run(&mut guarded)?;
    let wall = start.elapsed().as_secs_f64();
    let mut json = summary::json(scenario, &out, wall);
    guard.tell(&mut json);
    json["run"]["findings"] = findings(audit::audit(scenario, &out, &json["summary"], None));
    let interrupted = out.interrupted;
    let tables = tables(scenario, out, watch)?;
    rows(&tables, &mut json);
    json["run"]["results_hash"] = hashed(scenario, &json, &tables, watch)?;
    Ok(Outcome {
        json,
        tables,
        interrupted,
    })
}

/// Runs the simulation; returns the engine's own outcome, before tables and a summary are built from it.
///
/// # Errors
/// As [`run`].
pub fn simulate(scenario: &Scenario, mut options: RunOptions) -> Result<SimOutcome, RunError> {
    let mut go_on: Watch = Box::new(|_| ControlFlow::Continue(()));
    let mut progress = options.progress.take();
    let watch = &mut **progress.as_mut().unwrap_or(&mut go_on);
    Ok(world(scenario, &options, watch)?.run(watch)?)
}

/// The hash of the results, unless the caller stops it.
pub(crate) fn hashed(
    scenario: &Scenario,
    json: &Json,
    tables: &Tables,
    watch: &mut SimWatch<'_>,
) -> Result<Json, RunError> {
    // The rest of the work is writing files.
    let told = Progress {
        fraction: 1.0,
        ..Progress::begin(Phase::Writing, Instant::ZERO + scenario.duration)
    };
    let hash = results_hash(json, tables, &mut || watch(&told));
    hash.map(Json::from).ok_or(RunError::Stopped)
}

/// Findings as JSON of the results.
pub(crate) fn findings(found: Vec<audit::Finding>) -> Json {
    found.iter().map(audit::Finding::to_json).collect()
}

/// The folder for qlog traces, created if they are requested.
pub(crate) fn qlog(scenario: &Scenario, options: &RunOptions) -> Result<Option<PathBuf>, RunError> {
    let path = match (&options.output, scenario.record.qlog) {
        (_, false) => return Ok(None),
        (None, true) => return Err(RunError::NoOutput("qlog traces")),
        (Some(dir), true) => dir.join("qlog"),
    };
    match std::fs::create_dir_all(&path) {
        Ok(()) => Ok(Some(path)),
        Err(reason) => Err(RunError::Folder { path, reason }),
    }
}

fn world(
    scenario: &Scenario,
    options: &RunOptions,
    watch: &mut SimWatch<'_>,
) -> Result<World, RunError> {
    capabilities::check(scenario, crate::World::Sim)?;
    let record = &scenario.record;
    let captures = captures(scenario, options.output.as_deref())?;
    let qlog = qlog(scenario, options)?;
    let end = Instant::ZERO + scenario.duration;
    let settings = Settings {
        seed: scenario.seed,
        end,
        stop_when_idle: true,
        recording: Recording {
            interval: Some(record.interval),
            flows: record.flows,
            links: record.links,
            events: record.events,
            decisions: record.decisions,
            gauges: record.gauges,
        },
        measure: scenario.measure,
        verify: record.verify,
        captures,
        qlog,
    };
    let mut world = World::new(topology(scenario), settings)?;
    for g in &scenario.groups {
        world.add_group(Arc::clone(&g.label), g.window);
    }
    let mut factories = Factories::new(scenario, options);
    let total = scenario.flows.len() as f64;
    for (i, f) in scenario.flows.iter().enumerate() {
        let told = Progress {
            fraction: i as f64 / total,
            ..Progress::begin(Phase::Building, end)
        };
        if watch(&told).is_break() {
            world.stop();
            break;
        }
        let Some(spec) = flow(scenario, f, &mut factories)? else {
            if let Some(spec) = generator(scenario, f, &mut factories)? {
                world.add_generator(spec)?;
            }
            continue;
        };
        world.add_flow(spec)?;
    }
    Ok(world)
}

/// The links to capture, and the file to write; `None`: none.
pub(crate) fn captures(
    scenario: &Scenario,
    output: Option<&Path>,
) -> Result<Option<CaptureSpec>, RunError> {
    let links = &scenario.record.captures;
    match (output, links.is_empty()) {
        (_, true) => Ok(None),
        (None, false) => Err(RunError::NoOutput("captures")),
        (Some(dir), false) => Ok(Some(CaptureSpec {
            path: dir.join("capture.pcapng"),
            links: links.clone(),
            ends: scenario.record.capture_ends,
            payload: scenario.record.capture_payload,
            comment: format!("scenario {} seed {}", scenario.name, scenario.seed),
        })),
    }
}

/// Congestion controls; flows of one kind share one factory.
pub(crate) struct Factories<'a> {
    pub(crate) options: &'a RunOptions,
    made: BTreeMap<String, Arc<dyn ControllerFactory>>,
    /// Start jitter of each flow, in their order.
    later: Vec<Duration>,
}

impl<'a> Factories<'a> {
    pub(crate) fn new(scenario: &Scenario, options: &'a RunOptions) -> Self {
        Self {
            options,
            made: BTreeMap::new(),
            later: jitter::later(scenario),
        }
    }

    pub(crate) fn get(
        &mut self,
        name: &str,
        params: &Params,
    ) -> Result<Arc<dyn ControllerFactory>, RunError> {
        let key = format!("{name} {params:?}");
        if let Some(known) = self.made.get(&key) {
            return Ok(Arc::clone(known));
        }
        let made = factory(name, params, self.options)?;
        self.made.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

/// The specification of a flow for the worlds; `None` for sources of flows.
pub(crate) fn flow(
    scenario: &Scenario,
    f: &Flow,
    factories: &mut Factories<'_>,
) -> Result<Option<FlowSpec>, RunError> {
    if f.workload.is_source() {
        return Ok(None);
    }
    let (from, to) = if f.workload.is_asked_for() {
        (f.to, f.from)
    } else {
        (f.from, f.to)
    };
    Ok(Some(FlowSpec {
        id: f.id,
        label: Arc::clone(&f.label),
        from: from as u32,
        to: to as u32,
        start: f.start + factories.later[f.id as usize],
        stop: f.stop,
        transport: transport(scenario, f, factories)?,
        workload: f.workload.clone(),
        arrivals: f.arrivals,
        group: f.group.map(|g| g as u32),
        rows: f.rows,
    }))
}

/// The specification of a source of flows for the worlds.
pub(crate) fn generator(
    scenario: &Scenario,
    f: &Flow,
    factories: &mut Factories<'_>,
) -> Result<Option<GeneratorSpec>, RunError> {
    let model = match &f.workload {
        Workload::Web(web) => Model::Web((**web).clone().into()),
        Workload::Ftp(ftp) => Model::Ftp((**ftp).clone().into()),
        _ => return Ok(None),
    };
    let transport = transport(scenario, f, factories)?;
    let (Some(source), TransportSpec::Tcp(transport), Some(group)) =
        (&f.source, transport, f.group)
    else {
        return Ok(None);
    };
    let pair = |&(a, b): &(usize, usize)| (a as u32, b as u32);
    Ok(Some(GeneratorSpec {
        id: f.id,
        label: Arc::clone(&f.label),
        pairs: source.pairs.iter().map(pair).collect(),
        start: f.start,
        stop: f.stop,
        transport,
        model,
        demand: source.demand,
        group: group as u32,
        rows: f.rows,
    }))
}

fn transport(
    scenario: &Scenario,
    f: &Flow,
    factories: &mut Factories<'_>,
) -> Result<TransportSpec, RunError> {
    Ok(match &f.transport {
        Transport::Udp => TransportSpec::Udp,
        Transport::Quic(q) => {
            use gargalo_quic::Congestion;
            let (congestion, congestion_name) = match Congestion::own(&q.congestion.name) {
                Some(own) => (own, q.congestion.name.as_str().into()),
                None => {
                    let factory = factories.get(&q.congestion.name, &q.congestion.params)?;
                    let name = factory.name().into();
                    (
                        Congestion::Ours(Arc::new(move |init| factory.build(init))),
                        name,
                    )
                }
            };
            TransportSpec::Quic(Box::new(QuicSpec {
                config: (**q).clone(),
                congestion,
                congestion_name,
            }))
        }
        Transport::Mptcp(m) => {
            TransportSpec::Mptcp(Box::new(multipath::spec(scenario, f, m, factories)?))
        }
        Transport::Tcp(t) => {
            let config = gargalo_tcp::Config {
                notices: (scenario.record.events || scenario.record.gauges) && f.rows,
                ..t.config.clone()
            };
            TransportSpec::Tcp(TcpSpec {
                config: config.into(),
                congestion: factories.get(&t.congestion.name, &t.congestion.params)?,
                tls: TlsVersion::chosen(t.tls),
                misbehaviour: t.receiver,
            })
        }
    })
}

/// The nodes and links for the simulator.
pub fn topology(scenario: &Scenario) -> Topology {
    let node = |n: &crate::resolved::Node| Node {
        name: n.name.clone(),
        is_host: n.is_host,
    };
    let link = |l: &crate::resolved::Link| LinkSpec {
        name: l.name.clone(),
        a: l.a as u32,
        b: l.b as u32,
        up: l.up.clone(),
        down: l.down.clone(),
    };
    Topology {
        nodes: scenario.nodes.iter().map(node).collect(),
        links: scenario.links.iter().map(link).collect(),
    }
}

fn factory(
    congestion: &str,
    params: &Params,
    options: &RunOptions,
) -> Result<Arc<dyn ControllerFactory>, RunError> {
    if let Some(own) = options.controllers.get(congestion) {
        return Ok(Arc::clone(own));
    }
    let registered = Registered::new(congestion, params.clone()).map_err(RunError::Congestion)?;
    Ok(Arc::new(registered))
}

/// Seconds, or null.
pub(crate) fn seconds(d: Option<Duration>) -> Json {
    d.map_or(Json::Null, |d| json!(d.decimal_secs()))
}

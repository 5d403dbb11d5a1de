//! Builds a world from a scenario and runs it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gargalo_flow::{
    CaptureSpec, FlowSpec, GeneratorSpec, Outcome as SimOutcome, Phase, Progress, QuicSpec,
    Topology, TransportSpec, Watch as SimWatch,
};
use gargalo_quic::{Congestion, Implementation, NOQ, Noq};
use gargalo_sim::{Recording, Settings, World};
use gargalo_trace::Tables;
use gargalo_units::Instant;
use gargalo_workload::Workload;
use gargalo_workload::plan::Model;
use serde_json::Value as Json;

use crate::audit;
use crate::canonical::results_hash;
use crate::capabilities;
use crate::memory::{Estimate, Guard};
use crate::multipath;
use crate::options::Factories;
pub use crate::options::{RunError, RunOptions, Watch};
use crate::resolved::{Flow, Scenario, Transport};
use crate::summary;
use crate::tables::tables;

/// What a run produced.
#[derive(Debug)]
pub struct Outcome {
    /// `{"summary", "run"}`, all SI.
    pub json: Json,
    /// The results tables: flows, links, samples, events and others.
    pub tables: Tables,
    /// It was stopped before its end.
    pub interrupted: bool,
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
    let progress = Progress {
        fraction: 1.0,
        ..Progress::begin(Phase::Writing, Instant::ZERO + scenario.duration)
    };
    let hash = results_hash(json, tables, &mut || watch(&progress));
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
            gauges: record.gauges,
            datagrams: record.datagrams,
        },
        measure: scenario.measure,
        verify: record.verify,
        every_event: false,
        captures,
        qlog,
    };
    let mut world = World::new(topology(scenario), settings)?;
    for g in &scenario.groups {
        world.add_group(Arc::clone(&g.label), g.window);
    }
    let mut factories = Factories::new(scenario, options);
    let total = scenario.flows.len() as f64;
    let order = std::mem::take(&mut factories.streams.order);
    for (i, f) in order.iter().map(|i| &scenario.flows[*i]).enumerate() {
        let progress = Progress {
            fraction: i as f64 / total,
            ..Progress::begin(Phase::Building, end)
        };
        if watch(&progress).is_break() {
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
        stream: factories.stream(f),
        from: from as u32,
        to: to as u32,
        path: f.path,
        start: f.start + factories.later(f),
        stop: f.stop,
        transport: transport(scenario, f, factories)?,
        workload: Arc::clone(&f.workload),
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
    let model = match &*f.workload {
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
        stream: factories.stream(f),
        pairs: source.pairs.iter().map(pair).collect(),
        path: f.path,
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
            let mut congestion_name = q.congestion.name.as_str().into();
            let mut stack = |name: &str| -> Result<Arc<dyn Implementation>, RunError> {
                if name == NOQ {
                    let congestion;
                    (congestion, congestion_name) = noq_congestion(q, factories)?;
                    return Ok(Arc::new(Noq(congestion)));
                }
                let known = &factories.options.stacks;
                known.get(name).map(Arc::clone).ok_or_else(|| {
                    let names = std::iter::once(NOQ).chain(known.keys().map(String::as_str));
                    let names = names.collect::<Vec<_>>().join(", ");
                    RunError::Stack(format!(
                        "stack = \"{name}\" is not loaded; here are {names}; load it with --plugin FILE"
                    ))
                })
            };
            let stacks = [stack(&q.stack.client)?, stack(&q.stack.server)?];
            TransportSpec::Quic(Box::new(QuicSpec {
                config: (**q).clone(),
                stacks,
                congestion_name,
            }))
        }
        Transport::Mptcp(m) => {
            TransportSpec::Mptcp(Box::new(multipath::spec(scenario, f, m, factories)?))
        }
        Transport::Tcp(t) => {
            let notices = (scenario.record.events || scenario.record.gauges) && f.rows;
            TransportSpec::Tcp(factories.tcp(t, notices)?)
        }
    })
}

/// The congestion control of noq, and its name in results.
fn noq_congestion(
    config: &gargalo_quic::Config,
    factories: &mut Factories<'_>,
) -> Result<(Congestion, Arc<str>), RunError> {
    let mut config = config.clone();
    config.complete_congestion();
    let chosen = &config.congestion;
    if let Some(own) = Congestion::own(&chosen.name) {
        return Ok((own, chosen.name.as_str().into()));
    }
    let factory = factories.get(&chosen.name, &chosen.params)?;
    let name = factory.name().into();
    let ours = Congestion::Ours(Arc::new(move |init| factory.build(init)));
    Ok((ours, name))
}

/// The nodes and links for the worlds.
pub fn topology(scenario: &Scenario) -> Topology {
    Topology {
        nodes: scenario.nodes.clone(),
        links: scenario.links.clone(),
    }
}

//! Runs a scenario in real time.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gargalo_flow::Progress;
use gargalo_lab::{Choice, CommandSpec, LabOutcome, LabSpec, Population, Stack};
use gargalo_units::{Duration, Instant};
use serde_json::{Value as Json, json};

use crate::audit::audit;
use crate::build::{Outcome, captures, findings, flow, generator, hashed, qlog, topology};
use crate::capabilities;
use crate::memory::{Estimate, Guard};
use crate::options::{Factories, RunError, RunOptions, Watch};
use crate::resolved::{Flow, Scenario, Transport};
use crate::summary;
use crate::tables::tables;
use crate::world::World;

/// Output of a program above this size is left out of the summary; its file has all of it.
const SHOWN: u64 = 64 << 10;

/// Builds the network on this machine and runs the scenario in real time. The output of programs goes to
/// `options.output`, or to a temporary directory and the summary only.
///
/// Hosts with the kernel's stack need the sandbox ([`gargalo_lab::sandbox`]), which only a process of
/// one thread can enter.
///
/// # Errors
/// When something cannot be built, or the system refuses something.
pub fn run(scenario: &Scenario, mut options: RunOptions) -> Result<Outcome, RunError> {
    capabilities::check(scenario, World::Lab)?;
    Estimate::of(scenario).check(scenario, options.memory_limit)?;
    let captures = captures(scenario, options.output.as_deref())?;
    let mut progress = options.progress.take();
    let mut factories = Factories::new(scenario, &options);
    let groups = scenario.groups.iter();
    let mut population = Population {
        groups: groups.map(|g| (Arc::clone(&g.label), g.window)).collect(),
        ..Population::default()
    };
    let mut flows = Vec::with_capacity(scenario.flows.len());
    for f in &scenario.flows {
        match flow(scenario, f, &mut factories)? {
            Some(spec) if spec.arrivals.is_some() || spec.group.is_some() => {
                population.flows.push(spec);
            }
            Some(spec) => flows.push(spec),
            None => {
                let source = generator(scenario, f, &mut factories)?;
                population.sources.extend(source);
            }
        }
    }
    let scratch = match &options.output {
        Some(_) => None,
        None => Some(Scratch::new()?),
    };
    let directory = match (&options.output, &scratch) {
        (Some(dir), _) => dir.clone(),
        (None, Some(scratch)) => scratch.0.clone(),
        (None, None) => std::env::temp_dir(),
    };
    let record = &scenario.record;
    let spec = LabSpec {
        topology: topology(scenario),
        stacks: scenario.lab.stacks.clone(),
        flows,
        population,
        commands: scenario.lab.commands.clone(),
        seed: scenario.seed,
        end: Instant::ZERO + scenario.duration,
        measure: scenario.measure,
        verify: record.verify,
        interval: Some(record.interval),
        sample_flows: record.flows,
        sample_links: record.links,
        gauges: record.gauges,
        datagrams: record.datagrams,
        events: record.events || record.decisions,
        captures,
        tuning: scenario.lab.tuning,
        devices: Choice::Best {
            offload: scenario.lab.offload,
        },
        qlog: qlog(scenario, &options)?,
        directory,
        multipath: Default::default(),
    };
    let start = std::time::Instant::now();
    let mut go_on: Watch = Box::new(|_| ControlFlow::Continue(()));
    let watch = &mut **progress.as_mut().unwrap_or(&mut go_on);
    let mut guard = Guard::new(options.memory_limit);
    let mut guarded = |p: &Progress| match guard.is_exceeded(p) {
        true => ControlFlow::Break(()),
        false => watch(p),
    };
    let done = gargalo_lab::run(spec, &mut guarded)?;
    let wall = start.elapsed().as_secs_f64();
    let mut json = summary::json(scenario, &done.outcome, wall);
    guard.tell(&mut json);
    let late = Some(done.engine.late_p99);
    json["run"]["findings"] = findings(audit(scenario, &done.outcome, &json["summary"], late));
    describe(scenario, &done, &mut json);
    let interrupted = done.outcome.interrupted;
    let tables = tables(scenario, done.outcome, watch)?;
    json["run"]["results_hash"] = hashed(scenario, &json, &tables, watch)?;
    Ok(Outcome {
        json,
        tables,
        interrupted,
    })
}

/// A temporary directory that is removed after the run.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Self, RunError> {
        let path = std::env::temp_dir();
        let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unique = unique.map_or(0, |d| d.as_nanos());
        let path = path.join(format!("gargalo-lab-{}-{unique}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(reason) => Err(RunError::Folder { path, reason }),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Adds the results that only the lab has to the summary.
fn describe(scenario: &Scenario, done: &LabOutcome, json: &mut Json) {
    let run = &mut json["run"];
    run["world"] = "lab".into();
    run["device"] = done.device.into();
    let late = |d: Duration| Json::from(d.decimal_secs());
    run["late_p50_s"] = late(done.engine.late_p50);
    run["late_p99_s"] = late(done.engine.late_p99);
    run["late_max_s"] = late(done.engine.late_max);
    let commands: Vec<Json> = done
        .commands
        .iter()
        .map(|c| {
            json!({
                "host": scenario.nodes[c.host as usize].name,
                "run": c.run,
                "start_s": c.start.map(Instant::decimal_secs),
                "end_s": c.end.map(Instant::decimal_secs),
                "exit_code": c.exit_code,
                "stdout": text(&c.stdout),
                "stderr": text(&c.stderr),
            })
        })
        .collect();
    let counters = done.counters.iter().map(|c| {
        let grown = c.counts.keys().map(|name| (name.clone(), c.grew(name)));
        let moved = grown.filter(|(_, n)| *n > 0);
        let moved: serde_json::Map<String, Json> = moved.map(|(k, n)| (k, n.into())).collect();
        (scenario.nodes[c.host as usize].name.clone(), moved.into())
    });
    let counters: serde_json::Map<String, Json> = counters.collect();
    if !counters.is_empty() {
        // Counters of the kernel that changed, by host (`nstat`, without MPTcpExt).
        run["mptcp_counters"] = counters.into();
    }
    let mut warnings = Vec::new();
    for (c, spec) in done.commands.iter().zip(&scenario.lab.commands) {
        warnings.extend(warning(scenario, spec, c.exit_code));
    }
    warnings.extend(without_gauges(scenario));
    if let Some(list) = run["warnings"].as_array_mut() {
        list.extend(warnings.into_iter().map(Json::from));
    }
    if !commands.is_empty() {
        json["commands"] = commands.into();
    }
}

/// A remark, because the kernel does not show internal quantities of its congestion controls.
fn without_gauges(scenario: &Scenario) -> Option<String> {
    let by_kernel = |f: &&Flow| {
        let sender = scenario.lab.stacks.get(f.sender());
        matches!(f.transport, Transport::Tcp(_)) && f.rows && sender != Some(&Stack::Gargalo)
    };
    let flows = scenario.flows.iter().filter(by_kernel);
    let flows: Vec<String> = flows.map(|f| f.id.to_string()).collect();
    (scenario.record.gauges && !flows.is_empty()).then(|| {
        format!(
            "record.gauges: the kernel does not show what its congestion controls have inside: nothing is recorded of \
             flow {}; give the sender stack = \"gargalo\"",
            flows.join(", ")
        )
    })
}

fn warning(scenario: &Scenario, c: &CommandSpec, exit_code: Option<i32>) -> Option<String> {
    let host = &scenario.nodes[c.host as usize].name;
    match exit_code {
        Some(0) => None,
        Some(code) => Some(format!("`{}` on {host} ended with exit code {code}", c.run)),
        None if c.background => None,
        None => Some(format!(
            "`{}` on {host} had not ended when the run did",
            c.run
        )),
    }
}

fn text(path: &Path) -> String {
    let mut shown = Vec::new();
    if let Ok(file) = File::open(path) {
        // An error is ignored: what was read until then is shown.
        let _ = file.take(SHOWN).read_to_end(&mut shown);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

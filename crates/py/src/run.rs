//! Running a scenario: text in, tables out, with the interpreter free meanwhile.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use gargalo_flow::{FlowSample, Phase, Progress};
use gargalo_native::calls::{self, Ended};
use gargalo_scenario::memory::usual_limit;
use gargalo_scenario::{self as scenario, Scenario, World, build};
use gargalo_sim::BuildError;
use gargalo_trace::{Columns, RunDir, Tables};
use gargalo_units::{Bytes, Duration, Instant};
use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::classes::{Classes, names_of};
use crate::controller::Faults;
use crate::errors::{refused, run_error, wrong};
use crate::files::{self, PROGRESS_EVERY};
use crate::stacks::Stacks;

/// What a run produced.
#[pyclass(frozen, module = "gargalo._core")]
pub struct RunResult {
    /// The object that `--json` prints, but for its rows of tables.
    #[pyo3(get)]
    json: String,
    /// The scenario in its own words with every default written out, as JSON.
    #[pyo3(get)]
    scenario: String,
    setup: Box<RawValue>,
    /// The scenario as given: its text, its path and the changes, as JSON.
    #[pyo3(get)]
    source: String,
    /// Stopped before its end; what it had done until then is here.
    #[pyo3(get)]
    interrupted: bool,
    /// Stopped by a keyboard interrupt, not by the progress function.
    #[pyo3(get)]
    keyboard_interrupt: bool,
    /// Where the files are, if they were written.
    #[pyo3(get)]
    directory: Option<PathBuf>,
    tables: Tables,
}

#[pymethods]
impl RunResult {
    /// What the engine made of it: nodes, links and flows in SI, as JSON like that of `setup`.
    #[getter]
    fn setup(&self) -> &str {
        self.setup.get()
    }

    /// A results table as Arrow IPC.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let table = self.columns(name)?;
        let bytes = py.detach(|| table.to_ipc()).map_err(run_error)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The first rows of a results table, at most `most`, as an array in JSON.
    fn rows(&self, py: Python<'_>, name: &str, most: usize) -> PyResult<String> {
        let table = self.columns(name)?;
        Ok(py.detach(|| Value::Array(table.rows().take(most).collect()).to_string()))
    }
}

impl RunResult {
    /// What was not run, but recorded: `json` is the object of `--json`, but for its rows of tables.
    pub(crate) fn recorded(json: &Value, setup: &Value, source: &Value, tables: Tables) -> Self {
        Self {
            json: json.to_string(),
            scenario: json!({}).to_string(),
            setup: raw(setup),
            source: source.to_string(),
            interrupted: false,
            keyboard_interrupt: false,
            directory: None,
            tables,
        }
    }

    /// The same, written to a directory.
    pub(crate) fn written_to(self, place: PathBuf) -> Self {
        Self {
            directory: Some(place),
            ..self
        }
    }

    fn columns(&self, name: &str) -> PyResult<&Columns> {
        let mut all = self.tables.all().into_iter();
        let table = all.find(|t| t.schema().name == name);
        table.ok_or_else(|| PyValueError::new_err(format!("there is no results table \"{name}\"")))
    }
}

/// Reads and checks a scenario; nothing runs.
pub(crate) fn parse(
    text: &str,
    path: Option<PathBuf>,
    overrides: &[(String, String)],
    names: &scenario::Names,
    color: bool,
) -> PyResult<scenario::Scenario> {
    scenario::parse_with(text, &scenario::Origin { path }, overrides, names)
        .map_err(|d| wrong(&d, color))
}

/// The scenario in its own words with every default written out, as JSON or as TOML. `names` are those of classes in
/// Python, by the key that takes them: "congestion", "scheduler", "path_manager".
#[pyfunction]
#[pyo3(signature = (text, path, overrides, names, color=false, toml=false))]
pub fn resolve(
    text: &str,
    path: Option<PathBuf>,
    overrides: Vec<(String, String)>,
    names: &Bound<'_, PyDict>,
    color: bool,
    toml: bool,
) -> PyResult<String> {
    let document = parse(text, path, &overrides, &names_of(names)?, color)?.document;
    match toml {
        true => scenario::to_toml(&document).map_err(run_error),
        false => Ok(document.to_string()),
    }
}

/// What the engine makes of a scenario: nodes, links and flows in SI, as JSON. Flows that
/// differ only in `id` are one, with the first `id` and a `count`. `names` as for `resolve`.
#[pyfunction]
#[pyo3(signature = (text, path, overrides, names, color=false))]
pub fn setup(
    text: &str,
    path: Option<PathBuf>,
    overrides: Vec<(String, String)>,
    names: &Bound<'_, PyDict>,
    color: bool,
) -> PyResult<String> {
    let names = names_of(names)?;
    let scenario = parse(text, path, &overrides, &names, color)?;
    Ok(scenario.compact_json())
}

/// Runs a scenario.
///
/// `classes` are those in Python by name, by the key that takes them. `world` is "sim" or "lab".
/// `progress(now_s, end_s, packets, events, phase, fraction)` is called some times a second, with phase "building",
/// "running" or "writing" and the share of it that is done; false stops the run. `memory_limit` is in bytes; by default
/// half of what the machine has left. An exception in it or in a class stops the run and is raised, a keyboard
/// interrupt stops it and leaves a result with `interrupted` set.
#[pyfunction]
#[pyo3(signature = (
    text, path, overrides, classes, progress=None, output=None, replace=false, world="sim", memory_limit=None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn run(
    py: Python<'_>,
    text: &str,
    path: Option<PathBuf>,
    overrides: Vec<(String, String)>,
    classes: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
    output: Option<PathBuf>,
    replace: bool,
    world: &str,
    memory_limit: Option<u64>,
) -> PyResult<RunResult> {
    let (world, execute) = in_world(world)?;
    let names = names_of(classes)?;
    let source = json!({ "text": text, "path": path, "set": overrides });
    let origin = scenario::Origin { path };
    let mut scenario = scenario::parse_for(world, text, &origin, &overrides, &names)
        .map_err(|d| wrong(&d, false))?;
    let document = scenario.document.clone();
    let setup = RawValue::from_string(scenario.compact_json()).map_err(run_error)?;
    let faults = Arc::new(Faults::default());
    let native = gargalo_native::Faults::new();
    let stacks = Stacks::adopt(&mut scenario, classes, &faults, &native)?;
    let classes = Classes::adopt(&mut scenario, classes, &faults, &native)?;
    let dir = files::begin(py, output.as_deref(), replace)?;

    let raised = Arc::new(Mutex::new(None));
    let tell = progress.as_ref().map(|p| p.clone_ref(py));
    let held = world == World::Sim && (stacks.in_python || classes.has_python);
    // Their libraries may keep state in the thread, which a run must not take over from another.
    let has_native = classes.has_native || stacks.is_native;
    if held && has_native {
        // Such a call keeps the interpreter lock.
        native.end_process_if_stuck();
    }
    let stop = Stop {
        faults: Arc::clone(&faults),
        native: Arc::clone(&native),
        asked: Arc::default(),
    };
    let options = build::RunOptions {
        progress: Some(watch(tell, stop.clone(), Arc::clone(&raised), held)),
        controllers: classes.controllers,
        schedulers: classes.schedulers,
        path_managers: classes.path_managers,
        stacks: stacks.named,
        output: dir.as_ref().map(|d| d.path().to_owned()),
        memory_limit: memory_limit.map(Bytes::new).or_else(usual_limit),
    };
    let end = Instant::ZERO + scenario.duration;
    let started = time::Instant::now();
    let outcome = match (has_native, held) {
        (true, _) => apart(py, execute, scenario, options, (&stop, &raised), held)?,
        (false, true) => execute(&scenario, options),
        (false, false) => py.detach(|| execute(&scenario, options)),
    };
    let wall = started.elapsed();
    if let Some(fault) = native.first() {
        return Err(run_error(fault));
    }

    let stopped = matches!(outcome, Err(build::RunError::Stopped));
    let from_class = faults.take();
    let in_class = from_class.is_some();
    let stopped_by_user = match from_class.or_else(|| taken(&raised)) {
        // No class may end the process, least of all as if all were well.
        Some(e) if e.is_instance_of::<PySystemExit>(py) => {
            let code = e.value(py).getattr("code").and_then(|c| c.repr());
            let code = code.map_or_else(|_| String::new(), |c| c.to_string());
            let error = run_error(format!(
                "a class or function written in Python called sys.exit({code}); raise an exception instead"
            ));
            error.set_cause(py, Some(e));
            return Err(error);
        }
        // Once is an interruption; while results are written it leaves nothing behind.
        Some(e) if e.is_instance_of::<PyKeyboardInterrupt>(py) && !stopped => true,
        Some(e) => return Err(e),
        None => false,
    };
    let mut outcome = outcome.map_err(|e| match e {
        build::RunError::Build(BuildError::Capture { .. }) => run_error(e),
        build::RunError::Lab(gargalo_lab::Error::Unsupported(_)) => refused(e),
        build::RunError::Lab(_) => run_error(e),
        build::RunError::Lacking(d) => wrong(&d, false),
        _ => refused(e),
    })?;
    outcome.json["run"]["version"] = env!("GARGALO_ENGINE").into();
    outcome.json["run"]["wall_s"] = json!(wall.as_secs_f64());
    if in_class && let Some(warnings) = outcome.json["run"]["warnings"].as_array_mut() {
        let text = "the interrupt came while a function of a class written in Python was running";
        warnings.push(text.into());
    }
    let mut result = RunResult {
        json: outcome.json.to_string(),
        scenario: document.to_string(),
        setup,
        source: source.to_string(),
        interrupted: outcome.interrupted || stopped_by_user,
        keyboard_interrupt: stopped_by_user,
        directory: None,
        tables: outcome.tables,
    };
    if let Some(dir) = dir {
        // What a class raised has stopped the run, not the writing of what it has.
        let stop = Stop {
            faults: Arc::default(),
            native: gargalo_native::Faults::new(),
            asked: stop.asked,
        };
        let mut tell = watch(progress, stop, Arc::clone(&raised), false);
        let mut go_on = |fraction: f64| {
            let progress = Progress {
                fraction: 0.5 + 0.5 * fraction,
                now: end,
                ..Progress::begin(Phase::Writing, end)
            };
            tell(&progress)
        };
        let place = py
            .detach(|| {
                write(
                    dir,
                    &result,
                    [&source, &document],
                    &outcome.json,
                    &mut go_on,
                )
            })
            .map_err(|e| taken(&raised).unwrap_or_else(|| run_error(e)))?;
        result = result.written_to(place);
    }
    Ok(result)
}

/// Executes a scenario in a thread of its own: a call of a plug-in that does not return is reported, and that thread
/// given up.
fn apart(
    py: Python<'_>,
    execute: Execute,
    scenario: Scenario,
    options: build::RunOptions,
    (stop, raised): (&Stop, &Mutex<Option<PyErr>>),
    held: bool,
) -> PyResult<Result<build::Outcome, build::RunError>> {
    let run = move || match held {
        true => Python::attach(|_| execute(&scenario, options)),
        false => execute(&scenario, options),
    };
    // Signals come to this thread; the run sees what is put there.
    let meanwhile = || {
        if let Err(e) = Python::attach(|py| py.check_signals()) {
            keep(raised, e);
            stop.asked.store(true, Ordering::Relaxed);
        }
    };
    let ended = py.detach(|| calls::contained(&stop.native, run, meanwhile));
    match ended.map_err(run_error)? {
        Ended::Returned(outcome) => Ok(outcome),
        Ended::Stuck => Err(match stop.native.first() {
            Some(fault) => run_error(fault),
            None => run_error("a plug-in does not return"),
        }),
    }
}

/// The exception that was raised since the last call.
fn taken(raised: &Mutex<Option<PyErr>>) -> Option<PyErr> {
    raised.lock().unwrap_or_else(PoisonError::into_inner).take()
}

type Execute = fn(&Scenario, build::RunOptions) -> Result<build::Outcome, build::RunError>;

/// The world of this name, and what runs a scenario there.
fn in_world(world: &str) -> PyResult<(World, Execute)> {
    match world {
        "sim" => Ok((World::Sim, build::run)),
        #[cfg(target_os = "linux")]
        "lab" => Ok((World::Lab, scenario::lab::run)),
        #[cfg(not(target_os = "linux"))]
        "lab" => Err(run_error("the lab needs Linux; run it with --world sim")),
        other => Err(PyValueError::new_err(format!(
            "there is no world \"{other}\": sim or lab"
        ))),
    }
}

/// Writes results; without a scenario its `document` is an empty object.
pub(crate) fn write(
    dir: RunDir,
    result: &RunResult,
    [source, document]: [&Value; 2],
    json: &Value,
    go_on: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<PathBuf, gargalo_trace::Error> {
    let has_scenario = document.as_object().is_some_and(|d| !d.is_empty());
    let text = has_scenario.then(|| scenario::to_toml(document));
    let interrupted = Value::from(result.interrupted);
    let mut run = BTreeMap::from([
        ("source", Part::Value(source)),
        ("scenario", Part::Value(document)),
        ("setup", Part::Written(&result.setup)),
        ("interrupted", Part::Value(&interrupted)),
    ]);
    if !json["commands"].is_null() {
        run.insert("commands", Part::Value(&json["commands"]));
    }
    let facts = json["run"].as_object().into_iter().flatten();
    run.extend(facts.map(|(key, value)| (key.as_str(), Part::Value(value))));
    dir.write_with("run.json", |file| in_lines(&run, file))?;
    dir.write_with("summary.json", |file| in_lines(&json["summary"], file))?;
    if let Some(Ok(text)) = text {
        dir.write("scenario.toml", text.as_bytes())?;
    }
    result.tables.write_to(&dir, go_on)?;
    dir.commit(&mut || go_on(1.0))
}

/// A part of `run.json`.
#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Value(&'a Value),
    /// In one line: of a network with thousands of links it is most of the file, and for programs.
    Written(&'a RawValue),
}

/// Writes JSON in lines.
fn in_lines(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// JSON that stays as it is written.
fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// What stops a run: a failure of a class in Python, or of a plug-in, or a signal that came to another thread.
#[derive(Clone)]
struct Stop {
    faults: Arc<Faults>,
    native: Arc<gargalo_native::Faults>,
    asked: Arc<AtomicBool>,
}

/// Keeps what was raised if it is the first.
fn keep(raised: &Mutex<Option<PyErr>>, error: PyErr) {
    let mut first = raised.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert(error);
}

type Watch = Box<dyn FnMut(&Progress) -> ControlFlow<()> + Send>;

/// Number of the flow, time in seconds, bytes that its receiver has, smoothed round trip in seconds, window in bytes.
type Told = (u64, f64, u64, Option<f64>, u64);

/// A sample as the progress function gets it.
fn told(s: FlowSample) -> Told {
    let received = s.received.unwrap_or(s.delivered);
    (
        s.flow,
        s.time.decimal_secs(),
        received.get(),
        s.srtt.map(Duration::decimal_secs),
        s.cwnd.get(),
    )
}

/// Looks for faults at every call, for signals and the progress function now and then. If the interpreter lock is
/// `held` during the run, each call gives it up for a moment, so that other threads go on. It is held where classes are
/// called, in simulations, which have one thread: to take it for each call would cost more than most calls.
fn watch(
    progress: Option<Py<PyAny>>,
    stop: Stop,
    raised: Arc<Mutex<Option<PyErr>>>,
    held: bool,
) -> Watch {
    let mut last = time::Instant::now();
    let mut samples = Vec::new();
    let mut is_over = false;
    Box::new(move |p| {
        if p.phase == Phase::Writing && !is_over {
            is_over = true;
            gargalo_native::memory::give_back();
        }
        samples.extend_from_slice(if progress.is_some() { p.samples } else { &[] });
        if held {
            Python::attach(|py| py.detach(|| ()));
        }
        let asked = stop.asked.swap(false, Ordering::Relaxed);
        if asked || stop.faults.raised() || stop.native.raised() {
            return ControlFlow::Break(());
        }
        let is_last = p.phase == Phase::Running && p.now >= p.end;
        if last.elapsed() < PROGRESS_EVERY && !is_last {
            return ControlFlow::Continue(());
        }
        last = time::Instant::now();
        let go_on = Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            let Some(progress) = &progress else {
                return Ok(true);
            };
            let args = (
                p.now.as_secs_f64(),
                p.end.as_secs_f64(),
                p.packets,
                p.events,
                p.phase.name(),
                p.fraction,
                samples.drain(..).map(told).collect::<Vec<_>>(),
            );
            let answer = progress.bind(py).call1(args)?;
            Ok(answer.is_none() || answer.is_truthy()?)
        });
        match go_on {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(e) => {
                keep(&raised, e);
                ControlFlow::Break(())
            }
        }
    })
}

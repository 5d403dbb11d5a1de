//! Reading what was recorded elsewhere: captures in, the tables of a run out.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time;

use gargalo_recording::{Error, Options, read};
use gargalo_units::Duration;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::run_error;
use crate::files::{self, PROGRESS_EVERY};
use crate::run::{RunResult, write};

/// Reads captures of the same traffic as a recording, which has the form of a run without a scenario.
///
/// `progress(fraction, packets)` is called some times a second; an exception in it stops the reading and is raised.
#[pyfunction]
#[pyo3(signature = (
    paths, name, interval_s, anonymise=false, packets=false, progress=None, output=None, replace=false
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn read_recording(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    name: &str,
    interval_s: f64,
    anonymise: bool,
    packets: bool,
    progress: Option<Py<PyAny>>,
    output: Option<PathBuf>,
    replace: bool,
) -> PyResult<RunResult> {
    let dir = files::begin(py, output.as_deref(), replace)?;
    let options = Options {
        interval: Duration::from_secs_f64(interval_s),
        anonymise,
        packets,
    };
    let (mut last, mut raised) = (time::Instant::now(), None);
    let mut go_on = |fraction: f64, packets: u64| {
        if last.elapsed() < PROGRESS_EVERY {
            return ControlFlow::Continue(());
        }
        last = time::Instant::now();
        let told = Python::attach(|py| -> PyResult<()> {
            py.check_signals()?;
            match &progress {
                Some(progress) => progress.call1(py, (fraction, packets)).map(drop),
                None => Ok(()),
            }
        });
        match told {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                raised = Some(e);
                ControlFlow::Break(())
            }
        }
    };
    let recording = py.detach(|| read(&paths, &options, &mut go_on));
    let recording = match (recording, raised) {
        (Err(Error::Stopped), Some(e)) => return Err(e),
        (Err(e), _) => return Err(run_error(e)),
        (Ok(recording), _) => recording,
    };
    let (mut json, setup) = (recording.json(name), recording.setup(name));
    json["run"]["version"] = env!("GARGALO_ENGINE").into();
    let source = match anonymise {
        true => json!({ "recording": paths.len() }),
        false => json!({ "recording": paths }),
    };
    let result = RunResult::recorded(&json, &setup, &source, recording.into_tables());
    let Some(dir) = dir else {
        return Ok(result);
    };
    let no_scenario = json!({});
    let place = files::hashing(py, |go_on| {
        let parts = [&source, &no_scenario];
        write(dir, &result, parts, &json, &mut |_| go_on())
    })?;
    Ok(result.written_to(place))
}

/// The kind of log that begins with these bytes, up to 64 KiB; `None` if it is none that can be read.
#[pyfunction]
pub fn kind_of_log(start: &[u8]) -> Option<&'static str> {
    gargalo_recording::kind_of_log(start)
}

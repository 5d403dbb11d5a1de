//! The lab's sandbox, and `gargalo shell`.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::RunError;

/// Moves the rest of the program into namespaces of its own; the caller's process waits outside. Only
/// a process of one thread can. With `kept` the network stays that of the caller, who must be root.
#[pyfunction]
#[pyo3(signature = (kept=false))]
pub fn enter_sandbox(kept: bool) -> PyResult<()> {
    #[cfg(target_os = "linux")]
    {
        use gargalo_lab::sandbox::{Network, enter};
        let network = if kept { Network::Kept } else { Network::New };
        enter(network).map_err(|e| RunError::new_err(e.to_string()))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = kept;
        Err(RunError::new_err("the lab needs Linux"))
    }
}

/// What `gargalo shell` asks for, filled in by `cli/shell.py`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellRequest {
    /// A scenario with one link; up is from the program outwards.
    pub scenario: String,
    /// The program and its arguments; none: the user's shell.
    pub command: Vec<String>,
    /// A line for the shell at the outer end.
    pub outside: Option<String>,
    /// Hide the program behind this machine's own address.
    pub nat: bool,
    /// Files for what happens on the uplink and the downlink.
    pub logs: [Option<PathBuf>; 2],
}

/// Runs a program behind an emulated link and gives its exit code. `watch(time_s, up, down, outside)`
/// is told about the link ten times a second; each direction is a list: carried bit/s, capacity in
/// bit/s or none, queueing delay in seconds, packets waiting, packets dropped so far. `outside` is the
/// exit code of the line at the outer end, none while it runs.
#[pyfunction]
pub fn shell(py: Python<'_>, request: &str, watch: Py<PyAny>) -> PyResult<i32> {
    let request: ShellRequest =
        serde_json::from_str(request).map_err(|e| RunError::new_err(e.to_string()))?;
    #[cfg(target_os = "linux")]
    {
        run_shell(py, request, watch)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (py, request, watch);
        Err(RunError::new_err("the lab needs Linux"))
    }
}

#[cfg(target_os = "linux")]
fn run_shell(py: Python<'_>, request: ShellRequest, watch: Py<PyAny>) -> PyResult<i32> {
    use gargalo_lab::Choice;
    use gargalo_lab::shell::{DirectionSample, ShellSample, ShellSpec, shell};

    let scenario = crate::run::parse(&request.scenario, None, &[], &Default::default(), false)?;
    let Some(link) = scenario.links.first() else {
        return Err(RunError::new_err("a shell needs a link"));
    };
    let spec = ShellSpec {
        up: link.up.clone(),
        down: link.down.clone(),
        seed: scenario.seed,
        command: request.command,
        outside: request.outside,
        nat: request.nat,
        logs: request.logs,
        tuning: scenario.lab.tuning,
        devices: Choice::Best {
            offload: scenario.lab.offload,
        },
    };
    let direction = |d: &DirectionSample| {
        let capacity = d.capacity.map(|c| c.as_bps());
        let delay = d.queue_delay.as_secs_f64();
        (
            d.rate.as_bps(),
            capacity,
            delay,
            d.queue_packets,
            d.dropped_packets,
        )
    };
    let mut tell = |s: &ShellSample| {
        let [up, down] = &s.directions;
        let time_s = s.time.as_secs_f64();
        let sample = (time_s, direction(up), direction(down), s.outside_exit_code);
        // Nobody may be looking any more; the program goes on.
        let _ = Python::attach(|py| watch.call1(py, sample));
    };
    py.detach(|| shell(&spec, &mut tell))
        .map_err(|e| RunError::new_err(e.to_string()))
}

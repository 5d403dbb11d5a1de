//! `gargalo script`.

use gargalo_script::ast::Only;
use gargalo_script::{Choices, run_all};
use gargalo_units::Duration;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::RunError;

/// What `gargalo script` asks for, filled in by `cli_script.py`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    texts: Vec<String>,
    /// The kernel's stack instead of ours.
    kernel: bool,
    tolerance_ms: u64,
    jobs: usize,
    /// Options of our stack.
    options: Vec<(String, String)>,
}

/// Runs scripts; `done(number, verdict)` is told the verdict of each as JSON, in the order in which they end.
#[pyfunction]
pub fn scripts(py: Python<'_>, request: &str, done: Py<PyAny>) -> PyResult<()> {
    let request: Request =
        serde_json::from_str(request).map_err(|e| RunError::new_err(e.to_string()))?;
    let choices = Choices {
        stack: if request.kernel {
            Only::Kernel
        } else {
            Only::Ours
        },
        tolerance: Duration::from_millis(request.tolerance_ms),
        gargalo: request.options,
    };
    let mut raised: Option<PyErr> = None;
    let mut interrupt: Option<PyErr> = None;
    py.detach(|| {
        run_all(
            &request.texts,
            &choices,
            request.jobs,
            &mut |i, verdict| {
                let told = serde_json::to_string(&verdict)
                    .map_err(|e| RunError::new_err(e.to_string()))
                    .and_then(|json| Python::attach(|py| done.call1(py, (i, json)).map(drop)));
                if let Err(e) = told {
                    raised.get_or_insert(e);
                }
            },
            &mut || match Python::attach(|py| py.check_signals()) {
                Ok(()) => interrupt.is_none(),
                Err(e) => {
                    interrupt.get_or_insert(e);
                    false
                }
            },
        );
    });
    interrupt.or(raised).map_or(Ok(()), Err)
}

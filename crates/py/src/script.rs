//! `gargalo script`.

use std::path::PathBuf;

use gargalo_script::ast::Only;
use gargalo_script::{Choices, Source, run_all};
use gargalo_units::Duration;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::RunError;

/// What `gargalo script` asks for, filled in by `cli/script.py`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    texts: Vec<String>,
    /// The directory of each script.
    directories: Vec<Option<PathBuf>>,
    /// The kernel's stack instead of ours.
    kernel: bool,
    tolerance_ms: u64,
    jobs: usize,
    /// Options of our stack.
    options: Vec<(String, String)>,
    /// A shell file whose settings scripts begin with: path and text.
    init: Option<(PathBuf, String)>,
    /// Words, and what stands for them.
    defines: Vec<(String, String)>,
    strict_end: bool,
}

/// Runs scripts; `done(number, verdict)` is called with the verdict of each as JSON, in the order in which they end.
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
        init: request.init,
        defines: request.defines,
        strict_end: request.strict_end,
    };
    let sources = request.texts.into_iter().zip(request.directories);
    let sources: Vec<Source> = sources
        .map(|(text, directory)| Source { text, directory })
        .collect();
    let mut raised: Option<PyErr> = None;
    let mut interrupt: Option<PyErr> = None;
    py.detach(|| {
        run_all(
            &sources,
            &choices,
            request.jobs,
            &mut |i, report| {
                let text = serde_json::to_string(&report)
                    .map_err(|e| RunError::new_err(e.to_string()))
                    .and_then(|json| Python::attach(|py| done.call1(py, (i, json)).map(drop)));
                if let Err(e) = text {
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

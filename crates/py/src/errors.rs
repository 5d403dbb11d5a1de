//! What is raised, and what is wrong with a scenario as values.

use gargalo_scenario as scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

create_exception!(
    gargalo,
    ScenarioError,
    PyValueError,
    "A scenario is wrong; the text shows where and what to write instead, `diagnostics` has it as values."
);
create_exception!(
    gargalo,
    RunError,
    PyRuntimeError,
    "A run could not be done; the text says why."
);

/// One thing that is wrong with a scenario.
#[pyclass(frozen, eq, hash, get_all, module = "gargalo._core")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    path: Option<String>,
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    message: String,
    help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic with a message and no place.
    pub fn says(message: impl std::fmt::Display) -> Self {
        Self {
            path: None,
            file: None,
            line: None,
            column: None,
            message: message.to_string(),
            help: None,
        }
    }
}

impl From<&scenario::Diagnostic> for Diagnostic {
    fn from(d: &scenario::Diagnostic) -> Self {
        Self {
            path: d.path.clone(),
            file: Some(d.file.clone()),
            line: (d.line > 0).then_some(d.line),
            column: (d.line > 0).then_some(d.column),
            message: d.message.clone(),
            help: d.help.clone(),
        }
    }
}

#[pymethods]
impl Diagnostic {
    #[new]
    #[pyo3(signature = (message, *, path=None, file=None, line=None, column=None, help=None))]
    fn new(
        message: String,
        path: Option<String>,
        file: Option<String>,
        line: Option<usize>,
        column: Option<usize>,
        help: Option<String>,
    ) -> Self {
        Self {
            path,
            file,
            line,
            column,
            message,
            help,
        }
    }

    /// All fields, for JSON.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        d.set_item("path", &self.path)?;
        d.set_item("file", &self.file)?;
        d.set_item("line", self.line)?;
        d.set_item("column", self.column)?;
        d.set_item("message", &self.message)?;
        d.set_item("help", &self.help)?;
        Ok(d)
    }

    /// What is wrong and what to do, in one sentence without the place.
    fn sentence(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }

    fn __str__(&self) -> String {
        let place = match (&self.file, self.line, self.column) {
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            (Some(file), _, _) => format!("{file}: "),
            (None, _, _) => String::new(),
        };
        place + &self.sentence()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = self.to_json(py)?.items().iter().map(|item| {
            let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
            Ok(format!("{name}={}", value.repr()?))
        });
        let fields: PyResult<Vec<_>> = fields.collect();
        Ok(format!("Diagnostic({})", fields?.join(", ")))
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.to_json(py)?))
    }
}

/// An error that has its text and the same as values.
pub fn scenario_error(text: String, diagnostics: Vec<Diagnostic>) -> PyErr {
    Python::attach(|py| {
        let error = ScenarioError::new_err(text);
        let values = PyTuple::new(py, diagnostics);
        match values.and_then(|v| error.value(py).setattr("diagnostics", v)) {
            Ok(()) => error,
            Err(e) => e,
        }
    })
}

/// Everything that is wrong with a scenario, as raised.
pub fn wrong(found: &scenario::Diagnostics, color: bool) -> PyErr {
    scenario_error(
        found.render(color),
        found.iter().map(Diagnostic::from).collect(),
    )
}

/// The exceptions and what they carry.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let error = m.py().get_type::<ScenarioError>();
    // Of an error that was raised with a text alone.
    error.setattr("diagnostics", PyTuple::empty(m.py()))?;
    m.add("ScenarioError", error)?;
    m.add("RunError", m.py().get_type::<RunError>())?;
    m.add_class::<Diagnostic>()
}

/// A failure of a run.
pub(crate) fn run_error(e: impl std::fmt::Display) -> PyErr {
    RunError::new_err(e.to_string())
}

/// A scenario that is right in itself but cannot be run.
pub fn refused(e: impl std::fmt::Display) -> PyErr {
    scenario_error(format!("error: {e}"), vec![Diagnostic::says(e)])
}

//! QUIC stacks of shared libraries, as objects that are registered like classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_native::stack::{NativeImplementation, NativeStack};
use gargalo_native::{Faults as NativeFaults, Library, LoadError};
use gargalo_quic::Implementation;
use gargalo_scenario::Scenario;
use gargalo_scenario::resolved::Transport;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::classes::{STACK, find};
use crate::controller::Faults;
use crate::stack::PyStack;

/// The QUIC stack of a shared library.
#[pyclass(frozen, module = "gargalo._core", name = "NativeStack")]
pub struct PyNativeStack {
    inner: &'static NativeStack,
}

#[pymethods]
impl PyNativeStack {
    /// Its name in scenarios.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The version of the implementation inside.
    #[getter]
    fn version(&self) -> &str {
        self.inner.version()
    }

    /// Names of its congestion controls, the default first.
    #[getter]
    fn congestion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.congestion())
    }

    /// What a scenario may ask of it, in words.
    #[getter]
    fn features(&self) -> Vec<&'static str> {
        let f = self.inner.features();
        let words = [
            ("0-rtt", f.zero_rtt),
            ("retry", f.retry),
            ("migration", f.migration),
            ("ecn", f.ecn),
            ("qlog", self.inner.writes_qlog()),
            ("no-pacing", f.no_pacing),
            ("mtu-discovery", f.mtu_discovery),
            ("initial-window", f.initial_window),
        ];
        let has = words.into_iter().filter(|(_, has)| *has);
        has.map(|(word, _)| word).collect()
    }

    /// The file that it is from.
    #[getter]
    fn file(&self) -> &str {
        self.inner.library().file()
    }

    /// SHA-256 of the file, in hexadecimal.
    #[getter]
    fn digest(&self) -> &str {
        self.inner.library().digest()
    }

    /// What the file has.
    #[getter]
    fn library<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.library().bytes())
    }

    fn __repr__(&self) -> String {
        format!("<QUIC stack {:?} of {}>", self.name(), self.file())
    }

    /// A copy elsewhere is loaded from the same bytes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let load = py.import("gargalo._core")?.getattr("native_stack")?;
        let given = (self.file(), self.library(py));
        (load, given).into_pyobject(py)
    }
}

/// The implementations that the flows of a scenario name, of those that are registered.
#[derive(Debug, Default)]
pub struct Stacks {
    /// By name.
    pub named: BTreeMap<String, Arc<dyn Implementation>>,
    /// One of them is a class in Python.
    pub in_python: bool,
    /// One of them is of a shared library.
    pub is_native: bool,
}

impl Stacks {
    /// Finds them among the registered.
    pub fn adopt(
        scenario: &Scenario,
        classes: &Bound<'_, PyDict>,
        faults: &Arc<Faults>,
        native: &Arc<NativeFaults>,
    ) -> PyResult<Self> {
        let mut made = Self::default();
        for flow in &scenario.flows {
            let Transport::Quic(quic) = &flow.transport else {
                continue;
            };
            for name in [&quic.stack.client, &quic.stack.server] {
                if made.named.contains_key(name) {
                    continue;
                }
                let Some(found) = find(classes, STACK, name)? else {
                    continue;
                };
                let stack: Arc<dyn Implementation> = match found.cast::<PyNativeStack>() {
                    Ok(stack) => {
                        made.is_native = true;
                        let stack = stack.get().inner;
                        Arc::new(NativeImplementation::new(stack, Arc::clone(native)))
                    }
                    Err(_) => {
                        made.in_python = true;
                        Arc::new(PyStack::of(name, &found, faults)?)
                    }
                };
                made.named.insert(name.clone(), stack);
            }
        }
        Ok(made)
    }
}

/// The QUIC stack of a shared library, which is given as bytes; `file` is its name in messages. None: it has none.
#[pyfunction]
pub fn native_stack(file: &str, library: &[u8]) -> PyResult<Option<PyNativeStack>> {
    let bad = |e: LoadError| PyValueError::new_err(e.to_string());
    let library = Library::load(file, library).map_err(bad)?;
    let stack = NativeStack::of(library).map_err(bad)?;
    Ok(stack.map(|inner| PyNativeStack { inner }))
}

//! QUIC stacks of shared libraries, as objects that are registered like classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_native::stack::{NativeImplementation, NativeStack};
use gargalo_native::{Contents, Faults as NativeFaults, outside};
use gargalo_quic::{Config, Congestion, Implementation, own_name};
use gargalo_scenario::Scenario;
use gargalo_scenario::resolved::Transport;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::classes::{STACK, find};
use crate::controller::Faults;
use crate::errors::refused;
use crate::native::bad;
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

    /// What its congestion controls follow, by name, where it says so: `bbr`, `bbr2`, `bbr3`.
    #[getter]
    fn specifications(&self) -> BTreeMap<&str, &str> {
        self.inner.specifications().collect()
    }

    /// What a scenario may request of it, in words.
    #[getter]
    fn features(&self) -> Vec<&'static str> {
        let mut all = self.inner.features();
        let has = all.by_word().into_iter().filter(|(_, has)| **has);
        has.map(|(word, _)| word).collect()
    }

    /// The file that it is from.
    #[getter]
    fn file(&self) -> &str {
        self.inner.library().file()
    }

    /// Notes from now on what its library asks the system for, until the process ends; whether that can be done here.
    fn watch(&self) -> bool {
        outside::watch(self.inner.library())
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
    /// The implementations by their names in the scenario.
    pub named: BTreeMap<String, Arc<dyn Implementation>>,
    /// One of them is a class in Python.
    pub in_python: bool,
    /// One of them is of a shared library.
    pub is_native: bool,
}

impl Stacks {
    /// Finds them among the registered, and calls congestion controls as they do.
    pub fn adopt(
        scenario: &mut Scenario,
        classes: &Bound<'_, PyDict>,
        faults: &Arc<Faults>,
        native: &Arc<NativeFaults>,
    ) -> PyResult<Self> {
        let mut made = Self::default();
        for flow in &mut scenario.flows {
            let Transport::Quic(quic) = &mut flow.transport else {
                continue;
            };
            meet(quic, classes)?;
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
            if let Some(name) = called(quic, classes)? {
                Arc::make_mut(quic).congestion.name = name;
            }
        }
        Ok(made)
    }
}

/// The name by which the stacks of a flow know its congestion control, if that is another than the scenario's.
fn called(quic: &Config, classes: &Bound<'_, PyDict>) -> PyResult<Option<String>> {
    let asked = &quic.congestion.name;
    let mut other = None;
    for stack in [&quic.stack.client, &quic.stack.server] {
        let Some(found) = find(classes, STACK, stack)? else {
            continue;
        };
        let own: Vec<String> = found.getattr("congestion")?.extract()?;
        match own_name(&own, asked) {
            Some(name) if name == asked => return Ok(None),
            name => other = name.map(str::to_owned).or(other),
        }
    }
    Ok(other)
}

/// Checks that both ends of a flow have its congestion control, where their stacks differ.
///
/// # Errors
/// Says which end lacks it, and what both have.
fn meet(quic: &Config, classes: &Bound<'_, PyDict>) -> PyResult<()> {
    let stack = &quic.stack;
    if stack.client == stack.server {
        return Ok(());
    }
    let of_noq = |name: &String| Congestion::own(name).is_some() || gargalo_cc::find(name).is_ok();
    // Those of noq are those of the project; `None` stands for them.
    let own = |name: &str| -> PyResult<Option<Vec<String>>> {
        let found = find(classes, STACK, name)?;
        found
            .map(|s| s.getattr("congestion")?.extract())
            .transpose()
    };
    let (client, server) = (own(&stack.client)?, own(&stack.server)?);
    let has = |own: &Option<Vec<String>>, name: &String| match own {
        Some(own) => own_name(own, name).is_some(),
        None => of_noq(name),
    };
    let chosen = &quic.congestion.name;
    let ends = [
        ("client", &stack.client, &client),
        ("server", &stack.server, &server),
    ];
    let lacking = ends.iter().filter(|(_, _, own)| !has(own, chosen));
    let lacking: Vec<String> = lacking
        .map(|(end, name, _)| format!("the {end}'s {name}"))
        .collect();
    let verb = match lacking.len() {
        0 => return Ok(()),
        1 => "does",
        _ => "do",
    };
    let all = client.as_ref().or(server.as_ref());
    let both = all.into_iter().flatten();
    let both: Vec<&str> = both
        .filter(|name| has(&client, name) && has(&server, name))
        .map(String::as_str)
        .collect();
    let shared = match &both[..] {
        [] => "they have none in common".to_owned(),
        names => format!("both have {}", names.join(", ")),
    };
    let lacking = lacking.join(" and ");
    let message = format!("congestion = \"{chosen}\": {lacking} {verb} not have it; {shared}");
    Err(refused(message))
}

/// The QUIC stack of a shared library, which is given as bytes; `file` is its name in messages. None: it has none.
#[pyfunction]
pub fn native_stack(file: &str, library: &[u8]) -> PyResult<Option<PyNativeStack>> {
    let contents = Contents::load(file, library).map_err(bad)?;
    Ok(contents.stack.map(|inner| PyNativeStack { inner }))
}

/// The calls to the system of the libraries that are watched: how many of each, by name and what it asked for.
#[pyfunction]
pub fn calls_outside() -> BTreeMap<String, u64> {
    outside::seen()
}

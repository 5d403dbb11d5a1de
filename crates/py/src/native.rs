//! Congestion controls of shared libraries, as objects that are registered like classes.

use std::collections::BTreeMap;

use gargalo_native::congestion::{Algorithm, Plugin};
use gargalo_native::{Contents, LoadError, calls};
use gargalo_plugin::headers;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::tools;

/// A congestion control of a shared library.
#[pyclass(frozen, module = "gargalo._core")]
pub struct NativeCongestion {
    algorithm: &'static Algorithm,
}

impl NativeCongestion {
    /// The algorithm as the library declares it.
    pub const fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }
}

#[pymethods]
impl NativeCongestion {
    /// Its name in scenarios.
    #[getter]
    fn name(&self) -> &str {
        self.algorithm.name()
    }

    /// The file that it is from.
    #[getter]
    fn file(&self) -> &str {
        self.algorithm.file()
    }

    /// SHA-256 of the file, in hexadecimal.
    #[getter]
    fn digest(&self) -> &str {
        self.algorithm.library().digest()
    }

    /// What the file has.
    #[getter]
    fn library<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.algorithm.library().bytes())
    }

    /// Name, summary, source and parameters, as in the list of congestion controls.
    fn listed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let a = self.algorithm;
        tools::chooser(py, a.name(), a.summary(), a.source(), a.params())
    }

    fn __repr__(&self) -> String {
        let a = self.algorithm;
        format!("<congestion control {:?} of {}>", a.name(), a.file())
    }

    /// A copy elsewhere is loaded from the same bytes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let load = py
            .import("gargalo._core")?
            .getattr("native_congestion_named")?;
        let named = (self.file(), self.library(py), self.name());
        (load, named).into_pyobject(py)
    }
}

pub(crate) fn bad(e: LoadError) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// The congestion controls of a shared library, which is given as bytes; `file` is its name in messages. A library with
/// a QUIC stack need not have any.
#[pyfunction]
pub fn native_congestion(file: &str, library: &[u8]) -> PyResult<Vec<NativeCongestion>> {
    let contents = Contents::load(file, library).map_err(bad)?;
    let plugin = contents.congestion.as_ref();
    let algorithms = plugin.map_or(&[][..], Plugin::algorithms).iter();
    Ok(algorithms
        .map(|algorithm| NativeCongestion { algorithm })
        .collect())
}

/// The congestion control of this name.
#[pyfunction]
pub fn native_congestion_named(
    file: &str,
    library: &[u8],
    name: &str,
) -> PyResult<NativeCongestion> {
    let all = native_congestion(file, library)?;
    let found = all.into_iter().find(|c| c.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("{file} has no congestion control {name:?}")))
}

/// A compiled library with a digest of itself at its end, by which damage is found before it is loaded.
#[pyfunction]
pub fn seal_library<'py>(py: Python<'py>, library: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &gargalo_native::seal(library))
}

/// The C headers of plug-ins: text by path below a folder for headers.
#[pyfunction]
pub fn plugin_headers() -> BTreeMap<String, String> {
    let own = headers::HEADERS.iter();
    let own = own.map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    let forwarded = "#include \"gargalo_linux.h\"\n";
    let names = headers::LINUX_NAMES.iter();
    let names = names.map(|name| (format!("linux/{name}"), forwarded.to_owned()));
    own.chain(names).collect()
}

/// Whether a call of a plug-in in this process does not return.
#[pyfunction]
pub fn has_stuck_calls() -> bool {
    gargalo_native::has_stuck_calls()
}

/// What is printed when a plug-in crashes is also written to this descriptor.
#[pyfunction]
pub fn tell_crashes_to(descriptor: i32) {
    calls::tell_crashes_to(descriptor);
}

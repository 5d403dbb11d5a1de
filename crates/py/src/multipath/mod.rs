//! Schedulers and path managers of Multipath TCP written in Python.
//!
//! As for congestion controls the interpreter lock is taken for each call, and the first exception is kept in
//! [`Faults`](crate::controller::Faults): from then on a scheduler waits and a path manager reports no missing
//! subflows, until the run is stopped and raises that exception.

mod connecting;
mod path_manager;
pub mod records;
mod scheduler;

pub use path_manager::PyPathManagerFactory;
pub use scheduler::PySchedulerFactory;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gargalo_cc::Params;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rand::Rng;

use crate::answers::{name_of, parameters, returned, wrong};
use crate::controller::Faults;

/// The common part of both kinds of factories: a class, its parameters, and the source of its seeds.
#[derive(Debug)]
pub struct Class {
    name: String,
    class: Py<PyAny>,
    params: Params,
    seed: u64,
    /// Named stream of the flow; each connection end draws the next seed of it.
    stream: String,
    built: AtomicU64,
    faults: Arc<Faults>,
}

impl Class {
    /// `class` is called once per connection and end with a `ConnectionInit` and the parameters.
    pub fn new(
        name: String,
        class: Py<PyAny>,
        params: Params,
        (seed, stream): (u64, String),
        faults: Arc<Faults>,
    ) -> Self {
        Self {
            name,
            class,
            params,
            seed,
            stream,
            built: AtomicU64::new(0),
            faults,
        }
    }

    /// An instance for one end of a connection, which must be of the class `base` of
    /// `gargalo.plugins.multipath` and override `method`.
    fn build<'py>(&self, py: Python<'py>, base: &str, method: &str) -> PyResult<Bound<'py, PyAny>> {
        let n = self.built.fetch_add(1, Ordering::Relaxed);
        let seed = gargalo_flow::rng::stream(self.seed, &format!("{}/{n}", self.stream)).next_u64();
        let init = records::ConnectionInit { seed };
        let kwargs = parameters(py, &self.params)?;
        let object = self.class.bind(py).call((init,), Some(&kwargs))?;
        let parent = py.import("gargalo.plugins.multipath")?.getattr(base)?;
        let class = object.get_type();
        if !class.is_subclass(&parent)? {
            return Err(PyTypeError::new_err(format!(
                "{} is not a gargalo.{base}; derive the class from it",
                name_of(&class)
            )));
        }
        if class.getattr(method)?.is(&parent.getattr(method)?) {
            return Err(PyTypeError::new_err(format!(
                "{} must define {method}()",
                name_of(&class)
            )));
        }
        Ok(object)
    }

    /// The instance; none after an exception, which is kept.
    fn instance(&self, base: &str, method: &str) -> Option<Py<PyAny>> {
        let built = Python::attach(|py| Ok(self.build(py, base, method)?.unbind()));
        built.map_err(|e| self.faults.put(e)).ok()
    }
}

/// The result of a method that returns a boolean.
fn flag(object: &Bound<'_, PyAny>, method: &str) -> PyResult<bool> {
    let answer = object.call_method0(method)?;
    let flag = answer.extract();
    flag.map_err(|_| wrong(object, method, &answer, "True or False"))
}

//! A path manager written in Python as a [`gargalo_mptcp::path_manager::PathManager`].

use std::fmt;
use std::sync::Arc;

use gargalo_mptcp::Factory;
use gargalo_mptcp::path_manager::{self, Open, PathManager, View};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::connecting::{Open as PyOpen, View as PyView};
use super::{Class, flag, returned};
use crate::controller::Faults;

/// Creates path managers from a Python class.
#[derive(Debug)]
pub struct PyPathManagerFactory(pub Class);

impl Factory<dyn path_manager::PathManager> for PyPathManagerFactory {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn build(&self) -> Box<dyn PathManager> {
        let object = self.0.instance("PathManager", "missing");
        let faults = Arc::clone(&self.0.faults);
        Box::new(PyPathManager { object, faults })
    }
}

struct PyPathManager {
    /// None if it could not be created.
    object: Option<Py<PyAny>>,
    faults: Arc<Faults>,
}

impl fmt::Debug for PyPathManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyPathManager").finish_non_exhaustive()
    }
}

impl PyPathManager {
    /// Calls a method; after an exception, which is kept, the answer is `T`'s default.
    fn ask<T: Default>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        let Some(object) = self.object.as_ref().filter(|_| !self.faults.raised()) else {
            return T::default();
        };
        Python::attach(|py| call(object.bind(py))).unwrap_or_else(|e| {
            self.faults.put(e);
            T::default()
        })
    }
}

impl PathManager for PyPathManager {
    fn missing(&mut self, view: &View<'_>) -> Vec<Open> {
        self.ask(|object| {
            let answer = object.call_method1("missing", (PyView::from(view),))?;
            let wrong = || {
                PyTypeError::new_err(format!(
                    "{}; it must be a list of gargalo.Open or of pairs (local, remote)",
                    returned(object, "missing", &answer)
                ))
            };
            let items = answer.try_iter().map_err(|_| wrong())?;
            items
                .map(|item| {
                    let item = item?;
                    let open = open(&item).ok_or_else(wrong)?;
                    check(object, &open, view)?;
                    Ok(open.into())
                })
                .collect()
        })
    }

    fn announces(&self) -> bool {
        self.ask(|object| flag(object, "announces"))
    }
}

/// Reads a subflow to be opened, given as such or as a pair of identifiers.
fn open(item: &Bound<'_, PyAny>) -> Option<PyOpen> {
    if let Ok(open) = item.cast::<PyOpen>() {
        return Some(open.get().clone());
    }
    let pair = item.cast::<PyTuple>().ok()?;
    let (local, remote) = pair.extract().ok()?;
    Some(PyOpen {
        local,
        remote,
        gateway: None,
    })
}

/// Refuses addresses and gateways that do not exist.
fn check(object: &Bound<'_, PyAny>, open: &PyOpen, view: &View<'_>) -> PyResult<()> {
    let locals: Vec<u8> = view.local.iter().map(|l| l.id).collect();
    let remotes: Vec<u8> = view.remote.iter().map(|r| r.id).collect();
    let class = crate::answers::name_of(&object.get_type());
    let refuse = |what: String| {
        Err(PyValueError::new_err(format!(
            "{class}.missing() asks for {what}"
        )))
    };
    for (id, known, whose) in [
        (open.local, &locals, "our"),
        (open.remote, &remotes, "the peer's"),
    ] {
        if !known.contains(&id) {
            return refuse(format!(
                "{whose} address {id}; there is {}",
                match known.len() {
                    0 => "none".to_owned(),
                    _ => known
                        .iter()
                        .map(u8::to_string)
                        .collect::<Vec<_>>()
                        .join(", "),
                }
            ));
        }
    }
    match open.gateway.filter(|g| !view.gateways.contains(g)) {
        Some(gateway) => refuse(format!(
            "gateway {gateway}, which is not among view.gateways"
        )),
        None => Ok(()),
    }
}

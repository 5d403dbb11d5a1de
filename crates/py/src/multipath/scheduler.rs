//! A scheduler written in Python as a [`gargalo_mptcp::scheduler::Scheduler`].

use std::fmt;
use std::sync::Arc;

use gargalo_mptcp::Factory;
use gargalo_mptcp::scheduler::{Choice, Context, Scheduler};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::{Class, flag, records, returned};
use crate::controller::Faults;

/// Creates schedulers from a Python class.
#[derive(Debug)]
pub struct PySchedulerFactory(pub Class);

impl Factory<dyn Scheduler> for PySchedulerFactory {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn build(&self) -> Box<dyn Scheduler> {
        let object = self.0.instance("Scheduler", "select");
        let minds = |o: &Py<PyAny>| {
            Python::attach(|py| flag(o.bind(py), "minds_window")).unwrap_or_else(|e| {
                self.0.faults.put(e);
                false
            })
        };
        Box::new(PyScheduler {
            minds_window: object.as_ref().is_some_and(minds),
            object,
            faults: Arc::clone(&self.0.faults),
        })
    }
}

struct PyScheduler {
    /// None if it could not be created.
    object: Option<Py<PyAny>>,
    minds_window: bool,
    faults: Arc<Faults>,
}

impl fmt::Debug for PyScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyScheduler").finish_non_exhaustive()
    }
}

impl Scheduler for PyScheduler {
    fn select(&mut self, context: &Context<'_>) -> Choice {
        let Some(object) = self.object.as_ref().filter(|_| !self.faults.raised()) else {
            return Choice::Wait;
        };
        let choice = Python::attach(|py| {
            let object = object.bind(py);
            let answer = object.call_method1("select", (records::Context::of(py, context)?,))?;
            choice(object, &answer, context)
        });
        choice.unwrap_or_else(|e| {
            self.faults.put(e);
            Choice::Wait
        })
    }

    fn minds_window(&self) -> bool {
        self.minds_window
    }
}

/// Reads the result of `select`.
fn choice(
    object: &Bound<'_, PyAny>,
    answer: &Bound<'_, PyAny>,
    context: &Context<'_>,
) -> PyResult<Choice> {
    if answer.is_none() {
        return Ok(Choice::Wait);
    }
    if let Ok(all) = answer.cast::<records::SendAll>() {
        let path = all.get().path.bind(answer.py());
        return Ok(Choice::SendAll(index(object, answer, path, context)?));
    }
    Ok(Choice::Send(index(object, answer, answer, context)?))
}

/// The index of the chosen path, given as an index or as one of the paths of the context.
fn index(
    object: &Bound<'_, PyAny>,
    answer: &Bound<'_, PyAny>,
    path: &Bound<'_, PyAny>,
    context: &Context<'_>,
) -> PyResult<usize> {
    let wrong = || returned(object, "select", answer);
    if let Ok(view) = path.cast::<records::PathView>() {
        let id = view.get().id;
        let found = context.paths.iter().position(|p| p.id == id);
        return found.ok_or_else(|| {
            PyValueError::new_err(format!(
                "{}; subflow {id} is not among the paths any more: choose one of context.paths",
                wrong()
            ))
        });
    }
    // True is not an index, although it is an int in Python.
    let n = match path.is_instance_of::<PyBool>() {
        true => None,
        false => path.extract::<i64>().ok(),
    };
    let Some(n) = n else {
        return Err(PyTypeError::new_err(format!(
            "{}; it must be a path of context.paths, its index, gargalo.SendAll of one of these, or None \
             to wait",
            wrong()
        )));
    };
    usize::try_from(n)
        .ok()
        .filter(|i| *i < context.paths.len())
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "{}; paths have the indices 0 to {}",
                wrong(),
                context.paths.len().saturating_sub(1)
            ))
        })
}

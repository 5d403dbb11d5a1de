//! Results directories for what Python writes, and what commands ask about them.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gargalo_trace::{Existing, Manifest, RunDir};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::run::run_error;

/// A results directory that appears whole or not at all.
#[pyclass(frozen, module = "gargalo._core")]
pub struct ResultsDir {
    dir: Mutex<Option<RunDir>>,
    path: PathBuf,
}

#[pymethods]
impl ResultsDir {
    /// Begins results that will be at `target`.
    #[new]
    #[pyo3(signature = (target, replace=false))]
    fn new(target: PathBuf, replace: bool) -> PyResult<Self> {
        let dir = RunDir::create(&target, existing(replace)).map_err(run_error)?;
        Ok(Self {
            path: dir.path().to_owned(),
            dir: Mutex::new(Some(dir)),
        })
    }

    /// Where files are to be written until the commit.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Puts the results in their place, and returns where that is.
    fn commit(&self) -> PyResult<PathBuf> {
        match self.take() {
            Some(dir) => dir.commit().map_err(run_error),
            None => Err(PyValueError::new_err("committed or discarded already")),
        }
    }

    /// Removes what was written, unless it is committed.
    fn discard(&self) {
        drop(self.take());
    }
}

impl ResultsDir {
    fn take(&self) -> Option<RunDir> {
        self.dir
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// What to do if the target exists.
pub(crate) fn existing(replace: bool) -> Existing {
    if replace {
        Existing::Replace
    } else {
        Existing::Refuse
    }
}

/// The first file of a directory that Gargalo did not write; None if new results may replace it.
#[pyfunction]
pub fn foreign(directory: PathBuf) -> PyResult<Option<PathBuf>> {
    gargalo_trace::foreign(&directory).map_err(run_error)
}

/// Removes unfinished results of killed processes in a directory, and returns what they were.
#[pyfunction]
pub fn remove_stale(parent: PathBuf) -> PyResult<Vec<PathBuf>> {
    RunDir::remove_stale(&parent).map_err(run_error)
}

/// Compares files of a results directory with its manifest; false if it has none.
#[pyfunction]
pub fn verify(py: Python<'_>, directory: PathBuf, names: Vec<String>) -> PyResult<bool> {
    let Some(manifest) = Manifest::read(&directory) else {
        return Ok(false);
    };
    py.detach(|| manifest.verify(&directory, names.iter().map(String::as_str)))
        .map_err(run_error)?;
    Ok(true)
}

/// Notes files that were added to a results directory in its manifest, if it has one.
#[pyfunction]
pub fn add_files(directory: PathBuf, names: Vec<String>) -> PyResult<()> {
    let Some(mut manifest) = Manifest::read(&directory) else {
        return Ok(());
    };
    manifest
        .add(&directory, names.iter().map(String::as_str))
        .and_then(|()| manifest.write(&directory))
        .map_err(run_error)
}

/// Why a text cannot be a name that files and directories are called by; None if it can.
#[pyfunction]
pub fn bad_name(name: &str) -> Option<String> {
    gargalo_scenario::bad_name(name)
}

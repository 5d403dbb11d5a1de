//! Results directories for what Python writes, and what commands ask about them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time;

use gargalo_trace::{Existing, GoOn, Manifest, RunDir, check_file, check_replaceable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::run_error;

/// Wall time between two calls of the progress function: often enough for the eye and for Ctrl-C.
pub(crate) const PROGRESS_EVERY: time::Duration = time::Duration::from_millis(20);

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
    fn new(py: Python<'_>, target: PathBuf, replace: bool) -> PyResult<Self> {
        let dir = hashing(py, |go_on| {
            RunDir::create(&target, existing(replace), go_on)
        })?;
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
    fn commit(&self, py: Python<'_>) -> PyResult<PathBuf> {
        match self.take() {
            Some(dir) => hashing(py, |go_on| dir.commit(go_on)),
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

/// Does what hashes files, with the interpreter free; a keyboard interrupt ends it.
pub(crate) fn hashing<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut GoOn<'_>) -> Result<T, gargalo_trace::Error> + Send,
) -> PyResult<T> {
    let (mut last, mut raised) = (time::Instant::now(), None);
    let done = py.detach(|| {
        work(&mut || {
            if last.elapsed() < PROGRESS_EVERY {
                return ControlFlow::Continue(());
            }
            last = time::Instant::now();
            match Python::attach(|py| py.check_signals()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => {
                    raised = Some(e);
                    ControlFlow::Break(())
                }
            }
        })
    });
    done.map_err(|e| raised.unwrap_or_else(|| run_error(e)))
}

/// Begins results at a target, if there is one.
pub(crate) fn begin(
    py: Python<'_>,
    target: Option<&Path>,
    replace: bool,
) -> PyResult<Option<RunDir>> {
    let create =
        |target: &Path| hashing(py, |go_on| RunDir::create(target, existing(replace), go_on));
    target.map(create).transpose()
}

/// What to do if the target exists.
fn existing(replace: bool) -> Existing {
    if replace {
        Existing::Replace
    } else {
        Existing::Refuse
    }
}

/// Raises RunError unless new results may take the place of a directory: all in it was written by
/// Gargalo, and is as it was written. With a name, unless a new file may take the place of that one, which the
/// directory's manifest must list; false if there is no manifest.
#[pyfunction]
#[pyo3(signature = (directory, name=None))]
pub fn replaceable(py: Python<'_>, directory: PathBuf, name: Option<&str>) -> PyResult<bool> {
    hashing(py, |go_on| match name {
        None => check_replaceable(&directory, go_on).map(|()| true),
        Some(name) => check_file(&directory, name, go_on),
    })
}

/// Puts a directory in order after killed processes, and returns what was done, in sentences; a directory that does
/// not exist is in order.
#[pyfunction]
pub fn recover(parent: PathBuf) -> PyResult<Vec<String>> {
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let done = gargalo_trace::recover(&parent).map_err(run_error)?;
    Ok(done.iter().map(ToString::to_string).collect())
}

/// Compares files of a results directory with its manifest; false if it has none.
#[pyfunction]
pub fn verify(py: Python<'_>, directory: PathBuf, names: Vec<String>) -> PyResult<bool> {
    let Some(manifest) = Manifest::read(&directory).map_err(run_error)? else {
        return Ok(false);
    };
    hashing(py, |go_on| {
        manifest.verify(&directory, names.iter().map(String::as_str), go_on)
    })?;
    Ok(true)
}

/// Notes files that were added to a directory in its manifest; without one nothing is noted, unless it is to be made.
#[pyfunction]
#[pyo3(signature = (directory, names, make=false))]
pub fn add_files(
    py: Python<'_>,
    directory: PathBuf,
    names: Vec<String>,
    make: bool,
) -> PyResult<()> {
    let found = Manifest::read(&directory).map_err(run_error)?;
    let Some(mut manifest) = found.or_else(|| make.then(Manifest::default)) else {
        return Ok(());
    };
    hashing(py, |go_on| {
        manifest.add(&directory, names.iter().map(String::as_str), go_on)?;
        manifest.write(&directory)
    })
}

/// Why a text cannot be a name that files and directories are called by; None if it can.
#[pyfunction]
pub fn bad_name(name: &str) -> Option<String> {
    gargalo_scenario::bad_name(name)
}

use std::fs;
use std::io::{BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;
use crate::table::Columns;

/// What to do if the results directory is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and fail.
    #[default]
    Refuse,
    /// Put the new one in its place.
    Replace,
}

/// A results directory that appears whole or not at all.
///
/// Files go to a hidden sibling, `.<name>.<process>-<n>.partial`, which [`RunDir::commit`] renames.
/// Dropping it uncommitted removes what was written; a killed process leaves the hidden directory,
/// which no reader takes for results and [`RunDir::leftovers`] finds. Renaming protects against
/// killed processes; nothing is forced to disk against power failures.
#[derive(Debug)]
pub struct RunDir {
    target: PathBuf,
    partial: PathBuf,
    existing: Existing,
    committed: bool,
}

const SUFFIX: &str = ".partial";

impl RunDir {
    /// Begins results that will be at `target`; parents are created.
    ///
    /// # Errors
    /// When `target` exists (unless it shall be replaced), has no name, or the system refuses.
    pub fn create(target: &Path, existing: Existing) -> Result<Self, Error> {
        let Some(Component::Normal(name)) = target.components().next_back() else {
            return Err(Error::NoName {
                path: target.to_owned(),
            });
        };
        if existing == Existing::Refuse && target.symlink_metadata().is_ok() {
            return Err(Error::Exists {
                path: target.to_owned(),
            });
        }
        let parent = parent_of(target);
        fs::create_dir_all(parent).map_err(|e| Error::io("create", parent, e))?;
        let partial = hidden_sibling(parent, name);
        fs::create_dir(&partial).map_err(|e| Error::io("create", &partial, e))?;
        Ok(Self {
            target: target.to_owned(),
            partial,
            existing,
            committed: false,
        })
    }

    /// Where the results will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where a file is to be written until the commit; for writers that want a path, such as captures.
    ///
    /// # Errors
    /// When `name` is not a plain file name.
    pub fn file(&self, name: &str) -> Result<PathBuf, Error> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(only)), None) if only == name => Ok(self.partial.join(name)),
            _ => Err(Error::BadFileName {
                name: name.to_owned(),
            }),
        }
    }

    /// Writes a whole file, such as `run.json`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<(), Error> {
        let path = self.file(name)?;
        fs::write(&path, contents).map_err(|e| Error::io("write", &path, e))
    }

    /// Writes a table as `<name>.parquet`; `go_on` is asked now and then and gets the rows written so far.
    ///
    /// # Errors
    /// When the system refuses, or `go_on` breaks.
    pub fn write_table(
        &self,
        table: &Columns,
        go_on: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let path = self.file(&format!("{}.parquet", table.schema().name))?;
        let file = fs::File::create(&path).map_err(|e| Error::io("create", &path, e))?;
        table
            .write_parquet_while(BufWriter::new(file), go_on)?
            .flush()
            .map_err(|e| Error::io("write", &path, e))
    }

    /// Puts the results in their place.
    ///
    /// # Errors
    /// When the system refuses, or somebody else made the target meanwhile.
    pub fn commit(mut self) -> Result<(), Error> {
        let mut old = None;
        if self.existing == Existing::Replace && self.target.symlink_metadata().is_ok() {
            // A full directory cannot be renamed over: the old one steps aside first.
            let aside = self.partial.with_extension("old.partial");
            fs::rename(&self.target, &aside).map_err(|e| Error::io("move", &self.target, e))?;
            old = Some(aside);
        }
        if let Err(e) = fs::rename(&self.partial, &self.target) {
            if let Some(aside) = old {
                // Best effort: the first error is the one to report.
                let _ = fs::rename(aside, &self.target);
            }
            return Err(match e.kind() {
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => Error::Exists {
                    path: self.target.clone(),
                },
                _ => Error::io("rename", &self.target, e),
            });
        }
        self.committed = true;
        if let Some(aside) = old {
            remove(&aside).map_err(|e| Error::io("remove", &aside, e))?;
        }
        Ok(())
    }

    /// Hidden directories of uncommitted results in `parent`: of killed processes, or of runs that are
    /// still going on.
    ///
    /// # Errors
    /// When `parent` cannot be read.
    pub fn leftovers(parent: &Path) -> Result<Vec<PathBuf>, Error> {
        let fail = |e| Error::io("read", parent, e);
        let mut found = Vec::new();
        for entry in fs::read_dir(parent).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && name.ends_with(SUFFIX) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing could be done about an error here; the directory is hidden.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

fn hidden_sibling(parent: &Path, name: &std::ffi::OsStr) -> PathBuf {
    // Process and counter make the name unique on this machine without a clock or a random number.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{n}{SUFFIX}", std::process::id()));
    parent.join(hidden)
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

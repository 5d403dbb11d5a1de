use std::fs::{self, File, TryLockError};
use std::io::{BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use tempfile::NamedTempFile;

use crate::Error;
use crate::manifest::{Manifest, foreign};
use crate::table::Columns;

/// What to do if the results directory is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and fail.
    #[default]
    Refuse,
    /// Put the new one in its place, if it holds nothing but results.
    Replace,
}

/// A results directory that appears whole or not at all, with its [`Manifest`].
///
/// Files go to a hidden sibling, `.<name>.<random>.partial`, which [`RunDir::commit`] renames; beside
/// it is `.<name>.<random>.lock`, which its writer holds locked. Dropping it uncommitted removes
/// both. A killed process leaves them: no reader takes them for results, and who writes results
/// beside them next removes them ([`RunDir::remove_stale`]), because their lock is free. Renaming
/// protects against killed processes; nothing is forced to disk against power failures.
#[derive(Debug)]
pub struct RunDir {
    target: PathBuf,
    partial: PathBuf,
    /// Removed with this value, and unlocked then.
    lock: Option<NamedTempFile>,
    existing: Existing,
    committed: bool,
}

const PARTIAL: &str = ".partial";
const LOCK: &str = ".lock";
/// Random characters in hidden names.
const RANDOM: usize = 12;
/// So much of a directory's name goes into that of its hidden sibling.
const STEM_BYTES: usize = 100;
/// So many names are tried beside one that is taken.
const MOST_NAMES: u32 = 10_000;

impl RunDir {
    /// Begins results that will be at `target`; parents are created, what killed processes left beside
    /// it is removed.
    ///
    /// # Errors
    /// When `target` exists (unless it shall be replaced), holds what is no result, has no name, or
    /// the system refuses.
    pub fn create(target: &Path, existing: Existing) -> Result<Self, Error> {
        let Some(Component::Normal(name)) = target.components().next_back() else {
            return Err(Error::NoName {
                path: target.to_owned(),
            });
        };
        if target.symlink_metadata().is_ok() {
            replaceable(target, existing)?;
        }
        let parent = parent_of(target);
        fs::create_dir_all(parent).map_err(|e| Error::io("create", parent, e))?;
        // What cannot be removed is in nobody's way.
        let _ = Self::remove_stale(parent);
        let (lock, partial) = hidden_sibling(parent, &name.to_string_lossy())?;
        Ok(Self {
            target: target.to_owned(),
            partial,
            lock: Some(lock),
            existing,
            committed: false,
        })
    }

    /// The directory that files are to be written to until the commit.
    pub fn path(&self) -> &Path {
        &self.partial
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

    /// Writes the manifest and puts the results in their place; returns where that is. If somebody else
    /// made the target meanwhile, or put a file into what was to be replaced, it is beside it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn commit(mut self) -> Result<PathBuf, Error> {
        Manifest::of(&self.partial)?.write(&self.partial)?;
        let there = self.target.symlink_metadata().is_ok();
        if there && replaceable(&self.target, self.existing).is_ok() {
            let old = exchange(&self.partial, &self.target)?;
            self.committed = true;
            if fs::remove_dir_all(&old).is_err() {
                // The results are in place. What remains of the old is told apart by its lock.
                let _ = self.lock.take().map(NamedTempFile::keep);
            }
            return Ok(self.target.clone());
        }
        for n in 1..MOST_NAMES {
            let place = numbered(&self.target, n);
            if place.symlink_metadata().is_ok() {
                continue;
            }
            match fs::rename(&self.partial, &place) {
                Ok(()) => {
                    self.committed = true;
                    return Ok(place);
                }
                Err(e) => match e.kind() {
                    ErrorKind::DirectoryNotEmpty
                    | ErrorKind::AlreadyExists
                    | ErrorKind::NotADirectory => {}
                    _ => return Err(Error::io("rename", &place, e)),
                },
            }
        }
        Err(Error::Exists {
            path: self.target.clone(),
        })
    }

    /// Removes the unfinished results of killed processes in `parent`, and returns what they were.
    ///
    /// Those of live processes, in other containers too, hold their lock and stay.
    ///
    /// # Errors
    /// When `parent` cannot be read.
    pub fn remove_stale(parent: &Path) -> Result<Vec<PathBuf>, Error> {
        let fail = |e| Error::io("read", parent, e);
        let mut removed = Vec::new();
        for entry in fs::read_dir(parent).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let Some(stem) = name.to_str().and_then(stem_of_lock) else {
                continue;
            };
            // A lock is an empty file; a symbolic link is not followed.
            let empty = |m: fs::Metadata| m.is_file() && m.len() == 0;
            if !entry.metadata().is_ok_and(empty) {
                continue;
            }
            let path = entry.path();
            let Ok(file) = File::options().read(true).write(true).open(&path) else {
                continue;
            };
            if file.try_lock().is_err() {
                continue;
            }
            // What cannot be removed stays hidden: it must not keep anybody from working here.
            let partial = parent.join(format!("{stem}{PARTIAL}"));
            if partial.symlink_metadata().is_ok_and(|m| m.is_dir()) {
                if fs::remove_dir_all(&partial).is_err() {
                    continue;
                }
                removed.push(partial);
            }
            let _ = fs::remove_file(&path);
        }
        removed.sort();
        Ok(removed)
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

/// Whether results may take the place of what is at `target`.
fn replaceable(target: &Path, existing: Existing) -> Result<(), Error> {
    if existing == Existing::Refuse {
        return Err(Error::Exists {
            path: target.to_owned(),
        });
    }
    match foreign(target)? {
        None => Ok(()),
        Some(file) => Err(Error::Foreign {
            path: target.to_owned(),
            file,
        }),
    }
}

/// Puts the new directory in the place of the old one; returns where the old one is then.
fn exchange(new: &Path, target: &Path) -> Result<PathBuf, Error> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    if renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE).is_ok() {
        return Ok(new.to_owned());
    }
    // Not every file system exchanges: the old one steps aside first, under a name that is no partial
    // result's, so that it stays if we are killed in between.
    let aside = new.with_extension("old");
    fs::rename(target, &aside).map_err(|e| Error::io("move", target, e))?;
    if let Err(e) = fs::rename(new, target) {
        // Best effort: the first error is the one to report.
        let _ = fs::rename(&aside, target);
        return Err(Error::io("rename", target, e));
    }
    Ok(aside)
}

/// The path itself, then with `-2`, `-3`, … at its end.
fn numbered(path: &Path, n: u32) -> PathBuf {
    if n == 1 {
        return path.to_owned();
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{n}"));
    path.with_file_name(name)
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Makes a hidden directory with a name that nothing else has, and its lock, which is held.
fn hidden_sibling(parent: &Path, name: &str) -> Result<(NamedTempFile, PathBuf), Error> {
    let end = name.floor_char_boundary(STEM_BYTES);
    let prefix = format!(".{}.", &name[..end]);
    let fail = |e| Error::io("create a file in", parent, e);
    loop {
        let lock = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(LOCK)
            .rand_bytes(RANDOM)
            .tempfile_in(parent)
            .map_err(fail)?;
        match lock.as_file().try_lock() {
            Ok(()) => {}
            // Somebody cleans up and takes it for stale.
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks: then nobody else gets one either.
            Err(TryLockError::Error(_)) => {}
        }
        let partial = lock.path().with_extension(&PARTIAL[1..]);
        if lock.path().symlink_metadata().is_err() {
            continue; // It was cleaned up before it was locked.
        }
        match fs::create_dir(&partial) {
            Ok(()) => return Ok((lock, partial)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io("create", &partial, e)),
        }
    }
}

/// What the name of a lock has in common with that of its directory.
fn stem_of_lock(name: &str) -> Option<&str> {
    let stem = name.strip_prefix('.')?.strip_suffix(LOCK)?;
    let (_, random) = stem.rsplit_once('.')?;
    let plain = random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then(|| &name[..name.len() - LOCK.len()])
}

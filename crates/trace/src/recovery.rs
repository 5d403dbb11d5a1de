//! Recovery after killed writers of results: unfinished results are removed, and old ones that were being replaced
//! are restored.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error::PARTIAL;
use crate::manifest::{MANIFEST, Manifest, check_replaceable, never_stop};
use crate::run_dir::{LOCK, OLD, RANDOM, numbered};

/// An action of the recovery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Recovered {
    /// Unfinished results were removed.
    Removed(PathBuf),
    /// Results that were being replaced were restored at this path.
    Restored(PathBuf),
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Path| path.strip_prefix(".").unwrap_or(path).display().to_string();
        match self {
            Self::Removed(path) => {
                let path = shown(path);
                write!(
                    f,
                    "removed {path}: unfinished results of a run that was killed"
                )
            }
            Self::Restored(path) => {
                let path = shown(path);
                write!(
                    f,
                    "restored {path}: a run that was to replace it was killed"
                )
            }
        }
    }
}

/// Cleans up `parent` after killed processes, and returns what was done.
///
/// Results that live processes write, in other containers too, are locked and left alone. What cannot be moved or
/// removed stays hidden, so that it does not block other work.
///
/// # Errors
/// When `parent` cannot be read.
pub fn recover(parent: &Path) -> Result<Vec<Recovered>, Error> {
    let fail = |e| Error::io("read", parent, e);
    let mut done = Vec::new();
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
        let lock = entry.path();
        let Ok(file) = File::options().read(true).write(true).open(&lock) else {
            continue;
        };
        if file.try_lock().is_ok() && put_in_order(parent, stem, &mut done).is_ok() {
            // If this fails, the next recovery finds a lock without a directory.
            let _ = fs::remove_file(&lock);
        }
    }
    done.sort();
    Ok(done)
}

/// Cleans up after one killed process.
fn put_in_order(parent: &Path, stem: &str, done: &mut Vec<Recovered>) -> io::Result<()> {
    let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|m| m.is_dir());
    let partial = parent.join(format!("{stem}{PARTIAL}"));
    let aside = parent.join(format!("{stem}{OLD}"));
    if is_dir(&aside) {
        // The partial results are renamed to the target after the old ones were moved aside.
        let in_place = partial.symlink_metadata().is_err();
        put_back(parent, &aside, in_place, done)?;
    }
    if is_dir(&partial) {
        // After an exchange, which is atomic, these are the old results; another process may have added a file.
        if partial.join(MANIFEST).symlink_metadata().is_ok()
            && check_replaceable(&partial, &mut never_stop).is_err()
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        fs::remove_dir_all(&partial)?;
        done.push(Recovered::Removed(partial));
    }
    Ok(())
}

/// Restores results that were moved aside, unless the new ones are in their place and complete.
fn put_back(
    parent: &Path,
    aside: &Path,
    in_place: bool,
    done: &mut Vec<Recovered>,
) -> io::Result<()> {
    for entry in fs::read_dir(aside)? {
        let old = entry?;
        let target = parent.join(old.file_name());
        let whole = in_place && Manifest::read(&target).is_ok_and(|m| m.is_some());
        if whole && check_replaceable(&old.path(), &mut never_stop).is_ok() {
            fs::remove_dir_all(old.path())?;
            continue;
        }
        let place = numbered(&target)
            .find(|p| p.symlink_metadata().is_err())
            .ok_or(io::ErrorKind::AlreadyExists)?;
        fs::rename(old.path(), &place)?;
        done.push(Recovered::Restored(place));
    }
    fs::remove_dir(aside)
}

/// The common part of the names of a lock and of its directories.
fn stem_of_lock(name: &str) -> Option<&str> {
    let stem = name.strip_prefix('.')?.strip_suffix(LOCK)?;
    let (_, random) = stem.rsplit_once('.')?;
    let plain = random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then(|| &name[..name.len() - LOCK.len()])
}

use std::fs::{self, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use tempfile::NamedTempFile;

use crate::Error;
use crate::error::PARTIAL;
use crate::manifest::{GoOn, Manifest, check_replaceable};
use crate::table::Columns;

/// What to do if the results directory exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Fail and leave it unchanged.
    #[default]
    Refuse,
    /// Replace it, if it has only results.
    Replace,
}

/// A results directory that is created atomically, with its [`Manifest`].
///
/// Files go to a hidden sibling, `.<name>.<random>.partial`, which [`RunDir::commit`] renames; beside it is
/// `.<name>.<random>.lock`, which its writer holds locked. Dropping it uncommitted removes both. A killed process
/// leaves them behind: readers ignore them, and [`recover`](crate::recover) removes them, because their lock is
/// free. Where the file system cannot exchange two directories, results that are being replaced are in
/// `.<name>.<random>.old` for a moment; `recover` puts them back. Renaming protects against killed processes;
/// nothing is forced to disk against power failures.
#[derive(Debug)]
pub struct RunDir {
    target: PathBuf,
    partial: PathBuf,
    /// The lock file; removed and unlocked when this is dropped.
    lock: Option<NamedTempFile>,
    existing: Existing,
    committed: bool,
}

pub(crate) const LOCK: &str = ".lock";
/// Suffix of a directory with results that were moved aside.
pub(crate) const OLD: &str = ".old";
/// Random characters in hidden names.
pub(crate) const RANDOM: usize = 12;
/// Number of bytes of a directory's name in that of its hidden sibling.
const STEM_BYTES: usize = 100;
/// Number of alternative names that are tried if one is taken.
const MOST_NAMES: u32 = 10_000;

impl RunDir {
    /// Starts writing results for `target`; parents are created.
    ///
    /// # Errors
    /// When `target` exists (unless it is to be replaced), has files that are not results or were changed, has no
    /// name, or the file system reports an error; [`Error::Stopped`] when `go_on` breaks, which is called while the
    /// directory to be replaced is verified.
    pub fn create(target: &Path, existing: Existing, go_on: &mut GoOn<'_>) -> Result<Self, Error> {
        let Some(Component::Normal(name)) = target.components().next_back() else {
            return Err(Error::NoName {
                path: target.to_owned(),
            });
        };
        if target.symlink_metadata().is_ok() {
            replaceable(target, existing, go_on)?;
        }
        let parent = parent_of(target);
        fs::create_dir_all(parent).map_err(|e| Error::io("create", parent, e))?;
        let (lock, partial) = hidden_sibling(parent, &name.to_string_lossy())?;
        Ok(Self {
            target: target.to_owned(),
            partial,
            lock: Some(lock),
            existing,
            committed: false,
        })
    }

    /// The directory to which files are written until the commit.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Where the results will be.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The path of a file until the commit; for writers that need a path, such as captures.
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
    /// When the file system reports an error.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<(), Error> {
        self.write_with(name, |file| file.write_all(contents))
    }

    /// Writes a whole file by pieces, so that it need not be in memory.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let path = self.file(name)?;
        let written = fs::File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush()
        });
        written.map_err(|e| Error::io("write", &path, e))
    }

    /// Writes a table as `<name>.parquet`; `go_on` is called at intervals with the number of rows written so far.
    ///
    /// # Errors
    /// When the file system reports an error, or `go_on` breaks.
    pub fn write_table(
        &self,
        table: &Columns,
        go_on: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let path = self.file(&format!("{}.parquet", table.schema().name))?;
        let file = fs::File::create(&path).map_err(|e| Error::io("create", &path, e))?;
        let mut failure = None;
        let out = Noting {
            file,
            failure: &mut failure,
        };
        let written = table
            .write_parquet_while(BufWriter::new(out), go_on)
            .and_then(|mut out| out.flush().map_err(|e| Error::io("write", &path, e)));
        match (written, failure) {
            (Err(Error::Encode { .. }), Some(e)) => Err(Error::io("write", &path, e)),
            (written, _) => written,
        }
    }

    /// Writes the manifest and moves the results to the target; returns their path. If another process has created
    /// the target meanwhile, or has added a file to the directory to be replaced, that path is beside the target.
    ///
    /// # Errors
    /// When the file system reports an error, or `go_on` breaks, which is called while files are hashed: the state
    /// is then that before [`create`](Self::create).
    pub fn commit(mut self, go_on: &mut GoOn<'_>) -> Result<PathBuf, Error> {
        Manifest::of(&self.partial, go_on)?.write(&self.partial)?;
        let there = self.target.symlink_metadata().is_ok();
        if there && self.may_replace(&self.target, go_on)? && self.replace(exchange, go_on)? {
            return Ok(self.target.clone());
        }
        for place in numbered(&self.target) {
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

    /// Replaces the old results; false if another process has added or changed a file since the check: the old
    /// results are then restored.
    fn replace(&mut self, swap: Swap, go_on: &mut GoOn<'_>) -> Result<bool, Error> {
        let aside = self.partial.with_extension(&OLD[1..]);
        let swapped = swap(&self.partial, &self.target, &aside);
        if swapped.is_err() && aside.symlink_metadata().is_ok() {
            self.leave();
        }
        let old = swapped?;
        let unchanged = self.may_replace(&old, go_on);
        if !matches!(unchanged, Ok(true)) {
            if let Err(e) = swap_back(&old, &self.partial, &self.target) {
                self.leave();
                return Err(Error::io("move back", &self.target, e));
            }
            return unchanged;
        }
        self.committed = true;
        let removed = fs::remove_dir_all(&old).and_then(|()| {
            if old == self.partial {
                Ok(())
            } else {
                fs::remove_dir(&aside)
            }
        });
        if removed.is_err() {
            // The results are at the target.
            self.leave();
        }
        Ok(true)
    }

    /// Whether results may replace `there`.
    fn may_replace(&self, there: &Path, go_on: &mut GoOn<'_>) -> Result<bool, Error> {
        match replaceable(there, self.existing, go_on) {
            Err(Error::Stopped) => Err(Error::Stopped),
            other => Ok(other.is_ok()),
        }
    }

    /// Leaves the hidden sibling and its lock to [`recover`](crate::recover).
    fn leave(&mut self) {
        self.committed = true;
        let _ = self.lock.take().map(NamedTempFile::keep);
    }
}

/// A file that notes why it could not be written: encoders only quote it.
struct Noting<'a> {
    file: fs::File,
    failure: &'a mut Option<io::Error>,
}

impl Noting<'_> {
    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(e) = &done {
            // An error of the system is its number.
            *self.failure = e.raw_os_error().map(io::Error::from_raw_os_error);
        }
        done
    }
}

impl Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.file.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.file.flush();
        self.noted(done)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if !self.committed {
            // An error is ignored: the directory is hidden.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Checks that results may replace `target`.
fn replaceable(target: &Path, existing: Existing, go_on: &mut GoOn<'_>) -> Result<(), Error> {
    if existing == Existing::Refuse {
        return Err(Error::Exists {
            path: target.to_owned(),
        });
    }
    check_replaceable(target, go_on)
}

/// Replaces the target by the new directory; returns the new path of the old one.
type Swap = fn(new: &Path, target: &Path, aside: &Path) -> Result<PathBuf, Error>;

/// Atomically, where the file system supports it.
fn exchange(new: &Path, target: &Path, aside: &Path) -> Result<PathBuf, Error> {
    if exchange_names(new, target).is_ok() {
        return Ok(new.to_owned());
    }
    step_aside(new, target, aside)
}

fn exchange_names(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

/// In two steps; a process that is killed in between leaves the old directory to [`recover`](crate::recover).
fn step_aside(new: &Path, target: &Path, aside: &Path) -> Result<PathBuf, Error> {
    fs::create_dir(aside).map_err(|e| Error::io("create", aside, e))?;
    let old = aside.join(target.file_name().unwrap_or_default());
    let moved = fs::rename(target, &old)
        .map_err(|e| Error::io("move", target, e))
        .and_then(|()| {
            fs::rename(new, target).map_err(|e| {
                // Best effort: the first error is the one to report.
                let _ = fs::rename(&old, target);
                Error::io("rename", target, e)
            })
        });
    if moved.is_err() {
        // Fails if the old directory is still in it.
        let _ = fs::remove_dir(aside);
    }
    moved.map(|()| old)
}

/// Undoes an exchange.
fn swap_back(old: &Path, partial: &Path, target: &Path) -> io::Result<()> {
    if old == partial {
        return exchange_names(partial, target);
    }
    fs::rename(target, partial)?;
    fs::rename(old, target)?;
    old.parent().map_or(Ok(()), fs::remove_dir)
}

/// The path itself, then with `-2`, `-3`, … at its end.
pub(crate) fn numbered(path: &Path) -> impl Iterator<Item = PathBuf> {
    (1..MOST_NAMES).map(|n| {
        if n == 1 {
            return path.to_owned();
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{n}"));
        path.with_file_name(name)
    })
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Creates a hidden directory with a unique name, and its lock, which is held.
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
            // Another process cleans up and considers it stale.
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks: then no other process gets one either.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recovered, never_stop, recover};

    fn make(target: &Path, existing: Existing, file: &str) -> RunDir {
        let dir = RunDir::create(target, existing, &mut never_stop).unwrap();
        dir.write(file, b"x").unwrap();
        Manifest::of(dir.path(), &mut never_stop)
            .unwrap()
            .write(dir.path())
            .unwrap();
        dir
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The state that a killed process leaves.
    fn kill(mut dir: RunDir) {
        dir.leave();
    }

    #[test]
    fn in_two_steps_where_names_cannot_be_exchanged() {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("run");
        make(&target, Existing::Refuse, "old")
            .commit(&mut never_stop)
            .unwrap();
        let mut new = make(&target, Existing::Replace, "new");
        assert!(new.replace(step_aside, &mut never_stop).unwrap());
        drop(new);
        assert_eq!(names(&target), ["manifest.json", "new"]);
        assert_eq!(names(scratch.path()), ["run"]);
    }

    #[test]
    fn a_kill_between_the_steps_loses_no_results() {
        let between: Swap = |_, target, aside| {
            fs::create_dir(aside).unwrap();
            fs::rename(target, aside.join("run")).unwrap();
            Err(Error::Stopped)
        };
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("run");
        make(&target, Existing::Refuse, "old")
            .commit(&mut never_stop)
            .unwrap();
        let mut new = make(&target, Existing::Replace, "new");
        let partial = new.path().to_owned();
        new.replace(between, &mut never_stop).unwrap_err();
        kill(new);
        assert!(!target.exists());
        assert_eq!(
            recover(scratch.path()).unwrap(),
            [
                Recovered::Removed(partial),
                Recovered::Restored(target.clone())
            ]
        );
        assert_eq!(names(&target), ["manifest.json", "old"]);
        assert_eq!(names(scratch.path()), ["run"]);

        // Killed after the second step: the old ones go.
        let mut new = make(&target, Existing::Replace, "new");
        let aside = new.path().with_extension("old");
        step_aside(new.path(), &target, &aside).unwrap();
        new.leave();
        drop(new);
        assert_eq!(names(scratch.path()).len(), 3);
        assert!(recover(scratch.path()).unwrap().is_empty());
        assert_eq!(names(&target), ["manifest.json", "new"]);
        assert_eq!(names(scratch.path()), ["run"]);
    }

    #[test]
    fn what_comes_in_at_the_last_moment_stays() {
        // After the directory was looked at, before the swap.
        fn late(target: &Path) {
            fs::write(target.join("thesis.tex"), b"precious").unwrap();
        }
        let swaps: [Swap; 2] = [
            |new, target, aside| {
                late(target);
                exchange(new, target, aside)
            },
            |new, target, aside| {
                late(target);
                step_aside(new, target, aside)
            },
        ];
        for swap in swaps {
            let scratch = tempfile::tempdir().unwrap();
            let target = scratch.path().join("run");
            make(&target, Existing::Refuse, "old")
                .commit(&mut never_stop)
                .unwrap();
            let mut new = make(&target, Existing::Replace, "new");
            assert!(!new.replace(swap, &mut never_stop).unwrap());
            assert_eq!(
                new.commit(&mut never_stop).unwrap(),
                scratch.path().join("run-2")
            );
            assert_eq!(names(&target), ["manifest.json", "old", "thesis.tex"]);
            assert_eq!(names(scratch.path()), ["run", "run-2"]);
        }
    }
}

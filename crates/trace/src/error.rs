use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use gargalo_units::reason;
use thiserror::Error as ThisError;

/// End of the name of a results directory that is being written.
pub(crate) const PARTIAL: &str = ".partial";

/// Why results could not be written.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// An error of the file system.
    #[error("cannot {action} {}: {}", shown(.path).display(), why_not(.path, .source))]
    Io {
        /// "create", "write", "rename", …
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The results directory exists already.
    #[error("{path} exists already; choose another directory or ask to replace it")]
    Exists {
        /// The results directory that exists.
        path: PathBuf,
    },
    /// The directory to be replaced has a file that is not a result.
    #[error(
        "{path} is not replaced: {file} is not a result written by gargalo; choose another directory or move it away"
    )]
    Foreign {
        /// The directory to be replaced.
        path: PathBuf,
        /// The first such file.
        file: PathBuf,
    },
    /// The directory to be replaced has a file that was changed after it was written.
    #[error(
        "{path} is not replaced: {file} was changed since gargalo wrote it; move it away, or remove it"
    )]
    Edited {
        /// The directory to be replaced.
        path: PathBuf,
        /// The first such file.
        file: PathBuf,
    },
    /// The manifest of a directory cannot be used.
    #[error(
        "{path}: {why}; run it again into another directory, or remove this file to read the results unverified"
    )]
    BadManifest {
        /// Path of the manifest file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file differs from what was written.
    #[error("{path} is damaged: {why}; run it again")]
    Damaged {
        /// Path of the file that differs.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The target has no directory name (such as "/" or "..").
    #[error("{path} cannot be a results directory; give a path that ends in a name")]
    NoName {
        /// The given target.
        path: PathBuf,
    },
    /// A name inside the results directory that is not a plain file name.
    #[error("\"{name}\" is not a file name; give one without directories")]
    BadFileName {
        /// The given name.
        name: String,
    },
    /// The caller stopped the operation.
    #[error("stopped while results were being written; nothing was kept")]
    Stopped,
    /// A table could not be encoded.
    #[error("cannot encode table {table}: {message}")]
    Encode {
        /// The table's name.
        table: &'static str,
        /// The error of the encoder.
        message: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Where a file of a results directory will be: until the commit it is in a hidden sibling.
pub fn shown(path: &Path) -> PathBuf {
    let target = |name: &str| {
        let stem = name.strip_prefix('.')?.strip_suffix(PARTIAL)?;
        Some(stem.rsplit_once('.')?.0.to_owned())
    };
    path.components()
        .map(|part| match part.as_os_str().to_str().and_then(target) {
            Some(name) => PathBuf::from(name),
            None => PathBuf::from(part.as_os_str()),
        })
        .collect()
}

/// The system's reason for not writing a file, and what to do.
pub fn why_not(path: &Path, e: &io::Error) -> String {
    reason(e) + &remedy(path, e)
}

fn remedy(path: &Path, e: &io::Error) -> String {
    let fixed = match e.kind() {
        io::ErrorKind::NotFound => "; create the parent directory first",
        io::ErrorKind::PermissionDenied => "; choose a directory you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            return format!("{}; free some space or record less", space(path));
        }
        io::ErrorKind::ReadOnlyFilesystem => "; choose a directory on a writable file system",
        io::ErrorKind::NotADirectory => "; a parent of the path is a file",
        _ => "",
    };
    fixed.to_owned()
}

/// How much a file system has and how much of it is free, in brackets; nothing where that is not known.
fn space(path: &Path) -> String {
    let mut there = path.ancestors().filter_map(|p| {
        let p = if p.as_os_str().is_empty() {
            Path::new(".")
        } else {
            p
        };
        rustix::fs::statvfs(p).ok()
    });
    let Some(facts) = there.next() else {
        return String::new();
    };
    let amount = |blocks: u64| Amount(blocks.saturating_mul(facts.f_frsize));
    let (free, all) = (amount(facts.f_bavail), amount(facts.f_blocks));
    format!(" ({free} of {all} are free there)")
}

/// An amount of bytes with three digits and a unit.
struct Amount(u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
        match units.into_iter().find(|(size, _)| self.0 >= *size) {
            Some((size, unit)) => write!(f, "{:.1} {unit}", self.0 as f64 / size as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_its_space_and_the_final_name() {
        let path = Path::new("out/.race-1.abcdefghijkl.partial/run.json");
        let e = Error::io("write", path, io::ErrorKind::StorageFull.into());
        let message = e.to_string();
        assert!(
            message.starts_with("cannot write out/race-1/run.json: "),
            "{message}"
        );
        assert!(
            message.contains(" are free there); free some space"),
            "{message}"
        );
    }
}

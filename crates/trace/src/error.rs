use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

/// Why results could not be written.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// An error of the file system.
    #[error("cannot {action} {path}: {source}{}", remedy(.source))]
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
        /// The directory.
        path: PathBuf,
    },
    /// The directory to be replaced has a file that is not a result.
    #[error(
        "{path} is not replaced: {file} is not a result written by gargalo; choose another directory or move it away"
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first such file.
        file: PathBuf,
    },
    /// The directory to be replaced has a file that was changed after it was written.
    #[error(
        "{path} is not replaced: {file} was changed since gargalo wrote it; move it away, or remove it"
    )]
    Edited {
        /// The directory.
        path: PathBuf,
        /// The first such file.
        file: PathBuf,
    },
    /// The manifest of a directory cannot be used.
    #[error(
        "{path}: {why}; run it again into another directory, or remove this file to read the results unverified"
    )]
    BadManifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file differs from what was written.
    #[error("{path} is damaged: {why}; run it again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The target has no directory name (such as "/" or "..").
    #[error("{path} cannot be a results directory; give a path that ends in a name")]
    NoName {
        /// What was given.
        path: PathBuf,
    },
    /// A name inside the results directory that is not a plain file name.
    #[error("\"{name}\" is not a file name; give one without directories")]
    BadFileName {
        /// What was given.
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

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn remedy(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound => "; create the parent directory first",
        io::ErrorKind::PermissionDenied => "; choose a directory you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or record less"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; choose a directory on a writable file system",
        io::ErrorKind::NotADirectory => "; a parent of the path is a file",
        _ => "",
    }
}

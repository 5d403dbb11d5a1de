use std::io;
use std::path::{Path, PathBuf};

use gargalo_units::reason;
use thiserror::Error;

/// Why a recording cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system says so.
    #[error("{} cannot be read: {}", .path.display(), reason(.source))]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// The file is of another kind.
    #[error(
        "{} is no recording that is known: it begins as none of pcap, pcapng and {}, plain or compressed with gzip",
        .path.display(), kinds()
    )]
    UnknownKind {
        /// The file.
        path: PathBuf,
    },
    /// The caller did not want to go on.
    #[error("stopped")]
    Stopped,
}

fn kinds() -> String {
    let names: Vec<_> = crate::logs::KINDS.iter().map(|k| k.name).collect();
    names.join(", ")
}

impl Error {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

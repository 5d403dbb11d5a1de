//! Errors of namespaces and devices.

use std::io;
use std::path::PathBuf;

use gargalo_units::reason as reason_of;

/// Why the system could not do something, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    #[error("{what}: {}{}{remedy}", reason_of(.reason), if remedy.is_empty() { "" } else { "; " })]
    System {
        /// The operation that was refused.
        what: String,
        /// What the system says.
        reason: io::Error,
        /// The remedy; may be empty.
        remedy: &'static str,
    },
    /// A file could not be written.
    #[error("cannot write {}: {}", path.display(), reason_of(.reason))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The requested operation is not possible on this system.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// Builds the error of `what`, which the system refused.
    pub fn system(what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        Self::with_remedy(what, reason, "")
    }

    /// Builds the error of `what`, which the system refused; `remedy` says what to do.
    pub fn with_remedy(
        what: impl Into<String>,
        reason: impl Into<io::Error>,
        remedy: &'static str,
    ) -> Self {
        Self::System {
            what: what.into(),
            reason: reason.into(),
            remedy,
        }
    }
}

/// The result of functions that create devices.
pub type Result<T, E = Error> = std::result::Result<T, E>;

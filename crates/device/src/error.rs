//! What can go wrong with namespaces and devices.

use std::io;
use std::path::PathBuf;

/// Why the system could not do something, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{what}: {reason}{}{remedy}", if remedy.is_empty() { "" } else { "; " })]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        reason: io::Error,
        /// What to do about it; may be empty.
        remedy: &'static str,
    },
    /// A file could not be written.
    #[error("cannot write {}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// What is asked for is not possible on this system.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// The system refused `what`.
    pub fn system(what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        Self::with_remedy(what, reason, "")
    }

    /// The system refused `what`; `remedy` says what to do.
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

/// What functions return that make devices.
pub type Result<T, E = Error> = std::result::Result<T, E>;

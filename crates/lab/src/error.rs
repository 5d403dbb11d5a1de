//! What can go wrong with namespaces, devices and programs.

use std::io;
use std::path::PathBuf;

/// Why the lab could not do something, with the remedy.
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
    /// A link makes no sense.
    #[error("link {link}: {reason}")]
    Link {
        /// Its name.
        link: String,
        /// What is wrong.
        reason: gargalo_link::ConfigError,
    },
    /// The kernel has not the congestion control of a flow that it is to send.
    #[error(
        "{flow}: congestion = \"{name}\": the kernel refuses the congestion control {name} ({reason}); it \
         offers {offered}: take one of these, load its module (modprobe tcp_{name}), or give the host \
         stack = \"gargalo\""
    )]
    Congestion {
        /// Whose.
        flow: String,
        /// Its name.
        name: String,
        /// What the system says.
        reason: io::Error,
        /// Names that it would take.
        offered: String,
    },
    /// What a scenario asks for is not possible here.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// The system refused `what`.
    pub(crate) fn system(what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        Self::with_remedy(what, reason, "")
    }

    /// The system refused `what`; `remedy` says what to do.
    pub(crate) fn with_remedy(
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

/// What the lab's functions return.
pub type Result<T> = std::result::Result<T, Error>;

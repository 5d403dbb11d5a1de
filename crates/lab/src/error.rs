//! What can go wrong with links, hosts and programs.

use std::io;

/// Why the lab could not do something, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something, or a file cannot be written.
    #[error(transparent)]
    Device(#[from] gargalo_device::Error),
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

#[cfg(target_os = "linux")]
impl Error {
    /// The system refused `what`.
    pub(crate) fn system(what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        gargalo_device::Error::system(what, reason).into()
    }

    /// The system refused `what`; `remedy` says what to do.
    pub(crate) fn with_remedy(
        what: impl Into<String>,
        reason: impl Into<io::Error>,
        remedy: &'static str,
    ) -> Self {
        gargalo_device::Error::with_remedy(what, reason, remedy).into()
    }

    /// A file could not be written.
    pub(crate) fn file(path: &std::path::Path, reason: io::Error) -> Self {
        let path = path.to_owned();
        gargalo_device::Error::File { path, reason }.into()
    }
}

/// What the lab's functions return.
pub type Result<T> = std::result::Result<T, Error>;

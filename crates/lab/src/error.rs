//! Errors of links, hosts and programs.

use std::io;

/// Why the lab could not do something, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation, or a file cannot be written.
    #[error(transparent)]
    Device(#[from] gargalo_device::Error),
    /// The configuration of a link is impossible.
    #[error("link {link}: {reason}")]
    Link {
        /// Name of the link.
        link: String,
        /// What is wrong.
        reason: gargalo_link::ConfigError,
    },
    /// The kernel does not have the congestion control of a flow that it must send.
    #[error(
        "{flow}: congestion = \"{name}\": the kernel refuses the congestion control {name} ({}); it \
         offers {offered}: take one of these, load its module (modprobe tcp_{name}), or give the host \
         stack = \"gargalo\"", gargalo_units::reason(.reason)
    )]
    Congestion {
        /// Number and label of the flow, as "flow 2 (bulk)".
        flow: String,
        /// Name of the congestion control.
        name: String,
        /// What the system says.
        reason: io::Error,
        /// The names that the kernel has.
        offered: String,
    },
    /// A scenario requests something that is not possible here.
    #[error("{0}")]
    Unsupported(String),
}

/// The result of the lab's functions.
pub type Result<T> = std::result::Result<T, Error>;

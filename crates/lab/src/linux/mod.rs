//! What needs Linux.

mod capture;
pub mod commands;
mod counters;
pub mod engine;
pub mod fabric;
mod header;
mod hosts;
mod kernel;
mod maker;
mod network;
pub mod plan;
mod run;
pub mod sandbox;
mod schedule;
pub mod shell;
pub mod sockets;
mod station;
pub mod traffic;
mod waiter;

pub use kernel::congestion_instead_of;
pub use run::{LabOutcome, Watch, run};

use std::io;

use crate::Error;

impl Error {
    /// Builds the error of `what`, which the system refused.
    pub(crate) fn system(what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        gargalo_device::Error::system(what, reason).into()
    }

    /// Builds the error of `what`, which the system refused; `remedy` says what to do.
    pub(crate) fn with_remedy(
        what: impl Into<String>,
        reason: impl Into<io::Error>,
        remedy: &'static str,
    ) -> Self {
        gargalo_device::Error::with_remedy(what, reason, remedy).into()
    }

    /// Builds the error of a file that could not be written.
    pub(crate) fn file(path: &std::path::Path, reason: io::Error) -> Self {
        let path = path.to_owned();
        gargalo_device::Error::File { path, reason }.into()
    }
}

//! `ftp`: files, each over a connection of its own, that begin as a Poisson process.

use super::distribution::Distribution;

/// Files as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ftp {
    /// Size of a file in bytes.
    pub size: Distribution,
}

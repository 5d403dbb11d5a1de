//! `ftp`: files that start as a Poisson process, each on its own connection.

use gargalo_settings::settings;
use gargalo_units::Bytes;

use super::quantity::{Load, PerSecond};
use super::random::{Size, SizePareto};

settings! {
    /// Files that start as a Poisson process, each on its own connection, spread over the pairs of hosts.
    pub struct Ftp as "Ftp" {
        /// Mean number of new files per time; or give `load`.
        files: Option<PerSecond> = None;
        /// Bits on the wire from `from` to `to`, headers included: a rate, or a share of the capacity of
        /// `link`. The mean over the lifetime of the flow meets it.
        load: Option<Load> = None;
        /// The link whose capacity is meant. Default: the slowest link on the route.
        link: Option<String> = None;
        /// Size of a file.
        size: Size = USUAL;
    }
}

/// Tail index: V. Paxson and S. Floyd, 1995, find 0.9 to 1.4 for FTP bursts; M. Crovella and A. Bestavros, 1997,
/// about 1.1 for files on the Web.
const USUAL: Size = Size::Pareto(SizePareto {
    alpha: 1.1,
    min: Bytes::new(100_000),
    max: Bytes::new(20_000_000),
});

//! The congestion controls, one file each, registered here and nowhere else.

use crate::registry::Algorithm;

pub mod bbr;
pub mod cubic;
pub mod newreno;
pub mod reno;
pub mod tahoe;

/// Every congestion control, sorted by name.
pub const ALGORITHMS: &[Algorithm] = &[
    bbr::ALGORITHM,
    cubic::ALGORITHM,
    newreno::ALGORITHM,
    reno::ALGORITHM,
    tahoe::ALGORITHM,
];

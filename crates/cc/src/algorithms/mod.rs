//! The congestion controls, one file each, registered here and nowhere else.

use crate::registry::Algorithm;

pub mod balia;
pub mod bbr;
pub mod bbr2;
pub mod bbr3;
pub mod bic;
pub mod compound;
pub mod copa;
pub mod cubic;
pub mod cubic_linux;
pub mod dctcp;
pub mod fast;
pub mod hstcp;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod ledbat;
pub mod lia;
pub mod libra;
pub mod newreno;
pub mod olia;
pub mod prague;
pub mod reno;
pub mod scalable;
pub mod tahoe;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod westwood_plus;
pub mod wvegas;
pub mod yeah;

/// Every congestion control, sorted by name.
pub const ALGORITHMS: &[Algorithm] = &[
    balia::ALGORITHM,
    bbr::ALGORITHM,
    bbr2::ALGORITHM,
    bbr3::ALGORITHM,
    bic::ALGORITHM,
    compound::ALGORITHM,
    copa::ALGORITHM,
    cubic::ALGORITHM,
    cubic_linux::ALGORITHM,
    dctcp::ALGORITHM,
    fast::ALGORITHM,
    hstcp::ALGORITHM,
    htcp::ALGORITHM,
    hybla::ALGORITHM,
    illinois::ALGORITHM,
    ledbat::ALGORITHM,
    lia::ALGORITHM,
    libra::ALGORITHM,
    newreno::ALGORITHM,
    olia::ALGORITHM,
    prague::ALGORITHM,
    reno::ALGORITHM,
    scalable::ALGORITHM,
    tahoe::ALGORITHM,
    vegas::ALGORITHM,
    veno::ALGORITHM,
    westwood::ALGORITHM,
    westwood_plus::ALGORITHM,
    wvegas::ALGORITHM,
    yeah::ALGORITHM,
];

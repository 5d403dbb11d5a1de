//! Parts of path models used by several algorithms.

mod conservation;
mod excess;
mod min_rtt;
mod round;

pub(crate) use conservation::Conservation;
pub(crate) use excess::Excess;
pub(crate) use min_rtt::{MinRtt, ProbeRtt};
pub(crate) use round::Round;

use gargalo_units::{Bytes, Duration, Rate};

/// Minimum pacing rate.
pub(crate) const MIN_RATE: Rate = Rate::from_bps(1_000);
/// Below this rate one segment is a burst (BBR drafts -00 §4.2.2 and -02 §4.6.3).
pub(crate) const SMALL_RATE: Rate = Rate::from_bps(1_200_000);
/// The round-trip time assumed until one is measured (BBR draft, InitPacingRate).
pub(crate) const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The amount sent at `rate` in `d`, without 128-bit arithmetic.
#[inline]
pub(crate) fn volume(rate: Rate, d: Duration) -> Bytes {
    Bytes::from_f64(rate.bytes_per_sec() * d.as_secs_f64())
}

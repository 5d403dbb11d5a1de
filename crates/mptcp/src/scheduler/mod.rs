//! Schedulers: a [`Scheduler`] sees all subflows and selects one for the next segment, or waits.

mod adaptive;
mod blest;
#[cfg(test)]
mod decisions;
mod ecf;
mod highest_sending_rate;
mod largest_window_space;
mod lowest_latency;
mod lowest_time_space;
mod redundant;
mod registry;
mod round_robin;
#[cfg(test)]
mod testing;
mod view;
mod window_aware;

pub use registry::{DEFAULT, Registered, Schedulers};
pub use view::{Context, PathView};

use std::fmt::Debug;

/// The registry entry of a scheduler.
pub type Entry = crate::registry::Entry<dyn Scheduler>;

/// All schedulers, sorted by name.
pub const SCHEDULERS: &[Entry] = &[
    adaptive::ENTRY,
    blest::ENTRY,
    ecf::ENTRY,
    highest_sending_rate::ENTRY,
    largest_window_space::ENTRY,
    lowest_latency::ENTRY,
    lowest_time_space::ENTRY,
    redundant::ENTRY,
    round_robin::ENTRY,
    window_aware::ENTRY,
];

/// The decision of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// New data is sent on this path, an index in [`Context::paths`].
    Send(usize),
    /// New data is sent on this path, and a copy of it on every other one as soon as it has room.
    SendAll(usize),
    /// Nothing is sent now, though a path may have room. A scheduler is called again after every
    /// acknowledgement; while nothing is in flight, a decision to wait is overruled.
    Wait,
}

/// Selects the path of each new segment. It is called only while there is data and the peer's window has room for
/// it; a chosen path that cannot send is treated as [`Choice::Wait`].
pub trait Scheduler: Debug + Send {
    /// The choice for the next segment.
    fn select(&mut self, context: &Context<'_>) -> Choice;

    /// Whether the scheduler itself prevents a path from filling the peer's window. If so, a path is penalised for
    /// it ([`Options::penalisation`](crate::Options::penalisation)) only if it carries less than the one that
    /// waits.
    fn minds_window(&self) -> bool {
        false
    }
}

//! Which subflow carries the next segment: a [`Scheduler`] sees all subflows and picks one, or waits.

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

pub use registry::{DEFAULT, Entry, Registered, SCHEDULERS, SchedulerFactory, Schedulers, find};
pub use view::{Context, PathView};

use std::fmt::Debug;

/// What a scheduler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// New data goes to this path, by its index in [`Context::paths`].
    Send(usize),
    /// New data goes to this path and a copy of it to every other one, as soon as each has room.
    SendAll(usize),
    /// Nothing is sent now, though a path may have room. A scheduler is asked again after every
    /// acknowledgement; while nothing is in flight waiting is overruled.
    Wait,
}

/// Decides where each new segment goes. Asked only while there is data, and the peer's window has room
/// for it; a chosen path that cannot send is treated as [`Choice::Wait`].
pub trait Scheduler: Debug + Send {
    /// The choice for the next segment.
    fn select(&mut self, context: &Context<'_>) -> Choice;

    /// Whether it takes care itself that no path fills the peer's window for the others: then a path is
    /// penalised for it ([`Config::penalisation`](crate::Config::penalisation)) only if it carries less than
    /// the one that waits.
    fn minds_window(&self) -> bool {
        false
    }
}

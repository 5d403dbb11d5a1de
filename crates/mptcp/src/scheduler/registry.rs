//! Schedulers by name.

use super::{
    Scheduler, adaptive, blest, ecf, highest_sending_rate, largest_window_space, lowest_latency,
    lowest_time_space, redundant, round_robin, window_aware,
};
use crate::registry::{self, Kind};

/// The registry entry of a scheduler.
pub type Entry = registry::Entry<dyn Scheduler>;

/// A scheduler of the registry with checked parameters.
pub type Registered = registry::Registered<dyn Scheduler>;

/// The schedulers of this crate, as settings choose among them.
pub type Schedulers = registry::Entries<dyn Scheduler>;

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

/// The default scheduler.
pub const DEFAULT: &str = window_aware::ENTRY.name;

impl Kind for dyn Scheduler {
    const NAME: &'static str = "scheduler";
    const WHAT: &'static str = "A scheduler";
    const DEFINITION: &'static str = "SchedulerName";
    const ENTRIES: &'static [Entry] = SCHEDULERS;
    const DEFAULT: &'static Entry = &window_aware::ENTRY;
}

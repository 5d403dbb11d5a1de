//! Schedulers by name.

use super::{Entry, SCHEDULERS, Scheduler, window_aware};
use crate::registry::{self, Kind};

/// A scheduler of the registry with checked parameters.
pub type Registered = registry::Registered<dyn Scheduler>;

/// The schedulers of this crate, as settings choose among them.
pub type Schedulers = registry::Entries<dyn Scheduler>;

/// The default scheduler.
pub const DEFAULT: &str = window_aware::ENTRY.name;

impl Kind for dyn Scheduler {
    const NAME: &'static str = "scheduler";
    const WHAT: &'static str = "A scheduler";
    const DEFINITION: &'static str = "SchedulerName";
    const ENTRIES: &'static [Entry] = SCHEDULERS;
    const DEFAULT: &'static Entry = &window_aware::ENTRY;
}

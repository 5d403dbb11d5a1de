//! Schedulers by name.

use std::fmt::Debug;

use gargalo_cc::chosen::{Listed, Registry};
use gargalo_cc::params::{BuildError, Param, Params};

use super::{
    Scheduler, adaptive, blest, ecf, highest_sending_rate, largest_window_space, lowest_latency,
    lowest_time_space, redundant, round_robin, window_aware,
};
use crate::error::UnknownName;

/// The registry entry of a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Its parameters.
    pub params: fn() -> &'static [Param],
    /// Builds one.
    pub build: fn(&Params) -> Result<Box<dyn Scheduler>, BuildError>,
}

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

/// The scheduler of this name.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static Entry, UnknownName> {
    UnknownName::look_up("scheduler", name, SCHEDULERS, |e| e.name)
}

/// Creates the schedulers of connections that share a configuration.
pub trait SchedulerFactory: Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &str;
    /// A fresh instance.
    fn build(&self) -> Box<dyn Scheduler>;
}

/// A scheduler of the registry with checked parameters.
#[derive(Clone, Debug)]
pub struct Registered {
    entry: &'static Entry,
    params: Params,
}

impl Registered {
    /// Looks the name up and checks the parameters.
    ///
    /// # Errors
    /// A sentence about the wrong name or parameter.
    pub fn new(name: &str, params: Params) -> Result<Self, String> {
        let entry = find(name).map_err(|e| e.to_string())?;
        (entry.build)(&params).map_err(|e| e.to_string())?;
        Ok(Self { entry, params })
    }

    /// The default scheduler.
    pub fn standard() -> Self {
        Self {
            entry: &window_aware::ENTRY,
            params: Params::new(),
        }
    }
}

impl SchedulerFactory for Registered {
    fn name(&self) -> &str {
        self.entry.name
    }
    fn build(&self) -> Box<dyn Scheduler> {
        (self.entry.build)(&self.params).expect("the parameters were checked by new")
    }
}

/// The schedulers of this crate, as settings choose among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedulers;

impl Registry for Schedulers {
    const WHAT: &'static str = "A scheduler";
    const DEFINITION: &'static str = "SchedulerName";
    const DEFAULT: &'static str = DEFAULT;

    fn entries() -> Vec<Listed> {
        let listed = |e: &Entry| Listed {
            name: e.name,
            aliases: &[],
            summary: e.summary,
            source: e.source,
            params: (e.params)(),
        };
        SCHEDULERS.iter().map(listed).collect()
    }

    fn check(name: &str, params: &Params) -> Result<(), String> {
        Registered::new(name, params.clone()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_built_by_default_and_found() {
        assert!(SCHEDULERS.is_sorted_by_key(|e| e.name));
        for entry in SCHEDULERS {
            assert!((entry.build)(&Params::new()).is_ok(), "{}", entry.name);
            assert_eq!(find(entry.name).unwrap().name, entry.name);
            assert!((entry.build)(&Params::new().with("nonsense", 1.0)).is_err());
        }
        assert_eq!(Registered::standard().name(), DEFAULT);
    }

    #[test]
    fn an_unknown_name_is_answered_by_the_nearest() {
        let error = Registered::new("lowest-latancy", Params::new()).unwrap_err();
        assert_eq!(
            error,
            "there is no scheduler \"lowest-latancy\" (did you mean \"lowest-latency\"?)"
        );
        let params = Params::new().with("segments", 0.0);
        let error = Registered::new("round-robin", params).unwrap_err();
        assert!(error.contains("a whole number from 1"), "{error}");
    }
}

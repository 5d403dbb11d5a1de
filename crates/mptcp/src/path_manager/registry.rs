//! Path managers by name.

use std::fmt::Debug;

use gargalo_cc::chosen::{Listed, Registry};
use gargalo_cc::params::{BuildError, Param, Params};

use super::{PathManager, binder, full_mesh, ndiffports, passive, single_mesh};
use crate::error::UnknownName;

/// The registry entry of a path manager.
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
    pub build: fn(&Params) -> Result<Box<dyn PathManager>, BuildError>,
}

/// All path managers, sorted by name.
pub const PATH_MANAGERS: &[Entry] = &[
    binder::ENTRY,
    passive::ENTRY,
    full_mesh::ENTRY,
    ndiffports::ENTRY,
    single_mesh::ENTRY,
];

/// The default path manager.
pub const DEFAULT: &str = single_mesh::ENTRY.name;

/// The path manager of this name.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static Entry, UnknownName> {
    UnknownName::look_up("path manager", name, PATH_MANAGERS, |e| e.name)
}

/// Creates the path managers of connections that share a configuration.
pub trait PathManagerFactory: Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &str;
    /// A fresh instance.
    fn build(&self) -> Box<dyn PathManager>;
}

/// A path manager of the registry with checked parameters.
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

    /// The default path manager.
    pub fn standard() -> Self {
        Self {
            entry: &single_mesh::ENTRY,
            params: Params::new(),
        }
    }
}

impl PathManagerFactory for Registered {
    fn name(&self) -> &str {
        self.entry.name
    }
    fn build(&self) -> Box<dyn PathManager> {
        (self.entry.build)(&self.params).expect("the parameters were checked by new")
    }
}

/// The path managers of this crate, as settings choose among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathManagers;

impl Registry for PathManagers {
    const WHAT: &'static str = "A path manager";
    const DEFINITION: &'static str = "PathManagerName";
    const DEFAULT: &'static str = DEFAULT;

    fn entries() -> Vec<Listed> {
        let listed = |e: &Entry| Listed {
            name: e.name,
            aliases: &[],
            summary: e.summary,
            source: e.source,
            params: (e.params)(),
        };
        PATH_MANAGERS.iter().map(listed).collect()
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
        assert!(PATH_MANAGERS.is_sorted_by_key(|e| e.name));
        for entry in PATH_MANAGERS {
            assert!((entry.build)(&Params::new()).is_ok(), "{}", entry.name);
            assert_eq!(find(entry.name).unwrap().name, entry.name);
        }
        assert_eq!(Registered::standard().name(), DEFAULT);
        assert!(
            Registered::new("fullmesh", Params::new())
                .unwrap_err()
                .contains("full-mesh")
        );
    }
}

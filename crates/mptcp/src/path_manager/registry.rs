//! Path managers by name.

use super::{Entry, PathManager, binder, full_mesh, ndiffports, passive, single_mesh};
use crate::registry::{self, Kind};

/// A path manager of the registry with checked parameters.
pub type Registered = registry::Registered<dyn PathManager>;

/// The path managers of this crate, as settings choose among them.
pub type PathManagers = registry::Entries<dyn PathManager>;

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

impl Kind for dyn PathManager {
    const NAME: &'static str = "path manager";
    const WHAT: &'static str = "A path manager";
    const DEFINITION: &'static str = "PathManagerName";
    const ENTRIES: &'static [Entry] = PATH_MANAGERS;
    const DEFAULT: &'static Entry = &single_mesh::ENTRY;
}

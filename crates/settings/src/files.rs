//! Files that settings refer to.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gargalo_units::read_file;

use crate::Error;

/// Reads files that settings name, each once, relative to the directory of the scenario.
#[derive(Debug, Default)]
pub struct Files {
    directory: Option<PathBuf>,
    known: HashMap<(TypeId, String), Arc<dyn Any + Send + Sync>>,
}

impl Files {
    /// Creates it for files relative to this directory; `None`: to the current one.
    pub fn new(directory: Option<&Path>) -> Self {
        Self {
            directory: directory.map(Path::to_owned),
            known: HashMap::new(),
        }
    }

    /// The path at which a file is looked up.
    pub fn path(&self, file: &str) -> PathBuf {
        match &self.directory {
            Some(dir) => dir.join(file),
            None => file.into(),
        }
    }

    /// Reads the text of a regular file; see [`read_file`].
    ///
    /// # Errors
    /// When it cannot be read, or is not in UTF-8.
    pub fn text(path: &Path) -> io::Result<String> {
        String::from_utf8(read_file(path)?)
            .map_err(|_| io::Error::other("it is not a text in UTF-8"))
    }

    /// Returns the result of `load` for a file, which is called once for each file.
    ///
    /// # Errors
    /// Returns errors of `load`.
    pub fn get<T: Any + Send + Sync>(
        &mut self,
        file: &str,
        load: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        let key = (TypeId::of::<T>(), file.to_owned());
        if let Some(known) = self.known.get(&key)
            && let Ok(known) = Arc::clone(known).downcast()
        {
            return Ok(known);
        }
        let made = Arc::new(load(&self.path(file))?);
        self.known.insert(key, made.clone());
        Ok(made)
    }
}

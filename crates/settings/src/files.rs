//! Files that settings refer to.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;

/// Longest text of a file: a trace of an hour at 100 Mbit/s has 240 MB.
const LONGEST: u64 = 256 << 20;

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

    /// Reads the text of a regular file of bounded size: a device, for example, has no end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(path: &Path) -> std::io::Result<String> {
        let facts = std::fs::metadata(path)?;
        if facts.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        if !facts.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        if facts.len() > LONGEST {
            let why = format!("it has {} bytes, more than {LONGEST}", facts.len());
            return Err(std::io::Error::other(why));
        }
        std::fs::read_to_string(path)
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

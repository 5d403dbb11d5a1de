//! What a shared library has for Gargalo.

use gargalo_plugin::congestion::abi;

use crate::congestion::Plugin;
use crate::library::{Library, LoadError};
use crate::stack::NativeStack;

/// Congestion controls, a QUIC stack, or both.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The congestion controls.
    pub congestion: Option<Plugin>,
    /// The QUIC stack.
    pub stack: Option<&'static NativeStack>,
}

impl Contents {
    /// Loads a library and reads its tables. `file` is its name in messages, `bytes` what it has.
    ///
    /// # Errors
    /// When it is no library, has neither, or a table is not valid.
    pub fn load(file: &str, bytes: &[u8]) -> Result<Self, LoadError> {
        let library = Library::load(file, bytes)?;
        let congestion = Plugin::of(library)?;
        let stack = NativeStack::of(library)?;
        if congestion.is_none() && stack.is_none() {
            return Err(LoadError::NoSymbol {
                file: library.file().to_owned(),
                symbol: abi::SYMBOL,
            });
        }
        Ok(Self { congestion, stack })
    }
}

//! Creation of controllers, one for every path of every connection that shares a configuration.

use std::fmt::Debug;

use crate::{Algorithm, Controller, Init, Params, registry};

/// Creates the congestion controls of connections.
pub trait ControllerFactory: Debug + Send + Sync {
    /// Its name in results.
    fn name(&self) -> &str;
    /// A fresh instance.
    ///
    /// # Errors
    /// A sentence about the wrong parameter.
    fn build(&self, init: Init) -> Result<Box<dyn Controller>, String>;
}

/// A congestion control by its name in the registry, with parameters.
#[derive(Clone, Debug)]
pub struct Registered {
    algorithm: &'static Algorithm,
    params: Params,
}

impl Registered {
    /// Looks the name up.
    ///
    /// # Errors
    /// When nothing is registered under it; the message has the nearest name.
    pub fn new(name: &str, params: Params) -> Result<Self, String> {
        let algorithm = registry::find(name).map_err(|e| e.to_string())?;
        Ok(Self { algorithm, params })
    }
}

impl ControllerFactory for Registered {
    fn name(&self) -> &str {
        self.algorithm.name
    }
    fn build(&self, init: Init) -> Result<Box<dyn Controller>, String> {
        (self.algorithm.build)(&self.params, init).map_err(|e| e.to_string())
    }
}

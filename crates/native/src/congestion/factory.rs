//! Creates the controllers of a run.

use std::sync::Arc;

use gargalo_cc::{Controller, ControllerFactory, Init, Params};

use super::controller::NativeController;
use super::plugin::Algorithm;
use crate::fault::Faults;

/// Creates controllers of a library's algorithm.
#[derive(Debug)]
pub struct NativeFactory {
    algorithm: &'static Algorithm,
    values: Vec<f64>,
    faults: Arc<Faults>,
}

impl NativeFactory {
    /// For a run, whose first failure `faults` keeps.
    ///
    /// # Errors
    /// A sentence about the first parameter that is unknown, repeated or invalid.
    pub fn new(
        algorithm: &'static Algorithm,
        params: &Params,
        faults: Arc<Faults>,
    ) -> Result<Self, String> {
        let values = algorithm.values(params).map_err(|e| e.to_string())?;
        Ok(Self {
            algorithm,
            values,
            faults,
        })
    }
}

impl ControllerFactory for NativeFactory {
    fn name(&self) -> &str {
        self.algorithm.name()
    }

    fn build(&self, init: Init) -> Result<Box<dyn Controller>, String> {
        let faults = Arc::clone(&self.faults);
        NativeController::new(self.algorithm, &self.values, init, faults)
            .map(|c| Box::new(c) as Box<dyn Controller>)
            .map_err(|fault| fault.to_string())
    }
}

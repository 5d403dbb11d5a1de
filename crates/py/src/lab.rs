//! The lab's sandbox.

use pyo3::prelude::*;

use crate::run::RunError;

/// Moves the rest of the program into namespaces of its own; the caller's process waits outside. Only
/// a process of one thread can. With `kept` the network stays that of the caller, who must be root.
#[pyfunction]
#[pyo3(signature = (kept=false))]
pub fn enter_sandbox(kept: bool) -> PyResult<()> {
    #[cfg(target_os = "linux")]
    {
        use gargalo_lab::sandbox::{Network, enter};
        let network = if kept { Network::Kept } else { Network::New };
        enter(network).map_err(|e| RunError::new_err(e.to_string()))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = kept;
        Err(RunError::new_err("the lab needs Linux"))
    }
}

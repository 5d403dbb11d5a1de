//! Congestion controls of shared libraries.

mod controller;
mod factory;
mod plugin;
mod records;

pub use factory::NativeFactory;
pub use plugin::{Algorithm, Plugin};

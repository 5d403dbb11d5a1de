//! The host's side of compiled plug-ins: loads shared libraries, checks their version and what they answer, and
//! contains their failures.
//!
//! A library stays loaded until the process ends.

pub mod congestion;
mod library;
pub mod stack;

pub use library::{Library, LoadError};

//! The host's side of compiled plug-ins: loads shared libraries, checks their version and what they answer, and
//! contains their failures.
//!
//! A [`Library`] stays loaded until the process ends. Each kind of plug-in is a module that reads its table and calls
//! its functions through [`calls`], which notes whose call is under way; the first [`Fault`] of a run is kept in its
//! [`Faults`].

pub mod calls;
pub mod congestion;
mod contents;
mod elf;
mod fault;
mod library;
pub mod memory;
pub mod names;
pub mod outside;
pub mod stack;

pub use contents::Contents;
pub use elf::seal;
pub use fault::{Fault, Faults, Place, Wrong, has_stuck_calls};
pub use library::{Library, LoadError};

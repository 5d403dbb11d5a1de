//! The lab: real kernels and our own stacks over emulated links, in real time and without root.
//!
//! [`run`](run()) runs a whole scenario. Its parts can be used alone: the [`sandbox`] gives an ordinary user the
//! privileges inside namespaces, a [`NetNs`](gargalo_device::NetNs) is a host, a [`Device`](gargalo_device::Device)
//! its network interface, [`fabric::Fabric`] the emulated network (sans-IO), and [`engine::Engine`] forwards datagrams
//! between them in real time.
//!
//! On systems other than Linux only the types that describe a run are available.

mod error;
#[cfg(target_os = "linux")]
mod linux;
pub mod multipath;
mod spec;

pub use error::{Error, Result};
pub use gargalo_device::Choice;
#[cfg(target_os = "linux")]
pub use linux::*;
pub use spec::{CommandSpec, LabSpec, Population, Stack, Tuning};

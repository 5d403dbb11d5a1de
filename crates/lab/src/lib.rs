//! The lab: real kernels and our own stacks over emulated links, in real time and without root.
//!
//! [`run`](run()) runs a whole scenario. Its parts can be used alone: the [`sandbox`] gives an ordinary user the
//! privileges inside namespaces, a [`NetNs`](gargalo_device::NetNs) is a host, a [`Device`](gargalo_device::Device)
//! its network interface, [`fabric::Fabric`] the emulated network (sans-IO), and [`engine::Engine`] forwards datagrams
//! between them in real time.
//!
//! On systems other than Linux only the types that describe a run are available.

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
pub mod commands;
#[cfg(target_os = "linux")]
mod counters;
#[cfg(target_os = "linux")]
pub mod engine;
mod error;
#[cfg(target_os = "linux")]
pub mod fabric;
#[cfg(target_os = "linux")]
mod header;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod maker;
pub mod multipath;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod path_manager;
#[cfg(target_os = "linux")]
pub mod plan;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
pub mod sandbox;
#[cfg(target_os = "linux")]
mod schedule;
#[cfg(target_os = "linux")]
pub mod shell;
#[cfg(target_os = "linux")]
pub mod sockets;
mod spec;
#[cfg(target_os = "linux")]
mod station;
#[cfg(target_os = "linux")]
pub mod traffic;
#[cfg(target_os = "linux")]
mod waiter;

pub use error::{Error, Result};
pub use gargalo_device::Choice;
#[cfg(target_os = "linux")]
pub use kernel::congestion_instead_of;
#[cfg(target_os = "linux")]
pub use run::{LabOutcome, Watch, run};
pub use spec::{CommandSpec, LabSpec, Population, Stack, Tuning};

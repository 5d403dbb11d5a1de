//! The lab: real kernels and our own stacks over emulated links, in real time and without root.
//!
//! [`run`](run()) does a whole scenario. Its parts stand alone: the [`sandbox`] gives an ordinary user a place
//! to work in, [`NetNs`] a host, [`device::Device`] its network interface, [`fabric::Fabric`] the emulated
//! network (sans-IO), and [`engine::Engine`] moves datagrams between them in real time.
//!
//! On systems other than Linux only the values exist that say what a run would do.

pub mod application;
#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
pub mod commands;
pub mod connect;
#[cfg(target_os = "linux")]
mod counters;
#[cfg(target_os = "linux")]
pub mod device;
#[cfg(target_os = "linux")]
pub mod engine;
mod error;
#[cfg(target_os = "linux")]
pub mod fabric;
#[cfg(target_os = "linux")]
mod glance;
#[cfg(target_os = "linux")]
mod hosts;
pub mod iperf3;
#[cfg(target_os = "linux")]
mod kernel;
pub mod multipath;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(target_os = "linux")]
mod network;
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
mod spec;
#[cfg(target_os = "linux")]
mod station;
#[cfg(target_os = "linux")]
pub mod traffic;
#[cfg(target_os = "linux")]
mod waiter;
#[cfg(target_os = "linux")]
pub mod wire;

#[cfg(target_os = "linux")]
pub use clock::Clock;
pub use error::{Error, Result};
#[cfg(target_os = "linux")]
pub use kernel::congestion_instead_of;
#[cfg(target_os = "linux")]
pub use namespace::NetNs;
#[cfg(target_os = "linux")]
pub use run::{LabOutcome, Watch, run};
pub use spec::{Choice, CommandSpec, LabSpec, Stack, Tuning};

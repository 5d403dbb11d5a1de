//! The lab: real kernels and our own stacks over emulated links, in real time and without root.
//!
//! [`run`](run()) does a whole scenario. Its parts stand alone: the [`sandbox`] gives an ordinary user a place
//! to work in, [`NetNs`] a host, [`device::Device`] its network interface, [`fabric::Fabric`] the emulated
//! network (sans-IO), and [`engine::Engine`] moves datagrams between them in real time.

mod clock;
pub mod commands;
pub mod device;
pub mod engine;
mod error;
pub mod fabric;
mod glance;
mod hosts;
mod kernel;
mod namespace;
pub mod netlink;
mod network;
pub mod plan;
mod run;
pub mod sandbox;
mod station;
pub mod traffic;
mod waiter;

pub use clock::Clock;
pub use error::{Error, Result};
pub use namespace::NetNs;
pub use run::{LabOutcome, LabSpec, Stack, Watch, run};

//! The lab: real kernels and our own stacks over emulated links, in real time and without root.

pub mod clock;
pub mod device;
pub mod engine;
mod error;
pub mod fabric;
mod glance;
mod kernel;
pub mod namespace;
pub mod netlink;
pub mod sandbox;
pub mod traffic;
mod waiter;

pub use clock::Clock;
pub use error::{Error, Result};
pub use namespace::NetNs;

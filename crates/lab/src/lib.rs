//! The lab: real kernels and our own stacks over emulated links, in real time and without root.

pub mod application;
pub mod clock;
pub mod connect;
pub mod device;
mod error;
pub mod iperf3;
pub mod namespace;
pub mod netlink;
pub mod sandbox;
pub mod wire;

pub use clock::Clock;
pub use error::{Error, Result};
pub use namespace::NetNs;

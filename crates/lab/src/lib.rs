//! The lab: real kernels and our own stacks over emulated links, in real time and without root.

pub mod application;
pub mod clock;
pub mod device;
mod error;
pub mod iperf3;
pub mod namespace;
pub mod netlink;
pub mod sandbox;

pub use clock::Clock;
pub use error::{Error, Result};
pub use namespace::NetNs;

//! Programs on a user-space host that talk to real hosts: iperf3's client and server, and a plain connection.
//!
//! Each is an [`application::Application`]: sans-IO like the [host](gargalo_host::Host) it runs on. On Linux
//! a `wire::Wire` joins a host to the kernel and runs a program in real time.

pub mod application;
pub mod connect;
pub mod iperf3;
#[cfg(target_os = "linux")]
pub mod wire;

pub use gargalo_device::{Error, Result};

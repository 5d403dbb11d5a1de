//! What stacks in Rust have in common: libraries below them that draw random numbers or read the time, with those of
//! the host.

pub mod rustls;
pub mod thread;

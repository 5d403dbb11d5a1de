//! What stacks in Rust have in common: libraries below them that draw random numbers or read the time, with those of
//! the host.

#[cfg(feature = "boringssl")]
mod boringssl;
#[cfg(feature = "rustls")]
pub mod rustls;
#[cfg(feature = "rand")]
pub mod thread;

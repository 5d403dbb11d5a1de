//! What stacks in Rust have in common: libraries below them that draw random numbers or read the time, with those of
//! the host, and stream data for implementations that tell of no room in advance.

#[cfg(feature = "boringssl")]
mod boringssl;
mod outgoing;
#[cfg(feature = "rustls")]
pub mod rustls;
#[cfg(feature = "rand")]
pub mod thread;

pub use outgoing::{Outgoing, Sink};

//! What stacks in Rust have in common: libraries below them that draw random numbers or read the time, with those of
//! the host, and what implementations show for debugging only.

#[cfg(feature = "boringssl")]
mod boringssl;
pub mod debug;
#[cfg(feature = "rustls")]
#[path = "../../../crates/quic/src/tls/p256_key.rs"]
mod p256_key;
pub mod qlog;
#[cfg(feature = "rustls")]
pub mod rustls;
#[cfg(feature = "rand")]
pub mod thread;

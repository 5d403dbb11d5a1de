//! Network devices of Linux in real time: the exchange of datagrams with the kernel.
//!
//! A [`NetNs`] is a host, a [`Device`] the emulated network's end of its interface, a [`port::Port`] the interface of
//! a user-space host. [`netlink`] sets addresses and routes of interfaces, a [`Place`] is a pair of unused addresses,
//! and [`Nat`] hides it behind the machine's own address.
//!
//! On systems other than Linux only the types that describe devices are available.

#[cfg(target_os = "linux")]
pub mod channel;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
pub mod coalesce;
#[cfg(target_os = "linux")]
mod device;
mod error;
#[cfg(target_os = "linux")]
mod frame;
mod kind;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod nat;
#[cfg(target_os = "linux")]
pub mod netlink;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(target_os = "linux")]
pub mod place;
#[cfg(target_os = "linux")]
pub mod port;
#[cfg(target_os = "linux")]
mod tun;

#[cfg(target_os = "linux")]
pub use clock::{Clock, precise_timers};
#[cfg(target_os = "linux")]
pub use device::{BATCH, Device};
pub use error::{Error, Result};
#[cfg(target_os = "linux")]
pub use frame::{Frame, HEADROOM};
pub use kind::Choice;
#[cfg(target_os = "linux")]
pub use namespace::NetNs;
#[cfg(target_os = "linux")]
pub use nat::Nat;
#[cfg(target_os = "linux")]
pub use place::Place;

//! Network devices of Linux in real time: how datagrams of ours meet its kernel.
//!
//! A [`NetNs`] is a host, a [`Device`] its network interface with the other end in our hands, a [`port::Port`]
//! the interface of a user-space host. [`netlink`] gives interfaces addresses and routes, a [`Place`] is a pair
//! of addresses that nobody else uses, [`Nat`] hides it behind the machine's own address.
//!
//! On systems other than Linux only the values exist that say what would be made.

#[cfg(target_os = "linux")]
pub mod channel;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
pub mod coalesce;
#[cfg(target_os = "linux")]
mod device;
mod error;
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
pub use device::{BATCH, Device, Frame, HEADROOM};
pub use error::{Error, Result};
pub use kind::Choice;
#[cfg(target_os = "linux")]
pub use namespace::NetNs;
#[cfg(target_os = "linux")]
pub use nat::Nat;
#[cfg(target_os = "linux")]
pub use place::Place;

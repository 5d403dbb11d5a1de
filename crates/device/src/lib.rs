//! Network devices of Linux in real time: the exchange of datagrams with the kernel.
//!
//! A [`NetNs`] is a host, a [`Device`] the emulated network's end of its interface, a [`port::Port`] the interface of
//! a user-space host. [`netlink`] sets addresses and routes of interfaces, [`path_manager`] configures the kernel's
//! Multipath TCP, a [`Place`] is a pair of unused addresses,
//! and [`Nat`] hides it behind the machine's own address.
//!
//! On systems other than Linux only the types that describe devices are available.

mod error;
mod kind;
#[cfg(target_os = "linux")]
mod linux;

pub use error::{Error, Result};
pub use kind::Choice;
#[cfg(target_os = "linux")]
pub use linux::*;

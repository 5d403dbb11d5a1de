//! What needs Linux.

pub mod channel;
mod clock;
pub mod coalesce;
mod device;
mod frame;
mod namespace;
mod nat;
pub mod netlink;
mod packet;
pub mod path_manager;
pub mod place;
pub mod port;
mod tun;

pub use clock::{Clock, precise_timers};
pub use device::{BATCH, Device};
pub use frame::{Frame, HEADROOM};
pub use namespace::NetNs;
pub use nat::Nat;
pub use place::Place;

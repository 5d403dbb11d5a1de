//! What all stacks other than noq have in common: what a scenario requests of one end ([`Request`]), the functions that
//! a stack provides ([`Callbacks`]), what it has reported and the host has not yet taken ([`Pending`]), and the adapter
//! that makes of them a [`Stack`](crate::Stack) and enforces the rules of the interface ([`Foreign`]). Shared libraries
//! and Python classes differ only in how their functions are called.

mod adapter;
mod callbacks;
mod datagram;
mod packet;
mod pending;
mod request;
mod sender;
mod trace;

pub use adapter::Foreign;
pub use callbacks::{About, Callbacks};
pub use datagram::{Outgoing, Path};
pub use packet::{Packet, PacketEvent, PacketKind};
pub use pending::Pending;
pub use request::Request;
pub use sender::{PathState, Sender};

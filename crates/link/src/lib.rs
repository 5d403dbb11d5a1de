//! What happens to a packet between two hosts: rate, delay, loss, reordering, queues.
//!
//! A [`Link`] is one direction of a link, sans-IO: packets go in with [`Link::send`], come out of
//! [`Link::poll`] when [`Link::next_event`] has passed. It knows a packet's size, ECN bits and flow, and
//! carries an opaque payload, so that the simulator and the real-time world share it.
#![forbid(unsafe_code)]

mod packet;

pub use gargalo_units::Ecn;
pub use packet::Packet;

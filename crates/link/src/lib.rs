//! Links between two hosts: rate, delay, loss, reordering, queues.
//!
//! A [`Link`] is one direction of a link, sans-IO: packets go in with [`Link::send`], come out of
//! [`Link::poll`] when [`Link::next_event`] has passed. It knows a packet's size, ECN bits and flow, and
//! carries an opaque payload, so that the simulator and the real-time world share it.
//!
//! A packet passes these stages, in this order:
//!
//! 1. MTU check ([`DropReason::TooBig`]);
//! 2. loss ([`LossModel`]) and outages ([`DropReason::Loss`]), then the policer ([`DropReason::Aqm`]), where the link
//!    has them;
//! 3. duplication: the copy passes all later stages, directly behind the original;
//! 4. the queue ([`QueueConfig`]; [`DropReason::QueueFull`], [`DropReason::Aqm`], ECN marks);
//! 5. serialisation at the rate ([`RateModel`]), in the order the queue chose;
//! 6. aggregation, then propagation delay, jitter and reordering ([`LinkConfig::aggregation`], [`Delay`], [`Reorder`]);
//! 7. delivery, in order of arrival, ties in order of departure.
//!
//! A queue holds the packets that wait; the one being serialised has left it. A limit of 100 packets thus allows
//! 100 waiting packets beside the one on the wire. ns-3 counts in the same way (a device dequeues a packet when its
//! transmission begins), and so does mahimahi (a packet leaves the queue at the delivery opportunity that carries
//! its first byte).
//!
//! ```
//! use gargalo_link::{Delay, Ecn, Link, LinkConfig, Packet, RateModel};
//! use gargalo_units::{Duration, Instant, Rate};
//! use rand_pcg::Pcg64;
//!
//! let config = LinkConfig {
//!     rate: RateModel::Constant(Rate::from_mbps(12)),
//!     delay: Delay::Constant(Duration::from_millis(20)),
//!     ..LinkConfig::default()
//! };
//! let mut link = Link::new(config, Pcg64::new(1, 1))?;
//! let packet = Packet { bytes: 1500, flow: 0, ecn: Ecn::NotEct, payload: "hello" };
//! link.send(Instant::ZERO, packet);
//! // 1500 bytes at 12 Mbit/s take 1 ms.
//! let arrival = Instant::ZERO + Duration::from_millis(21);
//! assert_eq!(link.next_event(), arrival);
//! assert_eq!(link.poll(arrival).map(|d| d.packet.payload), Some("hello"));
//! # Ok::<(), gargalo_link::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod chance;
mod config;
mod delay;
mod histogram;
mod ledger;
mod link;
mod loss;
mod packet;
mod policer;
pub mod queue;
mod reorder;
mod screen;
mod server;
mod stats;
#[cfg(test)]
mod tests;
pub mod trace;

pub use config::{LinkConfig, RateModel, Strip, TraceFile};
pub use delay::{Delay, Jitter, JitterDistribution};
pub use gargalo_settings::Error as ConfigError;
pub use gargalo_units::Ecn;
pub use histogram::DelayHistogram;
pub use link::{Delivery, Flight, Link};
pub use loss::{GilbertElliott, LossModel};
pub use packet::Packet;
pub use policer::Policer;
pub use queue::*;
pub use reorder::Reorder;
pub use stats::{Carried, DropReason, LinkSample, LinkStats};
pub use trace::{DeliveryTrace, TraceError};

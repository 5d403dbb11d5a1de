//! A sans-IO IP host: many TCP and Multipath TCP connections, UDP sockets and ICMP behind one [`Host`]
//! value; datagrams go in as bytes and come out as bytes.
//!
//! A driver gives every datagram that arrives to [`Host::handle`], calls [`Host::handle_timeout`] when
//! [`Host::poll_timeout`] has passed and, after anything it or the application did, takes what
//! [`Host::poll_transmit`] has until there is nothing. [`Host::poll_event`] tells the application where
//! to look. Time never goes back between calls; nothing reads a clock, a socket or a source of
//! randomness (a seed is given).
//!
//! What arrives may be anything: it never panics and takes bounded memory. Fragments are dropped and
//! counted, since everything here is sent with DF and sized by path MTU discovery; there is no
//! reassembly, no forwarding, no loopback and no neighbour discovery (the link below is point to point).
#![forbid(unsafe_code)]

mod config;
mod connection;
mod cookie;
mod error;
mod event;
mod host;
mod icmp;
mod input;
mod limiter;
mod listen;
mod multipath;
mod output;
mod path;
mod secrets;
mod sockets;
mod stats;
mod timers;
mod transport;
mod udp;

pub use config::{HostConfig, MptcpOptions, SocketOptions, SynCookies};
pub use error::{ConfigError, SocketError};
pub use event::{ConnectionId, HostEvent, ListenerId, UdpId};
pub use host::Host;
pub use icmp::packet_too_big;
pub use stats::HostStats;

//! A sans-IO IP host: many TCP and Multipath TCP connections, UDP sockets and ICMP in one [`Host`]; its input and
//! output are datagrams as bytes.
//!
//! A driver passes every received datagram to [`Host::handle`], calls [`Host::handle_timeout`] when
//! [`Host::poll_timeout`] has passed and, after any call of its own or of the application, calls
//! [`Host::poll_transmit`] until it returns `false`. [`Host::poll_event`] returns events for the application. Time
//! must not decrease between calls. The host reads no clock, socket or source of randomness (it gets a seed).
//!
//! Any input is handled without a panic and with bounded memory. Fragments are dropped and counted: all datagrams
//! are sent with DF and sized by path MTU discovery; there is no reassembly, no forwarding, no loopback and no
//! neighbour discovery (the link below is point to point).
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

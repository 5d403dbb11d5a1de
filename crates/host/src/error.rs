use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

/// Why a host cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The list of addresses is empty.
    #[error("a host needs at least one address")]
    NoAddress,
    /// An address that is not unicast.
    #[error("{address} is not the address of a host: give a unicast address")]
    Address {
        /// The address that was given.
        address: IpAddr,
    },
    /// The MTU is out of range.
    #[error("MTU {mtu} is out of range: give {least} to 65535 bytes")]
    Mtu {
        /// The MTU in bytes.
        mtu: u32,
        /// The least one in bytes.
        least: u32,
    },
    /// The ephemeral ports are not a range.
    #[error("ephemeral ports {first} to {last} are not a range: give 1 <= first <= last")]
    Ports {
        /// The first port.
        first: u16,
        /// The last port.
        last: u16,
    },
    /// A datagram with a time to live of 0 is discarded.
    #[error("a time to live of 0 is not possible: give 1 to 255")]
    Ttl,
}

/// Why an application's call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The local address is not one of the host's.
    #[error("{address} is not an address of this host")]
    NotOurs {
        /// The address that was given.
        address: IpAddr,
    },
    /// The local and remote address differ in family, or the host has no address of the remote's family.
    #[error("the host has no address from which {remote} can be reached")]
    NoRoute {
        /// The remote address.
        remote: SocketAddr,
    },
    /// The remote address or port is not valid.
    #[error("{remote} is not the address of a host and a port")]
    BadRemote {
        /// The remote address.
        remote: SocketAddr,
    },
    /// The remote address is our own.
    #[error("{remote} is this host itself, which has no loopback")]
    Ourselves {
        /// The remote address.
        remote: SocketAddr,
    },
    /// Port zero cannot be listened on.
    #[error("port 0 cannot be listened on: give a port")]
    NoPort,
    /// The address and port are in use.
    #[error("{local} is in use")]
    InUse {
        /// The local address.
        local: SocketAddr,
    },
    /// All ephemeral ports to that remote address are taken.
    #[error("all ephemeral ports are in use")]
    NoPortLeft,
    /// The congestion control refused its parameters.
    #[error("congestion control {name}: {message}")]
    Congestion {
        /// Name of the congestion control.
        name: String,
        /// Its error message.
        message: String,
    },
    /// A Multipath TCP connection cannot be created.
    #[error(transparent)]
    Multipath(gargalo_mptcp::ConfigError),
    /// No such socket.
    #[error("the socket does not exist or was closed")]
    Unknown,
    /// The datagram exceeds the MTU; nothing is fragmented.
    #[error("a datagram of {length} bytes exceeds the MTU of {mtu} bytes")]
    TooLong {
        /// Its length with headers, in bytes.
        length: u64,
        /// The MTU in bytes.
        mtu: u32,
    },
    /// The send queue is full.
    #[error("the send queue is full: try again when datagrams have been sent")]
    Full,
}

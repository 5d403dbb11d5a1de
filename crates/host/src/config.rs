//! The configuration of a host.

use std::net::IpAddr;
use std::sync::Arc;

use gargalo_cc::ControllerFactory;
use gargalo_units::{Bytes, Duration};

use crate::ConfigError;

/// Configuration of a host; the defaults are Linux's where it has them.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The addresses of the host, at least one; the first of a family is the source address of its connections.
    pub addresses: Vec<IpAddr>,
    /// The longest datagram that the link below carries, in bytes: 576 to 65535, and at least 1280 if
    /// there is an IPv6 address (RFC 8200 §5).
    pub mtu: u32,
    /// Half-open connections per listener; further SYNs are answered by cookies or dropped.
    pub backlog: usize,
    /// Open connections per listener that [`HostEvent::Accepted`](crate::HostEvent) has not reported yet; beyond it
    /// SYNs are dropped.
    pub accept_queue: usize,
    /// When SYNs are answered by cookies (RFC 4987 §3.6).
    pub syn_cookies: SynCookies,
    /// Connections in TIME-WAIT; beyond it the oldest is removed.
    pub most_in_time_wait: usize,
    /// How long a connection that the application has released may wait for the peer to acknowledge more data, or
    /// to close.
    pub orphan_timeout: Duration,
    /// Local ports for connections without one: first and last.
    pub ephemeral_ports: (u16, u16),
    /// Size of the receive queue of a UDP socket, and of its send queue: payload bytes, plus 256 bytes per
    /// datagram.
    pub udp_buffer: Bytes,
    /// ICMP messages per second, separately for errors and echo replies, with bursts of a twentieth
    /// (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)).
    pub icmp_rate: u32,
    /// Queued datagrams that belong to no connection (resets, cookies, ICMP); more are dropped.
    pub most_outgoing: usize,
    /// Time to live and hop limit.
    pub ttl: u8,
    /// The device computes TCP checksums: segments are sent with the sum of the pseudo header in the checksum field
    /// (`VIRTIO_NET_HDR_F_NEEDS_CSUM`). Off by default.
    pub checksum_offload: bool,
    /// Seed of sequence numbers, ports and hashes; the same seed gives the same run.
    pub seed: u64,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            mtu: 1500,
            backlog: 256,
            accept_queue: 4096,
            syn_cookies: SynCookies::WhenFull,
            most_in_time_wait: 16_384,
            orphan_timeout: Duration::from_secs(60),
            ephemeral_ports: (32_768, 60_999),
            udp_buffer: Bytes::new(212_992),
            icmp_rate: 1000,
            most_outgoing: 1024,
            ttl: 64,
            checksum_offload: false,
            seed: 0,
        }
    }
}

impl HostConfig {
    /// The defaults with these addresses.
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The minimum MTU of a family: path MTU discovery never goes below it (IPv4:
    /// Linux's 552; IPv6: RFC 8201 §4).
    pub(crate) const fn least_mtu(v6: bool) -> u32 {
        if v6 { 1280 } else { 552 }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.addresses.is_empty() {
            return Err(ConfigError::NoAddress);
        }
        for address in &self.addresses {
            if !is_unicast(address) {
                return Err(ConfigError::Address { address: *address });
            }
        }
        let least = if self.addresses.iter().any(IpAddr::is_ipv6) {
            1280
        } else {
            576
        };
        if !(least..=65_535).contains(&self.mtu) {
            return Err(ConfigError::Mtu {
                mtu: self.mtu,
                least,
            });
        }
        let (first, last) = self.ephemeral_ports;
        if first == 0 || first > last {
            return Err(ConfigError::Ports { first, last });
        }
        if self.ttl == 0 {
            return Err(ConfigError::Ttl);
        }
        Ok(())
    }
}

/// Whether a host on a network can have this address (RFC 1122 §3.2.1.3).
pub(crate) fn is_unicast(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(a) if a.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}

/// When SYNs are answered by cookies instead of half-open connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookies {
    /// Never: SYNs beyond the backlog are dropped.
    Off,
    /// When the backlog is full.
    #[default]
    WhenFull,
    /// Always, even while there is room in the backlog.
    Always,
}

/// The configuration of new connections.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// TCP; the MSS is reduced to fit the host's MTU.
    pub tcp: Arc<gargalo_tcp::Config>,
    /// Congestion control, one for each subflow of a Multipath TCP connection.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Offer and accept Multipath TCP (RFC 8684); with a peer or a path that does not support it the connection is
    /// plain TCP. `None`: plain TCP only.
    pub mptcp: Option<Arc<MptcpOptions>>,
    /// TCP Fast Open (RFC 7413), without Multipath TCP. A listener grants cookies and accepts data in the SYN of
    /// those who show them. A connection requests a cookie, or shows the one that the remote address granted
    /// before; then its SYN carries what is written before [`Host::poll_transmit`](crate::Host::poll_transmit).
    pub fast_open: bool,
    /// Differentiated services codepoint of the packets, 0 to 63 (RFC 2474).
    pub dscp: u8,
}

impl SocketOptions {
    /// Options of plain TCP: without Multipath TCP and Fast Open, codepoint 0.
    pub fn new(tcp: Arc<gargalo_tcp::Config>, congestion: Arc<dyn ControllerFactory>) -> Self {
        Self {
            tcp,
            congestion,
            mptcp: None,
            fast_open: false,
            dscp: 0,
        }
    }
}

/// The configuration of new Multipath TCP connections, in addition to [`SocketOptions`].
#[derive(Clone, Debug, Default)]
pub struct MptcpOptions {
    /// The connection; [`SocketOptions::tcp`] replaces its `tcp`.
    pub config: gargalo_mptcp::Config,
    /// The addresses of the host that subflows may use; none: all. Subflows have the MSS that fits the
    /// family with the longer header among them.
    pub addresses: Vec<IpAddr>,
    /// Addresses whose subflows are backups.
    pub backups: Vec<IpAddr>,
    /// Names of the addresses of both hosts.
    pub names: gargalo_mptcp::Names,
}

//! What a user says about a host.

use std::net::IpAddr;
use std::sync::Arc;

use gargalo_cc::ControllerFactory;
use gargalo_units::{Bytes, Duration};

use crate::ConfigError;

/// Configuration of a host; the defaults are Linux's where it has them.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Our addresses, one at least; the first of a family is the source of connections of that family.
    pub addresses: Vec<IpAddr>,
    /// The longest datagram that the link below carries, in bytes: 576 to 65535, and at least 1280 if
    /// there is an IPv6 address (RFC 8200 §5).
    pub mtu: u32,
    /// Half-open connections per listener; what comes beyond is answered by cookies or not at all.
    pub backlog: usize,
    /// Connections per listener that are open and that [`HostEvent::Accepted`](crate::HostEvent) has not
    /// told yet; beyond it SYNs are dropped.
    pub accept_queue: usize,
    /// When SYNs are answered by cookies (RFC 4987 §3.6).
    pub syn_cookies: SynCookies,
    /// Connections in TIME-WAIT; beyond it the oldest is forgotten.
    pub most_in_time_wait: usize,
    /// How long a connection that the application has released may wait for the peer to take more of what
    /// was written, or to close.
    pub orphan_timeout: Duration,
    /// Local ports for connections without one: first and last.
    pub ephemeral_ports: (u16, u16),
    /// Payload bytes, with 256 bytes for each datagram, that wait for the application of a UDP socket,
    /// and as many that wait to be sent.
    pub udp_buffer: Bytes,
    /// ICMP messages a second, errors and echo replies counted apart, with bursts of a twentieth
    /// (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)).
    pub icmp_rate: u32,
    /// Datagrams that are no connection's (resets, cookies, ICMP) and wait to be sent; more are dropped.
    pub most_outgoing: usize,
    /// Time to live and hop limit.
    pub ttl: u8,
    /// Shorten the segments of a connection after three timeouts in a row, in case the path drops
    /// long ones without telling (RFC 4821 §7.7; Linux: `tcp_mtu_probing=1`, whose default is 0 as
    /// well). They are not lengthened again.
    pub black_hole_detection: bool,
    /// The device computes TCP checksums: segments leave with the sum of the pseudo header in their place
    /// (what `VIRTIO_NET_HDR_F_NEEDS_CSUM` means). Off, unless the driver knows such a device.
    pub checksum_offload: bool,
    /// Makes sequence numbers, ports and hashes unpredictable; the same seed gives the same run.
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
            black_hole_detection: false,
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

    /// The least MTU that every path of a family has: what path MTU discovery never goes below (IPv4:
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

/// An address that a host on a network can have (RFC 1122 §3.2.1.3).
pub(crate) fn is_unicast(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(a) if a.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback() || is_broadcast)
}

/// When SYNs are answered by cookies instead of remembering them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookies {
    /// Never: SYNs beyond the backlog are dropped.
    Off,
    /// When the backlog is full.
    #[default]
    WhenFull,
    /// Always.
    Always,
}

/// What connections are made with.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// TCP; the MSS is lowered to what the host's MTU carries.
    pub tcp: Arc<gargalo_tcp::Config>,
    /// Congestion control, one for each subflow of a Multipath TCP connection.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Offer and accept Multipath TCP (RFC 8684); with a peer or a path without it the same connection
    /// is plain TCP. `None`: plain TCP only.
    pub mptcp: Option<Arc<MptcpOptions>>,
}

impl SocketOptions {
    /// Plain TCP.
    pub fn new(tcp: Arc<gargalo_tcp::Config>, congestion: Arc<dyn ControllerFactory>) -> Self {
        Self {
            tcp,
            congestion,
            mptcp: None,
        }
    }
}

/// What Multipath TCP connections are made with beside [`SocketOptions`].
#[derive(Clone, Debug, Default)]
pub struct MptcpOptions {
    /// The connection; [`SocketOptions::tcp`] stands in for its `tcp`.
    pub config: gargalo_mptcp::Config,
    /// The addresses of the host that subflows may use; none: all. Subflows have the MSS that fits the
    /// family with the longer header among them.
    pub addresses: Vec<IpAddr>,
    /// Those whose subflows are backups.
    pub backups: Vec<IpAddr>,
    /// What people call the addresses of both hosts.
    pub names: gargalo_mptcp::Names,
}

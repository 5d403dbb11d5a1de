//! Addresses of hosts and ports of flows.

use std::net::Ipv4Addr;

use gargalo_flow::NodeId;

/// The server port of every connection over TCP, and of UDP flows.
pub(crate) const SERVER_PORT: u16 = 5001;

/// The address of a host: 10.0.0.1 for the first node.
pub(crate) fn address(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001u32.wrapping_add(node & 0x00ff_ffff))
}

/// The address of an interface of a host: 10.0.0.0/16 for the first, 10.1.0.0/16 for the second and so on.
pub(crate) fn interface_address(node: NodeId, interface: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(address(node)).wrapping_add(u32::from(interface) << 16))
}

/// The ephemeral port of a flow (RFC 6335 §6).
pub(crate) fn client_port(id: u64) -> u16 {
    49_152 + (id % 16_384) as u16
}

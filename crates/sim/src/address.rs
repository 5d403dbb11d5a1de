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

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6335 §6: dynamic ports are 49152 to 65535; flows share one only if as many are between them.
    #[test]
    fn clients_have_dynamic_ports_which_repeat_as_late_as_possible() {
        let first: Vec<u16> = (0..16_384).map(client_port).collect();
        assert!(first.iter().copied().eq(49_152..=65_535));
        assert_eq!(client_port(16_384), 49_152);
        assert_eq!(client_port(u64::MAX), 65_535);
    }

    #[test]
    fn nodes_and_their_interfaces_have_addresses_of_their_own() {
        let text = |node, interface| interface_address(node, interface).to_string();
        assert_eq!(
            [text(0, 0), text(0, 2), text(255, 0)],
            ["10.0.0.1", "10.2.0.1", "10.0.1.0"]
        );
    }
}

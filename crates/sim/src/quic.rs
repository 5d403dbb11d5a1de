//! One end of a QUIC flow, and the addresses of its paths.

use std::net::{SocketAddr, SocketAddrV4};

use gargalo_flow::{NodeId, QuicEnd, QuicPaths};

use crate::address::address;

/// One end of a QUIC flow.
#[derive(Debug)]
pub(crate) struct QuicSide {
    pub end: QuicEnd,
    /// Routes of its paths to the peer: several of a connection with multipath, or if the client moves to another path.
    pub routes: Vec<u32>,
    /// The first link of each route in both directions; empty for a single path.
    pub links: Vec<(usize, usize)>,
    /// State of the paths, if there are several.
    pub paths: QuicPaths,
}

/// A host's address on a path: 10.0.0.0/16 on the first, 10.1.0.0/16 on the second and so on.
pub(crate) fn local(node: NodeId, port: u16, path: usize) -> SocketAddrV4 {
    let address = u32::from(address(node)).wrapping_add((path as u32) << 16);
    SocketAddrV4::new(address.into(), port)
}

/// The path of an address; see [`local`].
pub(crate) fn path(address: SocketAddrV4) -> usize {
    usize::from(address.ip().octets()[1] & 0x7f)
}

/// The address, if it is of IPv4, as all are here.
pub(crate) fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(a) => Some(a),
        SocketAddr::V6(_) => None,
    }
}

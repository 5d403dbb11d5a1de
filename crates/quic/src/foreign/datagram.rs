//! The datagrams of a foreign stack, in both directions.

use std::net::SocketAddr;

use bytes::BytesMut;
use gargalo_units::Ecn;

/// Where a datagram comes from and goes to.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The address of this end.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// ECN field of the IP packet that carries it.
    pub ecn: Ecn,
}

/// A datagram that a stack sends.
#[derive(Debug)]
pub struct Outgoing {
    /// UDP payload of the datagram.
    pub payload: BytesMut,
    /// Address and port that it leaves from, as the stack knows them; `None`: it does not say.
    pub local: Option<SocketAddr>,
    /// Destination address and port.
    pub remote: SocketAddr,
    /// ECN field of the IP packet that carries it.
    pub ecn: Ecn,
}

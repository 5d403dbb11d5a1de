//! Packets between hosts.

use std::net::SocketAddrV4;

use bytes::BytesMut;
use gargalo_units::Instant;
use gargalo_wire::tcp::Segment;

/// The reference that a link carries for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// The slot of its content.
    pub id: u32,
    /// Its hop on the route.
    pub hop: u32,
}

/// The content of a packet and its destination.
#[derive(Clone, Debug)]
pub struct Body {
    /// Slot of the flow.
    pub flow: u32,
    /// Distinguishes flows that used the same slot one after another.
    pub generation: u32,
    /// The receiving side: 0 is the flow's `from`.
    pub side: u8,
    /// The interfaces of the sending and the receiving host that have its addresses; 0 is the usual one.
    pub interfaces: (u8, u8),
    /// Its route, by the first hop.
    pub route: u32,
    /// The transport's part of the packet.
    pub content: Content,
}

/// The content of a packet.
#[derive(Clone, Debug)]
pub enum Content {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Datagram),
    /// A UDP datagram of QUIC.
    Quic(QuicDatagram),
}

/// A UDP datagram of QUIC, with its real bytes.
#[derive(Clone, Debug)]
pub struct QuicDatagram {
    /// UDP payload of the datagram.
    pub payload: BytesMut,
    /// Source address and port.
    pub from: SocketAddrV4,
    /// Destination address and port.
    pub to: SocketAddrV4,
}

/// A UDP datagram of a traffic generator.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Size of the payload, which has no content.
    pub bytes: u32,
    /// Its sequence number in its direction, from 0.
    pub number: u64,
    /// When the application sent it.
    pub sent_at: Instant,
    /// Source and destination port.
    pub ports: (u16, u16),
}

/// Header bytes of IPv4 without options.
pub const IPV4_HEADER: u32 = 20;
/// Header bytes of UDP.
pub const UDP_HEADER: u32 = 8;

impl Content {
    /// Size of the IPv4 datagram in bytes.
    #[inline]
    pub fn ip_len(&self) -> u32 {
        IPV4_HEADER
            + match self {
                Self::Tcp(s) => s.wire_len(),
                Self::Udp(d) => UDP_HEADER + d.bytes,
                Self::Quic(d) => UDP_HEADER + d.payload.len() as u32,
            }
    }
}

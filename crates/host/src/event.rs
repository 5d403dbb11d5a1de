use std::net::SocketAddr;

use gargalo_tcp::Error;

/// A connection; never reused within a host. Later connections compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) serial: u64,
    pub(crate) slot: u32,
}

/// A listener; never reused within a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u64);

/// A UDP socket; never reused within a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpId(pub(crate) u64);

/// Events for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostEvent {
    /// A listener has a new connection, which is open.
    Accepted {
        /// The listener that accepted the connection.
        listener: ListenerId,
        /// The connection, now owned by the application, which must release it.
        connection: ConnectionId,
        /// Address and port of the peer.
        remote: SocketAddr,
    },
    /// A connection of [`Host::connect`](crate::Host::connect) is open.
    Connected(ConnectionId),
    /// New data is ready to be read.
    Readable(ConnectionId),
    /// There is room in the send buffer again after a write was not accepted in full.
    Writable(ConnectionId),
    /// The peer has closed its direction: no data follows the readable data.
    PeerClosed(ConnectionId),
    /// The connection has ended, in order or not. Received data can still be read; the application releases the
    /// connection afterwards.
    Closed {
        /// The connection that has ended.
        id: ConnectionId,
        /// Why, if not in order.
        error: Option<Error>,
    },
    /// Subflows of a Multipath TCP connection were added or removed, or it fell back to TCP. If too many events are
    /// pending, later ones are dropped: [`Host::multipath`](crate::Host::multipath) has the current state.
    Multipath {
        /// The connection whose subflows or mode changed.
        id: ConnectionId,
        /// The subflow that was added or removed, or the fallback.
        news: gargalo_mptcp::Event,
    },
    /// A datagram can be received, after there was none.
    UdpReadable(UdpId),
    /// The remote host reports that the port is unreachable (RFC 1122 §4.1.3.3).
    UdpUnreachable {
        /// The socket from which the datagram was sent.
        socket: UdpId,
        /// The address the datagram was sent to.
        remote: SocketAddr,
    },
}

/// Pending events of a connection: a set, as repeated events carry no more information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting(u8);

impl Waiting {
    pub(crate) const CONNECTED: Self = Self(1);
    pub(crate) const READABLE: Self = Self(2);
    pub(crate) const WRITABLE: Self = Self(4);
    pub(crate) const PEER_CLOSED: Self = Self(8);
    pub(crate) const CLOSED: Self = Self(16);

    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Removes the first event in the order of a connection's life.
    pub(crate) fn pop(&mut self) -> Option<Self> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0 & self.0.wrapping_neg();
        self.0 &= !bit;
        Some(Self(bit))
    }
}

impl Waiting {
    /// The stream event for an event of a Multipath TCP connection, if there is one.
    pub(crate) fn of(event: &gargalo_mptcp::Event) -> Option<Self> {
        event.stream().map(Self::from)
    }
}

impl From<gargalo_tcp::Event> for Waiting {
    fn from(event: gargalo_tcp::Event) -> Self {
        use gargalo_tcp::Event;
        match event {
            Event::Connected => Self::CONNECTED,
            Event::Readable => Self::READABLE,
            Event::Writable => Self::WRITABLE,
            Event::PeerClosed => Self::PEER_CLOSED,
            Event::Closed | Event::Reset | Event::TimedOut => Self::CLOSED,
        }
    }
}

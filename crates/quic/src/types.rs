//! Input and output types of an endpoint.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use gargalo_units::{Bytes as Size, Duration, Ecn, Instant, Rate, SenderCounters};
use rand_pcg::Pcg64;

/// Length of connection IDs, including the one that a client chooses for its server.
pub(crate) const CID: usize = 8;

/// Number of a stream (RFC 9000 §2.1).
pub type StreamId = u64;

/// The initial values of an endpoint.
pub struct Init {
    /// Time at which the endpoint is created.
    pub now: Instant,
    /// Its own address and port.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// The endpoint's random stream.
    pub rng: Pcg64,
    /// Collect TLS secrets for [`Endpoint::poll_secret`](crate::Endpoint::poll_secret).
    pub secrets: bool,
    /// The flow sends datagrams (RFC 9221).
    pub datagrams: bool,
    /// Where the qlog trace goes (JSON-SEQ), and its title.
    pub qlog: Option<(Box<dyn std::io::Write + Send + Sync>, String)>,
}

impl fmt::Debug for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Init")
            .field("now", &self.now)
            .field("local", &self.local)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

/// What a flow uses of its connection besides bidirectional streams that are read to their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Datagrams (RFC 9221).
    pub datagrams: bool,
    /// Streams that are cancelled: STOP_SENDING and RESET_STREAM (RFC 9000 §3.5).
    pub cancel: bool,
    /// Streams of different urgency (RFC 9218 §4.1).
    pub urgency: bool,
}

/// The direction of the data on a stream (RFC 9000 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From both ends.
    Bidirectional,
    /// From the end that opens the stream.
    Unidirectional,
}

/// What became of a datagram that was offered (RFC 9221).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It will be sent, once.
    Taken,
    /// There is no room for it now.
    Later,
    /// It does not fit into a packet, or the peer takes none.
    Refused,
}

/// A UDP datagram to send.
#[derive(Debug)]
pub struct Datagram {
    /// UDP payload of the datagram.
    pub payload: BytesMut,
    /// ECN field of the IP packet that carries it.
    pub ecn: Ecn,
    /// Source address and port.
    pub local: SocketAddr,
    /// Destination address and port.
    pub remote: SocketAddr,
}

/// Events for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Data may be sent: the handshake is complete, or 0-RTT keys are available (`early`).
    Connected {
        /// Before the handshake is complete.
        early: bool,
    },
    /// The handshake is complete; `zero_rtt` says whether early data was accepted, if any was offered.
    /// Rejected early data is sent again automatically.
    HandshakeComplete {
        /// `None`: no early data was offered.
        zero_rtt: Option<bool>,
    },
    /// The peer does not want more of a stream (STOP_SENDING, RFC 9000 §3.5): it is to be reset.
    Stopped(StreamId),
    /// The connection has ended in order, by either side.
    Closed,
    /// The connection failed.
    Failed(String),
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// What the sender counted.
    pub sender: SenderCounters,
    /// Congestion Experienced marks on received packets.
    pub ce_marks: u64,
    /// UDP datagrams sent, of any kind.
    pub sent_datagrams: u64,
    /// UDP payload bytes sent.
    pub sent_datagram_bytes: u64,
}

/// The state of a path's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Congestion window, in bytes.
    pub cwnd: Size,
    /// Slow-start threshold; `None`: infinite or none.
    pub ssthresh: Option<Size>,
    /// Bytes in flight; `None`: the stack does not report them.
    pub in_flight: Option<Size>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Pacing rate; `None`: not paced.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery-rate sample; `None` with noq's own congestion controls.
    pub delivery_rate: Option<Rate>,
    /// One word for the controller's phase.
    pub phase: &'static str,
}

/// A path of a multipath connection, at one instant or at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSnapshot {
    /// Its identifier, the same at both ends (draft-ietf-quic-multipath); consecutive in the order of opening.
    pub id: u32,
    /// IP address of this end on the path.
    pub local: IpAddr,
    /// Address and port of the peer on the path.
    pub remote: SocketAddr,
    /// When it could carry data.
    pub opened: Instant,
    /// When it was abandoned; `None`: not before the end of the connection.
    pub closed: Option<Instant>,
    /// What its sender counted.
    pub counters: SenderCounters,
    /// Bytes of stream data received first on this path.
    pub received_bytes: u64,
    /// State of the path's sender.
    pub sender: Snapshot,
}

/// An event of the protocol, for the table of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One or two words: `loss`, `recovery`, `timeout`, `handshake`, `zero-rtt`, `path`, `mtu`, ….
    pub kind: &'static str,
    /// Further values of the event, as text.
    pub detail: String,
}

/// Data of a stream, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the stream.
    pub stream: StreamId,
    /// Content; may be empty if `end`.
    pub data: Bytes,
    /// This is the end of the stream.
    pub end: bool,
}

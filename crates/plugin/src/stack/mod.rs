//! QUIC implementations: the interface of `include/gargalo_stack.h`, and what a library written in Rust exports.
//!
//! A type that implements [`Stack`] is one end of one connection; [`export_stack!`](crate::export_stack) makes the
//! library's table of it. During a call the functions of [`host`] reach the host of that object. An implementation that
//! reads the system's clock itself gets virtual time with [`virtual_clock!`](crate::virtual_clock).

pub mod abi;
pub mod export;
pub mod host;
mod virtual_clock;

use std::net::SocketAddr;
use std::time::Duration;

/// Calendar time at the start of a run, since the Unix epoch: 1 January 2025, 00:00 UTC.
pub const CALENDAR_START: Duration = Duration::from_secs(1_735_689_600);

/// The application's error of streams that are cancelled: H3_REQUEST_CANCELLED (RFC 9114 §8.1).
pub const CANCELLED: u32 = 0x10c;

/// What becomes of a datagram that is offered (RFC 9221).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It will be sent, once.
    Taken,
    /// There is no room for it now: the host offers it again, or discards it.
    Later,
    /// It does not fit into a packet, or the peer takes none.
    Refused,
}

/// A library's description of itself.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// `stack = "name"` in scenarios.
    pub name: &'static str,
    /// Version of the implementation inside.
    pub version: &'static str,
    /// Bits of [`abi::feature`].
    pub features: u32,
    /// Names of its congestion controls, the default first.
    pub congestion: &'static [&'static str],
    /// What each of them follows, in the same order: of BBR `bbr` (draft-cardwell-iccrg-bbr-congestion-control-00,
    /// version 1), `bbr2` (the same draft, -02) or `bbr3` (draft-ietf-ccwg-bbr); empty where the library does not say.
    /// An empty list: it says it of none.
    pub specifications: &'static [&'static str],
    /// Whether [`Stack::unacknowledged`] returns a value.
    pub tells_unacknowledged: bool,
}

/// One end of one connection. The header states when the host makes each call.
///
/// `now` is the time since the start of the run. A panic in any function ends the connection as failed.
pub trait Stack: Sized + Send + 'static {
    /// The library's description of itself.
    const ABOUT: About;

    /// Called once in a process, before any connection is made: for what the implementation does once in a
    /// process, which must not draw from the random numbers of one connection.
    fn prepare() {}

    /// Creates one end; a client connects.
    ///
    /// # Errors
    /// A sentence: why it is not possible.
    fn create(config: &Config<'_>, now: Duration) -> Result<Self, String>;

    /// A datagram has arrived; it may be changed in place.
    fn datagram_in(&mut self, now: Duration, path: &Path, data: &mut [u8]);

    /// Writes the next datagram that may be sent now.
    fn datagram_out(&mut self, now: Duration, out: &mut [u8]) -> Option<(usize, Path)>;

    /// When [`Stack::timeout`] must be called, pacing included.
    fn next_timer(&mut self) -> Option<Duration>;

    /// The time of a timer has come.
    fn timeout(&mut self, now: Duration);

    /// Opens a bidirectional stream; `None` if the peer's limit is reached.
    fn open_stream(&mut self, now: Duration) -> Option<u64>;

    /// Takes stream data and returns how many bytes; the host offers the rest again. `fin`: the stream ends here; there
    /// is no data then.
    fn write(&mut self, now: Duration, stream: u64, data: &[u8], fin: bool) -> usize;

    /// Opens a unidirectional stream; `None` if the peer's limit is reached. Only called with
    /// [`abi::feature::UNIDIRECTIONAL`].
    fn open_unidirectional_stream(&mut self, _now: Duration) -> Option<u64> {
        None
    }

    /// Takes a datagram that is sent once, in one packet (RFC 9221). Only called with [`abi::feature::DATAGRAMS`].
    fn send_datagram(&mut self, _now: Duration, _data: &[u8]) -> Offered {
        Offered::Refused
    }

    /// Ends a stream at once, with the application's error [`CANCELLED`]; it may have ended. Only called with
    /// [`abi::feature::CANCEL`], as the next.
    fn reset_stream(&mut self, _now: Duration, _stream: u64) {}

    /// Asks the peer to end a stream, with the same error.
    fn stop_sending(&mut self, _now: Duration, _stream: u64) {}

    /// The urgency of a stream, from 0, which goes first, to 7 (RFC 9218 §4.1). Only called with
    /// [`abi::feature::URGENCY`].
    fn set_urgency(&mut self, _now: Duration, _stream: u64, _urgency: u8) {}

    /// Begins to send with the next keys; false: that is not allowed yet (RFC 9001 §6.1). Only called with
    /// [`abi::feature::KEY_UPDATE`].
    fn update_keys(&mut self, _now: Duration) -> bool {
        false
    }

    /// Client: opens a further path as soon as the peer allows it. Only called with [`abi::feature::MULTIPATH`].
    fn open_path(&mut self, _now: Duration, _local: SocketAddr, _remote: SocketAddr) {}

    /// The paths that can or could carry data, in the order of opening. Only called with [`abi::feature::MULTIPATH`].
    fn paths(&mut self) -> Vec<StackPath> {
        Vec::new()
    }

    /// The network reports that a datagram that was sent from `local` to `remote` was larger than the MTU of a link
    /// (RFC 1191, RFC 8201); `mtu` is in bytes with the IP header. Anybody can forge such a report (RFC 9000 §14.2.1).
    fn packet_too_big(
        &mut self,
        _now: Duration,
        _local: SocketAddr,
        _remote: SocketAddr,
        _mtu: u64,
    ) {
    }

    /// Stream data and ends of streams that are written and not acknowledged.
    fn unacknowledged(&mut self) -> Option<u64> {
        None
    }

    /// The local address has changed; only called with [`abi::feature::MIGRATION`].
    fn migrate(&mut self, _now: Duration, _local: SocketAddr) {}

    /// Closes the connection in order.
    fn close(&mut self, now: Duration);

    /// Whether the connection has ended and nothing more will be sent.
    fn is_over(&mut self) -> bool;

    /// Counters and state of the sender.
    fn stats(&mut self) -> Stats;
}

/// Where a datagram comes from and goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The address at this end.
    pub local: SocketAddr,
    /// The address at the other end.
    pub remote: SocketAddr,
    /// The two bits of the IP header (RFC 3168 §5).
    pub ecn: u8,
}

/// What a scenario requests of one end.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// The address at this end.
    pub local: SocketAddr,
    /// The address at the other end.
    pub remote: SocketAddr,
    /// One of [`About::congestion`].
    pub congestion: &'a str,
    /// For SNI and the certificate.
    pub server_name: &'a str,
    /// The only application protocol.
    pub alpn: &'a str,
    /// DER, self-signed; Ed25519, or ECDSA with P-256 if either end has [`abi::feature::ECDSA`]: a client trusts
    /// exactly this one.
    pub certificate: &'a [u8],
    /// DER, PKCS #8; empty for a client.
    pub private_key: &'a [u8],
    /// 64 secret bytes: the same for all connections of a server until it restarts.
    pub ticket_key: &'a [u8],
    /// Of a client: what it gave to [`host::session`] in an earlier connection, or empty.
    pub session: &'a [u8],
    /// Congestion window, bytes.
    pub initial_window: u64,
    /// Receive window of a stream, bytes.
    pub stream_window: u64,
    /// Receive window of the connection, bytes.
    pub connection_window: u64,
    /// Capacity of the send buffer, bytes.
    pub send_window: u64,
    /// Idle timeout of the connection (RFC 9000 §10.1).
    pub idle_timeout: Duration,
    /// Round-trip time before the first sample (RFC 9002 §6.2.2).
    pub initial_rtt: Duration,
    /// Streams that the peer may have open at once.
    pub max_streams: u64,
    /// UDP payload of a full packet, bytes.
    pub datagram_size: u16,
    /// Greatest that discovery may find; equal to `datagram_size`: no discovery.
    pub max_datagram_size: u16,
    /// Whether this end is the server.
    pub is_server: bool,
    /// Client: send early data if there is a session; server: accept it.
    pub early_data: bool,
    /// Server: answer the first Initial with a Retry.
    pub retry: bool,
    /// Use explicit congestion notification.
    pub ecn: bool,
    /// Pace packets; `false` needs [`feature::NO_PACING`](abi::feature::NO_PACING).
    pub pacing: bool,
    /// Call [`host::qlog`]; without it, such calls are ignored.
    pub qlog: bool,
    /// Call [`host::secret`]; without it, such calls are ignored.
    pub secrets: bool,
    /// Call [`host::notice`]; without it, such calls are ignored.
    pub notices: bool,
    /// What the scenario has for this stack: an object of JSON, `{}` for nothing.
    pub options: &'a str,
    /// Unidirectional streams that the peer may have open at once; 0: the flow has none, and the peer may be told
    /// another limit.
    pub max_unidirectional_streams: u64,
    /// The largest DATAGRAM frame to accept, bytes (RFC 9221 §3); 0: no datagrams.
    pub max_datagram_frame: u32,
    /// Call [`host::packet`]; without it, such calls are ignored.
    pub packets: bool,
    /// Paths at once; 1: no multipath.
    pub max_paths: u64,
}

/// A path of a connection with several (draft-ietf-quic-multipath).
#[derive(Clone, Debug)]
pub struct StackPath {
    /// Its identifier, the same at both ends.
    pub id: u64,
    /// The address at this end.
    pub local: SocketAddr,
    /// The address at the other end.
    pub remote: SocketAddr,
    /// When it could carry data.
    pub opened: Duration,
    /// When it was abandoned.
    pub closed: Option<Duration>,
    /// Stream data that arrived first on this path, bytes.
    pub received_bytes: u64,
    /// Counters and state of its sender.
    pub sender: Stats,
}

/// Something that has happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What has happened.
    pub event: PacketEvent,
    /// Its type.
    pub kind: PacketKind,
    /// Its number.
    pub number: u64,
    /// Its length with header and tag, bytes; 0: not known.
    pub size: u32,
    /// It elicits an acknowledgement (RFC 9002 §2).
    pub ack_eliciting: bool,
}

/// What happens to packets, with the numbers of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// It is sent.
    Sent = 1,
    /// It has arrived.
    Received = 2,
    /// One that was sent is acknowledged.
    Acknowledged = 3,
    /// One that was sent is declared lost.
    Lost = 4,
}

/// Types of packets (RFC 9000 §17), with the numbers of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Initial.
    Initial = 0,
    /// 0-RTT.
    ZeroRtt = 1,
    /// Handshake.
    Handshake = 2,
    /// 1-RTT.
    OneRtt = 3,
}

/// Something that has happened to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Client: early data may be written.
    Early,
    /// The handshake is complete.
    Connected(EarlyData),
    /// The connection has ended in order.
    Closed,
    /// It has failed: why, with the words "timed out" if that is why.
    Failed(&'a str),
}

/// What became of early data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// None was offered.
    None,
    /// The server has accepted it.
    Accepted,
    /// The server has rejected it, and the implementation has discarded its streams: the host writes them again.
    Rejected,
    /// The server has rejected it, and the implementation sends it again by itself.
    Resent,
}

/// Counters and state of the sender; `None` where the implementation does not report them.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Ack-eliciting packets sent.
    pub sent_packets: Option<u64>,
    /// Stream data sent, retransmissions included.
    pub sent_bytes: Option<u64>,
    /// Packets with stream data that was sent before.
    pub retransmitted_packets: Option<u64>,
    /// Packets declared lost.
    pub lost_packets: Option<u64>,
    /// Probe timeouts of loss recovery (RFC 9002 §6.2).
    pub timeouts: Option<u64>,
    /// Losses found to be spurious.
    pub spurious: Option<u64>,
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Slow-start threshold, bytes; `None` also while it is infinite.
    pub ssthresh: Option<u64>,
    /// Bytes in flight.
    pub in_flight: Option<u64>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Bits per second.
    pub pacing_rate: Option<u64>,
    /// Bits per second.
    pub delivery_rate: Option<u64>,
    /// State of the congestion control in one word.
    pub phase: Option<String>,
}

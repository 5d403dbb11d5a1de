//! What both ends of a connection are told.

use std::fmt::Debug;
use std::sync::Arc;

use gargalo_cc as cc;
use gargalo_units::{Bytes, Duration};

/// How packets are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crypto {
    /// TLS 1.3 (RFC 9001).
    Tls,
    /// The handshake of TLS 1.3 and packets of the same sizes, whose content is not encrypted: the same
    /// packets at the same times, for less work.
    Null,
}

/// When the peer acknowledges (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Ack-eliciting packets that may wait for an acknowledgement.
    pub threshold: u32,
    /// How long they may wait; `None`: as the peer says.
    pub max_delay: Option<Duration>,
    /// Gap in packet numbers that is acknowledged at once; 0: never.
    pub reordering: u32,
}

/// What both ends of a connection are told.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How packets are protected.
    pub crypto: Crypto,
    /// UDP payload of a full packet at the start, 1200 to 65527 bytes.
    pub datagram_size: u16,
    /// Discover larger ones up to this (RFC 8899); `None`: no discovery.
    pub mtu_discovery: Option<u16>,
    /// Initial congestion window, in bytes of UDP payload.
    pub initial_window: Bytes,
    /// The congestion window never counts for more than this.
    pub max_window: Option<Bytes>,
    /// Spread packets over the round trip; `false`: only at a rate that the congestion control demands.
    pub pacing: bool,
    /// Asks the peer to acknowledge less often; `None`: each second packet (RFC 9000 §13.2.2).
    pub ack_frequency: Option<AckFrequency>,
    /// What a peer may send on a stream ahead of its reader.
    pub stream_window: u64,
    /// The same for the whole connection.
    pub connection_window: u64,
    /// What the application may write ahead of acknowledgements.
    pub send_window: u64,
    /// Packets later than a lost one (RFC 9002 §6.1.1).
    pub packet_threshold: u32,
    /// Share of a round-trip time after which a packet is lost (RFC 9002 §6.1.2).
    pub time_threshold: f32,
    /// Assumed before the first sample (RFC 9002 §6.2.2).
    pub initial_rtt: Duration,
    /// A silent connection is dropped after this; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Explicit congestion notification.
    pub ecn: bool,
    /// Accepts a client that has moved.
    pub migration: bool,
    /// Most paths at once (draft-ietf-quic-multipath); 1: no multipath.
    pub paths: u32,
    /// Streams share the connection in turns, not one after another.
    pub fair_streams: bool,
}

impl Default for Config {
    /// RFC 9000 and RFC 9002, with windows that do not limit.
    fn default() -> Self {
        Self {
            crypto: Crypto::Tls,
            datagram_size: 1200,
            mtu_discovery: Some(1452),
            initial_window: Bytes::new(12_000),
            max_window: None,
            pacing: true,
            ack_frequency: None,
            stream_window: 64 << 20,
            connection_window: 64 << 20,
            send_window: 64 << 20,
            packet_threshold: 3,
            time_threshold: 9.0 / 8.0,
            initial_rtt: Duration::from_millis(333),
            idle_timeout: Some(Duration::from_secs(30)),
            ecn: false,
            migration: true,
            paths: 1,
            fair_streams: true,
        }
    }
}

/// Makes a path's congestion control; the argument has the datagram size as `mss`.
pub type Build = Arc<dyn Fn(cc::Init) -> Result<Box<dyn cc::Controller>, String> + Send + Sync>;

/// Who controls congestion.
#[derive(Clone)]
pub enum Congestion {
    /// One of ours.
    Ours(Build),
    /// noq's own CUBIC.
    NoqCubic,
    /// noq's own NewReno (RFC 9002).
    NoqNewReno,
    /// noq's own BBRv3.
    NoqBbr3,
}

impl Debug for Congestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ours(_) => "Ours",
            Self::NoqCubic => "NoqCubic",
            Self::NoqNewReno => "NoqNewReno",
            Self::NoqBbr3 => "NoqBbr3",
        })
    }
}

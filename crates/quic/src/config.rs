//! What both ends of a connection are told.

use std::fmt::Debug;
use std::sync::Arc;

use gargalo_cc as cc;
use gargalo_units::{Bytes, Duration};

use crate::Error;

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
    /// Streams that the peer may have open at once.
    pub max_streams: u32,
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
            max_streams: 100,
        }
    }
}

/// Least and largest UDP payload (RFC 9000 §14, and IPv6's largest).
const DATAGRAM: std::ops::RangeInclusive<u16> = 1200..=65_527;

impl Config {
    /// Refuses what noq would silently change or cannot do.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let size = self.datagram_size;
        let refuse = |why: String| Err(Error::Option(why));
        if !DATAGRAM.contains(&size) {
            return refuse(format!(
                "a datagram size of {size} bytes is impossible; QUIC needs 1200 and UDP allows 65527"
            ));
        }
        if let Some(most) = self.mtu_discovery
            && (most < size || !DATAGRAM.contains(&most))
        {
            return refuse(format!(
                "MTU discovery up to {most} bytes is impossible; give the datagram size of {size} or \
                 more, at most 65527"
            ));
        }
        if self.initial_window.get() < u64::from(size) {
            return refuse(format!(
                "an initial window of {} bytes holds no datagram of {size} bytes; give one or more",
                self.initial_window.get()
            ));
        }
        if self.packet_threshold == 0 {
            return refuse("a packet threshold of 0 would lose every packet; give 3".to_owned());
        }
        if !(self.time_threshold.is_finite() && self.time_threshold >= 1.0) {
            return refuse(format!(
                "a time threshold of {} round trips is impossible; give 1 or more, as 1.125",
                self.time_threshold
            ));
        }
        if self.initial_rtt.is_zero() {
            return refuse("an initial round-trip time of 0 is impossible; give 333 ms".to_owned());
        }
        if self.idle_timeout.is_some_and(|t| t.as_millis() == 0) {
            return refuse(
                "an idle timeout below 1 ms cannot be told to the peer; give more or none"
                    .to_owned(),
            );
        }
        for (name, window) in [
            ("stream window", self.stream_window),
            ("connection window", self.connection_window),
            ("send window", self.send_window),
        ] {
            if window == 0 {
                return refuse(format!("a {name} of 0 lets nothing through; give bytes"));
            }
        }
        if self.paths == 0 {
            return refuse("a connection needs at least 1 path".to_owned());
        }
        Ok(())
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

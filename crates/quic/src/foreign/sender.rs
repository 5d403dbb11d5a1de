//! What a foreign stack reports of its sender.

use std::net::SocketAddr;

use gargalo_units::{Bytes as Size, Duration, Instant, Rate, SenderCounters};

use crate::Snapshot;

/// A path of a connection with several, as the stack tells it.
#[derive(Clone, Copy, Debug)]
pub struct PathState {
    /// Its identifier, the same at both ends.
    pub id: u32,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the peer.
    pub remote: SocketAddr,
    /// When it could carry data.
    pub opened: Instant,
    /// When it was abandoned.
    pub closed: Option<Instant>,
    /// Stream data that arrived first on it.
    pub received_bytes: u64,
    /// Its sender.
    pub sender: Sender,
}

/// Counters and state of a sender; `None` where the stack does not report it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    /// What it counted.
    pub counters: SenderCounters,
    /// Congestion window, in bytes.
    pub cwnd: Option<Size>,
    /// Slow-start threshold; `None` also while it is infinite.
    pub ssthresh: Option<Size>,
    /// Bytes in flight.
    pub in_flight: Option<Size>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Pacing rate at present.
    pub pacing_rate: Option<Rate>,
    /// Latest estimate of the delivery rate.
    pub delivery_rate: Option<Rate>,
    /// State of the congestion control in one word.
    pub phase: &'static str,
}

impl From<Sender> for Snapshot {
    fn from(s: Sender) -> Self {
        Self {
            cwnd: s.cwnd.unwrap_or(Size::ZERO),
            ssthresh: s.ssthresh,
            in_flight: s.in_flight,
            srtt: s.srtt,
            pacing_rate: s.pacing_rate,
            delivery_rate: s.delivery_rate,
            phase: s.phase,
        }
    }
}

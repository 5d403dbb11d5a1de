//! What a connection has done and when, as `TCP_INFO` of Linux counts it.

use gargalo_units::{Bytes, Duration, Instant};

use super::Endpoint;

/// Counters and times of a connection, with the meaning that they have in Linux's `TCP_INFO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// How long anything was unsent or unacknowledged.
    pub busy: Duration,
    /// Of that, how long the peer's window was the limit.
    pub window_limited: Duration,
    /// Of that, how long the send buffer was: full, all of it sent, and the congestion window larger.
    pub buffer_limited: Duration,
    /// Time since data was sent, or since the connection was opened.
    pub since_sent: Duration,
    /// Time since data was received, or since the connection was opened.
    pub since_received: Duration,
    /// Time since a segment of the peer was received.
    pub since_heard: Duration,
    /// Segments with data or FIN that have arrived, SYN not counted.
    pub delivered_packets: u64,
    /// Of these, those that were acknowledged with an ECN echo.
    pub delivered_ce_packets: u64,
    /// Bytes sent again.
    pub retransmitted_bytes: u64,
    /// Segments of which the peer reported that they came twice (D-SACK).
    pub dsack_packets: u64,
    /// Acknowledgements that showed reordering.
    pub reorderings: u64,
    /// Segments with data that were received, duplicates included.
    pub received_data_segments: u64,
    /// The application limited the latest delivery rate.
    pub app_limited: bool,
    /// The most bytes that the application has read in a round trip, which the receive window follows; zero without
    /// automatic tuning.
    pub receive_space: Bytes,
    /// Payload of a full segment that the MSS option announces to the peer, less timestamps if agreed, in bytes.
    pub announced_mss: u32,
}

impl Endpoint {
    /// What the connection has done until `now`; zero before it is open.
    pub fn activity(&self, now: Instant) -> Activity {
        let since = |at: Instant| now.saturating_since(at);
        let announced = self.config.announced_mss();
        let options = if self.timestamps.is_enabled() { 12 } else { 0 };
        let sender = self.sender.as_ref();
        Activity {
            since_received: since(self.timers.data),
            since_heard: since(self.timers.heard),
            received_data_segments: self.counts.data_received,
            receive_space: Bytes::new(self.receiver.space()),
            announced_mss: u32::from(announced.saturating_sub(options)),
            ..sender.map_or_else(Activity::default, |s| s.activity(now))
        }
    }
}

use gargalo_units::{Bytes, Duration, Rate, SenderCounters};

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// What its sender counted.
    pub sender: SenderCounters,
    /// Segments of any kind sent.
    pub sent_segments: u64,
    /// Segments of any kind received.
    pub received_segments: u64,
    /// Data segments received that were duplicates as a whole.
    pub duplicate_segments: u64,
    /// Congestion Experienced marks on received data.
    pub ce_marks: u64,
    /// Challenge acknowledgements sent (RFC 5961).
    pub challenges: u64,
}

/// What a connection knows beside [`Snapshot`]: for diagnosis, as it is found by examining all segments in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The window was reduced because of an ECN echo, or of a loss that a tail loss probe repaired, and the reduction
    /// has not ended.
    pub reducing: bool,
    /// Segments in flight that were acknowledged selectively; without SACK as many as duplicate acknowledgements say.
    pub sacked: u32,
    /// Segments marked lost that no acknowledgement has covered yet, retransmitted since or not.
    pub lost: u32,
    /// Retransmissions of lost segments in flight, without probes.
    pub resent: u32,
    /// Segments that must be acknowledged above a hole before it counts as lost.
    pub dup_thresh: u32,
    /// Timeouts in a row.
    pub timeouts: u32,
    /// Doublings of the retransmission timeout, or of the interval of zero-window probes.
    pub backoff: u32,
    /// Zero-window probes without an answer.
    pub probes: u32,
    /// Window scale shifts of the windows we send and of those we receive, if agreed (RFC 7323 §2).
    pub scaling: Option<(u8, u8)>,
    /// Selective acknowledgements were agreed (RFC 2018 §2).
    pub sack: bool,
    /// Timestamps were agreed (RFC 7323 §3).
    pub timestamps: bool,
    /// Payload of a full segment of the peer, as estimated for delayed acknowledgements, in bytes.
    pub received_mss: u32,
    /// Bytes of ours that were acknowledged, without SYN and FIN.
    pub acked_bytes: u64,
    /// Bytes received in order, without SYN and FIN.
    pub received_bytes: u64,
}

/// The state of a connection's sender at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Congestion window of the congestion control, also while PRR (RFC 9937) governs what is sent.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None`: infinite or none.
    pub ssthresh: Option<Bytes>,
    /// In slow start: the window about doubles every round trip.
    pub in_slow_start: bool,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Option<Duration>,
    /// Minimum round-trip time.
    pub min_rtt: Option<Duration>,
    /// Latest round-trip sample.
    pub latest_rtt: Option<Duration>,
    /// Retransmission timeout with its backoff.
    pub rto: Duration,
    /// Pacing rate; `None`: not paced.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery-rate sample.
    pub delivery_rate: Option<Rate>,
    /// Bytes delivered so far.
    pub delivered: Bytes,
    /// One word for the controller's phase.
    pub phase: &'static str,
}

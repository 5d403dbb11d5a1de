use gargalo_units::{Bytes, Duration, Instant};

/// The handshake is complete.
///
/// Its round trip, if it was measured, is in the [`Path`](crate::Path) of the same call.
#[derive(Clone, Copy, Debug)]
pub struct Established {
    /// The time at which the handshake was completed.
    pub now: Instant,
    /// The initial window: smaller than that of [`Init`](crate::Init) if packets of the handshake were lost, and other
    /// if the two ends agreed on other segments.
    pub window: Bytes,
}

/// A packet is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The time of the transmission.
    pub now: Instant,
    /// Payload of the segment; for QUIC the size of the packet.
    pub bytes: Bytes,
    /// In flight before this packet.
    pub in_flight: Bytes,
    /// The sender has less to send than the window allows.
    pub app_limited: bool,
    /// It is a retransmission.
    pub retransmission: bool,
    /// Set when nothing was in flight: time since the last transmission (RFC 5681 §4.1).
    pub idle: Option<Idle>,
}

/// The path was idle before this transmission.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// Time since the last packet was sent.
    pub duration: Duration,
    /// The current retransmission timeout.
    pub rto: Duration,
    /// The restart window, min(initial window, cwnd), if the transport is configured to restart
    /// after idle; `None` otherwise.
    pub restart_window: Option<Bytes>,
    /// [`Sent::app_limited`] of the last packet before.
    pub was_app_limited: bool,
}

/// One incoming acknowledgement that delivered something new (or carried an RTT sample).
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// The time at which the acknowledgement was received.
    pub now: Instant,
    /// Newly delivered: cumulatively and selectively acknowledged.
    pub bytes: Bytes,
    /// The bytes that a window may grow for: those acknowledged cumulatively (N of RFC 5681 §3.1). Zero if data was
    /// only reported selectively (RFC 5681 §3.2 step 1); unless a loss is detected, it counts when it is acknowledged
    /// cumulatively. For QUIC the same as `bytes`.
    pub acknowledged: Bytes,
    /// Of those, bytes acknowledged with a congestion echo: the marked bytes, if the receiver reports each mark
    /// (RFC 8257 §3.2).
    pub ce_bytes: Bytes,
    /// Round-trip sample of this acknowledgement.
    pub rtt: Option<Duration>,
    /// When the newest segment acknowledged here was sent.
    pub sent_at: Option<Instant>,
    /// In flight before this acknowledgement.
    pub in_flight_before: Bytes,
    /// In flight after this acknowledgement (and after loss marking).
    pub in_flight: Bytes,
    /// The window, not the application, limited sending during the last round trip.
    pub cwnd_limited: bool,
    /// The transport is in recovery (fast recovery, CWR) and runs PRR, or this acknowledgement ends it; or this is a
    /// duplicate during the repair after a timeout. No window grows.
    pub in_recovery: bool,
    /// A round trip ended with this acknowledgement: data sent after the previous round's end was
    /// acknowledged.
    pub round_start: bool,
    /// Delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation).
    pub sample: Option<RateSample>,
}

/// A segment was marked lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// The time at which the segment was marked lost.
    pub now: Instant,
    /// Payload of the segment; for QUIC the size of the packet.
    pub bytes: Bytes,
    /// The sender's state when it was (last) sent.
    pub state: SendState,
    /// The first loss in the current round trip.
    pub new_burst: bool,
    /// In flight after the marking.
    pub in_flight: Bytes,
}

/// Why the network is believed congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Loss found by duplicate or selective acknowledgements, RACK or a tail loss probe.
    Loss,
    /// Congestion Experienced marks (RFC 3168).
    Ecn,
    /// Retransmission timeout; `consecutive` is 1 for the first.
    Timeout {
        /// Timeouts in a row without new data acknowledged.
        consecutive: u32,
    },
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// The time at which the congestion was detected.
    pub now: Instant,
    /// The signal by which the congestion was detected.
    pub cause: Cause,
    /// Marked lost so far in this event.
    pub lost: Bytes,
    /// In flight when it was detected, before loss marking (RFC 5681's FlightSize).
    pub in_flight: Bytes,
}

/// The latest congestion event was spurious (Eifel, DSACK, F-RTO, late acknowledgement).
#[derive(Clone, Copy, Debug)]
pub struct Spurious {
    /// When that became known.
    pub now: Instant,
    /// The cause that was spurious.
    pub cause: Cause,
}

/// The state of the sampler when a segment was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendState {
    /// When this segment was sent.
    pub sent_at: Instant,
    /// When the first segment of its sampling interval was sent.
    pub first_sent_at: Instant,
    /// `delivered` total at sending.
    pub delivered: Bytes,
    /// Time of the latest delivery at sending.
    pub delivered_at: Instant,
    /// `lost` total at sending.
    pub lost: Bytes,
    /// In flight including this segment.
    pub in_flight: Bytes,
    /// The application limited the sender at that time.
    pub app_limited: bool,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Delivered over the interval.
    pub delivered: Bytes,
    /// Lost over the interval.
    pub lost: Bytes,
    /// max(send elapsed, ack elapsed).
    pub interval: Duration,
    /// Send phase of the interval.
    pub send_elapsed: Duration,
    /// Acknowledgement phase of the interval.
    pub ack_elapsed: Duration,
    /// `delivered` total when the newest acknowledged segment was sent: a round clock.
    pub prior_delivered: Bytes,
    /// `delivered` total now.
    pub total_delivered: Bytes,
    /// In flight when the newest acknowledged segment was sent.
    pub tx_in_flight: Bytes,
    /// The application limited the sender then.
    pub app_limited: bool,
    /// The newest acknowledged segment was a retransmission.
    pub retransmission: bool,
}

impl RateSample {
    /// delivered / interval; zero if the interval is.
    #[inline]
    pub fn delivery_rate(&self) -> gargalo_units::Rate {
        self.delivered / self.interval
    }
}

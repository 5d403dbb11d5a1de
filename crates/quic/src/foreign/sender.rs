//! What a foreign stack reports of its sender.

use gargalo_units::{Bytes as Size, Duration, Rate, SenderCounters};

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

use gargalo_units::{Bytes, Duration};

/// A read-only view of the path a controller serves.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// Maximum segment size: payload bytes.
    pub mss: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Latest round-trip sample.
    pub latest_rtt: Option<Duration>,
    /// Least round-trip time of the connection.
    pub min_rtt: Option<Duration>,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// All subflows of the connection in a fixed order, this one included (see `index`); empty for
    /// single-path transports. Coupled algorithms are pure functions of this view.
    pub siblings: &'a [Sibling],
    /// Which of `siblings` this path is.
    pub index: usize,
}

/// What a coupled congestion control may know of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    /// Settled window: ssthresh while recovering, cwnd otherwise.
    pub cwnd: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Least round-trip time.
    pub min_rtt: Option<Duration>,
    /// Maximum segment size.
    pub mss: Bytes,
    /// Bytes acknowledged since the last loss (OLIA's l2).
    pub since_loss: Bytes,
    /// Bytes acknowledged between the last two losses (OLIA's l1).
    pub between_losses: Bytes,
    /// The current delivery rate in bytes per second (wVegas).
    pub rate: f64,
    /// Established and not failed.
    pub can_send: bool,
}

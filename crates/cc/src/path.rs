use gargalo_units::{Bytes, Duration};

use crate::event::Cause;

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
    /// The other end reports selectively what arrived: by SACK, or QUIC's ranges. Otherwise duplicate acknowledgements
    /// stand for segments, and what they stood for is in [`Acked::bytes`](crate::Acked::bytes) of a later one.
    pub sack: bool,
}

/// The view of a subflow for coupled congestion controls.
///
/// The transport fills all siblings before each call; coupled algorithms of this crate read `cwnd`, `srtt`,
/// `can_send` and, OLIA, the two loss intervals (see [`LossIntervals`]). They use the current values of their own
/// window and round-trip time, and the loss intervals of their own entry.
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
    /// The current delivery rate in bytes per second.
    pub rate: f64,
    /// Established and not failed.
    pub can_send: bool,
}

/// Counts the bytes acknowledged between losses, for [`Sibling`].
///
/// A congestion event ends an interval, a mark as much as a loss (Linux moves its counters on entry to
/// CWR, Recovery and Loss); a repeated timeout does not, nor one before anything was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossIntervals {
    since: Bytes,
    between: Bytes,
}

impl LossIntervals {
    /// Bytes were newly acknowledged.
    #[inline]
    pub fn on_acked(&mut self, bytes: Bytes) {
        self.since += bytes;
    }

    /// A congestion event was reported to the controller.
    pub fn on_congestion(&mut self, cause: Cause) {
        let repeated = matches!(cause, Cause::Timeout { consecutive } if consecutive > 1);
        if !repeated && !self.since.is_zero() {
            self.between = std::mem::take(&mut self.since);
        }
    }

    /// Bytes acknowledged since the last loss (l2).
    pub fn since_loss(&self) -> Bytes {
        self.since
    }

    /// Bytes acknowledged between the last two losses (l1).
    pub fn between_losses(&self) -> Bytes {
        self.between
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_end_with_a_congestion_event_and_are_not_empty() {
        let mut l = LossIntervals::default();
        let both = |l: &LossIntervals| (l.between_losses().get(), l.since_loss().get());
        l.on_acked(Bytes::new(3000));
        assert_eq!(both(&l), (0, 3000));
        l.on_congestion(Cause::Loss);
        assert_eq!(both(&l), (3000, 0));
        l.on_congestion(Cause::Timeout { consecutive: 1 });
        assert_eq!(both(&l), (3000, 0));
        l.on_acked(Bytes::new(500));
        l.on_congestion(Cause::Timeout { consecutive: 2 });
        assert_eq!(both(&l), (3000, 500));
        l.on_congestion(Cause::Ecn);
        assert_eq!(both(&l), (500, 0));
    }
}

//! What kept a sender from sending more: the application, the receiver's window, or the congestion window.

use gargalo_units::Instant;
use serde::Serialize;

/// What limits a sender at an instant.
///
/// The states are those of M. Siekkinen et al., "A root cause analysis toolkit for TCP", Computer Networks 52(9), 2008,
/// as far as a capture of headers can tell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing is in flight, or the last segment was short and acknowledgements have come without another.
    Application,
    /// The window that the receiver advertised has no room for a segment.
    Receiver,
    /// Retransmissions are under way: something sent before the first of them is not acknowledged.
    Recovery,
    /// None of these: the congestion window, or the rate at which the sender paces.
    Network,
}

/// For how long each limit held.
#[derive(Debug)]
pub struct Limits {
    now: Limit,
    since: Instant,
    spent: Spent,
}

/// Times, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// The application had nothing to send.
    pub application_s: f64,
    /// The receiver's window was full.
    pub receiver_s: f64,
    /// Lost data was retransmitted.
    pub recovery_s: f64,
    /// The network, by way of the congestion window or of pacing.
    pub network_s: f64,
}

impl Limits {
    /// Nothing was sent before `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            now: Limit::Application,
            since: now,
            spent: Spent::default(),
        }
    }

    /// From now on this is the limit.
    pub fn set(&mut self, limit: Limit, now: Instant) {
        let spent = now.saturating_since(self.since);
        *self.slot() += spent.as_secs_f64();
        (self.now, self.since) = (limit, now);
    }

    /// The times until the last change.
    pub const fn spent(&self) -> Spent {
        self.spent
    }

    fn slot(&mut self) -> &mut f64 {
        match self.now {
            Limit::Application => &mut self.spent.application_s,
            Limit::Receiver => &mut self.spent.receiver_s,
            Limit::Recovery => &mut self.spent.recovery_s,
            Limit::Network => &mut self.spent.network_s,
        }
    }
}

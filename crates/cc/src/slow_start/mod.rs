//! Slow starts: a part of every window-based algorithm, chosen by name.

mod hystart;
mod hystart_plus_plus;
mod limited;

pub use hystart::{HyStart, HyStartParams};
pub use hystart_plus_plus::{HyStartPlusPlus, HyStartPlusPlusParams};
pub use limited::LimitedParams;

use gargalo_settings::names;

use crate::event::Acked;

/// How the window may grow with the acknowledgement just observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// As in slow start, divided by this.
    Divided(u64),
    /// Slow start is over: congestion avoidance begins with ssthresh = cwnd.
    Exit,
}

names! {
    /// Which slow start to build.
    pub enum SlowStartKind {
        /// RFC 5681 §3.1: exponential until loss or ssthresh.
        Standard = "standard",
        /// RFC 3742: bounded growth per round trip beyond a window.
        Limited = "limited",
        /// Hybrid slow start (Ha and Rhee, 2011).
        HyStart = "hystart",
        /// HyStart++ (RFC 9406): a rise of the round-trip time leads through conservative slow start to congestion
        /// avoidance.
        HyStartPlusPlus = "hystart++",
    }
}

impl SlowStartKind {
    /// The limit L of appropriate byte counting in its specification, in segments: 2
    /// (RFC 3465 §2.2), 8 without pacing (RFC 9406 §4.2).
    pub const fn default_abc_limit(self) -> u64 {
        match self {
            Self::Standard | Self::Limited | Self::HyStart => 2,
            Self::HyStartPlusPlus => 8,
        }
    }
}

/// A running slow start.
#[derive(Clone, Copy, Debug)]
pub enum SlowStart {
    /// RFC 5681 §3.1.
    Standard,
    /// RFC 3742, in every slow start.
    Limited(LimitedParams),
    /// Hybrid slow start; used until the first congestion event only.
    HyStart(HyStart),
    /// RFC 9406; used until the first congestion event only (§4.3).
    HyStartPlusPlus(HyStartPlusPlus),
}

impl SlowStart {
    /// At the start of the connection.
    pub fn new(kind: SlowStartKind) -> Self {
        match kind {
            SlowStartKind::Standard => Self::Standard,
            SlowStartKind::Limited => Self::Limited(LimitedParams::DEFAULT),
            SlowStartKind::HyStart => Self::HyStart(HyStart::new(HyStartParams::DEFAULT)),
            SlowStartKind::HyStartPlusPlus => {
                Self::HyStartPlusPlus(HyStartPlusPlus::new(HyStartPlusPlusParams::DEFAULT))
            }
        }
    }

    /// Observes an acknowledgement received in slow start, cwnd being `cwnd` segments.
    pub fn on_ack(&mut self, ack: &Acked, cwnd: f64) -> Growth {
        match self {
            Self::Standard => Growth::Divided(1),
            Self::Limited(p) => p.growth(cwnd),
            Self::HyStart(h) => h.on_ack(ack, cwnd),
            Self::HyStartPlusPlus(h) => h.on_ack(ack),
        }
    }

    /// The initial slow start is over: later ones have a known ssthresh and need no search for it.
    pub fn end_initial(&mut self) {
        if !matches!(self, Self::Limited(_)) {
            *self = Self::Standard;
        }
    }

    /// Whether conservative slow start (RFC 9406) is in force.
    pub fn is_conservative(&self) -> bool {
        matches!(self, Self::HyStartPlusPlus(h) if h.is_conservative())
    }
}

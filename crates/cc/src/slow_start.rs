//! How a loss-based algorithm starts: a part that any of them holds, chosen by name.

use crate::event::Acked;
use crate::hystart::{Growth, HyStart, HyStartParams};

/// The names of the slow starts, as written in a scenario.
pub const CHOICES: &[&str] = &["standard", "hystart++"];

/// Which slow start to build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowStartKind {
    /// RFC 5681 §3.1: exponential until loss or ssthresh.
    Standard,
    /// RFC 9406.
    HyStartPlusPlus(HyStartParams),
}

impl SlowStartKind {
    /// By its name in [`CHOICES`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "standard" => Some(Self::Standard),
            "hystart++" => Some(Self::HyStartPlusPlus(HyStartParams::DEFAULT)),
            _ => None,
        }
    }

    /// Its name in [`CHOICES`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::HyStartPlusPlus(_) => "hystart++",
        }
    }

    /// The limit L of appropriate byte counting its specification asks for, in segments: 2
    /// (RFC 3465 §2.2), 8 without pacing (RFC 9406 §4.2).
    pub const fn default_abc_limit(self) -> u64 {
        match self {
            Self::Standard => 2,
            Self::HyStartPlusPlus(_) => 8,
        }
    }
}

/// A running slow start.
#[derive(Clone, Copy, Debug)]
pub enum SlowStart {
    /// RFC 5681 §3.1.
    Standard,
    /// RFC 9406; used until the first congestion event only (§4.3).
    HyStartPlusPlus(HyStart),
}

impl SlowStart {
    /// At the start of the connection.
    pub fn new(kind: SlowStartKind) -> Self {
        match kind {
            SlowStartKind::Standard => Self::Standard,
            SlowStartKind::HyStartPlusPlus(p) => Self::HyStartPlusPlus(HyStart::new(p)),
        }
    }

    /// Observes an acknowledgement received in slow start.
    pub fn on_ack(&mut self, ack: &Acked) -> Growth {
        match self {
            Self::Standard => Growth::Divided(1),
            Self::HyStartPlusPlus(h) => h.on_ack(ack),
        }
    }

    /// The initial slow start is over: later ones have a known ssthresh and run the standard way.
    pub fn end_initial(&mut self) {
        *self = Self::Standard;
    }

    /// Whether conservative slow start (RFC 9406) is in force.
    pub fn is_conservative(&self) -> bool {
        matches!(self, Self::HyStartPlusPlus(h) if h.is_conservative())
    }
}

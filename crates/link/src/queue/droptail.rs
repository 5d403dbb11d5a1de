//! Tail drop: first in, first out, bounded.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use gargalo_settings::{Packets, packets, quantity};
use gargalo_units::parse::split;
use gargalo_units::{Bytes, Duration, Instant, ParseError};

use super::fifo::Fifo;
use super::{QueueDiscipline, Queued};
use crate::ledger::Ledger;
use crate::stats::DropReason;

/// How much may wait in a queue: `"250 packets"`, `"150kB"`, `"50ms"` or `"1BDP"`. The packet in transmission does
/// not count, and a packet that need not wait is always accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// A number of packets.
    Packets(u64),
    /// A number of bytes; a packet that would exceed it is dropped.
    Bytes(Bytes),
    /// A packet that would wait longer than this is dropped. The wait is exact for every rate model.
    Time(Duration),
    /// A multiple of the bandwidth-delay product. It is resolved to bytes ([`QueueLimit::bdp`]) where the routes
    /// are known, before a link is built.
    Bdp(f64),
}

quantity!(
    QueueLimit,
    "queue-size",
    ["250 packets", "150kB", "50ms", "1BDP"],
    [" packets"]
);

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(n) => Packets(*n).fmt(f),
            Self::Bytes(n) => write!(f, "{}B", n.get()),
            Self::Time(d) => d.fmt(f),
            Self::Bdp(factor) => write!(f, "{factor}BDP"),
        }
    }
}

impl Default for QueueLimit {
    /// A limit of 1000 packets.
    fn default() -> Self {
        Self::Packets(1000)
    }
}

impl FromStr for QueueLimit {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(n) = packets(text)? {
            return Ok(Self::Packets(n));
        }
        let (value, unit) = split(text)?;
        match unit {
            "BDP" => return Ok(Self::Bdp(value)),
            "" => {
                let message = format!("\"{text}\" has no unit; a queue size needs one");
                return Err(error(message, Some(format!("{value} packets"))));
            }
            _ => {}
        }
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        if let Ok(bytes) = text.parse() {
            return Ok(Self::Bytes(bytes));
        }
        let message = format!(
            "\"{unit}\" is not a unit of a queue size; known: packets, BDP, B, kB, MB, KiB, MiB, us, ms, s"
        );
        // A unit that is as near to one of time as to one of size gives no suggestion.
        let times = text.parse::<Duration>().err().and_then(|e| e.suggestion);
        let sizes = text.parse::<Bytes>().err().and_then(|e| e.suggestion);
        let fix = match unit.to_ascii_lowercase().as_str() {
            "bdp" => Some(format!("{value}BDP")),
            "packets" | "packet" | "pkt" | "pkts" => Some(format!("{value} packets")),
            _ => times.xor(sizes),
        };
        Err(error(message, fix))
    }
}

fn error(message: String, suggestion: Option<String>) -> ParseError {
    ParseError {
        message,
        suggestion,
    }
}

impl QueueLimit {
    /// `factor` times the bandwidth-delay product, in bytes but at least one packet of 1500 bytes.
    pub fn bdp(rate: gargalo_units::Rate, rtt: Duration, factor: f64) -> Self {
        let bytes = (rate * rtt).mul_f64(factor);
        Self::Bytes(bytes.max(Bytes::new(1500)))
    }
}

/// Tail drop on the fast path: only the start of service and the size of each waiting packet are stored, and
/// removed lazily.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Removes packets whose service has begun by `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some((start, bytes)) = self.waiting.front()
            && *start <= now
        {
            self.bytes -= u64::from(*bytes);
            self.waiting.pop_front();
        }
    }

    /// Admits a packet that will wait until `start` if it fits; returns whether it does.
    #[inline]
    pub(crate) fn push(&mut self, start: Instant, wait: Duration, bytes: u32) -> bool {
        let fits = match self.limit {
            QueueLimit::Packets(n) => (self.waiting.len() as u64) < n,
            QueueLimit::Bytes(n) => self.bytes + u64::from(bytes) <= n.get(),
            QueueLimit::Time(t) => wait <= t,
            QueueLimit::Bdp(_) => true,
        };
        if fits {
            self.waiting.push_back((start, bytes));
            self.bytes += u64::from(bytes);
        }
        fits
    }

    pub(crate) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Tail drop as a discipline like the others: the reference for tests of the fast path.
///
/// It cannot know a wait in advance, so a limit in time is ignored.
#[derive(Debug)]
pub(crate) struct Plain<P> {
    limit: QueueLimit,
    queue: Fifo<P>,
}

impl<P: Copy> Plain<P> {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            queue: Fifo::new(),
        }
    }
}

impl<P: Copy> QueueDiscipline<P> for Plain<P> {
    fn enqueue(&mut self, _now: Instant, queued: Queued<P>, ledger: &mut Ledger<P>) {
        let fits = match self.limit {
            QueueLimit::Packets(n) => self.queue.packets() < n,
            QueueLimit::Bytes(n) => self.queue.bytes() + queued.item.bytes() <= n.get(),
            QueueLimit::Time(_) | QueueLimit::Bdp(_) => true,
        };
        if fits {
            self.queue.push(queued);
        } else {
            ledger.drop(queued.item, DropReason::QueueFull);
        }
    }
    fn dequeue(&mut self, _now: Instant, _ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.queue.pop()
    }
    fn packets(&self) -> u64 {
        self.queue.packets()
    }
    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }
}

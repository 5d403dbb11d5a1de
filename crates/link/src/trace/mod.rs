//! Packet-delivery traces, the format of mahimahi (Netravali et al., USENIX ATC 2015).
//!
//! A trace is a text with one integer per line: the millisecond of a delivery opportunity. Lines do
//! not decrease; a repeated line is another opportunity in the same millisecond. The trace repeats at
//! its end, so that its period is the last line.
//!
//! The rule, as mahimahi's link works:
//!
//! - An opportunity carries 1504 bytes, a packet of 1500 bytes and the 4 bytes that a TUN device puts
//!   before it; so every packet costs its IP bytes plus 4.
//! - Several small packets share an opportunity. A packet larger than the rest of an opportunity uses that rest and
//!   continues in the next; it departs with the opportunity that carries its last byte.
//! - The rest of an opportunity is lost when the queue is empty. A packet that arrives at the instant of an
//!   opportunity is too late for it.
//!
//! In short: each line is 1500 bytes; one line per millisecond is 12 Mbit/s.

mod generate;
mod info;
mod parse;
mod server;

use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Instant, Rate};

pub use generate::CellularModel;
pub use info::TraceInfo;
pub use parse::TraceError;
pub(crate) use server::TraceServer;

/// Bytes that an opportunity carries.
pub const OPPORTUNITY_BYTES: u64 = 1504;
/// Overhead of a packet in bytes.
pub const HEADER_BYTES: u64 = 4;
/// IP bytes of the packet that fills an opportunity; capacities are counted in these.
const PAYLOAD_BYTES: u64 = OPPORTUNITY_BYTES - HEADER_BYTES;

const MS: u64 = 1_000_000;

/// When packets can be delivered; immutable, meant to be shared in an [`Arc`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds, not decreasing, at least one, the last not zero.
    times: Arc<[u32]>,
}

impl DeliveryTrace {
    /// The number of opportunities per period.
    pub fn opportunities(&self) -> usize {
        self.times.len()
    }

    /// The period after which the trace repeats: the last line.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// The opportunities of one period.
    pub fn times(&self) -> impl ExactSizeIterator<Item = Instant> + '_ {
        self.times
            .iter()
            .map(|ms| Instant::from_nanos(u64::from(*ms) * MS))
    }

    /// The average rate in IP bytes, 1500 an opportunity.
    pub fn mean_rate(&self) -> Rate {
        let bytes = Bytes::new(self.times.len() as u64 * PAYLOAD_BYTES);
        Rate::from_transfer(bytes, self.period())
    }

    /// IP bytes that packets of 1500 bytes can carry in opportunities after `from` up to and including
    /// `to`, over repetitions of the trace.
    pub fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        let n = self.count_until(to).saturating_sub(self.count_until(from));
        Bytes::new(n.saturating_mul(PAYLOAD_BYTES))
    }

    /// Opportunities from the start up to and including `t`.
    fn count_until(&self, t: Instant) -> u64 {
        let period = self.period_nanos();
        let (cycles, rest) = (t.as_nanos() / period, t.as_nanos() % period);
        let rest_ms = rest / MS;
        let within = self.times.partition_point(|ms| u64::from(*ms) <= rest_ms) as u64;
        cycles.saturating_mul(self.times.len() as u64) + within
    }

    fn period_nanos(&self) -> u64 {
        // The last time is above zero by construction.
        self.times.last().map_or(MS, |ms| u64::from(*ms) * MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn capacity_counts_opportunities_over_repetitions() {
        let t = DeliveryTrace::parse("0\n5\n5\n10\n").unwrap();
        let n = |a, b| t.capacity(ms(a), ms(b)).get() / 1500;
        assert_eq!(n(0, 5), 2);
        assert_eq!(n(5, 9), 0);
        // The end of a period and the beginning of the next are the same instant.
        assert_eq!(n(5, 10), 2);
        assert_eq!(n(10, 20), 4);
        assert_eq!(n(0, 1000), 400);
        assert_eq!(n(7, 3), 0);
        assert_eq!(t.mean_rate(), Rate::from_bps(4 * 1500 * 8 * 100));
    }
}

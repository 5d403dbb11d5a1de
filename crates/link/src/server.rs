//! Serialisation: when the transmission of a packet begins and when it ends.
//!
//! Times are exact: fractions of a nanosecond are carried over, so that the average rate over a busy period has no
//! rounding error.

use std::sync::Arc;

use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::config::RateModel;
use crate::trace::TraceServer;

/// Bit-nanoseconds a second per bit/s: `bytes * BYTE / rate` is a time in nanoseconds.
pub(crate) const BYTE: u64 = 8_000_000_000;

/// Rates from this on are treated as unlimited; below it, remainders add up without overflow.
const TOO_FAST: u64 = 1 << 62;

impl RateModel {
    /// How many bytes can be carried between two instants; `None` if any number.
    pub fn capacity(&self, from: Instant, to: Instant) -> Option<Bytes> {
        Server::new(self).capacity(from, to).map(Bytes::new)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Server {
    Unlimited { now: Instant },
    Constant(ConstantServer),
    Steps(Box<StepServer>),
    Trace(Box<TraceServer>),
}

impl Server {
    pub(crate) fn new(model: &RateModel) -> Self {
        match model {
            RateModel::Constant(r) if r.as_bps() < TOO_FAST => {
                Self::Constant(ConstantServer::new(r.as_bps()))
            }
            RateModel::Unlimited | RateModel::Constant(_) => Self::Unlimited { now: Instant::ZERO },
            RateModel::Steps(steps) => Self::Steps(Box::new(StepServer::new(steps))),
            RateModel::Trace(trace) => Self::Trace(Box::new(TraceServer::new(trace.shared()))),
        }
    }

    /// The start of transmission of a packet that arrives at `now`, behind all packets transmitted so far.
    #[inline(always)]
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        match self {
            Self::Unlimited { now: last } => {
                *last = now;
                now
            }
            Self::Constant(s) => s.start(now),
            Self::Steps(s) => s.start(now),
            Self::Trace(s) => s.start(now),
        }
    }

    /// The start of transmission of a packet that was already waiting when the last one ended.
    #[inline]
    pub(crate) fn resume(&mut self) -> Instant {
        match self {
            Self::Unlimited { now } => *now,
            Self::Constant(s) => s.free,
            Self::Steps(s) => s.resume(),
            Self::Trace(s) => s.resume(),
        }
    }

    /// Transmits a packet from the time that [`Self::start`] or [`Self::resume`] returned last; returns when its
    /// last byte has left.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, bytes: u32) -> Instant {
        match self {
            Self::Unlimited { now } => *now,
            Self::Constant(s) => s.transmit(bytes),
            Self::Steps(s) => s.transmit(u64::from(bytes)),
            Self::Trace(s) => s.transmit(u64::from(bytes), 1),
        }
    }

    /// A lower bound of the end of transmission of packets that come from `now` on, of which the first, if it finds the
    /// server idle, is transmitted; exact for that one at a constant rate.
    #[inline]
    pub(crate) fn earliest(&mut self, now: Instant, bytes: u32) -> Instant {
        match self {
            Self::Constant(s) => s.earliest(now, bytes),
            Self::Unlimited { .. } | Self::Steps(_) | Self::Trace(_) => now,
        }
    }

    /// How long the server needs for the rest of its packet and then for `packets` more with `bytes`
    /// in all.
    pub(crate) fn drain_time(&self, now: Instant, bytes: u64, packets: u64) -> Duration {
        let end = match self {
            Self::Unlimited { .. } => now,
            Self::Constant(s) => {
                let work =
                    Rate::from_bps(s.rate).transmission_time(gargalo_units::Bytes::new(bytes));
                s.free.max(now) + work
            }
            Self::Steps(s) if packets > 0 => {
                let mut s = s.clone();
                s.start(now);
                s.transmit(bytes)
            }
            Self::Steps(s) => s.departure(),
            Self::Trace(s) if packets > 0 => {
                let mut s = s.clone();
                s.start(now);
                s.transmit(bytes, packets)
            }
            Self::Trace(s) => s.departure(),
        };
        end.saturating_since(now)
    }

    /// How many bytes could have been sent between two instants; `None` if unlimited.
    pub(crate) fn capacity(&self, from: Instant, to: Instant) -> Option<u64> {
        match self {
            Self::Unlimited { .. } => None,
            Self::Constant(s) => Some((Rate::from_bps(s.rate) * (to - from)).get()),
            Self::Steps(s) => Some(s.capacity(from, to)),
            Self::Trace(s) => Some(s.trace().capacity(from, to).get()),
        }
    }

    /// The same without rounding, in units of which a byte has [`BYTE`].
    pub(crate) fn capacity_work(&self, from: Instant, to: Instant) -> Option<u128> {
        match self {
            Self::Unlimited { .. } => None,
            Self::Constant(s) => {
                let time = to.saturating_since(from).as_nanos();
                Some(u128::from(time) * u128::from(s.rate))
            }
            Self::Steps(s) => Some(s.work(from.as_nanos(), to.as_nanos())),
            Self::Trace(s) => {
                Some(u128::from(s.trace().capacity(from, to).get()) * u128::from(BYTE))
            }
        }
    }

    /// The part of all scheduled packets that leaves after `now`, in units of which a byte has [`BYTE`]; `None` if
    /// packets leave as a whole: at unlimited rate, and at delivery opportunities.
    pub(crate) fn remaining_work(&self, now: Instant) -> Option<u128> {
        let now = now.as_nanos();
        match self {
            Self::Unlimited { .. } | Self::Trace(_) => None,
            Self::Constant(s) if s.nanos < now => Some(0),
            Self::Constant(s) => {
                Some(u128::from(s.nanos - now) * u128::from(s.rate) + u128::from(s.rest))
            }
            Self::Steps(s) if s.nanos < now => Some(0),
            Self::Steps(s) => Some(s.work(now, s.nanos) + u128::from(s.rest)),
        }
    }
}

/// A constant rate.
#[derive(Clone, Debug)]
pub(crate) struct ConstantServer {
    /// Bits per second, not zero.
    rate: u64,
    /// The exact end of the last packet is `nanos + rest / rate`.
    nanos: u64,
    rest: u64,
    /// The exact end, rounded up to a nanosecond.
    free: Instant,
    /// Transmission time of the last size, as quotient and remainder: most packets have the size of the last one,
    /// which saves a division.
    size: u32,
    quotient: u64,
    remainder: u64,
}

impl ConstantServer {
    fn new(rate: u64) -> Self {
        Self {
            rate,
            nanos: 0,
            rest: 0,
            free: Instant::ZERO,
            size: 0,
            quotient: 0,
            remainder: 0,
        }
    }

    #[inline(always)]
    fn start(&mut self, now: Instant) -> Instant {
        if now >= self.free {
            self.nanos = now.as_nanos();
            self.rest = 0;
            self.free = now;
        }
        self.free
    }

    /// The end of transmission if the server is idle at `now`, else when it can start: the packet may find no room.
    #[inline]
    fn earliest(&mut self, now: Instant, bytes: u32) -> Instant {
        if now < self.free {
            return self.free;
        }
        if bytes != self.size {
            self.measure(bytes);
        }
        let up = u64::from(self.remainder > 0);
        Instant::from_nanos(
            now.as_nanos()
                .saturating_add(self.quotient)
                .saturating_add(up),
        )
    }

    #[inline(always)]
    fn transmit(&mut self, bytes: u32) -> Instant {
        if bytes != self.size {
            self.measure(bytes);
        }
        self.nanos = self.nanos.saturating_add(self.quotient);
        self.rest += self.remainder;
        if self.rest >= self.rate {
            self.rest -= self.rate;
            self.nanos = self.nanos.saturating_add(1);
        }
        let up = u64::from(self.rest > 0);
        self.free = Instant::from_nanos(self.nanos.saturating_add(up));
        self.free
    }

    #[inline(never)]
    fn measure(&mut self, bytes: u32) {
        self.size = bytes;
        (self.quotient, self.remainder) = match u64::from(bytes).checked_mul(BYTE) {
            Some(work) => (work / self.rate, work % self.rate),
            None => {
                let work = u128::from(bytes) * u128::from(BYTE);
                let rate = u128::from(self.rate);
                // 2^32 bytes at 1 bit/s are 3.4e19 ns: more than the range of time, hence the saturation.
                let quotient = u64::try_from(work / rate).unwrap_or(u64::MAX);
                (quotient, (work % rate) as u64)
            }
        };
    }
}

/// A rate that changes at given instants.
#[derive(Clone, Debug)]
pub(crate) struct StepServer {
    /// (nanoseconds, bits per second), the first at zero, increasing.
    steps: Arc<[(u64, u64)]>,
    /// The step that holds at the end of the last packet.
    step: usize,
    /// The exact end of the last packet is `nanos + rest / rate of the step`.
    nanos: u64,
    rest: u64,
}

impl StepServer {
    fn new(steps: &[(Instant, Rate)]) -> Self {
        Self {
            steps: steps
                .iter()
                .map(|(t, r)| (t.as_nanos(), r.as_bps().min(TOO_FAST)))
                .collect(),
            step: 0,
            nanos: 0,
            rest: 0,
        }
    }

    fn departure(&self) -> Instant {
        Instant::from_nanos(self.nanos.saturating_add(u64::from(self.rest > 0)))
    }

    fn start(&mut self, now: Instant) -> Instant {
        if now >= self.departure() {
            self.nanos = now.as_nanos();
            self.rest = 0;
        }
        self.resume()
    }

    /// Advances to the step of the current position, and past outages.
    fn resume(&mut self) -> Instant {
        loop {
            match self.steps.get(self.step + 1) {
                Some((next, _)) if *next <= self.nanos => {
                    self.step += 1;
                    self.rest = 0;
                }
                Some((next, _)) if self.steps[self.step].1 == 0 => self.nanos = *next,
                None if self.steps[self.step].1 == 0 => {
                    self.nanos = u64::MAX;
                    return Instant::MAX;
                }
                _ => return self.departure(),
            }
        }
    }

    fn transmit(&mut self, bytes: u64) -> Instant {
        let mut work = u128::from(bytes) * u128::from(BYTE);
        while self.nanos < u64::MAX {
            let rate = self.steps[self.step].1;
            let next = self.steps.get(self.step + 1).map(|s| s.0);
            let room = next.map(|end| {
                u128::from(end.saturating_sub(self.nanos)) * u128::from(rate)
                    - u128::from(self.rest)
            });
            match (room, next) {
                (Some(room), Some(end)) if work > room => {
                    work -= room;
                    self.nanos = end;
                    self.rest = 0;
                    self.step += 1;
                }
                (None, _) if rate == 0 && work > 0 => self.nanos = u64::MAX,
                _ if work == 0 => break,
                _ => {
                    let total = u128::from(self.rest) + work;
                    let rate = u128::from(rate);
                    let spent = u64::try_from(total / rate).unwrap_or(u64::MAX);
                    self.nanos = self.nanos.saturating_add(spent);
                    self.rest = (total % rate) as u64;
                    break;
                }
            }
        }
        self.departure()
    }

    fn capacity(&self, from: Instant, to: Instant) -> u64 {
        let work = self.work(from.as_nanos(), to.as_nanos());
        u64::try_from(work / u128::from(BYTE)).unwrap_or(u64::MAX)
    }

    fn work(&self, from: u64, to: u64) -> u128 {
        let mut work = 0u128;
        for (i, (begin, rate)) in self.steps.iter().enumerate() {
            let end = self.steps.get(i + 1).map_or(u64::MAX, |s| s.0);
            let (a, b) = (from.max(*begin), to.min(end));
            work += u128::from(b.saturating_sub(a)) * u128::from(*rate);
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    fn constant(bps: u64) -> Server {
        Server::new(&RateModel::Constant(Rate::from_bps(bps)))
    }

    #[test]
    fn a_gigabit_is_exact() {
        let mut s = constant(1_000_000_000);
        for i in 0..1000 {
            assert_eq!(s.start(ns(0)), ns(i * 12_000));
            assert_eq!(s.transmit(1500), ns((i + 1) * 12_000));
        }
    }

    #[test]
    fn odd_rates_have_no_drift() {
        // 7 Mbit/s: 1500 bytes take 1714285.714... ns.
        for mut s in [
            constant(7_000_000),
            Server::new(&RateModel::Steps(vec![(ns(0), Rate::from_mbps(7))])),
        ] {
            let n = 1_000_000u64;
            let mut end = ns(0);
            for i in 0..n {
                s.start(ns(0));
                let size = if i % 3 == 0 { 40 } else { 1500 };
                end = s.transmit(size);
            }
            let bytes = n.div_ceil(3) * 40 + (n - n.div_ceil(3)) * 1500;
            assert_eq!(end.as_nanos(), (bytes * 8000).div_ceil(7));
        }
    }

    #[test]
    fn an_idle_server_starts_at_once() {
        let mut s = constant(8_000_000_000);
        assert_eq!(s.start(ns(5)), ns(5));
        assert_eq!(s.transmit(10), ns(15));
        assert_eq!(s.start(ns(14)), ns(15));
        assert_eq!(s.start(ns(16)), ns(16));
    }

    #[test]
    fn a_packet_spans_rate_changes_and_outages() {
        // 1 byte/ns for 10 ns, nothing for 10 ns, then 2 bytes/ns.
        let steps = vec![
            (ns(0), Rate::from_bps(8_000_000_000)),
            (ns(10), Rate::ZERO),
            (ns(20), Rate::from_bps(16_000_000_000)),
        ];
        let mut s = Server::new(&RateModel::Steps(steps));
        assert_eq!(s.start(ns(5)), ns(5));
        assert_eq!(s.transmit(9), ns(22));
        assert_eq!(s.start(ns(7)), ns(22));
        assert_eq!(s.transmit(3), ns(24));
        // 23.5 exactly: the next packet of one byte ends at 24.
        assert_eq!(s.start(ns(7)), ns(24));
        assert_eq!(s.transmit(1), ns(24));
        assert_eq!(s.capacity(ns(5), ns(22)), Some(9));
    }

    #[test]
    fn nothing_begins_in_an_outage() {
        let steps = vec![
            (ns(0), Rate::from_bps(8_000_000_000)),
            (ns(10), Rate::ZERO),
            (ns(20), Rate::from_bps(8_000_000_000)),
            (ns(30), Rate::ZERO),
        ];
        let mut s = Server::new(&RateModel::Steps(steps));
        assert_eq!(s.start(ns(0)), ns(0));
        assert_eq!(s.transmit(10), ns(10));
        assert_eq!(s.resume(), ns(20));
        assert_eq!(s.start(ns(12)), ns(20));
        assert_eq!(s.transmit(4), ns(24));
        assert_eq!(s.start(ns(35)), Instant::MAX);
        assert_eq!(s.transmit(4), Instant::MAX);
    }

    #[test]
    fn drain_time_includes_the_rest_of_the_packet_in_transmission() {
        let mut s = constant(8_000_000_000);
        s.start(ns(0));
        s.transmit(100);
        let d = s.drain_time(ns(40), 200, 2);
        assert_eq!(d, Duration::from_nanos(260));
        assert_eq!(s.drain_time(ns(400), 0, 0), Duration::ZERO);
    }
}

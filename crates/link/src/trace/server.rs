//! A server driven by a trace: opportunities are used in order.
//!
//! The work depends on the packets only: unused opportunities are skipped by a search.

use std::sync::Arc;

use gargalo_units::Instant;

use super::{DeliveryTrace, HEADER_BYTES, MS, OPPORTUNITY_BYTES};

#[derive(Clone, Debug)]
pub(crate) struct TraceServer {
    trace: Arc<DeliveryTrace>,
    /// Begin of the period of `next`, in nanoseconds.
    base: u64,
    /// Index of the next unused opportunity.
    next: usize,
    /// The opportunity used last, and what is left of it.
    at: Instant,
    left: u64,
}

impl TraceServer {
    pub(crate) fn new(trace: Arc<DeliveryTrace>) -> Self {
        Self {
            trace,
            base: 0,
            next: 0,
            at: Instant::ZERO,
            left: 0,
        }
    }

    pub(crate) fn trace(&self) -> &DeliveryTrace {
        &self.trace
    }

    /// When the last packet has left.
    pub(crate) fn departure(&self) -> Instant {
        self.at
    }

    #[inline]
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        if self.at <= now {
            self.skip(now);
        }
        self.resume()
    }

    #[inline]
    pub(crate) fn resume(&mut self) -> Instant {
        if self.left > 0 {
            self.at
        } else {
            self.time(self.base, self.next)
        }
    }

    #[inline]
    fn time(&self, base: u64, index: usize) -> Instant {
        Instant::from_nanos(base.saturating_add(u64::from(self.trace.times[index]) * MS))
    }

    /// Goes to the first opportunity after `now`; the rest of the current one is lost.
    fn skip(&mut self, now: Instant) {
        self.left = 0;
        let now = now.as_nanos();
        let period = self.trace.period_nanos();
        // The queue is empty and `base` is not after the last departure, so not after now.
        let within = now.saturating_sub(self.base);
        let within = if within >= period {
            let cycles = within / period;
            self.base += cycles * period;
            self.next = 0;
            within - cycles * period
        } else {
            within
        };
        let rest = &self.trace.times[self.next..];
        let past = |ms: &u32| u64::from(*ms) * MS <= within;
        // Exponential search, then binary search: the result is usually near the cursor.
        let mut reach = 1;
        while rest.get(reach - 1).is_some_and(past) {
            reach *= 2;
        }
        let (low, high) = (reach / 2, (reach - 1).min(rest.len()));
        self.next += low + rest[low..high].partition_point(past);
        // The last opportunity is at the period, after `within`: the search ends before it.
        assert!(self.next < self.trace.times.len(), "no opportunity follows");
    }

    /// Transmits `packets` packets of `bytes` in total; returns when the last byte has left.
    #[inline]
    pub(crate) fn transmit(&mut self, bytes: u64, packets: u64) -> Instant {
        let mut need = bytes + packets * HEADER_BYTES;
        if need <= self.left {
            self.left -= need;
            return self.at;
        }
        need -= self.left;
        // The opportunity that takes the last byte, counted from the next one.
        let beyond = if need <= OPPORTUNITY_BYTES {
            0
        } else {
            (need - 1) / OPPORTUNITY_BYTES
        };
        self.left = (beyond + 1) * OPPORTUNITY_BYTES - need;
        self.next += beyond as usize;
        self.wrap();
        self.at = self.time(self.base, self.next);
        self.next += 1;
        self.wrap();
        self.at
    }

    #[inline]
    fn wrap(&mut self) {
        let n = self.trace.times.len();
        if self.next >= n {
            let cycles = (self.next / n) as u64;
            let span = self.trace.period_nanos().saturating_mul(cycles);
            self.base = self.base.saturating_add(span);
            self.next %= n;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(text: &str) -> TraceServer {
        TraceServer::new(Arc::new(DeliveryTrace::parse(text).unwrap()))
    }

    fn ms(n: u64) -> Instant {
        Instant::from_nanos(n * MS)
    }

    #[test]
    fn a_full_packet_fills_an_opportunity() {
        let mut s = server("1\n3\n3\n7\n");
        let times: Vec<_> = (0..6)
            .map(|_| {
                s.start(ms(0));
                s.transmit(1500, 1)
            })
            .collect();
        assert_eq!(times, [1, 3, 3, 7, 8, 10].map(ms));
    }

    #[test]
    fn small_packets_share_an_opportunity() {
        // Four of 372 cost 4 * 376 = 1504.
        let mut s = server("1\n3\n7\n");
        let times: Vec<_> = (0..9)
            .map(|_| {
                s.start(ms(0));
                s.transmit(372, 1)
            })
            .collect();
        assert_eq!(times, [1, 1, 1, 1, 3, 3, 3, 3, 7].map(ms));
    }

    #[test]
    fn a_large_packet_goes_on_in_the_next_opportunity() {
        let mut s = server("1\n3\n7\n");
        assert_eq!(s.start(ms(0)), ms(1));
        assert_eq!(s.transmit(1000, 1), ms(1));
        // 500 left: this one begins at 1 and ends at 3.
        assert_eq!(s.start(ms(0)), ms(1));
        assert_eq!(s.transmit(1000, 1), ms(3));
        assert_eq!(s.start(ms(0)), ms(3));
        // 1504 * 2 - 2008 = 1000 are left of the second; this needs them, the third and 500 of the
        // next period.
        assert_eq!(s.transmit(3000, 1), ms(8));
        assert_eq!(s.left, 1004);
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut s = server("1\n3\n7\n");
        s.start(ms(0));
        s.transmit(100, 1);
        // The rest of the one at 1 is gone, and one at the very instant is too late.
        assert_eq!(s.start(ms(1)), ms(3));
        assert_eq!(s.start(ms(3)), ms(7));
        assert_eq!(s.start(ms(7)), ms(8));
        assert_eq!(s.start(ms(7 * 1000 + 2)), ms(7003));
    }

    /// mahimahi's link, opportunity by opportunity.
    struct Oracle {
        times: Vec<u64>,
        next: usize,
        base: u64,
        waiting: std::collections::VecDeque<(usize, u64)>,
        done: Vec<(usize, u64)>,
    }

    impl Oracle {
        fn advance(&mut self, now: u64) {
            loop {
                let t = self.base + self.times[self.next];
                if t > now {
                    return;
                }
                self.next += 1;
                if self.next == self.times.len() {
                    self.next = 0;
                    self.base += self.times[self.times.len() - 1];
                }
                let mut left = OPPORTUNITY_BYTES;
                while let Some((id, need)) = self.waiting.front_mut() {
                    let part = left.min(*need);
                    *need -= part;
                    left -= part;
                    if *need > 0 {
                        break;
                    }
                    self.done.push((*id, t));
                    self.waiting.pop_front();
                }
            }
        }
    }

    proptest! {
        #[test]
        fn departures_equal_those_of_mahimahi(
            mut times in proptest::collection::vec(0u32..300, 1..40),
            packets in proptest::collection::vec((0u64..40, 1u64..4000), 1..200),
        ) {
            times.sort_unstable();
            prop_assume!(times.last() > Some(&0));
            let trace = DeliveryTrace::from_millis(times.iter().copied()).unwrap();
            let mut s = TraceServer::new(Arc::new(trace));
            let mut oracle = Oracle {
                times: times.iter().map(|t| u64::from(*t)).collect(),
                next: 0,
                base: 0,
                waiting: Default::default(),
                done: Vec::new(),
            };
            let (mut now, mut got) = (0, Vec::new());
            for (id, (gap, bytes)) in packets.iter().enumerate() {
                now += gap;
                s.start(ms(now));
                got.push((id, s.transmit(*bytes, 1)));
                oracle.advance(now);
                oracle.waiting.push_back((id, bytes + HEADER_BYTES));
            }
            oracle.advance(1_000_000);
            let expected: Vec<_> = oracle.done.iter().map(|(i, t)| (*i, ms(*t))).collect();
            prop_assert_eq!(got, expected);
        }
    }
}

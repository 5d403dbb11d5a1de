//! Estimation of the bottleneck's capacity by packet pairs.
//!
//! Two packets that reach the bottleneck closer together than it can send them leave it one transmission time
//! apart, and so do their acknowledgements arrive (Hoe, SIGCOMM 1996). Of all pairs the one with the smallest sum
//! of delays is used, as it met the least cross traffic (CapProbe; Kapoor, Chen, Lao, Gerla and Sanadidi, SIGCOMM
//! 2004).

use gargalo_units::{Duration, Instant};

use crate::event::Acked;

/// The previous acknowledgement.
#[derive(Clone, Copy, Debug)]
struct First {
    arrived: Instant,
    sent: Instant,
    rtt: Duration,
}

/// Estimates capacity in bytes (of payload) per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketPair {
    first: Option<First>,
    /// Sum of delays and capacity of the best pair.
    best: Option<(Duration, f64)>,
    /// Greatest delivery rate: capacity is no less.
    delivered: f64,
}

impl PacketPair {
    /// Takes an acknowledgement.
    #[inline]
    pub fn on_ack(&mut self, ack: &Acked) {
        if let Some(s) = &ack.sample {
            self.delivered = self.delivered.max(s.delivery_rate().bytes_per_sec());
        }
        let (Some(rtt), Some(sent)) = (ack.rtt, ack.sent_at) else {
            self.first = None;
            return;
        };
        let second = First {
            arrived: ack.now,
            sent,
            rtt,
        };
        if let Some(first) = self.first.replace(second) {
            self.on_pair(first, second, ack.bytes.as_f64());
        }
    }

    fn on_pair(&mut self, first: First, second: First, bytes: f64) {
        let apart = second.arrived - first.arrived;
        let delay = first.rtt + second.rtt;
        // The path must have spread them, by more than timers and jitter of a packet would.
        let spread = (second.sent - first.sent).saturating_mul(8) <= apart.saturating_mul(7);
        if apart.is_zero() || !spread || self.best.is_some_and(|(least, _)| delay > least) {
            return;
        }
        self.best = Some((delay, bytes / apart.as_secs_f64()));
    }

    /// Capacity by packet pairs, in bytes per second, no less than the greatest delivery rate.
    #[inline]
    pub fn pair(&self) -> Option<f64> {
        self.best.map(|(_, rate)| rate.max(self.delivered))
    }

    /// As [`PacketPair::pair`]; without a pair yet, the greatest delivery rate.
    #[inline]
    pub fn capacity(&self) -> Option<f64> {
        let delivered = (self.delivered > 0.0).then_some(self.delivered);
        self.pair().or(delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RateSample;
    use crate::testing::{MSS, ack};
    use gargalo_units::Bytes;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// A segment sent and acknowledged at these microseconds.
    fn segment(sent: u64, arrived: u64) -> Acked {
        Acked {
            now: at(arrived),
            sent_at: Some(at(sent)),
            rtt: Some(Duration::from_micros(arrived - sent)),
            ..ack(MSS.get())
        }
    }

    #[test]
    fn a_burst_tells_the_capacity() {
        let mut p = PacketPair::default();
        for i in 0..5 {
            p.on_ack(&segment(0, 40_000 + 400 * i)); // 1000 bytes in 400 us
        }
        let rate = p.pair().unwrap();
        assert!((rate - 2.5e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn packets_the_path_did_not_spread_tell_nothing() {
        let mut p = PacketPair::default();
        p.on_ack(&segment(0, 40_000));
        p.on_ack(&segment(5_000, 45_000));
        p.on_ack(&segment(10_000, 45_100)); // compressed on the way back
        p.on_ack(&ack(1000)); // no sample breaks the pair
        p.on_ack(&segment(10_000, 50_000));
        assert_eq!(p.pair(), None);
    }

    #[test]
    fn the_pair_with_the_least_delay_counts() {
        let mut p = PacketPair::default();
        p.on_ack(&segment(0, 40_000));
        p.on_ack(&segment(0, 41_000));
        p.on_ack(&segment(0, 41_100)); // cross traffic before the first of them
        let rate = p.pair().unwrap();
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
        p.on_ack(&segment(100_000, 140_000));
        p.on_ack(&segment(100_000, 140_400));
        let rate = p.pair().unwrap();
        assert!((rate - 2.5e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn no_less_than_what_was_delivered() {
        let mut p = PacketPair::default();
        assert_eq!(p.capacity(), None);
        let sample = RateSample {
            delivered: Bytes::new(30_000),
            lost: Bytes::ZERO,
            interval: Duration::from_millis(10),
            send_elapsed: Duration::ZERO,
            ack_elapsed: Duration::ZERO,
            prior_delivered: Bytes::ZERO,
            total_delivered: Bytes::ZERO,
            tx_in_flight: Bytes::ZERO,
            app_limited: false,
            retransmission: false,
        };
        let a = Acked {
            sample: Some(sample),
            ..segment(0, 40_000)
        };
        p.on_ack(&a);
        assert_eq!((p.pair(), p.capacity()), (None, Some(3e6)));
        p.on_ack(&segment(0, 40_400));
        assert_eq!(p.pair(), Some(3e6));
    }
}

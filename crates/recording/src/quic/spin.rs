//! The spin bit: round trips of a connection whose packets are encrypted (RFC 9000 §17.4, RFC 9312 §3.8.2).

use gargalo_units::{Duration, Instant};

use crate::tcp::RoundTrips;

/// Least number of round trips by which a bit is taken for one that spins.
const LEAST: u64 = 3;
/// In a time with fewer packets the bit may be of one value by chance.
const LEAST_PACKETS: u64 = 5;
/// Of packets that were only reordered, less than a quarter have the bit of another round trip.
const MOST_OTHERS: u64 = 4;

/// The spin bit in the packets of one direction.
#[derive(Debug, Default)]
pub struct Spin {
    value: Option<bool>,
    period: Option<Period>,
    last: Option<Instant>,
    kept: u64,
    /// Times in which the bit was of both values, or that had few packets.
    doubtful: u64,
    /// Times between changes.
    pub trips: RoundTrips,
    /// The smoothed round trip at sampling instants.
    pub samples: Vec<(Instant, Duration)>,
}

/// The time since the last change.
#[derive(Debug)]
struct Period {
    begun: Instant,
    /// The longest time without a packet.
    longest: Duration,
    packets: u64,
    /// Packets with the other value.
    others: u64,
}

impl Spin {
    /// Takes a packet; `handshake` is the round trip of the handshake, `interval` the time between two samples.
    ///
    /// A change that comes within half of it is of packets that were reordered. A time of which more than half passed
    /// without a packet is one of an application without data.
    pub fn take(
        &mut self,
        now: Instant,
        spin: bool,
        handshake: Option<Duration>,
        interval: Duration,
    ) {
        let Some(trip) = handshake else {
            return;
        };
        let quiet = self
            .last
            .map_or(Duration::ZERO, |t| now.saturating_since(t));
        self.last = Some(now);
        let is_other = *self.value.get_or_insert(spin) != spin;
        if let Some(period) = &mut self.period {
            period.longest = period.longest.max(quiet);
            if !is_other || now.saturating_since(period.begun) < trip / 2 {
                period.packets += 1;
                period.others += u64::from(is_other);
                return;
            }
        } else if !is_other {
            return;
        }
        self.value = Some(spin);
        let begins = Period {
            begun: now,
            longest: Duration::ZERO,
            packets: 1,
            others: 0,
        };
        if let Some(ended) = self.period.replace(begins) {
            self.judge(now, &ended, interval);
        }
    }

    fn judge(&mut self, now: Instant, ended: &Period, interval: Duration) {
        let took = now.saturating_since(ended.begun);
        if ended.longest > took / 2 {
            return;
        }
        if ended.packets < LEAST_PACKETS || ended.others * MOST_OTHERS > ended.packets {
            self.doubtful += 1;
            return;
        }
        self.kept += 1;
        self.trips.record(took);
        let step = interval.as_nanos().max(1);
        let at = Instant::from_nanos(now.as_nanos().div_ceil(step) * step);
        let is_due = self.samples.last().is_none_or(|(last, _)| *last < at);
        if let Some(srtt) = self.trips.smoothed().filter(|_| is_due) {
            self.samples.push((at, srtt));
        }
    }

    /// Whether it spins. An end may set it by chance or leave it alone, and one of sixteen must (RFC 9000, section
    /// 17.4).
    pub const fn spins(&self) -> bool {
        self.kept >= LEAST && self.doubtful <= self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    const INTERVAL: Duration = Duration::from_millis(100);
    const TRIP: Option<Duration> = Some(Duration::from_millis(40));

    #[test]
    fn edges_are_round_trips_whatever_the_order_of_packets() {
        let mut spin = Spin::default();
        // A packet each ms, a change each 50; every tenth packet is 2 ms late.
        let mut packets: Vec<(u64, bool)> = (0..1_000)
            .map(|n: u64| (n * 1_000 + u64::from(n % 10 == 9) * 2_500, n / 50 % 2 == 1))
            .collect();
        packets.sort();
        packets
            .iter()
            .for_each(|(us, bit)| spin.take(at(*us), *bit, TRIP, INTERVAL));
        assert!(spin.spins() && spin.doubtful == 0, "{spin:?}");
        assert!(
            spin.samples.is_sorted() && spin.samples.len() == 10,
            "{:?}",
            spin.samples
        );
        let found = spin.trips.all.summary().unwrap();
        let ms = Duration::from_millis;
        assert!(found.min >= ms(47) && found.max <= ms(53), "{found:?}");
    }

    #[test]
    fn chance_is_no_spin_and_neither_is_rest() {
        for gap_us in [1_000, 4_000, 9_000, 15_000, 25_000] {
            let (mut spin, mut random) = (Spin::default(), 1u64);
            for n in 0..2_000u64 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                spin.take(at(n * gap_us), random >> 63 == 1, TRIP, INTERVAL);
            }
            assert!(!spin.spins(), "{gap_us}");
        }
        let mut still = Spin::default();
        (0..2_000).for_each(|n| still.take(at(n * 1_000), false, TRIP, INTERVAL));
        assert!(!still.spins());
        // A request each second: what passes between is no round trip.
        let mut idle = Spin::default();
        for n in 0..20u64 {
            idle.take(at(n * 1_000_000), n % 2 == 1, TRIP, INTERVAL);
        }
        assert!(!idle.spins());
    }
}

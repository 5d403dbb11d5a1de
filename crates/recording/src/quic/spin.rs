//! The spin bit: round trips of a connection whose packets are encrypted (RFC 9000 §17.4, RFC 9312 §3.8.2).

use gargalo_units::{Duration, Instant};

use crate::tcp::RoundTrips;

/// Least number of round trips by which a bit is taken for one that spins.
const LEAST: u64 = 3;

/// The spin bit in the packets of one direction.
#[derive(Debug, Default)]
pub struct Spin {
    value: Option<bool>,
    /// When it changed, and the longest time without a packet since.
    edge: Option<(Instant, Duration)>,
    last: Option<Instant>,
    /// Changes that came too early to be of another round trip.
    early: u64,
    kept: u64,
    /// Times between changes.
    pub trips: RoundTrips,
}

impl Spin {
    /// Takes a packet; `handshake` is the round trip of the handshake, if that was seen.
    ///
    /// A change that comes within half of it, or else within an eighth of the latest round trip, is of packets that were
    /// reordered. A time of which more than half passed without a packet is one of an application without data.
    pub fn take(&mut self, now: Instant, spin: bool, handshake: Option<Duration>) {
        let quiet = self
            .last
            .map_or(Duration::ZERO, |t| now.saturating_since(t));
        self.last = Some(now);
        if let Some((_, longest)) = &mut self.edge {
            *longest = (*longest).max(quiet);
        }
        let before = self.value.replace(spin);
        if before.is_none() || before == Some(spin) {
            return;
        }
        let Some((edge, longest)) = self.edge else {
            self.edge = Some((now, Duration::ZERO));
            return;
        };
        let took = now.saturating_since(edge);
        let least = match (handshake, self.trips.smoothed()) {
            (Some(trip), _) => trip / 2,
            (None, Some(trip)) => trip / 8,
            (None, None) => Duration::ZERO,
        };
        if took < least {
            self.early += 1;
            return;
        }
        if longest <= took / 2 {
            self.kept += 1;
            self.trips.record(took);
        }
        self.edge = Some((now, Duration::ZERO));
    }

    /// Whether it spins. An end may set it by chance or leave it alone, and one of sixteen must (RFC 9000, section 17.4).
    pub const fn spins(&self) -> bool {
        self.kept >= LEAST && self.early <= self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

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
            .for_each(|(us, bit)| spin.take(at(*us), *bit, TRIP));
        assert!(spin.spins() && spin.early > 0);
        let found = spin.trips.all.summary().unwrap();
        let ms = Duration::from_millis;
        assert!(found.min >= ms(47) && found.max <= ms(53), "{found:?}");
    }

    #[test]
    fn chance_is_no_spin_and_neither_is_rest() {
        let mut spin = Spin::default();
        for n in 0..2_000u64 {
            // A bit of a hash.
            let bit = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 1 == 1;
            spin.take(at(n * 1_000), bit, TRIP);
        }
        assert!(!spin.spins(), "{spin:?}");
        let mut still = Spin::default();
        (0..2_000).for_each(|n| still.take(at(n * 1_000), false, TRIP));
        assert!(!still.spins());
        // A request each second: what passes between is no round trip.
        let mut idle = Spin::default();
        for n in 0..20u64 {
            idle.take(at(n * 1_000_000), n % 2 == 1, TRIP);
        }
        assert!(!idle.spins());
    }
}

//! How many packets a sender sends at once.

use std::collections::BTreeMap;

use gargalo_units::Duration;

/// Bursts of more packets count as this many.
const MOST: u32 = 10_000;
/// Packets closer to each other than this share of an even spacing are of one burst.
const SHARE: f64 = 0.25;

/// Bursts by their lengths in packets.
#[derive(Debug, Default)]
pub struct Bursts {
    lengths: BTreeMap<u32, u64>,
    open: u32,
}

impl Bursts {
    /// Packets that are sent `gap` after those before, where an even spacing over the round trip has `even` between
    /// two.
    pub fn note(&mut self, packets: u32, gap: Option<Duration>, even: Option<Duration>) {
        match (gap, even) {
            (Some(gap), Some(even)) if gap < even.mul_f64(SHARE) => {
                self.open = self.open.saturating_add(packets).min(MOST);
            }
            _ => {
                self.end();
                self.open = packets.min(MOST);
            }
        }
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        if self.open > 0 {
            *self.lengths.entry(self.open).or_default() += 1;
            self.open = 0;
        }
    }

    /// The length of a burst up to which this share of all packets was sent.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let packets = |(length, count): (&u32, &u64)| u64::from(*length) * count;
        let all: u64 = self.lengths.iter().map(packets).sum();
        let mut before = 0;
        let mut lengths = self.lengths.iter();
        let found = lengths.find(|(length, count)| {
            before += packets((length, count));
            before as f64 >= share * all as f64
        });
        found.map(|(length, _)| u64::from(*length))
    }

    /// The longest.
    pub fn longest(&self) -> Option<u64> {
        let (length, _) = self.lengths.last_key_value()?;
        Some(u64::from(*length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_bursts_is_one_of_packets() {
        // 90 single packets, and one burst of 10 in which a tenth of all was sent.
        let mut bursts = Bursts::default();
        let (even, ms) = (Some(Duration::from_millis(4)), Duration::from_millis);
        (0..90).for_each(|_| bursts.note(1, Some(ms(4)), even));
        bursts.note(2, Some(ms(1)), even);
        (0..8).for_each(|_| bursts.note(1, Some(Duration::ZERO), even));
        bursts.end();
        assert_eq!(
            (bursts.quantile(0.5), bursts.quantile(0.95)),
            (Some(1), Some(10))
        );
        assert_eq!(bursts.longest(), Some(10));
        assert_eq!(
            (Bursts::default().quantile(0.5), Bursts::default().longest()),
            (None, None)
        );
    }
}

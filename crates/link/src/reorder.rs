//! Packets that change places after the queue.

use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use crate::chance::{Coin, split};
use crate::config::{ConfigError, probability};

/// Which packets leave their place in the order, and by how much.
///
/// While a link reorders, jitter may change the order too: nothing holds a packet back for an earlier
/// one.
#[derive(Clone, Debug, PartialEq)]
pub struct Reorder {
    /// Probability that a candidate is displaced, 0 to 1.
    pub probability: f64,
    /// Only every n-th packet is a candidate; 0 and 1 make every packet one (`gap` of netem).
    pub gap: u32,
    /// Lag-1 autocorrelation of the decision, 0 to 1. With this probability a decision repeats the
    /// last one, so that the share of displaced packets stays `probability` (netem's averaging of
    /// uniform numbers distorts it).
    pub correlation: f64,
    /// How far a packet is displaced.
    pub displacement: Displacement,
}

/// How far a displaced packet moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displacement {
    /// It arrives that much later, so that packets behind it overtake.
    Late(Duration),
    /// It arrives that much earlier, at most its whole propagation delay, and overtakes those before
    /// it; [`Duration::MAX`] is what netem does: no delay at all.
    Early(Duration),
}

impl Default for Reorder {
    /// No packet is displaced.
    fn default() -> Self {
        Self {
            probability: 0.0,
            gap: 0,
            correlation: 0.0,
            displacement: Displacement::Early(Duration::MAX),
        }
    }
}

impl Reorder {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        probability("reorder.probability", self.probability)?;
        probability("reorder.correlation", self.correlation)
    }
}

/// A [`Reorder`] at work.
#[derive(Clone, Debug)]
pub(crate) struct Reorderer {
    coin: Option<Coin>,
    repeat: Option<Coin>,
    last: bool,
    gap: u32,
    until_candidate: u32,
    displacement: Displacement,
}

impl Reorderer {
    pub(crate) fn new(config: &Reorder, mut rng: Pcg64) -> Self {
        let gap = config.gap.max(1);
        Self {
            coin: Coin::new(config.probability, split(&mut rng)),
            repeat: Coin::new(config.correlation, split(&mut rng)),
            last: false,
            gap,
            until_candidate: gap,
            displacement: config.displacement,
        }
    }

    /// The arrival of the next packet, which left at `departure` and would arrive at `arrival`.
    pub(crate) fn displace(&mut self, departure: Instant, arrival: Instant) -> Instant {
        self.until_candidate -= 1;
        if self.until_candidate > 0 {
            return arrival;
        }
        self.until_candidate = self.gap;
        let repeats = self.repeat.as_mut().is_some_and(Coin::throw);
        if !repeats {
            self.last = self.coin.as_mut().is_some_and(Coin::throw);
        }
        match (self.last, self.displacement) {
            (false, _) => arrival,
            (true, Displacement::Late(d)) => arrival + d,
            (true, Displacement::Early(d)) => (arrival - d).max(departure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn displaced(config: &Reorder, n: u32) -> Vec<bool> {
        let mut r = Reorderer::new(config, Pcg64::new(1, 1));
        let at = Instant::from_nanos(1000);
        (0..n)
            .map(|_| r.displace(Instant::ZERO, at) != at)
            .collect()
    }

    #[test]
    fn gap_makes_every_nth_packet_a_candidate() {
        let config = Reorder {
            probability: 1.0,
            gap: 4,
            ..Reorder::default()
        };
        let expected: Vec<_> = (1..=12).map(|i| i % 4 == 0).collect();
        assert_eq!(displaced(&config, 12), expected);
    }

    #[test]
    fn correlation_keeps_the_share_and_lengthens_runs() {
        let config = Reorder {
            probability: 0.2,
            correlation: 0.5,
            ..Reorder::default()
        };
        let n = 400_000;
        let d = displaced(&config, n);
        let hits = d.iter().filter(|x| **x).count() as f64;
        assert!((hits / f64::from(n) - 0.2).abs() < 0.01);
        let both = d.windows(2).filter(|w| w[0] && w[1]).count() as f64;
        // P(again | displaced) = c + (1 - c) p = 0.6.
        assert!((both / hits - 0.6).abs() < 0.02);
    }

    #[test]
    fn early_never_precedes_departure() {
        let config = Reorder {
            probability: 1.0,
            ..Reorder::default()
        };
        let mut r = Reorderer::new(&config, Pcg64::new(1, 1));
        let departure = Instant::from_nanos(500);
        assert_eq!(r.displace(departure, Instant::from_nanos(900)), departure);
    }
}

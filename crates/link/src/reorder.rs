//! Reordering of packets after the queue.

use gargalo_settings::{Error, Probability, settings};
use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use crate::chance::{Coin, split};

settings! {
    /// Packet reordering. While a link reorders, jitter may change the order too: no packet is delayed to arrive
    /// after an earlier one.
    pub struct Reorder: Copy as "Reorder", checked by Reorder::consistent {
        /// Probability that a packet is displaced.
        probability: f64 as Probability;
        /// Only every n-th packet may be displaced.
        gap: u32 = 1, in 1..;
        /// Probability that a decision repeats the last one; the share of displaced packets stays `probability`
        /// (netem's averaging of random numbers changes it).
        correlation: f64 as Probability = 0.0;
        /// A displaced packet arrives this much later, and packets behind it overtake it.
        late: Option<Duration> = None;
        /// A displaced packet arrives this much earlier. Default, if `late` is not given either: as early as
        /// possible, without propagation delay (as netem does).
        early: Option<Duration> = None;
    }
}

impl Reorder {
    /// Displaces each packet with this probability, independently, as early as possible.
    pub const fn new(probability: f64) -> Self {
        Self {
            probability,
            gap: 1,
            correlation: 0.0,
            late: None,
            early: None,
        }
    }

    fn consistent(&self) -> Result<(), Error> {
        if self.late.is_some() && self.early.is_some() {
            let message = "reorder has both late and early";
            return Err(Error::new(message).help("keep one of them"));
        }
        Ok(())
    }
}

/// The state of a [`Reorder`].
#[derive(Clone, Debug)]
pub(crate) struct Reorderer {
    coin: Option<Coin>,
    repeat: Option<Coin>,
    last: bool,
    until_candidate: u32,
    config: Reorder,
}

impl Reorderer {
    pub(crate) fn new(config: &Reorder, mut rng: Pcg64) -> Self {
        Self {
            coin: Coin::new(config.probability, split(&mut rng)),
            repeat: Coin::new(config.correlation, split(&mut rng)),
            last: false,
            until_candidate: config.gap,
            config: *config,
        }
    }

    /// The arrival of the next packet, which left at `departure` and would arrive at `arrival`.
    pub(crate) fn displace(&mut self, departure: Instant, arrival: Instant) -> Instant {
        self.until_candidate -= 1;
        if self.until_candidate > 0 {
            return arrival;
        }
        self.until_candidate = self.config.gap;
        let repeats = self.repeat.as_mut().is_some_and(Coin::throw);
        if !repeats {
            self.last = self.coin.as_mut().is_some_and(Coin::throw);
        }
        match (self.last, self.config.late, self.config.early) {
            (false, _, _) => arrival,
            (true, Some(late), _) => arrival + late,
            (true, None, early) => (arrival - early.unwrap_or(Duration::MAX)).max(departure),
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
            ..Reorder::new(0.0)
        };
        let expected: Vec<_> = (1..=12).map(|i| i % 4 == 0).collect();
        assert_eq!(displaced(&config, 12), expected);
    }

    #[test]
    fn correlation_keeps_the_share_and_lengthens_runs() {
        let config = Reorder {
            probability: 0.2,
            correlation: 0.5,
            ..Reorder::new(0.0)
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
            ..Reorder::new(0.0)
        };
        let mut r = Reorderer::new(&config, Pcg64::new(1, 1));
        let departure = Instant::from_nanos(500);
        assert_eq!(r.displace(departure, Instant::from_nanos(900)), departure);
    }
}

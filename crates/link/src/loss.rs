//! Packet loss on the medium, before the queue.

use gargalo_settings::{Error, Probability, kinds, settings};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::chance::{Coin, threshold};

kinds! {
    /// Packet loss that is not caused by congestion. Default: none.
    pub enum LossModel: Copy as "LossMap", checked by LossModel::possible {
        plain {
            /// Each packet is lost with this probability, independently.
            "independent" => Independent(f64 as Probability);
        }
        tables {
            /// Every n-th packet is lost: packets n, 2n, 3n and so on, counted from 1.
            "periodic" => Periodic(u64);
            /// Bursts: a two-state Markov chain.
            "gilbert-elliott" => GilbertElliott(GilbertElliott);
        }
    }
}

settings! {
    ///  A two-state Markov chain (Gilbert 1960, Elliott 1963), in the parameters of `tc`'s `loss gemodel`. It
    /// starts in
    /// the good state; each packet is judged in the current state, then the state changes. Loss in the long run:
    /// `(p * (1 - h) + r * (1 - k)) / (p + r)`; mean length of a stay in the bad state: `1 / r` packets. Gilbert's
    /// simple model is `h = 0, k = 1`.
    pub struct GilbertElliott: Copy as "GilbertElliott" {
        /// Probability of the transition from good to bad, per packet.
        p: f64 as Probability;
        /// Probability of the transition from bad to good, per packet.
        r: f64 as Probability;
        /// Probability that a packet survives in the bad state.
        h: f64 as Probability = 0.0;
        /// Probability that a packet survives in the good state.
        k: f64 as Probability = 1.0;
    }
}

impl Default for LossModel {
    fn default() -> Self {
        Self::NONE
    }
}

impl LossModel {
    /// The model that loses no packet.
    pub const NONE: Self = Self::Independent(0.0);

    /// The long-run loss ratio.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Independent(p) => p,
            Self::Periodic(n) => 1.0 / n as f64,
            Self::GilbertElliott(GilbertElliott { p, r, h, k }) if p + r > 0.0 => {
                (p * (1.0 - h) + r * (1.0 - k)) / (p + r)
            }
            // The chain never leaves the good state.
            Self::GilbertElliott(chain) => 1.0 - chain.k,
        }
    }

    fn possible(&self) -> Result<(), Error> {
        if *self == Self::Periodic(0) {
            let help = "give 1 or more; with 100 every 100th packet is lost";
            return Err(Error::of("periodic", "a period of 0 is not possible").help(help));
        }
        Ok(())
    }
}

/// The state of a loss model.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    None,
    Independent(Coin),
    Periodic { n: u64, left: u64 },
    GilbertElliott(Chain),
}

#[derive(Clone, Debug)]
pub(crate) struct Chain {
    bad: bool,
    to_bad: Option<u64>,
    to_good: Option<u64>,
    loss_good: Option<u64>,
    loss_bad: Option<u64>,
    rng: Pcg64,
}

impl Loss {
    pub(crate) fn new(model: &LossModel, rng: Pcg64) -> Self {
        match *model {
            LossModel::Independent(p) => Coin::new(p, rng).map_or(Self::None, Self::Independent),
            LossModel::Periodic(n) => Self::Periodic { n, left: n },
            LossModel::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                let some = |p: f64| (p > 0.0).then(|| threshold(p));
                Self::GilbertElliott(Chain {
                    bad: false,
                    to_bad: some(p),
                    to_good: some(r),
                    loss_good: some(1.0 - k),
                    loss_bad: some(1.0 - h),
                    rng,
                })
            }
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Independent(coin) => coin.throw(),
            Self::Periodic { n, left } => {
                *left -= 1;
                let lost = *left == 0;
                if lost {
                    *left = *n;
                }
                lost
            }
            Self::GilbertElliott(chain) => chain.next(),
        }
    }
}

impl Chain {
    fn next(&mut self) -> bool {
        let (loss, change) = if self.bad {
            (self.loss_bad, self.to_good)
        } else {
            (self.loss_good, self.to_bad)
        };
        // Two draws per packet whatever the parameters: a changed parameter does not shift the sequence of draws.
        let (a, b) = (self.rng.next_u64(), self.rng.next_u64());
        self.bad ^= change.is_some_and(|t| b <= t);
        loss.is_some_and(|t| a <= t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_settings::Setting;

    fn losses(model: &LossModel, n: usize) -> Vec<bool> {
        model.check().unwrap();
        let mut loss = Loss::new(model, Pcg64::new(5, 5));
        (0..n).map(|_| loss.next()).collect()
    }

    #[test]
    fn periodic_loses_every_nth() {
        let lost = losses(&LossModel::Periodic(3), 9);
        let expected: Vec<_> = (1..=9).map(|i| i % 3 == 0).collect();
        assert_eq!(lost, expected);
        assert!(losses(&LossModel::Periodic(1), 5).iter().all(|l| *l));
    }

    #[test]
    fn gilbert_elliott_has_its_loss_rate_and_burst_length() {
        let model = LossModel::GilbertElliott(GilbertElliott {
            p: 0.01,
            r: 0.2,
            h: 0.0,
            k: 1.0,
        });
        let n = 1_000_000;
        let lost = losses(&model, n);
        let count = lost.iter().filter(|l| **l).count();
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count();
        let rate = count as f64 / n as f64;
        assert!((model.mean() - 0.01 / 0.21).abs() < 1e-12);
        assert!((rate / model.mean() - 1.0).abs() < 0.05, "{rate}");
        // Mean burst: 1 / r = 5 packets.
        let burst = count as f64 / bursts as f64;
        assert!((burst - 5.0).abs() < 0.2, "{burst}");
    }

    #[test]
    fn gilbert_elliott_starts_in_the_good_state() {
        let model = LossModel::GilbertElliott(GilbertElliott {
            p: 0.0,
            r: 0.0,
            h: 0.0,
            k: 1.0,
        });
        assert_eq!(model.mean(), 0.0);
        assert!(losses(&model, 1000).iter().all(|l| !l));
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states() {
        let model = LossModel::GilbertElliott(GilbertElliott {
            p: 0.1,
            r: 0.1,
            h: 0.5,
            k: 0.9,
        });
        let n = 400_000;
        let rate = losses(&model, n).iter().filter(|l| **l).count() as f64 / n as f64;
        assert!((rate - 0.3).abs() < 0.01, "{rate}");
    }

    #[test]
    fn nonsense_is_refused() {
        for model in [
            LossModel::Independent(1.5),
            LossModel::Independent(-0.1),
            LossModel::Independent(f64::NAN),
            LossModel::Periodic(0),
        ] {
            assert!(model.check().is_err(), "{model:?}");
        }
    }
}

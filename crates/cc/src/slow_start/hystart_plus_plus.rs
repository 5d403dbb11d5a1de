//! HyStartPlusPlus++ (RFC 9406): leaves slow start when the round-trip time rises, through a phase of
//! conservative slow start (CSS) that distinguishes a filling queue from jitter.

use gargalo_units::Duration;

use super::Growth;
use crate::event::Acked;

/// The constants of RFC 9406 §4.3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartPlusPlusParams {
    /// MIN_RTT_THRESH: the least rise that counts.
    pub min_rtt_thresh: Duration,
    /// MAX_RTT_THRESH: the rise that always counts.
    pub max_rtt_thresh: Duration,
    /// MIN_RTT_DIVISOR: the rise that counts is this fraction of the round-trip time.
    pub min_rtt_divisor: u64,
    /// N_RTT_SAMPLE: samples needed in a round.
    pub samples: u32,
    /// CSS_GROWTH_DIVISOR: conservative slow start grows by this fraction of slow start.
    pub css_growth_divisor: u64,
    /// CSS_ROUNDS: rounds of conservative slow start before congestion avoidance.
    pub css_rounds: u32,
}

impl HyStartPlusPlusParams {
    /// The values RFC 9406 §4.3 recommends.
    pub const DEFAULT: Self = Self {
        min_rtt_thresh: Duration::from_millis(4),
        max_rtt_thresh: Duration::from_millis(16),
        min_rtt_divisor: 8,
        samples: 8,
        css_growth_divisor: 4,
        css_rounds: 5,
    };
}

impl Default for HyStartPlusPlusParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The state machine of RFC 9406 §4.2. `Duration::MAX` stands for the RFC's infinity.
#[derive(Clone, Copy, Debug)]
pub struct HyStartPlusPlus {
    params: HyStartPlusPlusParams,
    last_round_min: Duration,
    current_round_min: Duration,
    samples: u32,
    css: Option<Css>,
}

#[derive(Clone, Copy, Debug)]
struct Css {
    baseline_min: Duration,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// At the start of the connection.
    pub fn new(params: HyStartPlusPlusParams) -> Self {
        Self {
            params,
            last_round_min: Duration::MAX,
            current_round_min: Duration::MAX,
            samples: 0,
            css: None,
        }
    }

    /// Whether conservative slow start is in force.
    pub fn is_conservative(&self) -> bool {
        self.css.is_some()
    }

    /// Observes an acknowledgement received in slow start.
    pub fn on_ack(&mut self, ack: &Acked) -> Growth {
        if ack.round_start {
            self.last_round_min = self.current_round_min;
            self.current_round_min = Duration::MAX;
            self.samples = 0;
            if let Some(css) = &mut self.css {
                // A partial round counts: the first round start already completes one.
                css.rounds += 1;
                if css.rounds >= self.params.css_rounds {
                    return Growth::Exit;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min = self.current_round_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if self.samples >= self.params.samples {
            match self.css {
                None => {
                    if self.delay_rose() {
                        self.css = Some(Css {
                            baseline_min: self.current_round_min,
                            rounds: 0,
                        });
                    }
                }
                // The rise was jitter: resume slow start.
                Some(css) if self.current_round_min < css.baseline_min => self.css = None,
                Some(_) => {}
            }
        }
        Growth::Divided(match self.css {
            Some(_) => self.params.css_growth_divisor,
            None => 1,
        })
    }

    fn delay_rose(&self) -> bool {
        if self.last_round_min == Duration::MAX || self.current_round_min == Duration::MAX {
            return false;
        }
        let threshold = (self.last_round_min / self.params.min_rtt_divisor.max(1))
            .min(self.params.max_rtt_thresh)
            .max(self.params.min_rtt_thresh);
        self.current_round_min >= self.last_round_min + threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// One round of `n` samples of `rtt`; the growth after the last.
    fn round(h: &mut HyStartPlusPlus, n: u32, rtt: Duration) -> Growth {
        let mut g = Growth::Divided(1);
        for i in 0..n {
            g = h.on_ack(&Acked {
                rtt: Some(rtt),
                round_start: i == 0,
                ..ack(1000)
            });
            if g == Growth::Exit {
                break;
            }
        }
        g
    }

    #[test]
    fn threshold_is_an_eighth_between_4_and_16_ms() {
        // (last round's minimum, least rise that triggers), in microseconds.
        for (base, rise) in [
            (8_000, 4_000),
            (32_000, 4_000),
            (64_000, 8_000),
            (128_000, 16_000),
            (400_000, 16_000),
        ] {
            let base = Duration::from_micros(base);
            let rise = Duration::from_micros(rise);
            let mut h = HyStartPlusPlus::new(HyStartPlusPlusParams::DEFAULT);
            round(&mut h, 8, base);
            round(&mut h, 8, base + rise - Duration::from_nanos(1));
            assert!(!h.is_conservative(), "{base} + less than {rise}");
            let mut h = HyStartPlusPlus::new(HyStartPlusPlusParams::DEFAULT);
            round(&mut h, 8, base);
            assert_eq!(round(&mut h, 8, base + rise), Growth::Divided(4));
            assert!(h.is_conservative(), "{base} + {rise}");
        }
    }

    #[test]
    fn needs_eight_samples_in_the_round() {
        let mut h = HyStartPlusPlus::new(HyStartPlusPlusParams::DEFAULT);
        round(&mut h, 8, ms(50));
        round(&mut h, 7, ms(90));
        assert!(!h.is_conservative());
    }

    #[test]
    fn five_rounds_of_css_end_slow_start() {
        let mut h = HyStartPlusPlus::new(HyStartPlusPlusParams::DEFAULT);
        round(&mut h, 8, ms(50));
        round(&mut h, 8, ms(60)); // enters in the middle of this round, which counts
        for _ in 0..4 {
            assert_eq!(round(&mut h, 8, ms(60)), Growth::Divided(4));
        }
        assert_eq!(round(&mut h, 8, ms(60)), Growth::Exit);
    }

    #[test]
    fn a_lower_rtt_during_css_resumes_slow_start() {
        let mut h = HyStartPlusPlus::new(HyStartPlusPlusParams::DEFAULT);
        round(&mut h, 8, ms(50));
        round(&mut h, 8, ms(60));
        assert!(h.is_conservative());
        assert_eq!(round(&mut h, 7, ms(55)), Growth::Divided(4));
        assert_eq!(round(&mut h, 8, ms(55)), Growth::Divided(1));
        assert!(!h.is_conservative());
    }
}

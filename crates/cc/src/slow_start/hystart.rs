//! Hybrid slow start (Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55,
//! 2011): leaves slow start when a train of closely spaced acknowledgements has become as long as the
//! forward path, or when the round-trip time has risen.
//!
//! The constants are those in use today: the rise of delay between 4 and 16 ms, no search below 16
//! segments.

use gargalo_units::{Duration, Instant};

use super::Growth;
use crate::event::Acked;

/// Constants of hybrid slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartParams {
    /// Window below which there is no search, in segments.
    pub low_window: f64,
    /// Acknowledgements at most this far apart belong to one train.
    pub ack_delta: Duration,
    /// Samples of the round-trip time needed at the beginning of a round.
    pub samples: u32,
    /// Least rise of the round-trip time that counts.
    pub min_rise: Duration,
    /// Rise that always counts.
    pub max_rise: Duration,
}

impl HyStartParams {
    /// The values in common use.
    pub const DEFAULT: Self = Self {
        low_window: 16.0,
        ack_delta: Duration::from_millis(2),
        samples: 8,
        min_rise: Duration::from_millis(4),
        max_rise: Duration::from_millis(16),
    };
}

impl Default for HyStartParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The two searches, run round by round.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    params: HyStartParams,
    /// Least round-trip time so far.
    min_rtt: Duration,
    /// Least of the first samples of this round.
    round_rtt: Duration,
    samples: u32,
    round_started: Option<Instant>,
    /// The end of this round's train so far; `None` once it has broken.
    train_end: Option<Instant>,
}

impl HyStart {
    /// At the start of the connection.
    pub fn new(params: HyStartParams) -> Self {
        Self {
            params,
            min_rtt: Duration::MAX,
            round_rtt: Duration::MAX,
            samples: 0,
            round_started: None,
            train_end: None,
        }
    }

    /// Observes an acknowledgement received in slow start.
    pub fn on_ack(&mut self, ack: &Acked, cwnd: f64) -> Growth {
        if let Some(rtt) = ack.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        if ack.round_start || self.round_started.is_none() {
            self.round_started = Some(ack.now);
            self.train_end = Some(ack.now);
            self.round_rtt = Duration::MAX;
            self.samples = 0;
        }
        if cwnd >= self.params.low_window && (self.train_is_long(ack) || self.delay_rose(ack)) {
            Growth::Exit
        } else {
            Growth::Divided(1)
        }
    }

    /// §4.1: the train is as long as half the minimum round-trip time, the forward delay.
    fn train_is_long(&mut self, ack: &Acked) -> bool {
        let (Some(started), Some(end)) = (self.round_started, self.train_end) else {
            return false;
        };
        if ack.now - end > self.params.ack_delta {
            self.train_end = None;
            return false;
        }
        self.train_end = Some(ack.now);
        self.min_rtt != Duration::MAX && ack.now - started >= self.min_rtt / 2
    }

    /// §4.2: the first samples of the round are all above the minimum by an eighth of it.
    fn delay_rose(&mut self, ack: &Acked) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        if self.samples < self.params.samples {
            self.round_rtt = self.round_rtt.min(rtt);
            self.samples += 1;
        }
        let rise = (self.min_rtt / 8)
            .max(self.params.min_rise)
            .min(self.params.max_rise);
        self.samples >= self.params.samples && self.round_rtt >= self.min_rtt + rise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    fn ms(n: f64) -> Duration {
        Duration::from_secs_f64(n / 1e3)
    }

    /// A round of `n` acknowledgements `spacing` apart, from `start` on.
    fn round(h: &mut HyStart, start: f64, n: u32, spacing: f64, rtt: f64, cwnd: f64) -> Growth {
        for i in 0..n {
            let growth = h.on_ack(
                &Acked {
                    now: Instant::ZERO + ms(start + spacing * f64::from(i)),
                    rtt: Some(ms(rtt)),
                    round_start: i == 0,
                    ..ack(1000)
                },
                cwnd,
            );
            if growth == Growth::Exit {
                return growth;
            }
        }
        Growth::Divided(1)
    }

    #[test]
    fn a_train_of_half_the_round_trip_ends_it() {
        // 100 ms: a train of 25 acknowledgements 2 ms apart lasts 48 ms, of 26 it lasts 50.
        let mut h = HyStart::new(HyStartParams::DEFAULT);
        assert_eq!(round(&mut h, 0.0, 25, 2.0, 100.0, 50.0), Growth::Divided(1));
        assert_eq!(round(&mut h, 100.0, 26, 2.0, 100.0, 50.0), Growth::Exit);
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let mut h = HyStart::new(HyStartParams::DEFAULT);
        assert_eq!(round(&mut h, 0.0, 40, 2.1, 100.0, 50.0), Growth::Divided(1));
    }

    #[test]
    fn a_rise_of_an_eighth_ends_it_after_eight_samples() {
        for (rtt, rise) in [(20.0, 4.0), (80.0, 10.0), (200.0, 16.0)] {
            let mut h = HyStart::new(HyStartParams::DEFAULT);
            round(&mut h, 0.0, 8, 3.0, rtt, 50.0);
            assert_eq!(
                round(&mut h, 300.0, 8, 3.0, rtt + rise - 0.1, 50.0),
                Growth::Divided(1)
            );
            assert_eq!(
                round(&mut h, 600.0, 7, 3.0, rtt + rise, 50.0),
                Growth::Divided(1)
            );
            assert_eq!(round(&mut h, 900.0, 8, 3.0, rtt + rise, 50.0), Growth::Exit);
        }
    }

    #[test]
    fn nothing_is_searched_for_below_16_segments() {
        let mut h = HyStart::new(HyStartParams::DEFAULT);
        round(&mut h, 0.0, 8, 1.0, 20.0, 10.0);
        assert_eq!(round(&mut h, 50.0, 40, 1.0, 90.0, 15.0), Growth::Divided(1));
    }
}

//! Round-trip times per round and the backlog derived from them, for delay-based algorithms.
//!
//! A window of w segments whose packets took `rtt` where `base` is the time without queues moves
//! w/rtt segments a second; w · base/rtt of them are on the wire and the rest waits in queues.

use gargalo_units::{Bytes, Duration};

use crate::event::Acked;
use crate::path::Path;
use crate::window::Window;

/// The measurements of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// Least round-trip time of the connection.
    pub base: Duration,
    /// Least round-trip time of the round: a delayed acknowledgement or a burst of one's own does not
    /// look like a queue.
    pub rtt: Duration,
    /// Round-trip samples in the round.
    pub samples: u32,
    /// The window in segments that was in force when the first packets acknowledged in this round
    /// were sent.
    pub cwnd: f64,
}

impl Round {
    /// Segments on the wire: cwnd · base/rtt.
    pub fn pipe(&self) -> f64 {
        self.cwnd - self.backlog()
    }

    /// Segments in queues: cwnd · (rtt - base)/rtt.
    pub fn backlog(&self) -> f64 {
        backlog(self.cwnd, self.base, self.rtt)
    }

    /// rtt - base.
    pub fn queueing(&self) -> Duration {
        self.rtt.saturating_sub(self.base)
    }
}

/// Segments of a window of `cwnd` that wait in queues: cwnd · (rtt - base)/rtt.
#[inline]
pub(super) fn backlog(cwnd: f64, base: Duration, rtt: Duration) -> f64 {
    if rtt <= base {
        return 0.0;
    }
    cwnd * ((rtt - base).as_nanos() as f64 / rtt.as_nanos() as f64)
}

/// Collects samples until a round ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundRtt {
    rtt: Duration,
    samples: u32,
    /// cwnd when this round began: its packets are acknowledged in the next one.
    window: Bytes,
    /// cwnd when the round before began.
    sent_under: Bytes,
    /// Rounds still to come that acknowledge packets sent before the window jumped.
    stale: u32,
}

impl RoundRtt {
    /// Before the first acknowledgement.
    pub fn new(window: Bytes) -> Self {
        Self {
            rtt: Duration::MAX,
            samples: 0,
            window,
            sent_under: window,
            stale: 0,
        }
    }

    /// Processes the sample of an acknowledgement; returns the measurements of the round if it ends with this one
    /// and had samples.
    #[inline]
    pub fn observe(&mut self, window: &Window, ack: &Acked, path: &Path<'_>) -> Option<Round> {
        if let Some(rtt) = ack.rtt {
            self.rtt = self.rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if !ack.round_start {
            return None;
        }
        let round = self.so_far(window, path);
        self.stale = self.stale.saturating_sub(1);
        self.sent_under = self.window;
        self.window = window.cwnd();
        self.rtt = Duration::MAX;
        self.samples = 0;
        round
    }

    /// The measurements of the current round so far; `None` before its first sample.
    pub fn so_far(&self, window: &Window, path: &Path<'_>) -> Option<Round> {
        (self.samples > 0 && self.stale == 0).then(|| Round {
            base: path.min_rtt.unwrap_or(self.rtt).min(self.rtt),
            rtt: self.rtt,
            samples: self.samples,
            cwnd: self.sent_under.as_f64() / window.mss().as_f64(),
        })
    }

    /// The window has jumped to `window`: earlier samples do not apply to it, nor do those of this round and the
    /// next, whose packets were sent before.
    pub fn restart(&mut self, window: Bytes) {
        *self = Self {
            stale: 2,
            ..Self::new(window)
        };
    }
}

/// Sets a window computed from delay, at least `floor` segments, without returning to slow start.
pub(super) fn settle(window: &mut Window, segments: f64, floor: f64) {
    window.set_cwnd(Bytes::from_f64(segments.max(floor) * window.mss().as_f64()));
    if window.in_slow_start() {
        window.exit_slow_start();
    }
}

/// A bottleneck in rounds for the unit tests of delay-based algorithms.
#[cfg(test)]
pub(super) mod bench {
    use gargalo_units::{Duration, Instant};

    use crate::Controller;
    use crate::event::Acked;
    use crate::testing::{MSS, ack, path};

    /// A path of `pipe` segments (rate times base) with an endless queue.
    #[derive(Debug)]
    pub struct Bottleneck {
        pub base: Duration,
        /// The minimum round-trip time that the controller gets.
        pub believed: Duration,
        pub pipe: f64,
        pub now: Instant,
        /// The window whose packets are acknowledged in the next round.
        sent: f64,
    }

    impl Bottleneck {
        pub fn new(base: Duration, pipe: f64) -> Self {
            Self {
                base,
                believed: base,
                pipe,
                now: Instant::ZERO,
                sent: 0.0,
            }
        }

        /// The round-trip time of packets sent while `window` segments were in flight.
        pub fn rtt(&self, window: f64) -> Duration {
            self.base.mul_f64((window / self.pipe).max(1.0))
        }

        /// Runs rounds, every segment acknowledged on its own; the backlog after them in segments.
        pub fn run(&mut self, c: &mut dyn Controller, rounds: u32) -> f64 {
            let segments = |c: &dyn Controller| c.cwnd().as_f64() / MSS.as_f64();
            for _ in 0..rounds {
                let acknowledged = if self.sent == 0.0 {
                    segments(c)
                } else {
                    self.sent
                };
                self.sent = segments(c);
                let rtt = self.rtt(acknowledged);
                let view = crate::Path {
                    min_rtt: Some(self.believed),
                    srtt: Some(rtt),
                    ..path(rtt)
                };
                let n = acknowledged.max(1.0) as u64;
                for i in 1..=n {
                    let one = Acked {
                        now: self.now + rtt * i / n,
                        rtt: Some(rtt),
                        in_flight_before: c.cwnd(),
                        in_flight: c.cwnd() - MSS,
                        round_start: i == n,
                        ..ack(MSS.get())
                    };
                    c.on_ack(&one, &view);
                }
                self.now += rtt;
            }
            segments(c) - self.pipe
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, ack, init, path};
    use crate::window::WindowParams;

    #[test]
    fn backlog_of_a_window() {
        // 30 segments, 100 ms of which 20 ms in a queue: 24 on the wire, 6 waiting.
        let round = Round {
            base: Duration::from_millis(80),
            rtt: Duration::from_millis(100),
            samples: 30,
            cwnd: 30.0,
        };
        assert!((round.backlog() - 6.0).abs() < 1e-12);
        assert!((round.pipe() - 24.0).abs() < 1e-12);
        assert_eq!(round.queueing(), Duration::from_millis(20));
        assert_eq!(backlog(30.0, Duration::ZERO, Duration::ZERO), 0.0);
    }

    #[test]
    fn a_round_has_the_least_of_its_samples_and_the_window_its_packets_were_sent_under() {
        let mut window = Window::new(&init(), WindowParams::DEFAULT);
        let mut rounds = RoundRtt::new(window.cwnd());
        let view = path(Duration::from_millis(50));
        let sample = |ms, round_start| Acked {
            rtt: Some(Duration::from_millis(ms)),
            round_start,
            ..ack(MSS.get())
        };
        assert!(rounds.observe(&window, &sample(70, false), &view).is_none());
        window.set_cwnd(MSS * 20);
        let first = rounds.observe(&window, &sample(60, true), &view).unwrap();
        assert_eq!(
            (first.rtt.as_millis(), first.samples, first.cwnd),
            (60, 2, 10.0)
        );
        window.set_cwnd(MSS * 40);
        let second = rounds.observe(&window, &sample(90, true), &view).unwrap();
        // Sent while the first round lasted, which began with 10 segments.
        assert_eq!(
            (second.rtt.as_millis(), second.samples, second.cwnd),
            (90, 1, 10.0)
        );
        let third = rounds.observe(&window, &sample(90, true), &view).unwrap();
        assert_eq!(third.cwnd, 20.0);
        assert!(
            rounds
                .observe(
                    &window,
                    &Acked {
                        rtt: None,
                        ..sample(1, true)
                    },
                    &view
                )
                .is_none()
        );
    }
}

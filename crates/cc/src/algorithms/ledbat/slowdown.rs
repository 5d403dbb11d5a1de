//! The slowdowns of LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus §4.4): two round trips with two segments, in which
//! the queue empties and the base delay is measured, then slow start to the old window.

use gargalo_units::{Duration, Instant};

/// Slowdowns are this many times their own length apart, so that they cost a tenth at most.
const APART: u64 = 9;
/// Round trips with two segments, and between slow start and the first slowdown.
const ROUNDS: u64 = 2;

/// The phase of the cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slowdown {
    /// The initial slow start has not ended.
    Starting,
    /// The next slowdown begins then.
    Due(Instant),
    /// The window is two segments.
    Low { began: Instant, until: Instant },
    /// Slow start towards the old window.
    Ramp { began: Instant },
}

/// The action for the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// The window is left unchanged.
    None,
    /// Save the window and reduce it to two segments.
    Enter,
}

impl Slowdown {
    /// Advances the cycle to `now`; `starting`: slow start is active.
    pub fn step(&mut self, now: Instant, rtt: Duration, starting: bool) -> Step {
        match *self {
            Self::Starting if !starting => *self = Self::Due(now + rtt * ROUNDS),
            Self::Due(at) if now >= at && !starting => {
                *self = Self::Low {
                    began: now,
                    until: now + rtt * ROUNDS,
                };
                return Step::Enter;
            }
            Self::Low { began, until } if now >= until => *self = Self::Ramp { began },
            Self::Ramp { began } if !starting => *self = Self::Due(now + (now - began) * APART),
            _ => {}
        }
        Step::None
    }

    /// The window is held at two segments.
    pub fn is_low(&self) -> bool {
        matches!(self, Self::Low { .. })
    }

    /// Congestion ends a slowdown: its target window is discarded.
    pub fn interrupt(&mut self, now: Instant) {
        if let Self::Low { began, .. } | Self::Ramp { began } = *self {
            *self = Self::Due(now + (now - began) * APART);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_cycle() {
        let mut s = Slowdown::Starting;
        assert_eq!(s.step(at(500), RTT, true), Step::None);
        assert_eq!(s.step(at(1000), RTT, false), Step::None);
        assert_eq!(s, Slowdown::Due(at(1200))); // two round trips after slow start
        assert_eq!(s.step(at(1199), RTT, false), Step::None);
        assert_eq!(s.step(at(1200), RTT, false), Step::Enter);
        assert!(s.is_low());
        assert_eq!(s.step(at(1399), RTT, true), Step::None);
        assert!(s.is_low());
        s.step(at(1400), RTT, true);
        assert!(!s.is_low());
        s.step(at(1700), RTT, false); // the old window is reached after 500 ms
        assert_eq!(s, Slowdown::Due(at(1700 + 9 * 500)));
    }

    #[test]
    fn congestion_ends_it() {
        let mut s = Slowdown::Low {
            began: at(0),
            until: at(200),
        };
        s.interrupt(at(100));
        assert_eq!(s, Slowdown::Due(at(1000)));
        s.interrupt(at(200));
        assert_eq!(s, Slowdown::Due(at(1000)));
    }
}

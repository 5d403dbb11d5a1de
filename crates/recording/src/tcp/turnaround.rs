//! How soon an end answers what has passed a place on its way there: by the timestamps that its packets echo (RFC 7323;
//! Strowes, "Passively measuring TCP round-trip times", 2013).

use std::collections::VecDeque;

use gargalo_units::{Duration, Instant};
use gargalo_wire::tcp::Timestamps;

/// Most values that are remembered.
const MOST: usize = 64;

/// The answers of an end.
#[derive(Debug, Default)]
pub struct Turnaround {
    /// Values on their way to it, and when they passed first.
    pending: VecDeque<(u32, Instant)>,
    /// The least time from there to an echo.
    pub least: Option<Duration>,
}

impl Turnaround {
    /// A packet to the end passes.
    pub fn on_packet(&mut self, now: Instant, stamps: Timestamps) {
        let is_new = self
            .pending
            .back()
            .is_none_or(|(value, _)| is_after(stamps.value, *value));
        if !is_new {
            return;
        }
        if self.pending.len() == MOST {
            self.pending.pop_front();
        }
        self.pending.push_back((stamps.value, now));
    }

    /// A packet of the end passes.
    pub fn on_answer(&mut self, now: Instant, stamps: Timestamps) {
        while let Some((value, passed)) = self.pending.front().copied()
            && !is_after(value, stamps.echo)
        {
            self.pending.pop_front();
            if value == stamps.echo {
                let took = now.saturating_since(passed);
                self.least = Some(self.least.map_or(took, |least| least.min(took)));
            }
        }
    }
}

/// Whether a value is later than another one (RFC 7323, section 5.2).
const fn is_after(value: u32, other: u32) -> bool {
    value != other && value.wrapping_sub(other) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn the_soonest_echo_counts_and_what_is_passed_over_does_not() {
        let of = |value, echo| Timestamps { value, echo };
        let mut end = Turnaround::default();
        end.on_answer(at(0), of(1, 0));
        assert_eq!(end.least, None);
        end.on_packet(at(10), of(u32::MAX, 0));
        // The same value again is the first one's.
        end.on_packet(at(20), of(u32::MAX, 0));
        end.on_answer(at(50), of(2, u32::MAX));
        assert_eq!(end.least, Some(Duration::from_micros(40)));
        end.on_packet(at(60), of(1, 0));
        end.on_packet(at(70), of(5, 0));
        end.on_answer(at(75), of(3, 5));
        assert_eq!(end.least, Some(Duration::from_micros(5)));
        // An echo of before is none of what is on its way.
        end.on_packet(at(80), of(9, 0));
        end.on_answer(at(81), of(3, 5));
        assert_eq!(end.least, Some(Duration::from_micros(5)));
        for n in 0..1_000 {
            end.on_packet(at(100), of(10 + n, 0));
        }
        assert_eq!(end.pending.len(), MOST);
    }
}

//! The window of a run in which rates, ratios and distributions are measured.

use std::mem::take;
use std::ops::Sub;

use gargalo_trace::Quantiles;
use gargalo_units::{Instant, SenderCounters};

use gargalo_workload::wire::WireBytes;

/// The counts from which rates and ratios of a flow or subflow are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Bytes that the receiving application read; for a subflow, bytes that reached the peer.
    pub delivered: u64,
    /// What the sender counted.
    pub sender: SenderCounters,
    /// Bytes on the wire, IP headers included.
    pub wire: WireBytes,
}

impl Sub for Counts {
    type Output = Self;
    /// The difference to the counts `before`. It saturates: a receiver may have counted before its sender.
    fn sub(self, before: Self) -> Self {
        Self {
            delivered: self.delivered.saturating_sub(before.delivered),
            sender: self.sender - before.sender,
            wire: self.wire - before.wire,
        }
    }
}

/// An edge of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The window begins.
    From,
    /// The window ends.
    Until,
}

/// The requested window, and the progress of the run in it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    asked: Option<(Instant, Instant)>,
    passed: Option<Edge>,
}

impl Window {
    /// Creates the window at the start of a run; `None` is the whole run.
    pub const fn new(asked: Option<(Instant, Instant)>) -> Self {
        Self {
            asked,
            passed: None,
        }
    }

    /// The next edge, and when it comes.
    #[inline]
    pub const fn next(&self) -> Option<(Edge, Instant)> {
        match (self.asked, self.passed) {
            (Some((from, _)), None) => Some((Edge::From, from)),
            (Some((_, until)), Some(Edge::From)) => Some((Edge::Until, until)),
            _ => None,
        }
    }

    /// Passes an edge at this instant, which in real time may be later than requested.
    pub fn pass(&mut self, edge: Edge, at: Instant) {
        self.passed = Some(edge);
        if let Some(asked) = &mut self.asked {
            match edge {
                Edge::From => asked.0 = at,
                Edge::Until => asked.1 = at,
            }
        }
    }

    /// Whether the window has begun.
    pub fn has_begun(&self) -> bool {
        self.asked.is_none() || self.passed.is_some()
    }

    /// Whether a flow that began at `begun` and ends now has no part in the window.
    fn misses(&self, begun: Instant) -> bool {
        match (self.asked, self.passed) {
            (None, _) | (_, Some(Edge::From)) => false,
            (Some(_), None) => true,
            (Some((_, until)), Some(Edge::Until)) => begun >= until,
        }
    }

    /// The part of the window that a run covered that ends at `end`; `None`: no window was requested.
    pub fn had(&self, end: Instant) -> Option<(Instant, Instant)> {
        let (from, until) = self.asked?;
        Some((from, until.min(end).max(from)))
    }
}

/// Counts of a flow or subflow at the edges of the window that have passed.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    // Most flows never have either.
    from: Option<Box<Counts>>,
    until: Option<Box<(Counts, Quantiles)>>,
}

impl Marks {
    /// Takes the counts at an edge. The round-trip samples start anew.
    pub fn mark(&mut self, edge: Edge, counts: Counts, rtt: &mut Quantiles) {
        let rtt = take(rtt);
        match edge {
            Edge::From => self.from = Some(Box::new(counts)),
            Edge::Until => self.until = Some(Box::new((counts, rtt))),
        }
    }

    /// Sets what had been sent at an edge that has passed.
    pub fn sent_at(&mut self, edge: Edge, sent: Counts) {
        let counts = match edge {
            Edge::From => self.from.as_deref_mut(),
            Edge::Until => self.until.as_deref_mut().map(|(counts, _)| counts),
        };
        if let Some(counts) = counts {
            let delivered = counts.delivered;
            *counts = Counts { delivered, ..sent };
        }
    }

    /// The counts inside the window of a flow that began at `begun` and ends now with `counts`. Its round-trip samples
    /// since the last edge become those inside the window.
    pub fn inside(
        &mut self,
        window: &Window,
        begun: Instant,
        counts: Counts,
        rtt: &mut Quantiles,
    ) -> Counts {
        let marks = take(self);
        if window.misses(begun) {
            *rtt = Quantiles::new();
            return Counts::default();
        }
        let counts = match marks.until.map(|until| *until) {
            Some((counts, kept)) => {
                *rtt = kept;
                counts
            }
            None => counts,
        };
        counts - marks.from.map_or_else(Counts::default, |from| *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_units::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn had(delivered: u64) -> Counts {
        Counts {
            delivered,
            ..Counts::default()
        }
    }

    fn sample() -> Quantiles {
        let mut rtt = Quantiles::new();
        rtt.record(Duration::from_millis(10));
        rtt
    }

    #[test]
    fn only_what_is_between_the_edges_counts() {
        let mut window = Window::new(Some((at(5), at(10))));
        assert_eq!(window.next(), Some((Edge::From, at(5))));
        // A flow that ends with these counts; returns how many samples are left of those since the last edge.
        let end = |marks: &mut Marks, window: &Window, begun, counts| {
            let mut rtt = sample();
            let inside = marks.inside(window, at(begun), counts, &mut rtt);
            (inside, rtt.count())
        };
        assert_eq!(end(&mut Marks::default(), &window, 1, had(7)), (had(0), 0));
        let (mut long, mut ends, mut rtt) = (Marks::default(), Marks::default(), sample());
        long.mark(Edge::From, had(10), &mut rtt);
        ends.mark(Edge::From, had(20), &mut sample());
        assert!(rtt.is_empty());
        window.pass(Edge::From, at(5));
        assert_eq!(window.next(), Some((Edge::Until, at(10))));
        assert_eq!(end(&mut ends, &window, 1, had(50)), (had(30), 1));
        assert_eq!(
            end(&mut Marks::default(), &window, 6, had(50)),
            (had(50), 1)
        );
        rtt.record_n(Duration::from_millis(20), 3);
        long.mark(Edge::Until, had(110), &mut rtt);
        window.pass(Edge::Until, at(10));
        assert_eq!(window.next(), None);
        assert_eq!(end(&mut long, &window, 1, had(999)), (had(100), 3));
        assert_eq!(end(&mut Marks::default(), &window, 11, had(5)), (had(0), 0));
        assert_eq!(window.had(at(60)), Some((at(5), at(10))));
    }

    #[test]
    fn a_run_has_as_much_of_a_window_as_it_lasts() {
        let window = Window::new(Some((at(5), at(10))));
        assert_eq!(window.had(at(7)), Some((at(5), at(7))));
        assert_eq!(window.had(at(3)), Some((at(5), at(5))));
        assert_eq!(Window::new(None).had(at(3)), None);
        assert_eq!(Window::new(None).next(), None);
    }
}

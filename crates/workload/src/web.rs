//! `web`: sessions begin as a Poisson process. A session is a number of pages, a page a main object
//! and the objects it embeds.
//!
//! The instants at which pages are asked for are drawn beforehand (open loop): think time passes from
//! one page's request to the next, however long the network takes. Otherwise a congestion control that
//! slows the background down would meet less of it. Within a page the network decides: embedded
//! objects follow the main one, a few at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gargalo_units::{Bytes, Duration};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::distribution::Distribution;
use super::exponential;

/// Sessions as configured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Web {
    /// Pages of a session.
    pub pages: Distribution,
    /// Seconds from one page to the next.
    pub think_time: Distribution,
    /// Size of the main object in bytes.
    pub main: Distribution,
    /// Number of embedded objects of a page.
    pub embedded: Distribution,
    /// Size of an embedded object in bytes.
    pub object: Distribution,
    /// Seconds from the main object to the request of the first embedded one.
    pub parsing_time: Distribution,
    /// Size of a request.
    pub request_size: Bytes,
    /// Most connections of a page at once.
    pub connections: u32,
    /// Connections are used for one object after another; otherwise each object has its own.
    pub persistent: bool,
}

impl Web {
    /// Pages of a session, drawn.
    pub(crate) fn draw_pages(&self, rng: &mut Pcg64) -> u32 {
        // A cast saturates; a page at least, and an end to it.
        (libm::round(self.pages.draw(rng)) as u32).clamp(1, 1_000_000)
    }

    /// Embedded objects of a page, drawn.
    pub(crate) fn draw_embedded(&self, rng: &mut Pcg64) -> u32 {
        (libm::round(self.embedded.draw(rng)) as u32).min(100_000)
    }

    /// Mean number of embedded objects as drawn: whole numbers.
    pub(crate) fn mean_embedded(&self) -> f64 {
        self.embedded
            .mean_of(|n| libm::round(n).clamp(0.0, 100_000.0))
    }

    /// Mean number of pages as drawn.
    pub(crate) fn mean_pages(&self) -> f64 {
        self.pages.mean_of(|n| libm::round(n).clamp(1.0, 1e6))
    }
}

/// When pages are asked for: sessions under way, the earliest page first.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    gap: Duration,
    next_session: Duration,
    count: u64,
    active: BinaryHeap<Reverse<Session>>,
    rng: Pcg64,
}

/// A session under way: time of its next page, number, pages left, pair of hosts, whether the next page
/// is the first. Time and number order sessions.
type Session = (Duration, u64, u32, u32, bool);

/// A page to be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageStart {
    /// Since the plan's origin.
    pub at: Duration,
    pub pair: u32,
    pub begins_session: bool,
}

impl Sessions {
    pub(crate) fn new(gap: Duration, mut rng: Pcg64) -> Self {
        let next_session = exponential(gap, &mut rng);
        Self {
            gap,
            next_session,
            count: 0,
            active: BinaryHeap::new(),
            rng,
        }
    }

    /// The next page before `end`.
    pub(crate) fn next(&mut self, web: &Web, pairs: u32, end: Duration) -> Option<PageStart> {
        loop {
            let page = self.active.peek().map_or(Duration::MAX, |Reverse(p)| p.0);
            if page.min(self.next_session) >= end {
                return None;
            }
            if self.next_session < page {
                let pair = self.rng.random_range(0..pairs.max(1));
                let pages = web.draw_pages(&mut self.rng);
                let begins = self.next_session;
                self.active
                    .push(Reverse((begins, self.count, pages, pair, true)));
                self.count += 1;
                self.next_session += exponential(self.gap, &mut self.rng).max(NANOSECOND);
                continue;
            }
            let Reverse((at, session, left, pair, begins_session)) = self.active.pop()?;
            if left > 1 {
                let next = at + web.think_time.draw_span(&mut self.rng);
                self.active
                    .push(Reverse((next, session, left - 1, pair, false)));
            }
            return Some(PageStart {
                at,
                pair,
                begins_session,
            });
        }
    }
}

const NANOSECOND: Duration = Duration::from_nanos(1);

//! `web`: sessions start as a Poisson process. A session is a sequence of pages; a page is a main object with
//! embedded objects.
//!
//! The request times of pages are drawn in advance (open loop): think time runs from one page's request to the
//! next, independently of the network. Otherwise a congestion control that slows the background traffic down would
//! get less of it. Within a page the network determines the times: embedded objects follow the main one, a few at a
//! time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gargalo_settings::{names, settings};
use gargalo_units::{Bytes, Duration};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::distribution::{Distribution, Sampler};
use super::exponential;
use super::quantity::{Load, PerSecond};
use super::random::{Count, CountPareto, Size, SizeHybrid, SizeLogNormal, Time, TimePareto};

settings! {
    /// Web browsing: sessions that start as a Poisson process, spread over the pairs of hosts. A session is a
    /// sequence of pages with think time between them; a page is a main object with embedded objects. `to` requests
    /// the objects of `from`, so that the load is in the direction from `from` to `to`.
    pub struct Web as "Web" {
        /// Mean number of new sessions per time; or give `load`.
        sessions: Option<PerSecond> = None;
        /// Bits on the wire from `from` to `to`, headers included: a rate, or a share of the capacity of
        /// `link`. The mean over the lifetime of the flow meets it; sessions are active from the beginning.
        load: Option<Load> = None;
        /// The link whose capacity is meant. Default: the slowest link on the route.
        link: Option<String> = None;
        /// The model that gives the defaults of the following keys.
        model: WebModel = WebModel::Ngmn;
        /// Pages of a session.
        pages: Count = Count::Geometric(5.0);
        /// From one page's request to the next. Default: that of the model, for `ngmn` exponential with mean 30 s.
        think_time: Option<Time> = None;
        /// Size of the main object of a page. Default: that of the model.
        main_size: Option<Size> = None;
        /// Number of objects that a page embeds. Default: that of the model.
        embedded: Option<Count> = None;
        /// Size of an embedded object. Default: that of the model.
        embedded_size: Option<Size> = None;
        /// From the main object's last byte to the request of the first embedded one.
        parsing_time: Time = Time::Exponential(Duration::from_millis(130));
        /// Size of a request.
        request_size: Bytes = Bytes::new(350), in Bytes::new(1)..=Bytes::new(1_000_000);
        /// Connections of a page at the same time.
        connections: u32 = 4, in 1..=1000;
        /// Use connections for several objects, one after another (HTTP/1.1); otherwise each object has its own
        /// connection (HTTP/1.0).
        persistent: bool = false;
    }
}

names! {
    /// A published model of web traffic.
    pub enum WebModel {
        /// NGMN, Radio Access Performance Evaluation Methodology, 2008 (3GPP2 C.R1002): log-normal sizes.
        Ngmn = "ngmn",
        /// Barford and Crovella, SIGMETRICS 1998 (SURGE): log-normal body, Pareto tail.
        Surge = "surge",
    }
}

/// Most objects that a page embeds, and most pages of a session, as drawn.
const MOST_EMBEDDED: u32 = 100_000;
const MOST_PAGES: u32 = 1_000_000;

/// Size of a file in SURGE.
const SURGE_FILE: Size = Size::Hybrid(SizeHybrid {
    mu: 9.357,
    sigma: 1.318,
    body: 0.93,
    cut: Bytes::new(133_000),
    alpha: 1.1,
    max: Bytes::new(20_000_000),
});

impl WebModel {
    const fn think_time(self) -> Time {
        match self {
            Self::Ngmn => Time::Exponential(Duration::from_secs(30)),
            Self::Surge => Time::Pareto(TimePareto {
                alpha: 1.5,
                min: Duration::from_secs(1),
                max: Duration::from_secs(1000),
            }),
        }
    }

    const fn main_size(self) -> Size {
        match self {
            Self::Ngmn => Size::LogNormal(SizeLogNormal {
                mu: 8.37,
                sigma: 1.37,
                min: Bytes::new(100),
                max: Bytes::new(2_000_000),
            }),
            Self::Surge => SURGE_FILE,
        }
    }

    const fn embedded(self) -> Count {
        let (alpha, min, max) = match self {
            Self::Ngmn => (1.1, 2.0, 55.0),
            // References of a page, of which the main object is one.
            Self::Surge => (2.43, 1.0, 150.0),
        };
        Count::Pareto(CountPareto { alpha, min, max })
    }

    const fn embedded_size(self) -> Size {
        match self {
            Self::Ngmn => Size::LogNormal(SizeLogNormal {
                mu: 6.17,
                sigma: 2.36,
                min: Bytes::new(50),
                max: Bytes::new(2_000_000),
            }),
            Self::Surge => SURGE_FILE,
        }
    }
}

impl Web {
    /// With the defaults of its model written out.
    #[must_use]
    pub fn complete(mut self) -> Self {
        let model = self.model;
        self.think_time.get_or_insert(model.think_time());
        self.main_size.get_or_insert(model.main_size());
        self.embedded.get_or_insert(model.embedded());
        self.embedded_size.get_or_insert(model.embedded_size());
        self
    }

    /// Seconds from one page to the next.
    pub(crate) fn think_time(&self) -> Distribution {
        self.think_time.unwrap_or(self.model.think_time()).into()
    }

    /// Size of the main object in bytes.
    pub(crate) fn main_size(&self) -> Distribution {
        self.main_size.unwrap_or(self.model.main_size()).into()
    }

    /// Size of an embedded object in bytes.
    pub(crate) fn embedded_size(&self) -> Distribution {
        let usual = self.model.embedded_size();
        self.embedded_size.unwrap_or(usual).into()
    }

    fn embedded(&self) -> Distribution {
        self.embedded.unwrap_or(self.model.embedded()).into()
    }

    fn pages(&self) -> Distribution {
        self.pages.into()
    }

    /// Mean number of embedded objects as drawn: whole numbers.
    pub(crate) fn mean_embedded(&self) -> f64 {
        self.embedded()
            .mean_of(|n| libm::round(n).clamp(0.0, f64::from(MOST_EMBEDDED)))
    }

    /// Mean number of pages as drawn.
    pub(crate) fn mean_pages(&self) -> f64 {
        self.pages()
            .mean_of(|n| libm::round(n).clamp(1.0, f64::from(MOST_PAGES)))
    }
}

/// What a page consists of, to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct PageSampler {
    embedded: Sampler,
    /// From the main object to the request of the first embedded one.
    pub parsing_time: Sampler,
    /// Bytes of the main object.
    pub main_size: Sampler,
    /// Bytes of an embedded object.
    pub embedded_size: Sampler,
}

impl PageSampler {
    pub(crate) fn new(web: &Web) -> Self {
        Self {
            embedded: web.embedded().sampler(),
            parsing_time: Distribution::from(web.parsing_time).sampler(),
            main_size: web.main_size().sampler(),
            embedded_size: web.embedded_size().sampler(),
        }
    }

    /// Number of embedded objects, drawn.
    pub(crate) fn draw_embedded(&self, rng: &mut Pcg64) -> u32 {
        (libm::round(self.embedded.draw(rng)) as u32).min(MOST_EMBEDDED)
    }
}

/// The active sessions, the one with the earliest next page first.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    gap: Duration,
    next_session: Duration,
    count: u64,
    active: BinaryHeap<Reverse<Session>>,
    pages: Sampler,
    think_time: Sampler,
    rng: Pcg64,
}

/// An active session: time of its next page, number, pages left, pair of hosts, whether the next page
/// is the first. Time and number order sessions.
type Session = (Duration, u64, u32, u32, bool);

/// A page to be requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageStart {
    /// Time since the plan's origin.
    pub at: Duration,
    pub pair: u32,
    pub begins_session: bool,
}

impl Sessions {
    pub(crate) fn new(web: &Web, gap: Duration, mut rng: Pcg64) -> Self {
        let next_session = exponential(gap, &mut rng);
        Self {
            gap,
            next_session,
            count: 0,
            active: BinaryHeap::new(),
            pages: web.pages().sampler(),
            think_time: web.think_time().sampler(),
            rng,
        }
    }

    /// The next page before `end`.
    pub(crate) fn next(&mut self, pairs: u32, end: Duration) -> Option<PageStart> {
        loop {
            let page = self.active.peek().map_or(Duration::MAX, |Reverse(p)| p.0);
            if page.min(self.next_session) >= end {
                return None;
            }
            if self.next_session < page {
                let pair = self.rng.random_range(0..pairs.max(1));
                // A cast saturates; at least one page, and a bounded number.
                let pages = libm::round(self.pages.draw(&mut self.rng)) as u32;
                let pages = pages.clamp(1, MOST_PAGES);
                let begins = self.next_session;
                self.active
                    .push(Reverse((begins, self.count, pages, pair, true)));
                self.count += 1;
                self.next_session += exponential(self.gap, &mut self.rng).max(NANOSECOND);
                continue;
            }
            let Reverse((at, session, left, pair, begins_session)) = self.active.pop()?;
            if left > 1 {
                let next = at + self.think_time.draw_span(&mut self.rng);
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

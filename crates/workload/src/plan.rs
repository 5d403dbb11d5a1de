//! The transfers of a source and their start times: all are drawn independently of the network, so that the
//! requested load can be met.
//!
//! A source of a given load draws its transfers for the whole run twice. The first pass only adds up their bytes on
//! the wire ([`super::wire`]). A draw whose load differs by more than a tenth from the requested one is discarded
//! and the next one taken (the process is conditioned on its load); the remaining difference is corrected by
//! scaling all sizes by one factor. Start times keep their Poisson statistics and sizes their distribution up to a
//! scale of a few percent, tail index included. Without this the load over a minute would often be off by 5 to 20%,
//! since with a heavy tail most bytes are in few transfers.

use std::sync::Arc;

use gargalo_units::{Duration, Instant, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::distribution::{Distribution, Sampler};
use super::exponential;
use super::ftp::Ftp;
use super::web::{PageSampler, Sessions, Web};
use super::wire::{WireBytes, WireModel};

/// The kind of transfers of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Files, each in one transfer.
    Ftp(Arc<Ftp>),
    /// Sessions of pages.
    Web(Arc<Web>),
}

/// The amount of traffic of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Mean number of files or sessions per second.
    PerSecond(f64),
    /// Bits on the wire per second.
    Load {
        /// Of this source and the one in the opposite direction together, in the direction of this one's data.
        forward: Rate,
        /// The load of the source in the opposite direction. Zero if there is none.
        opposite: Rate,
    },
}

/// A transfer or page to start.
#[derive(Clone, Debug)]
pub struct Job {
    /// When the transfer or page is to start.
    pub at: Instant,
    /// Between which hosts.
    pub pair: u32,
    /// It is the first page of a session.
    pub begins_session: bool,
    /// Sizes: the file, or the main object and the embedded ones.
    pub objects: Vec<u64>,
    /// From the main object to the first embedded one.
    pub parsing: Duration,
}

/// All transfers of a run in the order of time.
#[derive(Clone, Debug)]
pub struct Plan {
    model: Model,
    pairs: u32,
    /// The origin of the times, before which there are no transfers, and the end of the window.
    start: Instant,
    lead: Duration,
    end: Duration,
    scale: f64,
    /// Pages before the start.
    earlier: u64,
    sizes: Pcg64,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Files {
        next: Duration,
        gap: Duration,
        rng: Pcg64,
        size: Sampler,
    },
    Pages {
        sessions: Box<Sessions>,
        page: Box<PageSampler>,
    },
}

/// The random stream of a name; the same name gives the same stream.
pub type Streams<'a> = &'a dyn Fn(&str) -> Pcg64;

/// The requested load of a source, and the scaling to meet it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offer {
    /// Requested bytes on the wire in the direction of the data; `None` if a rate of transfers was requested.
    pub asked: Option<f64>,
    /// Factor on all sizes.
    pub scale: f64,
}

/// Largest sizes: a terabyte.
const LARGEST: f64 = 1e12;
/// A draw this close to the requested load is accepted.
const TOLERANCE: f64 = 0.1;
/// Maximum number of draws; then the nearest is used.
const DRAWS: u32 = 100;
/// Maximum number of transfers in all draws together; at least one draw is made.
const MOST_LOOKED_AT: u64 = 20_000_000;
/// Pages of sessions that began before the source does.
const MOST_EARLIER: f64 = 1e7;
/// Maximum expected number of transfers of a source.
const MOST_TRANSFERS: f64 = 1e9;

impl Plan {
    /// The plan of a source with transfers from `start` until `end` between `pairs` pairs of hosts, with its own
    /// random `streams`.
    ///
    /// # Errors
    /// The expected number of transfers, when it is more than a billion.
    pub fn new(
        model: Model,
        demand: Demand,
        wire: &WireModel,
        pairs: u32,
        (start, end): (Instant, Instant),
        streams: Streams<'_>,
    ) -> Result<(Self, Offer), f64> {
        let window = end.saturating_since(start);
        let (per_second, asked) = match demand {
            Demand::PerSecond(n) => (n, None),
            Demand::Load { forward, opposite } => {
                let mean = mean_wire(&model, wire);
                // This source's data and the acknowledgements of the opposite source share a direction, and vice
                // versa.
                let r = mean.1 / mean.0;
                let (f, o) = (forward.as_bps() as f64, opposite.as_bps() as f64);
                let own = ((f - r * o) / (1.0 - r * r)).max(0.0);
                let share = if o > 0.0 { own } else { f };
                (
                    share / 8.0 / mean.0,
                    Some(share / 8.0 * window.as_secs_f64()),
                )
            }
        };
        let expected = per_second * window.as_secs_f64() * objects_of(&model, asked.is_some());
        if expected > MOST_TRANSFERS {
            return Err(expected);
        }
        let draw = |k: u32| {
            Self::draw(
                model.clone(),
                per_second,
                asked.is_some(),
                pairs,
                (start, window),
                streams,
                k,
            )
        };
        let Some(target) = asked else {
            return Ok((
                draw(0),
                Offer {
                    asked: None,
                    scale: 1.0,
                },
            ));
        };
        let mut best: Option<(f64, Self, u64)> = None;
        let mut looked_at = 0;
        for k in 0..DRAWS {
            let plan = draw(k);
            let (sum, n) = plan.sum(wire);
            looked_at += plan.earlier;
            let off = (sum.forward as f64 / target - 1.0).abs();
            if best.as_ref().is_none_or(|b| off < b.0) {
                best = Some((off, plan, sum.forward));
            }
            looked_at += n;
            if off <= TOLERANCE || off.is_nan() || looked_at > MOST_LOOKED_AT {
                break;
            }
        }
        let (mut plan, sum) = best.map_or_else(|| (draw(0), 0), |b| (b.1, b.2));
        plan.fit(sum as f64, target, wire);
        let scale = plan.scale;
        Ok((
            plan,
            Offer {
                asked: Some(target),
                scale,
            },
        ))
    }

    /// Scales the sizes so that they add up to `target` bytes on the wire instead of `sum`: a step of
    /// proportion and one of the secant method, since headers make the sum less than proportional.
    fn fit(&mut self, sum: f64, target: f64, wire: &WireModel) {
        const LIMITS: (f64, f64) = (0.5, 2.0);
        if sum <= 0.0 || target <= 0.0 {
            return;
        }
        let first = (target / sum).clamp(LIMITS.0, LIMITS.1);
        self.scale = first;
        let then = self.sum(wire).0.forward as f64;
        if then != sum {
            let next = first + (target - then) * (first - 1.0) / (then - sum);
            self.scale = next.clamp(LIMITS.0, LIMITS.1);
        }
    }

    fn draw(
        model: Model,
        per_second: f64,
        is_stationary: bool,
        pairs: u32,
        (start, window): (Instant, Duration),
        streams: Streams<'_>,
        k: u32,
    ) -> Self {
        let stream = |what: &str| streams(&format!("{what}/{k}"));
        let per_second = if per_second.is_finite() {
            per_second.max(0.0)
        } else {
            0.0
        };
        let mut lead = Duration::ZERO;
        let source = match &model {
            Model::Ftp(ftp) => {
                let gap = gap(per_second);
                let mut rng = stream("instants");
                Source::Files {
                    next: exponential(gap, &mut rng),
                    gap,
                    rng,
                    size: Distribution::from(ftp.size).sampler(),
                }
            }
            Model::Web(web) => {
                let pages = web.mean_pages();
                // The demand of a load is in pages, of which a session has several.
                let sessions = if is_stationary {
                    per_second / pages
                } else {
                    per_second
                };
                if is_stationary {
                    // Sessions that began earlier may still be active: with five mean lengths nearly all are
                    // included.
                    let length = 5.0 * pages * web.think_time().mean();
                    lead = Duration::from_secs_f64(length.min(MOST_EARLIER / per_second.max(1e-9)));
                }
                let sessions = Sessions::new(web, gap(sessions), stream("instants"));
                Source::Pages {
                    sessions: Box::new(sessions),
                    page: Box::new(PageSampler::new(web)),
                }
            }
        };
        let mut plan = Self {
            model,
            pairs,
            start,
            lead,
            end: lead + window,
            scale: 1.0,
            earlier: 0,
            sizes: stream("sizes"),
            source,
        };
        plan.skip();
        plan
    }

    /// Skips the pages before the start.
    fn skip(&mut self) {
        if let Source::Pages { sessions, .. } = &mut self.source {
            while sessions.next(self.pairs, self.lead).is_some() {
                self.earlier += 1;
            }
        }
    }

    /// The next transfer.
    pub fn next_job(&mut self) -> Option<Job> {
        let (pairs, scale, sizes) = (self.pairs, self.scale, &mut self.sizes);
        let whole = |x: f64| libm::round(x * scale).clamp(1.0, LARGEST) as u64;
        let job = match &mut self.source {
            Source::Files {
                next,
                gap,
                rng,
                size,
            } => {
                let at = *next;
                if at >= self.end {
                    return None;
                }
                *next = at + exponential(*gap, rng).max(Duration::from_nanos(1));
                Job {
                    at: self.start + at,
                    pair: rng.random_range(0..pairs.max(1)),
                    begins_session: false,
                    objects: vec![whole(size.draw(sizes))],
                    parsing: Duration::ZERO,
                }
            }
            Source::Pages { sessions, page } => {
                let start = sessions.next(pairs, self.end)?;
                let embedded = page.draw_embedded(sizes);
                let parsing = page.parsing_time.draw_span(sizes);
                let mut objects = Vec::with_capacity(1 + embedded as usize);
                objects.push(whole(page.main_size.draw(sizes)));
                objects.extend((0..embedded).map(|_| whole(page.embedded_size.draw(sizes))));
                Job {
                    at: self.start + start.at.saturating_sub(self.lead),
                    pair: start.pair,
                    begins_session: start.begins_session,
                    objects,
                    parsing,
                }
            }
        };
        Some(job)
    }

    /// The bytes of all transfers on the wire, and the number of objects.
    pub fn sum(&self, wire: &WireModel) -> (WireBytes, u64) {
        let mut plan = self.clone();
        let (mut sum, mut n) = (WireBytes::default(), 0);
        while let Some(job) = plan.next_job() {
            n += job.objects.len() as u64;
            sum.add(on_wire(&self.model, wire, &job.objects));
        }
        (sum, n)
    }
}

/// The bytes of a file or page on the wire.
pub fn on_wire(model: &Model, wire: &WireModel, objects: &[u64]) -> WireBytes {
    let mut sum = WireBytes::default();
    match model {
        Model::Ftp(_) => objects.iter().for_each(|b| sum.add(wire.push(*b))),
        Model::Web(web) => {
            let request = web.request_size.get();
            for connection in connections(web, objects) {
                sum.add(wire.pull(request, connection));
            }
        }
    }
    sum
}

/// The objects of each connection of a page: the main object first, on its own.
pub fn connections<'a>(
    web: &Web,
    objects: &'a [u64],
) -> impl Iterator<Item = impl Iterator<Item = u64> + 'a> {
    let (main, rest) = objects.split_at(objects.len().min(1));
    let most = if web.persistent {
        web.connections.max(1) as usize
    } else {
        rest.len()
    };
    let n = most.min(rest.len());
    let first = (!main.is_empty()).then(|| main.iter().copied().step_by(1));
    // Objects are assigned to connections in turn.
    let others = (0..n).map(move |i| rest[i..].iter().copied().step_by(n));
    first.into_iter().chain(others)
}

/// Mean bytes on the wire of a file or page, forward and reverse.
fn mean_wire(model: &Model, wire: &WireModel) -> (f64, f64) {
    let size = |x: f64| libm::round(x).clamp(1.0, LARGEST) as u64;
    let mean = |d: &Distribution, f: &dyn Fn(u64) -> WireBytes| {
        (
            d.mean_of(|x| f(size(x)).forward as f64),
            d.mean_of(|x| f(size(x)).reverse as f64),
        )
    };
    match model {
        Model::Ftp(ftp) => mean(&ftp.size.into(), &|b| wire.push(b)),
        Model::Web(web) => {
            let request = web.request_size.get();
            let pull = |b: u64| wire.pull(request, [b]);
            let main = mean(&web.main_size(), &pull);
            let object = mean(&web.embedded_size(), &pull);
            let n = web.mean_embedded();
            (main.0 + n * object.0, main.1 + n * object.1)
        }
    }
}

/// Mean number of objects of a file, a page, or a session.
fn objects_of(model: &Model, is_page: bool) -> f64 {
    match model {
        Model::Ftp(_) => 1.0,
        Model::Web(web) => {
            let pages = if is_page { 1.0 } else { web.mean_pages() };
            pages * (1.0 + web.mean_embedded())
        }
    }
}

/// Mean time between events at a rate per second.
fn gap(per_second: f64) -> Duration {
    if per_second > 0.0 {
        Duration::from_secs_f64(1.0 / per_second).max(Duration::from_nanos(1))
    } else {
        Duration::MAX
    }
}

//! Flows that start and end during a run in real time: those of sources, those that arrive at random, and those that
//! are counted together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gargalo_flow::{
    Arrivals, Edge, FlowResult, FlowSpec, Group, NewFlow, Next, PageId, Source, Window,
};
use gargalo_units::Instant;

use super::flow::Flow;
use super::notices::{Notice, Notices};
use crate::spec::Population;
use crate::{Error, Result};

/// Creates a flow with this identifier, start and name of random streams, and passes its ends to their hosts.
pub type Make = Box<dyn FnMut(&FlowSpec, u64, Instant, &str, Notices) -> Result<Arc<Flow>> + Send>;

/// A flow that has started.
struct Live {
    flow: Arc<Flow>,
    /// The source and the page to be notified.
    page: Option<(usize, PageId)>,
}

/// Starts flows when they are due, and collects their results.
pub struct Sources {
    sources: Vec<Source>,
    /// Random arrivals, and when the next flow of each starts.
    arrivals: Vec<(Arrivals, Option<Instant>)>,
    /// Flows of groups that start at a given time, the latest first.
    planned: Vec<FlowSpec>,
    groups: Vec<Group>,
    next_id: u64,
    live: BTreeMap<u64, Live>,
    notices: Notices,
    make: Make,
    results: Vec<FlowResult>,
    peak: usize,
    left: Left,
}

/// Whether flows are alive or will start, readable from other threads.
#[derive(Clone, Debug, Default)]
pub struct Left(Arc<AtomicBool>);

impl Left {
    /// Whether there are any.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Sources {
    /// Creates the sources of a run with this seed that lasts until `end`; identifiers of created flows count from
    /// `next_id`.
    ///
    /// # Errors
    /// When a source would make more than a billion transfers.
    pub fn new(
        population: Population,
        (seed, end): (u64, Instant),
        next_id: u64,
        make: Make,
    ) -> Result<Self> {
        let mut groups: Vec<Group> = population
            .groups
            .into_iter()
            .map(|(label, window)| Group::new(label, window))
            .collect();
        let mut sources = Vec::with_capacity(population.sources.len());
        for spec in population.sources {
            let label = Arc::clone(&spec.label);
            let group = spec.group as usize;
            let (source, offer) = Source::new(spec, seed, end).map_err(|transfers| {
                Error::Unsupported(format!(
                    "{label} would make about {transfers:.0} transfers, more than a billion: lower its \
                     load, shorten the run, or make its objects larger"
                ))
            })?;
            if let Some(group) = groups.get_mut(group) {
                group.offer = offer;
            }
            sources.push(source);
        }
        let (mut arrivals, mut planned) = (Vec::new(), Vec::new());
        for spec in population.flows {
            match spec.arrivals {
                Some(mean) => {
                    let mut a = Arrivals::new(Arc::new(spec), mean, seed);
                    let first = a.first();
                    arrivals.push((a, Some(first)));
                }
                None => planned.push(spec),
            }
        }
        planned.sort_by_key(|f| Reverse((f.start, f.id)));
        Ok(Self {
            sources,
            arrivals,
            planned,
            groups,
            next_id,
            live: BTreeMap::new(),
            notices: Notices::default(),
            make,
            results: Vec::new(),
            peak: 0,
            left: Left::default(),
        })
    }

    /// When the next start is due.
    pub fn poll_timeout(&self) -> Instant {
        let sources = self.sources.iter();
        let sources = sources.flat_map(|s| [s.next_transfer(), s.next_parsed()]);
        let arrivals = self.arrivals.iter().map(|(_, at)| *at);
        let planned = self.planned.last().map(|f| f.start);
        let all = sources.chain(arrivals).chain([planned]).flatten();
        all.min().unwrap_or(Instant::MAX)
    }

    /// Whether no flow is left and none will start.
    pub fn is_over(&self) -> bool {
        self.live.is_empty()
            && self.planned.is_empty()
            && self.arrivals.iter().all(|(_, at)| at.is_none())
            && self.sources.iter().all(Source::is_over)
    }

    /// A handle that reports whether flows are left, during the run.
    pub fn left(&self) -> Left {
        self.left.0.store(!self.is_over(), Ordering::Release);
        self.left.clone()
    }

    /// Most flows alive at once.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Starts what is due, and handles the notices of flows.
    ///
    /// # Errors
    /// When a flow cannot be created.
    pub fn turn(&mut self, now: Instant, window: &Window) -> Result<()> {
        for notice in self.notices.take() {
            match notice {
                Notice::Over(id) => self.over(now, id)?,
                Notice::Closed(id) => self.closed(now, id, window),
            }
        }
        while self.planned.last().is_some_and(|f| f.start <= now) {
            if let Some(spec) = self.planned.pop() {
                let name = spec.stream_name();
                self.start(&spec, (spec.id, spec.start), &name, None)?;
            }
        }
        for i in 0..self.arrivals.len() {
            while let (arrivals, Some(at)) = &mut self.arrivals[i]
                && *at <= now
            {
                let at = *at;
                let arrival = arrivals.next(at);
                self.arrivals[i].1 = arrival.next;
                let id = match arrival.is_first {
                    true => arrival.spec.id,
                    false => self.fresh(),
                };
                self.start(&arrival.spec, (id, at), &arrival.stream, None)?;
            }
        }
        for i in 0..self.sources.len() {
            while let Some(flows) = self.sources[i].parsed(now) {
                self.start_all(now, i, flows)?;
            }
            while self.sources[i].next_transfer().is_some_and(|at| at <= now) {
                let group = self.sources[i].spec().group as usize;
                let Some(group) = self.groups.get_mut(group) else {
                    break;
                };
                let flow = self.sources[i].transfer(now, group);
                self.start_all(now, i, flow)?;
            }
        }
        self.left.0.store(!self.is_over(), Ordering::Release);
        Ok(())
    }

    fn fresh(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn start_all(
        &mut self,
        now: Instant,
        i: usize,
        flows: impl IntoIterator<Item = NewFlow>,
    ) -> Result<()> {
        for flow in flows {
            let id = self.fresh();
            let page = flow.page.map(|page| (i, page));
            self.start(&flow.spec, (id, now), &flow.stream, page)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        spec: &FlowSpec,
        (id, at): (u64, Instant),
        stream: &str,
        page: Option<(usize, PageId)>,
    ) -> Result<()> {
        let flow = (self.make)(spec, id, at, stream, self.notices.clone())?;
        if let Some(group) = spec.group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.start(flow.total());
        }
        self.live.insert(id, Live { flow, page });
        self.peak = self.peak.max(self.live.len());
        Ok(())
    }

    fn over(&mut self, now: Instant, id: u64) -> Result<()> {
        let Some((i, page)) = self.live.get_mut(&id).and_then(|l| l.page.take()) else {
            return Ok(());
        };
        let Some(group) = self.groups.get_mut(self.sources[i].spec().group as usize) else {
            return Ok(());
        };
        match self.sources[i].completed(now, page, group) {
            Next::Flows(flows) => self.start_all(now, i, flows),
            Next::ParsedAt(_) => Ok(()),
        }
    }

    fn closed(&mut self, now: Instant, id: u64, window: &Window) {
        let Some(live) = self.live.remove(&id) else {
            return;
        };
        let spec = &live.flow.spec;
        let result = live.flow.result(now, window);
        if let Some(group) = spec.group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.fold(&result, live.flow.total().is_some());
        }
        if spec.rows {
            self.results.push(result);
        }
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge) {
        self.live.values().for_each(|l| l.flow.mark(edge));
        self.groups.iter_mut().for_each(|g| g.mark(edge));
    }

    /// Ends the run: returns the results of flows that have a row, and the totals of groups.
    pub fn finish(mut self, now: Instant, window: &Window) -> (Vec<FlowResult>, Vec<Group>) {
        let left: Vec<u64> = self.live.keys().copied().collect();
        for id in left {
            self.closed(now, id, window);
        }
        let began = window.has_begun();
        self.groups.iter_mut().for_each(|g| g.close(began));
        (self.results, self.groups)
    }
}

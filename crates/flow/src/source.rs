//! Sources of flows: each transfer of a [`Plan`] becomes a flow when it is due, and the embedded objects of a page
//! become flows when the main object has arrived. A source has no clock and starts nothing itself: a world calls it
//! when something is due, and starts the flows that it returns.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_workload::plan::{Demand, Job, Model, Offer, Plan, connections, on_wire};
use gargalo_workload::wire::WireModel;
use gargalo_workload::{Bulk, Request, Workload, exponential};
use rand_pcg::Pcg64;

use crate::group::{Group, GroupId};
use crate::rng;
use crate::routing::NodeId;
use crate::slab::Slab;
use crate::spec::{FlowSpec, TcpSpec, TransportSpec};

/// IPv4 header without options.
const IPV4_HEADER: u64 = 20;
/// TCP header without options.
const TCP_HEADER: u64 = 20;
/// Timestamps option with padding (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;
/// A SYN has maximum segment size, window scale and, permitted, SACK and timestamps: 20 bytes.
const SYN_OPTIONS: u64 = 20;

/// A source of flows as configured.
#[derive(Clone, Debug)]
pub struct GeneratorSpec {
    /// Identifies the source in results.
    pub id: u64,
    /// Label of its flows.
    pub label: Arc<str>,
    /// Name of its random streams. It does not depend on the place of the source among others.
    pub stream: Arc<str>,
    /// Pairs of hosts: the one that has the data, and the one that receives it. Each session, or file, is between one
    /// of these pairs, drawn at random.
    pub pairs: Vec<(NodeId, NodeId)>,
    /// The path that its flows take, as in [`FlowSpec::path`].
    pub path: u8,
    /// When it starts.
    pub start: Instant,
    /// When it ends; transfers in progress continue. `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// How data is carried.
    pub transport: TcpSpec,
    /// The kind of transfers it generates.
    pub model: Model,
    /// The demand: how much of them.
    pub demand: Demand,
    /// The group in which its flows are counted.
    pub group: GroupId,
    /// Its flows have rows of their own too.
    pub rows: bool,
}

impl GeneratorSpec {
    /// A flow between two of its hosts; [`Workload::default`] is a placeholder for any workload.
    pub fn flow(&self, from: NodeId, to: NodeId, workload: Workload) -> FlowSpec {
        FlowSpec {
            id: self.id,
            label: Arc::clone(&self.label),
            stream: Arc::clone(&self.stream),
            from,
            to,
            path: self.path,
            start: self.start,
            stop: None,
            transport: TransportSpec::Tcp(self.transport.clone()),
            workload: Arc::new(workload),
            arrivals: None,
            group: Some(self.group),
            rows: self.rows,
        }
    }
}

/// Packet sizes and acknowledgements of a TCP configuration that both ends share.
pub fn wire_model(config: &Config) -> WireModel {
    let plain = IPV4_HEADER + TCP_HEADER;
    let timestamps = if config.timestamps { TIMESTAMPS } else { 0 };
    WireModel {
        segment: u64::from(config.mss).max(1),
        header: plain + timestamps,
        opening: plain + SYN_OPTIONS,
        every: u64::from(config.delayed_ack.every).max(1),
        quick: u64::from(config.delayed_ack.quick),
        tls: None,
    }
}

/// Number of a page that is being loaded.
pub type PageId = u32;

/// A flow that must start now.
#[derive(Clone, Debug)]
pub struct NewFlow {
    /// Its specification; the identifier is the source's.
    pub spec: Arc<FlowSpec>,
    /// The name of its random streams.
    pub stream: String,
    /// The page that must be notified when the flow has completed.
    pub page: Option<PageId>,
}

/// What follows when a flow of a page has completed.
#[derive(Clone, Debug)]
pub enum Next {
    /// These flows start now.
    Flows(Vec<NewFlow>),
    /// [`Source::parsed`] is due at this time.
    ParsedAt(Instant),
}

/// A running source of flows.
#[derive(Debug)]
pub struct Source {
    spec: GeneratorSpec,
    wire: WireModel,
    plan: Plan,
    next: Option<Job>,
    pages: Slab<Page>,
    /// Pages whose embedded objects are due, the earliest first; ties are broken by number.
    parsing: BinaryHeap<Reverse<(Instant, u64, PageId)>>,
    parsed: u64,
    /// Number of flows created so far.
    made: u64,
}

/// A page that is being loaded.
#[derive(Debug)]
struct Page {
    asked_at: Instant,
    pair: u32,
    /// Objects of the connections still to be opened, the last first.
    waiting: Vec<Arc<[Bytes]>>,
    /// Number of open connections.
    active: u32,
    parsing: Duration,
    has_main: bool,
}

impl Source {
    /// Creates a source in a run with this seed that lasts until `end`; also returns the load that it will offer.
    ///
    /// # Errors
    /// Returns the expected number of transfers if it is more than a billion.
    pub fn new(spec: GeneratorSpec, seed: u64, end: Instant) -> Result<(Self, Offer), f64> {
        let end = spec.stop.unwrap_or(Instant::MAX).min(end);
        let wire = wire_model(&spec.transport.config).inside(spec.transport.tls);
        let streams = |what: &str| rng::stream(seed, &format!("generator/{}/{what}", spec.stream));
        let pairs = u32::try_from(spec.pairs.len()).unwrap_or(u32::MAX);
        let (mut plan, offer) = Plan::new(
            spec.model.clone(),
            spec.demand,
            &wire,
            pairs,
            (spec.start, end),
            &streams,
        )?;
        let next = plan.next_job();
        let source = Self {
            spec,
            wire,
            plan,
            next,
            pages: Slab::default(),
            parsing: BinaryHeap::new(),
            parsed: 0,
            made: 0,
        };
        Ok((source, offer))
    }

    /// The configuration of the source.
    pub fn spec(&self) -> &GeneratorSpec {
        &self.spec
    }

    /// Whether the last transfer has started and the last page is complete.
    pub fn is_over(&self) -> bool {
        self.next.is_none() && self.pages.is_empty()
    }

    /// When [`Self::transfer`] is due.
    pub fn next_transfer(&self) -> Option<Instant> {
        self.next.as_ref().map(|job| job.at)
    }

    /// When [`Self::parsed`] is due.
    pub fn next_parsed(&self) -> Option<Instant> {
        self.parsing.peek().map(|Reverse((at, ..))| *at)
    }

    /// Starts the next transfer, if it is due.
    pub fn transfer(&mut self, now: Instant, group: &mut Group) -> Option<NewFlow> {
        let job = self.next.take_if(|job| job.at <= now)?;
        self.next = self.plan.next_job();
        let sum = on_wire(&self.spec.model, &self.wire, &job.objects);
        group.planned.add(sum);
        group.sessions += u64::from(job.begins_session);
        match &self.spec.model {
            Model::Ftp(_) => {
                let bytes = Bytes::new(job.objects.first().copied().unwrap_or(0));
                let file = Workload::Bulk(Bulk::of(bytes));
                self.make(job.pair, file, None)
            }
            Model::Web(web) => {
                group.pages += 1;
                let mut waiting: Vec<Arc<[Bytes]>> = connections(web, &job.objects)
                    .map(|objects| objects.map(Bytes::new).collect())
                    .collect();
                waiting.reverse();
                let page = self.pages.insert(Page {
                    asked_at: now,
                    pair: job.pair,
                    waiting,
                    active: 0,
                    parsing: job.parsing,
                    has_main: false,
                });
                self.open_connection(page)
            }
        }
    }

    /// The connections of the next page whose main object has been parsed; `None`: none is due.
    pub fn parsed(&mut self, now: Instant) -> Option<Vec<NewFlow>> {
        let Reverse((at, _, page)) = *self.parsing.peek()?;
        (at <= now).then(|| {
            self.parsing.pop();
            self.open_connections(page)
        })
    }

    /// Records that a flow of a page has completed, or failed.
    pub fn completed(&mut self, now: Instant, page: PageId, group: &mut Group) -> Next {
        let Some(p) = self.pages.get_mut(page) else {
            return Next::Flows(Vec::new());
        };
        p.active = p.active.saturating_sub(1);
        if !p.has_main {
            p.has_main = true;
            if !p.waiting.is_empty() {
                let at = now + p.parsing;
                self.parsing.push(Reverse((at, self.parsed, page)));
                self.parsed += 1;
                return Next::ParsedAt(at);
            }
        }
        if p.waiting.is_empty() && p.active == 0 {
            group.page_time.record(now.saturating_since(p.asked_at));
            self.pages.remove(page);
            return Next::Flows(Vec::new());
        }
        Next::Flows(self.open_connections(page))
    }

    /// Opens as many connections of a page as it may have.
    fn open_connections(&mut self, page: PageId) -> Vec<NewFlow> {
        let most = match &self.spec.model {
            Model::Web(web) => web.connections.max(1),
            Model::Ftp(_) => 1,
        };
        let mut opened = Vec::new();
        while let Some(p) = self.pages.get(page)
            && p.active < most
            && !p.waiting.is_empty()
        {
            opened.extend(self.open_connection(page));
        }
        opened
    }

    fn open_connection(&mut self, page: PageId) -> Option<NewFlow> {
        let Model::Web(web) = &self.spec.model else {
            return None;
        };
        let request_size = web.request_size;
        let p = self.pages.get_mut(page)?;
        let objects = p.waiting.pop()?;
        p.active += 1;
        let pair = p.pair;
        let workload = Workload::Request(Request {
            request_size,
            ..Request::of(objects)
        });
        self.make(pair, workload, Some(page))
    }

    fn make(&mut self, pair: u32, workload: Workload, page: Option<PageId>) -> Option<NewFlow> {
        let spec = &self.spec;
        let &(sender, receiver) = spec.pairs.get(pair as usize)?;
        // The host that has a file sends it; an object is requested by the host that receives it.
        let (from, to) = match &spec.model {
            Model::Ftp(_) => (sender, receiver),
            Model::Web(_) => (receiver, sender),
        };
        let flow = Arc::new(spec.flow(from, to, workload));
        let stream = format!("generator/{}/flow/{}", spec.stream, self.made);
        self.made += 1;
        Some(NewFlow {
            spec: flow,
            stream,
            page,
        })
    }
}

/// A template from which flows are created as a Poisson process.
#[derive(Debug)]
pub struct Arrivals {
    spec: Arc<FlowSpec>,
    mean: Duration,
    rng: Pcg64,
    /// Number of flows created so far.
    made: u64,
}

/// A flow of a template that must start now.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its template, with whose identifier the first flow starts.
    pub spec: Arc<FlowSpec>,
    /// The name of its random streams.
    pub stream: String,
    /// It is the first flow of the template.
    pub is_first: bool,
    /// When the next flow starts; `None`: it was the last.
    pub next: Option<Instant>,
}

impl Arrivals {
    /// Creates the arrivals of a flow with this mean time between them, in a run with this seed.
    pub fn new(spec: Arc<FlowSpec>, mean: Duration, seed: u64) -> Self {
        let rng = rng::stream(seed, &format!("arrivals/{}", spec.stream));
        Self {
            spec,
            mean,
            rng,
            made: 0,
        }
    }

    /// When the first flow starts.
    pub fn first(&mut self) -> Instant {
        self.spec.start + exponential(self.mean, &mut self.rng)
    }

    /// Starts a flow now.
    pub fn next(&mut self, now: Instant) -> Arrival {
        let next = now + exponential(self.mean, &mut self.rng);
        let goes_on = self.spec.stop.is_none_or(|stop| next < stop);
        let stream = match self.made {
            0 => self.spec.stream_name(),
            n => format!("{}/{n}", self.spec.stream_name()),
        };
        self.made += 1;
        Arrival {
            spec: Arc::clone(&self.spec),
            stream,
            is_first: self.made == 1,
            next: goes_on.then_some(next),
        }
    }
}

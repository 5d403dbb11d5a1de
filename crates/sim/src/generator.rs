//! Sources of flows as they run: each transfer of a [`Plan`] becomes a flow when its time has come,
//! and the embedded objects of a page become flows when the main one has arrived.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use gargalo_flow::{FlowSpec, GroupId, NodeId, Slab, TcpSpec, TransportSpec, rng};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_workload::plan::{Demand, Job, Model, Plan, connections, on_wire};
use gargalo_workload::wire::WireModel;
use gargalo_workload::{Bulk, Request, Workload};

use crate::BuildError;
use crate::event::Target;
use crate::net::IPV4_HEADER;
use crate::world::World;

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
    /// Hosts: the one that has the data, and the one that gets it. Each session, or file, is between
    /// one of these pairs, drawn at random.
    pub pairs: Vec<(NodeId, NodeId)>,
    /// When it begins.
    pub start: Instant,
    /// When it ends; transfers under way go on. `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// How data is carried.
    pub transport: TcpSpec,
    /// What is made.
    pub model: Model,
    /// How much of it.
    pub demand: Demand,
    /// Where its flows are counted.
    pub group: GroupId,
    /// Its flows have rows of their own too.
    pub rows: bool,
}

/// A source as it runs.
#[derive(Debug)]
pub(crate) struct Generator {
    spec: GeneratorSpec,
    wire: WireModel,
    plan: Plan,
    next: Option<Job>,
    pages: Slab<Page>,
    /// Pages whose embedded objects are due, the earliest first; the number breaks ties.
    parsing: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    parsed: u64,
    /// Flows made so far.
    made: u64,
}

impl Generator {
    /// The last transfer was made and the last page is there.
    pub(crate) fn is_over(&self) -> bool {
        self.next.is_none() && self.pages.is_empty()
    }
}

/// A page on its way.
#[derive(Debug)]
struct Page {
    asked_at: Instant,
    pair: u32,
    /// Objects of the connections still to be opened, last first.
    waiting: Vec<Arc<[Bytes]>>,
    /// Connections at work.
    active: u32,
    parsing: Duration,
    has_main: bool,
}

/// The page that a flow belongs to: source and place.
pub(crate) type Parent = (u32, u32);

/// Packet sizes and acknowledgements of a TCP configuration that both ends share.
pub fn wire_model(config: &Config) -> WireModel {
    let plain = u64::from(IPV4_HEADER) + TCP_HEADER;
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

impl World {
    /// Adds a source of flows; its group must have been added.
    ///
    /// # Errors
    /// When hosts are not connected or the congestion control cannot be built.
    pub fn add_generator(&mut self, spec: GeneratorSpec) -> Result<(), BuildError> {
        for &(from, to) in &spec.pairs {
            self.ensure_routes(from, to)?;
        }
        let end = spec.stop.unwrap_or(Instant::MAX).min(self.settings.end);
        let wire = wire_model(&spec.transport.config).inside(spec.transport.tls);
        let path = format!("generator/{}", spec.id);
        let seed = self.settings.seed;
        let streams = |what: &str| rng::stream(seed, &format!("{path}/{what}"));
        let pairs = u32::try_from(spec.pairs.len()).unwrap_or(u32::MAX);
        let window = (spec.start, end);
        let planned = Plan::new(
            spec.model.clone(),
            spec.demand,
            &wire,
            pairs,
            window,
            &streams,
        );
        let (mut plan, offer) = planned.map_err(|transfers| BuildError::TooManyTransfers {
            source_label: spec.label.to_string(),
            transfers,
        })?;
        let Some(group) = self.groups.get_mut(spec.group as usize) else {
            return Err(BuildError::NoGroup(spec.label.to_string()));
        };
        group.offer = offer;
        self.next_generated = self.next_generated.max(spec.id + 1);
        if let Some(&(from, to)) = spec.pairs.first() {
            let probe = flow_spec(&spec, from, to, Workload::default());
            let mut check = rng::stream(self.settings.seed, "check");
            self.controller(&probe, &spec.transport, &mut check)?;
        }
        let next = plan.next_job();
        self.generators.push(Generator {
            spec,
            wire,
            plan,
            next,
            pages: Slab::default(),
            parsing: BinaryHeap::new(),
            parsed: 0,
            made: 0,
        });
        Ok(())
    }

    /// Puts the first wake-ups of all sources into the queue.
    pub(crate) fn arm_generators(&mut self, first: Target) {
        for (i, g) in self.generators.iter().enumerate() {
            if let Some(job) = &g.next {
                self.net.queue.push(job.at, first + i as u32);
            }
        }
    }

    /// A transfer of source `i` is due, or embedded objects are.
    pub(crate) fn on_generator(
        &mut self,
        i: u32,
        target: Target,
        first_flow: Target,
    ) -> Result<(), BuildError> {
        while let Some(page) = self.next_parsed(i) {
            self.open_connections(i, page, first_flow)?;
        }
        let Some(generator) = self.generators.get_mut(i as usize) else {
            return Ok(());
        };
        // One job an event: others of the same instant have an event of their own.
        if generator.next.as_ref().is_none_or(|j| j.at > self.now) {
            return Ok(());
        }
        let Some(job) = generator.next.take() else {
            return Ok(());
        };
        generator.next = generator.plan.next_job();
        if let Some(next) = &generator.next {
            self.net.queue.push(next.at.max(self.now), target);
        }
        let sum = on_wire(&generator.spec.model, &generator.wire, &job.objects);
        let group = &mut self.groups[generator.spec.group as usize];
        group.planned.add(sum);
        group.sessions += u64::from(job.begins_session);
        match &generator.spec.model {
            Model::Ftp(_) => {
                let bytes = Bytes::new(job.objects.first().copied().unwrap_or(0));
                let file = Workload::Bulk(Bulk::of(bytes));
                self.make(i, job.pair, file, None, first_flow)
            }
            Model::Web(web) => {
                group.pages += 1;
                let mut waiting: Vec<Arc<[Bytes]>> = connections(web, &job.objects)
                    .map(|objects| objects.map(Bytes::new).collect())
                    .collect();
                waiting.reverse();
                let page = generator.pages.insert(Page {
                    asked_at: self.now,
                    pair: job.pair,
                    waiting,
                    active: 0,
                    parsing: job.parsing,
                    has_main: false,
                });
                self.open_connection(i, page, first_flow)
            }
        }
    }

    /// A page whose embedded objects are due.
    fn next_parsed(&mut self, i: u32) -> Option<u32> {
        let parsing = &mut self.generators.get_mut(i as usize)?.parsing;
        let Reverse((at, _, page)) = *parsing.peek()?;
        (at <= self.now).then(|| {
            parsing.pop();
            page
        })
    }

    /// Opens as many connections of a page as it may have.
    fn open_connections(
        &mut self,
        i: u32,
        page: u32,
        first_flow: Target,
    ) -> Result<(), BuildError> {
        loop {
            let Some(generator) = self.generators.get_mut(i as usize) else {
                return Ok(());
            };
            let most = match &generator.spec.model {
                Model::Web(web) => web.connections.max(1),
                Model::Ftp(_) => 1,
            };
            match generator.pages.get(page) {
                Some(p) if p.active < most && !p.waiting.is_empty() => {}
                _ => return Ok(()),
            }
            self.open_connection(i, page, first_flow)?;
        }
    }

    fn open_connection(&mut self, i: u32, page: u32, first_flow: Target) -> Result<(), BuildError> {
        let Some(generator) = self.generators.get_mut(i as usize) else {
            return Ok(());
        };
        let Model::Web(web) = &generator.spec.model else {
            return Ok(());
        };
        let request_size = web.request_size;
        let Some(p) = generator.pages.get_mut(page) else {
            return Ok(());
        };
        let Some(objects) = p.waiting.pop() else {
            return Ok(());
        };
        p.active += 1;
        let pair = p.pair;
        let workload = Workload::Request(Request {
            request_size,
            ..Request::of(objects)
        });
        self.make(i, pair, workload, Some((i, page)), first_flow)
    }

    /// Starts a flow of a source.
    fn make(
        &mut self,
        i: u32,
        pair: u32,
        workload: Workload,
        parent: Option<Parent>,
        first_flow: Target,
    ) -> Result<(), BuildError> {
        let Some(generator) = self.generators.get_mut(i as usize) else {
            return Ok(());
        };
        let spec = &generator.spec;
        let Some(&(sender, receiver)) = spec.pairs.get(pair as usize) else {
            return Ok(());
        };
        // Files are pushed by the host that has them, objects are asked for by the one that gets them.
        let (from, to) = match &spec.model {
            Model::Ftp(_) => (sender, receiver),
            Model::Web(_) => (receiver, sender),
        };
        let flow = Arc::new(flow_spec(spec, from, to, workload));
        let path = format!("generator/{}/flow/{}", spec.id, generator.made);
        generator.made += 1;
        let id = self.next_generated;
        self.next_generated += 1;
        self.start_flow(flow, id, &path, parent, first_flow)
    }

    /// Flows that belong to pages have completed since the last event: opens what follows.
    pub(crate) fn go_on_with_pages(&mut self, first_flow: Target) -> Result<(), BuildError> {
        while let Some((i, page)) = self.finished.pop() {
            let first_generator = first_flow - self.generators.len() as u32;
            let Some(generator) = self.generators.get_mut(i as usize) else {
                continue;
            };
            let Some(p) = generator.pages.get_mut(page) else {
                continue;
            };
            p.active = p.active.saturating_sub(1);
            if !p.has_main {
                p.has_main = true;
                if !p.waiting.is_empty() {
                    let at = self.now + p.parsing;
                    generator
                        .parsing
                        .push(Reverse((at, generator.parsed, page)));
                    generator.parsed += 1;
                    self.net.queue.push(at, first_generator + i);
                    continue;
                }
            }
            if p.waiting.is_empty() && p.active == 0 {
                let took = self.now.saturating_since(p.asked_at);
                self.groups[generator.spec.group as usize]
                    .page_time
                    .record(took);
                generator.pages.remove(page);
            } else {
                self.open_connections(i, page, first_flow)?;
            }
        }
        Ok(())
    }
}

fn flow_spec(spec: &GeneratorSpec, from: NodeId, to: NodeId, workload: Workload) -> FlowSpec {
    FlowSpec {
        id: spec.id,
        label: Arc::clone(&spec.label),
        from,
        to,
        start: spec.start,
        stop: None,
        transport: TransportSpec::Tcp(spec.transport.clone()),
        workload,
        arrivals: None,
        group: Some(spec.group),
        rows: spec.rows,
    }
}

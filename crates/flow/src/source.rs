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

#[cfg(test)]
mod tests {
    use gargalo_workload::ftp::Ftp;
    use gargalo_workload::random::{Count, Size, Time};
    use gargalo_workload::web::Web;

    use super::*;
    use crate::testing::{at, bulk, flow, reno};

    fn source(model: Model) -> (Source, Group) {
        let spec = GeneratorSpec {
            id: 5,
            label: "source".into(),
            stream: "5".into(),
            pairs: vec![(2, 3)],
            path: 1,
            start: at(1000),
            stop: Some(at(60_000)),
            transport: reno(),
            model,
            demand: Demand::PerSecond(1.0),
            group: 0,
            rows: true,
        };
        let (source, _) = Source::new(spec, 1, at(300_000)).unwrap();
        (source, Group::new("g".into(), (at(0), at(60_000))))
    }

    /// Pages of a main object of 5 kB, which is parsed for 10 ms, and three of 1 kB, on two connections at once.
    fn pages() -> (Source, Group) {
        source(Model::Web(Arc::new(Web {
            pages: Count::Fixed(1),
            main_size: Some(Size::Fixed(Bytes::new(5000))),
            embedded: Some(Count::Fixed(3)),
            embedded_size: Some(Size::Fixed(Bytes::new(1000))),
            parsing_time: Time::Fixed(Duration::from_millis(10)),
            request_size: Bytes::new(300),
            connections: 2,
            ..Web::default()
        })))
    }

    fn request(flow: &NewFlow) -> (u64, u64) {
        let Workload::Request(request) = &*flow.spec.workload else {
            panic!("{:?}", flow.spec.workload);
        };
        let size = request.sizes.as_ref().unwrap()[0];
        (request.request_size.get(), size.get())
    }

    fn flows(next: Next) -> Vec<NewFlow> {
        match next {
            Next::Flows(flows) => flows,
            Next::ParsedAt(at) => panic!("parsed at {at:?}"),
        }
    }

    #[test]
    fn a_file_is_sent_by_the_host_that_has_it_when_it_is_due() {
        let (mut files, mut group) = source(Model::Ftp(Arc::new(Ftp {
            size: Size::Fixed(Bytes::new(9000)),
            ..Ftp::default()
        })));
        let due = files.next_transfer().unwrap();
        assert!(due > at(1000) && files.next_parsed().is_none());
        let early = Instant::from_nanos(due.as_nanos() - 1);
        assert!(files.transfer(early, &mut group).is_none());
        let first = files.transfer(due, &mut group).unwrap();
        assert!(
            matches!(&*first.spec.workload, Workload::Bulk(b) if b.bytes == Some(Bytes::new(9000)))
        );
        assert_eq!((first.spec.from, first.spec.to, first.spec.path), (2, 3, 1));
        assert_eq!(
            (first.stream.as_str(), first.page),
            ("generator/5/flow/0", None)
        );
        assert_eq!(group.planned, wire_model(&Config::default()).push(9000));
        let mut count = 1;
        while let Some(due) = files.next_transfer() {
            let flow = files.transfer(due, &mut group).unwrap();
            assert_eq!(flow.stream, format!("generator/5/flow/{count}"));
            assert!(due < at(60_000) && !files.is_over() || files.next_transfer().is_none());
            count += 1;
        }
        assert!(files.is_over() && (30..90).contains(&count), "{count}");
        assert_eq!(group.pages, 0);
    }

    #[test]
    fn a_page_is_its_main_object_and_then_the_others_a_few_at_a_time() {
        let (mut web, mut group) = pages();
        let start = web.next_transfer().unwrap();
        let main = web.transfer(start, &mut group).unwrap();
        assert_eq!(
            (request(&main), main.spec.from, main.spec.to),
            ((300, 5000), 3, 2)
        );
        assert_eq!((group.pages, group.sessions), (1, 1));
        let page = main.page.unwrap();
        let after = |ms| start + Duration::from_millis(ms);
        let parsed = match web.completed(after(20), page, &mut group) {
            Next::ParsedAt(at) => at,
            Next::Flows(flows) => panic!("{flows:?}"),
        };
        assert_eq!((parsed, web.next_parsed()), (after(30), Some(after(30))));
        assert!(web.parsed(after(29)).is_none());
        let two = web.parsed(after(30)).unwrap();
        assert_eq!(
            two.iter().map(request).collect::<Vec<_>>(),
            [(300, 1000); 2]
        );
        assert!(web.next_parsed().is_none() && web.parsed(after(31)).is_none());
        assert_eq!(flows(web.completed(after(40), page, &mut group)).len(), 1);
        for late in [50, 60] {
            assert_eq!(group.page_time.count(), 0);
            assert!(flows(web.completed(after(late), page, &mut group)).is_empty());
        }
        assert_eq!(group.page_time.count(), 1);
        assert_eq!(group.page_time.max(), Some(Duration::from_millis(60)));
        // It is not known any more.
        assert!(flows(web.completed(after(70), page, &mut group)).is_empty());
        assert_eq!(group.page_time.count(), 1);
    }

    #[test]
    fn a_source_is_over_when_its_last_page_is_complete() {
        let (mut web, mut group) = pages();
        let mut open = Vec::new();
        while let Some(due) = web.next_transfer() {
            assert!(!web.is_over());
            open.push(web.transfer(due, &mut group).unwrap().page.unwrap());
        }
        let end = at(100_000);
        for page in &open {
            assert!(!web.is_over());
            let Next::ParsedAt(_) = web.completed(end, *page, &mut group) else {
                panic!("a page without objects");
            };
        }
        while let Some(opened) = web.parsed(web.next_parsed().unwrap_or(end)) {
            assert_eq!(opened.len(), 2);
        }
        for page in open {
            for _ in 0..3 {
                assert!(!web.is_over());
                web.completed(end, page, &mut group);
            }
        }
        assert!(web.is_over());
    }

    #[test]
    fn pages_are_parsed_in_the_order_of_time() {
        let (mut web, mut group) = pages();
        let mut page = || {
            let due = web.next_transfer().unwrap();
            web.transfer(due, &mut group).unwrap().page.unwrap()
        };
        let [first, second] = [page(), page()];
        web.completed(at(5000), second, &mut group);
        web.completed(at(4000), first, &mut group);
        assert_eq!(web.next_parsed(), Some(at(4010)));
        let pages = |flows: Option<Vec<NewFlow>>| flows.unwrap()[0].page;
        assert_eq!(pages(web.parsed(at(9000))), Some(first));
        assert_eq!(pages(web.parsed(at(9000))), Some(second));
    }

    #[test]
    fn packets_of_a_transfer_have_the_sizes_of_the_configuration() {
        let plain = Config {
            timestamps: false,
            ..Config::default()
        };
        let with = wire_model(&Config::default());
        assert_eq!((with.header, with.opening), (52, 60));
        assert_eq!(
            (wire_model(&plain).header, wire_model(&plain).opening),
            (40, 60)
        );
        assert_eq!(with.segment, u64::from(Config::default().mss));
    }

    #[test]
    fn flows_arrive_until_the_template_stops() {
        let mut spec = flow(crate::TransportSpec::Udp, bulk(1));
        spec.start = at(500);
        spec.stop = Some(at(5000));
        let mut arrivals = Arrivals::new(Arc::new(spec), Duration::from_millis(100), 1);
        let mut due = Some(arrivals.first());
        let mut times = Vec::new();
        while let Some(now) = due {
            let arrival = arrivals.next(now);
            let expected = match times.len() {
                0 => "flow/7".to_owned(),
                n => format!("flow/7/{n}"),
            };
            assert_eq!(
                (arrival.stream, arrival.is_first),
                (expected, times.is_empty())
            );
            times.push(now);
            due = arrival.next;
        }
        assert!(times[0] > at(500) && times.is_sorted());
        assert!(times.iter().all(|t| *t < at(5000)));
        assert!((25..70).contains(&times.len()), "{}", times.len());
        assert!(*times.last().unwrap() > at(4000), "it goes on to the end");
    }
}

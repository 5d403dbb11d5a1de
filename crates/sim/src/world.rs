//! The engine: takes the next event, lets protocol code act, and sends the packets it produces.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_cc as cc;
use gargalo_flow::{
    Arrivals, CaptureSpec, Edge, FlowResult, FlowSpec, Group, GroupId, NodeId, Outcome, Phase,
    Progress, Routing, Slab, Source, Topology, TransportSpec, Watch, Window, gauges, gauges_of,
    rng,
};
use gargalo_link::Link;
use gargalo_units::{Bytes, Instant};

use crate::BuildError;
use crate::capture::Capture;
use crate::event::Target;
use crate::flow::{End, Flow, Parent};
use crate::net::{Moment, Net};
use crate::paths;
use crate::recorder::{Recorder, Recording};
use crate::standstill::Standstill;

/// Settings of a run besides topology and flows.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of every random stream.
    pub seed: u64,
    /// Virtual end of the run.
    pub end: Instant,
    /// Stop as soon as no flow is left (all limited transfers done).
    pub stop_when_idle: bool,
    /// What is sampled, and at which interval.
    pub recording: Recording,
    /// The window in which rates, ratios and distributions are measured; `None`: all of the run.
    pub measure: Option<(Instant, Instant)>,
    /// Carry real bytes and compare them at the receiver.
    pub verify: bool,
    /// Give every packet an event at the end of every link, as a capture does at its links. The results are the same;
    /// it is slower, and there to prove that.
    pub every_event: bool,
    /// Links whose packets are captured, and the file; `None`: no capture.
    pub captures: Option<CaptureSpec>,
    /// Folder for the qlog traces of QUIC flows that have a row.
    pub qlog: Option<std::path::PathBuf>,
}

/// Work, in events and packets, between two calls of the caller's progress function: some milliseconds even where a
/// packet costs a signature or a call into Python.
const LOOK_EVERY: u64 = 1 << 10;

/// A network with flows on it, in virtual time.
#[derive(Debug)]
pub struct World {
    pub(crate) topology: Topology,
    pub(crate) routing: Routing,
    pub(crate) settings: Settings,
    pub(crate) now: Instant,
    pub(crate) net: Net,
    pub(crate) flows: Slab<Flow>,
    pub(crate) generation: u32,
    pub(crate) arrivals: Vec<Arrivals>,
    pub(crate) waiting: Vec<Option<Arc<FlowSpec>>>,
    /// Routes by hosts and number of the path.
    pub(crate) routes: std::collections::BTreeMap<(NodeId, NodeId, u8), u32>,
    /// Routes between interfaces, each given by a host and a link, as far as they were looked up.
    pub(crate) interface_routes: std::collections::BTreeMap<[(NodeId, usize); 2], Option<u32>>,
    /// Disjoint routes between two hosts that use several, by their greatest number.
    pub(crate) paths: std::collections::BTreeMap<(NodeId, NodeId, usize), [Vec<u32>; 2]>,
    pub(crate) recorder: Recorder,
    pub(crate) window: Window,
    pub(crate) results: Vec<FlowResult>,
    pub(crate) peak_flows: usize,
    pub(crate) events: u64,
    pub(crate) next_generated: u64,
    pub(crate) groups: Vec<Group>,
    pub(crate) generators: Vec<Source>,
    /// Pages with a flow that has completed since the last event.
    pub(crate) finished: Vec<Parent>,
    /// The first event target of flows; known when the run begins.
    pub(crate) first_flow: Target,
    /// Virtual time has started.
    pub(crate) running: bool,
    /// State shared by QUIC endpoints; created with the first of them.
    pub(crate) quic: Option<gargalo_quic::Realm>,
    /// Names of interfaces by pair of hosts.
    pub(crate) names: BTreeMap<[NodeId; 2], gargalo_mptcp::Names>,
    /// Events and packets at which the caller is called next.
    next_look: u64,
    pub(crate) standstill: Standstill,
    /// The caller has stopped the run.
    stopped: bool,
}

impl World {
    /// Builds the network.
    ///
    /// # Errors
    /// When a link's configuration is impossible or a capture cannot be opened.
    pub fn new(topology: Topology, settings: Settings) -> Result<Self, BuildError> {
        let mut net = Net::default();
        for l in &topology.links {
            for (direction, config) in [("up", &l.up), ("down", &l.down)] {
                let rng = rng::stream(settings.seed, &format!("link/{}/{direction}", l.name));
                let link = Link::new(config.clone(), rng).map_err(|e| BuildError::Link {
                    link: format!("{} ({direction})", l.name),
                    reason: e.to_string(),
                })?;
                net.add_link(link, config.strip_mptcp);
            }
        }
        if let Some(spec) = &settings.captures {
            net.capture_with(Capture::open(spec, &topology)?);
        }
        let recorder = Recorder::new(settings.recording.clone(), &topology);
        let window = Window::new(settings.measure);
        Ok(Self {
            routing: topology.routing(),
            topology,
            settings,
            now: Instant::ZERO,
            net,
            flows: Slab::default(),
            generation: 0,
            arrivals: Vec::new(),
            waiting: Vec::new(),
            routes: std::collections::BTreeMap::new(),
            interface_routes: std::collections::BTreeMap::new(),
            paths: std::collections::BTreeMap::new(),
            recorder,
            window,
            results: Vec::new(),
            peak_flows: 0,
            events: 0,
            next_generated: 0,
            groups: Vec::new(),
            generators: Vec::new(),
            finished: Vec::new(),
            first_flow: 0,
            running: false,
            quic: None,
            names: BTreeMap::new(),
            next_look: LOOK_EVERY,
            standstill: Standstill::default(),
            stopped: false,
        })
    }

    /// Adds a group of flows that are counted together and start within this window.
    pub fn add_group(&mut self, label: Arc<str>, window: (Instant, Instant)) -> GroupId {
        self.groups.push(Group::new(label, window));
        self.groups.len() as u32 - 1
    }

    /// The directions that a packet takes.
    pub(crate) fn route(&mut self, from: NodeId, to: NodeId) -> Result<Vec<u32>, BuildError> {
        let route = self.routing.route(from, to);
        Ok(route.ok_or_else(|| self.topology.unreachable(from, to))?)
    }

    /// Stores the routes between two hosts on a path, in both directions.
    pub(crate) fn ensure_routes(
        &mut self,
        (from, to, path): (NodeId, NodeId, u8),
    ) -> Result<(), BuildError> {
        for way @ (a, b, _) in [(from, to, path), (to, from, path)] {
            if !self.routes.contains_key(&way) {
                let route = self.routing.nth(a, b, path);
                let route = route.ok_or_else(|| self.topology.unreachable(a, b))?;
                let handle = self.net.add_route(&route);
                self.routes.insert(way, handle);
                if let Some(capture) = &mut self.net.capture {
                    capture.add_route(handle, a, b);
                }
            }
        }
        Ok(())
    }

    /// Handles of up to `most` disjoint routes in both directions, over the same links.
    pub(crate) fn disjoint_routes(
        &mut self,
        from: NodeId,
        to: NodeId,
        most: usize,
    ) -> Result<[Vec<u32>; 2], BuildError> {
        let key = (from, to, most);
        if let Some(known) = self.paths.get(&key) {
            return Ok(known.clone());
        }
        let mut handles = [Vec::new(), Vec::new()];
        let routes = self.routing.disjoint(from, to, most);
        if routes.is_empty() {
            return Err(self.topology.unreachable(from, to).into());
        }
        for there in routes {
            let back: Vec<_> = there.iter().rev().map(|d| d ^ 1).collect();
            for (i, (route, ends)) in [(there, (from, to)), (back, (to, from))]
                .into_iter()
                .enumerate()
            {
                let handle = self.net.add_route(&route);
                if let Some(capture) = &mut self.net.capture {
                    capture.add_route(handle, ends.0, ends.1);
                }
                handles[i].push(handle);
            }
        }
        self.paths.insert(key, handles.clone());
        Ok(handles)
    }

    /// Adds a flow, or a template with Poisson arrivals.
    ///
    /// # Errors
    /// When the hosts are not connected or the congestion control cannot be built.
    pub fn add_flow(&mut self, spec: FlowSpec) -> Result<(), BuildError> {
        self.ensure_routes((spec.from, spec.to, spec.path))?;
        // Built once here so that invalid parameters are reported now, not in the middle of the run.
        match &spec.transport {
            TransportSpec::Tcp(t) => {
                self.controller(&spec, t, &mut rng::stream(self.settings.seed, "check"))?;
            }
            TransportSpec::Quic(q) => self.check_quic(&spec, q)?,
            TransportSpec::Mptcp(m) => self.check_mptcp(&spec, m)?,
            TransportSpec::Udp => {}
        }
        self.next_generated = self.next_generated.max(spec.id + 1);
        self.standstill
            .note(&spec, (&self.topology, &self.net, &self.routes));
        let spec = Arc::new(spec);
        match spec.arrivals {
            Some(mean) => {
                let arrivals = Arrivals::new(spec, mean, self.settings.seed);
                self.arrivals.push(arrivals);
            }
            None => self.waiting.push(Some(spec)),
        }
        Ok(())
    }

    pub(crate) fn controller(
        &self,
        spec: &FlowSpec,
        tcp: &gargalo_flow::TcpSpec,
        rng: &mut rand_pcg::Pcg64,
    ) -> Result<Box<dyn cc::Controller>, BuildError> {
        let mss = Bytes::new(u64::from(tcp.config.mss));
        let init = cc::Init {
            now: self.now,
            mss,
            initial_window: tcp.config.first_window(),
            rng: rng::part(rng),
        };
        tcp.congestion
            .build(init)
            .map_err(|reason| BuildError::Controller {
                flow: spec.label.to_string(),
                reason,
            })
    }

    // Targets in the order of events at one instant: starts, arrivals, sources, the sampler, link directions, flows.
    fn first_arrival(&self) -> Target {
        self.waiting.len() as u32
    }
    pub(crate) fn first_generator(&self) -> Target {
        self.first_arrival() + self.arrivals.len() as u32
    }
    fn sampler(&self) -> Target {
        self.first_generator() + self.generators.len() as u32
    }
    fn first_direction(&self) -> Target {
        self.sampler() + 1
    }

    /// Ends the run before it begins.
    pub const fn stop(&mut self) {
        self.stopped = true;
    }

    /// Runs to the end. `progress` is called after every thousand events and packets; if it breaks, the run stops and
    /// keeps what was recorded.
    ///
    /// # Errors
    /// When a capture cannot be written, flows come faster than they go, or virtual time stands still.
    pub fn run(mut self, progress: &mut Watch<'_>) -> Result<Outcome, BuildError> {
        let (first_arrival, first_generator) = (self.first_arrival(), self.first_generator());
        let (first_direction, sampler) = (self.first_direction(), self.sampler());
        let first_flow = first_direction + self.net.directions();
        self.first_flow = first_flow;
        self.net.first = first_direction;
        self.net.every_event = self.settings.every_event;
        let end = self.settings.end;
        self.running = true;
        if let Some(interval) = self.recorder.interval() {
            self.net.queue.push(Instant::ZERO + interval, sampler);
        }
        for (i, spec) in self.waiting.iter().enumerate() {
            if let Some(spec) = spec {
                self.net.queue.push(spec.start, i as u32);
            }
        }
        let mut pending_starts = self.waiting.len();
        for (i, a) in self.arrivals.iter_mut().enumerate() {
            self.net.queue.push(a.first(), first_arrival + i as u32);
        }
        self.arm_generators(first_generator);
        while !self.stopped
            && let Some(entry) = self.net.queue.pop()
        {
            if entry.time() > end {
                break;
            }
            if entry.time() < self.now {
                return Err(self.time_reversed(entry));
            }
            let target = entry.target();
            self.net.moment = self.net.moment.max(Moment::new(entry.time(), target));
            self.pass_edges(|at| at < entry.time());
            self.now = entry.time();
            self.events += 1;
            if target >= first_flow {
                self.on_timer(target - first_flow);
            } else if target >= first_direction {
                self.on_link(target - first_direction, progress)?;
            } else if target == sampler {
                self.sample();
                // No event is left that could lead to another: the sampler alone must not keep the world running.
                let idle = self.net.queue.is_empty() && self.flows.is_empty();
                if let Some(interval) = self.recorder.interval()
                    && !idle
                {
                    self.net.queue.push(self.now + interval, sampler);
                }
            } else if target >= first_generator {
                self.on_generator(target - first_generator, target)?;
            } else if target >= first_arrival {
                self.on_arrival((target - first_arrival) as usize, target)?;
            } else {
                let spec = self.waiting[target as usize].take();
                pending_starts -= 1;
                if let Some(spec) = spec {
                    let (id, stream) = (spec.id, spec.stream_name());
                    self.start_flow(spec, id, &stream, None)?;
                }
            }
            if !self.net.too_big.is_empty() {
                self.report_too_big();
            }
            if !self.finished.is_empty() {
                self.go_on_with_pages()?;
            }
            if pending_starts == 0 && self.is_idle() {
                break;
            }
            self.look(progress)?;
        }
        let reached = if self.stopped || (pending_starts == 0 && self.is_idle()) {
            self.now
        } else {
            self.net.moment = Moment::after(end);
            end
        };
        self.pass_edges(|at| at <= reached);
        self.now = reached;
        let _ = progress(&self.progress());
        self.finish()
    }

    /// Asks the caller whether to continue, if enough work was done since the last call.
    #[inline]
    pub(crate) fn look(&mut self, progress: &mut Watch<'_>) -> Result<(), BuildError> {
        if self.events + self.net.transmitted() < self.next_look {
            return Ok(());
        }
        self.ask(progress)
    }

    #[cold]
    fn ask(&mut self, progress: &mut Watch<'_>) -> Result<(), BuildError> {
        let work = self.events + self.net.transmitted();
        self.next_look = work + LOOK_EVERY;
        let network = (&self.topology, &self.net, &self.routes);
        self.standstill
            .check((self.now, work), &mut self.flows, network)?;
        self.stopped |= progress(&self.progress()).is_break();
        Ok(())
    }

    /// Whether the caller has stopped the run.
    #[inline]
    pub(crate) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    #[cold]
    fn time_reversed(&self, entry: crate::event::Entry) -> BuildError {
        BuildError::TimeReversed {
            now_s: self.now.decimal_secs(),
            event_s: entry.time().decimal_secs(),
            target: entry.target(),
        }
    }

    /// Takes the counts at the edges of the measured window that have passed, after all events before the edge.
    #[inline]
    fn pass_edges(&mut self, has_passed: impl Fn(Instant) -> bool) {
        while let Some((edge, at)) = self.window.next()
            && has_passed(at)
        {
            self.mark(edge, at);
        }
    }

    #[cold]
    fn mark(&mut self, edge: Edge, at: Instant) {
        self.net.settle(Moment::after(at).min(self.net.moment));
        self.count_lost_datagrams();
        for (_, flow) in self.flows.iter_mut() {
            paths::mark(flow, at, edge);
            let (counters, wire) = (flow.counters(), flow.wire());
            flow.talk.mark(edge, counters, wire);
        }
        self.groups.iter_mut().for_each(|g| g.mark(edge));
        self.recorder.mark(edge, at, &mut self.net);
        self.window.pass(edge, at);
    }

    /// Whether no flow is left and none will start, in a world that then stops.
    fn is_idle(&self) -> bool {
        self.settings.stop_when_idle
            && self.flows.is_empty()
            && self.arrivals.is_empty()
            && self.generators.iter().all(Source::is_over)
    }

    fn progress(&self) -> Progress<'static> {
        let end = self.settings.end;
        let share = self.now.as_secs_f64() / end.as_secs_f64();
        Progress {
            fraction: if share < 1.0 { share } else { 1.0 },
            now: self.now,
            packets: self.net.transmitted(),
            events: self.events,
            recorded: self.recorder.bytes(),
            ..Progress::begin(Phase::Running, end)
        }
    }

    fn finish(mut self) -> Result<Outcome, BuildError> {
        self.net.settle(self.net.moment);
        self.count_lost_datagrams();
        let mut last = Recorder::new(Recording::default(), &Topology::default());
        sample_flows(&mut self.flows, self.now, &mut last);
        let alive: Vec<u32> = self.flows.iter_mut().map(|(slot, _)| slot).collect();
        for slot in alive {
            self.retire(slot);
        }
        // Their places are not needed beside the tables to come.
        self.flows = Slab::default();
        if let Some(capture) = self.net.capture.take() {
            capture.close()?;
        }
        // In place: a number is that of one flow.
        self.results.sort_unstable_by_key(|f| f.id);
        let began = self.window.has_begun();
        self.groups.iter_mut().for_each(|g| g.close(began));
        let measured = self.window.had(self.now);
        let links = self.recorder.links(self.now, &mut self.net, measured);
        let routes = self.routes.iter();
        let routes = routes.map(|(ends, handle)| (*ends, self.net.route(*handle).to_vec()));
        let routes = routes.collect();
        Ok(Outcome {
            flows: self.results,
            groups: self.groups,
            links,
            routes,
            samples: self.recorder.into_samples(),
            last: last.into_samples(),
            end: self.now,
            measured,
            packets: self.net.transmitted(),
            events: self.events,
            peak_flows: self.peak_flows,
            interrupted: self.stopped,
        })
    }

    fn sample(&mut self) {
        self.net.settle(self.net.moment);
        if self.recorder.wants_flows() {
            sample_flows(&mut self.flows, self.now, &mut self.recorder);
        }
        self.recorder.sample_links(self.now, &mut self.net);
    }

    fn on_arrival(&mut self, i: usize, target: Target) -> Result<(), BuildError> {
        let arrival = self.arrivals[i].next(self.now);
        let id = if arrival.is_first {
            arrival.spec.id
        } else {
            self.next_generated += 1;
            self.next_generated - 1
        };
        if let Some(next) = arrival.next {
            self.net.queue.push(next, target);
        }
        self.start_flow(arrival.spec, id, &arrival.stream, None)
    }
}

/// Samples every flow that has a row.
fn sample_flows(flows: &mut Slab<Flow>, now: Instant, recorder: &mut Recorder) {
    for (_, flow) in flows.iter_mut() {
        if flow.opening || !flow.spec.rows {
            continue;
        }
        let several = paths::sample(flow, now, recorder);
        let single = several.is_none();
        let sample = several.or_else(|| flow.sample(now));
        if recorder.wants_gauges() && single {
            let looks = match (&flow.sides[flow.talk.sender()].end, &sample) {
                (Some(End::Tcp(sender)), _) => gauges(now, flow.id, "sample", sender),
                (Some(End::Quic(_)), Some(sample)) => gauges_of(sample, "sample", &[]),
                _ => Vec::new(),
            };
            recorder.gauges(looks);
        }
        sample.into_iter().for_each(|s| recorder.flow(s));
    }
}

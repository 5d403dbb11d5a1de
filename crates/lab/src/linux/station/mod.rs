//! A host of the lab with our own stack, and the ends of flows there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use gargalo_flow::{Edge, FlowSample, TcpSpec, causes, gauges};
use gargalo_host::{
    ConnectionId, Host, HostConfig, HostEvent, ListenerId, MptcpOptions, SocketOptions, UdpId,
};
use gargalo_mptcp::Names;
use gargalo_tcp::Endpoint;
use gargalo_units::Instant;

use crate::linux::engine;
use crate::linux::plan::Part;
use crate::linux::traffic::{
    DatagramEnd, Flow, Inbox, Interest, LOOK_AGAIN, Recorder, SERVER_COMES,
};
use crate::{Error, Result};

mod multipath;
mod streams;

use multipath::Track;
use streams::{HostDatagrams, HostStream};

fn unsupported(e: &dyn std::fmt::Display) -> Error {
    Error::Unsupported(e.to_string())
}

/// One end of a flow at a host with our stack.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) flow: Arc<Flow>,
    /// 0 is the side that opens the connection.
    pub(crate) side: usize,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Local interfaces that Multipath TCP may use.
    pub(crate) parts: Vec<Part>,
    /// The links of both hosts' addresses.
    pub(crate) names: Names,
}

impl End {
    /// The options of its connection.
    fn options(&self, tcp: &TcpSpec) -> SocketOptions {
        let addresses = |wanted: fn(&Part) -> bool| {
            let all = self.parts.iter().filter(|p| p.up && wanted(p));
            all.map(|p| p.address).collect()
        };
        let mptcp = self.flow.mptcp().map(|m| {
            Arc::new(MptcpOptions {
                config: (*m.config).clone(),
                addresses: addresses(|_| true),
                backups: addresses(|p| p.backup),
                names: self.names.clone(),
            })
        });
        SocketOptions {
            mptcp,
            ..SocketOptions::new(Arc::clone(&tcp.config), Arc::clone(&tcp.congestion))
        }
    }
}

/// A host and its ends of flows.
pub(crate) struct Station {
    host: Host,
    /// In the order in which they were added.
    ends: BTreeMap<usize, Driven>,
    came: usize,
    inbox: Arc<Inbox<End>>,
    connections: BTreeMap<ConnectionId, usize>,
    listeners: BTreeMap<ListenerId, usize>,
    sockets: BTreeMap<UdpId, usize>,
    recorder: Arc<Recorder>,
}

struct Driven {
    end: End,
    phase: Phase,
    /// Its listener, at a server.
    listener: Option<ListenerId>,
    /// Phase of its congestion control at the last check.
    congestion_phase: &'static str,
    /// Its UDP sockets.
    sockets: Vec<(SocketAddr, UdpId)>,
    datagrams: DatagramEnd,
    due: Instant,
    /// Its Multipath TCP state.
    track: Track,
}

impl Driven {
    /// When the next change of addresses is due.
    fn next_change(&self) -> Instant {
        let flow = &self.end.flow;
        match flow.mptcp() {
            Some(mptcp) => self.track.next_change(flow.spec.start, mptcp),
            _ => Instant::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the flow starts, or before the peer has connected.
    Waiting,
    Open(ConnectionId),
    Datagrams,
}

impl Station {
    /// Creates a host without ends of flows; those that start while it runs arrive in the `inbox`.
    pub(crate) fn new(
        config: HostConfig,
        inbox: Arc<Inbox<End>>,
        recorder: Arc<Recorder>,
        now: Instant,
    ) -> Result<Self> {
        let host = Host::new(config, now).map_err(|e| unsupported(&e))?;
        Ok(Self {
            host,
            ends: BTreeMap::new(),
            came: 0,
            inbox,
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            sockets: BTreeMap::new(),
            recorder,
        })
    }

    /// Adds an end of a flow; a server starts to listen.
    pub(crate) fn add(&mut self, end: End) -> Result<()> {
        let i = self.came;
        let (mut phase, mut own) = (Phase::Waiting, Vec::new());
        let mut due = end.flow.spec.start;
        let mut listener = None;
        match &end.flow.tcp {
            Some(tcp) if end.side == 1 => {
                let options = end.options(tcp);
                let listening = self.host.listen(end.local, options);
                let id = listening.map_err(|e| unsupported(&e))?;
                self.listeners.insert(id, i);
                listener = Some(id);
                due = end.flow.stop;
            }
            Some(_) => {}
            None => {
                for local in DatagramEnd::locals(&end.flow, end.side) {
                    let bound = self.host.bind_udp(local);
                    let id = bound.map_err(|e| unsupported(&e))?;
                    self.sockets.insert(id, i);
                    own.push((local, id));
                }
                if end.side == 1 {
                    phase = Phase::Datagrams;
                    due = end.flow.stop;
                }
            }
        }
        if end.side == 1 {
            end.flow.is_served();
        }
        self.came += 1;
        let driven = Driven {
            datagrams: DatagramEnd::new(&end.flow, end.side),
            end,
            phase,
            listener,
            congestion_phase: "",
            sockets: own,
            due,
            track: Track::default(),
        };
        self.ends.insert(i, driven);
        Ok(())
    }

    /// Adds the ends of flows that have arrived in the inbox.
    fn take_inbox(&mut self, now: Instant) {
        for end in self.inbox.take() {
            let flow = Arc::clone(&end.flow);
            if self.add(end).is_err() {
                flow.fail(now, "socket error");
                flow.close();
            }
        }
    }

    /// Handles the events of the stack and lets applications act.
    fn serve(&mut self, now: Instant) {
        while let Some(event) = self.host.poll_event() {
            let end = match event {
                HostEvent::Accepted {
                    listener,
                    connection,
                    ..
                } => {
                    let end = self.listeners.get(&listener).copied();
                    let waiting = end.and_then(|i| self.ends.get_mut(&i));
                    match waiting.filter(|d| d.phase == Phase::Waiting).zip(end) {
                        Some((d, i)) => {
                            d.phase = Phase::Open(connection);
                            self.connections.insert(connection, i);
                        }
                        None => self.host.abort(now, connection),
                    }
                    end
                }
                HostEvent::Connected(id) => {
                    let end = self.connections.get(&id).copied();
                    if let Some(d) = end.and_then(|i| self.ends.get(&i)) {
                        d.end.flow.connected(now);
                    }
                    end
                }
                HostEvent::Multipath { id, news } => {
                    let end = self.connections.get(&id);
                    if let Some(d) = end.and_then(|i| self.ends.get_mut(i)) {
                        d.track.on_news(now, &d.end.flow, &news, &self.recorder);
                    }
                    None
                }
                HostEvent::Readable(id)
                | HostEvent::Writable(id)
                | HostEvent::PeerClosed(id)
                | HostEvent::Closed { id, .. } => self.connections.get(&id).copied(),
                HostEvent::UdpReadable(id) => self.sockets.get(&id).copied(),
                _ => None,
            };
            if let Some(i) = end {
                self.advance(now, i);
            }
        }
    }

    fn advance(&mut self, now: Instant, i: usize) {
        let Some(d) = self.ends.get_mut(&i) else {
            return;
        };
        let flow = Arc::clone(&d.end.flow);
        let interest = match d.phase {
            _ if flow.is_over() => return self.finish(now, i),
            Phase::Waiting if d.end.side == 1 || now < flow.spec.start => return,
            Phase::Waiting => return self.start(now, i),
            Phase::Open(id) => {
                let mut stream = HostStream {
                    host: &mut self.host,
                    id,
                    now,
                };
                flow.drive(now, d.end.side, &mut stream)
            }
            Phase::Datagrams => {
                let known = d.sockets.len();
                let mut sockets = HostDatagrams {
                    host: &mut self.host,
                    sockets: &mut d.sockets,
                };
                let interest = d.datagrams.drive(now, &flow, &mut sockets, &self.recorder);
                for (_, id) in &d.sockets[known..] {
                    self.sockets.insert(*id, i);
                }
                interest
            }
        };
        self.follow(now, i, interest);
    }

    fn follow(&mut self, now: Instant, i: usize, interest: Interest) {
        if interest.over {
            let Some(d) = self.ends.get_mut(&i) else {
                return;
            };
            // Its counts are not final before the peer has received everything.
            if let Phase::Open(id) = d.phase
                && !d.end.flow.is_over()
                && self.host.unacknowledged(id) > 0
            {
                d.due = now + LOOK_AGAIN;
                return;
            }
            return self.finish(now, i);
        }
        if let Some(d) = self.ends.get_mut(&i) {
            d.due = interest.until;
        }
    }

    fn start(&mut self, now: Instant, i: usize) {
        let Some(d) = self.ends.get_mut(&i) else {
            return;
        };
        let flow = &d.end.flow;
        if !flow.is_ready() {
            d.due = now + SERVER_COMES;
            return;
        }
        d.due = flow.stop;
        match &flow.tcp {
            Some(tcp) => {
                let options = d.end.options(tcp);
                match self
                    .host
                    .connect(now, Some(d.end.local), d.end.remote, &options)
                {
                    Ok(id) => {
                        d.phase = Phase::Open(id);
                        self.connections.insert(id, i);
                    }
                    Err(_) => flow.fail(now, "socket error"),
                }
            }
            None => {
                d.phase = Phase::Datagrams;
                self.advance(now, i);
            }
        }
    }

    /// Makes the changes of addresses that are due.
    fn change(&mut self, now: Instant, i: usize) {
        let Some(d) = self.ends.get_mut(&i) else {
            return;
        };
        if d.next_change() > now {
            return;
        }
        let id = match d.phase {
            Phase::Open(id) => Some(id),
            _ => None,
        };
        let end = (&*d.end.flow, d.end.side);
        d.track.change(now, end, &mut self.host, id, &d.end.parts);
    }

    /// Keeps the stack's counters and closes the end.
    fn finish(&mut self, now: Instant, i: usize) {
        let Some(d) = self.ends.get_mut(&i) else {
            return;
        };
        let flow = &d.end.flow;
        match d.phase {
            Phase::Open(id) => {
                if let Some(stats) = self.host.tcp_stats(id) {
                    if d.end.side == flow.sender() {
                        flow.count(stats.sender);
                    } else {
                        flow.marks(stats.ce_marks);
                    }
                }
                if flow.mptcp().is_some() {
                    let report = d.track.report(now, flow, d.end.side, &self.host, id);
                    flow.report(report);
                }
                if now >= flow.stop {
                    self.host.abort(now, id);
                } else {
                    self.host.close(now, id);
                }
                self.host.release(id);
                self.connections.remove(&id);
            }
            Phase::Datagrams => {
                let mut sockets = HostDatagrams {
                    host: &mut self.host,
                    sockets: &mut d.sockets,
                };
                d.datagrams.finish(now, flow, &mut sockets, &self.recorder);
            }
            Phase::Waiting => {}
        }
        if let Some(listener) = d.listener {
            self.listeners.remove(&listener);
            self.host.close_listener(listener);
        }
        for (_, id) in &d.sockets {
            self.sockets.remove(id);
            self.host.close_udp(*id);
        }
        flow.close();
        self.ends.remove(&i);
    }

    /// Takes the round-trip samples and notices of every sender; samples each if `sample`.
    fn observe(&mut self, now: Instant, sample: bool) {
        for d in self.ends.values_mut() {
            let flow = &d.end.flow;
            let sample = sample && flow.spec.rows;
            if sample && d.phase == Phase::Datagrams {
                d.datagrams.sample(now, flow, &self.recorder);
            }
            let Phase::Open(id) = d.phase else { continue };
            if flow.mptcp().is_some() && self.host.multipath(id).is_some() {
                let (host, recorder) = (&mut self.host, &self.recorder);
                let sends = d.end.side == flow.sender();
                d.track
                    .observe(now, flow, host, id, recorder, sends, sample);
                continue;
            }
            if d.end.side != flow.sender() {
                if sample && let Some(endpoint) = self.host.endpoint(id) {
                    flow.buffered(Some(endpoint.buffered()));
                }
                continue;
            }
            let Some(endpoint) = self.host.endpoint_mut(id) else {
                continue;
            };
            let sample = sample && !flow.is_over();
            notices(
                now,
                flow,
                (&mut *endpoint, &mut d.congestion_phase),
                &self.recorder,
                sample,
            );
            if sample {
                let s = endpoint.snapshot(now);
                if !s.cwnd.is_zero() {
                    let (id, reached) = (flow.spec.id, flow.reached());
                    self.recorder
                        .sample(FlowSample::of_tcp(now, id, reached, s));
                }
            }
        }
    }
}

/// Takes the round-trip samples and notices of a sender, and records its congestion control: at each new phase, at
/// notices and with every `sample`.
fn notices(
    now: Instant,
    flow: &Flow,
    (endpoint, phase): (&mut Endpoint, &mut &'static str),
    recorder: &Recorder,
    sample: bool,
) {
    if let Some(rtt) = endpoint.take_rtt_sample() {
        flow.round_trip(rtt);
    }
    let id = flow.spec.id;
    let now_in = endpoint.phase();
    let notices = std::iter::from_fn(|| {
        let notice = endpoint.poll_notice()?;
        if flow.spec.rows {
            recorder.event(now, id, notice.kind(), notice.detail());
        }
        Some(notice.kind())
    });
    let mut causes = causes(now_in, phase, notices);
    if sample && causes.is_empty() {
        causes.push_str("sample");
    }
    if recorder.tables.gauges && flow.spec.rows && !causes.is_empty() {
        recorder.look(gauges(now, id, &causes, endpoint));
    }
}

impl engine::Station for Station {
    fn handle(&mut self, now: Instant, datagram: &[u8]) {
        self.host.handle(now, datagram);
        self.serve(now);
        self.observe(now, false);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
        self.serve(now);
        self.take_inbox(now);
        let all: Vec<usize> = self.ends.keys().copied().collect();
        for i in all {
            self.change(now, i);
            if self.ends.get(&i).is_some_and(|d| d.due <= now) {
                self.advance(now, i);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.inbox.is_filled() {
            return Some(Instant::ZERO);
        }
        let ends = self.ends.values();
        let due = ends.map(|d| d.due.min(d.next_change())).min();
        let due = due.filter(|t| *t < Instant::MAX);
        match (due, self.host.poll_timeout()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        self.host.poll_transmit(now, out)
    }

    fn is_done(&self) -> bool {
        self.ends.is_empty() && !self.inbox.is_filled()
    }

    fn sample(&mut self, now: Instant) {
        self.observe(now, true);
    }

    fn mark(&mut self, now: Instant, edge: Edge) {
        for d in self.ends.values_mut() {
            let flow = &d.end.flow;
            if d.phase == Phase::Datagrams {
                d.datagrams.mark(edge, flow, &self.recorder);
            }
            let Phase::Open(id) = d.phase else { continue };
            if d.end.side != flow.sender() {
                continue;
            }
            if let Some(stats) = self.host.tcp_stats(id) {
                flow.count_at(edge, stats.sender);
            }
            if let Some(connection) = self.host.multipath(id) {
                d.track.mark(now, connection, edge);
            }
        }
    }

    fn close(&mut self, now: Instant) {
        self.take_inbox(now);
        let all: Vec<usize> = self.ends.keys().copied().collect();
        for i in all {
            self.finish(now, i);
        }
    }
}

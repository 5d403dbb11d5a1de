//! A host of the lab with our own stack, and the ends of flows there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use gargalo_flow::{Edge, FlowSample, ProtocolEvent, TcpSpec};
use gargalo_host::{
    ConnectionId, Host, HostConfig, HostEvent, ListenerId, MptcpOptions, SocketOptions, UdpId,
};
use gargalo_mptcp::Names;
use gargalo_tcp::Endpoint;
use gargalo_units::{Duration, Instant};

use crate::engine;
use crate::multipath::Part;
use crate::traffic::{Flow, Interest, Quic, Recorder};
use crate::{Error, Result};

pub(crate) mod multipath;
mod streams;

use multipath::Track;
use streams::{HostDatagrams, HostStream};

/// Time after which an end that has nothing to do but waits for its peer is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// One end of a flow at a host with our stack.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) flow: Arc<Flow>,
    /// 0 is the side that opens.
    pub(crate) side: usize,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Our interfaces that may take part, if it has Multipath TCP.
    pub(crate) parts: Vec<Part>,
    /// The links of both hosts' addresses.
    pub(crate) names: Names,
}

impl End {
    /// What its connection is made with.
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

/// The host and its ends of flows.
pub(crate) struct Station {
    host: Host,
    ends: Vec<Driven>,
    connections: BTreeMap<ConnectionId, usize>,
    listeners: BTreeMap<ListenerId, usize>,
    sockets: BTreeMap<UdpId, usize>,
    recorder: Arc<Recorder>,
}

struct Driven {
    end: End,
    phase: Phase,
    /// Its UDP sockets.
    sockets: Vec<(SocketAddr, UdpId)>,
    /// Its QUIC, if it has that.
    quic: Option<Quic>,
    due: Instant,
    /// Its Multipath TCP.
    track: Track,
}

impl Driven {
    /// When its next address comes or goes.
    fn next_change(&self) -> Instant {
        let flow = &self.end.flow;
        match flow.mptcp() {
            Some(mptcp) if self.phase != Phase::Over => {
                self.track.next_change(flow.spec.start, mptcp)
            }
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
    Over,
}

impl Station {
    /// A host with its ends of flows; servers listen from now on.
    pub(crate) fn new(
        config: HostConfig,
        ends: Vec<End>,
        recorder: Arc<Recorder>,
        now: Instant,
    ) -> Result<Self> {
        let unsupported = |e: &dyn std::fmt::Display| Error::Unsupported(e.to_string());
        let mut host = Host::new(config, now).map_err(|e| unsupported(&e))?;
        let (mut listeners, mut sockets) = (BTreeMap::new(), BTreeMap::new());
        let mut driven = Vec::with_capacity(ends.len());
        for (i, end) in ends.into_iter().enumerate() {
            let (mut phase, mut own) = (Phase::Waiting, Vec::new());
            let quic = end.flow.quic().map(|_| Quic::new(&end.flow, end.side));
            let mut due = end.flow.spec.start;
            match &end.flow.tcp {
                Some(tcp) if end.side == 1 => {
                    let options = end.options(tcp);
                    let id = host
                        .listen(end.local, options)
                        .map_err(|e| unsupported(&e))?;
                    listeners.insert(id, i);
                    due = end.flow.stop;
                }
                Some(_) => {}
                None => {
                    for path in &end.flow.paths {
                        let local = path[end.side];
                        let id = host.bind_udp(local).map_err(|e| unsupported(&e))?;
                        sockets.insert(id, i);
                        own.push((local, id));
                    }
                    if end.side == 1 {
                        phase = Phase::Datagrams;
                        due = end.flow.stop;
                    }
                }
            }
            let track = Track::default();
            driven.push(Driven {
                end,
                phase,
                sockets: own,
                quic,
                due,
                track,
            });
        }
        Ok(Self {
            host,
            ends: driven,
            connections: BTreeMap::new(),
            listeners,
            sockets,
            recorder,
        })
    }

    /// Looks at what the stack tells and lets applications act.
    fn serve(&mut self, now: Instant) {
        while let Some(event) = self.host.poll_event() {
            let end = match event {
                HostEvent::Accepted {
                    listener,
                    connection,
                    ..
                } => {
                    let end = self.listeners.get(&listener).copied();
                    match end {
                        Some(i) if self.ends[i].phase == Phase::Waiting => {
                            self.ends[i].phase = Phase::Open(connection);
                            self.connections.insert(connection, i);
                        }
                        _ => self.host.abort(now, connection),
                    }
                    end
                }
                HostEvent::Connected(id) => {
                    let end = self.connections.get(&id).copied();
                    if let Some(i) = end {
                        self.ends[i].end.flow.connected(now);
                    }
                    end
                }
                HostEvent::Multipath { id, news } => {
                    if let Some(i) = self.connections.get(&id) {
                        let d = &mut self.ends[*i];
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
        let d = &mut self.ends[i];
        let flow = Arc::clone(&d.end.flow);
        let interest = match d.phase {
            Phase::Over => return,
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
                let interest = match &mut d.quic {
                    Some(quic) => quic.drive(now, &flow, &mut sockets, &self.recorder),
                    None => flow.drive_datagrams(now, d.end.side, &mut sockets),
                };
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
            let d = &mut self.ends[i];
            // Its counts are not final before the peer has everything.
            if let Phase::Open(id) = d.phase
                && !d.end.flow.is_over()
                && self.host.unacknowledged(id) > 0
            {
                d.due = now + LOOK_AGAIN;
                return;
            }
            return self.finish(now, i);
        }
        self.ends[i].due = interest.until;
    }

    fn start(&mut self, now: Instant, i: usize) {
        let d = &mut self.ends[i];
        let flow = &d.end.flow;
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

    /// Addresses come and go.
    fn change(&mut self, now: Instant, i: usize) {
        let d = &mut self.ends[i];
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

    /// Keeps what the stack counted and closes.
    fn finish(&mut self, now: Instant, i: usize) {
        let d = &mut self.ends[i];
        let flow = &d.end.flow;
        match d.phase {
            Phase::Open(id) => {
                if let Some(stats) = self.host.tcp_stats(id) {
                    if d.end.side == flow.sender() {
                        flow.count(stats.into());
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
                if let Some(quic) = &mut d.quic {
                    quic.finish(now, flow, &mut sockets, &self.recorder);
                }
                for (_, id) in &d.sockets {
                    self.host.close_udp(*id);
                }
            }
            Phase::Waiting | Phase::Over => {}
        }
        d.phase = Phase::Over;
        d.due = Instant::MAX;
    }

    /// Round trips and notices of every sender; a sample of each if it is time.
    fn observe(&mut self, now: Instant, sample: bool) {
        for d in &mut self.ends {
            let flow = &d.end.flow;
            if let Some(quic) = d.quic.as_mut().filter(|_| d.phase == Phase::Datagrams) {
                if sample {
                    quic.sample(now, flow, &self.recorder);
                }
                continue;
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
                continue;
            }
            let Some(endpoint) = self.host.endpoint_mut(id) else {
                continue;
            };
            notices(now, flow, endpoint, &self.recorder);
            if sample && !flow.is_over() {
                let s = endpoint.snapshot(now);
                if !s.cwnd.is_zero() {
                    self.recorder.sample(FlowSample {
                        time: now,
                        flow: flow.spec.id,
                        cwnd: s.cwnd,
                        ssthresh: s.ssthresh,
                        in_flight: s.in_flight,
                        srtt: s.srtt,
                        pacing_rate: s.pacing_rate,
                        delivery_rate: s.delivery_rate,
                        delivered: flow.delivered(),
                        phase: s.phase,
                        out_of_order: None,
                    });
                }
            }
        }
    }
}

fn notices(now: Instant, flow: &Flow, endpoint: &mut Endpoint, recorder: &Recorder) {
    if let Some(rtt) = endpoint.take_rtt_sample() {
        flow.round_trip(rtt);
    }
    while let Some(notice) = endpoint.poll_notice() {
        recorder.event(ProtocolEvent {
            time: now,
            flow: flow.spec.id,
            kind: notice.kind(),
            detail: notice.detail(),
        });
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
        for i in 0..self.ends.len() {
            self.change(now, i);
            if self.ends[i].due <= now {
                self.advance(now, i);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.ends.iter().map(|d| d.due.min(d.next_change())).min();
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
        self.ends.iter().all(|d| d.phase == Phase::Over)
    }

    fn sample(&mut self, now: Instant) {
        self.observe(now, true);
    }

    fn mark(&mut self, now: Instant, edge: Edge) {
        for d in &mut self.ends {
            let flow = &d.end.flow;
            if let Some(quic) = d.quic.as_mut().filter(|_| d.phase == Phase::Datagrams) {
                quic.mark(edge, flow, &self.recorder);
                continue;
            }
            let Phase::Open(id) = d.phase else { continue };
            if d.end.side != flow.sender() {
                continue;
            }
            if let Some(stats) = self.host.tcp_stats(id) {
                flow.count_at(edge, stats.into());
            }
            if let Some(connection) = self.host.multipath(id) {
                d.track.mark(now, connection, edge);
            }
        }
    }

    fn close(&mut self, now: Instant) {
        for i in 0..self.ends.len() {
            self.finish(now, i);
        }
    }
}

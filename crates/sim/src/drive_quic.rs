//! How the engine drives QUIC flows: the application's byte streams and objects on QUIC's streams,
//! datagrams in and out.

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, SocketAddrV4};

use bytes::Bytes as Content;
use gargalo_flow::{FlowSpec, NodeId, ProtocolEvent, QuicSpec, TransportSpec, rng};
use gargalo_quic::{self as quic, Chunk, Endpoint, Event, StreamId};
use gargalo_units::{Ecn, Instant};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::BuildError;
use crate::capture::address;
use crate::drive::{PER_FLOW, client_port};
use crate::event::Target;
use crate::flow::{Flow, pattern};
use crate::net::{Body, Content as PacketContent, QuicDatagram};
use crate::quic_paths::Paths;
use crate::world::World;
use gargalo_workload::{Action, App};

/// The well-known port of HTTP/3, by which analysers know QUIC.
const SERVER_PORT: u16 = 443;
/// What is written at once; all zeros unless content is verified.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// One end of a QUIC flow.
#[derive(Debug)]
pub(crate) struct QuicSide {
    pub endpoint: Endpoint,
    /// Streams on which something is still to be written, in the order they were opened.
    outgoing: VecDeque<Outgoing>,
    /// Bytes read of each stream.
    incoming: BTreeMap<StreamId, u64>,
    /// Objects to ask for, each on a stream of its own, as soon as streams may be opened.
    to_ask: std::ops::Range<usize>,
    /// Streams over which the backlog of a byte-stream application is spread; empty until it writes.
    spread: Vec<StreamId>,
    /// Bytes of streams written.
    written: u64,
    /// What is written ends the streams.
    closing: bool,
    /// Routes of its paths to the peer; one without multipath.
    routes: Vec<u32>,
    /// What is remembered of several paths.
    pub paths: Paths,
    /// Nothing more is expected of this side.
    over: bool,
}

/// What is to be written on a stream.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    stream: StreamId,
    left: u64,
    /// Position of the next byte.
    at: u64,
    end: bool,
}

impl QuicSide {
    fn new(endpoint: Endpoint, routes: Vec<u32>, paths: Paths) -> Self {
        Self {
            endpoint,
            paths,
            routes,
            outgoing: VecDeque::new(),
            incoming: BTreeMap::new(),
            to_ask: 0..0,
            spread: Vec::new(),
            written: 0,
            closing: false,
            over: false,
        }
    }

    /// Wants `bytes` written on a stream after what waits for it there.
    fn queue(&mut self, stream: StreamId, bytes: u64, end: bool) {
        match self.outgoing.iter_mut().find(|o| o.stream == stream) {
            Some(o) => {
                o.left = o.left.saturating_add(bytes);
                o.end |= end;
            }
            None => self.outgoing.push_back(Outgoing {
                stream,
                left: bytes,
                at: 0,
                end,
            }),
        }
    }

    /// Opens streams for the objects to ask for, as many as there may be now.
    fn ask(&mut self, request: u64) {
        while !self.to_ask.is_empty() {
            let Some(stream) = self.endpoint.open() else {
                return;
            };
            self.to_ask.start += 1;
            self.queue(stream, request, true);
        }
    }

    /// Gives a byte-stream application's backlog to its stream or streams.
    fn spread(&mut self, backlog: &mut u64, close: bool, streams: u32, is_client: bool) {
        if *backlog == 0 && (self.closing || !close) {
            return;
        }
        if self.spread.is_empty() {
            if is_client {
                for _ in 0..streams.max(1) {
                    self.spread.extend(self.endpoint.open());
                }
            } else {
                // A server answers on the stream on which it was asked.
                self.spread.extend(self.incoming.keys().next());
            }
        }
        let n = self.spread.len() as u64;
        if n == 0 {
            return; // no stream may be opened yet
        }
        let bytes = std::mem::take(backlog);
        self.closing |= close;
        for (i, stream) in self.spread.clone().into_iter().enumerate() {
            let share = match bytes {
                u64::MAX => bytes,
                _ => bytes / n + u64::from((i as u64) < bytes % n),
            };
            self.queue(stream, share, close);
        }
    }

    /// Writes as far as the transport takes it.
    fn write(&mut self, flow: u64, side: usize, verify: bool) {
        let mut i = 0;
        while let Some(o) = self.outgoing.get_mut(i) {
            while o.left > 0 {
                let n = o.left.min(ZEROS.len() as u64) as usize;
                let data = if verify {
                    let room = self.endpoint.write_room(o.stream).min(n as u64);
                    let positions = o.at..o.at + room;
                    let content = positions.map(|at| pattern(key(flow, o.stream), side, at));
                    content.collect::<Vec<u8>>().into()
                } else {
                    Content::from_static(&ZEROS[..n])
                };
                let offered = data.len();
                let taken = self.endpoint.write(o.stream, data);
                o.at += taken as u64;
                self.written += taken as u64;
                if o.left != u64::MAX {
                    o.left -= taken as u64;
                }
                if taken < offered || taken == 0 {
                    break;
                }
            }
            if o.left == 0 && o.end {
                self.endpoint.finish(o.stream);
                self.outgoing.remove(i);
                continue;
            }
            i += 1;
        }
    }

    fn has_written_all(&self) -> bool {
        self.closing && self.outgoing.is_empty()
    }
}

/// Makes the content of two streams of a flow differ.
const fn key(flow: u64, stream: StreamId) -> u64 {
    flow ^ (stream << 24)
}

/// A host's address on a path: 10.0.0.0/16 on the first, 10.1.0.0/16 on the second and so on.
fn local(node: NodeId, port: u16, path: usize) -> SocketAddrV4 {
    let address = u32::from(address(node)).wrapping_add((path as u32) << 16);
    SocketAddrV4::new(address.into(), port)
}

/// The path of an address; see [`local`].
pub(crate) fn path(address: SocketAddrV4) -> usize {
    usize::from(address.ip().octets()[1] & 0x7f)
}

fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(a) => Some(a),
        SocketAddr::V6(_) => None,
    }
}

impl World {
    /// Tries what will be done when the flow starts, so that bad options are an error now.
    pub(crate) fn check_quic(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
    ) -> Result<(), BuildError> {
        let mut rng = rng::stream(self.settings.seed, "check");
        self.quic_side(spec, quic, 0, 0, &mut rng).map(|_| ())?;
        Ok(())
    }

    /// Both ends of a QUIC flow that starts now.
    pub(crate) fn quic_sides(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
        id: u64,
        rng: &mut Pcg64,
    ) -> Result<[Box<QuicSide>; 2], BuildError> {
        let [there, back] = match quic.config.paths() {
            0 | 1 => [(spec.from, spec.to), (spec.to, spec.from)].map(|e| vec![self.routes[&e]]),
            n => self.disjoint_routes(spec.from, spec.to, n as usize)?,
        };
        let client = self.quic_side(spec, quic, id, 0, rng)?;
        let server = self.quic_side(spec, quic, id, 1, rng)?;
        let near = Paths::new(&self.net, &there, &back);
        let far = Paths::new(&self.net, &back, &there);
        Ok([(client, there, near), (server, back, far)]
            .map(|(e, r, p)| Box::new(QuicSide::new(e, r, p))))
    }

    fn quic_side(
        &mut self,
        spec: &FlowSpec,
        quic: &QuicSpec,
        id: u64,
        side: usize,
        rng: &mut Pcg64,
    ) -> Result<Endpoint, BuildError> {
        let failed = |e: quic::Error| BuildError::Quic {
            flow: spec.label.to_string(),
            reason: e.to_string(),
        };
        let realm = match &self.quic {
            Some(realm) => realm.clone(),
            None => {
                let realm = quic::Realm::new(self.settings.seed).map_err(failed)?;
                self.quic.insert(realm).clone()
            }
        };
        let client = SocketAddr::V4(local(spec.from, client_port(id), 0));
        let server = SocketAddr::V4(local(spec.to, SERVER_PORT, 0));
        let own = Pcg64::new(
            (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64()),
            u128::from(rng.next_u64()),
        );
        let mut init = quic::Init {
            now: self.now,
            local: client,
            remote: server,
            rng: own,
            secrets: self.net.capture.is_some() && quic.config.crypto == quic::Crypto::Tls,
            qlog: None,
        };
        if spec.rows
            && self.running
            && let Some(folder) = &self.settings.qlog
        {
            let end = ["client", "server"][side];
            let path = folder.join(format!("flow{id}-{end}.sqlog"));
            let file = std::fs::File::create(&path).map_err(|e| BuildError::Qlog {
                path: path.display().to_string(),
                reason: e.to_string(),
            })?;
            let writer = std::io::BufWriter::new(file);
            init.qlog = Some((Box::new(writer), format!("{} {end}", spec.label)));
        }
        let mut endpoint = if side == 0 {
            Endpoint::connect(&realm, &quic.config, &quic.congestion, init)
        } else {
            (init.local, init.remote) = (server, client);
            Endpoint::listen(&realm, &quic.config, &quic.congestion, init)
        }
        .map_err(failed)?;
        if self.recorder.wants_events() && spec.rows {
            endpoint.record_notices();
        }
        Ok(endpoint)
    }

    /// A datagram arrived.
    pub(crate) fn deliver_quic(
        &mut self,
        slot: u32,
        side: usize,
        datagram: QuicDatagram,
        ecn: Ecn,
        first_flow: Target,
    ) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        flow.ce_marks += u64::from(ecn == Ecn::Ce);
        let Some(q) = &mut flow.sides[side].quic else {
            return;
        };
        let (to, from) = (SocketAddr::V4(datagram.to), SocketAddr::V4(datagram.from));
        q.endpoint.handle(self.now, datagram.payload, ecn, to, from);
        self.after_quic(slot, side, first_flow);
    }

    /// The client's address changes.
    pub(crate) fn migrate(&mut self, slot: u32, first_flow: Target) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        flow.migrate = Instant::MAX;
        let spec = std::sync::Arc::clone(&flow.spec);
        let TransportSpec::Quic(quic) = &spec.transport else {
            return;
        };
        let old = local(spec.from, client_port(flow.id), 0);
        let new = match quic.config.migration {
            Some(m) if m.change == quic::Change::Port => {
                SocketAddrV4::new(*old.ip(), old.port() ^ 1)
            }
            // Another address of the same host: 10.128.0.0/9 beside 10.0.0.0/9.
            _ => SocketAddrV4::new((u32::from(*old.ip()) | 0x0080_0000).into(), old.port()),
        };
        if let Some(q) = &mut flow.sides[0].quic {
            q.endpoint.migrate(self.now, SocketAddr::V4(new));
            self.after_quic(slot, 0, first_flow);
        }
    }

    /// Lets one end act after something happened to it: events, reading, writing, sending, re-arming
    /// its timer.
    pub(crate) fn after_quic(&mut self, slot: u32, index: usize, first_flow: Target) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let Some(mut side) = flow.sides[index].quic.take() else {
            return;
        };
        let mut action = Action::default();
        while let Some(event) = side.endpoint.poll_event() {
            match event {
                Event::Connected { .. } if index == 0 => {
                    action = start(flow, &mut side, now);
                }
                Event::HandshakeComplete { .. } if index == 0 => {
                    let (from, to) = (flow.spec.from, flow.spec.to);
                    for i in 1..side.routes.len() {
                        let near = local(from, client_port(flow.id), i);
                        let far = SocketAddr::V4(local(to, SERVER_PORT, i));
                        side.endpoint.open_path(now, (*near.ip()).into(), far);
                    }
                }
                Event::Connected { .. } | Event::HandshakeComplete { .. } => {}
                Event::Closed => side.over = true,
                Event::Failed(reason) => {
                    side.over = true;
                    if flow.completed.is_none() {
                        let timed_out = reason.contains("timed out");
                        flow.failure = Some(if timed_out { "timed out" } else { "reset" });
                        if flow.spec.rows && self.recorder.wants_events() {
                            self.recorder.event(ProtocolEvent {
                                time: now,
                                flow: flow.id,
                                kind: "failed",
                                detail: reason,
                            });
                        }
                    }
                }
            }
        }
        let (before, verify) = (flow.delivered, self.settings.verify);
        while let Some(chunk) = side.endpoint.poll_read() {
            action = action.and(read(flow, &mut side, index, &chunk, now, verify));
        }
        if flow.delivered > before {
            flow.first_byte.get_or_insert(now);
            if flow.completed.is_none() && flow.app.total().is_some_and(|t| t <= flow.delivered) {
                flow.completed = Some(now);
                self.finished.extend(flow.parent.take());
            }
        }
        flow.sides[index].want(action);
        write(flow, &mut side, index, verify);
        if !side.over && is_done(flow, &mut side, index) {
            side.endpoint.close(now);
        }
        let hash = flow.hash(index);
        while let Some(out) = side.endpoint.poll_transmit(now) {
            let (Some(from), Some(to)) = (v4(out.local), v4(out.remote)) else {
                continue;
            };
            let Some(&route) = side.routes.get(path(from)).or(side.routes.first()) else {
                continue;
            };
            let body = Body {
                flow: slot,
                generation: flow.generation,
                side: 1 - index as u8,
                interfaces: (0, 0),
                route,
                content: PacketContent::Quic(QuicDatagram {
                    payload: out.payload,
                    from,
                    to,
                }),
            };
            if let Some(capture) = &mut self.net.capture {
                while let Some(line) = side.endpoint.poll_secret() {
                    capture.secret(&line);
                }
            }
            flow.sides[index].wire += self.net.transmit(now, out.ecn, hash, body);
        }
        if index == flow.app.sender() {
            if side.routes.len() > 1 {
                side.paths.rtt_samples(&mut side.endpoint, &mut flow.rtt);
            } else if let Some(rtt) = side.endpoint.take_rtt_sample() {
                flow.rtt.record(rtt);
            }
        }
        if flow.spec.rows && self.recorder.wants_events() {
            while let Some(notice) = side.endpoint.poll_notice() {
                self.recorder.event(ProtocolEvent {
                    time: now,
                    flow: flow.id,
                    kind: notice.kind,
                    detail: notice.detail,
                });
            }
        }
        // What is due since before is due now: the timer is known by its time.
        if let Some(due) = side.endpoint.poll_timeout().map(|due| due.max(now))
            && flow.sides[index].timer.arm(due)
        {
            self.net
                .queue
                .push(due, first_flow + slot * PER_FLOW + index as u32);
        }
        let over = side.over || side.endpoint.is_over();
        side.over = over;
        flow.sides[index].quic = Some(side);
        if let Some(at) = action.timer {
            flow.app_due = at;
            self.arm_app(slot, at, first_flow);
        }
        if over {
            let all = |s: &crate::flow::Side| s.quic.as_ref().is_none_or(|q| q.over);
            if let Some(flow) = self.flows.get(slot)
                && (flow.sides.iter().all(all) || flow.completed.is_some())
            {
                self.retire(slot);
            }
        }
    }

    /// The application's timer fired.
    pub(crate) fn on_quic_app_timer(&mut self, slot: u32, first_flow: Target) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        match (flow.app.as_request(), &mut flow.sides[0].quic) {
            (Some(request), Some(side)) if !request.shares_stream() => {
                side.to_ask = request.ask_streams(self.now);
                flow.app_due = Instant::MAX;
            }
            _ => {
                let action = flow.app.on_timer(self.now, &mut flow.rng);
                self.act(slot, action, first_flow);
            }
        }
        self.after_quic(slot, 0, first_flow);
    }

    /// A timer of one end fired.
    pub(crate) fn on_quic_timer(&mut self, slot: u32, index: usize, first_flow: Target) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let side = &mut flow.sides[index];
        let Some(q) = &mut side.quic else {
            return;
        };
        match q.endpoint.poll_timeout() {
            Some(due) if due <= self.now => {
                q.endpoint.handle_timeout(self.now);
                self.after_quic(slot, index, first_flow);
            }
            Some(due) if side.timer.arm(due) => {
                let target = first_flow + slot * PER_FLOW + index as u32;
                self.net.queue.push(due, target);
            }
            _ => {}
        }
    }
}

/// The client may write.
fn start(flow: &mut Flow, side: &mut QuicSide, now: Instant) -> Action {
    flow.connected.get_or_insert(now);
    match flow.app.as_request() {
        Some(request) if !request.shares_stream() => {
            side.to_ask = request.ask_streams(now);
            Action::default()
        }
        _ => flow.app.on_start(now, &mut flow.rng),
    }
}

/// A piece of a stream arrived at one end.
fn read(
    flow: &mut Flow,
    side: &mut QuicSide,
    index: usize,
    chunk: &Chunk,
    now: Instant,
    verify: bool,
) -> Action {
    let bytes = chunk.data.len() as u64;
    let at = side.incoming.entry(chunk.stream).or_insert(0);
    let start = *at;
    *at += bytes;
    if verify {
        let (key, sender) = (key(flow.id, chunk.stream), 1 - index);
        let differs = |(byte, at): (&u8, u64)| *byte != pattern(key, sender, at);
        flow.corrupted |= chunk.data.iter().zip(start..).any(differs);
    }
    // Streams of objects are opened in the objects' order (RFC 9000 §2.1: two bits say whose).
    let object = (chunk.stream >> 2) as usize;
    match flow.app.as_request() {
        Some(request) if !request.shares_stream() => {
            if index == 1 {
                if chunk.end && object < request.objects() {
                    let size = request.object_size(object);
                    side.queue(chunk.stream, size, true);
                }
                return Action::default();
            }
            let action = request.received_on_stream(now, object, bytes);
            if action.write > 0 {
                side.to_ask = request.ask_streams(now);
            }
            flow.delivered += bytes;
            Action {
                timer: action.timer,
                ..Action::default()
            }
        }
        _ if bytes > 0 => {
            let (data, action) = flow.app.on_delivered(now, index, bytes, side.written);
            if index != flow.app.sender() {
                flow.delivered += data;
            }
            action
        }
        _ => Action::default(),
    }
}

/// Gives the transport what the application wants written.
fn write(flow: &mut Flow, side: &mut QuicSide, index: usize, verify: bool) {
    let streams = match &flow.spec.transport {
        TransportSpec::Quic(q) if matches!(flow.app, App::Bulk { .. }) => q.config.streams,
        _ => 1,
    };
    if let Some(request) = flow.app.as_request() {
        side.ask(request.request_size());
    }
    let own = &mut flow.sides[index];
    side.spread(&mut own.backlog, own.close, streams, index == 0);
    side.write(flow.id, index, verify);
}

/// Whether an end may close the connection: the client that has got everything it asked for, or whose
/// data has all arrived.
fn is_done(flow: &Flow, side: &mut QuicSide, index: usize) -> bool {
    if index != 0 || flow.completed.is_none() {
        return false;
    }
    if flow.app.sender() == 1 {
        return true;
    }
    side.has_written_all() && side.endpoint.all_acknowledged()
}

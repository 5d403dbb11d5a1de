//! How the engine drives flows: deliveries and timers in, segments and datagrams out.

use std::sync::Arc;

use bytes::Bytes as Content;
use gargalo_flow::{
    FlowResult, FlowSpec, Marks, MisbehavingReceiver, Misbehaviour, ProtocolEvent, TransportSpec,
    Watch, Window, rng,
};
use gargalo_tcp::{self as tcp, Chunk, Endpoint, Event, State};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Ecn, Instant, Seq};
use rand::Rng;

use crate::BuildError;
use crate::drive_mptcp::{self, MptcpSide};
use crate::event::{MAX_TARGETS, Target};
use crate::flow::{Flow, LazyTimer, Side, pattern};
use crate::generator::Parent;
use crate::net::{Body, Content as PacketContent, Datagram};
use crate::quic_paths;
use crate::recorder::Recorder;
use crate::world::World;
use gargalo_workload::{Action, App};

/// Event targets of a flow: the timers of its two ends and of its application.
pub(crate) const PER_FLOW: u32 = 3;
const APP: u32 = 2;
/// Most flows alive at once: many more than come and go on any link, and a gigabyte or two.
const MOST_FLOWS: usize = 300_000;
/// The well-known end of every connection.
pub(crate) const SERVER_PORT: u16 = 5001;

impl World {
    #[inline]
    pub(crate) fn on_link(
        &mut self,
        direction: u32,
        first_flow: Target,
        progress: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        while let Some((body, ecn)) = self.net.poll(self.now, direction) {
            self.deliver(body, ecn, first_flow);
            // One event may carry any number of packets.
            self.look(progress)?;
            if self.is_stopped() {
                break;
            }
        }
        if !self.net.lost_datagrams.is_empty() {
            self.count_lost_datagrams();
        }
        Ok(())
    }

    pub(crate) fn count_lost_datagrams(&mut self) {
        for (slot, generation) in self.net.lost_datagrams.drain(..) {
            if let Some(flow) = self.flows.get_mut(slot)
                && flow.generation == generation
            {
                flow.udp_lost += 1;
            }
        }
    }

    #[inline]
    fn deliver(&mut self, body: Body, ecn: Ecn, first_flow: Target) {
        let Some(flow) = self.flows.get_mut(body.flow) else {
            return;
        };
        if flow.generation != body.generation {
            return; // for a flow that is gone
        }
        let side = usize::from(body.side);
        match body.content {
            PacketContent::Tcp(segment) => {
                if ecn == Ecn::Ce {
                    flow.ce_marks += 1;
                }
                let Some(endpoint) = &mut flow.sides[side].endpoint else {
                    let to = (body.flow, side);
                    return self.deliver_mptcp(to, body.interfaces, segment, ecn, first_flow);
                };
                if let Some(misbehaving) = &mut flow.sides[side].misbehaving {
                    misbehaving.on_segment(&segment);
                }
                endpoint.handle(self.now, segment, ecn);
                self.after(body.flow, side, first_flow);
            }
            PacketContent::Quic(datagram) => {
                self.deliver_quic(body.flow, side, datagram, ecn, first_flow);
            }
            PacketContent::Udp(datagram) => {
                if side == 1 {
                    flow.ce_marks += u64::from(ecn == Ecn::Ce);
                    flow.delivered += u64::from(datagram.bytes);
                    flow.first_byte.get_or_insert(self.now);
                    flow.rtt.record(self.now - datagram.sent_at);
                }
                let arrived = gargalo_workload::Datagram {
                    side,
                    number: datagram.number,
                    bytes: u64::from(datagram.bytes),
                    sent_at: datagram.sent_at,
                    marked: ecn == Ecn::Ce,
                };
                flow.app.on_datagram(self.now, &arrived);
            }
        }
    }

    pub(crate) fn start_flow(
        &mut self,
        spec: Arc<FlowSpec>,
        id: u64,
        path: &str,
        parent: Option<Parent>,
        first_flow: Target,
    ) -> Result<(), BuildError> {
        // As many targets as an event can name, or as many flows as are sensible.
        let targets = u64::from(first_flow) + self.flows.capacity() as u64 * u64::from(PER_FLOW);
        if self.flows.len() >= MOST_FLOWS || targets + u64::from(PER_FLOW) > u64::from(MAX_TARGETS)
        {
            return Err(BuildError::TooManyFlows {
                flow: spec.label.to_string(),
                at_s: self.now.as_secs_f64(),
            });
        }
        let mut rng = rng::stream(self.settings.seed, path);
        let mut sides = [
            Side::new(self.routes[&(spec.from, spec.to)]),
            Side::new(self.routes[&(spec.to, spec.from)]),
        ];
        let mut misbehaviour = Misbehaviour::None;
        if let TransportSpec::Tcp(tcp) = &spec.transport {
            let mut init = |local_port, remote_port| tcp::Init {
                local_port,
                remote_port,
                isn: Seq::new(rng.next_u32()),
                ts_offset: rng.next_u32(),
                ..tcp::Init::default()
            };
            let near = init(client_port(id), SERVER_PORT);
            let far = init(SERVER_PORT, client_port(id));
            let client = self.controller(&spec, tcp, &mut rng)?;
            let server = self.controller(&spec, tcp, &mut rng)?;
            let config = &tcp.config;
            let (client, server) = (
                Endpoint::connect(Arc::clone(config), client, near, self.now),
                Endpoint::listen(Arc::clone(config), server, far, self.now),
            );
            misbehaviour = tcp.misbehaviour;
            sides[0].endpoint = Some(Box::new(client));
            sides[1].endpoint = Some(Box::new(server));
        }
        let mut migrate = Instant::MAX;
        if let TransportSpec::Mptcp(mptcp) = &spec.transport {
            let ends = self.mptcp_sides(&spec, mptcp, id, &mut rng)?;
            for (side, end) in sides.iter_mut().zip(ends) {
                side.mptcp = Some(end);
            }
            if let Some(change) = mptcp.changes.first() {
                migrate = self.now + change.after;
            }
        }
        if let TransportSpec::Quic(quic) = &spec.transport {
            let ends = self.quic_sides(&spec, quic, id, &mut rng)?;
            for (side, end) in sides.iter_mut().zip(ends) {
                side.quic = Some(end);
            }
            if let Some(m) = quic.config.migration {
                migrate = self.now + m.after;
            }
        }
        self.generation = self.generation.wrapping_add(1);
        let app = App::new(&spec.workload, spec.rows, || {
            rng::stream(self.settings.seed, &format!("{path}/objects"))
        });
        let (is_udp, is_quic, app) = match &spec.transport {
            TransportSpec::Udp => (true, false, app),
            TransportSpec::Quic(_) => (false, true, app),
            TransportSpec::Tcp(tcp) => (false, false, app.inside(tcp.tls)),
            TransportSpec::Mptcp(mptcp) => (false, false, app.inside(mptcp.tls)),
        };
        let receiver = 1 - app.sender();
        sides[receiver].misbehaving = (misbehaviour != Misbehaviour::None)
            .then(|| Box::new(MisbehavingReceiver::new(misbehaviour)));
        let stop = spec.stop.filter(|_| spec.arrivals.is_none());
        if let Some(group) = spec.group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.start(app.total());
        }
        let slot = self.flows.insert(Flow {
            spec,
            id,
            generation: self.generation,
            sides,
            app,
            app_timer: LazyTimer::new(),
            app_due: Instant::MAX,
            stop: stop.unwrap_or(Instant::MAX),
            migrate,
            rng,
            start: self.now,
            connected: None,
            first_byte: None,
            completed: None,
            delivered: 0,
            rtt: Quantiles::default(),
            marks: Marks::default(),
            udp_sent: 0,
            udp_sent_bytes: 0,
            udp_replies: 0,
            udp_lost: 0,
            ce_marks: 0,
            corrupted: false,
            failure: None,
            parent,
            phase: "",
        });
        self.peak_flows = self.peak_flows.max(self.flows.len());
        if let Some(stop) = stop {
            self.arm_app(slot, stop, first_flow);
        }
        if migrate != Instant::MAX {
            self.arm_app(slot, migrate, first_flow);
        }
        if is_quic {
            self.after_quic(slot, 0, first_flow);
        } else if is_udp {
            let now = self.now;
            if let Some(flow) = self.flows.get_mut(slot) {
                let action = flow.app.on_start(now, &mut flow.rng);
                self.act(slot, action, first_flow);
            }
        } else {
            self.after(slot, 0, first_flow);
        }
        Ok(())
    }

    /// Does what an application on the client's side asked for, outside of [`Self::after`].
    pub(crate) fn act(&mut self, slot: u32, action: Action, first_flow: Target) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        flow.app_due = action.timer.unwrap_or(Instant::MAX);
        let due = flow.app_due.min(flow.stop).min(flow.migrate);
        if !matches!(flow.spec.transport, TransportSpec::Udp) {
            flow.sides[0].want(action);
        } else {
            let ports = (client_port(flow.id), SERVER_PORT);
            for (side, bytes, ports) in [
                (0, action.write, ports),
                (1, action.reply, (ports.1, ports.0)),
            ] {
                if bytes == 0 {
                    continue;
                }
                let bytes = bytes.min(65_507);
                let (count, ecn) = match side {
                    0 => {
                        flow.udp_sent_bytes += bytes;
                        (&mut flow.udp_sent, flow.app.ecn())
                    }
                    _ => (&mut flow.udp_replies, Ecn::NotEct),
                };
                let datagram = Datagram {
                    bytes: bytes as u32,
                    number: *count,
                    sent_at: self.now,
                    ports,
                };
                *count += 1;
                let body = Body {
                    flow: slot,
                    generation: flow.generation,
                    side: 1 - side as u8,
                    interfaces: (0, 0),
                    route: flow.sides[side].route,
                    content: PacketContent::Udp(datagram),
                };
                let hash = flow.hash(side);
                flow.sides[side].wire += self.net.transmit(self.now, ecn, hash, body);
            }
        }
        self.arm_app(slot, due, first_flow);
    }

    pub(crate) fn arm_app(&mut self, slot: u32, at: Instant, first_flow: Target) {
        if let Some(flow) = self.flows.get_mut(slot)
            && flow.app_timer.arm(at)
        {
            self.net.queue.push(at, first_flow + slot * PER_FLOW + APP);
        }
    }

    #[inline]
    pub(crate) fn on_timer(&mut self, index: u32, first_flow: Target) {
        let (slot, which) = (index / PER_FLOW, index % PER_FLOW);
        if which == APP {
            self.on_app_timer(slot, first_flow);
            return;
        }
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let side = &mut flow.sides[which as usize];
        if !side.timer.fire(self.now) {
            return;
        }
        if side.quic.is_some() {
            self.on_quic_timer(slot, which as usize, first_flow);
            return;
        }
        let Some(endpoint) = &mut side.endpoint else {
            self.on_mptcp_timer(slot, which as usize, first_flow);
            return;
        };
        match endpoint.poll_timeout() {
            Some(due) if due <= self.now => {
                endpoint.handle_timeout(self.now);
                self.after(slot, which as usize, first_flow);
            }
            Some(due) if side.timer.arm(due) => {
                self.net
                    .queue
                    .push(due, first_flow + slot * PER_FLOW + which);
            }
            _ => {}
        }
    }

    fn on_app_timer(&mut self, slot: u32, first_flow: Target) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if !flow.app_timer.fire(self.now) {
            return;
        }
        if flow.stop <= self.now {
            self.retire(slot);
            return;
        }
        if flow.migrate <= self.now {
            match flow.spec.transport {
                TransportSpec::Mptcp(_) => self.change_addresses(slot, first_flow),
                _ => self.migrate(slot, first_flow),
            }
        }
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if flow.app_due > self.now {
            let due = flow.app_due.min(flow.stop).min(flow.migrate);
            self.arm_app(slot, due, first_flow);
        } else if flow.sides[0].quic.is_some() {
            self.on_quic_app_timer(slot, first_flow);
        } else {
            let action = flow.app.on_timer(self.now, &mut flow.rng);
            self.act(slot, action, first_flow);
            self.after(slot, 0, first_flow);
        }
    }

    /// Lets one end act after something happened to it: events, reading, writing, sending,
    /// re-arming its timer.
    #[inline]
    pub(crate) fn after(&mut self, slot: u32, index: usize, first_flow: Target) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let Some(mut endpoint) = flow.sides[index].endpoint.take() else {
            return self.after_mptcp(slot, index, first_flow);
        };
        let mut over = false;
        let mut action = Action::default();
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Connected if index == 0 => {
                    action = flow.app.on_start(now, &mut flow.rng);
                    flow.connected = flow.app.is_open().then_some(now);
                }
                // The peer will not write again: neither shall we, once what is owed is written.
                Event::PeerClosed if flow.app.closes_after_peer() => {
                    flow.sides[index].close = true;
                }
                Event::Closed => over = true,
                Event::Reset => {
                    flow.failure = Some("reset");
                    over = true;
                }
                Event::TimedOut => {
                    flow.failure = Some("timed out");
                    over = true;
                }
                _ => {}
            }
        }
        let got = read_all(flow, index, &mut *endpoint);
        action = action.and(take_in(
            flow,
            (index, got, endpoint.unsent()),
            over,
            now,
            &mut self.finished,
        ));
        flow.sides[index].want(action);
        let id = flow.id;
        if write_all(
            id,
            index,
            &mut flow.sides[index],
            &mut *endpoint,
            self.settings.verify,
        ) {
            endpoint.close(now);
        }
        // Before anything leaves: what is in flight now is what the congestion control decided on.
        if self.recorder.wants_gauges() {
            record(flow, index, &mut endpoint, &mut self.recorder, now);
        }
        let (route, hash) = (flow.sides[index].route, flow.hash(index));
        while let Some(mut out) = endpoint.poll_transmit(now) {
            if let Some(misbehaving) = &mut flow.sides[index].misbehaving {
                let mut instead = misbehaving.rewrite(out.segment);
                let Some(last) = instead.pop() else { continue };
                for segment in instead {
                    let body = Body {
                        flow: slot,
                        generation: flow.generation,
                        side: 1 - index as u8,
                        interfaces: (0, 0),
                        route,
                        content: PacketContent::Tcp(segment),
                    };
                    flow.sides[index].wire += self.net.transmit(now, out.ecn, hash, body);
                }
                out.segment = last;
            }
            let body = Body {
                flow: slot,
                generation: flow.generation,
                side: 1 - index as u8,
                interfaces: (0, 0),
                route,
                content: PacketContent::Tcp(out.segment),
            };
            flow.sides[index].wire += self.net.transmit(now, out.ecn, hash, body);
        }
        if index == flow.app.sender() {
            while let Some(rtt) = endpoint.take_rtt_sample() {
                flow.rtt.record(rtt);
            }
        }
        record(flow, index, &mut endpoint, &mut self.recorder, now);
        // What is due since before is due now: the timer is known by its time.
        if let Some(due) = endpoint.poll_timeout().map(|due| due.max(now))
            && flow.sides[index].timer.arm(due)
        {
            self.net
                .queue
                .push(due, first_flow + slot * PER_FLOW + index as u32);
        }
        over |= endpoint.state() == State::TimeWait;
        flow.sides[index].endpoint = Some(endpoint);
        if let Some(at) = action.timer {
            flow.app_due = at;
            self.arm_app(slot, at, first_flow);
        }
        if over {
            self.retire_if_over(slot);
        }
    }

    /// Retires a flow none of whose ends has anything left to do.
    pub(crate) fn retire_if_over(&mut self, slot: u32) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let failed = flow.failure.is_some();
        let over = flow.sides.iter().all(|s| {
            let mptcp = |m: &MptcpSide| m.is_over(failed);
            s.mptcp.as_deref().is_none_or(mptcp)
                && s.endpoint.as_ref().is_none_or(|e| match e.state() {
                    State::Closed | State::TimeWait => true,
                    State::Listen => failed,
                    _ => false,
                })
        });
        if over {
            self.retire(slot);
        }
    }

    /// Removes a flow and keeps what became of it.
    pub(crate) fn retire(&mut self, slot: u32) {
        self.count_lost_datagrams();
        let Some(flow) = self.flows.remove(slot) else {
            return;
        };
        self.finished.extend(flow.parent);
        let (group, rows) = (flow.spec.group, flow.spec.rows);
        let had_total = flow.app.total().is_some();
        let result = result(flow, self.now, &self.window);
        if let Some(group) = group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.fold(&result, had_total);
        }
        if rows {
            self.results.push(result);
        }
    }
}

/// The ephemeral port of a flow (RFC 6335 §6).
pub(crate) fn client_port(id: u64) -> u16 {
    49_152 + (id % 16_384) as u16
}

/// A byte stream in both directions.
pub(crate) trait Stream {
    fn read(&mut self) -> Option<Chunk>;
    fn write(&mut self, data: Content) -> usize;
    fn write_synthetic(&mut self, n: u64) -> u64;
    fn write_room(&self) -> u64;
}

impl Stream for Endpoint {
    #[inline]
    fn read(&mut self) -> Option<Chunk> {
        Self::read(self, u64::MAX)
    }
    fn write(&mut self, data: Content) -> usize {
        Self::write(self, data)
    }
    #[inline]
    fn write_synthetic(&mut self, n: u64) -> u64 {
        Self::write_synthetic(self, n)
    }
    fn write_room(&self) -> u64 {
        Self::write_room(self)
    }
}

/// Moves everything in order out of the transport; returns how many bytes.
#[inline]
pub(crate) fn read_all(flow: &mut Flow, index: usize, stream: &mut impl Stream) -> u64 {
    let mut got = 0;
    while let Some(chunk) = stream.read() {
        let side = &mut flow.sides[index];
        let n = match &chunk {
            Chunk::Synthetic(n) => *n,
            Chunk::Real(bytes) => {
                let (id, sender) = (flow.id, 1 - index);
                let differs = |(byte, at): (&u8, u64)| *byte != pattern(id, sender, at);
                flow.corrupted |= bytes.iter().zip(side.read..).any(differs);
                bytes.len() as u64
            }
        };
        side.read += n;
        got += n;
    }
    got
}

/// What the application at one end makes of bytes that arrived there, having written all but `unsent`.
#[inline]
pub(crate) fn take_in(
    flow: &mut Flow,
    (index, got, unsent): (usize, u64, u64),
    over: bool,
    now: Instant,
    finished: &mut Vec<Parent>,
) -> Action {
    if got == 0 {
        if flow.app.total() == Some(0) && flow.completed.is_none() && over {
            flow.completed = Some(now);
        }
        return Action::default();
    }
    let sent = flow.sides[index].written.saturating_sub(unsent);
    let (data, action) = flow.app.on_delivered(now, index, got, sent);
    if index == 0 && flow.connected.is_none() && flow.app.is_open() {
        flow.connected = Some(now);
    }
    if index != flow.app.sender() && data > 0 {
        flow.delivered += data;
        flow.first_byte.get_or_insert(now);
        if flow.completed.is_none() && flow.app.total().is_some_and(|t| t <= flow.delivered) {
            flow.completed = Some(now);
            finished.extend(flow.parent.take());
        }
    }
    action
}

/// Gives the transport what the application wants written, as far as it takes it; whether to close it now.
#[inline]
pub(crate) fn write_all(
    id: u64,
    index: usize,
    side: &mut Side,
    stream: &mut impl Stream,
    verify: bool,
) -> bool {
    if side.backlog > 0 {
        if verify {
            write_pattern(id, index, side, stream);
        } else {
            let taken = stream.write_synthetic(side.backlog);
            side.written += taken;
            if side.backlog != u64::MAX {
                side.backlog -= taken;
            }
        }
    }
    side.backlog == 0 && std::mem::take(&mut side.close)
}

/// Writes real content as far as the send buffer takes it.
fn write_pattern(id: u64, index: usize, side: &mut Side, stream: &mut impl Stream) {
    const CHUNK: u64 = 64 * 1024;
    while side.backlog > 0 {
        let room = stream.write_room();
        if room == 0 {
            break; // every acknowledgement leads here again
        }
        // One byte too many tells the transport that there is more.
        let n = side.backlog.min(CHUNK).min(room + 1);
        let data: Vec<u8> = (side.written..side.written + n)
            .map(|at| pattern(id, index, at))
            .collect();
        let taken = stream.write(Content::from(data)) as u64;
        side.written += taken;
        if side.backlog != u64::MAX {
            side.backlog -= taken;
        }
        if taken < n {
            break;
        }
    }
}

/// Keeps the notices of an endpoint, and what its congestion control has inside if one of them or a new
/// phase asks for it.
fn record(flow: &mut Flow, index: usize, endpoint: &mut Endpoint, to: &mut Recorder, now: Instant) {
    if !to.wants_events() && !to.wants_gauges() {
        return;
    }
    let looks = to.wants_gauges() && flow.spec.rows && index == flow.app.sender();
    let mut causes = Vec::new();
    let phase = endpoint.phase();
    if looks && flow.phase != phase {
        flow.phase = phase;
        causes.push("phase");
    }
    while let Some(notice) = endpoint.poll_notice() {
        if looks && !causes.contains(&notice.kind()) {
            causes.push(notice.kind());
        }
        if flow.spec.rows && to.wants_events() {
            to.event(ProtocolEvent {
                time: now,
                flow: flow.id,
                kind: notice.kind(),
                detail: notice.detail(),
            });
        }
    }
    if looks && !causes.is_empty() {
        to.gauges(now, flow.id, &causes.join("+"), endpoint);
    }
}

fn result(mut flow: Flow, now: Instant, window: &Window) -> FlowResult {
    let multipath = drive_mptcp::result(&mut flow, now, window)
        .or_else(|| quic_paths::result(&mut flow, window));
    let stats = flow.stats();
    let counts = flow.counts(&stats);
    let inside = flow.marks.inside(window, flow.start, counts, &mut flow.rtt);
    let (transport, congestion) = match &flow.spec.transport {
        TransportSpec::Quic(q) => ("quic", q.congestion_name.to_string()),
        TransportSpec::Tcp(t) => ("tcp", t.congestion.name().to_owned()),
        TransportSpec::Mptcp(t) => ("mptcp", t.congestion.name().to_owned()),
        TransportSpec::Udp => ("udp", String::new()),
    };
    FlowResult {
        id: flow.id,
        label: flow.spec.label.clone(),
        template: flow.spec.id,
        hosts: (flow.spec.from, flow.spec.to),
        transport,
        congestion,
        start: flow.start,
        end: flow.completed.unwrap_or(now),
        handshake: flow.connected.map(|t| t.saturating_since(flow.start)),
        first_byte: flow.first_byte,
        completion: flow.completed.map(|t| t - flow.start),
        delivered: Bytes::new(counts.delivered),
        sent_packets: counts.sent_packets,
        sent: Bytes::new(counts.sent),
        retransmitted_packets: counts.retransmitted_packets,
        lost_packets: counts.lost_packets,
        timeouts: stats.timeouts,
        spurious_losses: stats.spurious,
        ce_marks: flow.ce_marks,
        rtt: flow.rtt,
        inside,
        corrupted: flow.corrupted,
        failure: flow.failure,
        wire: counts.wire,
        application: flow.app.result(now, flow.udp_lost),
        multipath,
    }
}

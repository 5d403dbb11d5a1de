//! Drives the flows: deliveries and timers in, segments and datagrams out.

use std::sync::Arc;

use gargalo_flow::{
    Conversation, Ending, FlowResult, FlowSpec, MisbehavingReceiver, Misbehaviour, TcpSpec,
    TransportSpec, Watch, Window, causes, gauges, rng,
};
use gargalo_tcp::{self as tcp, Endpoint, State};
use gargalo_units::{Ecn, Instant, Seq};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::BuildError;
use crate::address::{SERVER_PORT, client_port};
use crate::flow::{End, Flow, LazyTimer, Parent, Side};
use crate::net::Arrived;
use crate::packet::{Content as PacketContent, Datagram};
use crate::paths;
use crate::recorder::Recorder;
use crate::streams::Talking;
use crate::world::World;

/// Event targets of a flow: the timers of its two ends and of its application.
pub(crate) const PER_FLOW: u32 = 3;
const APP: u32 = 2;
/// Most flows alive at once: many more than any link carries in practice; they take a gigabyte or two.
const MOST_FLOWS: usize = 300_000;

impl World {
    #[inline]
    pub(crate) fn on_link(
        &mut self,
        direction: u32,
        progress: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        if let Some((arrived, ecn)) = self.net.poll_through(self.now, direction) {
            self.deliver(arrived, ecn);
            return Ok(());
        }
        while let Some((arrived, ecn)) = self.net.poll(self.now, direction) {
            self.deliver(arrived, ecn);
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
                flow.talk.lost_datagrams += 1;
            }
        }
    }

    /// Tells senders of packets that a link had no room for what its MTU is (RFC 1191).
    #[cold]
    pub(crate) fn report_too_big(&mut self) {
        // What is sent in answer and is too large again is reported after the next event.
        for (body, mtu) in std::mem::take(&mut self.net.too_big) {
            let (slot, side) = (body.flow, 1 - usize::from(body.side));
            let Some(flow) = self.flows.get_mut(slot) else {
                continue;
            };
            if flow.generation != body.generation {
                continue; // the flow has ended
            }
            let end = flow.sides[side].end.as_mut();
            let heeded = end.is_some_and(|end| end.on_too_big(self.now, &body, mtu));
            if heeded {
                self.after(slot, side);
            }
        }
    }

    #[inline(always)]
    fn deliver(&mut self, arrived: Arrived, ecn: Ecn) {
        let Some(body) = self.net.content(arrived) else {
            return;
        };
        let (slot, side) = (body.flow, usize::from(body.side));
        if let Some(flow) = self.flows.get_mut(slot)
            && flow.generation == body.generation
            && let PacketContent::Tcp(segment) = &mut body.content
        {
            flow.talk.ce_marks += u64::from(ecn == Ecn::Ce);
            let to = &mut flow.sides[side];
            if let Some(End::Tcp(endpoint)) = &mut to.end {
                if let Some(receiver) = &mut to.misbehaving {
                    receiver.on_segment(segment);
                }
                // Where it is: a segment takes a cache line or two.
                endpoint.handle_in_place(self.now, segment, ecn);
                self.net.discard(arrived);
                self.after(slot, side);
                return;
            }
        }
        self.deliver_other(arrived, ecn);
    }

    /// Delivers a packet that is not for a TCP endpoint.
    #[inline(never)]
    fn deliver_other(&mut self, arrived: Arrived, ecn: Ecn) {
        let Some(body) = self.net.take(arrived) else {
            return;
        };
        let Some(flow) = self.flows.get_mut(body.flow) else {
            return;
        };
        if flow.generation != body.generation {
            return; // the flow has ended
        }
        let side = usize::from(body.side);
        match body.content {
            PacketContent::Tcp(segment) => {
                self.deliver_mptcp((body.flow, side), body.interfaces, segment, ecn);
            }
            PacketContent::Quic(datagram) => {
                self.deliver_quic(body.flow, side, datagram, ecn);
            }
            PacketContent::Udp(datagram) => {
                let arrived = gargalo_workload::Datagram {
                    side,
                    number: datagram.number,
                    bytes: u64::from(datagram.bytes),
                    sent_at: datagram.sent_at,
                    marked: ecn == Ecn::Ce,
                };
                if side == 1 && flow.spec.rows {
                    self.recorder.datagram(self.now, flow.id, &arrived);
                }
                if flow.talk.on_datagram(self.now, &arrived) {
                    self.send_datagrams(body.flow);
                }
            }
        }
    }

    pub(crate) fn start_flow(
        &mut self,
        spec: Arc<FlowSpec>,
        id: u64,
        path: &str,
        parent: Option<Parent>,
    ) -> Result<(), BuildError> {
        if self.flows.len() >= MOST_FLOWS {
            return Err(BuildError::TooManyFlows {
                flow: spec.label.to_string(),
                at_s: self.now.decimal_secs(),
            });
        }
        let mut rng = rng::stream(self.settings.seed, path);
        let mut sides = spec.ways().map(|way| Side::new(self.routes[&way]));
        let mut misbehaviour = Misbehaviour::None;
        let mut migrate = Instant::MAX;
        let ends = match &spec.transport {
            TransportSpec::Udp => None,
            TransportSpec::Tcp(tcp) => {
                misbehaviour = tcp.misbehaviour;
                Some(self.tcp_ends(&spec, tcp, id, &mut rng)?.map(End::Tcp))
            }
            TransportSpec::Mptcp(mptcp) => {
                if let Some(change) = mptcp.changes.first() {
                    migrate = self.now + change.after;
                }
                let ends = self.mptcp_sides(&spec, mptcp, id, &mut rng)?;
                Some(ends.map(End::Mptcp))
            }
            TransportSpec::Quic(quic) => {
                if let Some(m) = quic.config.migration {
                    migrate = self.now + m.after;
                }
                let ends = self.quic_sides(&spec, quic, id, &mut rng)?;
                Some(ends.map(End::Quic))
            }
        };
        for (side, end) in sides.iter_mut().zip(ends.into_iter().flatten()) {
            side.end = Some(end);
        }
        self.generation = self.generation.wrapping_add(1);
        let talk = Conversation::new(&spec, rng, || {
            rng::stream(self.settings.seed, &format!("{path}/objects"))
        });
        let is_udp = matches!(spec.transport, TransportSpec::Udp);
        let (sender, receiver) = (talk.sender(), 1 - talk.sender());
        let opening = matches!(sides[sender].end, Some(End::Tcp(_)));
        sides[receiver].misbehaving = (misbehaviour != Misbehaviour::None)
            .then(|| Box::new(MisbehavingReceiver::new(misbehaviour)));
        let stop = spec.stop.filter(|_| spec.arrivals.is_none());
        if let Some(group) = spec.group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.start(talk.total());
        }
        let slot = self.flows.insert(Flow {
            spec,
            id,
            generation: self.generation,
            sides,
            talk,
            app_timer: LazyTimer::new(),
            stop: stop.unwrap_or(Instant::MAX),
            migrate,
            start: self.now,
            parent,
            opening,
        });
        self.peak_flows = self.peak_flows.max(self.flows.len());
        if let Some(stop) = stop {
            self.arm_app(slot, stop);
        }
        if migrate != Instant::MAX {
            self.arm_app(slot, migrate);
        }
        if is_udp {
            let now = self.now;
            if let Some(flow) = self.flows.get_mut(slot) {
                flow.talk.start(now);
            }
            self.send_datagrams(slot);
        } else {
            self.after(slot, 0);
        }
        Ok(())
    }

    /// Creates both ends of a TCP flow that starts now.
    fn tcp_ends(
        &self,
        spec: &FlowSpec,
        tcp: &TcpSpec,
        id: u64,
        rng: &mut Pcg64,
    ) -> Result<[Box<Endpoint>; 2], BuildError> {
        let mut init = |local_port, remote_port| tcp::Init {
            local_port,
            remote_port,
            isn: Seq::new(rng.next_u32()),
            ts_offset: rng.next_u32(),
            ..tcp::Init::default()
        };
        let near = init(client_port(id), SERVER_PORT);
        let far = init(SERVER_PORT, client_port(id));
        let client = self.controller(spec, tcp, rng)?;
        let server = self.controller(spec, tcp, rng)?;
        let config = || Arc::clone(&tcp.config);
        Ok([
            Box::new(Endpoint::connect(config(), client, near, self.now)),
            Box::new(Endpoint::listen(config(), server, far, self.now)),
        ])
    }

    /// Sends the datagrams of both ends that are due, and schedules the next.
    fn send_datagrams(&mut self, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let ports = (client_port(flow.id), SERVER_PORT);
        for (side, ports) in [(0, ports), (1, (ports.1, ports.0))] {
            while let Some(out) = flow.talk.poll_datagram(side) {
                let datagram = Datagram {
                    bytes: out.bytes as u32,
                    number: out.number,
                    sent_at: self.now,
                    ports,
                };
                let content = PacketContent::Udp(datagram);
                flow.transmit(self.now, (slot, side), &mut self.net, out.ecn, content);
            }
        }
        let due = flow.due();
        self.arm_app(slot, due);
    }

    pub(crate) fn arm_app(&mut self, slot: u32, at: Instant) {
        if let Some(flow) = self.flows.get_mut(slot)
            && flow.app_timer.arm(at)
        {
            self.net
                .queue
                .push(at, self.first_flow + slot * PER_FLOW + APP);
        }
    }

    #[inline]
    pub(crate) fn on_timer(&mut self, index: u32) {
        let (slot, which) = (index / PER_FLOW, index % PER_FLOW);
        if which == APP {
            self.on_app_timer(slot);
            return;
        }
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let side = &mut flow.sides[which as usize];
        if !side.timer.fire(self.now) {
            return;
        }
        let Some(end) = &mut side.end else {
            return;
        };
        match end.poll_timeout() {
            Some(due) if due <= self.now => {
                end.handle_timeout(self.now);
                self.after(slot, which as usize);
            }
            Some(due) if side.timer.arm(due) => {
                let target = self.first_flow + slot * PER_FLOW + which;
                self.net.queue.push(due, target);
            }
            _ => {}
        }
    }

    fn on_app_timer(&mut self, slot: u32) {
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
                TransportSpec::Mptcp(_) => self.change_addresses(slot),
                _ => self.migrate(slot),
            }
        }
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if flow.talk.due() > self.now {
            let due = flow.due();
            self.arm_app(slot, due);
            return;
        }
        flow.talk.expire(self.now);
        match flow.spec.transport {
            TransportSpec::Udp => self.send_datagrams(slot),
            _ => {
                let (due, both) = (flow.due(), flow.talk.is_on_frames());
                self.arm_app(slot, due);
                self.after(slot, 0);
                if both {
                    self.after(slot, 1);
                }
            }
        }
    }

    /// Lets one end act after something happened to it: events, reading, writing, sending,
    /// re-arming its timer.
    #[inline]
    pub(crate) fn after(&mut self, slot: u32, index: usize) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let (was_due, was_completed) = (flow.talk.due(), flow.talk.completed());
        let end = &mut flow.sides[index].end;
        let (due, over) = if matches!(end, Some(End::Tcp(_))) {
            self.after_tcp(slot, index)
        } else {
            match end.take() {
                Some(End::Mptcp(side)) => self.after_mptcp(slot, index, side),
                Some(End::Quic(side)) => self.after_quic(slot, index, side),
                Some(End::Tcp(_)) | None => return,
            }
        };
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        if flow.talk.completed() != was_completed {
            self.finished.extend(flow.parent.take());
        }
        // What was due earlier is due now: the timer is identified by its time.
        if let Some(due) = due.map(|due| due.max(now))
            && flow.sides[index].timer.arm(due)
        {
            let target = self.first_flow + slot * PER_FLOW + index as u32;
            self.net.queue.push(due, target);
        }
        let due = flow.talk.due();
        if due != was_due {
            self.arm_app(slot, due);
        }
        if over {
            self.retire_if_over(slot);
        }
    }

    /// The same for TCP: returns when the end must be woken, and whether it is over.
    #[inline(always)]
    fn after_tcp(&mut self, slot: u32, index: usize) -> (Option<Instant>, bool) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(slot) else {
            return (None, false);
        };
        let (id, origin) = (flow.id, flow.origin(slot, index));
        let Flow { sides, talk, .. } = flow;
        let side = &mut sides[index];
        let Some(End::Tcp(endpoint)) = &mut side.end else {
            return (None, false);
        };
        let endpoint = &mut **endpoint;
        let key = self.settings.verify.then_some(id);
        let mut talking = Talking {
            talk,
            index,
            now,
            key,
        };
        let mut over = false;
        while let Some(event) = endpoint.poll_change() {
            over |= talking.on_event(event);
        }
        talking.exchange(endpoint, over);
        let sends = index == talk.sender();
        let records = Records {
            id,
            rows: flow.spec.rows,
            sends,
        };
        // Before anything is sent: the bytes in flight are those on which the congestion control decided.
        if self.recorder.wants_gauges() {
            records.take(endpoint, &mut side.phase, &mut self.recorder, now);
        }
        while let Some(out) = endpoint.poll_transmit(now) {
            if let Some(receiver) = &mut side.misbehaving {
                for segment in receiver.rewrite(out.segment) {
                    let content = PacketContent::Tcp(segment);
                    side.wire += origin.transmit(now, &mut self.net, out.ecn, content);
                }
                continue;
            }
            let content = PacketContent::Tcp(out.segment);
            side.wire += origin.transmit(now, &mut self.net, out.ecn, content);
        }
        if sends {
            flow.opening = flow.opening && endpoint.phase().is_empty();
            while let Some(rtt) = endpoint.take_rtt_sample() {
                talk.rtt.record(rtt);
            }
        }
        if self.recorder.wants_gauges() || self.recorder.wants_events() {
            records.take(endpoint, &mut side.phase, &mut self.recorder, now);
        }
        over |= endpoint.state() == State::TimeWait;
        (endpoint.poll_timeout(), over)
    }

    /// Retires a flow when none of its ends has anything left to do.
    pub(crate) fn retire_if_over(&mut self, slot: u32) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        let failed = flow.talk.failure().is_some();
        let mut ends = flow.sides.iter().filter_map(|s| s.end.as_ref());
        // A QUIC flow is complete with what its client has received, or knows to be acknowledged.
        let done = flow.talk.completed().is_some();
        let over = ends.all(|e| e.is_over(failed) || (done && matches!(e, End::Quic(_))));
        if over {
            self.retire(slot);
        }
    }

    /// Removes a flow and keeps its result.
    pub(crate) fn retire(&mut self, slot: u32) {
        let flow = self.flows.get(slot);
        if flow.is_some_and(|f| matches!(f.spec.transport, TransportSpec::Udp)) {
            self.net.settle(self.net.moment);
        }
        self.count_lost_datagrams();
        let Some(flow) = self.flows.remove(slot) else {
            return;
        };
        self.finished.extend(flow.parent);
        let (group, rows) = (flow.spec.group, flow.spec.rows);
        let had_total = flow.talk.total().is_some();
        let mut result = result(flow, self.now, &self.window);
        if let Some(group) = group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.fold(&result, had_total);
        }
        if rows {
            result.rtt.shrink();
            self.results.push(result);
        }
    }
}

/// The records of an end of a flow.
struct Records {
    id: u64,
    /// The flow has rows of its own.
    rows: bool,
    /// The end sends the bulk of the data.
    sends: bool,
}

impl Records {
    /// Keeps the notices of an endpoint, and the internal quantities of its congestion control if a notice or a new
    /// phase triggers a record.
    #[inline(never)]
    fn take(
        &self,
        endpoint: &mut Endpoint,
        phase: &mut &'static str,
        to: &mut Recorder,
        now: Instant,
    ) {
        let looks = to.wants_gauges() && self.rows && self.sends;
        let tells = self.rows && to.wants_events();
        let now_in = endpoint.phase();
        let notices = std::iter::from_fn(|| {
            let notice = endpoint.poll_notice()?;
            if tells {
                to.event(now, self.id, notice.kind(), notice.detail());
            }
            Some(notice.kind())
        });
        let causes = causes(now_in, phase, notices);
        if looks && !causes.is_empty() {
            to.gauges(gauges(now, self.id, &causes, endpoint));
        }
    }
}

fn result(mut flow: Flow, now: Instant, window: &Window) -> FlowResult {
    let multipath = paths::result(&mut flow, now, window).map(Box::new);
    let ending = Ending {
        id: flow.id,
        start: flow.start,
        end: now,
        now,
        counters: flow.counters(),
        wire: flow.wire(),
        multipath,
    };
    flow.talk.result(&flow.spec, window, ending)
}

//! A flow in the lab: its application and its result, shared by the drivers of its ends.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gargalo_flow::{
    ArrivedDatagram, Conversation, Edge, Ending, FlowResult, FlowSample, FlowSpec, MptcpSpec,
    MultipathResult, QuicSpec, Reached, SubflowResult, TcpSpec, TransportSpec, Window, content,
};
use gargalo_units::{Bytes, Duration, Ecn, Instant, SenderCounters};
use gargalo_workload::Datagram;
use gargalo_workload::wire::WireBytes;
use rand_pcg::Pcg64;

use super::notices::{Notice, Notices};
use super::quic_run::QuicRun;
use super::recorder::Recorder;
use super::stream::{Arrival, Datagrams, Interest, Received, Stream};
use super::wire::WireCounter;
use crate::multipath::{self, MultipathReport};

/// Most bytes written or read before other flows are served.
const TURN: u64 = 1 << 20;
/// Number and time at the start of a datagram, if it is long enough.
const STAMP: usize = 16;

/// A flow of a run: its configuration and its state.
#[derive(Debug)]
pub struct Flow {
    /// The flow's hosts, transport and workload.
    pub spec: FlowSpec,
    /// Last instant at which its application acts.
    pub stop: Instant,
    /// Its TCP configuration, also that of subflows; `None`: it does not use TCP.
    pub tcp: Option<TcpSpec>,
    /// Addresses and ports of its two ends, on each of its paths if it has several.
    pub paths: Vec<[SocketAddr; 2]>,
    /// Another address of the host that opens it.
    pub other: Option<IpAddr>,
    /// The state that its QUIC connection shares with others, over QUIC.
    pub run: Option<QuicRun>,
    /// The flow of the scenario from which it was created.
    template: u64,
    verify: bool,
    /// Receives a notice when it is over.
    notices: Option<Notices>,
    /// The counter of its wire bytes, and their value when it began.
    wire: Option<(WireCounter, WireBytes)>,
    /// Its server can be connected to.
    ready: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    talk: Conversation,
    sides: [Side; 2],
    begun: bool,
    ended: Option<Instant>,
    /// Number of ends that have closed.
    closed: u8,
    received_datagrams: u64,
    /// Data that has reached the receiver, as its stack last reported; `None`: it does not.
    received: Option<Bytes>,
    counters: SenderCounters,
    reports: Vec<MultipathReport>,
    /// What has arrived on each path of QUIC, and the results of the paths.
    arrived: BTreeMap<u32, u64>,
    quic_paths: Vec<SubflowResult>,
    /// The congestion control that the sender's stack reports.
    ran: Option<String>,
}

#[derive(Debug, Default)]
struct Side {
    is_shut: bool,
    peer_closed: bool,
}

/// Settings that a run gives to a flow.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// When the run ends.
    pub end: Instant,
    /// Carry a pattern and compare it at the receiver.
    pub verify: bool,
    /// What the QUIC connections of the run share.
    pub quic: Option<QuicRun>,
    /// The flow of the scenario from which it is created; `None`: it is that flow itself.
    pub template: Option<u64>,
    /// Receives a notice when it is over.
    pub notices: Option<Notices>,
    /// The counter of wire bytes.
    pub wire: Option<WireCounter>,
    /// Another address of the host that opens it.
    pub other: Option<IpAddr>,
}

impl Flow {
    /// Creates a flow that has not begun; it ends with the run. Its ends have the addresses of `paths`, at least one
    /// pair. `rng` is its random stream and that of its object sizes.
    pub fn new(
        spec: FlowSpec,
        paths: Vec<[SocketAddr; 2]>,
        around: Surroundings,
        rng: impl Fn(&str) -> Pcg64,
    ) -> Self {
        let tcp = match &spec.transport {
            TransportSpec::Tcp(tcp) => Some(tcp.clone()),
            TransportSpec::Mptcp(m) => Some(TcpSpec {
                config: Arc::clone(&m.config.tcp),
                congestion: Arc::clone(&m.congestion),
                tls: m.tls,
                misbehaviour: gargalo_flow::Misbehaviour::None,
            }),
            _ => None,
        };
        let state = State {
            talk: Conversation::new(&spec, rng("application"), || rng("objects")),
            sides: Default::default(),
            begun: false,
            ended: None,
            closed: 0,
            received_datagrams: 0,
            received: None,
            counters: SenderCounters::default(),
            reports: Vec::new(),
            arrived: BTreeMap::new(),
            quic_paths: Vec::new(),
            ran: None,
        };
        Self {
            stop: spec.stop.unwrap_or(Instant::MAX).min(around.end),
            wire: around.wire.map(|counter| {
                let before = counter.of(spec.id, state.talk.sender());
                (counter, before)
            }),
            template: around.template.unwrap_or(spec.id),
            spec,
            tcp,
            paths,
            other: around.other,
            run: around.quic,
            verify: around.verify,
            notices: around.notices,
            ready: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// Its Multipath TCP configuration, if it uses that.
    pub fn mptcp(&self) -> Option<&MptcpSpec> {
        match &self.spec.transport {
            TransportSpec::Mptcp(mptcp) => Some(mptcp),
            _ => None,
        }
    }

    /// Its QUIC configuration, if it uses that.
    pub fn quic(&self) -> Option<&QuicSpec> {
        match &self.spec.transport {
            TransportSpec::Quic(quic) => Some(quic),
            _ => None,
        }
    }

    /// Samples its application, if that adapts to the network by itself.
    pub fn sample(&self, now: Instant) -> Option<FlowSample> {
        self.state().talk.sample(now, self.spec.id)
    }

    /// Whether content is compared at the receiver.
    pub fn verifies(&self) -> bool {
        self.verify
    }

    /// Lets a transport use the application's state at `now`.
    pub fn converse<R>(&self, now: Instant, f: impl FnOnce(&mut Conversation) -> R) -> R {
        let mut state = self.state();
        let result = f(&mut state.talk);
        self.settle(&mut state, now);
        result
    }

    /// Ends the flow when its transfer is complete, it has failed or its time is over.
    fn settle(&self, state: &mut State, now: Instant) {
        if state.ended.is_some() {
            return;
        }
        let failed = state.talk.failure().map(|_| now);
        let stopped = (now >= self.stop).then_some(self.stop);
        state.ended = state.talk.completed().or(failed).or(stopped);
        if state.ended.is_some() {
            self.tell(Notice::Over(self.spec.id));
        }
    }

    fn tell(&self, notice: Notice) {
        if let Some(notices) = &self.notices {
            notices.push(notice);
        }
    }

    /// Records that an end has closed: its counts are final.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed += 1;
        if state.closed == 2 {
            self.tell(Notice::Closed(self.spec.id));
        }
    }

    /// Records that the server is ready for connections.
    pub fn is_served(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether the server is ready for connections.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Bytes that must reach the receiver; `None`: unlimited, or not known yet.
    pub fn total(&self) -> Option<u64> {
        self.state().talk.total()
    }

    /// Wire bytes of its hosts.
    fn wire(&self, sender: usize) -> WireBytes {
        match &self.wire {
            Some((counter, before)) => counter.of(self.spec.id, sender) - *before,
            None => WireBytes::default(),
        }
    }

    /// Sets what has arrived on the paths of QUIC, by identifier, as the receiver reports it.
    pub fn arrived(&self, by_path: BTreeMap<u32, u64>) {
        self.state().arrived = by_path;
    }

    /// What [arrived](Self::arrived) on the paths of QUIC.
    pub fn has_arrived(&self) -> BTreeMap<u32, u64> {
        self.state().arrived.clone()
    }

    /// Sets the results of the paths of QUIC, as the sender reports them.
    pub fn paths_ended(&self, paths: Vec<SubflowResult>) {
        self.state().quic_paths = paths;
    }

    /// The side that sends the bulk of the data: 0 is the one that opens the connection.
    pub fn sender(&self) -> usize {
        self.state().talk.sender()
    }

    /// Whether it has completed, failed or been stopped.
    pub fn is_over(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Whether it is over, or both ends have closed their direction.
    pub fn is_ending(&self) -> bool {
        let state = self.state();
        state.ended.is_some() || state.sides.iter().all(|s| s.is_shut)
    }

    /// Records how many bytes the receiver's stack has not passed on to the application, if it reports it.
    pub fn buffered(&self, bytes: Option<u64>) {
        let mut state = self.state();
        state.received = state.talk.reached(bytes).received;
    }

    /// How much has reached the receiver; what waits there as it was last [reported](Self::buffered).
    pub fn reached(&self) -> Reached {
        let state = self.state();
        let delivered = Bytes::new(state.talk.delivered());
        Reached {
            delivered,
            received: state.received.map(|r| r.max(delivered)),
        }
    }

    /// Bytes that the receiver's application has read.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.state().talk.delivered())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, sender: usize) -> Option<u64> {
        self.verify.then_some(content::key(self.spec.id, sender))
    }

    /// Records that the connection is open; called at the side that opens it.
    pub fn connected(&self, now: Instant) {
        self.state().talk.start(now);
    }

    /// Lets one end of a connection read, act and write.
    pub fn drive(&self, now: Instant, side: usize, stream: &mut dyn Stream) -> Interest {
        let mut again = false;
        let done = self.read(now, side, stream).and_then(|more| {
            again = more;
            self.write(now, side, stream)
        });
        match done {
            Ok(more) => again |= more,
            Err(e) => self.fail(now, reason(&e)),
        }
        let state = self.state();
        let own = &state.sides[side];
        let timer = match side {
            0 => state.talk.due(),
            _ => Instant::MAX,
        };
        Interest {
            read: !own.peer_closed,
            write: state.talk.wants(side) > 0,
            until: if again { now } else { timer.min(self.stop) },
            over: state.ended.is_some() || (own.peer_closed && own.is_shut),
        }
    }

    /// Reads; returns whether it stopped at the limit with data left.
    fn read(&self, now: Instant, side: usize, stream: &mut dyn Stream) -> io::Result<bool> {
        let key = self.key(1 - side);
        let mut got = 0;
        let mut ended = false;
        let mut offset = self.state().talk.positions(side).1;
        let mut corrupted = false;
        while got < TURN && !ended {
            let read = stream.read(&mut |data| {
                if let Some(key) = key {
                    corrupted |= !content::is_right(key, offset, data);
                }
                offset += data.len() as u64;
            });
            match read {
                Ok(Received::Bytes(n)) => got += n,
                Ok(Received::End) => ended = true,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let mut guard = self.state();
        let state = &mut *guard;
        if corrupted {
            state.talk.corrupt();
        }
        state.talk.received(now, side, got, 0);
        if ended {
            state.sides[side].peer_closed = true;
            state.talk.peer_closed(side);
        }
        if side == 0 && state.talk.due() <= now {
            state.talk.expire(now);
        }
        self.settle(state, now);
        Ok(got >= TURN && !ended)
    }

    /// Writes; returns whether it stopped at the limit before everything was written.
    fn write(&self, now: Instant, side: usize, stream: &mut dyn Stream) -> io::Result<bool> {
        let key = self.key(side);
        let mut turn = 0;
        loop {
            let (want, offset, close) = {
                let mut state = self.state();
                let (want, offset) = (state.talk.wants(side), state.talk.positions(side).0);
                (want, offset, state.talk.closes(side))
            };
            if want == 0 {
                if close {
                    self.state().sides[side].is_shut = true;
                    stream.shutdown()?;
                }
                return Ok(false);
            }
            if turn >= TURN || now >= self.stop {
                return Ok(now < self.stop);
            }
            match stream.write(&content::piece(key, offset, want.min(content::PIECE))) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    self.state().talk.wrote(side, n as u64);
                    turn += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Lets one end of a datagram flow send what is due and read what arrived. The flow begins with the first call at
    /// side 0.
    pub fn drive_datagrams(
        &self,
        now: Instant,
        side: usize,
        socket: &mut dyn Datagrams,
        recorder: &Recorder,
    ) -> Interest {
        let done = self
            .take(now, side, socket, recorder)
            .and_then(|()| self.send_due(now, side, socket));
        if let Err(e) = done {
            self.fail(now, reason(&e));
        }
        let mut state = self.state();
        self.settle(&mut state, now);
        Interest {
            read: true,
            write: false,
            // Either end may have datagrams due: the driver that comes first creates them for both.
            until: state.talk.due().min(self.stop),
            over: state.ended.is_some(),
        }
    }

    fn send_due(&self, now: Instant, side: usize, socket: &mut dyn Datagrams) -> io::Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        if side == 0 && !std::mem::replace(&mut state.begun, true) {
            state.talk.start(now);
        }
        state.send(now, side, &self.paths[0], socket)?;
        // Several may be due after a late wake-up; each is sent as if at its own time.
        while state.talk.due() <= now && now < self.stop {
            let due = state.talk.due();
            state.talk.expire(due);
            state.send(now, side, &self.paths[0], socket)?;
        }
        Ok(())
    }

    fn take(
        &self,
        now: Instant,
        side: usize,
        socket: &mut dyn Datagrams,
        recorder: &Recorder,
    ) -> io::Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        loop {
            let mut length = 0;
            let mut stamp = None;
            let mut from = None;
            let mut sink = |a: Arrival, data: &[u8]| {
                from = Some(a);
                length = data.len() as u64;
                stamp = data.first_chunk::<STAMP>().copied();
            };
            match socket.receive(&mut sink) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
            let Some(from) = from.filter(|a| a.remote == self.paths[0][1 - side]) else {
                continue;
            };
            let (number, sent_at) = match stamp.map(u128::from_be_bytes) {
                Some(both) => ((both >> 64) as u64, Instant::from_nanos(both as u64)),
                None => (state.received_datagrams, now),
            };
            state.received_datagrams += u64::from(side == 1);
            let arrived = Datagram {
                side,
                number,
                bytes: length,
                sent_at: sent_at.min(now),
                marked: from.ecn == Ecn::Ce,
            };
            // One without a time stamp says nothing of its delay.
            if side == 1 && self.spec.rows && stamp.is_some() {
                recorder.datagram(ArrivedDatagram::new(now, self.spec.id, &arrived));
            }
            state.talk.on_datagram(now, &arrived);
        }
    }

    /// Records that the connection failed.
    pub fn fail(&self, now: Instant, why: &'static str) {
        self.converse(now, |talk| talk.fail(why));
    }

    /// Adds a round-trip sample of the sender.
    pub fn round_trip(&self, rtt: Duration) {
        self.state().talk.rtt.record(rtt);
    }

    /// Sets what the sender's stack has counted.
    pub fn count(&self, counters: SenderCounters) {
        self.state().counters = counters;
    }

    /// Sets what the sender's stack had counted at an edge of the measured window.
    pub fn count_at(&self, edge: Edge, counters: SenderCounters) {
        let mut state = self.state();
        state.counters = counters;
        let sender = state.talk.sender();
        state.talk.sent_at(edge, counters, self.wire(sender));
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&self, edge: Edge) {
        let mut guard = self.state();
        let state = &mut *guard;
        state.count_lost();
        let sender = state.talk.sender();
        state.talk.mark(edge, state.counters, self.wire(sender));
    }

    /// Sets the Congestion Experienced marks that the receiver's stack saw.
    pub fn marks(&self, ce_marks: u64) {
        self.state().talk.ce_marks = ce_marks;
    }

    /// Sets the congestion control that its sender ran, which may differ from the requested one.
    pub fn ran(&self, congestion: String) {
        self.state().ran = Some(congestion);
    }

    /// Adds the Multipath TCP results of a side.
    pub fn report(&self, report: MultipathReport) {
        self.state().reports.push(report);
    }

    /// The [reported](Self::report) Multipath TCP results, by side.
    pub fn reports(&self) -> Vec<MultipathReport> {
        let mut reports = self.state().reports.clone();
        reports.sort_by_key(|r| r.side);
        reports
    }

    /// The result until `now`; `window` is the measured window as far as the run covered it.
    pub fn result(&self, now: Instant, window: &Window) -> FlowResult {
        let mut guard = self.state();
        let state = &mut *guard;
        state.count_lost();
        let mut multipath = multipath::result(&state.reports, state.talk.sender());
        if self.quic().is_some() && self.paths.len() > 1 {
            let mut subflows = std::mem::take(&mut state.quic_paths);
            for s in &mut subflows {
                let arrived = state.arrived.get(&s.id).copied();
                s.delivered = Bytes::new(arrived.unwrap_or(0));
            }
            multipath = Some(MultipathResult {
                subflows,
                mptcp: None,
            });
        }
        let subflows = multipath.iter_mut().flat_map(|m| &mut m.subflows);
        subflows.for_each(|s| s.close(window));
        let ending = Ending {
            id: self.spec.id,
            start: self.spec.start,
            end: state.ended.unwrap_or(now.min(self.stop)),
            now,
            counters: state.counters,
            wire: self.wire(state.talk.sender()),
            multipath: multipath.map(Box::new),
        };
        let mut result = state.talk.result(&self.spec, window, ending);
        result.template = self.template;
        if let Some(ran) = &state.ran {
            result.congestion.clone_from(ran);
        }
        result
    }
}

impl State {
    fn count_lost(&mut self) {
        let sent = self.talk.sent_datagrams();
        self.talk.lost_datagrams = sent.saturating_sub(self.received_datagrams);
    }

    fn send(
        &mut self,
        now: Instant,
        side: usize,
        ends: &[SocketAddr; 2],
        socket: &mut dyn Datagrams,
    ) -> io::Result<()> {
        while let Some(out) = self.talk.poll_datagram(side) {
            let mut data = vec![0; out.bytes as usize];
            if let Some(stamp) = data.first_chunk_mut::<STAMP>() {
                let both = u128::from(out.number) << 64 | u128::from(now.as_nanos());
                *stamp = both.to_be_bytes();
            }
            match socket.send(&data, out.ecn, ends[side], ends[1 - side]) {
                // The device's queue is full: the datagram is lost, as anywhere else on the path.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // An error caused by an earlier datagram.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                other => other?,
            }
        }
        Ok(())
    }
}

/// The name of an error in the results.
pub(crate) fn reason(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset",
        io::ErrorKind::TimedOut => "timed out",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        _ => "socket error",
    }
}

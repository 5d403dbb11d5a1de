//! A flow in the lab: its application and what became of it, shared by the drivers of its ends.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gargalo_flow::{
    Counts, Edge, FlowResult, FlowSpec, Marks, MptcpSpec, TcpSpec, TransportSpec, Window,
};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Instant};
use gargalo_workload::wire::WireBytes;
use gargalo_workload::{Action, App, Datagram};
use rand_pcg::Pcg64;

use super::content;
use super::stream::{Datagrams, Interest, Received, Stream};
use crate::multipath::{self, MultipathReport};

/// Bytes written or read before others get a turn.
const TURN: u64 = 1 << 20;
/// Number and time in front of a datagram, if it is long enough.
const STAMP: usize = 16;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// As configured.
    pub spec: FlowSpec,
    /// Last instant at which its application acts.
    pub stop: Instant,
    /// Its TCP, that of subflows too; `None`: it has none.
    pub tcp: Option<TcpSpec>,
    verify: bool,
    state: Mutex<State>,
}

/// What the sending side's stack counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Data packets sent, repetitions included.
    pub sent_packets: u64,
    /// Payload bytes sent, repetitions included.
    pub sent_bytes: u64,
    /// Packets that repeated something.
    pub retransmitted_packets: u64,
    /// Packets taken for lost.
    pub lost_packets: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses withdrawn.
    pub spurious: u64,
}

#[derive(Debug)]
struct State {
    app: App,
    rng: Pcg64,
    sides: [Side; 2],
    timer: Instant,
    connected: Option<Instant>,
    first_byte: Option<Instant>,
    completed: Option<Instant>,
    ended: Option<Instant>,
    delivered: u64,
    corrupted: bool,
    failure: Option<&'static str>,
    /// Round trips of the sender, or one-way delays of datagrams.
    delays: Quantiles,
    /// Counts at the edges of the measured window.
    marks: Marks,
    sent_datagrams: u64,
    received_datagrams: u64,
    totals: Totals,
    ce_marks: u64,
    reports: Vec<MultipathReport>,
    /// The congestion control that the sender's stack says it ran.
    ran: Option<String>,
}

#[derive(Debug, Default)]
struct Side {
    /// Bytes still to be written.
    want: u64,
    written: u64,
    read: u64,
    close: bool,
    is_shut: bool,
    peer_closed: bool,
}

impl Flow {
    /// A flow that has not begun; it ends with the run at `end`. `rng` is its random stream and that of
    /// the sizes of its objects.
    pub fn new(spec: FlowSpec, end: Instant, verify: bool, rng: impl Fn(&str) -> Pcg64) -> Self {
        let app = App::new(&spec.workload, spec.rows, || rng("objects"));
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
        let app = match &tcp {
            Some(tcp) => app.inside(tcp.tls),
            None => app,
        };
        let state = State {
            app,
            rng: rng("application"),
            sides: Default::default(),
            timer: Instant::MAX,
            connected: None,
            first_byte: None,
            completed: None,
            ended: None,
            delivered: 0,
            corrupted: false,
            failure: None,
            delays: Quantiles::default(),
            marks: Marks::default(),
            sent_datagrams: 0,
            received_datagrams: 0,
            totals: Totals::default(),
            ce_marks: 0,
            reports: Vec::new(),
            ran: None,
        };
        Self {
            stop: spec.stop.unwrap_or(Instant::MAX).min(end),
            spec,
            tcp,
            verify,
            state: Mutex::new(state),
        }
    }

    /// Its Multipath TCP, if it has that.
    pub fn mptcp(&self) -> Option<&MptcpSpec> {
        match &self.spec.transport {
            TransportSpec::Mptcp(mptcp) => Some(mptcp),
            _ => None,
        }
    }

    /// It is carried in datagrams.
    pub fn is_udp(&self) -> bool {
        matches!(self.spec.transport, TransportSpec::Udp)
    }

    /// The side whose data it is about: 0 is the one that opens.
    pub fn sender(&self) -> usize {
        self.state().app.sender()
    }

    /// It has completed, failed or stopped.
    pub fn is_over(&self) -> bool {
        self.state().ended.is_some()
    }

    /// It is over, or both ends have closed their direction.
    pub fn is_ending(&self) -> bool {
        let state = self.state();
        state.ended.is_some() || state.sides.iter().all(|s| s.is_shut)
    }

    /// Bytes that the receiver's application has.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.state().delivered)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, sender: usize) -> Option<u64> {
        self.verify.then_some(self.spec.id * 2 + sender as u64)
    }

    /// The connection is open; called at the side that opens.
    pub fn connected(&self, now: Instant) {
        let mut guard = self.state();
        let state = &mut *guard;
        let action = state.app.on_start(now, &mut state.rng);
        if state.app.is_open() {
            state.connected = Some(now);
        }
        state.act(0, action);
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
        let timer = if side == 0 { state.timer } else { Instant::MAX };
        Interest {
            read: !own.peer_closed,
            write: own.want > 0,
            until: if again { now } else { timer.min(self.stop) },
            over: state.ended.is_some() || (own.peer_closed && own.is_shut),
        }
    }

    /// Whether its turn ended before there was nothing more.
    fn read(&self, now: Instant, side: usize, stream: &mut dyn Stream) -> io::Result<bool> {
        let key = self.key(1 - side);
        let mut got = 0;
        let mut ended = false;
        let mut offset = self.state().sides[side].read;
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
        state.sides[side].read = offset;
        state.corrupted |= corrupted;
        if got > 0 {
            state.received(now, side, got);
        }
        if ended {
            state.sides[side].peer_closed = true;
            if state.app.closes_after_peer() {
                state.sides[side].close = true;
            }
        }
        if side == 0 && state.timer <= now {
            state.timer = Instant::MAX;
            let action = state.app.on_timer(now, &mut state.rng);
            state.act(0, action);
        }
        if now >= self.stop {
            state.ended.get_or_insert(self.stop);
        }
        Ok(got >= TURN && !ended)
    }

    /// Whether its turn ended before everything was written.
    fn write(&self, now: Instant, side: usize, stream: &mut dyn Stream) -> io::Result<bool> {
        let key = self.key(side);
        let mut turn = 0;
        loop {
            let (want, offset, close) = {
                let own = &self.state().sides[side];
                (own.want, own.written, own.close && !own.is_shut)
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
            match stream.write(&content::piece(key, offset, want)) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    let own = &mut self.state().sides[side];
                    own.written += n as u64;
                    if own.want < u64::MAX {
                        own.want -= n as u64;
                    }
                    turn += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Lets one end of a datagram flow send what is due and take what came. It begins with the first
    /// call at side 0.
    pub fn drive_datagrams(
        &self,
        now: Instant,
        side: usize,
        socket: &mut dyn Datagrams,
    ) -> Interest {
        let done = if side == 0 {
            self.send_due(now, socket)
        } else {
            self.take(now, socket)
        };
        if let Err(e) = done {
            self.fail(now, reason(&e));
        }
        let mut state = self.state();
        if now >= self.stop {
            state.ended.get_or_insert(self.stop);
        }
        let timer = if side == 0 { state.timer } else { Instant::MAX };
        Interest {
            read: side == 1,
            write: false,
            until: timer.min(self.stop),
            over: state.ended.is_some(),
        }
    }

    fn send_due(&self, now: Instant, socket: &mut dyn Datagrams) -> io::Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        if state.connected.is_none() {
            state.connected = Some(now);
            let action = state.app.on_start(now, &mut state.rng);
            state.send(now, action, socket)?;
        }
        // Several may be due after a late wake-up; each leaves as if at its own time.
        while state.timer <= now && now < self.stop {
            let due = std::mem::replace(&mut state.timer, Instant::MAX);
            let action = state.app.on_timer(due, &mut state.rng);
            state.send(now, action, socket)?;
        }
        Ok(())
    }

    fn take(&self, now: Instant, socket: &mut dyn Datagrams) -> io::Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        loop {
            let mut length = 0;
            let mut stamp = None;
            let mut sink = |data: &[u8]| {
                length = data.len() as u64;
                stamp = data
                    .get(8..STAMP)
                    .and_then(|t| t.first_chunk::<8>().copied());
            };
            match socket.receive(&mut sink) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
            let sent = stamp.map_or(now, |t| Instant::from_nanos(u64::from_be_bytes(t)));
            state.received_datagrams += 1;
            state.delays.record(now.saturating_since(sent));
            let arrived = Datagram {
                side: 1,
                number: state.received_datagrams - 1,
                bytes: length,
                sent_at: sent.min(now),
                marked: false,
            };
            state.app.on_datagram(now, &arrived);
            state.first_byte.get_or_insert(now);
            state.delivered += length;
        }
    }

    /// The connection failed.
    pub fn fail(&self, now: Instant, why: &'static str) {
        let mut state = self.state();
        if state.ended.is_none() {
            state.ended = Some(now);
            state.failure = Some(why);
        }
    }

    /// A round trip that the sender measured.
    pub fn round_trip(&self, rtt: Duration) {
        self.state().delays.record(rtt);
    }

    /// The counters of the sender's stack.
    pub fn count(&self, totals: Totals) {
        self.state().totals = totals;
    }

    /// The counters of the sender's stack when an edge of the measured window passes.
    pub fn count_at(&self, edge: Edge, totals: Totals) {
        let udp = self.is_udp();
        let mut state = self.state();
        state.totals = totals;
        let counts = state.counts(udp);
        state.marks.sent_at(edge, counts);
    }

    /// An edge of the measured window passes.
    pub fn mark(&self, edge: Edge) {
        let udp = self.is_udp();
        let mut guard = self.state();
        let state = &mut *guard;
        let counts = state.counts(udp);
        state.marks.mark(edge, counts, &mut state.delays);
    }

    /// Congestion-experienced marks that the receiver's stack saw.
    pub fn marks(&self, ce_marks: u64) {
        self.state().ce_marks = ce_marks;
    }

    /// The congestion control that its sender ran, which need not be the one asked for.
    pub fn ran(&self, congestion: String) {
        self.state().ran = Some(congestion);
    }

    /// What became of its Multipath TCP at a side.
    pub fn report(&self, report: MultipathReport) {
        self.state().reports.push(report);
    }

    /// What was [reported](Self::report), by side.
    pub fn reports(&self) -> Vec<MultipathReport> {
        let mut reports = self.state().reports.clone();
        reports.sort_by_key(|r| r.side);
        reports
    }

    /// What became of it until `now`, how far the run has been in the measured `window`.
    pub fn result(&self, now: Instant, window: &Window) -> FlowResult {
        let state = self.state();
        let spec = &self.spec;
        let (transport, congestion) = match &spec.transport {
            TransportSpec::Udp => ("udp", String::new()),
            TransportSpec::Tcp(tcp) => ("tcp", tcp.congestion.name().to_owned()),
            TransportSpec::Mptcp(mptcp) => ("mptcp", mptcp.congestion.name().to_owned()),
            TransportSpec::Quic(quic) => ("quic", quic.congestion_name.to_string()),
        };
        let udp = self.is_udp();
        let t = &state.totals;
        let counts = state.counts(udp);
        let (mut marks, mut rtt) = (state.marks.clone(), state.delays.clone());
        let inside = marks.inside(window, spec.start, counts, &mut rtt);
        let mut multipath = multipath::result(&state.reports, state.app.sender());
        let subflows = multipath.iter_mut().flat_map(|m| &mut m.subflows);
        subflows.for_each(|s| s.close(window));
        FlowResult {
            id: spec.id,
            template: spec.id,
            hosts: (spec.from, spec.to),
            label: spec.label.clone(),
            transport,
            congestion: state.ran.clone().unwrap_or(congestion),
            start: spec.start,
            end: state.ended.unwrap_or(now.min(self.stop)),
            handshake: state
                .connected
                .filter(|_| !udp)
                .map(|t| t.saturating_since(spec.start)),
            first_byte: state.first_byte,
            completion: state.completed.map(|t| t.saturating_since(spec.start)),
            delivered: Bytes::new(counts.delivered),
            sent_packets: counts.sent_packets,
            sent: Bytes::new(counts.sent),
            retransmitted_packets: counts.retransmitted_packets,
            lost_packets: counts.lost_packets,
            timeouts: t.timeouts,
            spurious_losses: t.spurious,
            ce_marks: state.ce_marks,
            rtt,
            inside,
            corrupted: state.corrupted,
            failure: state.failure,
            wire: WireBytes::default(),
            application: state.app.result(now, state.lost_datagrams()),
            multipath,
        }
    }
}

impl State {
    fn lost_datagrams(&self) -> u64 {
        self.sent_datagrams.saturating_sub(self.received_datagrams)
    }

    /// What rates are made of.
    fn counts(&self, udp: bool) -> Counts {
        let t = &self.totals;
        let pick = |datagrams: u64, other: u64| if udp { datagrams } else { other };
        Counts {
            delivered: self.delivered,
            sent: t.sent_bytes,
            sent_packets: pick(self.sent_datagrams, t.sent_packets),
            retransmitted_packets: t.retransmitted_packets,
            lost_packets: pick(self.lost_datagrams(), t.lost_packets),
            wire: WireBytes::default(),
        }
    }

    fn act(&mut self, side: usize, action: Action) {
        let own = &mut self.sides[side];
        own.want = own.want.saturating_add(action.write);
        own.close |= action.close;
        if let Some(timer) = action.timer {
            self.timer = timer;
        }
    }

    fn send(&mut self, now: Instant, action: Action, socket: &mut dyn Datagrams) -> io::Result<()> {
        self.timer = action.timer.unwrap_or(Instant::MAX);
        if action.write == 0 {
            return Ok(());
        }
        let mut data = vec![0; action.write.min(65_507) as usize];
        if data.len() >= STAMP {
            data[..8].copy_from_slice(&self.sent_datagrams.to_be_bytes());
            data[8..STAMP].copy_from_slice(&now.as_nanos().to_be_bytes());
        }
        self.sent_datagrams += 1;
        self.totals.sent_bytes += data.len() as u64;
        match socket.send(&data) {
            // No room in the device's queue: lost, as anywhere else on the path.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            // What an earlier datagram met.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            other => other,
        }
    }

    fn received(&mut self, now: Instant, side: usize, bytes: u64) {
        let sent = self.sides[side].written;
        let was_open = self.app.is_open();
        let (data, action) = self.app.on_delivered(now, side, bytes, sent);
        if !was_open && self.app.is_open() {
            self.connected = Some(now);
        }
        self.act(side, action);
        if side == self.app.sender() {
            return;
        }
        if data > 0 {
            self.first_byte.get_or_insert(now);
        }
        self.delivered += data;
        if self
            .app
            .total()
            .is_some_and(|total| self.delivered >= total)
            && self.completed.is_none()
        {
            self.completed = Some(now);
            self.ended.get_or_insert(now);
        }
    }
}

/// An error in the words of the results.
pub(crate) fn reason(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::ConnectionRefused => "refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "reset",
        io::ErrorKind::TimedOut => "timed out",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
        _ => "socket error",
    }
}

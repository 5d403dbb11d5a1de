//! The state of a running flow: the applications at its two ends, the progress of their streams, and measurements.
//!
//! It knows no clock, network or transport. A world (simulator or lab) passes in the time and what arrived, and asks
//! what to write, which datagrams to send and when the timer is due.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Count, Ecn, Instant, SenderCounters};
use gargalo_workload::wire::WireBytes;
use gargalo_workload::{Action, App, Datagram};
use rand_pcg::Pcg64;

use crate::result::{FlowResult, MultipathResult};
use crate::samples::{FlowSample, Reached};
use crate::spec::{FlowSpec, TransportSpec};
use crate::window::{Counts, Edge, Marks, Window};

/// Largest payload of a UDP datagram over IPv4.
const LARGEST_DATAGRAM: u64 = 65_507;

/// The state of a running flow. What every packet of a byte stream touches is here, the rest behind a pointer.
#[derive(Debug)]
pub struct Conversation {
    app: App,
    /// The side that sends the bulk of the data.
    sender: usize,
    /// The application only writes at its sender and reads at the other side.
    is_bulk: bool,
    over: Carrier,
    ends: [Position; 2],
    due: Instant,
    first_byte: Option<Instant>,
    completed: Option<Instant>,
    delivered: u64,
    /// Datagrams that the network dropped on the way to the receiver.
    pub lost_datagrams: u64,
    /// Congestion Experienced marks that the receiver saw.
    pub ce_marks: u64,
    /// Round-trip times of the sender, or one-way delays of datagrams.
    pub rtt: Quantiles,
    rare: Box<Rare>,
}

/// The part of the state that few packets need.
#[derive(Debug)]
struct Rare {
    rng: Pcg64,
    /// Objects still to be requested, each on a stream of its own.
    to_ask: Range<usize>,
    connected: Option<Instant>,
    datagrams: [Datagrams; 2],
    marks: Marks,
    corrupted: bool,
    failure: Option<Cow<'static, str>>,
    /// The most bytes of data that the receiver is known to have had.
    received: u64,
}

/// The service that the transport offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    /// One byte stream in each direction.
    Stream,
    /// Many streams: each object has its own.
    Streams,
    Datagrams,
}

/// The progress of an end's stream.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// Bytes still to be written; `u64::MAX`: unlimited.
    want: u64,
    /// The stream ends after them.
    close: bool,
    written: u64,
    read: u64,
}

/// The datagrams of one end.
#[derive(Debug, Default)]
struct Datagrams {
    /// Payload sizes of the datagrams waiting to be sent.
    waiting: VecDeque<u64>,
    sent: u64,
    sent_bytes: u64,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Payload size in bytes, without UDP and IP headers.
    pub bytes: u64,
    /// Its sequence number in its direction, from 0.
    pub number: u64,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// What a world adds to the result of a flow that has ended.
#[derive(Debug)]
pub struct Ending {
    /// Identifies the flow.
    pub id: u64,
    /// When it started.
    pub start: Instant,
    /// When it was stopped or the run ended, if it did not complete.
    pub end: Instant,
    /// The time for which the result of the application is reported.
    pub now: Instant,
    /// What the sender's stack counted.
    pub counters: SenderCounters,
    /// Bytes that both hosts put on the wire, if they were counted.
    pub wire: WireBytes,
    /// Results of several paths.
    pub multipath: Option<Box<MultipathResult>>,
}

impl Conversation {
    /// Creates the state of a flow that starts, with random streams of its own; `sizes` is called only if object sizes
    /// are drawn at random.
    pub fn new(spec: &FlowSpec, rng: Pcg64, sizes: impl FnOnce() -> Pcg64) -> Self {
        let mut app = App::new(&spec.workload, spec.rows, sizes).inside(spec.transport.tls());
        let over = match &spec.transport {
            TransportSpec::Udp => Carrier::Datagrams,
            TransportSpec::Quic(_) => match app.as_request() {
                Some(request) if !request.shares_stream() => Carrier::Streams,
                _ => Carrier::Stream,
            },
            TransportSpec::Tcp(_) | TransportSpec::Mptcp(_) => Carrier::Stream,
        };
        Self {
            sender: app.sender(),
            is_bulk: matches!(app, App::Bulk { .. }),
            app,
            over,
            ends: Default::default(),
            due: Instant::MAX,
            first_byte: None,
            completed: None,
            delivered: 0,
            lost_datagrams: 0,
            ce_marks: 0,
            rtt: Quantiles::default(),
            rare: Box::new(Rare {
                rng,
                to_ask: 0..0,
                connected: None,
                datagrams: Default::default(),
                marks: Marks::default(),
                corrupted: false,
                failure: None,
                received: 0,
            }),
        }
    }

    /// The side that sends the bulk of the data; side 0 opens the connection.
    #[inline]
    pub fn sender(&self) -> usize {
        self.sender
    }

    /// Bytes that must reach the receiver; `None`: unlimited, or not known yet.
    pub fn total(&self) -> Option<u64> {
        self.app.total()
    }

    /// Bytes that the receiver's application has read.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// How much has reached the receiver, whose transport has `buffered` bytes that it has not passed on; `None`: it
    /// does not report it. What once arrived stays counted, also if a subflow ends before it has passed it on.
    pub fn reached(&mut self, buffered: Option<u64>) -> Reached {
        let received = buffered.map(|bytes| {
            let waiting = self.app.data_within(1 - self.sender, bytes);
            let most = self.rare.received.max(self.delivered + waiting);
            self.rare.received = most;
            Bytes::new(most)
        });
        Reached {
            delivered: Bytes::new(self.delivered),
            received,
        }
    }

    /// When the whole transfer had arrived.
    #[inline]
    pub fn completed(&self) -> Option<Instant> {
        self.completed
    }

    /// When the client's application could first write; never for datagrams.
    pub fn connected(&self) -> Option<Instant> {
        self.rare.connected
    }

    /// Why the connection ended early, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.rare.failure.as_deref()
    }

    /// Records that the connection ended early; the first reason is kept.
    pub fn fail(&mut self, why: impl Into<Cow<'static, str>>) {
        self.rare.failure.get_or_insert_with(|| why.into());
    }

    /// Records that delivered content differed from what was sent.
    pub fn corrupt(&mut self) {
        self.rare.corrupted = true;
    }

    /// Samples an application that adapts to the network by itself: it has no congestion window, only a rate.
    pub fn sample(&self, time: Instant, flow: u64) -> Option<FlowSample> {
        self.app.rates().map(|r| FlowSample {
            time,
            flow,
            cwnd: Bytes::ZERO,
            ssthresh: None,
            in_flight: Some(Bytes::ZERO),
            srtt: r.rtt,
            pacing_rate: Some(r.rate),
            delivery_rate: r.received,
            delivered: Bytes::new(self.delivered),
            received: Some(Bytes::new(self.delivered)),
            phase: r.phase,
            out_of_order: None,
        })
    }

    /// Whether the flow is a single transfer as fast as the network allows.
    pub fn is_bulk(&self) -> bool {
        self.is_bulk
    }

    /// Starts the flow: the connection is open, or a flow of datagrams begins. Called at the client's side.
    pub fn start(&mut self, now: Instant) {
        if !self.ask_on_streams(now) {
            let action = self.app.on_start(now, &mut self.rare.rng);
            self.act(0, action);
        }
        if self.over != Carrier::Datagrams && self.app.is_open() {
            self.rare.connected.get_or_insert(now);
        }
    }

    /// When [`Self::expire`] is to be called; [`Instant::MAX`]: never.
    #[inline]
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Handles the application's timer when it is due.
    pub fn expire(&mut self, now: Instant) {
        self.due = Instant::MAX;
        if !self.ask_on_streams(now) {
            let action = self.app.on_timer(now, &mut self.rare.rng);
            self.act(0, action);
        }
    }

    fn ask_on_streams(&mut self, now: Instant) -> bool {
        match self.app.as_request() {
            Some(request) if self.over == Carrier::Streams => {
                self.rare.to_ask = request.ask_streams(now);
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn act(&mut self, side: usize, action: Action) {
        if self.over == Carrier::Datagrams {
            for (end, bytes) in self
                .rare
                .datagrams
                .iter_mut()
                .zip([action.write, action.reply])
            {
                if bytes > 0 {
                    end.waiting.push_back(bytes.min(LARGEST_DATAGRAM));
                }
            }
        } else {
            let end = &mut self.ends[side];
            end.want = end.want.saturating_add(action.write);
            end.close |= action.close;
        }
        if let Some(due) = action.timer {
            self.due = due;
        }
    }

    // --- streams

    /// Bytes that an end wants to write; `u64::MAX`: unlimited.
    #[inline]
    pub fn wants(&self, side: usize) -> u64 {
        self.ends[side].want
    }

    /// Bytes that an end has written and read so far.
    #[inline]
    pub fn positions(&self, side: usize) -> (u64, u64) {
        (self.ends[side].written, self.ends[side].read)
    }

    /// Records that the transport has accepted `bytes`.
    #[inline]
    pub fn wrote(&mut self, side: usize, bytes: u64) {
        let end = &mut self.ends[side];
        end.written += bytes;
        if end.want != u64::MAX {
            end.want = end.want.saturating_sub(bytes);
        }
    }

    /// Whether an end must be closed now, because everything is written and nothing follows. Returns true once.
    #[inline]
    pub fn closes(&mut self, side: usize) -> bool {
        let end = &mut self.ends[side];
        end.want == 0 && std::mem::take(&mut end.close)
    }

    /// What an end wants to write and whether the stream ends there, for a transport that accepts all of it at once.
    pub fn wanted(&self, side: usize) -> (u64, bool) {
        (self.ends[side].want, self.ends[side].close)
    }

    /// Records that the transport has accepted what was [wanted](Self::wanted).
    pub fn hand_over(&mut self, side: usize) {
        self.ends[side].want = 0;
    }

    /// Records that `bytes` of the accepted data have been written.
    pub fn wrote_later(&mut self, side: usize, bytes: u64) {
        self.ends[side].written += bytes;
    }

    /// Records that the peer has closed its direction: this end closes too, once its pending data is written.
    pub fn peer_closed(&mut self, side: usize) {
        if self.app.closes_after_peer() {
            self.ends[side].close = true;
        }
    }

    /// Records that the next `bytes` of the stream arrived at an end; `unsent` bytes of its own stream wait in the
    /// transport.
    #[inline]
    pub fn received(&mut self, now: Instant, side: usize, bytes: u64, unsent: u64) {
        if bytes == 0 {
            return;
        }
        self.ends[side].read += bytes;
        if self.is_bulk && side != self.sender {
            self.deliver(now, bytes);
            return;
        }
        self.answer(now, side, bytes, unsent);
    }

    /// Lets the application answer what arrived.
    fn answer(&mut self, now: Instant, side: usize, bytes: u64, unsent: u64) {
        let sent = self.ends[side].written.saturating_sub(unsent);
        let (data, action) = self.app.on_delivered(now, side, bytes, sent);
        if side == 0 && self.rare.connected.is_none() && self.app.is_open() {
            self.rare.connected = Some(now);
        }
        self.act(side, action);
        if side != self.sender {
            self.deliver(now, data);
        }
    }

    #[inline]
    fn deliver(&mut self, now: Instant, data: u64) {
        if data == 0 {
            return;
        }
        self.delivered += data;
        self.first_byte.get_or_insert(now);
        if self.completed.is_none() && self.app.total().is_some_and(|t| t <= self.delivered) {
            self.completed = Some(now);
        }
    }

    /// Records that the connection is over; this completes a transfer of zero bytes.
    pub fn over(&mut self, now: Instant) {
        if self.app.total() == Some(0) {
            self.completed.get_or_insert(now);
        }
    }

    // --- objects on streams of their own

    /// Whether each object has a stream of its own.
    #[inline]
    pub fn is_on_streams(&self) -> bool {
        self.over == Carrier::Streams
    }

    /// The size of the request for the next object, which goes on a stream of its own.
    pub fn next_request(&mut self) -> Option<u64> {
        if self.rare.to_ask.is_empty() {
            return None;
        }
        self.app.as_request().map(|r| r.request_size())
    }

    /// Records that the object was requested.
    pub fn asked(&mut self) {
        self.rare.to_ask.start += 1;
    }

    /// Records that the server has received a whole request; returns the size of the response.
    pub fn asked_for(&mut self, object: usize) -> Option<u64> {
        let request = self.app.as_request()?;
        (object < request.objects()).then(|| request.object_size(object))
    }

    /// Records that part of an object arrived at the client.
    pub fn received_object(&mut self, now: Instant, object: usize, bytes: u64) {
        let Some(request) = self.app.as_request() else {
            return;
        };
        let action = request.received_on_stream(now, object, bytes);
        if action.write > 0 {
            self.rare.to_ask = request.ask_streams(now);
        }
        if let Some(due) = action.timer {
            self.due = due;
        }
        self.deliver(now, bytes);
    }

    // --- datagrams

    /// Returns the next datagram that an end has to send.
    #[inline]
    pub fn poll_datagram(&mut self, side: usize) -> Option<Outgoing> {
        let end = &mut self.rare.datagrams[side];
        let bytes = end.waiting.pop_front()?;
        let number = end.sent;
        end.sent += 1;
        end.sent_bytes += bytes;
        let ecn = match side {
            0 => self.app.ecn(),
            _ => Ecn::NotEct,
        };
        Some(Outgoing { bytes, number, ecn })
    }

    /// Records the arrival of a datagram; returns whether an end now has datagrams to send.
    #[inline]
    pub fn on_datagram(&mut self, now: Instant, datagram: &Datagram) -> bool {
        if datagram.side == 1 {
            self.ce_marks += u64::from(datagram.marked);
            self.delivered += datagram.bytes;
            self.first_byte.get_or_insert(now);
            self.rtt.record(now.saturating_since(datagram.sent_at));
        }
        let action = self.app.on_datagram(now, datagram);
        if action == Action::default() {
            return false;
        }
        self.act(datagram.side, action);
        true
    }

    /// Datagrams that the sender has sent.
    pub fn sent_datagrams(&self) -> u64 {
        self.rare.datagrams[0].sent
    }

    // --- results

    /// The counts from which rates are computed.
    pub fn counts(&self, of_stack: SenderCounters, wire: WireBytes) -> Counts {
        let sender = match self.over {
            Carrier::Datagrams => self.of_datagrams(),
            Carrier::Stream | Carrier::Streams => of_stack,
        };
        Counts {
            delivered: self.delivered,
            sender,
            wire,
        }
    }

    /// The counters of a sender of datagrams, which repeats nothing and has no timeouts.
    fn of_datagrams(&self) -> SenderCounters {
        let own = &self.rare.datagrams[0];
        SenderCounters {
            sent_packets: own.sent.into(),
            sent_bytes: own.sent_bytes.into(),
            lost_packets: self.lost_datagrams.into(),
            retransmitted_packets: Count::default(),
            timeouts: Count::default(),
            spurious_losses: Count::default(),
            ..SenderCounters::UNKNOWN
        }
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge, of_stack: SenderCounters, wire: WireBytes) {
        let counts = self.counts(of_stack, wire);
        self.rare.marks.mark(edge, counts, &mut self.rtt);
    }

    /// Sets what had been sent at an edge that has passed, once it is known.
    pub fn sent_at(&mut self, edge: Edge, of_stack: SenderCounters, wire: WireBytes) {
        let counts = self.counts(of_stack, wire);
        self.rare.marks.sent_at(edge, counts);
    }

    /// Builds the result of the flow; `window` is the measured window as far as the run covered it.
    pub fn result(&mut self, spec: &FlowSpec, window: &Window, ending: Ending) -> FlowResult {
        let start = ending.start;
        let counts = self.counts(ending.counters, ending.wire);
        let mut rtt = std::mem::take(&mut self.rtt);
        let inside = self.rare.marks.inside(window, start, counts, &mut rtt);
        FlowResult {
            id: ending.id,
            label: spec.label.clone(),
            template: spec.id,
            hosts: (spec.from, spec.to),
            transport: spec.transport.name(),
            congestion: spec.transport.congestion().to_owned(),
            start,
            end: self.completed.unwrap_or(ending.end),
            handshake: self.rare.connected.map(|t| t.saturating_since(start)),
            first_byte: self.first_byte,
            completion: self.completed.map(|t| t.saturating_since(start)),
            delivered: Bytes::new(counts.delivered),
            counters: counts.sender,
            ce_marks: self.ce_marks,
            rtt,
            inside,
            corrupted: self.rare.corrupted,
            failure: self.rare.failure.clone(),
            wire: counts.wire,
            application: self.app.result(ending.now, self.lost_datagrams),
            multipath: ending.multipath,
        }
    }
}

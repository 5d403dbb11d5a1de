//! The state of a running flow: the applications at its two ends, the progress of their streams, and measurements.
//!
//! It knows no clock, network or transport. A world (simulator or lab) passes in the time and what arrived, and asks
//! what to write, which datagrams to send and when the timer is due.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Count, Duration, Ecn, Instant, SenderCounters};
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
    /// Objects still to be requested, each on a stream of its own, and those to be cancelled.
    to_ask: Range<usize>,
    to_cancel: VecDeque<usize>,
    connected: Option<Instant>,
    datagrams: [Datagrams; 2],
    /// Datagrams within a connection of QUIC that have not arrived, by the end that sends them.
    frames: [Outstanding; 2],
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
    /// UDP datagrams.
    Datagrams,
    /// Datagrams within a connection of QUIC (RFC 9221).
    Frames,
}

impl Carrier {
    fn is_datagrams(self) -> bool {
        matches!(self, Self::Datagrams | Self::Frames)
    }
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

/// Datagrams that are kept as possibly on their way; older ones are lost.
const MOST_OUTSTANDING: usize = 1 << 16;
/// How long a datagram may be on its way at the end of a flow before it counts as lost, if no later one has arrived.
const LATE: Duration = Duration::from_secs(2);

/// Datagrams that were sent and have not arrived.
#[derive(Debug, Default)]
struct Outstanding {
    sent: BTreeMap<u64, Instant>,
    /// The highest number that has arrived.
    highest: Option<u64>,
    /// Those that are not kept any more.
    forgotten: u64,
}

impl Outstanding {
    fn sent(&mut self, number: u64, now: Instant) {
        self.sent.insert(number, now);
        if self.sent.len() > MOST_OUTSTANDING {
            self.sent.pop_first();
            self.forgotten += 1;
        }
    }

    fn arrived(&mut self, number: u64) -> Option<Instant> {
        let sent_at = self.sent.remove(&number)?;
        self.highest = self.highest.max(Some(number));
        Some(sent_at)
    }

    fn lost(&self, now: Instant) -> u64 {
        let is_lost = |(number, sent_at): (&u64, &Instant)| {
            Some(*number) < self.highest || now.saturating_since(*sent_at) > LATE
        };
        self.forgotten + self.sent.iter().filter(|s| is_lost(*s)).count() as u64
    }
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
            TransportSpec::Quic(_) if spec.uses().datagrams => Carrier::Frames,
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
                to_cancel: VecDeque::new(),
                connected: None,
                datagrams: Default::default(),
                frames: Default::default(),
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

    /// Whether delivered content differed from what was sent.
    #[cfg(test)]
    pub(crate) fn is_corrupt(&self) -> bool {
        self.rare.corrupted
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
        if self.over == Carrier::Streams
            && let Some(request) = self.app.as_request()
        {
            self.rare.to_ask = request.ask_streams(now);
        } else {
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
        if self.over == Carrier::Streams
            && let Some(request) = self.app.as_request()
        {
            let (late, asked) = request.expire(now);
            if !asked.is_empty() {
                self.rare.to_ask = asked;
            }
            self.due = request.due().unwrap_or(Instant::MAX);
            if !late.is_empty() {
                self.rare.to_cancel.extend(late);
                self.complete(now);
            }
        } else {
            let action = self.app.on_timer(now, &mut self.rare.rng);
            self.act(0, action);
        }
    }

    #[inline]
    fn act(&mut self, side: usize, action: Action) {
        if self.over.is_datagrams() {
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
        self.complete(now);
    }

    #[inline]
    fn complete(&mut self, now: Instant) {
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
    pub fn asked(&mut self, now: Instant) {
        let object = self.rare.to_ask.start;
        self.rare.to_ask.start += 1;
        if let Some(request) = self.app.as_request() {
            request.asked_on_stream(now, object);
            self.due = request.due().unwrap_or(Instant::MAX);
        }
    }

    /// The next object whose answer is not wanted any more.
    pub fn next_cancelled(&mut self) -> Option<usize> {
        self.rare.to_cancel.pop_front()
    }

    /// The urgency of an object; `None`: none differs.
    pub fn urgency(&mut self, object: usize) -> Option<u8> {
        self.app.as_request()?.urgency(object)
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
        let (new, action) = request.received_on_stream(now, object, bytes);
        if action.write > 0 {
            self.rare.to_ask = request.ask_streams(now);
        }
        self.due = request.due().unwrap_or(Instant::MAX);
        self.deliver(now, new);
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

    /// Whether the application sends datagrams within a connection of QUIC.
    pub fn is_on_frames(&self) -> bool {
        self.over == Carrier::Frames
    }

    /// Records that a datagram within a connection of QUIC is sent.
    pub fn frame_sent(&mut self, side: usize, number: u64, now: Instant) {
        self.rare.frames[side].sent(number, now);
    }

    /// Records that one has arrived that this end has sent; returns when it was. `None`: it was not, or has arrived.
    pub fn frame_arrived(&mut self, side: usize, number: u64) -> Option<Instant> {
        self.rare.frames[side].arrived(number)
    }

    /// Records a round-trip sample of the transport; of datagrams the one-way delays are kept instead.
    #[inline]
    pub fn round_trip(&mut self, rtt: Duration) {
        if !self.over.is_datagrams() {
            self.rtt.record(rtt);
        }
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
            // The stack counts data of streams.
            Carrier::Frames => SenderCounters {
                sent_bytes: self.rare.datagrams[0].sent_bytes.into(),
                ..of_stack
            },
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
        if self.over == Carrier::Frames {
            self.lost_datagrams = self.rare.frames[0].lost(ending.now);
        }
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
            one_way: self.over.is_datagrams(),
            corrupted: self.rare.corrupted,
            failure: self.rare.failure.clone(),
            wire: counts.wire,
            application: self.app.result(ending.now, self.lost_datagrams),
            multipath: ending.multipath,
        }
    }
}

#[cfg(test)]
mod tests {
    use gargalo_units::{Duration, Rate};

    use gargalo_workload::{Bulk, Cbr, CbrRate, Ping, Request, Workload};

    use super::*;
    use crate::rng;
    use crate::testing::{at, bulk, flow, reno};

    fn talk(spec: &FlowSpec) -> Conversation {
        Conversation::new(spec, rng::stream(1, "test"), || rng::stream(1, "sizes"))
    }

    fn over_tcp(workload: Workload) -> FlowSpec {
        flow(TransportSpec::Tcp(reno()), workload)
    }

    fn over_udp(workload: Workload) -> FlowSpec {
        flow(TransportSpec::Udp, workload)
    }

    fn objects(sizes: &[u64]) -> Workload {
        Workload::Request(Request::of(
            sizes.iter().copied().map(Bytes::new).collect::<Vec<_>>(),
        ))
    }

    fn ending(end: Instant, counters: SenderCounters) -> Ending {
        Ending {
            id: 3,
            start: at(10),
            end,
            now: end,
            counters,
            wire: WireBytes {
                forward: 1400,
                reverse: 80,
            },
            multipath: None,
        }
    }

    fn arriving(side: usize, bytes: u64, sent_at: Instant) -> Datagram {
        Datagram {
            side,
            number: 0,
            bytes,
            sent_at,
            marked: false,
        }
    }

    #[test]
    fn a_transfer_is_complete_when_its_last_byte_is_read() {
        let spec = over_tcp(bulk(1000));
        let mut t = talk(&spec);
        assert_eq!((t.sender(), t.total(), t.is_bulk()), (0, Some(1000), true));
        assert_eq!((t.connected(), t.is_on_streams()), (None, false));
        t.start(at(30));
        assert_eq!((t.connected(), t.due()), (Some(at(30)), Instant::MAX));
        assert_eq!((t.wants(0), t.wants(1)), (1000, 0));
        t.wrote(0, 600);
        assert_eq!((t.wants(0), t.closes(0)), (400, false));
        t.wrote(0, 400);
        assert_eq!([t.closes(0), t.closes(0)], [true, false]);
        t.received(at(40), 1, 0, 0);
        t.received(at(50), 1, 999, 0);
        assert_eq!((t.delivered(), t.completed()), (999, None));
        t.received(at(60), 1, 1, 0);
        assert_eq!(t.completed(), Some(at(60)));
        assert_eq!((t.positions(0), t.positions(1)), ((1000, 0), (0, 1000)));
        t.over(at(80));
        let counters = SenderCounters::default();
        let result = t.result(&spec, &Window::new(None), ending(at(90), counters));
        assert_eq!(
            (result.id, result.template, result.transport),
            (3, 7, "tcp")
        );
        assert_eq!((result.start, result.end), (at(10), at(60)));
        assert_eq!(result.handshake, Some(Duration::from_millis(20)));
        assert_eq!(result.first_byte, Some(at(50)));
        assert_eq!(result.completion, Some(Duration::from_millis(50)));
        assert_eq!(result.delivered, Bytes::new(1000));
        assert_eq!((result.inside.delivered, result.wire.forward), (1000, 1400));
        assert!(result.failure.is_none() && !result.corrupted);
    }

    #[test]
    fn an_unlimited_transfer_always_wants_to_write_and_never_completes() {
        let spec = over_tcp(Workload::Bulk(Bulk::ENDLESS));
        let mut t = talk(&spec);
        t.start(at(0));
        t.wrote(0, 5000);
        assert_eq!(
            (t.wants(0), t.closes(0), t.total()),
            (u64::MAX, false, None)
        );
        t.received(at(1), 1, 5000, 0);
        t.over(at(2));
        assert_eq!((t.positions(0).0, t.completed()), (5000, None));
        // The end to which data flows closes after its peer.
        assert_eq!(t.wanted(1), (0, false));
        t.peer_closed(1);
        assert_eq!((t.wanted(1), t.closes(1)), ((0, true), true));
    }

    #[test]
    fn the_end_of_the_connection_completes_a_transfer_of_nothing() {
        let mut t = talk(&over_tcp(bulk(0)));
        t.start(at(0));
        assert!(t.closes(0) && t.completed().is_none());
        t.over(at(5));
        t.over(at(6));
        assert_eq!(t.completed(), Some(at(5)));
    }

    #[test]
    fn the_first_reason_for_a_failure_is_kept_and_damage_is_told() {
        let spec = over_tcp(bulk(10));
        let mut t = talk(&spec);
        assert_eq!(t.failure(), None);
        t.fail("reset");
        t.fail("timed out");
        assert_eq!(t.failure(), Some("reset"));
        t.corrupt();
        let ending = ending(at(90), SenderCounters::default());
        let result = t.result(&spec, &Window::new(None), ending);
        assert_eq!(result.failure.as_deref(), Some("reset"));
        assert_eq!((result.corrupted, result.end), (true, at(90)));
        assert_eq!((result.completion, result.handshake), (None, None));
    }

    #[test]
    fn what_waits_at_the_receiver_has_reached_it_and_stays_counted() {
        let mut t = talk(&over_tcp(bulk(1000)));
        t.start(at(0));
        t.received(at(1), 1, 500, 0);
        let reached = |t: &mut Conversation, buffered| {
            let r = t.reached(buffered);
            (r.delivered.get(), r.received.map(Bytes::get))
        };
        assert_eq!(reached(&mut t, Some(300)), (500, Some(800)));
        assert_eq!(reached(&mut t, Some(0)), (500, Some(800)));
        assert_eq!(reached(&mut t, None), (500, None));
        t.received(at(2), 1, 400, 0);
        assert_eq!(reached(&mut t, Some(0)), (900, Some(900)));
    }

    #[test]
    fn a_transport_may_take_all_and_write_it_later() {
        let mut t = talk(&over_tcp(bulk(1000)));
        t.start(at(0));
        assert_eq!(t.wanted(0), (1000, true));
        t.hand_over(0);
        assert_eq!((t.wanted(0).0, t.positions(0).0), (0, 0));
        t.wrote_later(0, 700);
        t.wrote_later(0, 300);
        assert_eq!(t.positions(0).0, 1000);
    }

    #[test]
    fn one_object_follows_another_on_a_stream() {
        let mut t = talk(&over_tcp(objects(&[5000, 3000])));
        assert_eq!((t.sender(), t.total(), t.is_bulk()), (1, Some(8000), false));
        t.start(at(0));
        assert_eq!(t.wants(0), 100);
        t.wrote(0, 100);
        // A server answers whole requests, and does not close before its client is done.
        t.received(at(1), 1, 99, 0);
        assert_eq!(t.wants(1), 0);
        t.received(at(1), 1, 1, 0);
        assert_eq!((t.wants(1), t.delivered()), (5000, 0));
        t.peer_closed(1);
        assert!(!t.wanted(1).1);
        t.wrote(1, 5000);
        t.received(at(2), 0, 5000, 0);
        assert_eq!(
            (t.wants(0), t.delivered(), t.completed()),
            (100, 5000, None)
        );
        t.received(at(3), 1, 100, 0);
        t.received(at(4), 0, 3000, 0);
        assert_eq!((t.completed(), t.connected()), (Some(at(4)), Some(at(0))));
    }

    #[test]
    fn the_timer_of_an_application_is_due_once() {
        let mut t = talk(&over_udp(Workload::Cbr(Cbr {
            rate: CbrRate::Constant(Rate::from_bps(80_000)),
            packet_size: Bytes::new(1000),
        })));
        t.start(at(0));
        assert_eq!((t.due(), t.connected(), t.wants(0)), (at(100), None, 0));
        t.expire(at(100));
        assert_eq!(t.due(), at(200));
        let sent = |t: &mut Conversation| t.poll_datagram(0).map(|d| (d.bytes, d.number, d.ecn));
        assert_eq!(sent(&mut t), Some((1000, 0, Ecn::NotEct)));
        assert_eq!(sent(&mut t), Some((1000, 1, Ecn::NotEct)));
        assert_eq!((sent(&mut t), t.sent_datagrams()), (None, 2));
        assert!(t.poll_datagram(1).is_none());
        // A transfer has no timer.
        let mut transfer = talk(&over_tcp(bulk(1)));
        transfer.start(at(0));
        transfer.expire(at(1));
        assert_eq!((transfer.due(), transfer.wants(0)), (Instant::MAX, 1));
    }

    #[test]
    fn a_datagram_is_never_larger_than_one_can_be() {
        let mut t = talk(&over_udp(bulk(70_000)));
        t.start(at(0));
        assert_eq!(t.poll_datagram(0).map(|d| d.bytes), Some(65_507));
    }

    #[test]
    fn requests_are_measured_where_they_arrive_and_answered_from_there() {
        let spec = over_udp(Workload::Ping(Ping::default()));
        let mut t = talk(&spec);
        t.start(at(0));
        assert!(t.poll_datagram(0).is_some());
        let marked = Datagram {
            marked: true,
            ..arriving(1, 56, at(0))
        };
        assert!(t.on_datagram(at(20), &marked), "an answer is to be sent");
        assert_eq!(
            t.poll_datagram(1).map(|d| (d.bytes, d.number)),
            Some((56, 0))
        );
        let back = Datagram {
            marked: true,
            ..arriving(0, 56, at(20))
        };
        assert!(!t.on_datagram(at(50), &back));
        assert_eq!((t.delivered(), t.ce_marks, t.rtt.count()), (56, 1, 1));
        assert!(!t.on_datagram(at(60), &arriving(0, 56, at(20))));
        t.lost_datagrams = 4;
        let of_stack = SenderCounters::UNKNOWN;
        let result = t.result(&spec, &Window::new(None), ending(at(90), of_stack));
        assert_eq!((result.first_byte, result.completion), (Some(at(20)), None));
        assert_eq!((result.transport, result.congestion.as_str()), ("udp", ""));
        // Repeats nothing, has no timeouts and no losses that were none.
        let c = result.counters;
        let known = [c.sent_packets, c.sent_bytes, c.lost_packets].map(Count::get);
        assert_eq!(known, [1, 56, 4].map(Some));
        let zero = [c.retransmitted_packets, c.timeouts, c.spurious_losses];
        assert_eq!(zero, [Count::default(); 3]);
        assert!(result.application.is_some());
    }

    #[test]
    fn counts_are_those_between_the_edges_and_what_was_sent_may_be_known_later() {
        let spec = over_tcp(Workload::Bulk(Bulk::ENDLESS));
        let mut t = talk(&spec);
        let sent = |n: u64| SenderCounters {
            sent_bytes: n.into(),
            ..SenderCounters::default()
        };
        let wire = |n| WireBytes {
            forward: n,
            reverse: 0,
        };
        let mut window = Window::new(Some((at(100), at(200))));
        t.start(at(0));
        t.received(at(50), 1, 1000, 0);
        t.rtt.record(Duration::from_millis(10));
        t.mark(Edge::From, sent(1), wire(2));
        window.pass(Edge::From, at(100));
        t.received(at(150), 1, 500, 0);
        t.sent_at(Edge::From, sent(1200), wire(1300));
        t.rtt.record(Duration::from_millis(30));
        t.mark(Edge::Until, sent(2000), wire(2100));
        window.pass(Edge::Until, at(200));
        t.received(at(250), 1, 9000, 0);
        t.sent_at(Edge::Until, sent(2200), wire(2500));
        let result = t.result(&spec, &window, ending(at(300), sent(20_000)));
        assert_eq!(
            (result.inside.delivered, result.delivered.get()),
            (500, 10_500)
        );
        assert_eq!(result.inside.sender.sent_bytes, 1000);
        assert_eq!((result.inside.wire, result.rtt.count()), (wire(1200), 1));
    }

    #[test]
    fn datagrams_are_lost_behind_later_ones_or_after_a_while() {
        let mut all = Outstanding::default();
        for number in 0..6 {
            all.sent(number, at(10 * number));
        }
        assert_eq!(all.lost(at(100)), 0);
        assert_eq!((all.arrived(3), all.arrived(3)), (Some(at(30)), None));
        assert_eq!(all.lost(at(100)), 3);
        assert_eq!(all.arrived(1), Some(at(10)));
        assert_eq!(all.lost(at(100)), 2);
        // Sent two seconds ago.
        assert_eq!(all.lost(at(2041)), 3);
        assert_eq!(all.lost(at(2051)), 4);
        assert_eq!(all.arrived(9), None);
    }
}

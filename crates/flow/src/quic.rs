//! QUIC under the applications of a flow: byte streams and objects on QUIC streams, datagrams in packets of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use gargalo_quic::{Chunk, Config, Direction, Event, Notice, Offered, Stack, StreamId};
use gargalo_units::{Duration, Instant};
use gargalo_workload::Datagram;

use crate::content;
use crate::conversation::Conversation;
use crate::gauges::{causes, gauges_of};
use crate::samples::{FlowSample, Gauge, Reached};

/// Datagrams that wait for the connection at most: older ones are discarded, as in a queue that drops from its front.
const MOST_DATAGRAMS: usize = 128;
/// Bytes of a datagram's content that are its number.
const STAMP: usize = 8;

/// A QUIC connection at one end of a flow.
#[derive(Debug)]
pub struct QuicEnd {
    /// The connection. The world handles its datagrams and its timer.
    pub endpoint: Box<dyn Stack>,
    /// The side: side 0 opens the connection.
    side: usize,
    /// Streams over which a transfer is spread, and their direction.
    streams: u32,
    direction: Direction,
    /// A client updates its keys after this time, and when next.
    key_update: Option<(Duration, Instant)>,
    /// Datagrams that were not taken, the oldest first.
    datagrams: VecDeque<Bytes>,
    /// Datagrams that have arrived at side 1, and that the world has not recorded.
    recent: Vec<Datagram>,
    /// Key of the content; `None`: zeros, which are not compared.
    key: Option<u64>,
    /// Streams with data still to be written, in the order in which they were opened.
    outgoing: VecDeque<Waiting>,
    /// Bytes read from each stream.
    incoming: BTreeMap<StreamId, u64>,
    /// Streams over which a byte stream is spread; empty until it writes.
    spread: Vec<StreamId>,
    /// Streams that the peer has asked the end of.
    stopped: BTreeSet<StreamId>,
    /// The streams end after what is written.
    closing: bool,
    over: bool,
    /// Phase of the congestion control at the last record of it.
    phase: &'static str,
}

/// Data to be written on a stream.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    stream: StreamId,
    left: u64,
    /// Offset of the next byte.
    at: u64,
    end: bool,
}

/// What a world must know about a connection, besides the data of its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicEvent {
    /// The client's handshake is complete: further paths may be opened.
    Established,
    /// The connection failed, for this reason, before everything had arrived.
    Failed(String),
}

impl QuicEnd {
    /// Creates the end of the flow with this number at a side, which begins now; content is compared if `verify`.
    pub fn new(
        endpoint: Box<dyn Stack>,
        (flow, side): (u64, usize),
        config: &Config,
        verify: bool,
        now: Instant,
    ) -> Self {
        let period = config.key_update.filter(|_| side == 0);
        Self {
            endpoint,
            side,
            streams: config.streams,
            direction: match config.unidirectional {
                true => Direction::Unidirectional,
                false => Direction::Bidirectional,
            },
            key_update: period.map(|period| (period, now + period)),
            datagrams: VecDeque::new(),
            recent: Vec::new(),
            key: verify.then_some(flow),
            outgoing: VecDeque::new(),
            incoming: BTreeMap::new(),
            spread: Vec::new(),
            stopped: BTreeSet::new(),
            closing: false,
            over: false,
            phase: "",
        }
    }

    /// The datagrams that have arrived at side 1 since the last call.
    pub fn recent_datagrams(&mut self) -> impl Iterator<Item = Datagram> + '_ {
        self.recent.drain(..)
    }

    /// Whether the connection is over, so that nothing more is expected of it.
    pub fn is_over(&self) -> bool {
        self.over || self.endpoint.is_over()
    }

    /// Passes on the notices. With `looks` also returns a record of the congestion control of a connection with one
    /// path, if a notice or a new phase is a cause for one.
    pub fn notices(
        &mut self,
        now: Instant,
        flow: u64,
        looks: bool,
        mut show: impl FnMut(Notice),
    ) -> Vec<Gauge> {
        let state = looks.then(|| self.endpoint.snapshot());
        let phase = state.map_or(self.phase, |s| s.phase);
        let notices = std::iter::from_fn(|| {
            let notice = self.endpoint.poll_notice()?;
            let kind = notice.kind;
            show(notice);
            Some(kind)
        });
        let causes = causes(phase, &mut self.phase, notices);
        let state = state.filter(|_| !causes.is_empty());
        state.map_or_else(Vec::new, |s| {
            let sample = FlowSample::of_quic(now, flow, Reached::default(), s);
            gauges_of(&sample, &causes, &[])
        })
    }

    /// Returns the next event of the connection; events of the application are passed to `talk`.
    pub fn poll_event(&mut self, now: Instant, talk: &mut Conversation) -> Option<QuicEvent> {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Connected { .. } if self.side == 0 => talk.start(now),
                Event::HandshakeComplete { .. } if self.side == 0 => {
                    return Some(QuicEvent::Established);
                }
                Event::Connected { .. } | Event::HandshakeComplete { .. } => {}
                Event::Stopped(stream) => {
                    self.outgoing.retain(|o| o.stream != stream);
                    self.stopped.insert(stream);
                    self.endpoint.reset(now, stream);
                }
                Event::Closed => self.over = true,
                Event::Failed(reason) => {
                    self.over = true;
                    if talk.completed().is_none() {
                        match reason.contains("timed out") {
                            true => talk.fail("timed out"),
                            false => talk.fail(reason.clone()),
                        }
                        return Some(QuicEvent::Failed(reason));
                    }
                }
            }
        }
        None
    }

    /// Lets the application read, act and write, and closes a connection that is done.
    pub fn exchange(&mut self, now: Instant, talk: &mut Conversation) {
        if self.side == 0 {
            while let Some(object) = talk.next_cancelled() {
                self.endpoint.stop(now, stream_of(object));
            }
        }
        while let Some(chunk) = self.endpoint.poll_read() {
            self.read(now, talk, &chunk);
        }
        if let Some((period, due)) = &mut self.key_update
            && *due <= now
        {
            // What it may not do yet it is asked again.
            if self.endpoint.update_keys(now) {
                *due = now + *period;
            }
        }
        if talk.is_on_frames() {
            self.exchange_datagrams(now, talk);
        }
        while self.side == 0
            && let Some(request) = talk.next_request()
        {
            let Some(stream) = self.endpoint.open(now, Direction::Bidirectional) else {
                break;
            };
            talk.asked(now);
            self.queue(stream, request, true);
        }
        self.spread(now, talk);
        self.write(now, talk);
        if !self.over && self.is_done(talk) {
            self.endpoint.close(now);
        }
    }

    /// Reads and writes datagrams (RFC 9221). Those of the application carry their number.
    fn exchange_datagrams(&mut self, now: Instant, talk: &mut Conversation) {
        while let Some(data) = self.endpoint.poll_datagram() {
            let number = data.split_first_chunk::<STAMP>().map(|(number, rest)| {
                let number = u64::from_be_bytes(*number);
                (number, rest)
            });
            let known = number.and_then(|(number, rest)| {
                let own = self.key.map(|flow| key(flow, number, 1 - self.side));
                let is_right = own.is_none_or(|key| content::is_right(key, 0, rest));
                let sent_at = talk.frame_arrived(1 - self.side, number)?;
                is_right.then_some((number, sent_at))
            });
            // Of a number that was not sent, or that has arrived: the stack has made it, or has repeated it.
            let Some((number, sent_at)) = known else {
                talk.corrupt();
                continue;
            };
            let arrived = Datagram {
                side: self.side,
                number,
                bytes: data.len() as u64,
                sent_at,
                // Marks are those of packets (RFC 9221 §5.3), which the application does not see.
                marked: false,
            };
            talk.on_datagram(now, &arrived);
            if self.side == 1 {
                self.recent.push(arrived);
            }
        }
        while let Some(out) = talk.poll_datagram(self.side) {
            talk.frame_sent(self.side, out.number, now);
            let mut data = vec![0; out.bytes as usize];
            if let Some((number, rest)) = data.split_first_chunk_mut::<STAMP>() {
                *number = out.number.to_be_bytes();
                if let Some(flow) = self.key {
                    let key = key(flow, out.number, self.side);
                    rest.copy_from_slice(&content::piece(Some(key), 0, rest.len() as u64));
                }
            }
            self.datagrams.push_back(data.into());
        }
        while let Some(first) = self.datagrams.front() {
            match self.endpoint.send_datagram(now, first) {
                Offered::Taken => {}
                Offered::Later => break,
                Offered::Refused if !self.over => {
                    let bytes = first.len();
                    talk.fail(format!(
                        "a datagram of {bytes} bytes does not fit into a packet; give smaller ones, or a larger \
                         datagram_size"
                    ));
                    self.endpoint.close(now);
                    self.over = true;
                }
                Offered::Refused => {}
            }
            self.datagrams.pop_front();
        }
        let beyond = self.datagrams.len().saturating_sub(MOST_DATAGRAMS);
        self.datagrams.drain(..beyond);
    }

    /// Handles a chunk of a stream that arrived.
    fn read(&mut self, now: Instant, talk: &mut Conversation, chunk: &Chunk) {
        let bytes = chunk.data.len() as u64;
        let at = self.incoming.entry(chunk.stream).or_insert(0);
        let start = *at;
        *at += bytes;
        if let Some(flow) = self.key {
            let key = key(flow, chunk.stream, 1 - self.side);
            if !content::is_right(key, start, &chunk.data) {
                talk.corrupt();
            }
        }
        if !talk.is_on_streams() {
            return talk.received(now, self.side, bytes, 0);
        }
        // Streams of objects are opened in the order of the objects (RFC 9000 §2.1: the low two bits give the type).
        let object = (chunk.stream >> 2) as usize;
        if self.side == 0 {
            talk.received_object(now, object, bytes);
        } else if chunk.end
            && !self.stopped.contains(&chunk.stream)
            && let Some(size) = talk.asked_for(object)
        {
            if let Some(urgency) = talk.urgency(object) {
                self.endpoint.set_urgency(now, chunk.stream, urgency);
            }
            self.queue(chunk.stream, size, true);
        }
    }

    /// Queues `bytes` on a stream, after what already waits there.
    fn queue(&mut self, stream: StreamId, bytes: u64, end: bool) {
        match self.outgoing.iter_mut().find(|o| o.stream == stream) {
            Some(o) => {
                o.left = o.left.saturating_add(bytes);
                o.end |= end;
            }
            None => self.outgoing.push_back(Waiting {
                stream,
                left: bytes,
                at: 0,
                end,
            }),
        }
    }

    /// Assigns what a byte stream wants to write to its stream or streams.
    fn spread(&mut self, now: Instant, talk: &mut Conversation) {
        let (bytes, close) = talk.wanted(self.side);
        if bytes == 0 && (self.closing || !close) {
            return;
        }
        if self.spread.is_empty() {
            if self.side == 0 {
                let n = if talk.is_bulk() { self.streams } else { 1 };
                for _ in 0..n.max(1) {
                    self.spread.extend(self.endpoint.open(now, self.direction));
                }
            } else {
                // A server responds on the stream of the request.
                self.spread.extend(self.incoming.keys().next());
            }
        }
        let n = self.spread.len() as u64;
        if n == 0 {
            return; // no stream may be opened yet
        }
        talk.hand_over(self.side);
        self.closing |= close;
        for (i, stream) in self.spread.clone().into_iter().enumerate() {
            let share = match bytes {
                u64::MAX => bytes,
                _ => bytes / n + u64::from((i as u64) < bytes % n),
            };
            self.queue(stream, share, close);
        }
    }

    /// Most bytes written at once. For every packet noq looks for its data among all unacknowledged pieces, so a
    /// stream that has the connection to itself writes large ones. Several streams take turns at the connection's
    /// limits, with as much as each has written.
    fn most(&self) -> u64 {
        if self.spread.len() == 1 {
            content::LARGEST
        } else {
            content::PIECE
        }
    }

    /// Writes as much as the transport accepts.
    fn write(&mut self, now: Instant, talk: &mut Conversation) {
        let most = self.most();
        let mut i = 0;
        while let Some(o) = self.outgoing.get_mut(i) {
            while o.left > 0 {
                let n = self.endpoint.write_room(o.stream).min(o.left).min(most);
                if n == 0 {
                    break;
                }
                let key = self.key.map(|flow| key(flow, o.stream, self.side));
                let data: Bytes = content::piece(key, o.at, n);
                let offered = data.len();
                let taken = self.endpoint.write(now, o.stream, data);
                o.at += taken as u64;
                talk.wrote_later(self.side, taken as u64);
                if o.left != u64::MAX {
                    o.left -= taken as u64;
                }
                if taken < offered || taken == 0 {
                    break;
                }
            }
            if o.left == 0 && o.end {
                self.endpoint.finish(now, o.stream);
                self.outgoing.remove(i);
                continue;
            }
            i += 1;
        }
    }

    /// Whether this end may close the connection: the client that has received everything it requested, or whose data
    /// has all arrived.
    fn is_done(&mut self, talk: &Conversation) -> bool {
        if self.side != 0 || talk.completed().is_none() {
            return false;
        }
        if talk.sender() == 1 {
            return true;
        }
        self.closing && self.outgoing.is_empty() && self.endpoint.all_acknowledged()
    }
}

/// The stream of an object: streams are opened in the order of the objects, by the client, and the low two bits give
/// the type (RFC 9000 §2.1).
const fn stream_of(object: usize) -> StreamId {
    (object as StreamId) << 2
}

/// The key of a stream's content, which differs between the streams of a flow.
const fn key(flow: u64, stream: StreamId, sender: usize) -> u64 {
    content::key(flow, sender) ^ (stream << 24)
}

#[cfg(test)]
mod tests {
    use gargalo_quic::Snapshot;
    use gargalo_units::Bytes as Size;
    use gargalo_workload::{Ping, Request, Workload};

    use super::*;
    use crate::rng;
    use crate::spec::TransportSpec;
    use crate::testing::{Told, at, bulk, flow, quic};

    /// An end of a flow, what its stack is told, and its applications.
    struct Flow {
        stack: Told,
        end: QuicEnd,
        talk: Conversation,
    }

    fn open(workload: Workload, side: usize, streams: u32) -> Flow {
        let config = Config {
            streams,
            ..Config::default()
        };
        with(workload, side, &config)
    }

    fn with(workload: Workload, side: usize, config: &Config) -> Flow {
        let (spec, stack) = (
            flow(TransportSpec::Quic(quic().into()), workload),
            Told::default(),
        );
        stack.script().room = 1 << 20;
        stack.script().streams = 8;
        let end = QuicEnd::new(Box::new(stack.clone()), (7, side), config, true, at(0));
        let talk = Conversation::new(&spec, rng::stream(1, "test"), || rng::stream(1, "sizes"));
        Flow { stack, end, talk }
    }

    fn objects(sizes: &[u64]) -> Workload {
        Workload::Request(Request::of(
            sizes.iter().copied().map(Size::new).collect::<Vec<_>>(),
        ))
    }

    impl Flow {
        fn event(&mut self, event: Event) -> Option<QuicEvent> {
            self.stack.script().events.push_back(event);
            self.end.poll_event(at(1), &mut self.talk)
        }

        fn connected(mut self) -> Self {
            assert_eq!(self.event(Event::Connected { early: false }), None);
            self
        }

        /// Data of the peer arrives, `key` being that of the flow.
        fn arrives(&mut self, stream: StreamId, at: u64, bytes: u64, end: bool) {
            let content = super::key(7, stream, 1 - self.end.side);
            let data = content::piece(Some(content), at, bytes);
            self.stack
                .script()
                .chunks
                .push_back(Chunk { stream, data, end });
        }

        fn exchange(&mut self) {
            self.end.exchange(at(2), &mut self.talk);
        }
    }

    #[test]
    fn only_the_client_begins_and_tells_of_the_handshake() {
        let done = || Event::HandshakeComplete { zero_rtt: None };
        let mut client = open(bulk(10), 0, 1);
        assert_eq!(client.event(Event::Connected { early: true }), None);
        assert_eq!(client.talk.wants(0), 10);
        assert_eq!(client.event(done()), Some(QuicEvent::Established));
        let mut server = open(bulk(10), 1, 1);
        assert_eq!(server.event(Event::Connected { early: false }), None);
        assert_eq!((server.event(done()), server.talk.wants(0)), (None, 0));
    }

    #[test]
    fn a_connection_that_fails_before_all_has_arrived_tells_why() {
        let failed = |why: &str| Event::Failed(why.into());
        let mut cut = open(bulk(10), 0, 1).connected();
        assert!(!cut.end.is_over());
        assert_eq!(
            cut.event(failed("reset")),
            Some(QuicEvent::Failed("reset".into()))
        );
        assert_eq!(
            (cut.talk.failure(), cut.end.is_over()),
            (Some("reset"), true)
        );
        let mut silent = open(bulk(10), 0, 1).connected();
        assert!(silent.event(failed("the connection timed out")).is_some());
        assert_eq!(silent.talk.failure(), Some("timed out"));
        let mut done = open(bulk(10), 0, 1).connected();
        done.talk.received(at(2), 1, 10, 0);
        assert_eq!(
            (done.event(failed("reset")), done.talk.failure()),
            (None, None)
        );
        let mut closed = open(bulk(10), 0, 1).connected();
        assert_eq!(
            (closed.event(Event::Closed), closed.end.is_over()),
            (None, true)
        );
        let ended = open(bulk(10), 0, 1);
        ended.stack.script().over = true;
        assert!(ended.end.is_over());
    }

    #[test]
    fn a_transfer_is_spread_over_its_streams_and_the_connection_closed_when_all_is_acknowledged() {
        let mut flow = open(bulk(100_000), 0, 3).connected();
        flow.exchange();
        assert_eq!(
            flow.stack.written(),
            [(0, 33_334), (4, 33_333), (8, 33_333)]
        );
        assert_eq!(flow.stack.script().finished, [0, 4, 8]);
        assert_eq!(flow.talk.positions(0).0, 100_000);
        flow.talk.received(at(2), 1, 100_000, 0);
        flow.exchange();
        assert!(!flow.stack.script().closed);
        flow.stack.script().acknowledged = true;
        flow.exchange();
        assert!(flow.stack.script().closed);
    }

    #[test]
    fn what_has_no_room_is_written_later_with_the_content_of_its_place() {
        let mut flow = open(bulk(500_000), 0, 1).connected();
        flow.stack.script().room = 70_000;
        flow.stack.script().acknowledged = true;
        flow.exchange();
        assert_eq!(flow.stack.written(), [(0, 70_000)]);
        assert!(flow.stack.script().finished.is_empty());
        flow.talk.received(at(2), 1, 500_000, 0);
        flow.exchange();
        assert!(!flow.stack.script().closed, "not all is written");
        flow.stack.script().room = 1 << 20;
        flow.exchange();
        assert_eq!((flow.talk.positions(0).0, flow.talk.wants(0)), (500_000, 0));
        assert!(content::is_right(
            super::key(7, 0, 0),
            0,
            &flow.stack.script().written[&0]
        ));
        assert_eq!(flow.stack.script().finished, [0]);
        assert!(flow.stack.script().closed);
    }

    #[test]
    fn an_unlimited_transfer_takes_all_room() {
        let mut flow = open(Workload::default(), 0, 2).connected();
        for room in [100_000, 300_000] {
            flow.stack.script().room = room;
            flow.exchange();
            assert_eq!(
                flow.stack.written(),
                [(0, room as usize), (4, room as usize)]
            );
        }
        assert_eq!(flow.talk.positions(0).0, 600_000);
        assert!(flow.stack.script().finished.is_empty());
    }

    #[test]
    fn a_stream_that_may_not_be_opened_yet_is_opened_later() {
        let mut flow = open(bulk(1000), 0, 1).connected();
        flow.stack.script().streams = 0;
        flow.exchange();
        assert_eq!((flow.stack.written(), flow.talk.wants(0)), (vec![], 1000));
        flow.stack.script().streams = 1;
        flow.exchange();
        assert_eq!(flow.stack.written(), [(0, 1000)]);
    }

    #[test]
    fn the_receiver_of_a_transfer_reads_and_neither_answers_nor_closes() {
        let mut flow = open(bulk(3000), 1, 2);
        flow.arrives(0, 0, 1000, false);
        flow.arrives(4, 0, 1000, false);
        flow.arrives(0, 1000, 1000, true);
        flow.stack.script().acknowledged = true;
        flow.exchange();
        assert_eq!(
            (flow.talk.delivered(), flow.talk.completed()),
            (3000, Some(at(2)))
        );
        assert!(flow.stack.written().is_empty() && !flow.stack.script().closed);
        let spec = crate::testing::flow(TransportSpec::Udp, bulk(1));
        let is_corrupt = |flow: &mut Flow| {
            let window = crate::Window::new(None);
            let ending = crate::Ending {
                id: 0,
                start: at(0),
                end: at(3),
                now: at(3),
                counters: Default::default(),
                wire: Default::default(),
                multipath: None,
            };
            flow.talk.result(&spec, &window, ending).corrupted
        };
        assert!(!is_corrupt(&mut flow));
        flow.arrives(4, 999, 10, false);
        flow.exchange();
        assert!(
            is_corrupt(&mut flow),
            "that is the content of another place"
        );
    }

    #[test]
    fn each_object_is_requested_and_answered_on_a_stream_of_its_own() {
        let mut client = open(objects(&[500, 700]), 0, 1).connected();
        client.exchange();
        assert_eq!(client.stack.written(), [(0, 100)]);
        assert_eq!(client.stack.script().finished, [0]);
        client.arrives(0, 0, 500, true);
        client.exchange();
        assert_eq!(client.stack.written(), [(0, 100), (4, 100)]);
        assert!(!client.stack.script().closed);
        client.arrives(4, 0, 700, true);
        client.exchange();
        assert_eq!(client.talk.completed(), Some(at(2)));
        assert!(
            client.stack.script().closed,
            "all that was requested is here"
        );

        let mut server = open(objects(&[500, 700]), 1, 1);
        server.arrives(4, 0, 60, false);
        server.exchange();
        assert!(
            server.stack.written().is_empty(),
            "the request is not whole"
        );
        server.arrives(4, 60, 40, true);
        server.arrives(8, 0, 100, true);
        server.exchange();
        assert_eq!(
            server.stack.written(),
            [(4, 700)],
            "there is no third object"
        );
        assert_eq!(server.stack.script().finished, [4]);
    }

    #[test]
    fn requests_wait_until_a_stream_may_be_opened() {
        let mut client = open(objects(&[500]), 0, 1).connected();
        client.stack.script().streams = 0;
        client.exchange();
        assert!(client.stack.written().is_empty());
        client.stack.script().streams = 1;
        client.exchange();
        assert_eq!(client.stack.written(), [(0, 100)]);
    }

    #[test]
    fn a_record_follows_a_notice_or_a_new_phase() {
        let mut flow = open(bulk(1), 0, 1);
        flow.stack.script().snapshot = Snapshot {
            cwnd: Size::new(12_000),
            phase: "startup",
            ..Snapshot::default()
        };
        let notice = || Notice {
            kind: "loss",
            detail: "packets=1".into(),
        };
        let mut shown = 0;
        let mut causes = |looks: bool, notices: usize| {
            let told = (0..notices).map(|_| notice());
            flow.stack.script().notices.extend(told);
            let gauges = flow.end.notices(at(3), 7, looks, |_| shown += 1);
            gauges.first().map(|g| g.cause.to_string())
        };
        assert_eq!(causes(false, 2), None);
        assert_eq!(causes(true, 0).as_deref(), Some("phase"));
        assert_eq!(causes(true, 0), None);
        assert_eq!(causes(true, 1).as_deref(), Some("loss"));
        assert_eq!(shown, 3);
    }

    fn pings() -> Workload {
        Workload::Ping(Ping {
            size: Size::new(100),
            count: Some(3),
            ..Ping::default()
        })
    }

    #[test]
    fn datagrams_carry_their_number_and_their_time() {
        let mut client = open(pings(), 0, 1).connected();
        client.exchange();
        let sent = client.stack.script().sent.clone();
        assert_eq!(sent.iter().map(Bytes::len).collect::<Vec<_>>(), [100]);

        // Both ends share the state of the flow.
        let mut server = open(pings(), 1, 1);
        std::mem::swap(&mut server.talk, &mut client.talk);
        server.stack.script().frames.extend(sent.clone());
        server.end.exchange(at(9), &mut server.talk);
        let arrived: Vec<_> = server.end.recent_datagrams().collect();
        assert_eq!(arrived.len(), 1);
        assert_eq!((arrived[0].number, arrived[0].sent_at), (0, at(2)));
        assert_eq!(server.talk.delivered(), 100);
        let answers = server.stack.script().sent.clone();
        assert_eq!(answers.len(), 1, "the answer of a ping");
        assert!(answers != sent, "its content is that of the other side");
    }

    #[test]
    fn what_was_not_sent_or_comes_twice_is_corrupt() {
        let datagram = |number: u64, key: u64| {
            let mut data = vec![0; 100];
            data[..STAMP].copy_from_slice(&number.to_be_bytes());
            let key = super::key(7, key, 0);
            let rest = content::piece(Some(key), 0, (100 - STAMP) as u64);
            data[STAMP..].copy_from_slice(&rest);
            Bytes::from(data)
        };
        for (frames, counted) in [
            (vec![datagram(0, 0)], 100),
            (vec![datagram(0, 0), datagram(0, 0)], 100),
            (vec![datagram(1, 1)], 0),
            (vec![datagram(u64::MAX, u64::MAX)], 0),
            (vec![datagram(0, 1)], 0),
            (vec![Bytes::from_static(b"short")], 0),
        ] {
            let mut server = open(pings(), 1, 1);
            server.talk.frame_sent(0, 0, at(1));
            let right = frames.len() == 1 && counted > 0;
            server.stack.script().frames.extend(frames);
            server.exchange();
            assert_eq!(server.talk.delivered(), counted);
            assert_eq!(server.talk.is_corrupt(), !right);
        }
    }

    #[test]
    fn the_oldest_datagrams_are_discarded_when_many_wait() {
        let mut flow = open(pings(), 0, 1).connected();
        let many = MOST_DATAGRAMS + 5;
        let numbered = (0..many).map(|n| Bytes::from(vec![n as u8; 20]));
        flow.end.datagrams.extend(numbered);
        flow.stack.script().offers.push_back(Offered::Later);
        flow.exchange();
        // The one of the application is the last.
        assert_eq!(flow.end.datagrams.len(), MOST_DATAGRAMS);
        assert_eq!(flow.end.datagrams[0][0], 6);
        flow.exchange();
        assert!(flow.end.datagrams.is_empty());
        assert_eq!(flow.stack.script().sent.len(), MOST_DATAGRAMS);
    }

    #[test]
    fn a_datagram_that_does_not_fit_fails_the_flow() {
        let mut flow = open(pings(), 0, 1).connected();
        flow.stack.script().offers.push_back(Offered::Refused);
        flow.exchange();
        assert!(flow.talk.failure().unwrap().contains("100 bytes"));
        assert!(flow.stack.script().closed && flow.end.is_over());
    }

    #[test]
    fn a_transfer_may_use_unidirectional_streams() {
        let config = Config {
            unidirectional: true,
            ..Config::default()
        };
        let mut flow = with(bulk(1000), 0, &config).connected();
        flow.exchange();
        assert_eq!(flow.stack.written(), [(2, 1000)]);
    }

    #[test]
    fn keys_are_updated_by_the_client_each_period() {
        let config = Config {
            key_update: Some(Duration::from_millis(2)),
            ..Config::default()
        };
        for (side, expected) in [(0, vec![at(2), at(7)]), (1, vec![])] {
            let mut flow = with(bulk(1000), side, &config);
            for now in [1, 2, 3, 7, 8] {
                flow.end.exchange(at(now), &mut flow.talk);
            }
            assert_eq!(flow.stack.script().key_updates, expected);
        }
    }

    #[test]
    fn what_is_not_wanted_any_more_is_stopped_and_reset() {
        let request = |urgency: Option<&[u8]>| {
            Workload::Request(Request {
                give_up: Some(Duration::from_millis(5)),
                order: Some(gargalo_workload::Order::Multiplexed),
                urgency: urgency.map(Into::into),
                ..Request::of([Size::new(500), Size::new(700)])
            })
        };
        let mut client = open(request(None), 0, 1).connected();
        client.exchange();
        client.arrives(4, 0, 700, true);
        client.exchange();
        assert_eq!(client.talk.due(), at(7));
        client.talk.expire(at(7));
        client.exchange();
        assert_eq!(client.stack.script().stopped, [0]);
        assert_eq!(client.talk.completed(), Some(at(7)));

        let mut server = open(request(Some(&[6, 1])), 1, 1);
        server.stack.script().room = 100;
        server.arrives(0, 0, 100, true);
        server.arrives(4, 0, 100, true);
        server.exchange();
        assert_eq!(server.stack.script().urgency, [(0, 6), (4, 1)]);
        assert_eq!(server.event(Event::Stopped(0)), None);
        assert_eq!(server.stack.script().reset, [0]);
        server.stack.script().room = 1 << 20;
        server.exchange();
        assert_eq!(server.stack.written(), [(0, 100), (4, 700)]);
    }
}

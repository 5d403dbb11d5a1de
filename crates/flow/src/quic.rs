//! QUIC under the applications of a flow: byte streams and objects on QUIC streams.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use gargalo_quic::{Chunk, Event, Notice, Stack, StreamId};
use gargalo_units::Instant;

use crate::content;
use crate::conversation::Conversation;
use crate::gauges::{causes, gauges_of};
use crate::samples::{FlowSample, Gauge, Reached};

/// A QUIC connection at one end of a flow.
#[derive(Debug)]
pub struct QuicEnd {
    /// The connection. The world handles its datagrams and its timer.
    pub endpoint: Box<dyn Stack>,
    /// The side: side 0 opens the connection.
    side: usize,
    /// Streams over which a transfer is spread.
    streams: u32,
    /// Key of the content; `None`: zeros, which are not compared.
    key: Option<u64>,
    /// Streams with data still to be written, in the order in which they were opened.
    outgoing: VecDeque<Waiting>,
    /// Bytes read from each stream.
    incoming: BTreeMap<StreamId, u64>,
    /// Streams over which a byte stream is spread; empty until it writes.
    spread: Vec<StreamId>,
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
    /// Creates the end of the flow with this number at a side; its transfers are spread over `streams` streams, and
    /// content is compared if `verify`.
    pub fn new(
        endpoint: Box<dyn Stack>,
        (flow, side): (u64, usize),
        streams: u32,
        verify: bool,
    ) -> Self {
        Self {
            endpoint,
            side,
            streams,
            key: verify.then_some(flow),
            outgoing: VecDeque::new(),
            incoming: BTreeMap::new(),
            spread: Vec::new(),
            closing: false,
            over: false,
            phase: "",
        }
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
        while let Some(chunk) = self.endpoint.poll_read() {
            self.read(now, talk, &chunk);
        }
        while let Some(request) = talk.next_request() {
            let Some(stream) = self.endpoint.open(now) else {
                break;
            };
            talk.asked();
            self.queue(stream, request, true);
        }
        self.spread(now, talk);
        self.write(now, talk);
        if !self.over && self.is_done(talk) {
            self.endpoint.close(now);
        }
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
            && let Some(size) = talk.asked_for(object)
        {
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
                    self.spread.extend(self.endpoint.open(now));
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

/// The key of a stream's content, which differs between the streams of a flow.
const fn key(flow: u64, stream: StreamId, sender: usize) -> u64 {
    content::key(flow, sender) ^ (stream << 24)
}

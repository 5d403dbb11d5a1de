//! What a foreign stack has reported and the host has not yet taken.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use gargalo_units::{Duration, Instant};
use rand_pcg::Pcg64;

use super::trace::Reported;
use super::{Outgoing, Packet, PacketEvent};
use crate::{Chunk, Event, Notice, Realm, Session, StreamId};

/// Different labels that a connection may use for kinds of notices and phases, and the greatest length of one in bytes.
const MAX_LABELS: usize = 64;
const MAX_LABEL_LENGTH: usize = 32;
/// The largest session that is kept, in bytes.
const MAX_SESSION: usize = 1 << 16;

/// What a stack has reported and the host has not yet taken; and the stack's random stream.
pub struct Pending {
    /// The stack's random stream.
    pub rng: Pcg64,
    realm: Realm,
    /// The ends to which kept sessions belong; `None` for a server.
    session: Option<Session>,
    pub(super) events: VecDeque<Event>,
    pub(super) chunks: VecDeque<Chunk>,
    /// Datagrams that have arrived (RFC 9221).
    pub(super) frames: VecDeque<Bytes>,
    /// Streams whose end the peer was asked for.
    pub(super) stopped: BTreeSet<StreamId>,
    /// Streams whose end the peer has asked for since the last offer.
    pub(super) halted: Vec<StreamId>,
    /// Datagrams are expected.
    pub(super) takes_datagrams: bool,
    pub(super) secrets: VecDeque<String>,
    wants_secrets: bool,
    pub(super) notices: VecDeque<Notice>,
    pub(super) records: bool,
    pub(super) rtt: Option<Duration>,
    /// Round-trip samples by path.
    pub(super) path_rtts: Vec<(u32, Duration)>,
    qlog: Option<Box<dyn Write + Send + Sync>>,
    /// The trace that the host writes of what the stack reports of its packets.
    pub(super) trace: Option<Reported>,
    /// Time of the call.
    pub(super) now: Instant,
    /// Packets that were sent and elicit acknowledgements, and those declared lost.
    pub(super) sent_packets: u64,
    pub(super) lost_packets: u64,
    /// Datagrams to send before those of [`Callbacks::datagram_out`](super::Callbacks::datagram_out).
    pub(super) datagrams: VecDeque<Outgoing>,
    /// The last session that was kept.
    kept: Vec<u8>,
    /// Data may be written.
    connected: bool,
    /// The handshake is complete.
    complete: bool,
    /// The stack has discarded rejected early data.
    pub(super) rejected: bool,
    /// The connection has ended.
    pub(super) ended: bool,
    /// Kinds and phases that the connection has used.
    labels: BTreeSet<&'static str>,
}

impl Pending {
    /// Nothing reported yet. `session` is `None` for a server; `secrets` says whether they are collected.
    pub(super) fn new(
        rng: Pcg64,
        realm: Realm,
        session: Option<Session>,
        secrets: bool,
        qlog: Option<Box<dyn Write + Send + Sync>>,
    ) -> Self {
        Self {
            rng,
            realm,
            session,
            events: VecDeque::new(),
            chunks: VecDeque::new(),
            frames: VecDeque::new(),
            stopped: BTreeSet::new(),
            halted: Vec::new(),
            takes_datagrams: false,
            secrets: VecDeque::new(),
            wants_secrets: secrets,
            notices: VecDeque::new(),
            records: true,
            rtt: None,
            path_rtts: Vec::new(),
            qlog,
            trace: None,
            now: Instant::ZERO,
            sent_packets: 0,
            lost_packets: 0,
            datagrams: VecDeque::new(),
            kept: Vec::new(),
            connected: false,
            complete: false,
            rejected: false,
            ended: false,
            labels: BTreeSet::new(),
        }
    }

    /// Whether the application has events or data to take.
    pub(super) fn for_application(&self) -> bool {
        !self.events.is_empty() || !self.chunks.is_empty() || !self.frames.is_empty()
    }

    /// Whether the application may write.
    pub(super) fn can_write(&self) -> bool {
        self.connected && !self.ended
    }

    /// Whether what a client writes now is early data.
    pub(super) fn is_early(&self) -> bool {
        self.session.is_some() && !self.complete
    }

    /// A kind of notice or a phase as a label for results; "other" if the connection has too many labels or this one is
    /// too long.
    pub fn label(&mut self, text: &str) -> &'static str {
        if let Some(known) = self.labels.get(text) {
            return known;
        }
        if self.labels.len() >= MAX_LABELS || text.len() > MAX_LABEL_LENGTH {
            return "other";
        }
        let label = interned(text);
        self.labels.insert(label);
        label
    }

    /// Reports that early data may be written; only the first call counts.
    pub fn early(&mut self) {
        if !self.ended && !self.connected {
            self.connect(true);
            self.add_notice("zero-rtt", || "keys".to_owned());
        }
    }

    /// Reports that the handshake is complete; only the first call counts. `zero_rtt`: whether early data was accepted,
    /// if there was any. The stack has discarded rejected data and its streams, unless it sends them again by itself
    /// (`resent`).
    pub fn handshake(&mut self, zero_rtt: Option<bool>, resent: bool) {
        if self.ended || self.complete {
            return;
        }
        self.complete = true;
        self.rejected = zero_rtt == Some(false) && !resent;
        self.connect(false);
        self.events.push_back(Event::HandshakeComplete { zero_rtt });
        self.add_notice("handshake", || "complete".to_owned());
        if let Some(accepted) = zero_rtt {
            let outcome = if accepted { "accepted" } else { "rejected" };
            self.add_notice("zero-rtt", || outcome.to_owned());
        }
    }

    /// Ends the connection; only the first call counts.
    pub fn end(&mut self, event: Event) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.add_notice("close", || match &event {
            Event::Failed(why) => why.clone(),
            _ => String::new(),
        });
        let failure = match &event {
            Event::Failed(why) => Some(why.as_str()),
            _ => None,
        };
        self.trace(|trace, now| trace.closed(now, failure));
        self.events.push_back(event);
    }

    /// Reports what has happened to a packet.
    pub fn packet(&mut self, packet: Packet) {
        match packet.event {
            PacketEvent::Sent => self.sent_packets += u64::from(packet.ack_eliciting),
            PacketEvent::Lost => self.lost_packets += 1,
            PacketEvent::Received | PacketEvent::Acknowledged => {}
        }
        self.trace(|trace, now| trace.packet(now, &packet));
    }

    /// Writes to the trace of the host, if there is one.
    pub(super) fn trace(&mut self, write: impl FnOnce(&mut Reported, Instant) -> io::Result<()>) {
        let now = self.now;
        if let Some(Err(e)) = self.trace.as_mut().map(|trace| write(trace, now)) {
            self.trace = None;
            self.add_notice("qlog", || format!("not written further: {e}"));
        }
    }

    /// Reports stream data that has arrived.
    pub fn received(&mut self, stream: StreamId, data: &[u8], end: bool) {
        // A server answers early data before the handshake is complete (RFC 9001 §5.7 allows it).
        if self.session.is_none() && !self.ended {
            self.connect(true);
        }
        if self.stopped.contains(&stream) {
            return;
        }
        self.chunks.push_back(Chunk {
            stream,
            data: Bytes::copy_from_slice(data),
            end,
        });
    }

    /// Reports a datagram that has arrived (RFC 9221).
    pub fn datagram(&mut self, data: &[u8]) {
        if self.takes_datagrams {
            self.frames.push_back(Bytes::copy_from_slice(data));
        } else {
            let why = "the stack reports a datagram in a connection without datagrams";
            self.end(Event::Failed(why.to_owned()));
        }
    }

    /// Reports that the peer asks for the end of a stream.
    pub fn stopped(&mut self, stream: StreamId) {
        if !self.ended {
            self.halted.push(stream);
            self.events.push_back(Event::Stopped(stream));
        }
    }

    /// Reports that the peer has reset a stream: an error, unless it was asked to.
    pub fn reset(&mut self, stream: StreamId) {
        if !self.stopped.contains(&stream) {
            self.end(Event::Failed("the peer has reset a stream".to_owned()));
        }
    }

    /// Keeps a session to resume from; a server's, a very long one, or a repetition of the last one is ignored.
    pub fn keep_session(&mut self, data: &[u8]) {
        if let Some(of) = &self.session
            && data.len() <= MAX_SESSION
            && data != self.kept
        {
            self.kept = data.to_vec();
            self.realm.keep_session(of.clone(), data.to_vec());
        }
    }

    /// Adds a datagram to send now, before those of [`Callbacks::datagram_out`](super::Callbacks::datagram_out).
    pub fn send(&mut self, datagram: Outgoing) {
        self.datagrams.push_back(datagram);
    }

    /// Adds a line for an `SSLKEYLOGFILE`.
    pub fn secret(&mut self, line: &str) {
        if self.wants_secrets {
            self.secrets.push_back(line.trim_end().to_owned());
        }
    }

    /// Writes bytes of the qlog file.
    pub fn qlog(&mut self, data: &[u8]) {
        if let Some(file) = &mut self.qlog
            && let Err(e) = file.write_all(data)
        {
            self.qlog = None;
            self.add_notice("qlog", || format!("not written further: {e}"));
        }
    }

    /// Adds a row for the table of events.
    pub fn notice(&mut self, kind: &str, detail: impl FnOnce() -> String) {
        let kind = self.label(kind);
        self.add_notice(kind, detail);
    }

    /// Reports a round-trip sample, which replaces one that was not taken.
    pub fn rtt_sample(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// Reports a round-trip sample of a path, which replaces one that was not taken.
    pub fn path_rtt_sample(&mut self, path: u32, rtt: Duration) {
        self.path_rtts.retain(|(known, _)| *known != path);
        if self.path_rtts.len() < MAX_LABELS {
            self.path_rtts.push((path, rtt));
        }
    }

    fn connect(&mut self, early: bool) {
        if !self.connected {
            self.connected = true;
            self.events.push_back(Event::Connected { early });
        }
    }

    pub(super) fn add_notice(&mut self, kind: &'static str, detail: impl FnOnce() -> String) {
        if self.records {
            let detail = detail();
            self.notices.push_back(Notice { kind, detail });
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("connected", &self.connected)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The text with the lifetime of the process.
fn interned(text: &str) -> &'static str {
    static LABELS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut labels = LABELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = labels.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    labels.insert(kept);
    kept
}

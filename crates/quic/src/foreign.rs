//! What all stacks other than noq have in common: what they are asked for, what they tell, and the rules that the world
//! holds them to. Libraries and Python classes differ in how their functions are called: [`Verbs`].

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use gargalo_units::{Bytes as Size, Duration, Ecn, Instant, Rate};
use rand_pcg::Pcg64;

use crate::unsent::Unsent;
use crate::{
    Chunk, Config, Datagram, Event, Features, Handshake, Init, Known, Notice, Realm, Session,
    Snapshot, Stack, Stats, StreamId, own_name,
};

/// Datagrams in one instant, and timers in a row that are not later than the present, before a stack counts as one that
/// never ends.
const MOST_AT_ONCE: u32 = 100_000;
/// Different words that a connection may use for kinds of notices and phases, and the greatest length of one.
const MOST_WORDS: usize = 64;
const LONGEST_WORD: usize = 32;
/// Bytes of a session that are kept.
const LARGEST_SESSION: usize = 1 << 16;

/// The functions of one end of a foreign stack, as in `gargalo_stack.h`. Times never decrease.
pub trait Verbs: fmt::Debug + Send {
    /// A datagram has arrived; it may be changed in place.
    fn datagram_in(&mut self, now: Instant, payload: &mut [u8], path: &Path);
    /// The next datagram that may be sent now; an error tells what is wrong with it. Others may be told
    /// ([`Told::send`]).
    fn datagram_out(&mut self, now: Instant) -> Result<Option<Outgoing>, String>;
    /// When to call [`Verbs::timeout`].
    fn next_timer(&mut self) -> Option<Instant>;
    /// Runs the timers that are due.
    fn timeout(&mut self, now: Instant);
    /// Opens a bidirectional stream; `None` if the peer's limit is reached.
    fn open_stream(&mut self, now: Instant) -> Option<StreamId>;
    /// Takes stream data; returns how many bytes. With `fin`, which comes without data, the stream ends.
    fn write(&mut self, now: Instant, stream: StreamId, data: &[u8], fin: bool) -> usize;
    /// Data and ends of streams that are not acknowledged; `None`: the stack does not tell.
    fn unacknowledged(&mut self) -> Option<u64>;
    /// The local address has changed.
    fn migrate(&mut self, now: Instant, local: SocketAddr);
    /// Closes the connection in order.
    fn close(&mut self, now: Instant);
    /// Whether nothing more will be sent.
    fn is_over(&self) -> bool;
    /// Counters and state of the sender.
    fn stats(&mut self) -> Sender;
    /// Looks at what the stack has told, between its calls.
    fn told<R>(&self, look: impl FnOnce(&mut Told) -> R) -> R;
}

/// What a stack says of itself.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Its name in scenarios.
    pub name: &'a str,
    /// Names of its congestion controls, the default first.
    pub congestion: &'a [String],
    /// What it can do.
    pub features: Features,
}

/// Where a datagram comes from and goes to.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The address of this end.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// ECN field of the IP packet that carries it.
    pub ecn: Ecn,
}

/// A datagram that a stack sends.
#[derive(Debug)]
pub struct Outgoing {
    /// UDP payload of the datagram.
    pub payload: BytesMut,
    /// Destination address and port.
    pub remote: SocketAddr,
    /// ECN field of the IP packet that carries it.
    pub ecn: Ecn,
}

/// Counters and state of a sender; `None` where the stack does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    /// Ack-eliciting packets sent.
    pub sent_packets: Option<u64>,
    /// Stream data sent, retransmissions included, in bytes.
    pub sent_bytes: Option<u64>,
    /// Packets with stream data that was sent before.
    pub retransmitted_packets: Option<u64>,
    /// Packets declared lost.
    pub lost_packets: Option<u64>,
    /// Probe timeouts (RFC 9002 §6.2).
    pub timeouts: Option<u64>,
    /// Losses found to be spurious.
    pub spurious: Option<u64>,
    /// Congestion window, in bytes.
    pub cwnd: Option<Size>,
    /// Slow-start threshold; `None` also while it is infinite.
    pub ssthresh: Option<Size>,
    /// Bytes in flight.
    pub in_flight: Option<Size>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Pacing rate at present.
    pub pacing_rate: Option<Rate>,
    /// Latest estimate of the delivery rate.
    pub delivery_rate: Option<Rate>,
    /// State of the congestion control in one word.
    pub phase: &'static str,
}

/// What a scenario asks of one end, besides what [`Config`] has.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The QUIC options of the scenario.
    pub config: &'a Config,
    /// The congestion control, by the stack's name for it.
    pub congestion: &'a str,
    /// This end is the client, which connects.
    pub is_client: bool,
    /// Time at which the end is created.
    pub now: Instant,
    /// Address and port of this end.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// The server's certificate in DER; a client accepts no other.
    pub certificate: &'a [u8],
    /// DER, PKCS #8; empty for a client.
    pub private_key: &'a [u8],
    /// Secret bytes of a server for its tickets; empty for a client.
    pub ticket_key: Vec<u8>,
    /// Of an earlier connection; empty if there is none, or early data is not asked for.
    pub session: Vec<u8>,
    /// The greatest datagram that discovery may find.
    pub max_datagram_size: u16,
    /// Early data is sent or accepted.
    pub early_data: bool,
    /// A qlog file is written.
    pub qlog: bool,
    /// Secrets are collected.
    pub secrets: bool,
}

impl<'a> Asked<'a> {
    /// What an end of a stack is asked for, and the place for what it will tell.
    pub fn of(
        about: About<'a>,
        realm: &'a Realm,
        config: &'a Config,
        init: Init,
        is_client: bool,
    ) -> (Self, Told) {
        let features = about.features;
        let asked = config.congestion.name.as_str();
        let congestion = own_name(about.congestion, asked).unwrap_or(asked);
        let (client, server) = match is_client {
            true => (init.local.ip(), init.remote.ip()),
            false => (init.remote.ip(), init.local.ip()),
        };
        // A server accepts it always: the tickets of one connection are for the next.
        let early_data = match is_client {
            true => config.handshake == Handshake::ZeroRtt,
            false => features.zero_rtt,
        };
        let session = is_client.then(|| Session {
            stack: about.name.to_owned(),
            client,
            server,
        });
        let resumed = session.as_ref().filter(|_| early_data);
        let resumed = resumed.and_then(|s| realm.take_session(s));
        let (qlog, _title) = init.qlog.unzip();
        let found = config.discovered().filter(|_| features.mtu_discovery);
        let asked = Self {
            config,
            congestion,
            is_client,
            now: init.now,
            local: init.local,
            remote: init.remote,
            certificate: realm.certificate(),
            private_key: if is_client { &[] } else { realm.private_key() },
            ticket_key: match is_client {
                true => Vec::new(),
                false => realm.ticket_key(server).to_vec(),
            },
            session: resumed.unwrap_or_default(),
            max_datagram_size: found.unwrap_or(config.datagram_size),
            early_data,
            qlog: qlog.is_some(),
            secrets: init.secrets,
        };
        let told = Told {
            rng: init.rng,
            realm: realm.clone(),
            session,
            events: VecDeque::new(),
            chunks: VecDeque::new(),
            secrets: VecDeque::new(),
            wants_secrets: init.secrets,
            notices: VecDeque::new(),
            records: true,
            rtt: None,
            qlog,
            datagrams: VecDeque::new(),
            kept: Vec::new(),
            connected: false,
            complete: false,
            rejected: false,
            ended: false,
            words: BTreeSet::new(),
        };
        (asked, told)
    }
}

/// What a stack has told and the world has not taken; and its random stream.
pub struct Told {
    /// Its random stream.
    pub rng: Pcg64,
    realm: Realm,
    /// Whose session it is; `None` for a server.
    session: Option<Session>,
    events: VecDeque<Event>,
    chunks: VecDeque<Chunk>,
    secrets: VecDeque<String>,
    wants_secrets: bool,
    notices: VecDeque<Notice>,
    records: bool,
    rtt: Option<Duration>,
    qlog: Option<Box<dyn Write + Send + Sync>>,
    /// To be sent before others.
    datagrams: VecDeque<Outgoing>,
    /// The last session that was kept.
    kept: Vec<u8>,
    /// Data may be written.
    connected: bool,
    /// The handshake is complete.
    complete: bool,
    /// The stack has forgotten early data.
    rejected: bool,
    /// The connection has ended.
    ended: bool,
    /// That it has used.
    words: BTreeSet<&'static str>,
}

impl Told {
    /// A kind of notice or a phase as a word for results; "other" if the connection has too many or too long ones.
    pub fn word(&mut self, text: &str) -> &'static str {
        if let Some(known) = self.words.get(text) {
            return known;
        }
        if self.words.len() >= MOST_WORDS || text.len() > LONGEST_WORD {
            return "other";
        }
        let word = interned(text);
        self.words.insert(word);
        word
    }

    /// Early data may be written; once.
    pub fn early(&mut self) {
        if !self.ended && !self.connected {
            self.connect(true);
            self.add_notice("zero-rtt", || "keys".to_owned());
        }
    }

    /// The handshake is complete, once; `zero_rtt`: whether early data was accepted, if there was any. The stack has
    /// forgotten rejected data and its streams, unless it sends them again by itself (`resent`).
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

    /// Ends the connection, once.
    pub fn end(&mut self, event: Event) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.add_notice("close", || match &event {
            Event::Failed(why) => why.clone(),
            _ => String::new(),
        });
        self.events.push_back(event);
    }

    /// Stream data has arrived.
    pub fn received(&mut self, stream: StreamId, data: &[u8], end: bool) {
        // A server answers early data before the handshake is complete (RFC 9001 §5.7 allows it).
        if self.session.is_none() && !self.ended {
            self.connect(true);
        }
        self.chunks.push_back(Chunk {
            stream,
            data: Bytes::copy_from_slice(data),
            end,
        });
    }

    /// A session to resume from; a server's, a very long one, or the last one again is not kept.
    pub fn keep_session(&mut self, data: &[u8]) {
        if let Some(of) = &self.session
            && data.len() <= LARGEST_SESSION
            && data != self.kept
        {
            self.kept = data.to_vec();
            self.realm.keep_session(of.clone(), data.to_vec());
        }
    }

    /// A datagram to send now, before those of [`Verbs::datagram_out`].
    pub fn send(&mut self, datagram: Outgoing) {
        self.datagrams.push_back(datagram);
    }

    /// A line for an `SSLKEYLOGFILE`.
    pub fn secret(&mut self, line: &str) {
        if self.wants_secrets {
            self.secrets.push_back(line.trim_end().to_owned());
        }
    }

    /// Bytes of the qlog file.
    pub fn qlog(&mut self, data: &[u8]) {
        if let Some(file) = &mut self.qlog
            && let Err(e) = file.write_all(data)
        {
            self.qlog = None;
            self.add_notice("qlog", || format!("not written further: {e}"));
        }
    }

    /// A row for the table of events.
    pub fn notice(&mut self, kind: &str, detail: impl FnOnce() -> String) {
        let kind = self.word(kind);
        self.add_notice(kind, detail);
    }

    /// A round-trip sample.
    pub fn rtt_sample(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    fn connect(&mut self, early: bool) {
        if !self.connected {
            self.connected = true;
            self.events.push_back(Event::Connected { early });
        }
    }

    fn add_notice(&mut self, kind: &'static str, detail: impl FnOnce() -> String) {
        if self.records {
            let detail = detail();
            self.notices.push_back(Notice { kind, detail });
        }
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told")
            .field("connected", &self.connected)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// The text as one that lives as long as the process.
fn interned(text: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(kept);
    kept
}

/// One end of a foreign stack, held to the rules of the interface.
#[derive(Debug)]
pub struct Foreign<V> {
    verbs: V,
    name: String,
    now: Instant,
    local: SocketAddr,
    /// The local address of which the stack knows.
    known_local: SocketAddr,
    can_migrate: bool,
    unsent: Unsent,
    /// It broke a rule, and is not called any more.
    is_broken: bool,
    sent_datagrams: u64,
    sent_datagram_bytes: u64,
    ce_marks: u64,
    /// What the sender last told of itself while the connection was there.
    last: Sender,
    /// The next timer is not the stack's: the world is to look at what it has told.
    for_news: bool,
    /// Datagrams since the time advanced, and timers in a row that were due at once.
    at_once: u32,
    due_at_once: u32,
}

impl<V: Verbs> Foreign<V> {
    /// The end of a stack, which was made as asked.
    pub fn new(verbs: V, about: About<'_>, asked: &Asked<'_>) -> Self {
        let (local, now) = (asked.local, asked.now);
        // What it has told while it was made is kept for a world that asks for notices.
        verbs.told(|t| t.records = false);
        Self {
            verbs,
            name: about.name.to_owned(),
            now,
            local,
            known_local: local,
            can_migrate: about.features.migration,
            unsent: Unsent::new(asked.config.send_window),
            is_broken: false,
            sent_datagrams: 0,
            sent_datagram_bytes: 0,
            ce_marks: 0,
            last: Sender::default(),
            for_news: false,
            at_once: 0,
            due_at_once: 0,
        }
    }

    fn advance(&mut self, now: Instant) -> Instant {
        if now > self.now {
            self.now = now;
            self.at_once = 0;
        }
        self.now
    }

    /// The stack does something that the interface does not allow: the connection ends, and the reason names the stack.
    fn fault(&mut self, what: &str) {
        self.is_broken = true;
        let why = format!("stack {}: {what}", self.name);
        self.verbs.told(|t| t.end(Event::Failed(why)));
    }

    /// Whether the world has yet to hear of something.
    fn has_news(&self) -> bool {
        self.verbs
            .told(|t| !t.events.is_empty() || !t.chunks.is_empty())
    }

    /// What the sender tells of itself; after the end what it last told, where it has forgotten that since.
    fn sender(&mut self) -> Sender {
        if self.is_broken {
            return self.last;
        }
        let now = self.verbs.stats();
        let ended = self.verbs.told(|t| t.ended);
        if ended && self.has_forgotten(&now) {
            return self.last;
        }
        self.last = now;
        now
    }

    /// Whether counters after the end are not those of the connection: they are missing or less than before, or are none
    /// of packets that were sent.
    fn has_forgotten(&self, now: &Sender) -> bool {
        let counters = |s: &Sender| {
            [
                s.sent_packets,
                s.sent_bytes,
                s.retransmitted_packets,
                s.lost_packets,
                s.timeouts,
                s.spurious,
            ]
        };
        // A missing one is less than any.
        let before = counters(&self.last).into_iter();
        before.zip(counters(now)).any(|(was, is)| is < was)
            || (self.sent_datagrams > 0 && now.sent_packets == Some(0))
    }

    fn can_write(&self) -> bool {
        self.verbs.told(|t| t.connected && !t.ended)
    }

    fn is_early(&self) -> bool {
        self.verbs.told(|t| t.session.is_some() && !t.complete)
    }

    /// After a call that may have made room: offers what waits.
    fn offer(&mut self) {
        let rejected = self.verbs.told(|t| std::mem::take(&mut t.rejected));
        if !self.can_write() {
            return;
        }
        let (now, early) = (self.now, self.is_early());
        let verbs = &mut self.verbs;
        let again = match rejected {
            true => self.unsent.again(|| verbs.open_stream(now)),
            false => Ok(()),
        };
        let done = again.and_then(|()| {
            self.unsent.offer(now, early, |stream, data, fin| {
                verbs.write(now, stream, data, fin)
            })
        });
        if let Err(what) = done {
            self.fault(&what);
        }
    }

    /// A datagram that it has told, else the next of its own.
    fn next_datagram(&mut self, now: Instant) -> Result<Option<Outgoing>, String> {
        let told = |v: &V| v.told(|t| t.datagrams.pop_front());
        if let Some(first) = told(&self.verbs) {
            return Ok(Some(first));
        }
        let own = self.verbs.datagram_out(now)?;
        Ok(own.or_else(|| told(&self.verbs)))
    }
}

impl<V: Verbs> Stack for Foreign<V> {
    fn handle(
        &mut self,
        now: Instant,
        mut payload: BytesMut,
        ecn: Ecn,
        _local: SocketAddr,
        remote: SocketAddr,
    ) {
        self.ce_marks += u64::from(ecn == Ecn::Ce);
        if self.is_broken {
            return;
        }
        let now = self.advance(now);
        let path = Path {
            // Datagrams to the old address of a migrated client still arrive, but are no reason to move back.
            local: self.known_local,
            remote,
            ecn,
        };
        self.verbs.datagram_in(now, &mut payload, &path);
        self.offer();
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        let for_news = std::mem::take(&mut self.for_news);
        if !self.is_broken && !for_news {
            self.verbs.timeout(now);
            self.offer();
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let soon = self.now + Duration::from_nanos(1);
        if self.is_over() {
            return None;
        }
        // What it told in `datagram_out` comes after the world has looked.
        self.for_news = self.has_news();
        let at = match self.for_news {
            true => self.now,
            false => self.verbs.next_timer()?,
        };
        if at > self.now {
            self.due_at_once = 0;
            return Some(at);
        }
        self.due_at_once += 1;
        if self.due_at_once > MOST_AT_ONCE && !self.is_broken {
            self.fault("next_timer is never later than the present");
        }
        Some(soon)
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if self.is_broken {
            return None;
        }
        let now = self.advance(now);
        let sent = match self.next_datagram(now) {
            Ok(sent) => sent?,
            Err(what) => {
                self.fault(&format!("datagram_out {what}"));
                return None;
            }
        };
        self.at_once += 1;
        if self.at_once > MOST_AT_ONCE {
            self.fault("datagram_out always has another datagram");
            return None;
        }
        self.sent_datagrams += 1;
        self.sent_datagram_bytes += sent.payload.len() as u64;
        Some(Datagram {
            payload: sent.payload,
            ecn: sent.ecn,
            // Of a single path; a client does not notice a NAT rebinding.
            local: self.local,
            remote: sent.remote,
        })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.verbs.told(|t| t.events.pop_front())
    }

    fn poll_read(&mut self) -> Option<Chunk> {
        self.verbs.told(|t| t.chunks.pop_front())
    }

    fn open(&mut self, now: Instant) -> Option<StreamId> {
        if !self.can_write() {
            return None;
        }
        let now = self.advance(now);
        let opened = self.verbs.open_stream(now)?;
        self.unsent.open(opened);
        Some(opened)
    }

    fn write(&mut self, now: Instant, stream: StreamId, data: Bytes) -> usize {
        if !self.can_write() {
            return 0;
        }
        self.advance(now);
        let taken = self.unsent.write(stream, data, self.is_early());
        self.offer();
        taken
    }

    fn write_room(&mut self, stream: StreamId) -> u64 {
        if !self.can_write() {
            return 0;
        }
        self.unsent.room(stream)
    }

    fn finish(&mut self, now: Instant, stream: StreamId) {
        if self.can_write() {
            self.advance(now);
            self.unsent.finish(stream);
            self.offer();
        }
    }

    fn close(&mut self, now: Instant) {
        if self.verbs.told(|t| t.ended) {
            return;
        }
        let now = self.advance(now);
        // Its counters may be gone with the connection.
        self.sender();
        self.verbs.close(now);
        self.verbs.told(|t| t.end(Event::Closed));
    }

    fn all_acknowledged(&mut self) -> bool {
        self.unsent.is_empty() && self.verbs.unacknowledged().unwrap_or(0) == 0
    }

    fn is_over(&self) -> bool {
        if self.has_news() {
            return false;
        }
        self.is_broken || {
            let done = self.verbs.told(|t| t.ended && t.datagrams.is_empty());
            done && self.verbs.is_over()
        }
    }

    fn migrate(&mut self, now: Instant, local: SocketAddr) {
        let rebound = self.local.ip() == local.ip();
        self.local = local;
        if self.can_migrate && !rebound {
            let now = self.advance(now);
            self.known_local = local;
            self.verbs.migrate(now, local);
            let moved = || format!("moved to {local}");
            self.verbs.told(|t| t.add_notice("path", moved));
        }
    }

    fn stats(&mut self) -> Stats {
        let s = self.sender();
        Stats {
            sent_packets: s.sent_packets.unwrap_or(0),
            sent_bytes: s.sent_bytes.unwrap_or(0),
            retransmitted_packets: s.retransmitted_packets.unwrap_or(0),
            lost_packets: s.lost_packets.unwrap_or(0),
            timeouts: s.timeouts.unwrap_or(0),
            spurious: s.spurious.unwrap_or(0),
            ce_marks: self.ce_marks,
            sent_datagrams: self.sent_datagrams,
            sent_datagram_bytes: self.sent_datagram_bytes,
            known: Known {
                sent_packets: s.sent_packets.is_some(),
                sent_bytes: s.sent_bytes.is_some(),
                retransmitted_packets: s.retransmitted_packets.is_some(),
                lost_packets: s.lost_packets.is_some(),
                timeouts: s.timeouts.is_some(),
                spurious: s.spurious.is_some(),
            },
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let s = self.sender();
        Snapshot {
            cwnd: s.cwnd.unwrap_or(Size::ZERO),
            ssthresh: s.ssthresh,
            in_flight: s.in_flight,
            srtt: s.srtt,
            pacing_rate: s.pacing_rate,
            delivery_rate: s.delivery_rate,
            phase: s.phase,
        }
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.verbs.told(|t| t.rtt.take())
    }

    fn record_notices(&mut self) {
        self.verbs.told(|t| t.records = true);
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.verbs.told(|t| t.notices.pop_front())
    }

    fn poll_secret(&mut self) -> Option<String> {
        self.verbs.told(|t| t.secrets.pop_front())
    }
}

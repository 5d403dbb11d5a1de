//! The connection: its state, the calls of the application and its events.

mod activity;
mod detail;
mod incoming;
mod multipath;
mod opening;
mod options;
mod outgoing;
mod path;
mod resume;
mod segment_size;
mod sequences;
mod super_segments;
mod time_wait;
mod timers;
mod writes;

pub use activity::Activity;
pub use multipath::Room;
pub use options::Ending;

use std::sync::Arc;

use bytes::Bytes;
use gargalo_cc::Controller;
use gargalo_units::{Duration, Ecn, Instant, Seq};
use gargalo_wire::tcp::Segment;

use crate::challenge::ChallengeLimit;
use crate::ecn::EcnReceiver;
use crate::event::Events;
use crate::handshake::{Handshake, is_fast_open};
use crate::peer_window::PeerWindow;
use crate::receiver::{Receiver, ReceiverConfig};
use crate::sender::{Hold, Sender};
use crate::timestamps::Timestamps;
use crate::{Chunk, Config, Error, Event, Notice, Snapshot, State, Stats};
use segment_size::SegmentSize;
use sequences::Sequences;
use timers::Timers;
use writes::Writes;

/// What distinguishes a connection from others of the same configuration.
#[derive(Clone, Debug, Default)]
pub struct Init {
    /// Port of this end.
    pub local_port: u16,
    /// The peer's port; 0 for a listening endpoint takes the port of the first SYN.
    pub remote_port: u16,
    /// Initial sequence number; the caller draws it (RFC 9293 §3.4.1).
    pub isn: Seq,
    /// The addresses are IPv6: a peer that sends no MSS option takes 1220 bytes, over IPv4 536 (RFC 9293 §3.7.1).
    pub is_ipv6: bool,
    /// Offset of the timestamp clock; the caller draws it (RFC 7323 §7.1).
    pub ts_offset: u32,
    /// Fast Open (RFC 7413). Connecting: the cookie that the server granted earlier, or an empty
    /// one to ask for it. Listening: the cookie that this client must show, which is also the one
    /// granted on request. `None`, or a cookie that is not of 4 to 16 bytes and an even length (§4.1.1): no Fast
    /// Open.
    pub fast_open_cookie: Option<Bytes>,
}

/// A segment to send, with the ECN field of its packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Header fields, options and payload; the addresses are up to the driver.
    pub segment: Segment,
    /// ECT(0) on new data when ECN was negotiated (RFC 3168 §6.1), with L4S ECT(1) (RFC 9331 §4.1).
    pub ecn: Ecn,
}

/// One end of a TCP connection.
///
/// A driver calls [`handle`](Self::handle) for each received segment and [`handle_timeout`](Self::handle_timeout)
/// when [`poll_timeout`](Self::poll_timeout) has passed; after either, and after the application read, wrote or
/// closed, it calls [`poll_transmit`](Self::poll_transmit) until it returns `None`, so that each segment that
/// requires an answer gets one. [`poll_event`](Self::poll_event) returns events for the application. Time must not
/// decrease between calls.
///
/// Stream positions are 64-bit offsets inside: 0 is the first byte after SYN, and the FIN occupies
/// one offset after the last byte.
#[derive(Debug)]
pub struct Endpoint {
    state: State,
    ports: Ports,
    seq: Sequences,
    size: SegmentSize,
    timestamps: Timestamps,
    peer: PeerWindow,
    ecn: EcnReceiver,
    /// We may send ECN-capable packets.
    ecn_capable: bool,
    /// We sent the first SYN.
    is_active: bool,
    /// Fast Open opened the connection before the handshake was complete.
    early: bool,
    events: Events,
    error: Option<Error>,
    timers: Timers,
    challenge: ChallengeLimit,
    /// A segment to be sent before all others.
    urgent: Option<Urgent>,
    rtt_sample: Option<Duration>,
    receiver: Receiver,
    writes: Writes,
    /// `None` before the connection is open.
    sender: Option<Box<Sender>>,
    /// Before the connection is open: what holds written data back.
    early_hold: Hold,
    user_timeout: Option<Duration>,
    /// Shifts of the windows we send and of those we receive, if agreed.
    scaling: Option<(u8, u8)>,
    /// An upper layer controls the send window.
    ignores_window: bool,
    /// The network has reported the peer unreachable, and nothing was received from it since.
    unreachable: bool,
    /// Until the connection is open.
    handshake: Option<Box<Handshake>>,
    /// The cookie that the server granted.
    granted: Option<Bytes>,
    config: Arc<Config>,
    counts: Counts,
}

/// The ports of a connection, in our order.
#[derive(Clone, Copy, Debug)]
struct Ports {
    local: u16,
    remote: u16,
}

/// A segment that must be sent before all others.
#[derive(Clone, Copy, Debug)]
enum Urgent {
    /// A reset at this sequence number, acknowledging that one.
    Reset(Seq, Option<Seq>),
    /// An acknowledgement of the data received before the mark changed, with this ECE (RFC 8257 §3.2).
    Acknowledge { next: u64, ece: bool },
}

/// The counters of the endpoint itself.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    segments_sent: u64,
    segments_received: u64,
    challenges: u32,
    duplicates: u64,
    data_received: u64,
}

impl Endpoint {
    /// Opens actively: the SYN is returned by [`poll_transmit`](Self::poll_transmit).
    pub fn connect(
        config: impl Into<Arc<Config>>,
        controller: Box<dyn Controller>,
        init: Init,
        now: Instant,
    ) -> Self {
        let mut endpoint = Self::new(config.into(), controller, init, now);
        endpoint.become_state(State::SynSent);
        endpoint.is_active = true;
        if let Some(h) = &mut endpoint.handshake {
            h.due = true;
        }
        endpoint
    }

    /// Opens passively: waits for one SYN. (A listener for many connections creates an endpoint for each.)
    pub fn listen(
        config: impl Into<Arc<Config>>,
        controller: Box<dyn Controller>,
        init: Init,
        now: Instant,
    ) -> Self {
        let mut endpoint = Self::new(config.into(), controller, init, now);
        endpoint.become_state(State::Listen);
        endpoint
    }

    fn new(config: Arc<Config>, controller: Box<dyn Controller>, init: Init, now: Instant) -> Self {
        let receiver = Receiver::new(&ReceiverConfig {
            buffer: config.receive_buffer.get(),
            autotuning: config.receive_autotuning.map(|a| {
                let first = config.first_window();
                (a.initial.get(), first.get())
            }),
            mss: u64::from(config.mss),
            ack_every: config.delayed_ack.every,
            ack_timeout: config.delayed_ack.timeout,
            quick_acks: config.delayed_ack.quick,
        });
        Self {
            state: State::Closed,
            ports: Ports {
                local: init.local_port,
                remote: init.remote_port,
            },
            seq: Sequences::new(init.isn),
            size: SegmentSize::new(config.mss, init.is_ipv6),
            timestamps: Timestamps::new(init.ts_offset),
            peer: PeerWindow::new(0),
            ecn: EcnReceiver::default(),
            ecn_capable: false,
            is_active: false,
            early: false,
            events: Events::default(),
            error: None,
            timers: Timers::new(now),
            challenge: ChallengeLimit::default(),
            urgent: None,
            rtt_sample: None,
            receiver,
            writes: Writes::new(&config),
            sender: None,
            early_hold: Hold::new(&config),
            user_timeout: config.user_timeout,
            scaling: None,
            ignores_window: false,
            unreachable: false,
            handshake: Some(Box::new(Handshake::new(
                Some(controller),
                init.fast_open_cookie.filter(is_fast_open),
            ))),
            granted: None,
            config,
            counts: Counts::default(),
        }
    }

    /// Writes content; returns how much the send buffer took (0 after [`close`](Self::close)).
    pub fn write(&mut self, data: Bytes) -> usize {
        self.write_with(data, Ending::Plain)
    }

    /// Writes `n` bytes without content; returns how many the send buffer took, as
    /// [`write`](Self::write) does.
    #[inline]
    pub fn write_synthetic(&mut self, n: u64) -> u64 {
        if !self.may_write() {
            return 0;
        }
        let taken = self.writes.buffer.write_synthetic(n, self.write_limit());
        self.append(taken, n);
        taken
    }

    /// How many bytes [`Endpoint::write`] would take now.
    pub fn write_room(&self) -> u64 {
        if self.may_write() {
            self.write_bound().saturating_sub(self.writes.buffer.len())
        } else {
            0
        }
    }

    fn may_write(&self) -> bool {
        let open = self.state.may_send() || self.state == State::Listen;
        open && !self.writes.closed
    }

    /// Appends the bytes that the buffer took of those offered.
    #[inline]
    fn append(&mut self, taken: u64, offered: u64) {
        self.writes.blocked |= taken < offered;
        if let Some(sender) = &mut self.sender {
            sender.written.wants_room |= taken < offered;
            if taken > 0 {
                sender.append(taken, self.writes.buffer.len() >= self.writes.capacity);
            }
        }
    }

    /// Reads at most `max` bytes, in order and each once; `None` when nothing is ready. Reading
    /// opens the receive window.
    #[inline]
    pub fn read(&mut self, max: u64) -> Option<Chunk> {
        self.receiver.read(max)
    }

    /// Bytes ready to be read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receiver.unread()
    }

    /// Bytes received and not read, each counted once: ready to be read, or behind a hole.
    pub fn buffered(&self) -> u64 {
        self.receiver.buffered()
    }

    /// Bytes written and not acknowledged yet.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.writes.buffer.len()
    }

    /// Bytes written and never sent yet.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.sender
            .as_ref()
            .map_or(self.writes.buffer.len(), |sender| sender.unsent())
    }

    /// Closes our direction: a FIN follows the written data. The peer's direction stays open (half-close). A
    /// connection that is not open yet ends if nothing was written; otherwise it opens, delivers the data and
    /// closes (RFC 9293 §3.10.4 would return an error for the data).
    pub fn close(&mut self, _now: Instant) {
        match self.state {
            // RFC 9293 §3.10.4.
            State::Listen | State::SynSent if self.writes.buffer.is_empty() => self.end(None),
            // §3.10.4 allows to wait for ESTABLISHED; a listener with written data waits for a peer.
            State::Listen | State::SynSent | State::SynReceived => self.writes.closed = true,
            State::Established | State::CloseWait if !self.writes.closed => {
                self.writes.closed = true;
                self.finish();
            }
            _ => {}
        }
    }

    /// Queues the FIN and changes state (RFC 9293 §3.10.4).
    fn finish(&mut self) {
        let next = match self.state {
            State::CloseWait => State::LastAck,
            State::Established => State::FinWait1,
            _ => return,
        };
        if let Some(sender) = &mut self.sender {
            sender.finish();
            self.become_state(next);
        }
    }

    /// Ends the connection because of data that nobody will read; the peer gets the reset that answers it (RFC 1122
    /// §4.2.2.13), in the form for a connection that does not exist any more (RFC 9293 §3.5.2), as Linux sends it.
    pub fn refuse_data(&mut self, now: Instant) {
        let (una, resets) = (self.seq.una, self.state.may_receive());
        self.abort(now);
        if resets {
            self.urgent = Some(Urgent::Reset(self.seq.of(una), None));
        }
    }

    /// Ends the connection at once; the peer gets a reset (RFC 9293 §3.10.5).
    pub fn abort(&mut self, _now: Instant) {
        match self.state {
            State::Closed => {}
            State::Listen | State::SynSent | State::TimeWait | State::Closing | State::LastAck => {
                self.end(Some(Error::Aborted));
            }
            _ => {
                let (seq, ack) = (self.next_seq(), self.ack_seq());
                self.end(Some(Error::Aborted));
                self.urgent = Some(Urgent::Reset(seq, Some(ack)));
            }
        }
    }

    /// The next event for the application.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The next event that is more than room to write or data to read, for an application that reads and writes
    /// after every call anyway; those two are taken off.
    #[inline]
    pub fn poll_change(&mut self) -> Option<Event> {
        self.events.remove(Event::Readable);
        self.events.remove(Event::Writable);
        self.events.pop()
    }

    /// The next notice of the sender, for a table of protocol events; needs
    /// [`Config::notices`](crate::Config).
    #[inline]
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.sender.as_mut()?.poll_notice()
    }

    /// The round-trip sample of the latest acknowledgement, once.
    #[inline]
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// Counters since the connection was created.
    pub fn stats(&self) -> Stats {
        let sender = self.sender.as_ref();
        Stats {
            sender: sender.map(|s| *s.counters()).unwrap_or_default(),
            sent_segments: self.counts.segments_sent,
            received_segments: self.counts.segments_received,
            duplicate_segments: self.counts.duplicates,
            ce_marks: self.ecn.marks(),
            challenges: u64::from(self.counts.challenges),
        }
    }

    /// The state of the sender at `now`; zero or unknown before the connection is open.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        match &self.sender {
            Some(s) => s.snapshot(now),
            None => Snapshot::default(),
        }
    }

    /// The congestion control's phase, as in [`Self::snapshot`]; empty before the connection is open.
    pub fn phase(&self) -> &'static str {
        self.sender.as_ref().map_or("", |s| s.phase_name())
    }

    /// The gauges of the congestion control, as (name with unit suffix, value); none before the connection is open.
    pub fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        if let Some(s) = &self.sender {
            s.gauges(out);
        }
    }

    /// The window that the peer grants us, in bytes (SND.WND).
    #[inline]
    pub fn peer_window(&self) -> u64 {
        self.peer.bytes()
    }

    /// The state (RFC 9293 §3.3.2).
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if it did not end in order.
    #[inline]
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// The port of this end.
    #[inline]
    pub fn local_port(&self) -> u16 {
        self.ports.local
    }

    /// The peer's port.
    #[inline]
    pub fn remote_port(&self) -> u16 {
        self.ports.remote
    }

    /// A Fast Open cookie that the server granted with this connection (RFC 7413 §4.1.2): to be
    /// passed in [`Init`] next time.
    pub fn granted_cookie(&self) -> Option<&Bytes> {
        self.granted.as_ref()
    }

    /// ECN was negotiated (RFC 3168 §6.1.1).
    pub fn is_ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    /// The configuration that the endpoint was created with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether an acknowledgement must be sent at once. A driver that receives several segments before it can send
    /// must send this one first, so that each segment gets its own acknowledgement.
    #[inline]
    pub fn owes_ack(&self) -> bool {
        self.receiver.ack().is_due()
    }

    /// SND.NXT on the wire.
    #[inline]
    fn next_seq(&self) -> Seq {
        self.seq.of(self.seq.sent)
    }

    /// RCV.NXT on the wire.
    #[inline]
    fn ack_seq(&self) -> Seq {
        self.seq.of_peer(self.receiver.next())
    }

    #[inline]
    fn become_state(&mut self, next: State) {
        assert!(self.state.may_become(next), "{} -> {next}", self.state);
        self.state = next;
    }

    /// Ends the connection, in order (`None`) or with an error.
    fn end(&mut self, error: Option<Error>) {
        if self.state == State::Closed {
            return;
        }
        let lingered = self.state == State::TimeWait;
        self.become_state(State::Closed);
        self.timers.clear();
        self.handshake = None;
        self.error = error;
        match error {
            None if lingered => {}
            None | Some(Error::Aborted) => self.events.push(Event::Closed),
            Some(Error::Reset | Error::Refused | Error::Unreachable) => {
                self.events.push(Event::Reset)
            }
            Some(Error::TimedOut) => self.events.push(Event::TimedOut),
        }
    }
}

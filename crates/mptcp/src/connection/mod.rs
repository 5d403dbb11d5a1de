//! The connection: its state, the calls of the application and its events.

mod announce;
mod closing;
mod hosting;
mod incoming;
mod joining;
mod opening;
mod options;
mod outgoing;
mod paths;
mod reading;
mod resending;
mod scheduling;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use gargalo_cc::{ControllerFactory, Sibling};
use gargalo_tcp::{Chunk, Error, State};
use gargalo_units::{Duration, Ecn, Instant};
use gargalo_wire::mptcp::List;
use gargalo_wire::tcp::Segment;
use rand_pcg::Pcg64;

use crate::addresses::Addresses;
use crate::crypto::Key;
use crate::error::ConfigError;
use crate::event::Events;
use crate::names::Label;
use crate::path_manager::PathManager;
use crate::receive::Receive;
use crate::scheduler::{PathView, Scheduler};
use crate::send::{Fin, Send};
use crate::subflow::Subflow;
use crate::{Config, Event, Init, Notice, Stats, SubflowSnapshot};
use announce::AddressTable;
use timers::Timers;

/// A segment to send, with its addresses and the ECN field of its packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Source and destination.
    pub addresses: Addresses,
    /// The gateway it is sent to first; `None`: the default one.
    pub gateway: Option<IpAddr>,
    /// Header fields, options and payload.
    pub segment: Segment,
    /// ECN field of the IP packet.
    pub ecn: Ecn,
}

/// The negotiated protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Not known yet: the handshake is not complete.
    Opening,
    /// MPTCP was negotiated, and there was no fallback.
    Multipath,
    /// Plain TCP on the initial subflow, or on the remaining one after a broken mapping.
    Plain,
}

/// How a peer that may not know of a fallback is informed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FallbackNotice {
    /// Not needed: the peer knows.
    None,
    /// Acknowledgements carry DATA_ACK.
    DataAck,
    /// The same, and MP_FAIL was sent.
    Fail,
}

/// One end of a Multipath TCP connection.
///
/// A driver passes every received segment to [`handle`](Self::handle), calls
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has passed and, after either
/// and after the application read, wrote or closed, [`poll_transmit`](Self::poll_transmit) until it returns `None`.
/// [`poll_event`](Self::poll_event) returns events for the application. Time must not decrease between calls. A SYN
/// with MP_JOIN belongs to the connection of its [`token`](Self::token), as do later segments of its addresses.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    /// The configuration of every endpoint.
    tcp: Arc<gargalo_tcp::Config>,
    congestion: Arc<dyn ControllerFactory>,
    mode: Mode,
    is_client: bool,
    handshake: Handshake,
    fallback: Fallback,
    subflows: Vec<Subflow>,
    /// What is needed to find a subflow by address, slot or timer, in the same order.
    places: Vec<Place>,
    views: Vec<PathView>,
    /// The latest version of a view.
    view_version: u64,
    /// The names of their links.
    labels: Vec<Label>,
    siblings: Vec<Sibling>,
    next_id: u32,
    work: Work,
    /// Number of windows that were filled by data on a slower path.
    blocked: u64,
    scheduler: Box<dyn Scheduler>,
    manager: Box<dyn PathManager>,
    send: Send,
    receive: Receive,
    address_table: AddressTable,
    /// Final snapshots of ended subflows that carried data, until they are polled.
    ended: VecDeque<SubflowSnapshot>,
    /// Segments without a subflow: resets in answer to unknown segments.
    stray: VecDeque<Transmit>,
    events: Events,
    notices: VecDeque<Notice>,
    timers: Timers,
    error: Option<Error>,
    /// The connected event was reported.
    connected: bool,
    /// Ended at data level, in order or not.
    over: bool,
    rng: Pcg64,
    stats: Stats,
    /// Memory of received options, for those to send.
    #[expect(clippy::vec_box, reason = "a segment takes the box")]
    spare_options: Vec<Box<List>>,
}

/// What the two ends have agreed on and confirmed (RFC 8684 §3.1).
#[derive(Debug)]
struct Handshake {
    own: Key,
    peer: Option<Key>,
    /// Checksums over mappings were negotiated.
    checksum: bool,
    /// The peer uses 64-bit data sequence numbers, so acknowledgements use them, too.
    long_acks: bool,
    /// A DSS of the peer was received: options pass in both directions.
    confirmed: bool,
    /// MP_CAPABLE with both keys was sent; a client repeats it with a repeated DATA_FIN.
    keys_sent: bool,
    /// The peer has sent a DATA_ACK: our options reach it.
    data_acked: bool,
    /// The peer accepts no joins to the address of the initial subflow.
    deny_join_initial: bool,
}

/// State of a fallback to plain TCP (RFC 8684 §3.7).
#[derive(Debug)]
struct Fallback {
    /// How a peer that may not know of a fallback is informed of it.
    notice: FallbackNotice,
    /// All data was sent once and on one subflow, so an infinite mapping can describe it.
    contiguous: bool,
    /// An infinite mapping is announced with data up to this position of the initial subflow.
    infinite_until: u64,
}

/// Work that is left for the next polls.
#[derive(Debug, Default)]
struct Work {
    /// Subflows that may have data to send, by slot.
    active: u64,
    /// Subflows with another event than sending since their view was updated, by slot.
    changed: u64,
    /// A copy may be pending on a subflow.
    has_copies: bool,
    /// The state has changed since the scheduler had nothing to do.
    schedule_due: bool,
}

impl Connection {
    /// Opens actively from one of our addresses to the peer; the SYN is returned by
    /// [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// When the congestion control cannot be built, or there are too many addresses.
    pub fn connect(
        config: impl Into<Arc<Config>>,
        congestion: Arc<dyn ControllerFactory>,
        init: Init,
        addresses: Addresses,
        now: Instant,
    ) -> Result<Self, ConfigError> {
        let mut connection = Self::new(config.into(), congestion, init, true)?;
        connection.address_table.set_initial(addresses);
        connection.open_initial(now, addresses)?;
        Ok(connection)
    }

    /// Opens passively: the first SYN passed to [`handle`](Self::handle) creates the initial subflow. (A listener
    /// for many connections creates a [`Connection`] for each.)
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn listen(
        config: impl Into<Arc<Config>>,
        congestion: Arc<dyn ControllerFactory>,
        init: Init,
    ) -> Result<Self, ConfigError> {
        Self::new(config.into(), congestion, init, false)
    }

    fn new(
        config: Arc<Config>,
        congestion: Arc<dyn ControllerFactory>,
        init: Init,
        is_client: bool,
    ) -> Result<Self, ConfigError> {
        if init.addresses.len() > 255 {
            return Err(ConfigError::TooManyAddresses(init.addresses.len()));
        }
        let mut tcp = gargalo_tcp::Config::clone(&config.tcp);
        // The connection bounds the written data itself.
        tcp.send_buffer = gargalo_units::Bytes::new(u64::MAX / 4);
        let connection = Self {
            tcp: Arc::new(tcp),
            congestion,
            mode: Mode::Opening,
            is_client,
            handshake: Handshake {
                own: Key::new(init.key),
                peer: None,
                checksum: config.options.checksum,
                long_acks: false,
                confirmed: false,
                keys_sent: false,
                data_acked: false,
                deny_join_initial: false,
            },
            fallback: Fallback {
                notice: FallbackNotice::None,
                contiguous: true,
                infinite_until: 0,
            },
            subflows: Vec::new(),
            places: Vec::new(),
            views: Vec::new(),
            view_version: 0,
            labels: Vec::new(),
            siblings: Vec::new(),
            next_id: 0,
            work: Work::default(),
            blocked: 0,
            scheduler: config.scheduler.build(),
            manager: config.path_manager.build(),
            send: Send::new(config.tcp.send_buffer.get()),
            receive: Receive::new(config.tcp.receive_buffer.get(), u64::from(config.tcp.mss)),
            address_table: AddressTable::new(&init),
            ended: VecDeque::new(),
            stray: VecDeque::new(),
            events: Events::default(),
            notices: VecDeque::new(),
            timers: Timers::default(),
            error: None,
            connected: false,
            over: false,
            rng: init.rng,
            stats: Stats::default(),
            spare_options: Vec::new(),
            config,
        };
        // Names and parameters that later subflows need are checked now.
        let mut rng = connection.rng.clone();
        connection.controller(Instant::ZERO, &mut rng)?;
        Ok(connection)
    }

    /// Writes content; returns how much the send buffer took (0 after [`close`](Self::close)).
    pub fn write(&mut self, data: Bytes) -> usize {
        if !self.may_write() {
            return 0;
        }
        self.work.schedule_due = true;
        self.send.write(data)
    }

    /// Writes `n` bytes without content; returns how many the send buffer took, as [`write`](Self::write)
    /// does.
    pub fn write_synthetic(&mut self, n: u64) -> u64 {
        if !self.may_write() {
            return 0;
        }
        self.work.schedule_due = true;
        self.send.write_synthetic(n)
    }

    /// How many bytes [`Connection::write`] would take now.
    pub fn write_room(&self) -> u64 {
        if self.may_write() {
            self.send.room()
        } else {
            0
        }
    }

    fn may_write(&self) -> bool {
        !self.over && self.send.fin == Fin::Open
    }

    /// Reads at most `max` bytes, in order and each once; `None` when nothing is ready. Reading opens the
    /// receive window.
    #[inline]
    pub fn read(&mut self, max: u64) -> Option<Chunk> {
        let chunk = self.receive.read(max)?;
        if self.receive.wants_update() && !self.receive.is_finished() {
            self.announce_window();
        }
        Some(chunk)
    }

    /// Bytes ready to be read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.receive.unread()
    }

    /// Bytes written and not acknowledged at data level.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.send.buffer.len()
    }

    /// Bytes written and not yet assigned to a subflow.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.send.unsent()
    }

    /// Bytes received and not read, each counted once: ready to be read, behind a hole of the connection's stream, or
    /// behind one of a subflow's. Data on which several subflows agree is one.
    pub fn buffered(&self) -> u64 {
        if self.mode != Mode::Multipath {
            let plain = self.subflows.iter().map(|s| s.endpoint.buffered());
            return self.receive.buffered(std::iter::empty()) + plain.sum::<u64>();
        }
        let of = |s: &'_ Subflow| {
            let ranges = s.endpoint.buffered_ranges();
            let mapped = ranges.flat_map(|(from, to)| s.input.received.of_range(from, to));
            mapped.collect::<Vec<_>>()
        };
        self.receive.buffered(self.subflows.iter().flat_map(of))
    }

    /// Bytes received out of order.
    pub fn out_of_order(&self) -> u64 {
        self.receive.out_of_order()
    }

    /// The next event for the application.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The next notice of a subflow's TCP, with the number of the subflow; needs `notices` in
    /// [`Config::tcp`].
    pub fn poll_subflow_notice(&mut self) -> Option<(u32, gargalo_tcp::Notice)> {
        let mut all = self.subflows.iter_mut();
        all.find_map(|s| Some((s.id, s.endpoint.poll_notice()?)))
    }

    /// The next notice, for a table of protocol events; needs [`Config::notices`] or
    /// [`Config::decisions`].
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Why the connection ended, if it did not end in order.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// The token that identifies the connection in joins to us (RFC 8684 §3.2).
    pub fn token(&self) -> u32 {
        self.handshake.own.token()
    }

    /// The peer supports MPTCP, and the path lets its options pass.
    pub fn is_multipath(&self) -> bool {
        self.mode == Mode::Multipath
    }

    /// The connection is plain TCP, because the peer or the path does not support MPTCP.
    pub fn has_fallen_back(&self) -> bool {
        self.mode == Mode::Plain
    }

    /// Whether an acknowledgement must be sent at once (as [`gargalo_tcp::Endpoint::owes_ack`]).
    pub fn owes_ack(&self) -> bool {
        self.subflows.iter().any(|s| s.endpoint.owes_ack())
    }

    /// The configuration that the connection was created with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The addresses of all subflows: segments with these belong to this connection.
    pub fn subflow_addresses(&self) -> impl Iterator<Item = Addresses> {
        self.subflows.iter().map(|s| s.addresses)
    }

    /// All subflows, in the order of opening.
    pub fn subflows(&self, now: Instant) -> impl Iterator<Item = SubflowSnapshot> {
        self.subflows.iter().map(move |s| s.snapshot(now))
    }

    /// The final snapshot of the next ended subflow; the latest 256 are kept until polled.
    pub fn poll_ended(&mut self) -> Option<SubflowSnapshot> {
        self.ended.pop_front()
    }

    /// The round-trip sample of the latest acknowledgement, once, with the number of its subflow.
    #[inline]
    pub fn take_rtt_sample(&mut self) -> Option<(u32, Duration)> {
        let id = self.timers.heard_on;
        let i = self.views.iter().position(|v| v.id == id)?;
        Some((id, self.subflows[i].endpoint.take_rtt_sample()?))
    }

    /// The views of the subflows that schedulers use.
    pub fn path_views(&self) -> &[PathView] {
        &self.views
    }

    /// Counters since the connection was created.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats;
        stats.duplicate_bytes = self.receive.duplicates;
        for s in &self.subflows {
            add(&mut stats.tcp, &s.endpoint.stats());
        }
        stats
    }

    /// The state of the connection in the terms of TCP: DATA_FIN counts as FIN.
    pub fn state(&self) -> State {
        let finished = self.receive.is_finished();
        if self.over {
            let lingers = self
                .subflows
                .iter()
                .any(|s| s.endpoint.state() != State::Closed);
            return match (self.error, lingers) {
                (None, true) => State::TimeWait,
                _ => State::Closed,
            };
        }
        let Some(first) = self.subflows.first() else {
            return if self.connected {
                State::Established
            } else {
                State::Listen
            };
        };
        if !self.connected {
            return first.endpoint.state();
        }
        match (self.send.fin, finished) {
            (Fin::Open, false) => State::Established,
            (Fin::Open, true) => State::CloseWait,
            (Fin::Wanted | Fin::Sent, false) => State::FinWait1,
            (Fin::Acked, false) => State::FinWait2,
            (Fin::Wanted | Fin::Sent, true) => State::LastAck,
            (Fin::Acked, true) => State::TimeWait,
        }
    }

    /// Whether nothing will be sent any more and no timer is armed, so that the connection may be dropped.
    pub fn is_closed(&self) -> bool {
        self.over && self.subflows.is_empty() && self.stray.is_empty()
    }

    fn notice(&mut self, notice: Notice) {
        if self.config.notices {
            self.notices.push_back(notice);
        }
    }

    #[inline]
    fn index_of(&self, addresses: Addresses) -> Option<usize> {
        let key = addresses.key();
        let first = self.places.iter().position(|p| p.key == key)?;
        if self.subflows[first].addresses == addresses {
            return Some(first);
        }
        self.subflows.iter().position(|s| s.addresses == addresses)
    }

    #[inline]
    fn index_of_slot(&self, slot: u8) -> Option<usize> {
        // Until a subflow has ended, slots are indices.
        let i = usize::from(slot);
        match self.places.get(i) {
            Some(p) if p.slot == slot => Some(i),
            _ => self.places.iter().position(|p| p.slot == slot),
        }
    }

    /// Announces a grown window on the path by which the peer receives it first, and on the one that was used last.
    fn announce_window(&mut self) {
        let usable = |v: &&PathView| v.usable && !v.in_loss;
        let fast = self.views.iter().filter(usable).min_by_key(|v| v.latency());
        let (fast, late) = (fast.map(|v| v.id), self.timers.heard_on);
        for s in &mut self.subflows {
            if Some(s.id) == fast || s.id == late {
                s.endpoint.demand_ack();
                self.work.active |= s.bit();
            }
        }
    }

    /// Updates the view of a subflow as far as it may have changed and is needed; `idle`: this host only receives,
    /// so the scheduler is not called.
    #[inline]
    fn update_view(&mut self, now: Instant, i: usize, idle: bool) {
        let (s, v) = (&mut self.subflows[i], &mut self.views[i]);
        if self.work.changed & s.bit() == 0 {
            s.view_sent(now, v);
        } else if !idle || v.usable != s.is_usable() || v.backup != s.is_backup() {
            self.refresh(now, i);
            return;
        }
        self.places[i].arm(s);
    }

    /// Updates the changed views before the scheduler is called.
    #[inline]
    fn update_changed_views(&mut self, now: Instant) {
        while self.work.changed != 0 {
            let slot = self.work.changed.trailing_zeros() as u8;
            self.work.changed &= !(1 << slot);
            if let Some(i) = self.index_of_slot(slot) {
                self.refresh(now, i);
            }
        }
    }

    /// Updates the whole view of a subflow.
    fn refresh(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        self.work.changed &= !s.bit();
        self.view_version += 1;
        self.views[i] = PathView {
            version: self.view_version,
            ..s.view(now)
        };
        self.places[i].arm(s);
        if let Some(sibling) = s.endpoint.sibling() {
            self.siblings[i] = sibling;
        }
    }

    /// Passes the state of the other subflows to a subflow, for coupled congestion control.
    fn show_siblings(&mut self, i: usize) {
        if self.subflows.len() > 1 {
            self.subflows[i].endpoint.set_siblings(&self.siblings, i);
        }
    }
}

/// What is looked for among the subflows for every segment. It is apart from them so that they need not be read.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Key of its addresses ([`Addresses::key`]).
    key: u64,
    slot: u8,
    /// The next of its timers, when it last had nothing more to send.
    wake: Instant,
    /// The same for [`Subflow::paced_until`].
    paced_until: Instant,
}

impl Place {
    fn new(s: &Subflow) -> Self {
        Self {
            key: s.addresses.key(),
            slot: s.slot,
            wake: Instant::MAX,
            paced_until: Instant::MAX,
        }
    }

    /// Reads the timers of its subflow.
    #[inline]
    fn arm(&mut self, s: &mut Subflow) {
        s.deadline = s.endpoint.poll_timeout().unwrap_or(Instant::MAX);
        (self.wake, self.paced_until) = (s.wake(), s.paced_until);
    }
}

/// An address without a port of its own.
fn ip(address: SocketAddr) -> IpAddr {
    address.ip()
}

fn add(total: &mut gargalo_tcp::Stats, s: &gargalo_tcp::Stats) {
    total.sender += s.sender;
    total.sent_segments += s.sent_segments;
    total.received_segments += s.received_segments;
    total.duplicate_segments += s.duplicate_segments;
    total.ce_marks += s.ce_marks;
    total.challenges += s.challenges;
}

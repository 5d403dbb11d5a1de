//! The callbacks of a foreign stack as a [`Stack`].

use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use gargalo_units::{Duration, Ecn, Instant};

use super::{About, Callbacks, Outgoing, Path, PathState, Request, Sender};
use crate::unsent::Unsent;
use crate::{
    Chunk, Datagram, Direction, Event, Notice, Offered, PathSnapshot, Snapshot, Stack, Stats,
    StreamId,
};

/// Datagrams in one instant, and timers in a row that are not later than the present, before a stack counts as one that
/// never ends.
const MAX_AT_ONCE: u32 = 100_000;
/// Local addresses of a connection with several paths.
const MAX_ADDRESSES: usize = 16;

/// One end of a foreign stack as a [`Stack`]: calls its [`Callbacks`], and enforces the rules of the interface.
#[derive(Debug)]
pub struct Foreign<C> {
    callbacks: C,
    name: String,
    now: Instant,
    /// The local addresses so far, the present one last.
    addresses: Vec<Local>,
    can_migrate: bool,
    /// It says from which address each datagram leaves.
    tells_local: bool,
    /// It has several paths.
    has_paths: bool,
    /// It reports its packets.
    reports_packets: bool,
    unsent: Unsent,
    /// It violated the interface, and is not called any more.
    is_broken: bool,
    sent_datagrams: u64,
    sent_datagram_bytes: u64,
    ce_marks: u64,
    /// The last counters and state that the sender reported for this connection.
    last: Sender,
    /// The next timer is not the stack's: it makes the host take what is pending.
    timer_is_ours: bool,
    /// Datagrams since the time advanced, and timers in a row that were due at once.
    at_once: u32,
    due_at_once: u32,
}

/// A local address. A client does not notice a rebinding of its NAT, so that the real one may be another than the stack
/// knows.
#[derive(Clone, Copy, Debug)]
struct Local {
    known: SocketAddr,
    real: SocketAddr,
}

impl Local {
    fn of(address: SocketAddr) -> Self {
        Self {
            known: address,
            real: address,
        }
    }
}

impl<C: Callbacks> Foreign<C> {
    /// Wraps the end of a stack that was made for this request.
    pub fn new(callbacks: C, about: About<'_>, request: &Request<'_>) -> Self {
        let (local, now) = (request.local, request.now);
        // Notices of its creation are kept for a host that wants notices; others only after `record_notices`.
        callbacks.pending(|p| p.records = false);
        Self {
            callbacks,
            name: about.name.to_owned(),
            now,
            addresses: vec![Local::of(local)],
            can_migrate: about.features.migration,
            tells_local: about.features.local_address,
            has_paths: request.config.paths() > 1,
            reports_packets: about.features.packets,
            unsent: Unsent::new(request.config.send_window),
            is_broken: false,
            sent_datagrams: 0,
            sent_datagram_bytes: 0,
            ce_marks: 0,
            last: Sender::default(),
            timer_is_ours: false,
            at_once: 0,
            due_at_once: 0,
        }
    }

    fn advance(&mut self, now: Instant) -> Instant {
        if now > self.now {
            self.now = now;
            self.at_once = 0;
            if self.reports_packets {
                self.callbacks.pending(|p| p.now = now);
            }
        }
        self.now
    }

    /// Ends the connection because the stack violated the interface; the reason names the stack.
    fn fault(&mut self, what: &str) {
        self.is_broken = true;
        let why = format!("stack {}: {what}", self.name);
        self.callbacks.pending(|p| p.end(Event::Failed(why)));
    }

    /// Counters and state of the sender; after the end the last that it reported, if it has discarded them since.
    fn sender(&mut self) -> Sender {
        if self.is_broken {
            return self.last;
        }
        let mut now = self.callbacks.stats();
        if self.reports_packets {
            let (sent, lost) = self.callbacks.pending(|p| (p.sent_packets, p.lost_packets));
            let counters = &mut now.counters;
            counters.sent_packets = counters.sent_packets.get().or(Some(sent)).into();
            counters.lost_packets = counters.lost_packets.get().or(Some(lost)).into();
        }
        let ended = self.callbacks.pending(|p| p.ended);
        if ended && self.has_discarded(&now) {
            return self.last;
        }
        self.last = now;
        now
    }

    /// Whether counters after the end are not those of the connection: they are missing or less than before, or 0
    /// although packets were sent.
    fn has_discarded(&self, now: &Sender) -> bool {
        let before = self.last.counters.counts();
        // A missing one is less than any.
        let mut both = before.zip(now.counters.counts());
        both.any(|(was, is)| is.get() < was.get())
            || (self.sent_datagrams > 0 && now.counters.sent_packets == 0)
    }

    fn can_write(&self) -> bool {
        self.callbacks.pending(|p| p.can_write())
    }

    fn is_early(&self) -> bool {
        self.callbacks.pending(|p| p.is_early())
    }

    /// Writes the state of the sender to the trace that the host writes.
    fn trace(&mut self) {
        if !self.reports_packets || self.callbacks.pending(|p| p.trace.is_none()) {
            return;
        }
        let sender = self.sender();
        self.callbacks.pending(|p| {
            let latest = p.rtt;
            p.trace(|trace, now| trace.sender(now, &sender, latest));
        });
    }

    /// Offers the stack the data that waits, after a call that may have made room.
    fn offer(&mut self) {
        let (rejected, halted) = self.callbacks.pending(|p| {
            (
                std::mem::take(&mut p.rejected),
                std::mem::take(&mut p.halted),
            )
        });
        for stream in halted {
            self.unsent.discard(stream);
        }
        if !self.can_write() {
            return;
        }
        let (now, early) = (self.now, self.is_early());
        let callbacks = &mut self.callbacks;
        let again = match rejected {
            true => self
                .unsent
                .again(|direction| open(callbacks, now, direction)),
            false => Ok(()),
        };
        if rejected {
            let stopped = callbacks.pending(|p| p.stopped.clone());
            for stream in stopped {
                callbacks.stop_sending(now, stream);
            }
        }
        let done = again.and_then(|()| {
            self.unsent.offer(now, early, |stream, data, fin| {
                callbacks.write(now, stream, data, fin)
            })
        });
        if let Err(what) = done {
            self.fault(&what);
        }
    }

    /// The local address that `is` finds, if the stack tells them apart; else the present one.
    fn address(&self, is: impl Fn(&Local) -> bool) -> Local {
        let present = || self.addresses[self.addresses.len() - 1];
        let told = self.addresses.iter().filter(|_| self.tells_local);
        // An address that came back is the later one.
        told.rev().copied().find(is).unwrap_or_else(present)
    }

    /// A pending datagram, else the next of [`Callbacks::datagram_out`].
    fn next_datagram(&mut self, now: Instant) -> Result<Option<Outgoing>, String> {
        let pending = |c: &C| c.pending(|p| p.datagrams.pop_front());
        if let Some(first) = pending(&self.callbacks) {
            return Ok(Some(first));
        }
        let own = self.callbacks.datagram_out(now)?;
        Ok(own.or_else(|| pending(&self.callbacks)))
    }
}

fn open<C: Callbacks>(callbacks: &mut C, now: Instant, direction: Direction) -> Option<StreamId> {
    match direction {
        Direction::Bidirectional => callbacks.open_stream(now),
        Direction::Unidirectional => callbacks.open_unidirectional_stream(now),
    }
}

impl<C: Callbacks> Stack for Foreign<C> {
    fn handle(
        &mut self,
        now: Instant,
        mut payload: BytesMut,
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        self.ce_marks += u64::from(ecn == Ecn::Ce);
        if self.is_broken {
            return;
        }
        let now = self.advance(now);
        if self.has_paths && !self.addresses.iter().any(|a| a.real == local) {
            // A server hears of a path by what arrives on it.
            self.addresses.insert(0, Local::of(local));
            self.addresses.truncate(MAX_ADDRESSES);
        }
        let path = Path {
            // Datagrams to the old address of a migrated client still arrive. A stack that tells its addresses apart
            // knows what to make of it; for others it would be a reason to move back.
            local: self.address(|a| a.real == local).known,
            remote,
            ecn,
        };
        self.callbacks.datagram_in(now, &mut payload, &path);
        self.trace();
        self.offer();
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        let timer_is_ours = std::mem::take(&mut self.timer_is_ours);
        if !self.is_broken && !timer_is_ours {
            self.callbacks.timeout(now);
            self.trace();
            self.offer();
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let soon = self.now + Duration::from_nanos(1);
        if self.is_over() {
            return None;
        }
        // What it reported in `datagram_out` came after the host had polled.
        self.timer_is_ours = self.callbacks.pending(|p| p.for_application());
        let at = match self.timer_is_ours {
            true => self.now,
            false => self.callbacks.next_timer()?,
        };
        if at > self.now {
            self.due_at_once = 0;
            return Some(at);
        }
        self.due_at_once += 1;
        if self.due_at_once > MAX_AT_ONCE && !self.is_broken {
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
        if self.at_once > MAX_AT_ONCE {
            self.fault("datagram_out always has another datagram");
            return None;
        }
        self.sent_datagrams += 1;
        self.sent_datagram_bytes += sent.payload.len() as u64;
        Some(Datagram {
            payload: sent.payload,
            ecn: sent.ecn,
            local: self.address(|a| Some(a.known) == sent.local).real,
            remote: sent.remote,
        })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.callbacks.pending(|p| p.events.pop_front())
    }

    fn poll_read(&mut self) -> Option<Chunk> {
        self.callbacks.pending(|p| p.chunks.pop_front())
    }

    fn open(&mut self, now: Instant, direction: Direction) -> Option<StreamId> {
        if !self.can_write() {
            return None;
        }
        let now = self.advance(now);
        let opened = open(&mut self.callbacks, now, direction)?;
        // The second lowest bit is the direction (RFC 9000 §2.1).
        if (opened & 2 != 0) != (direction == Direction::Unidirectional) {
            self.fault(&format!(
                "opened stream {opened}, whose number is of the other direction"
            ));
            return None;
        }
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

    fn reset(&mut self, now: Instant, stream: StreamId) {
        if self.can_write() {
            let now = self.advance(now);
            self.unsent.discard(stream);
            self.callbacks.reset_stream(now, stream);
        }
    }

    fn stop(&mut self, now: Instant, stream: StreamId) {
        if self.can_write() {
            let now = self.advance(now);
            self.callbacks.pending(|p| {
                p.stopped.insert(stream);
                p.chunks.retain(|c| c.stream != stream);
            });
            self.callbacks.stop_sending(now, stream);
        }
    }

    fn set_urgency(&mut self, now: Instant, stream: StreamId, urgency: u8) {
        if self.can_write() {
            let now = self.advance(now);
            self.unsent.set_urgency(stream, urgency);
            self.callbacks.set_urgency(now, stream, urgency);
        }
    }

    fn send_datagram(&mut self, now: Instant, data: &Bytes) -> Offered {
        // Early data is streams: what a ticket remembers may be of a flow without datagrams.
        if !self.can_write() || self.is_early() {
            return Offered::Later;
        }
        let now = self.advance(now);
        self.callbacks.send_datagram(now, data)
    }

    fn poll_datagram(&mut self) -> Option<Bytes> {
        self.callbacks.pending(|p| p.frames.pop_front())
    }

    fn update_keys(&mut self, now: Instant) -> bool {
        if !self.can_write() || self.is_early() {
            return false;
        }
        let now = self.advance(now);
        self.callbacks.update_keys(now)
    }

    fn close(&mut self, now: Instant) {
        if self.callbacks.pending(|p| p.ended) {
            return;
        }
        let now = self.advance(now);
        // Its counters may be gone with the connection.
        self.sender();
        self.callbacks.close(now);
        self.callbacks.pending(|p| p.end(Event::Closed));
    }

    fn all_acknowledged(&mut self) -> bool {
        self.unsent.is_empty() && self.callbacks.unacknowledged().unwrap_or(0) == 0
    }

    fn is_over(&self) -> bool {
        if self.callbacks.pending(|p| p.for_application()) {
            return false;
        }
        self.is_broken || {
            let done = self
                .callbacks
                .pending(|p| p.ended && p.datagrams.is_empty());
            done && self.callbacks.is_over()
        }
    }

    fn migrate(&mut self, now: Instant, local: SocketAddr) {
        let present = self.addresses.len() - 1;
        let rebound = self.addresses[present].real.ip() == local.ip();
        if rebound || !self.can_migrate {
            self.addresses[present].real = local;
        } else {
            let now = self.advance(now);
            self.addresses.push(Local::of(local));
            self.callbacks.migrate(now, local);
            let moved = || format!("moved to {local}");
            self.callbacks.pending(|p| p.add_notice("path", moved));
        }
    }

    fn on_packet_too_big(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr, mtu: u32) {
        if self.is_broken {
            return;
        }
        let now = self.advance(now);
        let local = self.address(|a| a.real == local).known;
        self.callbacks.packet_too_big(now, local, remote, mtu);
        self.trace();
        self.offer();
    }

    fn stats(&mut self) -> Stats {
        Stats {
            sender: self.sender().counters,
            ce_marks: self.ce_marks,
            sent_datagrams: self.sent_datagrams,
            sent_datagram_bytes: self.sent_datagram_bytes,
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.sender().into()
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.callbacks.pending(|p| p.rtt.take())
    }

    fn record_notices(&mut self) {
        self.callbacks.pending(|p| p.records = true);
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.callbacks.pending(|p| p.notices.pop_front())
    }

    fn poll_secret(&mut self) -> Option<String> {
        self.callbacks.pending(|p| p.secrets.pop_front())
    }

    fn open_path(&mut self, now: Instant, local: IpAddr, remote: SocketAddr) {
        let now = self.advance(now);
        let local = SocketAddr::new(local, self.addresses[0].known.port());
        self.addresses.insert(0, Local::of(local));
        self.callbacks.open_path(now, local, remote);
        let opened = || format!("to {remote} from {local}");
        self.callbacks.pending(|p| p.add_notice("path", opened));
    }

    fn paths(&mut self) -> Vec<PathSnapshot> {
        if !self.has_paths || self.is_broken {
            return Vec::new();
        }
        let paths = self.callbacks.paths();
        let snapshot = |p: PathState| PathSnapshot {
            id: p.id,
            local: p.local.ip(),
            remote: p.remote,
            opened: p.opened,
            closed: p.closed,
            counters: p.sender.counters,
            received_bytes: p.received_bytes,
            sender: p.sender.into(),
        };
        paths.into_iter().map(snapshot).collect()
    }

    fn take_path_rtt_samples(&mut self) -> Vec<(u32, Duration)> {
        self.callbacks.pending(|p| std::mem::take(&mut p.path_rtts))
    }
}

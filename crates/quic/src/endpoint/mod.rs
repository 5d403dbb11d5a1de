//! A sans-IO endpoint of a connection.

mod incoming;
mod paths;
mod probes;
mod reading;
mod setup;
mod streams;

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gargalo_units::{Duration, Ecn, Instant, SenderCounters};
use noq_proto::{Connection, ConnectionHandle, FourTuple, PathId, SendDatagramError, Side, VarInt};
use rand_pcg::Pcg64;

use crate::controller::Report;
use crate::crypto::Meter;
use crate::qlog::Trace;
use crate::realm::Timeline;
use crate::tls::{Clock, SERVER_NAME, Secrets, random};
use crate::types::{
    Chunk, Datagram, Direction, Event, Init, Notice, Offered, PathSnapshot, Snapshot, Stats,
    StreamId,
};
use crate::{Config, Congestion, Error, Realm, Stack};
use paths::Paths;
use probes::Probes;
use setup::Parts;
use streams::Streams;

/// Datagrams that an endpoint may send between two calls after its connection has ended. A closing endpoint answers
/// with a CONNECTION_CLOSE on each path (RFC 9000 §10.2.1); noq may send empty packets for ever instead.
const MOST_CLOSING_DATAGRAMS: u32 = 16;

/// One end of a connection.
pub struct Endpoint {
    side: Side,
    noq: noq_proto::Endpoint,
    /// Boxed: it is large, and moved.
    connection: Option<(ConnectionHandle, Box<Connection>)>,
    time: Timeline,
    /// Time of the latest call.
    now: Instant,
    local: SocketAddr,
    options: Options,
    tls_rng: Pcg64,
    clock: Arc<Clock>,
    observers: Observers,
    streams: Streams,
    probes: Probes,
    state: State,
    closing: Closing,
    /// Early data is or was possible.
    early: bool,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    confirmed: bool,
    events: VecDeque<Event>,
    /// Datagrams that belong to no connection.
    answers: VecDeque<Datagram>,
    scratch: Vec<u8>,
    ce_marks: u64,
    sent_datagrams: u64,
    sent_datagram_bytes: u64,
    paths: Paths,
}

/// The options of the scenario that are used after the connection was made.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// Sends ECN-capable packets (RFC 9000 §13.4).
    ecn: bool,
    multipath: bool,
    /// As a server: validates addresses with a Retry (RFC 9000 §8.1.2).
    retries: bool,
}

/// What noq's parts report to: congestion controls, frames, TLS and qlog.
struct Observers {
    report: Arc<Report>,
    meter: Arc<Meter>,
    /// `None`: TLS secrets are not collected.
    secrets: Option<Arc<Secrets>>,
    /// `None`: no qlog is written.
    trace: Option<Arc<Trace>>,
}

/// The end of the connection.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// The peer has closed.
    draining: bool,
    /// Remaining datagrams of [`MOST_CLOSING_DATAGRAMS`].
    datagrams: u32,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No data can be sent yet.
    Opening,
    /// Data can be sent, but the handshake is not complete.
    Early,
    Open,
    /// Ended, in order or not.
    Over,
}

impl Endpoint {
    /// Creates a client that connects.
    ///
    /// # Errors
    /// When an option is invalid.
    pub fn connect(
        realm: &Realm,
        config: &Config,
        congestion: &Congestion,
        init: Init,
    ) -> Result<Self, Error> {
        let (now, local, remote) = (init.now, init.local, init.remote);
        setup::check_addresses(local, remote)?;
        let mut parts = setup::parts(realm, config, congestion, init, Side::Client)?;
        let client = parts.client.take();
        let mut endpoint = Self::new(realm, config, parts, Side::Client, now, local);
        if let Some(client) = client {
            let at = endpoint.time.to_std(now);
            let connection = random::with(&mut endpoint.tls_rng, || {
                endpoint.noq.connect(at, client, remote, SERVER_NAME)
            })
            .map_err(|e| Error::Option(format!("cannot connect to {remote}: {e}")))?;
            endpoint.begin(connection);
        }
        Ok(endpoint)
    }

    /// Creates a server that waits for one connection.
    ///
    /// # Errors
    /// As for [`Endpoint::connect`].
    pub fn listen(
        realm: &Realm,
        config: &Config,
        congestion: &Congestion,
        init: Init,
    ) -> Result<Self, Error> {
        let (now, local) = (init.now, init.local);
        setup::check_addresses(local, init.remote)?;
        let parts = setup::parts(realm, config, congestion, init, Side::Server)?;
        Ok(Self::new(realm, config, parts, Side::Server, now, local))
    }

    fn new(
        realm: &Realm,
        config: &Config,
        parts: Parts,
        side: Side,
        now: Instant,
        local: SocketAddr,
    ) -> Self {
        Self {
            side,
            noq: parts.noq,
            connection: None,
            time: realm.time(),
            now,
            local,
            options: Options {
                ecn: config.ecn,
                multipath: config.paths() > 1,
                retries: config.retry,
            },
            tls_rng: parts.tls_rng,
            clock: parts.clock,
            observers: Observers {
                report: parts.report,
                meter: parts.meter.clone(),
                secrets: parts.secrets,
                trace: parts.trace,
            },
            streams: Streams::new(config.connection_window, parts.meter),
            probes: Probes::new(now),
            state: State::Opening,
            closing: Closing {
                draining: false,
                datagrams: MOST_CLOSING_DATAGRAMS,
            },
            early: false,
            confirmed: false,
            events: VecDeque::new(),
            answers: VecDeque::new(),
            scratch: Vec::new(),
            paths: Paths::default(),
            ce_marks: 0,
            sent_datagrams: 0,
            sent_datagram_bytes: 0,
        }
    }

    /// Stores the new connection.
    fn begin(&mut self, (handle, connection): (ConnectionHandle, Connection)) {
        self.begin_early(&connection);
        self.connection = Some((handle, Box::new(connection)));
    }

    /// Notes that data can be sent before the handshake is complete, once there are keys for it: at a server not before
    /// the whole ClientHello has arrived, which may take several datagrams.
    fn begin_early(&mut self, connection: &Connection) {
        if self.state != State::Opening || !connection.has_0rtt() {
            return;
        }
        self.early = true;
        self.path_opened(connection, PathId::ZERO);
        self.state = State::Early;
        if self.side.is_client() {
            self.streams.begin_early();
        }
        self.events.push_back(Event::Connected { early: true });
        self.observers
            .report
            .notice("zero-rtt", || "keys".to_owned());
    }

    /// Calls noq with clock and random source set.
    #[inline]
    fn run(&mut self, now: Instant, work: impl FnOnce(&mut Self)) {
        self.now = self.now.max(now);
        self.clock.set(self.now);
        self.closing.datagrams = MOST_CLOSING_DATAGRAMS;
        // TLS draws random numbers until the handshake is complete.
        let mut rng = self.tls_rng.clone();
        random::with(&mut rng, || {
            work(self);
            self.pass_events();
        });
        self.tls_rng = rng;
    }

    fn transmit(&mut self) -> Option<Datagram> {
        let (_, connection) = self.connection.as_mut()?;
        if self.state == State::Over {
            self.closing.datagrams = self.closing.datagrams.checked_sub(1)?;
        }
        self.scratch.clear();
        let at = self.time.to_std(self.now);
        let transmit = connection.poll_transmit(at, NonZeroUsize::MIN, &mut self.scratch);
        self.probes
            .after_transmit(self.now, connection, &self.observers.report);
        let transmit = transmit?;
        let ecn = match transmit.ecn {
            Some(mark) if self.options.ecn => Ecn::from_bits(mark as u8),
            _ => Ecn::NotEct,
        };
        let ip = transmit.src_ip.unwrap_or(self.local.ip());
        Some(Datagram {
            payload: take_datagram(&mut self.scratch),
            ecn,
            local: SocketAddr::new(ip, self.local.port()),
            remote: transmit.destination,
        })
    }

    /// Ends the connection after an error that noq does not know of.
    fn check(&mut self) {
        if let Some(trace) = &self.observers.trace
            && let Some(why) = trace.take_failure()
        {
            self.observers.report.notice("qlog", || why);
        }
        let failure = self.observers.report.take_failure().or_else(|| {
            let reset = std::mem::take(&mut self.streams.reset);
            reset.then(|| "the peer has reset a stream".to_owned())
        });
        if let Some(why) = failure {
            self.shut(self.now, 1);
            self.end(Event::Failed(why), true);
        }
    }

    /// The connection, while data may be written to it.
    fn writable(&mut self) -> Option<(&mut Connection, &mut Streams)> {
        match (&mut self.connection, self.state) {
            (Some((_, connection)), State::Early | State::Open) => {
                Some((connection, &mut self.streams))
            }
            _ => None,
        }
    }

    fn shut(&mut self, now: Instant, code: u32) {
        self.run(now, |s| {
            let at = s.time.to_std(s.now);
            if let Some((_, connection)) = &mut s.connection {
                connection.close(at, VarInt::from_u32(code), Bytes::new());
            }
        });
    }
}

impl Stack for Endpoint {
    fn handle(
        &mut self,
        now: Instant,
        payload: BytesMut,
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        self.ce_marks += u64::from(ecn == Ecn::Ce);
        self.run(now, |s| {
            s.receive(payload, ecn, local, remote);
            if !s.paths.wanted.is_empty() {
                s.open_wanted_paths();
            }
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run(now, |s| {
            let at = s.time.to_std(s.now);
            if let Some((_, connection)) = &mut s.connection {
                s.probes
                    .before_timeout(s.now, connection, &s.observers.report);
                connection.handle_timeout(at);
            }
        });
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let (_, connection) = self.connection.as_ref()?;
        let at = self.time.to_ours(connection.poll_timeout()?);
        Some(at.max(self.now + Duration::from_nanos(1)))
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.now = self.now.max(now);
        self.clock.set(self.now);
        let datagram = match self.answers.pop_front() {
            Some(answer) => answer,
            None => self.transmit()?,
        };
        self.sent_datagrams += 1;
        self.sent_datagram_bytes += datagram.payload.len() as u64;
        Some(datagram)
    }

    fn poll_event(&mut self) -> Option<Event> {
        if self.state != State::Over {
            self.check();
        }
        self.events.pop_front()
    }

    fn poll_read(&mut self) -> Option<Chunk> {
        let (_, connection) = self.connection.as_mut()?;
        self.streams.read(connection)
    }

    fn open(&mut self, _: Instant, direction: Direction) -> Option<StreamId> {
        let (connection, streams) = self.writable()?;
        streams.open(connection, direction)
    }

    fn write(&mut self, _: Instant, stream: StreamId, data: Bytes) -> usize {
        self.writable().map_or(0, |(connection, streams)| {
            streams.write(connection, stream, data)
        })
    }

    fn write_room(&mut self, stream: StreamId) -> u64 {
        self.writable()
            .map_or(0, |(connection, streams)| streams.room(connection, stream))
    }

    fn finish(&mut self, _: Instant, stream: StreamId) {
        if let Some((connection, streams)) = self.writable() {
            streams.finish(connection, stream);
        }
    }

    fn reset(&mut self, _: Instant, stream: StreamId) {
        if let Some((connection, streams)) = self.writable() {
            streams.reset(connection, stream);
        }
    }

    fn stop(&mut self, _: Instant, stream: StreamId) {
        if let Some((connection, streams)) = self.writable() {
            streams.stop(connection, stream);
        }
    }

    fn set_urgency(&mut self, _: Instant, stream: StreamId, urgency: u8) {
        if let Some((connection, streams)) = self.writable() {
            streams.set_urgency(connection, stream, urgency);
        }
    }

    fn send_datagram(&mut self, _: Instant, data: &Bytes) -> Offered {
        // Early data is streams: what a ticket remembers may be of a flow without datagrams.
        let (State::Open, Some((_, connection))) = (self.state, &mut self.connection) else {
            return Offered::Later;
        };
        match connection.datagrams().send(data.clone(), false) {
            Ok(()) => Offered::Taken,
            Err(SendDatagramError::Blocked(_)) => Offered::Later,
            Err(_) => Offered::Refused,
        }
    }

    fn poll_datagram(&mut self) -> Option<Bytes> {
        let (_, connection) = self.connection.as_mut()?;
        connection.datagrams().recv()
    }

    fn update_keys(&mut self, _: Instant) -> bool {
        match (self.state, &mut self.connection) {
            // noq does nothing if the last update is not over, and does not say so.
            (State::Open, Some((_, connection))) if self.confirmed => {
                connection.force_key_update();
                true
            }
            _ => false,
        }
    }

    fn close(&mut self, now: Instant) {
        if self.state == State::Over {
            return;
        }
        self.shut(now, 0);
        self.end(Event::Closed, true);
    }

    fn all_acknowledged(&mut self) -> bool {
        self.streams.all_acknowledged()
    }

    fn is_over(&self) -> bool {
        match &self.connection {
            Some((_, connection)) => connection.is_drained(),
            None => self.state == State::Over,
        }
    }

    fn stats(&mut self) -> Stats {
        let lost = self
            .connection
            .as_mut()
            .map_or(0, |(_, connection)| connection.stats().lost_packets);
        let data = self.observers.meter.total();
        Stats {
            sender: SenderCounters {
                sent_packets: self.observers.report.sent_packets().into(),
                sent_bytes: data.bytes.into(),
                retransmitted_packets: data.repeating_packets.into(),
                lost_packets: lost.into(),
                timeouts: self.probes.timeouts().into(),
                spurious_losses: self.observers.report.spurious().into(),
                ..SenderCounters::UNKNOWN
            },
            ce_marks: self.ce_marks,
            sent_datagrams: self.sent_datagrams,
            sent_datagram_bytes: self.sent_datagram_bytes,
        }
    }

    fn buffered(&mut self) -> Option<u64> {
        Some(self.streams.buffered())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.observers.report.first_path().snapshot()
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.observers.report.first_path().take_rtt_sample()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.observers.report.poll_notice()
    }

    fn record_notices(&mut self) {
        self.observers.report.record_notices();
    }

    fn poll_secret(&mut self) -> Option<String> {
        self.observers.secrets.as_ref()?.pop()
    }

    fn migrate(&mut self, now: Instant, local: SocketAddr) {
        let rebound = self.local.ip() == local.ip();
        self.local = local;
        if rebound {
            return; // a client does not notice a NAT rebinding
        }
        self.run(now, |s| {
            let at = s.time.to_std(s.now);
            if let Some((_, connection)) = &mut s.connection {
                connection.handle_network_change(None, at);
            }
        });
        self.observers
            .report
            .notice("path", || format!("moved to {local}"));
    }

    fn open_path(&mut self, now: Instant, local: IpAddr, remote: SocketAddr) {
        let path = FourTuple::new(remote, Some(local));
        self.paths.wanted.push(path);
        self.run(now, Self::open_wanted_paths);
    }

    fn paths(&mut self) -> Vec<PathSnapshot> {
        self.path_snapshots()
    }

    fn take_path_rtt_samples(&mut self) -> Vec<(u32, Duration)> {
        let of = |k: &paths::Known| Some((k.number, k.report.take_rtt_sample()?));
        self.paths.known.iter().filter_map(of).collect()
    }
}

/// The datagram that noq has written. A full one keeps its buffer, since copying it costs more than the next buffer,
/// which noq allocates in the right size; a short one is copied, since it would keep memory for a full one.
fn take_datagram(written: &mut Vec<u8>) -> BytesMut {
    if written.len() > written.capacity() / 2 {
        BytesMut::from(Bytes::from(std::mem::take(written)))
    } else {
        BytesMut::from(&written[..])
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("side", &self.side)
            .field("local", &self.local)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_datagram_keeps_its_buffer_and_a_short_one_leaves_it() {
        let mut written = vec![7; 1200];
        let at = written.as_ptr();
        let datagram = take_datagram(&mut written);
        assert_eq!((&datagram[..], datagram.as_ptr()), (&[7; 1200][..], at));
        assert_eq!(written.capacity(), 0);

        let mut written = Vec::with_capacity(1200);
        written.extend_from_slice(&[1, 2, 3]);
        let datagram = take_datagram(&mut written);
        assert_eq!(datagram[..], [1, 2, 3]);
        assert!(written.capacity() >= 1200 && datagram.capacity() < 1200);
    }
}

//! quiche, with BoringSSL, as a stack of Gargalo.
//!
//! quiche and BoringSSL read the clock themselves: their `clock_gettime` is the library's own, which tells virtual
//! time. BoringSSL's random numbers are those of the host (`stacks/common/src/boringssl.rs`).

mod server;
mod settings;

use std::io::LineWriter;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gargalo_plugin::stack::abi::feature::{
    CANCEL, DATAGRAMS, INITIAL_WINDOW, MIGRATION, MTU_DISCOVERY, NO_PACING, QLOG, RETRY, UNIDIRECTIONAL, URGENCY,
    ZERO_RTT,
};
use gargalo_plugin::stack::{About, CANCELLED, Config, EarlyData, Event, Offered, Path, Stack, Stats, host};
use gargalo_stack_common::qlog::Watched;
use quiche::{Connection, ConnectionError, ConnectionId, PathEvent, RecvInfo, Shutdown};

use server::Server;

gargalo_plugin::virtual_clock!();

/// Length of connection IDs.
const ID: usize = 8;
/// BoringSSL's `ssl_early_data_accepted`.
const EARLY_DATA_ACCEPTED: u32 = 2;

struct Quiche {
    server: Option<Server>,
    connection: Option<Connection>,
    start: Instant,
    local: SocketAddr,
    phase: Phase,
    early: bool,
    /// Streams that were opened here, of both directions and of one.
    streams: [u64; 2],
    /// Pacing has held a packet back until then.
    paced: Option<Instant>,
    /// Room for stream data that has arrived.
    piece: Box<[u8]>,
}

/// The state of the congestion control, which quiche tells in its qlog only.
type Phase = Arc<Mutex<Option<String>>>;

fn watch(phase: &Phase, line: &str) {
    if let Some((_, event)) = line.split_once("congestion_state_updated")
        && let Some(word) = event.split('"').skip_while(|part| *part != "new").nth(2)
    {
        let ours = word.trim_start_matches("bbr_").replace('_', "-");
        *phase.lock().unwrap_or_else(PoisonError::into_inner) = Some(ours);
    }
}

/// A new connection ID.
fn id() -> ConnectionId<'static> {
    ConnectionId::from_vec(host::random_array::<ID>().to_vec())
}

impl Quiche {
    fn begin(&mut self, mut connection: Connection) {
        connection.set_keylog(Box::new(host::KeyLogFile));
        let phase = Arc::clone(&self.phase);
        let log = LineWriter::new(Watched(move |line: &str| watch(&phase, line)));
        connection.set_qlog(Box::new(log), "gargalo".into(), String::new());
        self.connection = Some(connection);
    }

    /// Opens a stream of both directions (0) or of one (1).
    fn open(&mut self, kind: usize) -> Option<u64> {
        let connection = self.connection.as_mut()?;
        let left = [connection.peer_streams_left_bidi(), connection.peer_streams_left_uni()][kind];
        let stream = self.streams[kind] * 4 + kind as u64 * 2 + u64::from(connection.is_server());
        if left == 0 {
            return None;
        }
        // The stream exists from its first write.
        connection.stream_send(stream, &[], false).ok()?;
        self.streams[kind] += 1;
        Some(stream)
    }

    /// Passes on what a call has changed.
    fn report(&mut self) {
        let Some(c) = &mut self.connection else { return };
        if !c.is_server() && c.is_in_early_data() {
            self.early = true;
            host::event(Event::Early);
        }
        if c.is_established() {
            host::event(Event::Connected(match c.early_data_reason() {
                EARLY_DATA_ACCEPTED => EarlyData::Accepted,
                _ if self.early => EarlyData::Resent,
                _ => EarlyData::None,
            }));
        }
        let token = || u128::from_be_bytes(host::random_array());
        while c.is_established() && c.scids_left() > 0 && c.new_scid(&id(), token(), false).is_ok() {}
        while let Some(stream) = c.stream_readable_next() {
            loop {
                match c.stream_recv(stream, &mut self.piece) {
                    Ok((length, fin)) => host::received(stream, &self.piece[..length], fin),
                    Err(quiche::Error::StreamReset(_)) => break host::reset(stream),
                    // Nothing more has arrived, or the stream has ended.
                    Err(_) => break,
                }
            }
        }
        // quiche forgets a stream that the peer has stopped when it is asked for its room.
        while let Some(stream) = c.stream_writable_next() {
            if let Err(quiche::Error::StreamStopped(_)) = c.stream_capacity(stream) {
                host::stopped(stream);
            }
        }
        while let Ok(length) = c.dgram_recv(&mut self.piece) {
            host::datagram(&self.piece[..length]);
        }
        while let Some(event) = c.path_event_next() {
            if let PathEvent::New(local, remote) = event {
                // A server validates the new address of a client.
                let _ = c.probe_path(local, remote);
            }
        }
        if let Some(session) = c.session() {
            host::session(session);
        }
        match c.peer_error().or(c.local_error()) {
            _ if c.is_timed_out() => host::event(Event::Failed("timed out")),
            Some(ConnectionError { error_code: 0, .. }) => host::event(Event::Closed),
            Some(ConnectionError { error_code, reason, is_app }) => {
                let (kind, why) = (if *is_app { "application" } else { "transport" }, String::from_utf8_lossy(reason));
                host::event(Event::Failed(&format!("{kind} error {error_code:#x} {why}")));
            }
            None if c.is_closed() => host::event(Event::Failed("the connection was lost")),
            None => {}
        }
    }
}

impl Stack for Quiche {
    const ABOUT: About = About {
        name: "quiche",
        version: "0.30.0",
        features: ZERO_RTT
            | RETRY
            | MIGRATION
            | QLOG
            | NO_PACING
            | MTU_DISCOVERY
            | INITIAL_WINDOW
            | UNIDIRECTIONAL
            | DATAGRAMS
            | CANCEL
            | URGENCY,
        congestion: &["cubic", "reno", "bbr2"],
        specifications: &["", "", "bbr2"],
        tells_unacknowledged: false,
    };

    fn prepare() {
        // BoringSSL prepares itself with its first random number.
        let _ = boring::rand::rand_bytes(&mut [0]);
    }

    fn create(asked: &Config<'_>, now: Duration) -> Result<Self, String> {
        let mut config = settings::config(asked).map_err(|e| e.to_string())?;
        let mut quiche = Self {
            server: None,
            connection: None,
            start: Instant::now() - now,
            local: asked.local,
            phase: Phase::default(),
            early: false,
            streams: [0; 2],
            paced: None,
            piece: vec![0; 1 << 16].into(),
        };
        if !asked.is_server {
            let made = quiche::connect(Some(asked.server_name), &id(), asked.local, asked.remote, &mut config);
            let mut connection = made.map_err(|e| e.to_string())?;
            if asked.early_data && !asked.session.is_empty() {
                connection.set_session(asked.session).map_err(|e| format!("the session is not valid: {e}"))?;
            }
            quiche.begin(connection);
            // quiche knows of early data only after its first flight.
            let mut out = vec![0; asked.max_datagram_size.into()];
            while let Some((length, path)) = quiche.datagram_out(now, &mut out) {
                host::send(&path, &out[..length]);
            }
        }
        quiche.server = asked.is_server.then(|| Server::new(config, asked));
        Ok(quiche)
    }

    fn datagram_in(&mut self, _now: Duration, path: &Path, data: &mut [u8]) {
        if self.connection.is_none() {
            let made = self.server.as_mut().and_then(|server| server.first(data, path));
            made.into_iter().for_each(|connection| self.begin(connection));
        }
        let info = RecvInfo { from: path.remote, to: path.local };
        // Errors that end the connection are its `local_error`.
        let _ = self.connection.as_mut().map(|c| c.recv(data, info));
        self.report();
    }

    fn datagram_out(&mut self, _now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        let connection = self.connection.as_mut()?;
        let release = connection.get_next_release_time().filter(|r| !r.can_burst());
        self.paced = release.and_then(|r| r.time(Instant::now()));
        if self.paced.is_some() {
            return None;
        }
        let sent = connection.send(out);
        self.report();
        let (length, info) = sent.ok()?;
        Some((length, Path { local: info.from, remote: info.to, ecn: 0 }))
    }

    fn next_timer(&mut self) -> Option<Duration> {
        let at = self.connection.as_ref()?.timeout_instant().into_iter().chain(self.paced).min()?;
        Some(at.saturating_duration_since(self.start))
    }

    fn timeout(&mut self, _now: Duration) {
        self.connection.iter_mut().for_each(Connection::on_timeout);
        self.report();
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        self.open(0)
    }

    fn write(&mut self, _now: Duration, stream: u64, data: &[u8], fin: bool) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        let taken = connection.stream_send(stream, data, fin);
        if let Err(quiche::Error::StreamStopped(_)) = taken {
            host::stopped(stream);
        }
        taken.unwrap_or(0)
    }

    fn open_unidirectional_stream(&mut self, _now: Duration) -> Option<u64> {
        self.open(1)
    }

    fn send_datagram(&mut self, _now: Duration, data: &[u8]) -> Offered {
        match self.connection.as_mut().map_or(Err(quiche::Error::Done), |c| c.dgram_send(data)) {
            Ok(()) => Offered::Taken,
            Err(quiche::Error::Done) => Offered::Later,
            Err(_) => Offered::Refused,
        }
    }

    // Each of these three fails if the stream has ended.
    fn reset_stream(&mut self, _now: Duration, stream: u64) {
        let _ = self.connection.as_mut().map(|c| c.stream_shutdown(stream, Shutdown::Write, CANCELLED.into()));
    }

    fn stop_sending(&mut self, _now: Duration, stream: u64) {
        let _ = self.connection.as_mut().map(|c| c.stream_shutdown(stream, Shutdown::Read, CANCELLED.into()));
    }

    fn set_urgency(&mut self, _now: Duration, stream: u64, urgency: u8) {
        let _ = self.connection.as_mut().map(|c| c.stream_priority(stream, urgency, true));
    }

    fn migrate(&mut self, _now: Duration, local: SocketAddr) {
        self.local = local;
        let Some(c) = &mut self.connection else { return };
        let remote = c.path_stats().find(|path| path.active).map_or(local, |path| path.peer_addr);
        if let Err(e) = c.probe_path(local, remote).and_then(|_| c.migrate_source(local)) {
            host::notice("migration", &format!("failed: {e}"));
        }
    }

    fn close(&mut self, _now: Duration) {
        // An error says that it is closed already.
        let _ = self.connection.as_mut().map(|c| c.close(true, 0, b""));
        self.server = None;
        host::event(Event::Closed);
    }

    fn is_over(&mut self) -> bool {
        self.connection.as_ref().map_or(self.server.is_none(), Connection::is_closed)
    }

    fn stats(&mut self) -> Stats {
        let Some(connection) = &self.connection else { return Stats::default() };
        let (told, path) = (connection.stats(), connection.path_stats().find(|path| path.active));
        let count = |n: usize| Some(n as u64);
        Stats {
            retransmitted_packets: count(told.retrans),
            lost_packets: count(told.lost),
            spurious: count(told.spurious_lost),
            timeouts: path.as_ref().and_then(|p| count(p.total_pto_count)),
            cwnd: path.as_ref().and_then(|p| count(p.cwnd)),
            srtt: path.as_ref().filter(|p| p.min_rtt.is_some()).map(|p| p.rtt),
            phase: self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            delivery_rate: path.filter(|p| p.delivery_rate > 0).map(|p| p.delivery_rate * 8),
            ..Stats::default()
        }
    }
}

gargalo_plugin::export_stack!(Quiche);

//! quiche, with BoringSSL, as a stack of Gargalo.
//!
//! quiche and BoringSSL read the clock themselves: their `clock_gettime` is the library's own, which tells virtual time.

mod entropy;

use std::collections::VecDeque;
use std::error::Error;
use std::io::{LineWriter, Result as IoResult, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm};
use boring::x509::X509;
use gargalo_plugin::stack::abi::feature::{INITIAL_WINDOW, MIGRATION, MTU_DISCOVERY, NO_PACING, QLOG, RETRY, ZERO_RTT};
use gargalo_plugin::stack::{About, Config, EarlyData, Event, Path, Stack, Stats, host};
use quiche::{Connection, ConnectionError, ConnectionId, Header, PathEvent, RecvInfo, Type};

gargalo_plugin::virtual_clock!();

/// Length of connection IDs.
const ID: usize = 8;
/// BoringSSL's `ssl_early_data_accepted`.
const EARLY_DATA_ACCEPTED: u32 = 2;

struct Quiche {
    config: quiche::Config,
    connection: Option<Connection>,
    start: Instant,
    local: SocketAddr,
    /// A server that has to validate the client's address, and the Retry that it has sent.
    must_retry: bool,
    retry: Option<Retry>,
    log: bool,
    secrets: bool,
    early: bool,
    connected: bool,
    ended: bool,
    streams: u64,
    /// Pacing has held a packet back until then.
    paced: Option<Instant>,
    session: Vec<u8>,
    answers: VecDeque<(Vec<u8>, SocketAddr)>,
}

struct Retry {
    token: [u8; 32],
    client_chose: ConnectionId<'static>,
    server_chose: ConnectionId<'static>,
}

fn random<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    assert!(host::random(&mut out));
    out
}

fn id() -> ConnectionId<'static> {
    ConnectionId::from_vec(random::<ID>().to_vec())
}

struct KeyLog;

impl Write for KeyLog {
    fn write(&mut self, data: &[u8]) -> IoResult<usize> {
        String::from_utf8_lossy(data).lines().for_each(host::secret);
        Ok(data.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

fn config(asked: &Config<'_>) -> Result<quiche::Config, Box<dyn Error>> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    let certificate = X509::from_der(asked.certificate)?;
    if asked.is_server {
        tls.set_certificate(&certificate)?;
        tls.set_private_key(&*PKey::private_key_from_pkcs8(asked.private_key)?)?;
    } else {
        tls.cert_store_mut().add_cert(&certificate)?;
        tls.set_verify_algorithm_prefs(&[SslSignatureAlgorithm::ED25519])?;
    }
    let mut c = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    c.verify_peer(!asked.is_server);
    c.set_application_protos(&[asked.alpn.as_bytes()])?;
    c.set_cc_algorithm_name(asked.congestion)?;
    let packets = asked.initial_window / u64::from(asked.datagram_size);
    c.set_initial_congestion_window_packets(usize::try_from(packets.max(1))?);
    c.set_initial_rtt(asked.initial_rtt);
    c.set_max_idle_timeout(u64::try_from(asked.idle_timeout.as_millis())?);
    c.set_initial_max_streams_bidi(asked.max_streams);
    c.set_initial_max_data(asked.connection_window);
    c.set_max_connection_window(asked.connection_window);
    c.set_initial_max_stream_data_bidi_local(asked.stream_window);
    c.set_initial_max_stream_data_bidi_remote(asked.stream_window);
    c.set_max_stream_window(asked.stream_window);
    c.set_max_recv_udp_payload_size(65527);
    c.set_max_send_udp_payload_size(asked.max_datagram_size.into());
    c.discover_pmtu(asked.max_datagram_size > asked.datagram_size);
    c.enable_pacing(asked.pacing);
    if asked.is_server {
        c.set_ticket_key(asked.ticket_key.get(..48).ok_or("the ticket key is too short")?)?;
    }
    if asked.early_data {
        c.enable_early_data();
    }
    if asked.secrets {
        c.log_keys();
    }
    Ok(c)
}

impl Quiche {
    fn begin(&mut self, mut connection: Connection) {
        if self.secrets {
            connection.set_keylog(Box::new(KeyLog));
        }
        if self.log {
            connection.set_qlog(Box::new(LineWriter::new(host::QlogFile)), "gargalo".into(), String::new());
        }
        self.connection = Some(connection);
    }

    /// The first datagram of a client, or one of no connection.
    fn accept(&mut self, header: &Header<'_>, remote: SocketAddr) -> Result<(), quiche::Error> {
        let mut answer = vec![0; 1500];
        if header.ty != Type::Initial || self.ended {
            return Ok(());
        }
        if !quiche::version_is_supported(header.version) {
            let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut answer)?;
            answer.truncate(length);
            self.answers.push_back((answer, remote));
            return Ok(());
        }
        let (mut own, mut original) = (id(), None);
        if self.must_retry {
            let token = header.token.as_deref().unwrap_or_default();
            match &self.retry {
                Some(sent) if token == sent.token && header.dcid == sent.server_chose => {
                    (own, original) = (sent.server_chose.clone(), Some(sent.client_chose.clone()));
                }
                // A client whose first flight has several datagrams gets the same answer to each.
                Some(sent) if header.dcid != sent.client_chose => return Ok(()),
                _ => {
                    let client_chose = ConnectionId::from_vec(header.dcid.to_vec());
                    let server_chose = own;
                    let sent = self.retry.get_or_insert_with(|| Retry { token: random(), client_chose, server_chose });
                    let (token, version) = (&sent.token, header.version);
                    let length =
                        quiche::retry(&header.scid, &header.dcid, &sent.server_chose, token, version, &mut answer)?;
                    answer.truncate(length);
                    self.answers.push_back((answer, remote));
                    return Ok(());
                }
            }
        }
        let connection = quiche::accept(&own, original.as_ref(), self.local, remote, &mut self.config)?;
        self.begin(connection);
        Ok(())
    }

    /// Passes on what a call has changed.
    fn report(&mut self) {
        let Some(c) = &mut self.connection else { return };
        if !c.is_server() && !self.early && !self.connected && c.is_in_early_data() {
            self.early = true;
            host::event(Event::Early);
        }
        if !self.connected && c.is_established() {
            self.connected = true;
            let early = match c.early_data_reason() {
                EARLY_DATA_ACCEPTED => EarlyData::Accepted,
                _ if self.early => EarlyData::Rejected,
                _ => EarlyData::None,
            };
            host::event(Event::Connected(early));
        }
        while self.connected && c.scids_left() > 0 {
            if c.new_scid(&id(), u128::from_be_bytes(random()), false).is_err() {
                break;
            }
        }
        let mut piece = [0; 1 << 16];
        while let Some(stream) = c.stream_readable_next() {
            loop {
                match c.stream_recv(stream, &mut piece) {
                    Ok((length, fin)) => host::received(stream, &piece[..length], fin),
                    Err(quiche::Error::StreamReset(_)) => {
                        break host::event(Event::Failed("the peer has reset a stream"));
                    }
                    Err(_) => break,
                }
                if c.stream_finished(stream) {
                    break;
                }
            }
        }
        while let Some(event) = c.path_event_next() {
            if let PathEvent::New(local, remote) = event {
                // A server validates the new address of a client.
                let _ = c.probe_path(local, remote);
            }
        }
        if let Some(session) = c.session().filter(|s| *s != self.session) {
            self.session = session.to_vec();
            host::session(session);
        }
        let error = c.peer_error().or(c.local_error());
        if !self.ended && (c.is_timed_out() || c.is_closed() || error.is_some()) {
            self.ended = true;
            match error {
                _ if c.is_timed_out() => host::event(Event::Failed("timed out")),
                Some(ConnectionError { error_code: 0, .. }) => host::event(Event::Closed),
                Some(e) => {
                    let (kind, reason) = (if e.is_app { "application" } else { "transport" }, &e.reason);
                    let reason = String::from_utf8_lossy(reason);
                    host::event(Event::Failed(&format!("{kind} error {:#x} {reason}", e.error_code)));
                }
                None => host::event(Event::Failed("the connection was lost")),
            }
        }
    }
}

impl Stack for Quiche {
    const ABOUT: About = About {
        name: "quiche",
        version: "0.30.0",
        features: ZERO_RTT | RETRY | MIGRATION | QLOG | NO_PACING | MTU_DISCOVERY | INITIAL_WINDOW,
        congestion: &["cubic", "reno", "bbr2"],
        tells_unacknowledged: false,
    };

    fn prepare() {
        // BoringSSL prepares itself with its first random number.
        let _ = boring::rand::rand_bytes(&mut [0]);
    }

    fn create(asked: &Config<'_>, now: Duration) -> Result<Self, String> {
        let mut quiche = Self {
            config: config(asked).map_err(|e| e.to_string())?,
            connection: None,
            start: Instant::now() - now,
            local: asked.local,
            must_retry: asked.retry,
            retry: None,
            log: asked.qlog,
            secrets: asked.secrets,
            early: false,
            connected: false,
            ended: false,
            streams: 0,
            paced: None,
            session: Vec::new(),
            answers: VecDeque::new(),
        };
        let mut flight = VecDeque::new();
        if !asked.is_server {
            let name = Some(asked.server_name);
            let connection = quiche::connect(name, &id(), asked.local, asked.remote, &mut quiche.config);
            let mut connection = connection.map_err(|e| e.to_string())?;
            if asked.early_data && !asked.session.is_empty() {
                connection.set_session(asked.session).map_err(|e| format!("the session is not valid: {e}"))?;
            }
            quiche.begin(connection);
            // quiche knows of early data only after its first flight.
            let mut out = vec![0; asked.max_datagram_size.into()];
            while let Some((length, path)) = quiche.datagram_out(now, &mut out) {
                flight.push_back((out[..length].to_vec(), path.remote));
            }
        }
        quiche.answers = flight;
        Ok(quiche)
    }

    fn datagram_in(&mut self, _now: Duration, path: &Path, data: &mut [u8]) {
        if self.connection.is_none() {
            let Ok(header) = Header::from_slice(data, ID) else { return };
            if let Err(e) = self.accept(&header, path.remote) {
                host::notice("refused", &e.to_string());
            }
        }
        if let Some(connection) = &mut self.connection {
            // Errors that end the connection are its `local_error`.
            let _ = connection.recv(data, RecvInfo { from: path.remote, to: path.local });
        }
        self.report();
    }

    fn datagram_out(&mut self, _now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        if let Some((answer, remote)) = self.answers.pop_front() {
            out.get_mut(..answer.len())?.copy_from_slice(&answer);
            return Some((answer.len(), Path { local: self.local, remote, ecn: 0 }));
        }
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
        let timer = self.connection.as_ref()?.timeout_instant();
        let at = timer.into_iter().chain(self.paced).min()?;
        Some(at.saturating_duration_since(self.start))
    }

    fn timeout(&mut self, _now: Duration) {
        if let Some(connection) = &mut self.connection {
            connection.on_timeout();
        }
        self.report();
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        let connection = self.connection.as_mut().filter(|c| c.peer_streams_left_bidi() > 0)?;
        let stream = self.streams * 4 + u64::from(connection.is_server());
        // The stream exists from its first write.
        connection.stream_send(stream, &[], false).ok()?;
        self.streams += 1;
        Some(stream)
    }

    fn write(&mut self, _now: Duration, stream: u64, data: &[u8], fin: bool) -> usize {
        let connection = self.connection.as_mut();
        connection.and_then(|c| c.stream_send(stream, data, fin).ok()).unwrap_or(0)
    }

    fn write_room(&mut self, stream: u64) -> usize {
        let connection = self.connection.as_mut();
        connection.and_then(|c| c.stream_capacity(stream).ok()).unwrap_or(0)
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
        if let Some(connection) = &mut self.connection {
            // An error says that it is closed already.
            let _ = connection.close(true, 0, b"");
        }
        if !std::mem::replace(&mut self.ended, true) {
            host::event(Event::Closed);
        }
    }

    fn is_over(&mut self) -> bool {
        self.connection.as_ref().map_or(self.ended, Connection::is_closed)
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
            delivery_rate: path.filter(|p| p.delivery_rate > 0).map(|p| p.delivery_rate * 8),
            ..Stats::default()
        }
    }
}

gargalo_plugin::export_stack!(Quiche);

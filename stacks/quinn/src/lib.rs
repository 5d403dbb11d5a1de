//! quinn-proto, the QUIC implementation of the Rust crate `quinn`, as a stack of Gargalo.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf, Bytes, BytesMut};
use gargalo_plugin::stack::abi::feature::{ECN, INITIAL_WINDOW, MIGRATION, MTU_DISCOVERY, QLOG, RETRY, ZERO_RTT};
use gargalo_plugin::stack::{About, CALENDAR_START, Config, EarlyData, Event, Path, Stack, Stats, host};
use gargalo_stack_common::{rustls as tls, thread};
use quinn_proto::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, EndpointConfig, IdleTimeout, Incoming, MtuDiscoveryConfig, QlogConfig, ReadError,
    ServerConfig, StreamEvent, StreamId, TimeSource, Transmit, TransportConfig, TransportErrorCode, VarInt,
};
use ring::{hkdf, hmac};

/// Bytes of a stream that wait for room in quinn's send buffer: quinn tells of no room in advance.
const WAITING: usize = 64 << 10;

struct Quinn {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// quinn takes time as an argument; only differences matter.
    start: Instant,
    local: SocketAddr,
    ecn: bool,
    retry: bool,
    early: bool,
    connected: bool,
    over: bool,
    streams: BTreeMap<StreamId, Stream>,
    /// Datagrams that are of no connection.
    answers: Vec<(Vec<u8>, SocketAddr)>,
    scratch: Vec<u8>,
}

/// What has been written to a stream.
#[derive(Default)]
struct Stream {
    waiting: BytesMut,
    fin: bool,
    /// Early data, to be sent again if the server rejects it.
    early: BytesMut,
}

/// quinn's BBR seeds itself from the generator of the thread.
struct Bbr(BbrConfig);

impl ControllerFactory for Bbr {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let config = Arc::new(self.0.clone());
        thread::seeded(move || config.build(now, mtu))
    }
}

fn congestion(name: &str, window: u64) -> Arc<dyn ControllerFactory + Send + Sync> {
    match name {
        "newreno" => Arc::new(NewRenoConfig::default().initial_window(window).clone()),
        "bbr" => Arc::new(Bbr(BbrConfig::default().initial_window(window).clone())),
        _ => Arc::new(CubicConfig::default().initial_window(window).clone()),
    }
}

/// Calendar time for tokens.
struct Calendar;

impl TimeSource for Calendar {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + CALENDAR_START + host::now().unwrap_or_default()
    }
}

struct Cids;

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; 8];
        assert!(host::random(&mut id));
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

fn transport(asked: &Config<'_>, start: Instant) -> Result<TransportConfig, String> {
    let text = |e: quinn_proto::VarIntBoundsExceeded| e.to_string();
    let varint = |n: u64| VarInt::from_u64(n).map_err(text);
    let mut t = TransportConfig::default();
    t.initial_mtu(asked.datagram_size)
        .stream_receive_window(varint(asked.stream_window)?)
        .receive_window(varint(asked.connection_window)?)
        .send_window(asked.send_window)
        .initial_rtt(asked.initial_rtt)
        .max_concurrent_bidi_streams(varint(asked.max_streams)?)
        .max_idle_timeout(Some(IdleTimeout::try_from(asked.idle_timeout).map_err(text)?))
        .congestion_controller_factory(congestion(asked.congestion, asked.initial_window))
        .enable_segmentation_offload(false);
    if asked.max_datagram_size > asked.datagram_size {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(asked.max_datagram_size);
        t.mtu_discovery_config(Some(discovery));
    } else {
        // A suspected black hole must not change the size either.
        t.mtu_discovery_config(None).min_mtu(asked.datagram_size);
    }
    if asked.qlog {
        let mut qlog = QlogConfig::default();
        qlog.writer(Box::new(host::QlogFile)).start_time(start);
        t.qlog_stream(qlog.into_stream());
    }
    Ok(t)
}

impl Quinn {
    fn take_events(&mut self) {
        let Some((handle, mut connection)) = self.connection.take() else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::Connected => self.on_connected(&mut connection),
                quinn_proto::Event::ConnectionLost { reason } => self.end(&reason),
                quinn_proto::Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.read(&mut connection, id);
                    }
                }
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => self.read(&mut connection, id),
                quinn_proto::Event::Stream(StreamEvent::Finished { id }) => {
                    self.streams.remove(&id);
                }
                _ => {}
            }
        }
        for (id, stream) in &mut self.streams {
            stream.flush(&mut connection, *id);
        }
        self.connection = Some((handle, connection));
    }

    fn on_connected(&mut self, connection: &mut Connection) {
        let accepted = connection.side().is_server() || connection.accepted_0rtt();
        if self.early && !accepted {
            // quinn has forgotten the streams; they get the same numbers again.
            for stream in self.streams.values_mut() {
                let _ = connection.streams().open(Dir::Bi);
                stream.waiting = std::mem::take(&mut stream.early);
            }
        }
        self.connected = true;
        self.streams.values_mut().for_each(|s| s.early.clear());
        host::event(Event::Connected(match (self.early, accepted) {
            (false, _) => EarlyData::None,
            (true, true) => EarlyData::Accepted,
            (true, false) => EarlyData::Rejected,
        }));
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => host::received(id.into(), &chunk.bytes, false),
                Ok(None) => break host::received(id.into(), &[], true),
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => break host::event(Event::Failed("the peer has reset a stream")),
            }
        }
        let _ = chunks.finalize();
    }

    fn end(&mut self, reason: &ConnectionError) {
        let in_order = match reason {
            ConnectionError::ApplicationClosed(close) => close.error_code == VarInt::from_u32(0),
            ConnectionError::ConnectionClosed(close) => close.error_code == TransportErrorCode::NO_ERROR,
            other => *other == ConnectionError::LocallyClosed,
        };
        if !std::mem::replace(&mut self.over, true) {
            let why = reason.to_string();
            host::event(if in_order { Event::Closed } else { Event::Failed(&why) });
        }
    }

    fn on_incoming(&mut self, incoming: Incoming, at: Instant) {
        if self.connection.is_some() || self.over {
            return self.endpoint.ignore(incoming);
        }
        let mut out = Vec::new();
        if self.retry && !incoming.remote_address_validated() {
            let retry = self.endpoint.retry(incoming, &mut out).expect("a first Initial may be retried");
            return self.answers.push((out, retry.destination));
        }
        match self.endpoint.accept(incoming, at, &mut out, None) {
            Ok((handle, connection)) => {
                self.early = connection.has_0rtt();
                self.connection = Some((handle, connection));
            }
            Err(e) => self.answers.extend(e.response.map(|answer| (out, answer.destination))),
        }
    }

    fn path(&self, remote: SocketAddr, ecn: Option<EcnCodepoint>) -> Path {
        let ecn = ecn.filter(|_| self.ecn).map_or(0, |mark| mark as u8);
        Path { local: self.local, remote, ecn }
    }
}

impl Stream {
    fn flush(&mut self, connection: &mut Connection, id: StreamId) {
        let mut stream = connection.send_stream(id);
        while !self.waiting.is_empty() {
            match stream.write(&self.waiting) {
                Ok(n) => self.waiting.advance(n),
                Err(_) => return,
            }
        }
        if self.fin {
            // Fails if it is done already.
            let _ = stream.finish();
        }
    }
}

impl Stack for Quinn {
    const ABOUT: About = About {
        name: "quinn",
        version: "0.11.19",
        features: ZERO_RTT | RETRY | MIGRATION | ECN | QLOG | MTU_DISCOVERY | INITIAL_WINDOW,
        congestion: &["cubic", "newreno", "bbr"],
        tells_unacknowledged: false,
    };

    fn create(asked: &Config<'_>, now: Duration) -> Result<Self, String> {
        let start = Instant::now();
        let mut secret = [0; 32];
        assert!(host::random(&mut secret));
        let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &secret)));
        config.rng_seed(Some(secret)).cid_generator(|| Box::new(Cids));
        config.max_udp_payload_size(65527).map_err(|e| e.to_string())?;
        let transport = Arc::new(transport(asked, start)?);
        let server = if asked.is_server {
            let tls = tls::server(asked).map_err(|e| e.to_string())?;
            let crypto = QuicServerConfig::try_from(tls).map_err(|e| e.to_string())?;
            let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(asked.ticket_key);
            let mut server = ServerConfig::new(Arc::new(crypto), Arc::new(token_key));
            server.transport_config(transport.clone()).time_source(Arc::new(Calendar));
            Some(Arc::new(server))
        } else {
            None
        };
        let mut quinn = Self {
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            start,
            local: asked.local,
            ecn: asked.ecn,
            retry: asked.retry,
            early: false,
            connected: false,
            over: false,
            streams: BTreeMap::new(),
            answers: Vec::new(),
            scratch: Vec::new(),
        };
        if !asked.is_server {
            let tls = tls::client(asked).map_err(|e| e.to_string())?;
            let crypto = QuicClientConfig::try_from(tls).map_err(|e| e.to_string())?;
            let mut client = ClientConfig::new(Arc::new(crypto));
            client.transport_config(transport).initial_dst_cid_provider(Arc::new(|| Cids.generate_cid()));
            let made = quinn.endpoint.connect(start + now, client, asked.remote, asked.server_name);
            let (handle, connection) = made.map_err(|e| e.to_string())?;
            quinn.early = connection.has_0rtt();
            if quinn.early {
                host::event(Event::Early);
            }
            quinn.connection = Some((handle, connection));
        }
        Ok(quinn)
    }

    fn datagram_in(&mut self, now: Duration, path: &Path, data: &mut [u8]) {
        let (at, data) = (self.start + now, BytesMut::from(&*data));
        let ecn = EcnCodepoint::from_bits(path.ecn).filter(|_| self.ecn);
        self.scratch.clear();
        match self.endpoint.handle(at, path.remote, None, ecn, data, &mut self.scratch) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.on_incoming(incoming, at),
            Some(DatagramEvent::Response(answer)) => {
                self.answers.push((self.scratch.clone(), answer.destination));
            }
            None => {}
        }
        self.take_events();
    }

    fn datagram_out(&mut self, now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        let mut path = None;
        if let Some((data, remote)) = self.answers.pop() {
            self.scratch = data;
            path = Some(self.path(remote, None));
        } else if let Some((_, connection)) = &mut self.connection {
            self.scratch.clear();
            let sent: Transmit = connection.poll_transmit(self.start + now, 1, &mut self.scratch)?;
            path = Some(self.path(sent.destination, sent.ecn));
        }
        out.get_mut(..self.scratch.len())?.copy_from_slice(&self.scratch);
        path.map(|path| (self.scratch.len(), path))
    }

    fn next_timer(&mut self) -> Option<Duration> {
        let (_, connection) = self.connection.as_mut()?;
        Some(connection.poll_timeout()?.saturating_duration_since(self.start))
    }

    fn timeout(&mut self, now: Duration) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.start + now);
        }
        self.take_events();
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        let (_, connection) = self.connection.as_mut()?;
        Some(connection.streams().open(Dir::Bi)?.into())
    }

    fn write(&mut self, _now: Duration, id: u64, data: &[u8], fin: bool) -> usize {
        let Some((_, connection)) = &mut self.connection else { return 0 };
        let id = StreamId::from(VarInt::from_u64(id).unwrap_or(VarInt::MAX));
        let stream = self.streams.entry(id).or_default();
        let taken = data.len().min(WAITING.saturating_sub(stream.waiting.len()));
        stream.waiting.extend_from_slice(&data[..taken]);
        stream.fin |= fin && taken == data.len();
        if self.early && !self.connected {
            stream.early.extend_from_slice(&data[..taken]);
        }
        stream.flush(connection, id);
        taken
    }

    fn write_room(&mut self, id: u64) -> usize {
        let id = StreamId::from(VarInt::from_u64(id).unwrap_or(VarInt::MAX));
        WAITING - self.streams.get(&id).map_or(0, |stream| stream.waiting.len())
    }

    fn migrate(&mut self, _now: Duration, local: SocketAddr) {
        self.local = local;
        if let Some((_, connection)) = &mut self.connection {
            connection.local_address_changed();
        }
    }

    fn close(&mut self, now: Duration) {
        if let Some((_, connection)) = &mut self.connection {
            connection.close(self.start + now, VarInt::from_u32(0), Bytes::new());
        }
        self.end(&ConnectionError::LocallyClosed);
        self.take_events();
    }

    fn is_over(&mut self) -> bool {
        self.connection.as_ref().map_or(self.over, |(_, connection)| connection.is_drained())
    }

    fn stats(&mut self) -> Stats {
        let Some((_, connection)) = &self.connection else { return Stats::default() };
        let (told, control) = (connection.stats(), connection.congestion_state().metrics());
        Stats {
            lost_packets: Some(told.path.lost_packets),
            cwnd: Some(control.congestion_window),
            ssthresh: control.ssthresh.filter(|bytes| *bytes != u64::MAX),
            srtt: (told.frame_rx.acks > 0).then_some(told.path.rtt),
            pacing_rate: control.pacing_rate,
            ..Stats::default()
        }
    }
}

gargalo_plugin::export_stack!(Quinn);

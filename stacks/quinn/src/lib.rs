//! quinn-proto, the QUIC implementation of the Rust crate `quinn`, as a stack of Gargalo.
//!
//! It takes time as an argument, and its random numbers from a seed.

mod settings;

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use gargalo_plugin::stack::abi::feature::{
    CANCEL, DATAGRAMS, ECN, INITIAL_WINDOW, KEY_UPDATE, MIGRATION, MTU_DISCOVERY, QLOG, RETRY, UNIDIRECTIONAL, URGENCY,
    ZERO_RTT,
};
use gargalo_plugin::stack::{About, CANCELLED, Config, EarlyData, Event, Offered, Path, Stack, Stats, host};
use gargalo_stack_common::rustls as tls;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionIdGenerator, DatagramEvent, Dir,
    EcnCodepoint, Endpoint, EndpointConfig, Incoming, ReadError, SendDatagramError, ServerConfig, StreamEvent,
    StreamId, Transmit, TransportErrorCode, VarInt,
};
use ring::{hkdf, hmac};
use settings::{Host, phase, transport};

/// The endpoint's only connection.
const ONLY: ConnectionHandle = ConnectionHandle(0);

struct Quinn {
    endpoint: Endpoint,
    /// Boxed: it is large, and taken out for each datagram.
    connection: Option<Box<Connection>>,
    /// The start of the run; only differences matter.
    start: Instant,
    local: SocketAddr,
    ecn: bool,
    retry: bool,
    early: bool,
    over: bool,
    scratch: Vec<u8>,
}

fn create(asked: &Config<'_>, now: Duration) -> Result<Quinn, Box<dyn Error>> {
    let (start, secret) = (Instant::now(), host::random_array());
    let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &secret)));
    config.rng_seed(Some(secret)).cid_generator(|| Box::new(Host)).max_udp_payload_size(65527)?;
    let (transport, mut server) = (transport(asked, start)?, None);
    if asked.is_server {
        let crypto = QuicServerConfig::try_from(tls::server(asked)?)?;
        let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(asked.ticket_key);
        let mut config = ServerConfig::new(Arc::new(crypto), Arc::new(token_key));
        config.transport_config(transport.clone()).time_source(Arc::new(Host));
        server = Some(Arc::new(config));
    }
    let mut quinn = Quinn {
        endpoint: Endpoint::new(Arc::new(config), server, true, None),
        connection: None,
        start,
        local: asked.local,
        ecn: asked.ecn,
        retry: asked.retry,
        early: false,
        over: false,
        scratch: Vec::new(),
    };
    if !asked.is_server {
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client(asked)?)?));
        config.transport_config(transport).initial_dst_cid_provider(Arc::new(|| Host.generate_cid()));
        let (_, connection) = quinn.endpoint.connect(start + now, config, asked.remote, asked.server_name)?;
        quinn.early = connection.has_0rtt();
        if quinn.early {
            host::event(Event::Early);
        }
        quinn.connection = Some(Box::new(connection));
    }
    Ok(quinn)
}

fn stream(id: u64) -> StreamId {
    VarInt::from_u64(id).unwrap_or(VarInt::MAX).into()
}

fn read(connection: &mut Connection, id: StreamId) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return };
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => host::received(id.into(), &chunk.bytes, false),
            Ok(None) => break host::received(id.into(), &[], true),
            Err(ReadError::Blocked) => break,
            Err(ReadError::Reset(_)) => break host::reset(id.into()),
        }
    }
    let _ = chunks.finalize();
}

impl Quinn {
    fn take_events(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(ONLY, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::Connected => self.on_connected(&connection),
                quinn_proto::Event::ConnectionLost { reason } => self.end(&reason),
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => read(&mut connection, id),
                quinn_proto::Event::Stream(StreamEvent::Stopped { id, .. }) => host::stopped(id.into()),
                quinn_proto::Event::DatagramReceived => {
                    while let Some(data) = connection.datagrams().recv() {
                        host::datagram(&data);
                    }
                }
                quinn_proto::Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        read(&mut connection, id);
                    }
                }
                _ => {}
            }
        }
        self.connection = Some(connection);
    }

    fn on_connected(&self, connection: &Connection) {
        let is_server = connection.side().is_server();
        let early = match is_server || connection.accepted_0rtt() {
            _ if !connection.has_0rtt() && !self.early => EarlyData::None,
            true => EarlyData::Accepted,
            false => EarlyData::Rejected,
        };
        host::event(Event::Connected(early));
    }

    fn end(&mut self, reason: &ConnectionError) {
        let in_order = match reason {
            ConnectionError::ApplicationClosed(close) => close.error_code == VarInt::from_u32(0),
            ConnectionError::ConnectionClosed(close) => close.error_code == TransportErrorCode::NO_ERROR,
            other => *other == ConnectionError::LocallyClosed,
        };
        self.over = true;
        let why = reason.to_string();
        host::event(if in_order { Event::Closed } else { Event::Failed(&why) });
    }

    /// Sends a datagram that is of no connection.
    fn answer(&self, answer: Option<Transmit>, data: &[u8]) {
        if let Some(Transmit { destination: remote, .. }) = answer {
            host::send(&Path { local: self.local, remote, ecn: 0 }, data);
        }
    }

    fn on_incoming(&mut self, incoming: Incoming, at: Instant) {
        let mut out = Vec::new();
        if self.connection.is_some() || self.over {
            self.endpoint.ignore(incoming);
        } else if self.retry && !incoming.remote_address_validated() {
            let answer = self.endpoint.retry(incoming, &mut out).ok();
            self.answer(answer, &out);
        } else {
            match self.endpoint.accept(incoming, at, &mut out, None) {
                Ok((_, connection)) => self.connection = Some(Box::new(connection)),
                Err(e) => self.answer(e.response, &out),
            }
        }
    }
}

impl Stack for Quinn {
    const ABOUT: About = About {
        name: "quinn",
        version: "0.11.19",
        features: ZERO_RTT
            | RETRY
            | MIGRATION
            | ECN
            | QLOG
            | MTU_DISCOVERY
            | INITIAL_WINDOW
            | UNIDIRECTIONAL
            | DATAGRAMS
            | CANCEL
            | URGENCY
            | KEY_UPDATE,
        congestion: &["cubic", "newreno", "bbr"],
        specifications: &["", "", "bbr"],
        tells_unacknowledged: false,
    };

    fn create(asked: &Config<'_>, now: Duration) -> Result<Self, String> {
        create(asked, now).map_err(|e| e.to_string())
    }

    fn datagram_in(&mut self, now: Duration, path: &Path, data: &mut [u8]) {
        let (at, ecn) = (self.start + now, EcnCodepoint::from_bits(path.ecn).filter(|_| self.ecn));
        self.scratch.clear();
        match self.endpoint.handle(at, path.remote, None, ecn, BytesMut::from(&*data), &mut self.scratch) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.on_incoming(incoming, at),
            Some(DatagramEvent::Response(answer)) => self.answer(Some(answer), &self.scratch),
            None => {}
        }
        self.take_events();
    }

    fn datagram_out(&mut self, now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        self.scratch.clear();
        let sent = self.connection.as_mut()?.poll_transmit(self.start + now, 1, &mut self.scratch)?;
        let ecn = sent.ecn.filter(|_| self.ecn).map_or(0, |mark| mark as u8);
        out.get_mut(..self.scratch.len())?.copy_from_slice(&self.scratch);
        Some((self.scratch.len(), Path { local: self.local, remote: sent.destination, ecn }))
    }

    fn next_timer(&mut self) -> Option<Duration> {
        Some(self.connection.as_mut()?.poll_timeout()?.saturating_duration_since(self.start))
    }

    fn timeout(&mut self, now: Duration) {
        self.connection.iter_mut().for_each(|c| c.handle_timeout(self.start + now));
        self.take_events();
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        Some(self.connection.as_mut()?.streams().open(Dir::Bi)?.into())
    }

    fn write(&mut self, _now: Duration, id: u64, data: &[u8], fin: bool) -> usize {
        let Some(connection) = &mut self.connection else { return 0 };
        let mut stream = connection.send_stream(stream(id));
        if fin {
            // It fails if the peer has stopped the stream.
            let _ = stream.finish();
        }
        stream.write(data).unwrap_or(0)
    }

    fn open_unidirectional_stream(&mut self, _now: Duration) -> Option<u64> {
        Some(self.connection.as_mut()?.streams().open(Dir::Uni)?.into())
    }

    fn send_datagram(&mut self, _now: Duration, data: &[u8]) -> Offered {
        let Some(connection) = &mut self.connection else { return Offered::Later };
        match connection.datagrams().send(Bytes::copy_from_slice(data), false) {
            Ok(()) => Offered::Taken,
            Err(SendDatagramError::Blocked(_)) => Offered::Later,
            Err(_) => Offered::Refused,
        }
    }

    // Each of these three fails if the stream has ended.
    fn reset_stream(&mut self, _now: Duration, id: u64) {
        self.connection.iter_mut().for_each(|c| drop(c.send_stream(stream(id)).reset(CANCELLED.into())));
    }

    fn stop_sending(&mut self, _now: Duration, id: u64) {
        self.connection.iter_mut().for_each(|c| drop(c.recv_stream(stream(id)).stop(CANCELLED.into())));
    }

    fn set_urgency(&mut self, _now: Duration, id: u64, urgency: u8) {
        let priority = -i32::from(urgency);
        self.connection.iter_mut().for_each(|c| drop(c.send_stream(stream(id)).set_priority(priority)));
    }

    fn update_keys(&mut self, _now: Duration) -> bool {
        // Not before the handshake is confirmed (RFC 9001 §6.1), which quinn leaves to its user.
        let confirmed = |c: &&mut Connection| c.stats().frame_rx.handshake_done > 0;
        let connection = self.connection.as_deref_mut().filter(confirmed);
        connection.map(Connection::force_key_update).is_some()
    }

    fn migrate(&mut self, _now: Duration, local: SocketAddr) {
        self.local = local;
        self.connection.iter_mut().for_each(|c| c.local_address_changed());
    }

    fn close(&mut self, now: Duration) {
        let at = self.start + now;
        self.connection.iter_mut().for_each(|c| c.close(at, VarInt::from_u32(0), Bytes::new()));
        self.end(&ConnectionError::LocallyClosed);
        self.take_events();
    }

    fn is_over(&mut self) -> bool {
        self.connection.as_deref().map_or(self.over, Connection::is_drained)
    }

    fn stats(&mut self) -> Stats {
        let Some(connection) = &self.connection else { return Stats::default() };
        let (told, control) = (connection.stats(), connection.congestion_state());
        let (phase, control) = (phase(control), control.metrics());
        Stats {
            lost_packets: Some(told.path.lost_packets),
            cwnd: Some(control.congestion_window),
            ssthresh: control.ssthresh.filter(|bytes| *bytes != u64::MAX),
            srtt: (told.frame_rx.acks > 0).then_some(told.path.rtt),
            pacing_rate: control.pacing_rate,
            phase,
            ..Stats::default()
        }
    }
}

gargalo_plugin::export_stack!(Quinn);

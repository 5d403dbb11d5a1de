//! Conversion of our options to noq's.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig,
    IdleTimeout, MtuDiscoveryConfig, ServerConfig, Side, TransportConfig, ValidationTokenConfig,
    VarInt,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::config::{INITIAL_RTT, MAX_STREAMS};
use crate::controller::{Factory, Report};
use crate::crypto::{Meter, Treatment};
use crate::qlog::{Head, Trace};
use crate::tls::{Clock, Secrets, lock};
use crate::types::{CID, Init};
use crate::{Config, Congestion, Error, Handshake, Realm, crypto};

const FIRST_CID: usize = 20;
/// Address tokens that a server gives to a client (RFC 9000 §8.1.3), as noq does by default.
const TOKENS: u32 = 2;

/// The parts of an endpoint.
pub(super) struct Parts {
    pub(super) noq: noq_proto::Endpoint,
    /// Only of clients.
    pub(super) client: Option<ClientConfig>,
    pub(super) tls_rng: Pcg64,
    pub(super) clock: Arc<Clock>,
    pub(super) report: Arc<Report>,
    pub(super) meter: Arc<Meter>,
    pub(super) secrets: Option<Arc<Secrets>>,
    pub(super) trace: Option<Arc<Trace>>,
}

pub(super) fn parts(
    realm: &Realm,
    config: &Config,
    congestion: &Congestion,
    init: Init,
    side: Side,
) -> Result<Parts, Error> {
    config.check_ranges()?;
    let mut rng = init.rng;
    let mut branch = || {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        seed
    };
    let (seed, cids, tls_seed, control) = (branch(), branch(), branch(), branch());
    let meter = Arc::new(Meter::default());
    let clock = Arc::new(Clock::default());
    clock.set(init.now);
    let secrets = init.secrets.then(Arc::default);
    let trace = init.qlog.map(|(writer, title)| {
        let head = Head {
            title,
            is_client: side.is_client(),
            local: init.local,
            remote: init.remote,
            config: config.clone(),
        };
        Arc::new(Trace::new(writer, head, clock.clone()))
    });
    let report = Arc::new(Report::new(trace.clone()));
    let treatment = Treatment {
        crypto: config.crypto,
        meter: meter.clone(),
        trace: trace.clone(),
    };

    let factory = Factory::new(
        congestion,
        config,
        realm.time(),
        Pcg64::from_seed(control),
        report.clone(),
    );
    factory.check(config, init.now).map_err(Error::Controller)?;
    let mut transport = transport(config, init.datagrams)?;
    transport.congestion_controller_factory(Arc::new(factory));
    let transport = Arc::new(transport);

    let mut cid_rng = Pcg64::from_seed(cids);
    let first_cid = Mutex::new(Pcg64::from_rng(&mut cid_rng));
    let mut endpoint = EndpointConfig::new(realm.reset_key());
    endpoint
        .rng_seed(Some(seed))
        .cid_generator(Arc::new(move || Box::new(Cids(cid_rng.clone()))))
        // Capture tools do not recognise packets without QUIC's fixed bit.
        .grease_quic_bit(false)
        .max_udp_payload_size(u16::MAX - 8)
        .map_err(|e| Error::Option(e.to_string()))?;

    let shared = Shared {
        realm,
        clock: clock.clone(),
        secrets: secrets.clone(),
        treatment,
        transport,
    };
    let (mut client, mut server) = (None, None);
    match side {
        Side::Client => {
            let early = config.handshake == Handshake::ZeroRtt;
            let uses = (early, init.datagrams);
            client = Some(shared.client(init.local.ip(), init.remote.ip(), uses, first_cid)?);
        }
        Side::Server => server = Some(Arc::new(shared.server(init.local.ip())?)),
    }
    Ok(Parts {
        noq: noq_proto::Endpoint::new(Arc::new(endpoint), server, true),
        client,
        tls_rng: Pcg64::from_seed(tls_seed),
        clock,
        report,
        meter,
        secrets,
        trace,
    })
}

/// What the configurations of clients and servers have in common.
struct Shared<'a> {
    realm: &'a Realm,
    clock: Arc<Clock>,
    secrets: Option<Arc<Secrets>>,
    treatment: Treatment,
    transport: Arc<TransportConfig>,
}

impl Shared<'_> {
    /// The configuration of a client; `early`: with early data, if there is a ticket.
    fn client(
        self,
        local: IpAddr,
        remote: IpAddr,
        (early, datagrams): (bool, bool),
        first_cid: Mutex<Pcg64>,
    ) -> Result<ClientConfig, Error> {
        let memory = self.realm.client_memory(local, remote, datagrams, early);
        let inner = self
            .realm
            .templates()
            .client(self.clock, memory.clone(), self.secrets);
        let inner = QuicClientConfig::try_from(inner).map_err(tls_error)?;
        let mut config = ClientConfig::new(Arc::new(crypto::client(inner, self.treatment)));
        config
            .transport_config(self.transport)
            .token_store(Arc::new(memory))
            .initial_dst_cid_provider(Arc::new(move || {
                let mut id = [0; FIRST_CID];
                lock(&first_cid).fill_bytes(&mut id);
                ConnectionId::new(&id)
            }));
        Ok(config)
    }

    /// The configuration of a server.
    fn server(self, local: IpAddr) -> Result<ServerConfig, Error> {
        let memory = self.realm.server_memory(local);
        let inner = self
            .realm
            .templates()
            .server(self.clock.clone(), &memory, self.secrets);
        let inner = QuicServerConfig::try_from(inner).map_err(tls_error)?;
        let session = crypto::server(inner, self.treatment);
        let mut tokens = ValidationTokenConfig::default();
        tokens.log(memory.used.clone()).sent(TOKENS);
        let mut config = ServerConfig::new(Arc::new(session), self.realm.token_key());
        config
            .transport_config(self.transport)
            .validation_token_config(tokens)
            .time_source(self.clock)
            .migration(true);
        Ok(config)
    }
}

fn tls_error(e: noq_proto::crypto::rustls::NoInitialCipherSuite) -> Error {
    Error::Tls(e.to_string())
}

/// Buffers of datagrams, in bytes. The application takes what arrives at once. What cannot be sent at once waits in the
/// application, which discards what is too old.
const RECEIVED_DATAGRAMS: usize = 1 << 20;
const SENT_DATAGRAMS: usize = 1 << 14;

fn transport(config: &Config, datagrams: bool) -> Result<TransportConfig, Error> {
    let varint = |name: &str, n: u64| {
        VarInt::from_u64(n).map_err(|_| {
            Error::Option(format!(
                "{name} of {n} is out of range; give at most 2^62 - 1"
            ))
        })
    };
    let mut t = TransportConfig::default();
    t.initial_mtu(config.datagram_size)
        .stream_receive_window(varint("stream window", config.stream_window)?)
        .receive_window(varint("connection window", config.connection_window)?)
        .send_window(config.send_window)
        .send_fairness(true)
        .packet_threshold(config.packet_threshold)
        .time_threshold(config.time_threshold as f32)
        .initial_rtt(std(INITIAL_RTT))
        .max_concurrent_bidi_streams(MAX_STREAMS.into())
        .datagram_receive_buffer_size(datagrams.then_some(RECEIVED_DATAGRAMS))
        .datagram_send_buffer_size(SENT_DATAGRAMS)
        // Datagrams of a batch would be padded to the same size.
        .enable_segmentation_offload(false);
    let discovered = config.discovered();
    t.mtu_discovery_config(discovered.map(|most| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(most);
        discovery
    }));
    if discovered.is_none() {
        // A suspected black hole must not change the size either.
        t.min_mtu(config.datagram_size);
    }
    let idle = varint("idle timeout", config.idle_timeout.as_millis())?;
    t.max_idle_timeout(Some(IdleTimeout::from(idle)));
    if let Some(asked) = &config.ack {
        let mut frequency = AckFrequencyConfig::default();
        frequency
            // The number of unacknowledged packets: one less than the packets per acknowledgement.
            .ack_eliciting_threshold((asked.every - 1).into())
            .max_ack_delay(asked.max_delay.map(std))
            .reordering_threshold(asked.reordering.into());
        t.ack_frequency_config(Some(frequency));
    }
    if config.paths() > 1 {
        t.max_concurrent_multipath_paths(config.paths());
    }
    Ok(t)
}

fn std(d: gargalo_units::Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(d.as_nanos())
}

/// Generates connection IDs from a seeded generator.
struct Cids(Pcg64);

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; CID];
        self.0.fill_bytes(&mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        CID
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Checks that addresses are of one family and valid destinations.
pub(super) fn check_addresses(local: SocketAddr, remote: SocketAddr) -> Result<(), Error> {
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(Error::Option(format!(
            "{local} and {remote} are of different families; give both ends IPv4 or both IPv6"
        )));
    }
    Ok(())
}

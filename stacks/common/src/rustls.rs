//! rustls with random numbers and time of the host.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use gargalo_plugin::stack::{CALENDAR_START, Config, host};
use rustls::client::{ClientSessionStore, Resumption};
use rustls::client::{Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::{ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom};
use rustls::crypto::{SharedSecret, SupportedKxGroup, ring as provider};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, Error, KeyLog, NamedGroup, PeerMisbehaved, RootCertStore, ServerConfig};
use x25519_dalek::{PublicKey, StaticSecret};

use crate::p256_key::P256Key;

/// The host's random numbers, time and key log.
#[derive(Debug)]
pub struct Host;

impl SecureRandom for Host {
    fn fill(&self, out: &mut [u8]) -> Result<(), GetRandomFailed> {
        host::random(out).then_some(()).ok_or(GetRandomFailed)
    }
}

impl TimeProvider for Host {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(CALENDAR_START + host::now()?))
    }
}

impl KeyLog for Host {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        host::secret_parts(label, client_random, secret);
    }
}

/// ring's X25519 draws its keys from the system; this one from the host.
impl SupportedKxGroup for Host {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut scalar = [0; 32];
        self.fill(&mut scalar)?;
        let secret = StaticSecret::from(scalar);
        let public = PublicKey::from(&secret);
        Ok(Box::new(Exchange { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Exchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer: Option<[u8; 32]> = peer.try_into().ok();
        peer.map(|peer| self.secret.diffie_hellman(&PublicKey::from(peer)))
            .filter(|shared| shared.was_contributory())
            .map(|shared| SharedSecret::from(&shared.as_bytes()[..]))
            .ok_or(PeerMisbehaved::InvalidKeyShare.into())
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// Sessions of clients, each for one later connection. rustls cannot write one as bytes, and accepts it only with the
/// verifier of the connection that it is of; so the host gets its number here, valid in this process.
static SESSIONS: Mutex<BTreeMap<u64, (Tls13ClientSessionValue, ClientConfig)>> = Mutex::new(BTreeMap::new());
/// Of a table; later ones replace the earliest.
const MOST_SESSIONS: usize = 1 << 14;

#[derive(Debug)]
struct Sessions(Mutex<Option<Tls13ClientSessionValue>>, ClientConfig);

impl ClientSessionStore for Sessions {
    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut all = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
        all.insert(number, (value, self.1.clone()));
        while all.len() > MOST_SESSIONS {
            all.pop_first();
        }
        host::session(&number.to_le_bytes());
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
}

fn seeded_provider() -> Arc<CryptoProvider> {
    let mut provider = provider::default_provider();
    provider.cipher_suites.retain(|s| s.tls13().is_some());
    provider.kx_groups = vec![&Host];
    provider.secure_random = &Host;
    Arc::new(provider)
}

/// The configuration of a client.
///
/// # Errors
/// When the certificate is not valid.
pub fn client(asked: &Config<'_>) -> Result<ClientConfig, Error> {
    let earlier = asked.session.try_into().ok().and_then(|number| {
        let mut all = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&u64::from_le_bytes(number))
    });
    let (session, mut config) = match earlier {
        Some((session, config)) => (Some(session), config),
        None => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(asked.certificate.to_vec()))?;
            let config = ClientConfig::builder_with_details(seeded_provider(), Arc::new(Host))
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_root_certificates(roots)
                .with_no_client_auth();
            (None, config)
        }
    };
    config.alpn_protocols = vec![asked.alpn.into()];
    config.enable_early_data = asked.early_data;
    config.resumption = Resumption::disabled();
    let sessions = Sessions(Mutex::new(session), config.clone());
    config.resumption = Resumption::store(Arc::new(sessions));
    if asked.secrets {
        config.key_log = Arc::new(Host);
    }
    Ok(config)
}

/// Sessions of servers, by ticket key and ticket: rustls accepts early data only with sessions that the server stores.
static STORED: LazyLock<Arc<ServerSessionMemoryCache>> = LazyLock::new(|| ServerSessionMemoryCache::new(MOST_SESSIONS));

thread_local! {
    /// Those of this thread: runs with the same seed have the same keys and tickets, and may go on at once.
    static STORED_HERE: Arc<ServerSessionMemoryCache> = ServerSessionMemoryCache::new(MOST_SESSIONS);
}

/// The store of a server that has this key.
#[derive(Debug)]
struct Stored(Vec<u8>);

impl StoresServerSessions for Stored {
    fn put(&self, ticket: Vec<u8>, session: Vec<u8>) -> bool {
        let key = [&self.0[..], &ticket].concat();
        STORED_HERE.with(|here| here.put(key.clone(), session.clone())) && STORED.put(key, session)
    }

    fn get(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let key = [&self.0[..], ticket].concat();
        STORED_HERE.with(|here| here.get(&key)).or_else(|| STORED.get(&key))
    }

    /// A ticket may be used again: nobody replays early data in an experiment.
    fn take(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.get(ticket)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// The configuration of a server.
///
/// # Errors
/// When certificate or keys are not valid.
pub fn server(asked: &Config<'_>) -> Result<ServerConfig, Error> {
    let certificate = CertificateDer::from(asked.certificate.to_vec());
    let builder = ServerConfig::builder_with_details(seeded_provider(), Arc::new(Host))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth();
    let mut config = match P256Key::from_pkcs8(asked.private_key) {
        Some(key) => builder.with_cert_resolver(key.resolver(certificate)),
        None => {
            let key = PrivatePkcs8KeyDer::from(asked.private_key.to_vec());
            builder.with_single_cert(vec![certificate], key.into())?
        }
    };
    config.session_storage = Arc::new(Stored(asked.ticket_key.to_vec()));
    config.alpn_protocols = vec![asked.alpn.into()];
    config.max_early_data_size = if asked.early_data { u32::MAX } else { 0 };
    if asked.secrets {
        config.key_log = Arc::new(Host);
    }
    Ok(config)
}

//! Reproducible TLS 1.3: every byte follows from seeds.

mod certificate;
mod clock;
mod keys;
mod p256_key;
pub(crate) mod random;
mod secrets;
mod tickets;

pub(crate) use certificate::KeyKind;
pub use certificate::SERVER_NAME;
pub(crate) use clock::Clock;
pub(crate) use keys::TokenKey;
pub(crate) use p256_key::P256Key;
pub(crate) use secrets::Secrets;
pub(crate) use tickets::{ClientMemory, ServerMemory, Tickets, lock};

use std::sync::Arc;

use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerConfig;
use rustls::{CipherSuite, RootCertStore};

use crate::Error;

/// Application protocol of both ends (RFC 7301).
pub const ALPN: &str = "gargalo";

/// ring's algorithms with our random source and key exchange; AES-128-GCM is preferred.
fn seeded_provider() -> Arc<CryptoProvider> {
    let mut suites = provider::DEFAULT_CIPHER_SUITES.to_vec();
    suites.retain(|s| s.tls13().is_some());
    suites.sort_by_key(|s| s.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(CryptoProvider {
        cipher_suites: suites,
        kx_groups: vec![&random::X25519],
        secure_random: &random::SeededRandom,
        ..provider::default_provider()
    })
}

/// The TLS configurations of which those of all endpoints are copies.
#[derive(Clone, Debug)]
pub(crate) struct Templates {
    client: ClientConfig,
    server: ServerConfig,
    /// The server's certificate, DER.
    pub(crate) certificate: CertificateDer<'static>,
    /// PKCS #8, DER.
    pub(crate) private_key: Arc<PrivateKeyDer<'static>>,
}

impl Templates {
    pub(crate) fn new(key: [u8; 32], kind: KeyKind) -> Result<Self, Error> {
        let tls = |e: rustls::Error| Error::Tls(e.to_string());
        let (certificate, key) = certificate::make(key, kind)?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(tls)?;
        let private_key = Arc::new(key.clone_key());
        let provider = seeded_provider();
        let clock = Arc::new(Clock::default());
        let mut client = ClientConfig::builder_with_details(provider.clone(), clock.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![ALPN.into()];
        client.enable_early_data = true;
        let server = ServerConfig::builder_with_details(provider, clock)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(tls)?
            .with_no_client_auth();
        let mut server = match P256Key::from_pkcs8(key.secret_der()) {
            Some(key) => server.with_cert_resolver(key.resolver(certificate.clone())),
            None => {
                let chain = vec![certificate.clone()];
                server.with_single_cert(chain, key).map_err(tls)?
            }
        };
        server.alpn_protocols = vec![ALPN.into()];
        server.max_early_data_size = u32::MAX;
        Ok(Self {
            client,
            server,
            certificate,
            private_key,
        })
    }

    /// One client's configuration.
    pub(crate) fn client(
        &self,
        clock: Arc<Clock>,
        memory: ClientMemory,
        secrets: Option<Arc<Secrets>>,
    ) -> ClientConfig {
        let mut config = self.client.clone();
        config.time_provider = clock;
        config.resumption = Resumption::store(Arc::new(memory));
        if let Some(secrets) = secrets {
            config.key_log = secrets;
        }
        config
    }

    /// One server's configuration.
    pub(crate) fn server(
        &self,
        clock: Arc<Clock>,
        memory: &ServerMemory,
        secrets: Option<Arc<Secrets>>,
    ) -> ServerConfig {
        let mut config = self.server.clone();
        config.time_provider = clock;
        config.session_storage = memory.sessions.clone();
        if let Some(secrets) = secrets {
            config.key_log = secrets;
        }
        config
    }
}

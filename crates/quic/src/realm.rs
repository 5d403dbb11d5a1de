//! State shared by all QUIC endpoints of a simulation: certificate, TLS configurations, tickets, and the clock that
//! TLS reads.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock};

use gargalo_units::Instant;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use ring::hmac;

use crate::Error;
use crate::tls::{ClientMemory, KeyKind, ServerMemory, Templates, Tickets, TokenKey, lock};

/// The state shared by all QUIC endpoints of a simulation. Cheap to clone; clones share the state.
///
/// All its secrets follow from the seed: it is suitable only for experiments.
#[derive(Clone)]
pub struct Realm {
    inner: Arc<Inner>,
    /// Certificates are ECDSA with P-256.
    is_ecdsa: bool,
}

struct Inner {
    /// The counterpart of [`Instant::ZERO`] in the standard library's type, which noq uses; only differences
    /// matter.
    base: std::time::Instant,
    templates: Templates,
    /// Of the certificate.
    key: [u8; 32],
    /// Made when a connection needs them.
    ecdsa: OnceLock<Templates>,
    tickets: Mutex<Tickets>,
    foreign: Mutex<Foreign>,
    reset_key: Arc<hmac::Key>,
    token_key: Arc<TokenKey>,
}

impl Realm {
    /// Creates a realm whose randomness depends on `seed` only.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn new(seed: u64) -> Result<Self, Error> {
        let mut rng = Pcg64::seed_from_u64(seed);
        let (mut key, mut reset, mut token) = ([0; 32], [0; 64], [0; 64]);
        rng.fill_bytes(&mut key);
        rng.fill_bytes(&mut reset);
        rng.fill_bytes(&mut token);
        Ok(Self {
            inner: Arc::new(Inner {
                base: std::time::Instant::now(),
                templates: Templates::new(key, KeyKind::Ed25519)?,
                key,
                ecdsa: OnceLock::new(),
                tickets: Mutex::default(),
                foreign: Mutex::new(Foreign {
                    keys: Pcg64::from_rng(&mut rng),
                    ticket_keys: BTreeMap::new(),
                    sessions: BTreeMap::new(),
                }),
                reset_key: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &reset)),
                token_key: Arc::new(TokenKey::new(&token)),
            }),
            is_ecdsa: false,
        })
    }

    /// The same realm with certificates of ECDSA with P-256, for a connection of which an end cannot use Ed25519
    /// ([`Implementation::needs_ecdsa`](crate::Implementation::needs_ecdsa)).
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn with_ecdsa(&self) -> Result<Self, Error> {
        let inner = Arc::clone(&self.inner);
        if inner.ecdsa.get().is_none() {
            let made = Templates::new(inner.key, KeyKind::P256)?;
            // What another thread has made meanwhile is used.
            let _ = inner.ecdsa.set(made);
        }
        Ok(Self {
            inner,
            is_ecdsa: true,
        })
    }

    /// Removes the tickets of the server at this address, as after a restart: early data with one of them will be
    /// rejected.
    pub fn forget_tickets(&self, server: IpAddr) {
        lock(&self.inner.tickets).forget_server(server);
        lock(&self.inner.foreign).ticket_keys.remove(&server);
    }

    /// The self-signed certificate of every server, in DER (X.509).
    pub fn certificate(&self) -> &[u8] {
        &self.templates().certificate
    }

    /// Its private key, in DER (PKCS #8).
    pub fn private_key(&self) -> &[u8] {
        self.templates().private_key.secret_der()
    }

    /// The key with which the server at this address protects its tickets; the same until sessions are discarded.
    pub fn ticket_key(&self, server: IpAddr) -> [u8; 64] {
        let foreign = &mut *lock(&self.inner.foreign);
        *foreign.ticket_keys.entry(server).or_insert_with(|| {
            let mut key = [0; 64];
            foreign.keys.fill_bytes(&mut key);
            key
        })
    }

    /// Keeps what a client of a stack needs to resume a session, instead of what it kept before.
    pub fn keep_session(&self, of: Session, data: Vec<u8>) {
        lock(&self.inner.foreign).sessions.insert(of, data);
    }

    /// Takes what was kept: a ticket is used once (RFC 8446 appendix C.4).
    pub fn take_session(&self, of: &Session) -> Option<Vec<u8>> {
        lock(&self.inner.foreign).sessions.remove(of)
    }

    pub(crate) fn templates(&self) -> &Templates {
        let ecdsa = self.inner.ecdsa.get().filter(|_| self.is_ecdsa);
        ecdsa.unwrap_or(&self.inner.templates)
    }

    pub(crate) fn client_memory(
        &self,
        local: IpAddr,
        remote: IpAddr,
        datagrams: bool,
        resume: bool,
    ) -> ClientMemory {
        lock(&self.inner.tickets).client((local, remote, datagrams), resume)
    }

    pub(crate) fn server_memory(&self, local: IpAddr) -> ServerMemory {
        lock(&self.inner.tickets).server(local)
    }

    pub(crate) fn reset_key(&self) -> Arc<hmac::Key> {
        self.inner.reset_key.clone()
    }

    pub(crate) fn token_key(&self) -> Arc<TokenKey> {
        self.inner.token_key.clone()
    }

    pub(crate) fn time(&self) -> Timeline {
        Timeline(self.inner.base)
    }
}

/// The stack and the two ends to which a session belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    /// The stack of the client.
    pub stack: String,
    /// The client's address.
    pub client: IpAddr,
    /// The server's address.
    pub server: IpAddr,
    /// Datagrams and unidirectional streams are allowed: a ticket remembers the limits, which must not become less
    /// (RFC 9000 §7.4.1, RFC 9221 §3).
    pub datagrams: bool,
    /// See above.
    pub unidirectional: bool,
}

/// What stacks other than noq keep between connections.
#[derive(Debug)]
struct Foreign {
    /// Where keys come from.
    keys: Pcg64,
    /// Keys of servers for their tickets.
    ticket_keys: BTreeMap<IpAddr, [u8; 64]>,
    sessions: BTreeMap<Session, Vec<u8>>,
}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Realm")
            .field("tickets", &self.inner.tickets)
            .finish_non_exhaustive()
    }
}

/// Conversion between our instants and noq's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline(std::time::Instant);

impl Timeline {
    #[inline]
    pub(crate) fn to_std(self, t: Instant) -> std::time::Instant {
        self.0 + std::time::Duration::from_nanos(t.as_nanos())
    }

    #[inline]
    pub(crate) fn to_ours(self, t: std::time::Instant) -> Instant {
        let since = t.saturating_duration_since(self.0);
        Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

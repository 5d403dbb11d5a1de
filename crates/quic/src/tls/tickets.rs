//! State of earlier connections: session tickets and address tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use noq_proto::{TokenLog, TokenReuseError, TokenStore};
use rustls::client::{ClientSessionMemoryCache, ClientSessionStore};
use rustls::client::{Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

/// Maximum number of sessions of a server, and of tickets or tokens of a client per server; the oldest is removed
/// first.
const SERVER_SESSIONS: usize = 65_536;
const CLIENT_TICKETS: usize = 8;

/// The tickets and tokens of a client for one server.
#[derive(Debug)]
struct Memory {
    sessions: ClientSessionMemoryCache,
    tokens: Mutex<Vec<Bytes>>,
}

/// The sessions of a server.
#[derive(Clone)]
pub(crate) struct ServerMemory {
    pub(crate) sessions: Arc<dyn StoresServerSessions>,
    pub(crate) used: Arc<UsedTokens>,
}

/// Client, server, and whether datagrams are allowed: a ticket remembers the limits of the server, which must not
/// become less (RFC 9221 §3).
type Between = (IpAddr, IpAddr, bool);

/// The tickets, tokens and sessions of all endpoints, by hosts: the ports of a server share them.
#[derive(Default)]
pub(crate) struct Tickets {
    clients: BTreeMap<Between, Arc<Memory>>,
    servers: BTreeMap<IpAddr, ServerMemory>,
}

impl Tickets {
    /// The tickets of a client for a server; with `resume` they are used, without it
    /// only new ones are added.
    pub(crate) fn client(&mut self, between: Between, resume: bool) -> ClientMemory {
        let memory = self.clients.entry(between).or_insert_with(|| {
            Arc::new(Memory {
                sessions: ClientSessionMemoryCache::new(1),
                tokens: Mutex::default(),
            })
        });
        ClientMemory {
            memory: memory.clone(),
            resume,
        }
    }

    pub(crate) fn server(&mut self, local: IpAddr) -> ServerMemory {
        self.servers
            .entry(local)
            .or_insert_with(|| ServerMemory {
                sessions: ServerSessionMemoryCache::new(SERVER_SESSIONS),
                used: Arc::default(),
            })
            .clone()
    }

    /// Removes the sessions of the server at this address.
    pub(crate) fn forget_server(&mut self, local: IpAddr) {
        self.servers.remove(&local);
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets")
            .field("clients", &self.clients.len())
            .field("servers", &self.servers.len())
            .finish()
    }
}

/// The access of a connection to the tickets of its client.
#[derive(Clone, Debug)]
pub(crate) struct ClientMemory {
    memory: Arc<Memory>,
    resume: bool,
}

impl ClientSessionStore for ClientMemory {
    fn set_kx_hint(&self, _: ServerName<'static>, _: rustls::NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<rustls::NamedGroup> {
        None // there is only one group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.memory.sessions.insert_tls13_ticket(name, value);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.resume
            .then(|| self.memory.sessions.take_tls13_ticket(name))?
    }
}

impl TokenStore for ClientMemory {
    fn insert(&self, _: &str, token: Bytes) {
        let mut tokens = lock(&self.memory.tokens);
        if tokens.len() == CLIENT_TICKETS {
            tokens.remove(0);
        }
        tokens.push(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.resume.then(|| lock(&self.memory.tokens).pop())?
    }
}

/// Address tokens that have been used: each is valid for one connection (RFC 9000 §8.1.4).
#[derive(Debug, Default)]
pub(crate) struct UsedTokens(Mutex<BTreeSet<u128>>);

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        _: SystemTime,
        _: Duration,
    ) -> Result<(), TokenReuseError> {
        if lock(&self.0).insert(nonce) {
            Ok(())
        } else {
            Err(TokenReuseError)
        }
    }
}

/// Locks a mutex, ignoring poisoning: the data is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

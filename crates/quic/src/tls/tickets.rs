//! What endpoints remember of earlier connections: session tickets and address tokens.

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

/// Sessions a server keeps, and tickets or tokens a client keeps of one server; the oldest goes first.
const SERVER_SESSIONS: usize = 65_536;
const CLIENT_TICKETS: usize = 8;

/// What one client remembers of one server.
#[derive(Debug)]
struct Memory {
    sessions: ClientSessionMemoryCache,
    tokens: Mutex<Vec<Bytes>>,
}

/// What one server remembers of its clients.
#[derive(Clone)]
pub(crate) struct ServerMemory {
    pub(crate) sessions: Arc<dyn StoresServerSessions>,
    pub(crate) used: Arc<UsedTokens>,
}

/// What all endpoints of a world remember, by hosts: a server is the same one on each of its ports.
#[derive(Default)]
pub(crate) struct Tickets {
    clients: BTreeMap<(IpAddr, IpAddr), Arc<Memory>>,
    servers: BTreeMap<IpAddr, ServerMemory>,
}

impl Tickets {
    /// The memory of the client at `local` about the server at `remote`; with `resume` it is used,
    /// without only added to.
    pub(crate) fn client(&mut self, local: IpAddr, remote: IpAddr, resume: bool) -> ClientMemory {
        let memory = self.clients.entry((local, remote)).or_insert_with(|| {
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

    /// The server at this address has lost its memory.
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

/// One connection's view of what its client remembers.
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

/// Address tokens that have been used: each is good for one connection (RFC 9000 §8.1.4).
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

/// A lock that a panic elsewhere does not spoil: what is kept here is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

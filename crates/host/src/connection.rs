//! A connection of a host, and the table of all.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use gargalo_mptcp::Tokens;
use gargalo_units::{Duration, Instant};
use gargalo_wire::ip::{self, Addresses};

use crate::event::Waiting;
use crate::secrets::Key;
use crate::transport::Transport;
use crate::{ConnectionId, ListenerId};

/// What tells connections apart, seen from our side: `src` is the local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tuple {
    pub(crate) addresses: Addresses,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
}

impl Tuple {
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.addresses.src(), self.local_port)
    }
    pub(crate) fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.addresses.dst(), self.remote_port)
    }
    pub(crate) fn is_v6(&self) -> bool {
        matches!(self.addresses, Addresses::V6 { .. })
    }
    /// IP and TCP header without options.
    pub(crate) fn headers(&self) -> u32 {
        self.addresses.header_len() + 20
    }
}

impl Tuple {
    /// Of the addresses of a subflow; `None`: they are of two families.
    pub(crate) fn of(a: &gargalo_mptcp::Addresses) -> Option<Self> {
        Some(Self {
            addresses: Addresses::new(a.local.ip(), a.remote.ip())?,
            local_port: a.local.port(),
            remote_port: a.remote.port(),
        })
    }
}

impl From<&Tuple> for gargalo_mptcp::Addresses {
    fn from(t: &Tuple) -> Self {
        Self {
            local: t.local(),
            remote: t.remote(),
        }
    }
}

/// Where segments go and how they look: a connection's only way, or that of a subflow.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) tuple: Tuple,
    pub(crate) header: ip::Header,
    /// Path MTU in bytes.
    pub(crate) mtu: u32,
    /// Timeouts in a row when the path MTU was last lowered for them.
    pub(crate) blamed: u32,
}

/// How a connection came to be, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The application connected.
    Active,
    /// A listener answered a SYN; not open yet.
    HalfOpen(ListenerId),
    /// Open; the application does not know yet.
    Queued(ListenerId),
    /// The application has it.
    Accepted,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) serial: u64,
    pub(crate) transport: Transport,
    /// The first way, which names the connection.
    pub(crate) path: Path,
    pub(crate) origin: Origin,
    /// Its entry in the timers.
    pub(crate) armed: Instant,
    /// When a released connection is given up.
    pub(crate) orphaned_until: Instant,
    /// What was not acknowledged when that was last set, in bytes.
    pub(crate) undelivered: u64,
    /// It waits in the queue of those that may have something to send.
    pub(crate) is_ready: bool,
    /// It waits in the queue of those with events.
    pub(crate) is_eventful: bool,
    /// The application has let go.
    pub(crate) is_released: bool,
    /// Found by its tuples.
    pub(crate) is_attached: bool,
    /// Counted among those in TIME-WAIT.
    pub(crate) lingers: bool,
    /// The application knows that it is over.
    pub(crate) is_told: bool,
    pub(crate) events: Waiting,
}

impl Connection {
    /// The way of a tuple.
    pub(crate) fn path(&self, tuple: &Tuple) -> Option<&Path> {
        match &self.transport {
            Transport::Tcp(_) => Some(&self.path).filter(|p| p.tuple == *tuple),
            Transport::Mptcp(m) => m.paths.iter().find(|p| p.tuple == *tuple),
        }
    }
    pub(crate) fn path_mut(&mut self, tuple: &Tuple) -> Option<&mut Path> {
        match &mut self.transport {
            Transport::Tcp(_) => Some(&mut self.path).filter(|p| p.tuple == *tuple),
            Transport::Mptcp(m) => m.paths.iter_mut().find(|p| p.tuple == *tuple),
        }
    }

    /// There is something to tell the application.
    pub(crate) fn has_news(&self) -> bool {
        let news = match &self.transport {
            Transport::Tcp(_) => false,
            Transport::Mptcp(m) => !m.news.is_empty(),
        };
        news || !self.events.is_empty()
    }

    /// When it wants to be woken; [`Instant::MAX`]: not before something arrives.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let own = self.transport.poll_timeout().unwrap_or(Instant::MAX);
        own.min(self.orphaned_until)
    }

    /// The application has let go of what is still open.
    pub(crate) fn orphan(&mut self, now: Instant, timeout: Duration) {
        self.is_released = true;
        self.undelivered = self.transport.unacknowledged();
        self.orphaned_until = now + timeout;
    }

    /// A released connection may go on while the peer takes what was written, but waits only so long
    /// for it to take any or to close.
    pub(crate) fn on_orphan_timeout(&mut self, now: Instant, timeout: Duration) {
        let left = self.transport.unacknowledged();
        if left < self.undelivered {
            self.orphan(now, timeout);
        } else {
            self.orphaned_until = Instant::MAX;
            self.transport.abort(now);
        }
    }
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    by_tuple: HashMap<Tuple, u32, Key>,
    /// What joins are for.
    pub(crate) tokens: Tokens<u32>,
    /// How many Multipath TCP connections have each local port: theirs need it towards every address of
    /// the peer.
    ports: BTreeMap<u16, u32>,
    next_serial: u64,
}

impl Table {
    pub(crate) fn new(key: Key) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_tuple: HashMap::with_hasher(key),
            tokens: Tokens::default(),
            ports: BTreeMap::new(),
            next_serial: 0,
        }
    }

    /// Connections of any state, closed ones that the application has not released included.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// Adds one and attaches its tuple; `None` when there are 2^32 already.
    pub(crate) fn insert(&mut self, tuple: Tuple, new: Connection) -> Option<ConnectionId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(None);
                slot
            }
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        self.by_tuple.insert(tuple, slot);
        if let Transport::Mptcp(m) = &new.transport {
            self.tokens.insert(m.connection.token(), slot);
            *self.ports.entry(tuple.local_port).or_default() += 1;
        }
        *self.slots.get_mut(slot as usize)? = Some(Box::new(Connection { serial, ..new }));
        Some(ConnectionId { serial, slot })
    }

    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> Option<&Connection> {
        self.slots.get(slot as usize)?.as_deref()
    }
    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// A connection that the application has: known to it and not released.
    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slot(id.slot)
            .filter(|c| c.serial == id.serial && !c.is_released)
    }
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slot_mut(id.slot)
            .filter(|c| c.serial == id.serial && !c.is_released)
    }

    /// A Multipath TCP connection has this local port.
    pub(crate) fn is_multipath_port(&self, port: u16) -> bool {
        self.ports.contains_key(&port)
    }

    #[inline]
    pub(crate) fn find(&self, tuple: &Tuple) -> Option<u32> {
        self.by_tuple.get(tuple).copied()
    }

    /// Segments of the tuple belong to the connection from now on.
    pub(crate) fn attach(&mut self, slot: u32, tuple: Tuple) {
        self.by_tuple.insert(tuple, slot);
    }

    /// The tuple is free for another, unless another has it already.
    pub(crate) fn detach_tuple(&mut self, slot: u32, tuple: &Tuple) {
        if self.by_tuple.get(tuple) == Some(&slot) {
            self.by_tuple.remove(tuple);
        }
    }

    /// All its tuples are free for others, and its token.
    pub(crate) fn detach(&mut self, slot: u32) {
        let Some(c) = self
            .slots
            .get_mut(slot as usize)
            .and_then(|s| s.as_deref_mut())
        else {
            return;
        };
        if !std::mem::take(&mut c.is_attached) {
            return;
        }
        let first = c.path.tuple;
        let mut further = Vec::new();
        if let Transport::Mptcp(m) = &c.transport {
            further.extend(m.paths.iter().map(|p| p.tuple));
            self.tokens.remove(m.connection.token());
            let count = self.ports.entry(first.local_port).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.ports.remove(&first.local_port);
            }
        }
        self.detach_tuple(slot, &first);
        for tuple in further {
            self.detach_tuple(slot, &tuple);
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        self.detach(slot);
        if let Some(place) = self.slots.get_mut(slot as usize)
            && place.take().is_some()
        {
            self.free.push(slot);
        }
    }

    /// Slots in use, in order.
    pub(crate) fn occupied(&self) -> Vec<u32> {
        let used = self.slots.iter().enumerate().filter(|(_, c)| c.is_some());
        used.map(|(i, _)| i as u32).collect()
    }
}

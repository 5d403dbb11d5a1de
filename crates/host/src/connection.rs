//! A connection of a host, and the table of all connections.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use gargalo_mptcp::Tokens;
use gargalo_units::{Duration, Instant};
use gargalo_wire::ip::{self, Addresses};

use crate::event::Waiting;
use crate::secrets::Key;
use crate::transport::Transport;
use crate::{ConnectionId, ListenerId};

/// Addresses and ports of a connection; `src` is the local address.
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
    /// Length of IP and TCP header without options.
    pub(crate) fn headers(&self) -> u32 {
        self.addresses.header_len() + 20
    }
}

impl Tuple {
    /// The tuple of a subflow's addresses; `None` if they are of two families.
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

/// The path of a connection or of a subflow: header fields and MTU.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) tuple: Tuple,
    pub(crate) header: ip::Header,
    /// Path MTU in bytes.
    pub(crate) mtu: u32,
    /// ICMP errors do not change it for this connection.
    pub(crate) keeps_mtu: bool,
}

/// How a connection was opened, and who owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The application connected.
    Active,
    /// A listener answered a SYN; the connection is not open yet.
    HalfOpen(ListenerId),
    /// Open; not reported to the application yet.
    Queued(ListenerId),
    /// Owned by the application.
    Accepted,
}

/// A connection of a host, from its first SYN until its state is discarded.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) serial: u64,
    pub(crate) transport: Transport,
    /// The first path, which identifies the connection.
    pub(crate) path: Path,
    pub(crate) origin: Origin,
    /// Its entry in the timers.
    pub(crate) armed: Instant,
    /// When a released connection is given up.
    pub(crate) orphaned_until: Instant,
    /// Unacknowledged bytes when that deadline was last set.
    pub(crate) undelivered: u64,
    /// It is in the queue of connections that may have something to send.
    pub(crate) is_ready: bool,
    /// It is in the queue of those with events.
    pub(crate) is_eventful: bool,
    /// The application has released it.
    pub(crate) is_released: bool,
    /// The tuples of the connection are in the table.
    pub(crate) is_attached: bool,
    /// Counted among those in TIME-WAIT.
    pub(crate) lingers: bool,
    /// Its end was reported to the application.
    pub(crate) is_told: bool,
    pub(crate) events: Waiting,
}

impl Connection {
    /// The path of a tuple.
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

    /// Whether there are events for the application.
    pub(crate) fn has_events(&self) -> bool {
        let subflow_events = match &self.transport {
            Transport::Tcp(_) => false,
            Transport::Mptcp(m) => !m.subflow_events.is_empty(),
        };
        subflow_events || !self.events.is_empty()
    }

    /// Its next timeout; [`Instant::MAX`]: none.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let own = self.transport.poll_timeout().unwrap_or(Instant::MAX);
        own.min(self.orphaned_until)
    }

    /// The application has released a connection that is still open.
    pub(crate) fn orphan(&mut self, now: Instant, timeout: Duration) {
        self.is_released = true;
        self.undelivered = self.transport.unacknowledged();
        self.orphaned_until = now + timeout;
    }

    /// Checks a released connection: it may continue while the peer acknowledges data, and is given up if there was
    /// no progress within the timeout.
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

/// The connections of a host, which are found by slot, by addresses and ports, and by token.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    by_tuple: HashMap<Tuple, u32, Key>,
    /// Connections by token, for joins.
    pub(crate) tokens: Tokens<u32>,
    /// Number of Multipath TCP connections per local port: their subflows use it towards every address of the peer.
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

    /// Adds a connection and attaches its tuple; `None` when there are 2^32 already.
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

    /// A connection owned by the application: reported and not released.
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

    /// Whether a Multipath TCP connection uses this local port.
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

    /// Removes the tuple of a connection, unless another connection has it already.
    pub(crate) fn detach_tuple(&mut self, slot: u32, tuple: &Tuple) {
        if self.by_tuple.get(tuple) == Some(&slot) {
            self.by_tuple.remove(tuple);
        }
    }

    /// Removes all its tuples and its token.
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

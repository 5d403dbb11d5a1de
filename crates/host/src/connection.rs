//! A connection of a host, and the table of all.

use std::collections::HashMap;
use std::net::SocketAddr;

use gargalo_tcp::Endpoint;
use gargalo_units::{Duration, Instant};
use gargalo_wire::ip::{self, Addresses};

use crate::event::Waiting;
use crate::secrets::Key;
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
    pub(crate) endpoint: Endpoint,
    pub(crate) tuple: Tuple,
    pub(crate) header: ip::Header,
    pub(crate) origin: Origin,
    /// Path MTU in bytes.
    pub(crate) mtu: u32,
    /// Timeouts in a row when the path MTU was last lowered for them.
    pub(crate) blamed: u32,
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
    /// Found by its tuple.
    pub(crate) is_attached: bool,
    /// Counted among those in TIME-WAIT.
    pub(crate) lingers: bool,
    /// The application knows that it is over.
    pub(crate) is_told: bool,
    pub(crate) events: Waiting,
}

impl Connection {
    /// When it wants to be woken; [`Instant::MAX`]: not before something arrives.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let own = self.endpoint.poll_timeout().unwrap_or(Instant::MAX);
        own.min(self.orphaned_until)
    }

    /// The application has let go of what is still open.
    pub(crate) fn orphan(&mut self, now: Instant, timeout: Duration) {
        self.is_released = true;
        self.undelivered = self.endpoint.unacknowledged();
        self.orphaned_until = now + timeout;
    }

    /// A released connection may go on while the peer takes what was written, but waits only so long
    /// for it to take any or to close.
    pub(crate) fn on_orphan_timeout(&mut self, now: Instant, timeout: Duration) {
        let left = self.endpoint.unacknowledged();
        if left < self.undelivered {
            self.orphan(now, timeout);
        } else {
            self.orphaned_until = Instant::MAX;
            self.endpoint.abort(now);
        }
    }
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    by_tuple: HashMap<Tuple, u32, Key>,
    next_serial: u64,
}

impl Table {
    pub(crate) fn new(key: Key) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_tuple: HashMap::with_hasher(key),
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

    #[inline]
    pub(crate) fn find(&self, tuple: &Tuple) -> Option<u32> {
        self.by_tuple.get(tuple).copied()
    }

    /// Its tuple is free for another.
    pub(crate) fn detach(&mut self, slot: u32) {
        if let Some(c) = self
            .slots
            .get_mut(slot as usize)
            .and_then(|s| s.as_deref_mut())
            && std::mem::take(&mut c.is_attached)
        {
            self.by_tuple.remove(&c.tuple);
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

//! The host: its state, time and events.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use gargalo_tcp::State;
use gargalo_units::Instant;

use crate::connection::{Connection, Origin, Table};
use crate::event::Waiting;
use crate::limiter::Limiter;
use crate::listen::Listeners;
use crate::output::Outgoing;
use crate::secrets::Secrets;
use crate::timers::Timers;
use crate::transport::Transport;
use crate::udp::Sockets;
use crate::{ConfigError, ConnectionId, HostConfig, HostEvent, HostStats, UdpId};

/// A source of pending events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Connection(ConnectionId),
    Udp(UdpId),
}

/// An IP host.
///
/// Memory is bounded by the configuration and by the connections of the application: half-open connections by the
/// backlog, unaccepted ones by the accept queue, TIME-WAIT, queues and ICMP by limits of their own, reassembly by
/// receive buffers.
#[derive(Debug)]
pub struct Host {
    pub(crate) config: HostConfig,
    pub(crate) secrets: Secrets,
    /// The latest time passed in a call.
    pub(crate) now: Instant,
    pub(crate) table: Table,
    pub(crate) listeners: Listeners,
    pub(crate) udp: Sockets,
    pub(crate) timers: Timers,
    /// Slots that may have something to send, each once.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) outgoing: Outgoing,
    pub(crate) event_sources: VecDeque<EventSource>,
    /// Connections in TIME-WAIT, in the order of entering it.
    pub(crate) time_wait: VecDeque<ConnectionId>,
    /// Connections opened by us so far (RFC 6056 §3.3.3: `next_ephemeral`).
    pub(crate) ports_taken: u64,
    /// UDP is served first in the next call.
    pub(crate) udp_turn: bool,
    /// Fast Open cookies by the address that granted them (RFC 7413 §4.1.3).
    pub(crate) cookies: BTreeMap<IpAddr, Bytes>,
    pub(crate) echo_limit: Limiter,
    pub(crate) error_limit: Limiter,
    pub(crate) stats: HostStats,
}

impl Host {
    /// A host without sockets.
    ///
    /// # Errors
    /// When the configuration is impossible.
    pub fn new(config: HostConfig, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let secrets = Secrets::new(config.seed);
        Ok(Self {
            secrets,
            now,
            table: Table::new(secrets.table),
            listeners: Listeners::default(),
            udp: Sockets::default(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            outgoing: Outgoing::new(config.most_outgoing),
            event_sources: VecDeque::new(),
            time_wait: VecDeque::new(),
            ports_taken: 0,
            udp_turn: false,
            cookies: BTreeMap::new(),
            echo_limit: Limiter::new(config.icmp_rate),
            error_limit: Limiter::new(config.icmp_rate),
            stats: HostStats::default(),
            config,
        })
    }

    /// Counters since the host was created.
    pub fn stats(&self) -> &HostStats {
        &self.stats
    }

    /// The configuration that the host was created with.
    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// Number of connections in any state: half-open, open, in TIME-WAIT, or ended and not released.
    pub fn connection_count(&self) -> usize {
        self.table.len()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` if no timer is armed. While
    /// [`poll_transmit`](Self::poll_transmit) has not been drained, it is a past time. It may be early, never late.
    /// O(1).
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.outgoing.is_empty() || self.udp.has_ready() {
            return Some(self.now);
        }
        self.timers.next()
    }

    /// Runs the timers due at `now`; does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        // Each connection once: if it is due again at once, it waits for the next call.
        for _ in 0..self.timers.len() {
            let Some(slot) = self.timers.pop(now) else {
                return;
            };
            let Some(c) = self.table.slot_mut(slot) else {
                continue;
            };
            c.armed = Instant::MAX;
            if c.deadline() <= now {
                if c.orphaned_until <= now {
                    c.on_orphan_timeout(now, self.config.orphan_timeout);
                }
                c.transport.handle_timeout(now);
            }
            self.on_changed(slot);
        }
    }

    /// The next event for the application. Events of one kind of a connection may have been merged.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        loop {
            match *self.event_sources.front()? {
                EventSource::Connection(id) => {
                    if let Some(event) = self.connection_event(id) {
                        return Some(event);
                    }
                }
                EventSource::Udp(id) => {
                    if let Some(event) = self.udp.event(id) {
                        return Some(event);
                    }
                }
            }
            self.event_sources.pop_front();
        }
    }

    fn connection_event(&mut self, id: ConnectionId) -> Option<HostEvent> {
        let c = self.table.get_mut(id)?;
        if let Origin::Queued(listener) = c.origin {
            c.origin = Origin::Accepted;
            let remote = c.path.tuple.remote();
            self.listeners.on_taken(listener);
            return Some(HostEvent::Accepted {
                listener,
                connection: id,
                remote,
            });
        }
        while let Some(event) = c.events.pop() {
            return Some(match event {
                // Reported as Accepted, or reported before.
                Waiting::CONNECTED if c.origin == Origin::Accepted => continue,
                Waiting::CLOSED if std::mem::replace(&mut c.is_told, true) => continue,
                Waiting::CONNECTED => HostEvent::Connected(id),
                Waiting::READABLE => HostEvent::Readable(id),
                Waiting::WRITABLE => HostEvent::Writable(id),
                Waiting::PEER_CLOSED => HostEvent::PeerClosed(id),
                _ => HostEvent::Closed {
                    id,
                    error: c.transport.error(),
                },
            });
        }
        if let Transport::Mptcp(m) = &mut c.transport
            && let Some(news) = m.subflow_events.pop_front()
        {
            return Some(HostEvent::Multipath { id, news });
        }
        c.is_eventful = false;
        None
    }

    /// Updates the host after any change of a connection: timers, queues, events and TIME-WAIT.
    #[inline]
    pub(crate) fn on_changed(&mut self, slot: u32) {
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        c.transport.collect(&mut c.events);
        if !c.is_ready {
            c.is_ready = true;
            self.ready.push_back(slot);
        }
        if c.has_events() {
            self.on_news(slot);
        }
        self.follow_subflows(slot);
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        match c.transport.state() {
            State::Closed | State::TimeWait | State::Listen => self.on_end(slot),
            state => {
                if c.is_released && c.transport.readable() > 0 && state.may_receive() {
                    // The data will not be read: reset (RFC 1122 §4.2.2.13).
                    c.transport.refuse_data(self.now);
                    self.on_end(slot);
                }
            }
        }
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        let wanted = c.deadline();
        self.timers.arm(slot, &mut c.armed, wanted);
    }

    pub(crate) fn on_news(&mut self, slot: u32) {
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        if let Origin::HalfOpen(listener) = c.origin {
            if !c.events.contains(Waiting::CONNECTED) {
                return;
            }
            c.origin = Origin::Queued(listener);
            self.stats.accepted += 1;
            self.listeners.on_opened(listener);
        }
        if !c.is_eventful && !c.is_released {
            c.is_eventful = true;
            let id = ConnectionId {
                serial: c.serial,
                slot,
            };
            self.event_sources.push_back(EventSource::Connection(id));
        }
    }

    /// Handles a connection that has ended, is in TIME-WAIT, or was reset before it was open.
    fn on_end(&mut self, slot: u32) {
        let now = self.now;
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        if let Origin::HalfOpen(listener) = c.origin {
            // The next SYN is handled by the listener, not by this endpoint.
            c.origin = Origin::Accepted;
            c.is_released = true;
            c.transport.close(now);
            self.stats.half_open_failed += 1;
            self.listeners.on_failed(listener);
        }
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        if c.transport.state() == State::TimeWait {
            c.orphaned_until = Instant::MAX;
            if !c.lingers {
                c.lingers = true;
                let serial = c.serial;
                self.time_wait.push_back(ConnectionId { serial, slot });
                self.limit_time_wait();
            }
        } else {
            c.orphaned_until = Instant::MAX;
            self.table.detach(slot);
        }
    }

    /// Removes the oldest connection in TIME-WAIT when there are too many.
    fn limit_time_wait(&mut self) {
        while self.time_wait.len() > self.config.most_in_time_wait {
            let Some(id) = self.time_wait.pop_front() else {
                return;
            };
            let oldest = self.table.slot_mut(id.slot);
            if let Some(c) = oldest.filter(|c| c.serial == id.serial && c.lingers) {
                self.stats.time_wait_dropped += 1;
                c.transport.end_time_wait();
                self.on_changed(id.slot);
            }
        }
        // Remove those at the front that have already ended.
        while let Some(id) = self.time_wait.front()
            && !is_lingering(self.table.slot(id.slot), *id)
        {
            self.time_wait.pop_front();
        }
    }

    /// Called when there is nothing more to send: removes the connection if it has ended and the application does
    /// not hold it.
    pub(crate) fn remove_if_done(&mut self, slot: u32) {
        let Some(c) = self.table.slot_mut(slot) else {
            return;
        };
        if c.transport.is_over() && c.is_released {
            self.timers.disarm(slot, &mut c.armed);
            self.table.remove(slot);
            return;
        }
        let wanted = c.deadline();
        self.timers.arm(slot, &mut c.armed, wanted);
    }
}

fn is_lingering(c: Option<&Connection>, id: ConnectionId) -> bool {
    c.is_some_and(|c| c.serial == id.serial && c.transport.state() == State::TimeWait)
}

//! Listeners: backlog, accept queue, and the processing of SYNs.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes as Buf;
use gargalo_cc::{Controller, Init as ControllerInit};
use gargalo_tcp::{Config, Endpoint, Init};
use gargalo_units::{Bytes, Duration, Ecn, Instant, Seq};
use gargalo_wire::tcp::{Flags, Segment};

use crate::connection::{Connection, Origin, Path, Tuple};
use crate::event::Waiting;
use crate::multipath::{CookieMode, offers_multipath};
use crate::transport::Transport;
use crate::{ConnectionId, Host, ListenerId, SocketError, SocketOptions, SynCookies, cookie};

/// How long after the last cookie acknowledgements are checked for one.
const COOKIE_LIFE: Duration = Duration::from_secs(120);
/// Addresses whose Fast Open cookies are kept.
const MOST_COOKIES: usize = 1024;

/// A listening socket, with the number of its connections that the application has not accepted.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) local: SocketAddr,
    pub(crate) options: SocketOptions,
    half_open: usize,
    queued: usize,
    /// Acknowledgements may carry cookies until this time.
    cookies_until: Instant,
}

/// The listeners of a host.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: BTreeMap<ListenerId, Listener>,
    by_port: BTreeMap<u16, Vec<ListenerId>>,
    next: u64,
}

impl Listeners {
    /// Adds a listener; `None` if the address is in use.
    pub(crate) fn add(&mut self, local: SocketAddr, options: SocketOptions) -> Option<ListenerId> {
        let there = self.by_port.entry(local.port()).or_default();
        if there.iter().any(|id| self.all[id].local == local) {
            return None;
        }
        let id = ListenerId(self.next);
        self.next += 1;
        there.push(id);
        let listener = Listener {
            local,
            options,
            half_open: 0,
            queued: 0,
            cookies_until: Instant::ZERO,
        };
        self.all.insert(id, listener);
        Some(id)
    }

    pub(crate) fn remove(&mut self, id: ListenerId) -> bool {
        let Some(listener) = self.all.remove(&id) else {
            return false;
        };
        if let Some(there) = self.by_port.get_mut(&listener.local.port()) {
            there.retain(|other| *other != id);
            if there.is_empty() {
                self.by_port.remove(&listener.local.port());
            }
        }
        true
    }

    pub(crate) fn set_options(&mut self, id: ListenerId, options: SocketOptions) {
        if let Some(listener) = self.all.get_mut(&id) {
            listener.options = options;
        }
    }

    pub(crate) fn get(&self, id: ListenerId) -> Option<&Listener> {
        self.all.get(&id)
    }

    /// The listener of an address: on exactly this address, else on any of its family, else on `[::]` for both
    /// families.
    pub(crate) fn find(&self, local: &SocketAddr) -> Option<ListenerId> {
        let there = self.by_port.get(&local.port())?;
        let rank = |id: &ListenerId| match self.all.get(id)?.local.ip() {
            ip if ip == local.ip() => Some(0),
            ip if ip.is_unspecified() && ip.is_ipv4() == local.is_ipv4() => Some(1),
            IpAddr::V6(ip) if ip.is_unspecified() => Some(2),
            _ => None,
        };
        let best = there.iter().filter_map(|id| Some((rank(id)?, *id))).min()?;
        Some(best.1)
    }

    /// Whether there is a listener on this port, on any address.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.by_port.contains_key(&port)
    }

    /// Whether one more connection may wait for the application.
    pub(crate) fn has_room(&self, id: ListenerId, most: usize) -> bool {
        self.all.get(&id).is_some_and(|l| l.queued < most)
    }

    fn change(&mut self, id: ListenerId, half_open: isize, queued: isize) {
        if let Some(l) = self.all.get_mut(&id) {
            l.half_open = l.half_open.saturating_add_signed(half_open);
            l.queued = l.queued.saturating_add_signed(queued);
        }
    }
    /// A half-open connection of the listener has opened.
    pub(crate) fn on_opened(&mut self, id: ListenerId) {
        self.change(id, -1, 1);
    }
    /// A half-open connection of the listener has failed.
    pub(crate) fn on_failed(&mut self, id: ListenerId) {
        self.change(id, -1, 0);
    }
    /// The application has accepted a connection.
    pub(crate) fn on_taken(&mut self, id: ListenerId) {
        self.change(id, 0, -1);
    }
}

impl Host {
    /// Processes a SYN for a listener; `last` is the sequence number that a former connection of the tuple reached.
    pub(crate) fn on_syn(
        &mut self,
        id: ListenerId,
        tuple: &Tuple,
        syn: Segment,
        ecn: Ecn,
        last: Option<Seq>,
    ) {
        let Some(listener) = self.listeners.get(id) else {
            return;
        };
        let is_full = listener.half_open >= self.config.backlog;
        let with_cookie = match self.config.syn_cookies {
            SynCookies::Off => false,
            SynCookies::WhenFull => is_full,
            SynCookies::Always => true,
        };
        if listener.queued >= self.config.accept_queue || (is_full && !with_cookie) {
            self.stats.dropped_by_backlog += 1;
            return;
        }
        if with_cookie {
            self.send_cookie(id, tuple, &syn);
            return;
        }
        // Connections that Fast Open has opened and nobody has taken are limited, too (RFC 7413 §5.1).
        let has_room = listener.half_open + listener.queued < self.config.backlog;
        let options = SocketOptions {
            fast_open: listener.options.fast_open && has_room,
            ..listener.options.clone()
        };
        if let Some(mptcp) = &options.mptcp
            && offers_multipath(&syn)
        {
            let mptcp = Arc::clone(mptcp);
            self.on_multipath_syn(id, tuple, syn, ecn, &options, &mptcp);
            return;
        }
        let isn = match (self.secrets.isn(tuple, self.now), last) {
            // The former connection is ahead of the clock: continue beyond any unscaled window.
            (isn, Some(last)) if !last.precedes(isn) => last + (1 << 16),
            (isn, _) => isn,
        };
        let Ok((config, controller)) = self.parts(tuple, &options) else {
            // The parameters were checked when the listener was created.
            self.stats.dropped_by_backlog += 1;
            return;
        };
        let init = self.init_fast(tuple, isn, &options, true);
        let mut endpoint = Endpoint::listen(config, controller, init, self.now);
        endpoint.handle(self.now, syn, ecn);
        self.half_open(id, tuple, Transport::Tcp(endpoint));
    }

    /// A half-open connection of a listener.
    pub(crate) fn half_open(
        &mut self,
        id: ListenerId,
        tuple: &Tuple,
        transport: Transport,
    ) -> Option<ConnectionId> {
        let dscp = self.listeners.get(id).map_or(0, |l| l.options.dscp);
        let new = self.admit(tuple, transport, Origin::HalfOpen(id), dscp)?;
        self.listeners.change(id, 1, 0);
        self.on_changed(new.slot);
        Some(new)
    }

    /// Answers a SYN with a cookie, without state (RFC 4987 §3.6).
    fn send_cookie(&mut self, id: ListenerId, tuple: &Tuple, syn: &Segment) {
        let now = self.now;
        let Some(listener) = self.listeners.all.get_mut(&id) else {
            return;
        };
        listener.cookies_until = now + COOKIE_LIFE;
        let config = fit(&listener.options.tcp, self.config.mtu, tuple.headers());
        let mptcp = listener.options.mptcp.clone();
        let dscp = listener.options.dscp;
        let isn = cookie::make(self.secrets.cookie, tuple, syn, now);
        let init = self.init(tuple, isn);
        let mut answer = Endpoint::answer(&config, &init, now, syn);
        if let Some(t) = &mut answer.options.timestamps {
            t.value = cookie::timestamp(t.value, syn);
        } else if let Some(x) = &mut answer.options.extra {
            // Without timestamps the cookie cannot carry them.
            x.window_scale = None;
            x.sack_permitted = false;
            answer.flags = Flags::SYN | Flags::ACK;
        }
        if let Some(mptcp) = mptcp.filter(|_| offers_multipath(syn)) {
            self.offer_in_cookie(tuple, &mptcp, &mut answer);
        }
        if self.send_stray(tuple, &answer, dscp) {
            self.stats.cookies_sent += 1;
        }
    }

    /// Processes an acknowledgement for a listener that belongs to no connection: it may carry a cookie.
    pub(crate) fn on_cookie(&mut self, id: ListenerId, tuple: &Tuple, ack: Segment, ecn: Ecn) {
        let now = self.now;
        let Some(listener) = self.listeners.get(id) else {
            return;
        };
        if listener.cookies_until <= now {
            self.reset_unknown(tuple, &ack);
            return;
        }
        let Some(syn) = cookie::check(self.secrets.cookie, tuple, &ack, now) else {
            self.stats.cookies_refused += 1;
            self.reset_unknown(tuple, &ack);
            return;
        };
        if listener.queued >= self.config.accept_queue {
            self.stats.dropped_by_accept_queue += 1;
            return;
        }
        let options = listener.options.clone();
        let isn = ack.ack + u32::MAX;
        let transport = match self.multipath_of_cookie(tuple, isn, &options, &ack) {
            CookieMode::Plain => {
                let Ok((config, controller)) = self.parts(tuple, &options) else {
                    return;
                };
                let init = self.init(tuple, isn);
                let mut endpoint = Endpoint::resume(config, controller, init, now, &syn);
                endpoint.handle(now, ack, ecn);
                Some(Transport::Tcp(endpoint))
            }
            CookieMode::Multipath(mptcp) => {
                self.resume_multipath(tuple, isn, &options, &mptcp, &syn, ack, ecn)
            }
            CookieMode::Later => return,
        };
        let Some(transport) = transport.filter(|t| t.state().is_synchronised()) else {
            return;
        };
        if self.half_open(id, tuple, transport).is_some() {
            self.stats.cookies_accepted += 1;
        }
    }

    /// The initial values of a connection that may use Fast Open: the cookie that the other end must show, or the one
    /// that it granted us.
    pub(crate) fn init_fast(
        &self,
        tuple: &Tuple,
        isn: Seq,
        options: &SocketOptions,
        listens: bool,
    ) -> Init {
        let remote = tuple.addresses.dst();
        let cookie = match (options.fast_open, listens) {
            (false, _) => None,
            (true, true) => Some(Buf::copy_from_slice(
                &self.secrets.fast_open(remote).to_be_bytes(),
            )),
            (true, false) => Some(self.cookies.get(&remote).cloned().unwrap_or_default()),
        };
        Init {
            fast_open_cookie: cookie,
            ..self.init(tuple, isn)
        }
    }

    /// Keeps the Fast Open cookie that the other end of a new connection has granted.
    pub(crate) fn keep_cookie(&mut self, slot: u32) {
        let Some(c) = self.table.slot(slot) else {
            return;
        };
        let Transport::Tcp(endpoint) = &c.transport else {
            return;
        };
        if let Some(cookie) = endpoint.granted_cookie() {
            if self.cookies.len() >= MOST_COOKIES {
                self.cookies.pop_first();
            }
            let remote = c.path.tuple.addresses.dst();
            self.cookies.insert(remote, cookie.clone());
        }
    }

    /// The initial values of a connection.
    pub(crate) fn init(&self, tuple: &Tuple, isn: Seq) -> Init {
        Init {
            local_port: tuple.local_port,
            remote_port: tuple.remote_port,
            isn,
            is_ipv6: tuple.is_v6(),
            ts_offset: self.secrets.timestamp_offset(tuple),
            fast_open_cookie: None,
        }
    }

    /// The configuration, with an MSS that fits the MTU, and the controller of a new connection.
    pub(crate) fn parts(
        &self,
        tuple: &Tuple,
        options: &SocketOptions,
    ) -> Result<(Arc<Config>, Box<dyn Controller>), SocketError> {
        let config = fit(&options.tcp, self.config.mtu, tuple.headers());
        let mss = u64::from(config.mss);
        let init = ControllerInit {
            now: self.now,
            mss: Bytes::new(mss),
            initial_window: config.first_window(),
            rng: self.secrets.stream(self.table.next_serial()),
        };
        let built = options.congestion.build(init);
        let controller = built.map_err(|message| SocketError::Congestion {
            name: options.congestion.name().to_owned(),
            message,
        })?;
        Ok((config, controller))
    }

    /// A new path, with the MTU of the host.
    pub(crate) fn path(&self, tuple: &Tuple) -> Path {
        Path {
            tuple: *tuple,
            header: self.header(tuple),
            mtu: self.config.mtu,
            keeps_mtu: false,
        }
    }

    /// Adds a connection to the table.
    pub(crate) fn admit(
        &mut self,
        tuple: &Tuple,
        transport: Transport,
        origin: Origin,
        dscp: u8,
    ) -> Option<ConnectionId> {
        let mut path = self.path(tuple);
        path.header.dscp = dscp & 0x3f;
        let new = Connection {
            serial: 0,
            transport,
            path,
            origin,
            armed: Instant::MAX,
            orphaned_until: Instant::MAX,
            undelivered: 0,
            is_ready: false,
            is_eventful: false,
            is_released: false,
            is_attached: true,
            lingers: false,
            is_told: false,
            events: Waiting::default(),
        };
        self.table.insert(*tuple, new)
    }
}

/// The configuration with an MSS that fits a path of `mtu` bytes.
pub(crate) fn fit(config: &Arc<Config>, mtu: u32, headers: u32) -> Arc<Config> {
    let most = mtu.saturating_sub(headers);
    if u32::from(config.announced_mss()) <= most {
        return Arc::clone(config);
    }
    let mut config = Config::clone(config);
    config.announce(u16::try_from(most).unwrap_or(u16::MAX));
    Arc::new(config)
}

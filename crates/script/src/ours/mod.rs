//! Our user-space host in virtual time.

mod call;
mod epoll;
mod info;
mod multipath;
mod options;
mod settings;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use epoll::{Epoll, Wakes};
use gargalo_cc::Registered;
use gargalo_host::{
    ConnectionId, Host, HostConfig, HostEvent, ListenerId, SocketOptions, SynCookies,
};
use gargalo_settings::{Files, Json, Setting, support::Map};
use gargalo_tcp::{Config, Error};
use gargalo_units::{Duration, Instant};
use multipath::PathSettings;
use options::Chosen;
use settings::LINUX_CUBIC;

use crate::ast::mptcp::Manage;
use crate::stack::{ADDRESSES, Handle, Op, Readiness, Reply, Sent, Setup, Stack, StackError};

/// Linux's limits of automatic tuning.
const BUFFERS: [(&str, u64); 2] = [("send_buffer", 4 << 20), ("receive_buffer", 6 << 20)];

const IN: i64 = 0x1;
const OUT: i64 = 0x4;
const ERR: i64 = 0x8;
const HUP: i64 = 0x10;
const RDHUP: i64 = 0x2000;

/// A host with our TCP.
pub struct Ours {
    setup: Setup,
    now: Instant,
    host: Host,
    /// Options of new sockets: those of the script, changed by settings.
    options: Map<String, Json>,
    congestion: String,
    /// The searches of hybrid slow start of Linux's CUBIC; `None`: as it has them.
    hystart: Option<&'static str>,
    /// The queue is `fq`, which paces.
    paces: bool,
    /// Fast Open: bits of `tcp_fastopen`.
    fast_open: i64,
    /// Sockets that listen accept ECN, and those that connect do not offer it.
    accepts_ecn: bool,
    /// Bytes of `tcp_notsent_lowat`.
    notsent_lowat: u32,
    /// Datagrams that were sent during a call.
    sent: VecDeque<Sent>,
    epolls: Vec<Epoll>,
    sockets: Vec<Socket>,
    accepted: HashMap<ListenerId, VecDeque<ConnectionId>>,
    by_connection: BTreeMap<ConnectionId, Handle>,
    multipath: PathSettings,
}

#[derive(Debug, Default)]
struct Socket {
    /// It was created for Multipath TCP (IPPROTO_MPTCP).
    multipath: bool,
    chosen: Chosen,
    fast_open: bool,
    /// TCP_FASTOPEN as it was set.
    fast_open_queue: i64,
    /// TCP_FASTOPEN_CONNECT: `connect` may leave the SYN to the first write.
    fast_open_connect: bool,
    /// It is connected, and its SYN waits for the first write.
    deferred: bool,
    /// The application waits for room to write.
    wants_room: bool,
    wakes: Wakes,
    keep_alive: Map<String, Json>,
    keeps_alive: bool,
    lingers: Option<(bool, i64)>,
    kind: Kind,
    connected: bool,
    peer_closed: bool,
    /// The error that ended the connection, until a call reports it.
    error: Option<&'static str>,
    ended: bool,
    shut_read: bool,
    shut_write: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    New,
    Listener(ListenerId),
    Connection(ConnectionId),
    Epoll(usize),
    Closed,
}

impl Ours {
    /// A host as a script wants it.
    ///
    /// # Errors
    /// When options are not valid.
    pub fn new(setup: &Setup) -> Result<Self, StackError> {
        let mut options = Map::new();
        // As Linux holds small segments back; scripts switch it off with TCP_NODELAY.
        options.insert("nagle".to_owned(), "minshall".into());
        for (name, bytes) in BUFFERS {
            options.insert(name.to_owned(), size(bytes));
        }
        for (key, value) in &setup.gargalo {
            options.insert(key.clone(), json(value));
        }
        let host = host(setup, SynCookies::default())?;
        let ours = Self {
            setup: setup.clone(),
            now: Instant::ZERO,
            host,
            options,
            congestion: setup.congestion.clone(),
            hystart: None,
            paces: false,
            fast_open: 1,
            accepts_ecn: false,
            notsent_lowat: u32::MAX,
            sent: VecDeque::new(),
            epolls: Vec::new(),
            sockets: Vec::new(),
            accepted: HashMap::new(),
            by_connection: BTreeMap::new(),
            multipath: PathSettings::new(setup),
        };
        let probe = Socket {
            multipath: true,
            ..Socket::default()
        };
        ours.parts(&probe).map_err(StackError::Unsupported)?;
        Ok(ours)
    }

    /// The congestion control of a socket, by the name that was set.
    fn congestion_of<'a>(&'a self, socket: &'a Socket) -> &'a str {
        let chosen = socket.chosen.congestion.as_deref();
        chosen.unwrap_or(&self.congestion)
    }

    /// The options of a socket's connections.
    fn parts(&self, socket: &Socket) -> Result<SocketOptions, String> {
        let mut map = self.options.clone();
        for (key, value) in &socket.chosen.options {
            map.insert(key.clone(), value.clone());
        }
        let mut config = Config::read(&Json::Object(map), &mut Files::default())
            .map_err(|e| format!("an option of our TCP is not valid: {e}"))?;
        let given = self.setup.gargalo.iter().any(|(key, _)| key == "mss");
        if let Some(announced) = socket.chosen.segment {
            config.announce(announced);
        } else if !given && config.fills_packets() {
            config.fill_packets(self.setup.mtu);
        }
        config.cork = socket.chosen.cork;
        config.notsent_lowat = self.lowat(&socket.chosen);
        config.user_timeout = socket.chosen.patience();
        let name = self.congestion_of(socket);
        let control = config.profile.control(name);
        let (name, mut params) = (control.instead.unwrap_or(name), control.params);
        if let Some(searches) = self.hystart.filter(|_| name == LINUX_CUBIC) {
            params = params.with("hystart_detect", searches);
        }
        if self.paces && name == LINUX_CUBIC {
            params = params.with("paced", true);
        }
        let congestion = Registered::new(name, params)
            .map_err(|e| format!("{e}; names are those of `gargalo list congestion`"))?;
        Ok(SocketOptions {
            fast_open: socket.fast_open,
            dscp: options::dscp(&socket.chosen),
            mptcp: self.multipath_options(socket)?,
            ..SocketOptions::new(Arc::new(config), Arc::new(congestion))
        })
    }

    fn at(&self, port: u16, of_other_end: bool) -> SocketAddr {
        let ip = if of_other_end {
            self.setup.remote()
        } else {
            self.setup.local()
        };
        SocketAddr::new(ip, port)
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.host.poll_event() {
            match event {
                HostEvent::Accepted {
                    listener,
                    connection,
                    ..
                } => {
                    let queue = self.accepted.entry(listener).or_default();
                    queue.push_back(connection);
                    let kind =
                        |s: &&mut Socket| matches!(s.kind, Kind::Listener(id) if id == listener);
                    let mut chosen = Chosen::default();
                    if let Some(socket) = self.sockets.iter_mut().find(kind) {
                        socket.wakes.0 += 1;
                        chosen = socket.chosen.clone();
                    }
                    self.host.set_keeps_mtu(connection, chosen.keeps_mtu);
                    self.sockets.push(Socket {
                        kind: Kind::Connection(connection),
                        chosen,
                        connected: true,
                        ..Socket::default()
                    });
                    self.by_connection
                        .insert(connection, self.sockets.len() - 1);
                }
                HostEvent::Connected(id) => self.with(id, |s| {
                    s.connected = true;
                    s.wake();
                }),
                HostEvent::Readable(id) => self.with(id, |s| s.wakes.0 += 1),
                HostEvent::PeerClosed(id) => self.with(id, |s| {
                    s.peer_closed = true;
                    s.wake();
                }),
                HostEvent::Closed { id, error } => self.with(id, |s| {
                    s.ended = true;
                    s.wake();
                    s.error = error.and_then(|e| errno(e, s.connected));
                }),
                _ => {}
            }
        }
        for socket in &mut self.sockets {
            if let Kind::Connection(id) = socket.kind
                && socket.wants_room
                && self.host.is_writable(id)
            {
                socket.wants_room = false;
                socket.wakes.1 += 1;
            }
        }
    }

    fn with(&mut self, id: ConnectionId, f: impl FnOnce(&mut Socket)) {
        let handle = self.by_connection.get(&id);
        if let Some(socket) = handle.and_then(|h| self.sockets.get_mut(*h)) {
            f(socket);
        }
    }
}

impl Socket {
    /// Wakes those who wait for any event.
    fn wake(&mut self) {
        self.wakes.0 += 1;
        self.wakes.1 += 1;
    }
}

fn host(setup: &Setup, syn_cookies: SynCookies) -> Result<Host, StackError> {
    let config = HostConfig {
        mtu: setup.mtu,
        seed: 1,
        syn_cookies,
        ..HostConfig::new((0..ADDRESSES).map(|n| setup.address(false, n)))
    };
    Host::new(config, Instant::ZERO).map_err(|e| StackError::Unsupported(e.to_string()))
}

fn errno(e: Error, connected: bool) -> Option<&'static str> {
    Some(match e {
        Error::Reset if connected => "ECONNRESET",
        Error::Reset | Error::Refused => "ECONNREFUSED",
        Error::TimedOut => "ETIMEDOUT",
        Error::Unreachable => "EHOSTUNREACH",
        Error::Aborted => return None,
    })
}

fn size(bytes: u64) -> Json {
    format!("{bytes}B").into()
}

fn json(text: &str) -> Json {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => match text.parse::<i64>() {
            Ok(n) => n.into(),
            Err(_) => text.into(),
        },
    }
}

impl Stack for Ours {
    fn now(&self) -> Instant {
        self.now
    }

    fn wait(&mut self, until: Instant, busy: bool) -> Result<Option<Sent>, StackError> {
        if let Some(sent) = self.sent.pop_front() {
            return Ok(Some(sent));
        }
        loop {
            let mut out = Vec::new();
            let sent = self.host.poll_transmit(self.now, &mut out);
            self.drain_events();
            if sent {
                return Ok(Some(Sent {
                    at: self.now,
                    doubt: Duration::ZERO,
                    bytes: out,
                }));
            }
            match self.host.poll_timeout() {
                Some(at) if at <= until => {
                    self.now = self.now.max(at);
                    self.host.handle_timeout(self.now);
                    self.drain_events();
                    if busy {
                        return Ok(None);
                    }
                }
                _ => {
                    self.now = self.now.max(until);
                    return Ok(None);
                }
            }
        }
    }

    fn receive(&mut self, datagram: Vec<u8>) -> Result<(), StackError> {
        self.host.handle(self.now, &datagram);
        self.drain_events();
        Ok(())
    }

    fn socket(&mut self, multipath: bool) -> Reply {
        self.sockets.push(Socket {
            multipath,
            ..Socket::default()
        });
        Reply::Socket(self.sockets.len() - 1)
    }

    fn epoll(&mut self) -> Reply {
        self.epolls.push(Epoll::default());
        self.sockets.push(Socket {
            kind: Kind::Epoll(self.epolls.len() - 1),
            ..Socket::default()
        });
        Reply::Socket(self.sockets.len() - 1)
    }

    fn call(&mut self, socket: Handle, op: &Op) -> Reply {
        self.drain_events();
        match op {
            Op::Bind => Reply::Value(0),
            Op::Listen(_) => self.listen(socket),
            Op::Accept => self.accept(socket),
            Op::Connect => self.connect_later(socket),
            Op::Read(parts) => self.read(socket, parts.iter().sum()),
            Op::Write(message) => self.write(socket, message),
            Op::FastOpen(message) => self.connect_with(socket, message),
            Op::NoBuffer(op) => self.without_buffer(socket, op),
            Op::Watch(watch) => self.watch(socket, watch),
            Op::Wait(most) => self.wait_epoll(socket, *most),
            Op::Close => self.close(socket),
            Op::Shutdown(read, write) => self.shutdown(socket, *read, *write),
            Op::Set(name, value) => self.set_option(socket, name, value),
            Op::Get(name) => self.get_option(socket, name),
            Op::Count(name) => self.count(socket, name),
        }
    }

    fn poll(&mut self, socket: Handle) -> Readiness {
        self.drain_events();
        let Some(s) = self.sockets.get_mut(socket) else {
            return Readiness(ERR);
        };
        let mut bits = 0;
        match s.kind {
            Kind::Listener(id) => {
                let waiting = self.accepted.get(&id).is_some_and(|q| !q.is_empty());
                bits |= if waiting { IN } else { 0 };
            }
            Kind::Connection(id) => {
                let over = s.ended || s.peer_closed;
                bits |= if self.host.readable(id) > 0 || over {
                    IN
                } else {
                    0
                };
                bits |= if over { RDHUP } else { 0 };
                bits |= if s.ended || (s.peer_closed && s.shut_write) {
                    HUP
                } else {
                    0
                };
                bits |= if s.error.is_some() { ERR } else { 0 };
                let room = s.connected && self.host.is_writable(id);
                s.wants_room |= s.connected && !room;
                bits |= if room || s.ended || s.shut_write {
                    OUT
                } else {
                    0
                };
            }
            Kind::New if s.deferred => bits |= OUT,
            Kind::Epoll(_) => {}
            Kind::New | Kind::Closed => bits |= OUT | HUP,
        }
        Readiness(bits)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), StackError> {
        let unsupported = || {
            StackError::Unsupported(format!(
                "our stack has nothing for {name}={value}: put the command behind `kernel:`, or use --gargalo"
            ))
        };
        let short = name.trim_start_matches("net.ipv4.");
        if self.set_special(short, value) {
            return Ok(());
        }
        let (key, json): (&str, Json) = match (short, value) {
            ("tcp_syncookies", "0" | "1" | "2") if self.sockets.is_empty() => {
                let when = match value {
                    "0" => SynCookies::Off,
                    "1" => SynCookies::WhenFull,
                    _ => SynCookies::Always,
                };
                self.host = host(&self.setup, when)?;
                return Ok(());
            }
            ("tcp_mtu_probing", "0") => ("mtu_probing", "off".into()),
            ("tcp_mtu_probing", "1") => ("mtu_probing", "black-hole".into()),
            ("tcp_mtu_probing", "2") => ("mtu_probing", "always".into()),
            ("tcp_retries2", n) => ("data_retries", json(n)),
            ("tcp_timestamps", "0" | "1") => ("timestamps", (value == "1").into()),
            ("tcp_sack", "0") => {
                self.options.insert("dsack".to_owned(), false.into());
                ("sack", false.into())
            }
            ("tcp_sack", "1") => ("sack", true.into()),
            ("tcp_dsack", "0" | "1") => ("dsack", (value == "1").into()),
            ("tcp_window_scaling", "0" | "1") => ("window_scaling", (value == "1").into()),
            ("tcp_early_retrans", "0" | "3" | "4") => ("tail_loss_probe", (value != "0").into()),
            ("tcp_frto", "0" | "2") => ("frto", (value == "2").into()),
            ("tcp_slow_start_after_idle", "0" | "1") => {
                ("slow_start_after_idle", (value == "1").into())
            }
            ("tcp_syn_retries", n) => ("syn_retries", json(n)),
            ("tcp_synack_retries", n) => ("syn_ack_retries", json(n)),
            ("tcp_recovery", "1") => ("recovery", "rack-tlp".into()),
            ("tcp_recovery", "0") => {
                self.options
                    .insert("tail_loss_probe".to_owned(), false.into());
                ("recovery", "sack".into())
            }
            ("net.mptcp.checksum_enabled", "0" | "1") => {
                self.multipath.set("checksum", (value == "1").into());
                return Ok(());
            }
            _ => return Err(unsupported()),
        };
        self.options.insert(key.to_owned(), json);
        Ok(())
    }

    fn manage(&mut self, manage: &Manage) -> Result<(), StackError> {
        self.manage_paths(manage)
    }

    fn pace(&mut self) -> Result<(), StackError> {
        self.options.insert("pacing".to_owned(), "window".into());
        self.paces = true;
        Ok(())
    }

    fn set_parameter(&mut self, module: &str, name: &str, value: &str) -> Result<(), StackError> {
        self.set_module(module, name, value).ok_or_else(|| {
            StackError::Unsupported(format!(
                "our stack has nothing for the parameter {name}={value} of {module}: with profile=linux-6 it takes \
                 hystart_detect of tcp_cubic, 0 to 3"
            ))
        })
    }

    fn info(&mut self, socket: Handle, field: &str) -> Option<i64> {
        self.field(socket, field)
    }
}

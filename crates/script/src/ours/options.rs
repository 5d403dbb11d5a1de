//! Options of sockets.

use gargalo_settings::{Json, support::Map};
use gargalo_tcp::{Endpoint, Nagle};
use gargalo_units::{Bytes, Duration};

use super::{Kind, Ours, Socket, size};
use crate::stack::{Handle, Reply, Value};

/// The least of Linux's send buffers (SOCK_MIN_SNDBUF), and the most that may be requested (`wmem_max`).
const LEAST_SEND_BUFFER: i64 = 4608;
const MOST_SEND_BUFFER: i64 = 4 << 20;
/// The least and the most of TCP_MAXSEG (Linux).
const SEGMENTS: std::ops::RangeInclusive<u16> = 88..=32_767;
/// The MSS of a socket that is not connected.
const DEFAULT_MSS: i64 = 536;
/// Bits of IP_TOS and IPV6_TCLASS that belong to the application.
const DSCP: i64 = 0xfc;

/// Options that hold for a socket in use as well; connections have those of their listener.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    /// What the configuration of connections is made of.
    pub(super) options: Map<String, Json>,
    pub(super) congestion: Option<String>,
    pub(super) no_delay: bool,
    pub(super) cork: bool,
    /// As it was set; 0: the default of the system.
    pub(super) lowat: i64,
    /// In milliseconds; 0: none.
    pub(super) user_timeout: i64,
    /// Type of service, or traffic class.
    pub(super) class: i64,
    /// TCP_MAXSEG: the MSS to announce; `None`: as the MTU allows.
    pub(super) segment: Option<u16>,
    /// SO_SNDBUF as `getsockopt` returns it.
    send_buffer: Option<i64>,
    /// IP_MTU_DISCOVER: whether reports of a smaller path MTU are ignored.
    pub(super) keeps_mtu: bool,
}

impl Chosen {
    /// How long data may stay unacknowledged.
    pub(super) fn patience(&self) -> Option<Duration> {
        let millis = u64::try_from(self.user_timeout).unwrap_or(0);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Applies what can be changed of a connection.
    fn apply(&self, endpoint: &mut Endpoint, name: &str, lowat: Option<Bytes>) {
        match name {
            "TCP_NODELAY" if self.no_delay => endpoint.set_nagle(Nagle::Off),
            "TCP_NODELAY" => endpoint.set_nagle(Nagle::Minshall),
            "TCP_CORK" => endpoint.set_cork(self.cork),
            "TCP_NOTSENT_LOWAT" => endpoint.set_notsent_lowat(lowat),
            "TCP_USER_TIMEOUT" => endpoint.set_user_timeout(self.patience()),
            "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
                let bytes = self.send_buffer.unwrap_or_default();
                endpoint.set_send_buffer(Bytes::new(bytes.unsigned_abs()));
            }
            _ => {}
        }
    }
}

impl Ours {
    /// The bytes of TCP_NOTSENT_LOWAT of a socket.
    pub(super) fn lowat(&self, chosen: &Chosen) -> Option<Bytes> {
        let set = u32::try_from(chosen.lowat & 0xffff_ffff).unwrap_or(u32::MAX);
        let bytes = if set == 0 { self.notsent_lowat } else { set };
        (bytes < u32::MAX).then(|| Bytes::new(bytes.into()))
    }

    pub(super) fn set_option(&mut self, handle: Handle, name: &str, value: &Value) -> Reply {
        let may = self.may_listen_fast();
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        if let (Value::Linger(on, secs), "SO_LINGER") = (value, name) {
            socket.lingers = Some((*on, *secs));
            return Reply::Value(0);
        }
        if let (Value::Text(text), "TCP_CONGESTION") = (value, name) {
            socket.chosen.congestion = Some(text.to_owned());
            return self.after_set(handle, name);
        }
        let Value::Int(n) = *value else {
            return Reply::Unsupported(format!("our stack cannot read the value of {name}"));
        };
        match name {
            "SO_REUSEADDR" | "SO_REUSEPORT" => return Reply::Value(0),
            // Content is never copied here, and free buffers are not reported.
            "SO_ZEROCOPY" if matches!(n, 0 | 1) => return Reply::Value(0),
            "TCP_FASTOPEN" => {
                socket.fast_open_queue = n;
                socket.fast_open = may && n > 0;
                return self.after_set(handle, name);
            }
            "TCP_FASTOPEN_CONNECT" => return self.set_fast_open_connect(handle, n),
            "SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" => {
                socket.keep_alive(name, n);
                return self.after_set(handle, name);
            }
            "TCP_QUICKACK" if n != 0 => return self.after_set(handle, name),
            "TCP_SYNCNT" => {
                socket
                    .chosen
                    .options
                    .insert("syn_retries".to_owned(), n.into());
                return self.after_set(handle, name);
            }
            "SO_RCVBUF" | "SO_RCVBUFFORCE" => {
                let options = &mut socket.chosen.options;
                options.insert("receive_buffer".to_owned(), size(n.unsigned_abs()));
                return self.after_set(handle, name);
            }
            _ => {}
        }
        self.set_changeable(handle, name, n)
    }

    /// An option that may be changed of a socket in use.
    fn set_changeable(&mut self, handle: Handle, name: &str, n: i64) -> Reply {
        let v6 = self.setup.v6;
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let chosen = &mut socket.chosen;
        let invalid = || Reply::Error("EINVAL".to_owned());
        match name {
            "TCP_NODELAY" => {
                chosen.no_delay = n != 0;
                let nagle = if n != 0 {
                    false.into()
                } else {
                    "minshall".into()
                };
                chosen.options.insert("nagle".to_owned(), nagle);
            }
            "TCP_CORK" => chosen.cork = n != 0,
            "TCP_NOTSENT_LOWAT" => chosen.lowat = n,
            "TCP_USER_TIMEOUT" if n < 0 => return invalid(),
            "TCP_USER_TIMEOUT" => chosen.user_timeout = n,
            "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
                let most = if name == "SO_SNDBUF" {
                    MOST_SEND_BUFFER
                } else {
                    1 << 29
                };
                let bytes = (2 * n.clamp(0, most)).max(LEAST_SEND_BUFFER);
                chosen.send_buffer = Some(bytes);
                let bytes = size(bytes.unsigned_abs());
                chosen.options.insert("send_buffer".to_owned(), bytes);
            }
            "TCP_MAXSEG" => match u16::try_from(n) {
                Ok(0) => chosen.segment = None,
                Ok(mss) if SEGMENTS.contains(&mss) => chosen.segment = Some(mss),
                _ => return invalid(),
            },
            "IP_MTU_DISCOVER" if !(0..=5).contains(&n) => return invalid(),
            // `IP_PMTUDISC_DONT`, `IP_PMTUDISC_INTERFACE` and `IP_PMTUDISC_OMIT`.
            "IP_MTU_DISCOVER" => chosen.keeps_mtu = matches!(n, 0 | 4 | 5),
            "IP_TOS" => chosen.class = n & DSCP,
            "IPV6_TCLASS" if !v6 => return Reply::Error("ENOPROTOOPT".to_owned()),
            "IPV6_TCLASS" if !(-1..=255).contains(&n) => return invalid(),
            "IPV6_TCLASS" => chosen.class = n.max(0) & DSCP,
            _ => {
                return Reply::Unsupported(format!(
                    "our stack does not have the socket option {name}: put the line behind `kernel:`, or leave it out"
                ));
            }
        }
        self.change(handle, name)
    }

    /// Applies a changed option to the connection, if there is one.
    fn change(&mut self, handle: Handle, name: &str) -> Reply {
        let Some(socket) = self.sockets.get(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let Kind::Connection(id) = socket.kind else {
            return self.after_set(handle, name);
        };
        let chosen = socket.chosen.clone();
        let lowat = self.lowat(&chosen);
        match name {
            // As in Linux it counts for the handshake only.
            "TCP_MAXSEG" => {}
            "IP_TOS" | "IPV6_TCLASS" => self.host.set_dscp(id, dscp(&chosen)),
            "IP_MTU_DISCOVER" => self.host.set_keeps_mtu(id, chosen.keeps_mtu),
            _ => match self.host.endpoint_mut(id) {
                Some(endpoint) => chosen.apply(endpoint, name, lowat),
                None => {
                    return Reply::Unsupported(format!(
                        "our Multipath TCP has no {name} for sockets in use: set it before listen or connect"
                    ));
                }
            },
        }
        Reply::Value(0)
    }

    fn set_fast_open_connect(&mut self, handle: Handle, n: i64) -> Reply {
        let may = self.may_connect_fast();
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let is_new = matches!(socket.kind, Kind::New) && !socket.deferred;
        let name = match n {
            0 | 1 if !may => "EOPNOTSUPP",
            0 | 1 if is_new => {
                socket.fast_open_connect = n == 1;
                return Reply::Value(0);
            }
            _ => "EINVAL",
        };
        Reply::Error(name.to_owned())
    }

    /// Options take effect when a socket listens or connects; those of a listener for later connections.
    pub(super) fn after_set(&mut self, handle: Handle, name: &str) -> Reply {
        let Some(socket) = self.sockets.get(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let kind = socket.kind;
        let parts = match self.parts(socket) {
            Ok(parts) => parts,
            Err(message) => return Reply::Unsupported(message),
        };
        match kind {
            Kind::New => Reply::Value(0),
            Kind::Listener(id) => match self.host.set_listener_options(id, parts) {
                Ok(()) => Reply::Value(0),
                Err(e) => Reply::Unsupported(e.to_string()),
            },
            _ => Reply::Unsupported(format!(
                "our stack has no {name} for sockets in use: set it before listen or connect"
            )),
        }
    }

    pub(super) fn get_option(&mut self, handle: Handle, name: &str) -> Reply {
        if let ("TCP_CONGESTION", Some(socket)) = (name, self.sockets.get(handle)) {
            return Reply::Got(Value::Text(self.congestion_of(socket).to_owned()));
        }
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let endpoint = match socket.kind {
            Kind::Connection(id) => self.host.endpoint(id),
            _ => None,
        };
        let chosen = &socket.chosen;
        let n = match name {
            "SO_ERROR" => {
                return Reply::Got(match socket.error.take() {
                    Some(name) => Value::Text(name.to_owned()),
                    None => Value::Int(0),
                });
            }
            "TCP_NODELAY" => endpoint
                .map_or(chosen.no_delay, |e| e.nagle() == Nagle::Off)
                .into(),
            "TCP_CORK" => chosen.cork.into(),
            "TCP_NOTSENT_LOWAT" => chosen.lowat,
            "TCP_USER_TIMEOUT" => chosen.user_timeout,
            "IP_TOS" | "IPV6_TCLASS" => chosen.class,
            "TCP_FASTOPEN" => socket.fast_open_queue,
            "TCP_FASTOPEN_CONNECT" => socket.fast_open_connect.into(),
            "TCP_MAXSEG" => match (endpoint.map_or(0, Endpoint::mss), socket.kind) {
                (0, Kind::Connection(_)) => DEFAULT_MSS,
                (0, _) => chosen.segment.map_or(DEFAULT_MSS, i64::from),
                (mss, _) => mss.into(),
            },
            "SO_SNDBUF" if let Some(bytes) = chosen.send_buffer => bytes,
            _ => {
                return Reply::Unsupported(format!(
                    "our stack cannot be asked for {name}: supported are SO_ERROR, SO_SNDBUF once set, IP_TOS, \
                     IPV6_TCLASS, TCP_CONGESTION, TCP_NODELAY, TCP_CORK, TCP_MAXSEG, TCP_NOTSENT_LOWAT, \
                     TCP_USER_TIMEOUT, TCP_FASTOPEN, TCP_FASTOPEN_CONNECT"
                ));
            }
        };
        Reply::Got(Value::Int(n))
    }
}

/// The codepoint of the packets of a socket.
pub(super) fn dscp(chosen: &Chosen) -> u8 {
    u8::try_from(chosen.class >> 2).unwrap_or(0)
}

impl Socket {
    /// Keep-alive probes: the times and the number hold once `SO_KEEPALIVE` is on.
    fn keep_alive(&mut self, name: &str, n: i64) {
        let k = &mut self.keep_alive;
        match name {
            "TCP_KEEPIDLE" => k.insert("idle".to_owned(), format!("{n}s").into()),
            "TCP_KEEPINTVL" => k.insert("interval".to_owned(), format!("{n}s").into()),
            "TCP_KEEPCNT" => k.insert("probes".to_owned(), n.into()),
            _ => {
                self.keeps_alive = n != 0;
                None
            }
        };
        let value = if self.keeps_alive {
            Json::Object(self.keep_alive.clone())
        } else {
            false.into()
        };
        self.chosen.options.insert("keep_alive".to_owned(), value);
    }
}

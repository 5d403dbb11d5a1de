//! Calls of our host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes as Buf;
use gargalo_host::ConnectionId;
use gargalo_settings::Json;

use std::collections::VecDeque;

use super::{Kind, Ours, Socket, size};
use crate::stack::{Handle, Op, Reply, Value};

impl Ours {
    pub(super) fn listen(&mut self, handle: Handle) -> Reply {
        let (accepts_ecn, all_fast) = (self.accepts_ecn, self.all_listen_fast());
        if let Some(socket) = self.sockets.get_mut(handle) {
            socket.fast_open |= all_fast;
            if accepts_ecn {
                socket.options.insert("ecn".to_owned(), true.into());
            }
        }
        let Some(socket) = self.sockets.get(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let options = match self.parts(socket) {
            Ok(options) => options,
            Err(message) => return Reply::Unsupported(message),
        };
        let any: IpAddr = if self.setup.v6 {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let local = SocketAddr::new(any, self.setup.local_port());
        match self.host.listen(local, options) {
            Ok(id) => {
                if let Some(socket) = self.sockets.get_mut(handle) {
                    socket.kind = Kind::Listener(id);
                }
                Reply::Value(0)
            }
            Err(gargalo_host::SocketError::InUse { .. }) => Reply::Error("EADDRINUSE".to_owned()),
            Err(e) => Reply::Unsupported(e.to_string()),
        }
    }

    pub(super) fn connect(&mut self, handle: Handle) -> Reply {
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        if let Kind::Connection(_) = socket.kind {
            return match (socket.error.take(), socket.connected) {
                (Some(name), _) => Reply::Error(name.to_owned()),
                (None, true) => Reply::Value(0),
                (None, false) => Reply::Blocks("EALREADY"),
            };
        }
        let Some(socket) = self.sockets.get(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let options = match self.parts(socket) {
            Ok(options) => options,
            Err(message) => return Reply::Unsupported(message),
        };
        let local = self.setup.bind_port.map(|port| self.at(port, false));
        let remote = self.at(self.setup.connect_port, true);
        match self.host.connect(self.now, local, remote, &options) {
            Ok(id) => {
                self.by_connection.insert(id, handle);
                if let Some(socket) = self.sockets.get_mut(handle) {
                    socket.kind = Kind::Connection(id);
                }
                Reply::Blocks("EINPROGRESS")
            }
            Err(e) => Reply::Unsupported(e.to_string()),
        }
    }

    /// Opens with data in the SYN if the other end has granted a cookie; otherwise the data follows the handshake.
    pub(super) fn connect_with(&mut self, handle: Handle, n: usize) -> Reply {
        let may = self.may_connect_fast();
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        if !may {
            return Reply::Error("EOPNOTSUPP".to_owned());
        }
        let is_new = matches!(socket.kind, Kind::New);
        socket.fast_open = true;
        match (is_new, self.connect(handle)) {
            (false, Reply::Value(0)) => self.write(handle, n),
            (true, blocks) => {
                let shows_cookie = self
                    .connection(handle)
                    .is_some_and(|id| self.host.shows_cookie(id));
                if !shows_cookie {
                    return blocks;
                }
                let Some(id) = self.connection(handle) else {
                    return blocks;
                };
                Reply::Value(self.host.write(id, Buf::from(vec![0; n])) as i64)
            }
            (_, other) => other,
        }
    }

    pub(super) fn accept(&mut self, handle: Handle) -> Reply {
        let Some(Kind::Listener(id)) = self.sockets.get(handle).map(|s| s.kind) else {
            return Reply::Error("EINVAL".to_owned());
        };
        let next = self.accepted.get_mut(&id).and_then(VecDeque::pop_front);
        match next.and_then(|c| self.by_connection.get(&c)) {
            Some(handle) => Reply::Socket(*handle),
            None => Reply::Blocks("EAGAIN"),
        }
    }

    pub(super) fn read(&mut self, handle: Handle, most: usize) -> Reply {
        let Some(Socket {
            kind: Kind::Connection(id),
            ..
        }) = self.sockets.get(handle)
        else {
            return Reply::Error("ENOTCONN".to_owned());
        };
        let id = *id;
        let mut n = 0;
        while n < most {
            let left = (most - n) as u64;
            match self.host.read(id, left) {
                Some(bytes) if !bytes.is_empty() => n += bytes.len(),
                _ => break,
            }
        }
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        if n > 0 || most == 0 {
            return Reply::Value(n as i64);
        }
        match socket.error.take() {
            Some(name) => Reply::Error(name.to_owned()),
            None if socket.peer_closed || socket.ended || socket.shut_read => Reply::Value(0),
            None => Reply::Blocks("EAGAIN"),
        }
    }

    pub(super) fn write(&mut self, handle: Handle, n: usize) -> Reply {
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let Kind::Connection(id) = socket.kind else {
            return Reply::Error("EPIPE".to_owned());
        };
        if let Some(name) = socket.error.take() {
            return Reply::Error(name.to_owned());
        }
        if socket.shut_write || socket.ended {
            return Reply::Error("EPIPE".to_owned());
        }
        if !socket.connected {
            return Reply::Blocks("EAGAIN");
        }
        match self.host.write(id, Buf::from(vec![0; n])) {
            0 if n > 0 => Reply::Blocks("EAGAIN"),
            taken => Reply::Value(taken as i64),
        }
    }

    /// A call with NULL: the fault comes when there is something to copy.
    pub(super) fn without_buffer(&mut self, handle: Handle, op: &Op) -> Reply {
        let readable = self
            .connection(handle)
            .map_or(0, |id| self.host.readable(id));
        match op {
            Op::Read(n) if *n == 0 || readable == 0 => self.read(handle, *n),
            Op::Write(0) => self.write(handle, 0),
            _ => Reply::Error("EFAULT".to_owned()),
        }
    }

    pub(super) fn close(&mut self, handle: Handle) -> Reply {
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let aborts = matches!(socket.lingers, Some((true, 0)));
        match std::mem::replace(&mut socket.kind, Kind::Closed) {
            Kind::Listener(id) => self.host.close_listener(id),
            Kind::Connection(id) => {
                if aborts {
                    self.host.abort(self.now, id);
                }
                self.host.release(id);
            }
            Kind::New => {}
            Kind::Closed => return Reply::Error("EBADF".to_owned()),
        }
        Reply::Value(0)
    }

    pub(super) fn shutdown(&mut self, handle: Handle, read: bool, write: bool) -> Reply {
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let Kind::Connection(id) = socket.kind else {
            return Reply::Error("ENOTCONN".to_owned());
        };
        if socket.ended {
            return Reply::Error("ENOTCONN".to_owned());
        }
        socket.shut_read |= read;
        socket.shut_write |= write;
        if write {
            self.host.close(self.now, id);
        }
        Reply::Value(0)
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
            socket.congestion = Some(text.clone());
            return self.after_set(handle, name);
        }
        let Value::Int(n) = *value else {
            return Reply::Unsupported(format!("our stack cannot read the value of {name}"));
        };
        let on = n != 0;
        let (key, json): (&str, Json) = match name {
            "SO_REUSEADDR" | "SO_REUSEPORT" => return Reply::Value(0),
            "TCP_NODELAY" if on => ("nagle", false.into()),
            "TCP_NODELAY" => ("nagle", "minshall".into()),
            "SO_RCVBUF" | "SO_RCVBUFFORCE" => ("receive_buffer", size(n.unsigned_abs())),
            "SO_SNDBUF" | "SO_SNDBUFFORCE" => ("send_buffer", size(n.unsigned_abs())),
            "TCP_MAXSEG" => {
                // Linux's bounds; 0: as the MTU allows.
                socket.mss = match u16::try_from(n) {
                    Ok(0) => None,
                    Ok(mss @ 88..=32_767) => Some(mss),
                    _ => return Reply::Error("EINVAL".to_owned()),
                };
                return self.after_set(handle, name);
            }
            "TCP_FASTOPEN" => {
                socket.fast_open = may && n > 0;
                return self.after_set(handle, name);
            }
            "TCP_SYNCNT" => ("syn_retries", n.into()),
            "SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" => {
                socket.keep_alive(name, n);
                return self.after_set(handle, name);
            }
            "TCP_QUICKACK" if on => return self.after_set(handle, name),
            _ => {
                return Reply::Unsupported(format!(
                    "our stack does not have the socket option {name}: put the line behind `kernel:`, or leave it out"
                ));
            }
        };
        socket.options.insert(key.to_owned(), json);
        self.after_set(handle, name)
    }

    /// Options take effect when a socket listens or connects.
    pub(super) fn after_set(&self, handle: Handle, name: &str) -> Reply {
        let Some(socket) = self.sockets.get(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        if !matches!(socket.kind, Kind::New) {
            return Reply::Unsupported(format!(
                "our stack has no {name} for sockets in use: set it before listen or connect"
            ));
        }
        match self.parts(socket) {
            Ok(_) => Reply::Value(0),
            Err(message) => Reply::Unsupported(message),
        }
    }

    pub(super) fn get_option(&mut self, handle: Handle, name: &str) -> Reply {
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        let endpoint = match socket.kind {
            Kind::Connection(id) => self.host.endpoint(id),
            _ => None,
        };
        match (name, endpoint) {
            ("SO_ERROR", _) => Reply::Got(match socket.error.take() {
                Some(name) => Value::Text(name.to_owned()),
                None => Value::Int(0),
            }),
            ("TCP_NODELAY", Some(e)) => Reply::Got(Value::Int(i64::from(
                e.config().nagle == gargalo_tcp::Nagle::Off,
            ))),
            _ => Reply::Unsupported(format!(
                "our stack cannot be asked for {name}: supported are SO_ERROR, TCP_NODELAY"
            )),
        }
    }

    pub(super) fn connection(&self, handle: Handle) -> Option<ConnectionId> {
        match self.sockets.get(handle)?.kind {
            Kind::Connection(id) => Some(id),
            _ => None,
        }
    }

    pub(super) fn count(&self, handle: Handle, name: &str) -> Reply {
        let Some(id) = self.connection(handle) else {
            return Reply::Error("EINVAL".to_owned());
        };
        let n = match name {
            "SIOCINQ" => self.host.readable(id),
            "SIOCOUTQ" => self.host.unacknowledged(id),
            _ => self.host.endpoint(id).map_or(0, |e| e.unsent()),
        };
        Reply::Got(Value::Int(n as i64))
    }
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
        self.options.insert("keep_alive".to_owned(), value);
    }
}

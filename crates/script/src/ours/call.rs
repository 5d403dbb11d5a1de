//! Calls of our host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes as Buf;
use gargalo_host::ConnectionId;
use gargalo_tcp::Ending;
use gargalo_units::Duration;

use std::collections::VecDeque;

use super::{Kind, Ours, Socket};
use crate::stack::{Handle, Message, Op, Reply, Sent, Value};

impl Ours {
    pub(super) fn listen(&mut self, handle: Handle) -> Reply {
        let (accepts_ecn, all_fast) = (self.accepts_ecn, self.all_listen_fast());
        if let Some(socket) = self.sockets.get_mut(handle) {
            socket.fast_open |= all_fast;
            if accepts_ecn {
                socket.chosen.options.insert("ecn".to_owned(), true.into());
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
        if socket.deferred {
            return Reply::Error("EISCONN".to_owned());
        }
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
                    self.host.set_keeps_mtu(id, socket.chosen.keeps_mtu);
                    socket.kind = Kind::Connection(id);
                }
                Reply::Blocks("EINPROGRESS")
            }
            Err(e) => Reply::Unsupported(e.to_string()),
        }
    }

    /// `connect` with TCP_FASTOPEN_CONNECT: with a cookie the SYN waits for the first write, otherwise it requests one.
    pub(super) fn connect_later(&mut self, handle: Handle) -> Reply {
        let remote = self.at(self.setup.connect_port, true).ip();
        let knows = self.host.knows_cookie(remote);
        if let Some(socket) = self.sockets.get_mut(handle)
            && socket.fast_open_connect
            && !socket.deferred
            && matches!(socket.kind, Kind::New)
        {
            socket.fast_open = true;
            if knows {
                socket.deferred = true;
                return Reply::Value(0);
            }
        }
        self.connect(handle)
    }

    /// Opens with data in the SYN if the other end has granted a cookie; otherwise the data follows the handshake.
    pub(super) fn connect_with(&mut self, handle: Handle, message: &Message) -> Reply {
        let may = self.may_connect_fast();
        let Some(socket) = self.sockets.get_mut(handle) else {
            return Reply::Error("EBADF".to_owned());
        };
        if !may {
            return Reply::Error("EOPNOTSUPP".to_owned());
        }
        let is_new = matches!(socket.kind, Kind::New);
        socket.fast_open = true;
        socket.deferred = false;
        match (is_new, self.connect(handle)) {
            (false, Reply::Value(0)) => self.write(handle, message),
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
                Reply::Value(self.host.write(id, Buf::from(vec![0; message.total()])) as i64)
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
        if self.sockets.get(handle).is_some_and(|s| s.deferred) {
            return Reply::Blocks("EAGAIN");
        }
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

    pub(super) fn write(&mut self, handle: Handle, message: &Message) -> Reply {
        if self.sockets.get(handle).is_some_and(|s| s.deferred) {
            return self.connect_with(handle, message);
        }
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
        let n = message.total();
        let taken = self.write_all(id, message);
        if taken < n
            && let Some(socket) = self.sockets.get_mut(handle)
        {
            socket.wants_room = true;
        }
        match taken {
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
            Op::Read(parts) => match parts.iter().sum() {
                most if most == 0 || readable == 0 => self.read(handle, most),
                _ => Reply::Error("EFAULT".to_owned()),
            },
            Op::Write(message) if message.total() == 0 => self.write(handle, message),
            _ => Reply::Error("EFAULT".to_owned()),
        }
    }

    /// Writes what is taken, and continues when segments that were sent have made room.
    fn write_all(&mut self, id: ConnectionId, message: &Message) -> usize {
        let ending = match (message.more, message.record) {
            (true, _) => Ending::More,
            (false, true) => Ending::Record,
            _ => Ending::Plain,
        };
        let n = message.total();
        let mut done = 0;
        loop {
            let first = self.host.endpoint(id).and_then(|e| e.first_piece());
            let first = first.map_or(n, |bytes| usize::try_from(bytes).unwrap_or(n));
            let part = first.min(n - done);
            let follows = if done + part < n {
                Ending::More
            } else {
                ending
            };
            let taken = self.host.write_with(id, Buf::from(vec![0; part]), follows);
            done += taken;
            if taken == 0 || done == n {
                return done;
            }
            loop {
                let mut bytes = Vec::new();
                if !self.host.poll_transmit(self.now, &mut bytes) {
                    break;
                }
                self.sent.push_back(Sent {
                    at: self.now,
                    doubt: Duration::ZERO,
                    bytes,
                });
            }
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
            Kind::New => socket.deferred = false,
            Kind::Epoll(n) => {
                if let Some(epoll) = self.epolls.get_mut(n) {
                    *epoll = Default::default();
                }
            }
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

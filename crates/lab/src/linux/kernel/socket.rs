//! Kernel sockets as the applications of flows see them.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::net::{Shutdown, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use gargalo_flow::TcpSpec;
use gargalo_tcp::EcnMode;
use gargalo_units::Ecn;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::linux::traffic::{Arrival, Datagrams, Flow, Received, Stream};
use crate::{Error, Result};
use gargalo_device::NetNs;
use gargalo_device::netlink::any;

/// Most bytes read at once.
const READ: usize = 256 << 10;
/// Listen backlog: a flow has one connection.
const BACKLOG: i32 = 8;

/// A connection of the kernel.
#[derive(Debug)]
pub(crate) struct KernelStream {
    pub(crate) socket: Socket,
    buffer: Vec<u8>,
}

impl KernelStream {
    pub(crate) fn new(socket: Socket) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
        }
    }
}

impl Stream for KernelStream {
    fn write(&mut self, data: &Bytes) -> io::Result<usize> {
        self.socket.send(data)
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> io::Result<Received> {
        self.buffer.resize(READ, 0);
        match (&self.socket).read(&mut self.buffer)? {
            0 => Ok(Received::End),
            n => {
                sink(&self.buffer[..n]);
                Ok(Received::Bytes(n as u64))
            }
        }
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }
}

/// UDP sockets of the kernel at one host.
#[derive(Debug)]
pub(crate) struct KernelDatagrams {
    host: Arc<NetNs>,
    pub(crate) sockets: Vec<(SocketAddr, Socket)>,
    buffer: Vec<u8>,
    /// The source and length of the datagram in the buffer that has not been read yet.
    fetched: Option<(Arrival, usize)>,
}

impl KernelDatagrams {
    /// Creates sockets at these addresses of a host.
    pub(crate) fn new(host: &Arc<NetNs>, locals: &[SocketAddr]) -> Result<Self> {
        let of = |local: &SocketAddr| Ok((*local, datagrams(host, *local)?));
        Ok(Self {
            host: Arc::clone(host),
            sockets: locals.iter().map(of).collect::<Result<_>>()?,
            buffer: vec![0; 65_535],
            fetched: None,
        })
    }

    /// Reads the next datagram from the kernel, for [`Datagrams::receive`]; returns whether there is one. The clock,
    /// read after it, is not before its arrival.
    pub(crate) fn fetch(&mut self) -> bool {
        // Errors of an earlier datagram do not concern a receiver.
        let buffer = &mut self.buffer;
        let of = |(local, socket): &(SocketAddr, Socket)| receive(socket, *local, buffer).ok();
        self.fetched = self.sockets.iter().find_map(of);
        self.fetched.is_some()
    }
}

/// Reads a datagram and its ECN codepoint (RFC 3168 §5) from the kernel.
fn receive(socket: &Socket, local: SocketAddr, buffer: &mut [u8]) -> io::Result<(Arrival, usize)> {
    let mut control = nix::cmsg_space!(u8);
    let mut parts = [IoSliceMut::new(buffer)];
    let fd = socket.as_raw_fd();
    let flags = MsgFlags::empty();
    let message = recvmsg::<SockaddrIn>(fd, &mut parts, Some(&mut control), flags)?;
    let mut ecn = Ecn::NotEct;
    for m in message.cmsgs()? {
        if let ControlMessageOwned::Ipv4Tos(tos) = m {
            ecn = Ecn::from_bits(tos);
        }
    }
    let remote = message.address.map(SocketAddrV4::from);
    let remote = remote.ok_or(io::ErrorKind::AddrNotAvailable)?.into();
    Ok((Arrival { local, remote, ecn }, message.bytes))
}

impl Datagrams for KernelDatagrams {
    fn send(
        &mut self,
        data: &[u8],
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<()> {
        let own = self.sockets.iter().find(|(address, _)| *address == local);
        let (Some((_, socket)), SocketAddr::V4(remote)) = (own, remote) else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let tos = ecn as u8;
        let parts = [IoSlice::new(data)];
        let control = [ControlMessage::Ipv4Tos(&tos)];
        let control = if ecn == Ecn::NotEct {
            &[]
        } else {
            &control[..]
        };
        let to = SockaddrIn::from(remote);
        let flags = MsgFlags::empty();
        sendmsg(socket.as_raw_fd(), &parts, control, flags, Some(&to))?;
        Ok(())
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Arrival, &[u8])) -> io::Result<bool> {
        Ok(match self.fetched.take() {
            Some((from, n)) => {
                sink(from, &self.buffer[..n]);
                true
            }
            None => false,
        })
    }

    fn bind(&mut self, local: SocketAddr) -> io::Result<()> {
        let made = datagrams(&self.host, local);
        let socket = made.map_err(|e| io::Error::other(e.to_string()))?;
        self.sockets.push((local, socket));
        Ok(())
    }
}

/// Creates a socket that listens in a host's namespace.
pub(crate) fn listen(
    host: &NetNs,
    local: SocketAddr,
    tcp: &TcpSpec,
    multipath: bool,
) -> Result<Socket> {
    // MP_JOIN may arrive at any address.
    let local = match multipath {
        true => SocketAddr::new(any(local.ip()), local.port()),
        false => local,
    };
    host.run(|| {
        let what = || format!("listening at {local}");
        let socket = stream(local, tcp, multipath)?;
        let done = socket
            .set_reuse_address(true)
            .and_then(|()| socket.bind(&local.into()))
            .and_then(|()| socket.listen(BACKLOG));
        done.map_err(|e| Error::system(what(), e))?;
        Ok(socket)
    })
}

/// Creates a socket that is connecting.
pub(crate) fn connect(
    host: &NetNs,
    from: SocketAddr,
    to: SocketAddr,
    tcp: &TcpSpec,
    multipath: bool,
) -> Result<Socket> {
    host.run(|| {
        let what = |e| Error::system(format!("connecting to {to}"), e);
        let socket = stream(to, tcp, multipath)?;
        socket.bind(&from.into()).map_err(what)?;
        match socket.connect(&to.into()) {
            Err(e) if e.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(what(e)),
            _ => Ok(socket),
        }
    })
}

/// Checks that the kernel has the congestion control of a flow that a host sends. A Multipath TCP socket accepts any
/// name, and its subflows then run the default; only a TCP socket reports the error.
pub(crate) fn check_congestion(host: &NetNs, name: &str, flow: &Flow) -> Result<()> {
    let taken = host.run(|| take_congestion(name))?;
    taken.map_err(|reason| Error::Congestion {
        flow: format!("flow {} ({})", flow.spec.id, flow.spec.label),
        name: name.to_owned(),
        reason,
        offered: offered(),
    })
}

/// The names of the congestion controls that the kernel has, as text, if it does not have the one of this name;
/// `None`: it has it, or cannot be queried here. The query may load the module of that name, which the kernel does
/// only for the root of the first user namespace.
pub fn congestion_instead_of(name: &str) -> Option<String> {
    let taken = take_congestion(name).ok()?;
    let error = taken.err()?;
    (error.kind() == io::ErrorKind::NotFound).then(offered)
}

/// Sets a congestion control on a socket; returns the kernel's answer.
fn take_congestion(name: &str) -> Result<io::Result<()>> {
    let made = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    let socket = made.map_err(|e| Error::system("making a TCP socket", e))?;
    Ok(set_congestion(&socket, name))
}

/// Sets a congestion control on a socket, by our name or by the kernel's.
pub(super) fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    let name = match name {
        "cubic-linux" => "cubic",
        own => own,
    };
    socket.set_tcp_congestion(name.as_bytes())
}

/// The kernel's congestion controls, the same in all namespaces.
fn offered() -> String {
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let all = all.unwrap_or_default();
    all.split_whitespace().collect::<Vec<_>>().join(", ")
}

/// The congestion control of a connection; with Multipath TCP that of its first subflow.
pub(crate) fn congestion(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(name).into_owned()).filter(|n| !n.is_empty())
}

/// Creates a TCP socket. An end that does not send need not have the flow's congestion control; for one that sends,
/// [`check_congestion`] was called before.
fn stream(near: SocketAddr, tcp: &TcpSpec, multipath: bool) -> Result<Socket> {
    let failed = |e| Error::system("making a TCP socket", e);
    let domain = Domain::for_address(near);
    let (protocol, remedy) = match multipath {
        true => (
            Protocol::MPTCP,
            "the kernel needs CONFIG_MPTCP and net.mptcp.enabled=1",
        ),
        false => (Protocol::TCP, ""),
    };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(protocol));
    let socket = socket
        .map_err(|e| Error::with_remedy(format!("making a {protocol:?} socket"), e, remedy))?;
    let _ = set_congestion(&socket, tcp.congestion.name());
    socket
        .set_tcp_nodelay(tcp.config.nagle == gargalo_tcp::Nagle::Off)
        .map_err(failed)?;
    // What these profiles have is left to the kernel.
    let usual = match tcp.config.profile {
        gargalo_tcp::Profile::Linux6 => gargalo_tcp::Config::linux_6(),
        _ => gargalo_tcp::Config::modern(),
    };
    let mss = tcp.config.announced_mss();
    if mss < usual.announced_mss() {
        socket.set_tcp_mss(u32::from(mss)).map_err(failed)?;
    }
    if tcp.config.receive_buffer != usual.receive_buffer {
        // The kernel doubles the requested size to account for its bookkeeping.
        let bytes = usize::try_from(tcp.config.receive_buffer.get() / 2).unwrap_or(usize::MAX);
        socket.set_recv_buffer_size(bytes).map_err(failed)?;
    }
    if tcp.config.send_buffer != usual.send_buffer {
        let bytes = usize::try_from(tcp.config.send_buffer.get() / 2).unwrap_or(usize::MAX);
        socket.set_send_buffer_size(bytes).map_err(failed)?;
    }
    Ok(socket)
}

/// Whether ECN must be enabled in the namespaces of a flow.
pub(crate) fn wants_ecn(tcp: &gargalo_tcp::Config) -> bool {
    tcp.ecn != EcnMode::Off
}

/// The result of a connection attempt; `None`: still pending.
pub(crate) fn connected(socket: &Socket) -> Option<io::Result<()>> {
    match socket.take_error() {
        Ok(Some(e)) | Err(e) => Some(Err(e)),
        Ok(None) => match socket.peer_addr() {
            Ok(_) => Some(Ok(())),
            Err(_) => None,
        },
    }
}

/// Bytes written that the peer has not acknowledged (tcp(7): SIOCOUTQ); 0 if the kernel does not report them.
pub(crate) fn unacknowledged(socket: &Socket) -> u64 {
    let mut bytes: nix::libc::c_int = 0;
    // SAFETY: the kernel writes one int.
    let done = unsafe { outstanding(socket.as_raw_fd(), &raw mut bytes) };
    done.map_or(0, |_| u64::try_from(bytes).unwrap_or(0))
}

nix::ioctl_read_bad!(outstanding, nix::libc::TIOCOUTQ, nix::libc::c_int);

/// Accepts a connection, if one waits.
pub(crate) fn accept(listener: &Socket) -> Option<Socket> {
    let (socket, _) = listener.accept().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

/// Creates a UDP socket at an address.
fn datagrams(host: &NetNs, local: SocketAddr) -> Result<Socket> {
    host.run(|| {
        let what = |e| Error::system(format!("making a UDP socket at {local}"), e);
        let kind = Type::DGRAM.nonblocking();
        let socket =
            Socket::new(Domain::for_address(local), kind, Some(Protocol::UDP)).map_err(what)?;
        socket.bind(&local.into()).map_err(what)?;
        socket.set_recv_tos_v4(true).map_err(what)?;
        let _ = SockRef::from(&socket).set_recv_buffer_size(4 << 20);
        Ok(socket)
    })
}

/// Aborts the connection together with its unsent data, so that nothing lingers in the namespace.
pub(crate) fn abort(socket: &Socket) {
    let _ = SockRef::from(socket).set_linger(Some(StdDuration::ZERO));
}

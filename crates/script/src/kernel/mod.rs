//! The running kernel in real time, in a network namespace of its own, through a TUN device.

mod call;

use std::collections::VecDeque;
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use gargalo_device::netlink::Netlink;
use gargalo_device::path_manager::{Endpoint, PathManager};
use gargalo_device::{BATCH, Choice, Clock, Device, Frame, HEADROOM, NetNs};
use gargalo_units::{Duration, Instant, reason};
use gargalo_wire::ip::Addresses;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::ast::mptcp::Manage;
use crate::packet;
use crate::stack::{ADDRESSES, Handle, Op, Readiness, Reply, Sent, Setup, Stack, StackError};

/// How often a call that blocks is tried again.
const RETRY: Duration = Duration::from_millis(1);

/// How long a new device may need, and how often it is checked.
const SETTLING: Duration = Duration::from_secs(5);
const ECHO: Duration = Duration::from_millis(20);

/// Settings of each namespace, so that results do not depend on the machine: below `/proc/sys/net`.
const SETTINGS: [(&str, &str); 9] = [
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/autoconf", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv4/tcp_ecn", "0"),
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_rmem", "4096 131072 6291456"),
    ("ipv4/tcp_wmem", "4096 16384 4194304"),
    ("ipv4/tcp_slow_start_after_idle", "1"),
];

/// The congestion control of new sockets.
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// The kernel's TCP in a network namespace, whose packets pass a TUN device.
pub struct Kernel {
    setup: Setup,
    device: Device,
    clock: Clock,
    frames: Vec<Frame>,
    sent: VecDeque<Sent>,
    /// How long this thread has waited for a processor, as the kernel counts it.
    starved: Starved,
    /// Of that, the time since the device was last empty.
    doubt: Duration,
    sockets: Vec<Option<OwnedFd>>,
    /// The congestion control that each new socket is given; `None`: the kernel gives it that of the namespace.
    congestion: Option<String>,
    /// Addresses that the path manager of Multipath TCP was given.
    endpoints: Vec<Endpoint>,
}

impl Kernel {
    /// Runs `f` with a new namespace of the kernel; the process must be in the sandbox, or have the privileges
    /// otherwise.
    ///
    /// # Errors
    /// When the system refuses, or does not know the congestion control.
    pub fn with<T: Send>(
        setup: &Setup,
        f: impl FnOnce(&mut Self) -> T + Send,
    ) -> Result<T, StackError> {
        let namespace = NetNs::new().map_err(system)?;
        for (name, value) in SETTINGS {
            // Kernels without IPv6 lack some.
            let set = namespace.set(name, value);
            if !name.starts_with("ipv6") {
                set.map_err(system)?;
            }
        }
        let choice = Choice::Best { offload: false };
        let device = Device::new(&namespace, "tun0", setup.mtu, choice).map_err(system)?;
        // The thread stays in the namespace, so that sockets and settings are its own.
        let ran = namespace.run(|| {
            let made = Self::new(setup, device)?;
            Ok::<_, gargalo_device::Error>(made.map(|mut kernel| f(&mut kernel)))
        });
        ran.map_err(system)?
    }

    fn new(
        setup: &Setup,
        device: Device,
    ) -> Result<Result<Self, StackError>, gargalo_device::Error> {
        let (index, local) = (device.index(), setup.local());
        let prefix = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
        let mut netlink = Netlink::open()?;
        for n in 0..ADDRESSES {
            let [own, remote] = [false, true].map(|other| setup.address(other, n));
            netlink.add_address(index, own, prefix(own))?;
            netlink.add_route(index, remote, prefix(remote), Some(local))?;
        }
        gargalo_device::precise_timers();
        let mut kernel = Self {
            setup: setup.clone(),
            device,
            clock: Clock::start(),
            frames: vec![Vec::new(); BATCH],
            sent: VecDeque::new(),
            starved: Starved::new(),
            doubt: Duration::ZERO,
            sockets: Vec::new(),
            congestion: None,
            endpoints: Vec::new(),
        };
        Ok(kernel.settle().map(|()| kernel))
    }

    /// Sends a command to the path manager of Multipath TCP.
    fn tell(&mut self, manage: &Manage) -> gargalo_device::Result<()> {
        let mut manager = PathManager::open()?;
        let unknown = |id: &u8| {
            let message = format!("the path manager has no endpoint with id {id}");
            gargalo_device::Error::Unsupported(message)
        };
        match manage {
            Manage::Limits(subflows, accepted) => manager.set_limits(*subflows, *accepted),
            Manage::Flush => {
                self.endpoints.clear();
                manager.flush()
            }
            Manage::Add(e) => {
                let next = self.endpoints.iter().filter_map(|e| e.id).max();
                let new = Endpoint {
                    address: e.address,
                    id: e.id.or(Some(next.unwrap_or(0).saturating_add(1))),
                    signal: e.signal,
                    subflow: e.subflow,
                    backup: e.backup,
                    fullmesh: e.fullmesh,
                };
                self.endpoints.push(new);
                manager.add(&new)
            }
            Manage::Delete(id) => {
                let at = self.endpoints.iter().position(|e| e.id == Some(*id));
                let gone = self.endpoints.remove(at.ok_or_else(|| unknown(id))?);
                manager.delete(&gone)
            }
            Manage::Change(id, backup) => {
                let mut endpoints = self.endpoints.iter_mut();
                let found = endpoints.find(|e| e.id == Some(*id));
                let e = found.ok_or_else(|| unknown(id))?;
                e.backup = *backup;
                manager.change(e)
            }
        }
    }

    fn settle(&mut self) -> Result<(), StackError> {
        let congestion = self.setup.congestion.clone();
        self.set(CONGESTION, &congestion)?;
        // Addresses become ready in the background: an answer to an echo request says that they are.
        let latest = self.now() + SETTLING;
        let between = Addresses::new(self.setup.remote(), self.setup.local());
        while let Some(request) = between.and_then(packet::echo_request)
            && self.now() < latest
        {
            self.receive(request)?;
            let next = self.now() + ECHO;
            while self.now() < next {
                if let Some(sent) = self.wait(next, false)?
                    && packet::is_echo_reply(&sent.bytes)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether a socket may have this congestion control.
    fn may_choose(&self, congestion: &str) -> bool {
        let probe = call::socket(self.setup.v6, false);
        probe.is_ok_and(|fd| call::set_congestion(fd.as_fd(), congestion).is_ok())
    }

    fn poll_device(&mut self) -> Result<(), StackError> {
        let length = HEADROOM + 65_535;
        for frame in &mut self.frames {
            frame.resize(length, 0);
        }
        let n = self
            .device
            .receive(&mut self.frames)
            .map_err(|e| StackError::System(format!("reading the device: {}", reason(&e))))?;
        let now = self.clock.now();
        self.doubt = if n == 0 {
            self.starved.since_last();
            Duration::ZERO
        } else {
            // Datagrams that wait in the device came before this thread ran again.
            self.doubt + self.starved.since_last()
        };
        let doubt = self.doubt;
        for frame in self.frames.iter().take(n) {
            let datagram = frame.get(HEADROOM..).unwrap_or_default().to_vec();
            self.sent.push_back(Sent {
                at: now,
                doubt,
                bytes: datagram,
            });
        }
        Ok(())
    }
}

/// The time that a thread was ready to run and did not, from `/proc/thread-self/schedstat`.
struct Starved {
    file: Option<File>,
    total: u64,
}

impl Starved {
    /// Starts to measure the calling thread.
    fn new() -> Self {
        let mut starved = Self {
            file: File::open("/proc/thread-self/schedstat").ok(),
            total: 0,
        };
        starved.since_last();
        starved
    }

    /// The time since the last call; zero where the kernel does not count it.
    fn since_last(&mut self) -> Duration {
        let before = self.total;
        let mut text = [0; 64];
        if let Some(file) = &self.file
            && let Ok(n) = file.read_at(&mut text, 0)
        {
            let text = String::from_utf8_lossy(text.get(..n).unwrap_or_default());
            let second = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
            self.total = second.unwrap_or(before);
        }
        Duration::from_nanos(self.total.saturating_sub(before))
    }
}

fn system(e: gargalo_device::Error) -> StackError {
    StackError::System(e.to_string())
}

impl Stack for Kernel {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wait(&mut self, until: Instant, busy: bool) -> Result<Option<Sent>, StackError> {
        loop {
            self.poll_device()?;
            if let Some(first) = self.sent.pop_front() {
                return Ok(Some(first));
            }
            let left = self.clock.until(until);
            if left.is_zero() {
                return Ok(None);
            }
            let nap = if busy { left.min(RETRY) } else { left };
            let nanos = i64::try_from(nap.as_nanos()).unwrap_or(i64::MAX);
            let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
            let mut fds = [PollFd::new(self.device.as_fd(), PollFlags::POLLIN)];
            let polled = ppoll(&mut fds, Some(timeout), None);
            let came = match polled {
                Ok(n) => n > 0,
                Err(nix::errno::Errno::EINTR) => false,
                Err(e) => return Err(StackError::System(format!("waiting for packets: {e}"))),
            };
            if busy && !came {
                return Ok(None);
            }
        }
    }

    fn receive(&mut self, datagram: Vec<u8>) -> Result<(), StackError> {
        let mut frame = vec![0; HEADROOM];
        frame.extend_from_slice(&datagram);
        self.device
            .send(&mut [frame])
            .map_err(|e| StackError::System(format!("writing to the device: {}", reason(&e))))
    }

    fn socket(&mut self, multipath: bool) -> Reply {
        let v6 = self.setup.v6;
        match call::socket(v6, multipath) {
            Ok(fd) => {
                if let Some(name) = &self.congestion
                    && let Err(refusal) = call::set_congestion(fd.as_fd(), name)
                {
                    return Reply::Error(refusal);
                }
                self.sockets.push(Some(fd));
                Reply::Socket(self.sockets.len() - 1)
            }
            Err(name) => Reply::Error(name),
        }
    }

    fn epoll(&mut self) -> Reply {
        match call::epoll() {
            Ok(fd) => {
                self.sockets.push(Some(fd));
                Reply::Socket(self.sockets.len() - 1)
            }
            Err(name) => Reply::Error(name),
        }
    }

    fn call(&mut self, socket: Handle, op: &Op) -> Reply {
        let Some(place) = self.sockets.get_mut(socket) else {
            return Reply::Error("EBADF".to_owned());
        };
        let Some(fd) = place.as_ref() else {
            return Reply::Error("EBADF".to_owned());
        };
        match op {
            Op::Close => {
                *place = None;
                Reply::Value(0)
            }
            Op::Watch(watch) => {
                let target = self.sockets.get(watch.target).and_then(Option::as_ref);
                let epoll = self.sockets.get(socket).and_then(Option::as_ref);
                match (epoll, target) {
                    (Some(epoll), Some(target)) => {
                        call::watch(epoll.as_fd(), target.as_fd(), watch)
                    }
                    _ => Reply::Error("EBADF".to_owned()),
                }
            }
            Op::Accept => match call::accept(fd.as_fd()) {
                Ok(new) => {
                    self.sockets.push(Some(new));
                    Reply::Socket(self.sockets.len() - 1)
                }
                Err(name) if name == "EAGAIN" => Reply::Blocks("EAGAIN"),
                Err(name) => Reply::Error(name),
            },
            _ => call::call(fd.as_fd(), op, &self.setup),
        }
    }

    fn poll(&mut self, socket: Handle) -> Readiness {
        let fd = self.sockets.get(socket).and_then(Option::as_ref);
        Readiness(fd.map_or(0x20, |fd| call::poll(fd.as_fd())))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), StackError> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let written = std::fs::write(&path, value);
        if name == CONGESTION {
            self.congestion = None;
        }
        let Err(e) = written else { return Ok(()) };
        // A namespace may only choose what every user of the machine may; a socket of its root may have any.
        if name == CONGESTION && self.may_choose(value) {
            self.congestion = Some(value.to_owned());
            return Ok(());
        }
        Err(StackError::Unsupported(format!(
            "{path}: {}: the kernel does not take {name}={value}",
            reason(&e)
        )))
    }

    fn manage(&mut self, manage: &Manage) -> Result<(), StackError> {
        self.tell(manage).map_err(system)
    }

    fn pace(&mut self) -> Result<(), StackError> {
        Err(StackError::Unsupported(
            "the device of the kernel keeps its queue: it does not get fq".to_owned(),
        ))
    }

    /// It is one for all namespaces, so that it is compared and not set.
    fn set_parameter(&mut self, module: &str, name: &str, value: &str) -> Result<(), StackError> {
        let path = format!("/sys/module/{module}/parameters/{name}");
        let found = std::fs::read_to_string(&path).map_err(|e| {
            let why = reason(&e);
            StackError::Unsupported(format!("{path}: {why}: the kernel does not have it"))
        })?;
        if found.trim() == value {
            return Ok(());
        }
        Err(StackError::Unsupported(format!(
            "{path} is {} and not {value}; it belongs to the whole machine and is not changed",
            found.trim()
        )))
    }

    fn info(&mut self, socket: Handle, field: &str) -> Option<i64> {
        let fd = self.sockets.get(socket)?.as_ref()?;
        call::info(fd.as_fd(), field)
    }
}

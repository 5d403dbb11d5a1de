//! Hosts with the kernel's stack: the ends of flows there, on one thread.

mod info;
mod multipath;
mod socket;
mod subflows;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use gargalo_flow::{Edge, Window};
use gargalo_units::{Duration, Instant, SenderCounters};
use nix::sys::epoll::EpollFlags;
use socket2::Socket;

use crate::linux::engine::Stop;
use crate::linux::sockets::Sockets;
use crate::linux::traffic::{
    DatagramEnd, Flow, Inbox, Interest, LOOK_AGAIN, Recorder, SERVER_COMES, reason,
};
use crate::linux::waiter::Waiter;
use crate::multipath::MultipathReport;
use crate::{Error, Result};
use gargalo_device::Clock;
use gargalo_device::NetNs;
use info::{TcpInfo, sum};
pub use socket::congestion_instead_of;
use socket::{KernelDatagrams, KernelStream};
use subflows::Subflows;

/// Key of the wake-up event; ends of flows use their number.
const WAKE: u64 = u64::MAX - 1;
/// Longest wait: the delay after which a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// One end of a flow at a host with the kernel's stack.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) flow: Arc<Flow>,
    /// 0 is the side that opens the connection.
    pub(crate) side: usize,
    pub(crate) host: Arc<NetNs>,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// All ends of flows at hosts with the kernel's stack.
pub(crate) struct KernelTraffic {
    ends: BTreeMap<usize, Driven>,
    came: usize,
    inbox: Arc<Inbox<End>>,
    recorder: Arc<Recorder>,
    interval: Option<Duration>,
    window: Window,
}

struct Driven {
    end: End,
    phase: Phase,
    datagrams: DatagramEnd,
    /// Number of its UDP sockets that are registered with the waiter.
    registered: usize,
    flags: EpollFlags,
    due: Instant,
    /// MP_JOIN needs it as long as the connection is open.
    listener: Option<Socket>,
    subflows: Subflows,
    /// Queries the subflows' sockets, once that was needed.
    sockets: Option<Sockets>,
}

enum Phase {
    /// Before the flow starts.
    Waiting,
    Listening(Socket),
    Connecting(Socket),
    Open(KernelStream),
    Datagrams(KernelDatagrams),
    Over,
}

impl KernelTraffic {
    /// Creates it without ends of flows; those that start while it runs arrive in the `inbox`.
    pub(crate) fn new(
        inbox: Arc<Inbox<End>>,
        recorder: Arc<Recorder>,
        interval: Option<Duration>,
        window: Window,
    ) -> Self {
        Self {
            ends: BTreeMap::new(),
            came: 0,
            inbox,
            recorder,
            interval,
            window,
        }
    }

    /// Adds an end of a flow; a server starts to listen.
    pub(crate) fn add(&mut self, end: End) -> Result<usize> {
        if let Some(tcp) = &end.flow.tcp
            && end.side == end.flow.sender()
        {
            socket::check_congestion(&end.host, tcp.congestion.name(), &end.flow)?;
        }
        let (phase, due) = match (&end.flow.tcp, end.side) {
            (Some(tcp), 1) => {
                let multipath = end.flow.mptcp().is_some();
                let listener = socket::listen(&end.host, end.local, tcp, multipath)?;
                listener
                    .set_nonblocking(true)
                    .map_err(|e| Error::system("preparing a listener", e))?;
                (Phase::Listening(listener), end.flow.stop)
            }
            (None, 1) => (Phase::Datagrams(datagrams(&end)?), end.flow.stop),
            _ => (Phase::Waiting, end.flow.spec.start),
        };
        if end.side == 1 {
            end.flow.is_served();
        }
        let driven = Driven {
            datagrams: DatagramEnd::new(&end.flow, end.side),
            end,
            registered: 0,
            phase,
            flags: EpollFlags::empty(),
            due,
            listener: None,
            subflows: Subflows::default(),
            sockets: None,
        };
        self.ends.insert(self.came, driven);
        self.came += 1;
        Ok(self.came - 1)
    }

    /// Adds the ends of flows that have arrived in the inbox.
    fn take_inbox(&mut self, now: Instant, waiter: &Waiter) -> Result<()> {
        for end in self.inbox.take() {
            let flow = Arc::clone(&end.flow);
            match self.add(end) {
                Ok(key) => {
                    if let Some(d) = self.ends.get_mut(&key) {
                        d.register(waiter, key)?;
                    }
                }
                Err(_) => {
                    flow.fail(now, "socket error");
                    flow.close();
                }
            }
        }
        Ok(())
    }

    /// Drives the ends until all are over or `stop` is requested.
    pub(crate) fn run(mut self, clock: Clock, stop: &Stop) -> Result<()> {
        let waiter = Waiter::new()?;
        for (key, d) in &mut self.ends {
            d.register(&waiter, *key)?;
        }
        if let Some(wake) = self.inbox.waker() {
            waiter.add(wake, WAKE, EpollFlags::EPOLLIN)?;
        }
        let mut look = self.interval.map_or(Instant::MAX, |i| Instant::ZERO + i);
        let mut ready: Vec<usize> = Vec::new();
        while !stop.is_wanted() {
            let now = clock.now();
            self.take_inbox(now, &waiter)?;
            // Before any end closes that was open at the edge.
            while let Some((edge, _)) = self.window.next().filter(|(_, at)| *at <= now) {
                let recorder = &self.recorder;
                for d in self.ends.values_mut() {
                    d.mark(now, edge, recorder)?;
                }
                self.window.pass(edge, now);
            }
            let due = self.ends.iter().filter(|(_, d)| d.due <= now);
            ready.extend(due.map(|(key, _)| *key));
            ready.sort_unstable();
            ready.dedup();
            for key in ready.drain(..) {
                let Some(d) = self.ends.get_mut(&key) else {
                    continue;
                };
                d.advance(clock, &waiter, key, &self.recorder)?;
                if matches!(d.phase, Phase::Over) {
                    self.ends.remove(&key);
                }
            }
            for d in self.ends.values_mut() {
                if d.looks_at() <= now {
                    d.look(now)?;
                }
            }
            if look <= now {
                self.sample(now);
                look = now + self.interval.unwrap_or(Duration::MAX);
            }
            if self.ends.is_empty() && self.inbox.is_over() {
                return Ok(());
            }
            let due = self.ends.values().map(|d| d.due.min(d.looks_at())).min();
            let edge = self.window.next().map_or(Instant::MAX, |(_, at)| at);
            let due = due.unwrap_or(Instant::MAX).min(look).min(edge);
            let wait = clock.until(due).min(LONGEST_WAIT);
            let inbox = &self.inbox;
            waiter.wait(wait, |key| match key {
                WAKE => inbox.clear(),
                key => ready.push(key as usize),
            })?;
        }
        let now = clock.now();
        for d in self.ends.values_mut() {
            d.finish(now, &self.recorder)?;
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant) {
        for d in self.ends.values_mut().filter(|d| d.end.flow.spec.rows) {
            if let Phase::Datagrams(_) = &d.phase {
                d.datagrams.sample(now, &d.end.flow, &self.recorder);
            }
            let Phase::Open(stream) = &d.phase else {
                continue;
            };
            let flow = &d.end.flow;
            if d.end.side != flow.sender() || flow.is_over() {
                continue;
            }
            let all = now_open(flow, stream);
            if let Some(srtt) = all.iter().filter_map(TcpInfo::srtt).min() {
                flow.round_trip(srtt);
            }
            let reached = flow.reached();
            let row = |i: &TcpInfo| i.sample(now, flow.spec.id, reached);
            if let Some(sample) = all.iter().map(row).reduce(sum) {
                self.recorder.sample(sample);
            }
            let rows = d.subflows.samples(now, flow.spec.id, &self.recorder);
            rows.for_each(|r| self.recorder.subflow(r));
        }
    }
}

/// Creates the UDP sockets of an end, one for each of its addresses.
fn datagrams(end: &End) -> Result<KernelDatagrams> {
    KernelDatagrams::new(&end.host, &DatagramEnd::locals(&end.flow, end.side))
}

impl Phase {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Listening(s) | Self::Connecting(s) => Some(s.as_fd()),
            Self::Open(s) => Some(s.socket.as_fd()),
            Self::Datagrams(_) | Self::Waiting | Self::Over => None,
        }
    }

    fn register(&self, waiter: &Waiter, key: usize) -> Result<()> {
        let flags = match self {
            Self::Connecting(_) => EpollFlags::EPOLLOUT,
            _ => EpollFlags::EPOLLIN,
        };
        match self.fd() {
            Some(fd) => waiter.add(fd, key as u64, flags),
            None => Ok(()),
        }
    }
}

impl Driven {
    /// Registers all its sockets with the waiter, including new sockets of a datagram flow.
    fn register(&mut self, waiter: &Waiter, key: usize) -> Result<()> {
        let Phase::Datagrams(datagrams) = &self.phase else {
            return self.phase.register(waiter, key);
        };
        for (_, socket) in &datagrams.sockets[self.registered..] {
            waiter.add(socket.as_fd(), key as u64, EpollFlags::EPOLLIN)?;
        }
        self.registered = datagrams.sockets.len();
        Ok(())
    }

    fn advance(
        &mut self,
        clock: Clock,
        waiter: &Waiter,
        key: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        let now = clock.now();
        if matches!(self.phase, Phase::Over) {
            return Ok(());
        }
        if self.end.flow.is_over()
            || (now >= self.end.flow.stop
                && !matches!(self.phase, Phase::Open(_) | Phase::Datagrams(_)))
        {
            return self.finish(now, recorder);
        }
        match &mut self.phase {
            Phase::Waiting if now >= self.end.flow.spec.start => {
                self.start(clock, waiter, key, recorder)
            }
            Phase::Listening(listener) => {
                let Some(socket) = socket::accept(listener) else {
                    return Ok(());
                };
                set_congestion(&socket, &self.end.flow);
                let open = Phase::Open(KernelStream::new(socket));
                if let Phase::Listening(listener) = std::mem::replace(&mut self.phase, open)
                    && self.end.flow.mptcp().is_some()
                {
                    waiter.forget(&listener)?;
                    self.listener = Some(listener);
                }
                self.flags = EpollFlags::EPOLLIN;
                self.phase.register(waiter, key)?;
                self.advance(clock, waiter, key, recorder)
            }
            Phase::Connecting(socket) => match socket::connected(socket) {
                None => Ok(()),
                Some(Ok(())) => {
                    self.end.flow.connected(now);
                    if let Phase::Connecting(socket) =
                        std::mem::replace(&mut self.phase, Phase::Over)
                    {
                        set_congestion(&socket, &self.end.flow);
                        self.phase = Phase::Open(KernelStream::new(socket));
                    }
                    self.advance(clock, waiter, key, recorder)
                }
                Some(Err(e)) => {
                    self.end.flow.fail(now, reason(&e));
                    self.finish(now, recorder)
                }
            },
            Phase::Open(stream) => {
                let interest = self.end.flow.drive(now, self.end.side, stream);
                self.follow(now, interest, waiter, key, recorder)
            }
            Phase::Datagrams(datagrams) => {
                let flow = &self.end.flow;
                let interest = loop {
                    let more = datagrams.fetch();
                    // The clock is read after the datagram: it cannot have arrived later.
                    let now = clock.now();
                    let interest = self.datagrams.drive(now, flow, datagrams, recorder);
                    if !more || interest.over {
                        break interest;
                    }
                };
                self.register(waiter, key)?;
                self.follow(now, interest, waiter, key, recorder)
            }
            Phase::Waiting | Phase::Over => Ok(()),
        }
    }

    /// Starts the flow.
    fn start(
        &mut self,
        clock: Clock,
        waiter: &Waiter,
        key: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        let end = &self.end;
        if !end.flow.is_ready() {
            self.due = clock.now() + SERVER_COMES;
            return Ok(());
        }
        match &end.flow.tcp {
            Some(tcp) => {
                let socket = socket::connect(
                    &end.host,
                    end.local,
                    end.remote,
                    tcp,
                    end.flow.mptcp().is_some(),
                )?;
                self.phase = Phase::Connecting(socket);
                self.flags = EpollFlags::EPOLLOUT;
                self.due = end.flow.stop;
                self.phase.register(waiter, key)
            }
            None => {
                self.phase = Phase::Datagrams(datagrams(end)?);
                self.flags = EpollFlags::EPOLLIN;
                self.advance(clock, waiter, key, recorder)
            }
        }
    }

    /// Waits for the events that the application needs.
    fn follow(
        &mut self,
        now: Instant,
        interest: Interest,
        waiter: &Waiter,
        key: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        if interest.over {
            // Its counts are not final before the peer has received everything.
            if let Phase::Open(stream) = &self.phase
                && !self.end.flow.is_over()
                && socket::unacknowledged(&stream.socket) > 0
            {
                self.due = now + LOOK_AGAIN;
                // Otherwise it would continuously report that it is shut down.
                if !self.flags.is_empty() {
                    self.flags = EpollFlags::empty();
                    waiter.forget(&stream.socket)?;
                }
                return Ok(());
            }
            return self.finish(now, recorder);
        }
        self.due = interest.until;
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN, interest.read);
        flags.set(EpollFlags::EPOLLOUT, interest.write);
        if flags != self.flags {
            self.flags = flags;
            if let Some(fd) = self.phase.fd() {
                waiter.modify(fd, key as u64, flags)?;
            }
        }
        Ok(())
    }

    /// Takes the counts at an edge of the measured window.
    fn mark(&mut self, now: Instant, edge: Edge, recorder: &Recorder) -> Result<()> {
        let flow = Arc::clone(&self.end.flow);
        if let Phase::Datagrams(_) = &self.phase {
            self.datagrams.mark(edge, &flow, recorder);
            return Ok(());
        }
        if self.end.side != flow.sender() {
            return Ok(());
        }
        if flow.mptcp().is_some() {
            self.look(now)?;
            self.subflows.mark(edge, recorder);
        }
        if let Phase::Open(stream) = &self.phase
            && let Some((counters, _)) = self.counters(stream)
        {
            flow.count_at(edge, counters);
        }
        Ok(())
    }

    /// The counters of all subflows together, or of the only connection, and the Congestion Experienced marks.
    fn counters(&self, stream: &KernelStream) -> Option<(SenderCounters, u64)> {
        let own: Vec<&TcpInfo> = self.subflows.infos().collect();
        let only = match own.is_empty() {
            true => TcpInfo::of(stream.socket.as_fd()),
            false => None,
        };
        let all = || own.iter().copied().chain(&only);
        all().next()?;
        let mut counters = SenderCounters::default();
        all().for_each(|subflow| counters += subflow.counters());
        Some((counters, all().map(TcpInfo::ce_marks).sum()))
    }

    /// When subflows are checked next.
    fn looks_at(&self) -> Instant {
        match &self.phase {
            Phase::Open(_) if self.end.flow.mptcp().is_some() => self.subflows.due(),
            _ => Instant::MAX,
        }
    }

    /// Checks the subflows. Those that end together with the connection have not ended before it.
    fn look(&mut self, now: Instant) -> Result<()> {
        let Phase::Open(stream) = &self.phase else {
            return Ok(());
        };
        let is_ending = self.end.flow.is_ending();
        self.subflows.look(now, stream.socket.as_fd(), is_ending);
        if self.subflows.has_unasked() {
            self.ask_about_subflows()?;
        }
        Ok(())
    }

    fn ask_about_subflows(&mut self) -> Result<()> {
        if self.sockets.is_none() {
            self.sockets = Some(self.end.host.run(Sockets::open)?);
        }
        if let Some(sockets) = &self.sockets {
            self.subflows.ask(sockets);
        }
        Ok(())
    }

    /// Keeps the kernel's counters and closes the end.
    fn finish(&mut self, now: Instant, recorder: &Recorder) -> Result<()> {
        if matches!(self.phase, Phase::Over) {
            return Ok(());
        }
        self.end_here(now, recorder)?;
        self.end.flow.close();
        Ok(())
    }

    fn end_here(&mut self, now: Instant, recorder: &Recorder) -> Result<()> {
        self.due = Instant::MAX;
        self.listener = None;
        if self.end.flow.mptcp().is_some() {
            self.look(now)?;
            self.ask_about_subflows()?;
        }
        if let Phase::Datagrams(sockets) = &mut self.phase {
            self.datagrams
                .finish(now, &self.end.flow, sockets, recorder);
        }
        let Phase::Open(stream) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return Ok(());
        };
        let flow = &self.end.flow;
        if self.end.side == flow.sender() {
            if let Some((counters, marks)) = self.counters(&stream) {
                flow.count(counters);
                flow.marks(marks);
            }
            let names: BTreeSet<&str> = self.subflows.congestion().collect();
            let ran = match names.is_empty() {
                true => socket::congestion(&stream.socket),
                false => Some(Vec::from_iter(names).join("+")),
            };
            ran.into_iter().for_each(|name| flow.ran(name));
        }
        if flow.mptcp().is_some() {
            flow.report(MultipathReport {
                flow: flow.spec.id,
                side: self.end.side,
                fell_back: multipath::has_fallen_back(stream.socket.as_fd()),
                subflows: self.subflows.reports(recorder),
                stats: None,
                out_of_order_max: 0,
            });
        }
        if now >= flow.stop {
            socket::abort(&stream.socket);
        }
        Ok(())
    }
}

/// The kernel's information about each subflow, or about the only connection.
fn now_open(flow: &Flow, stream: &KernelStream) -> Vec<TcpInfo> {
    let socket = stream.socket.as_fd();
    if flow.mptcp().is_some() {
        let all: Vec<TcpInfo> = multipath::subflows(socket).map(|(_, i)| i).collect();
        if !all.is_empty() {
            return all;
        }
    }
    TcpInfo::of(socket).into_iter().collect()
}

/// Sets the flow's congestion control again: that of a host's routes has replaced it.
fn set_congestion(socket: &Socket, flow: &Flow) {
    if let Some(tcp) = &flow.tcp {
        let _ = socket::set_congestion(socket, tcp.congestion.name());
    }
}

pub(crate) use socket::wants_ecn;

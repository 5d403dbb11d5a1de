//! Hosts whose stack is the kernel's: the ends of flows there, on one thread.

mod info;
mod multipath;
mod socket;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use gargalo_sim::{Edge, Window};
use gargalo_units::{Duration, Instant};
use nix::sys::epoll::EpollFlags;
use socket2::Socket;

use crate::engine::Stop;
use crate::namespace::NetNs;
use crate::station::multipath::sum;
use crate::traffic::{Flow, Interest, Recorder, Totals, reason};
use crate::waiter::Waiter;
use crate::{Clock, Error, Result};
use info::TcpInfo;
use socket::{KernelDatagrams, KernelStream};

/// Longest wait: how soon a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// One end of a flow at a host with the kernel's stack.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) flow: Arc<Flow>,
    /// 0 is the side that opens.
    pub(crate) side: usize,
    pub(crate) host: Arc<NetNs>,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// All such ends.
pub(crate) struct KernelTraffic {
    ends: Vec<Driven>,
    recorder: Arc<Recorder>,
    interval: Option<Duration>,
    window: Window,
}

struct Driven {
    end: End,
    phase: Phase,
    flags: EpollFlags,
    due: Instant,
    /// Joins need it as long as the connection is open.
    listener: Option<Socket>,
    /// Of its subflows.
    marked: multipath::Marked,
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
    /// Prepares the ends; servers listen from now on.
    pub(crate) fn new(
        ends: Vec<End>,
        recorder: Arc<Recorder>,
        interval: Option<Duration>,
        window: Window,
    ) -> Result<Self> {
        let mut driven = Vec::with_capacity(ends.len());
        for end in ends {
            let (phase, due) = match (&end.flow.tcp, end.side) {
                (Some(tcp), 1) => {
                    let listener = socket::listen(
                        &end.host,
                        end.local,
                        tcp,
                        end.flow.sender() == 1,
                        end.flow.mptcp().is_some(),
                    )?;
                    listener
                        .set_nonblocking(true)
                        .map_err(|e| Error::system("preparing a listener", e))?;
                    (Phase::Listening(listener), end.flow.stop)
                }
                (None, 1) => {
                    let made = socket::datagrams(&end.host, end.local, end.remote)?;
                    (Phase::Datagrams(KernelDatagrams::new(made)), end.flow.stop)
                }
                _ => (Phase::Waiting, end.flow.spec.start),
            };
            driven.push(Driven {
                end,
                phase,
                flags: EpollFlags::empty(),
                due,
                listener: None,
                marked: multipath::Marked::new(),
            });
        }
        Ok(Self {
            ends: driven,
            recorder,
            interval,
            window,
        })
    }

    /// Drives them until all are over or `stop` is wanted.
    pub(crate) fn run(mut self, clock: Clock, stop: &Stop) -> Result<()> {
        let waiter = Waiter::new()?;
        for (key, d) in self.ends.iter().enumerate() {
            d.phase.register(&waiter, key)?;
        }
        let mut look = self.interval.map_or(Instant::MAX, |i| Instant::ZERO + i);
        let mut ready: Vec<usize> = Vec::new();
        while !stop.is_wanted() {
            let now = clock.now();
            // Before anything ends that was open when the edge came.
            while let Some((edge, _)) = self.window.next().filter(|(_, at)| *at <= now) {
                let recorder = &self.recorder;
                self.ends.iter_mut().for_each(|d| d.mark(edge, recorder));
                self.window.pass(edge, now);
            }
            ready.extend((0..self.ends.len()).filter(|i| self.ends[*i].due <= now));
            ready.sort_unstable();
            ready.dedup();
            for key in ready.drain(..) {
                self.ends[key].advance(clock, &waiter, key, &self.recorder)?;
            }
            if look <= now {
                self.sample(now);
                look = now + self.interval.unwrap_or(Duration::MAX);
            }
            if self.ends.iter().all(|d| matches!(d.phase, Phase::Over)) {
                return Ok(());
            }
            let due = self.ends.iter().map(|d| d.due).min();
            let edge = self.window.next().map_or(Instant::MAX, |(_, at)| at);
            let due = due.unwrap_or(Instant::MAX).min(look).min(edge);
            let wait = clock.until(due).min(LONGEST_WAIT);
            waiter.wait(wait, |key| ready.push(key as usize))?;
        }
        let now = clock.now();
        for d in &mut self.ends {
            d.finish(now, &self.recorder);
        }
        Ok(())
    }

    fn sample(&self, now: Instant) {
        for d in &self.ends {
            let Phase::Open(stream) = &d.phase else {
                continue;
            };
            let flow = &d.end.flow;
            if d.end.side != flow.sender() || flow.is_over() {
                continue;
            }
            let all = infos(flow, stream);
            if let Some(srtt) = all.iter().filter_map(TcpInfo::srtt).min() {
                flow.round_trip(srtt);
            }
            let delivered = flow.delivered();
            let row = |i: &TcpInfo| i.sample(now, flow.spec.id, delivered);
            if let Some(sample) = all.iter().map(row).reduce(sum) {
                self.recorder.sample(sample);
            }
            if flow.mptcp().is_some() {
                let socket = stream.socket.as_fd();
                let rows = multipath::samples(now, flow.spec.id, socket, &self.recorder);
                rows.into_iter().for_each(|r| self.recorder.subflow(r));
            }
        }
    }
}

impl Phase {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Listening(s) | Self::Connecting(s) => Some(s.as_fd()),
            Self::Open(s) => Some(s.socket.as_fd()),
            Self::Datagrams(s) => Some(s.socket.as_fd()),
            Self::Waiting | Self::Over => None,
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
    fn advance(
        &mut self,
        clock: Clock,
        waiter: &Waiter,
        key: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        let now = clock.now();
        if self.end.flow.is_over()
            || (now >= self.end.flow.stop
                && !matches!(self.phase, Phase::Open(_) | Phase::Datagrams(_)))
        {
            self.finish(now, recorder);
            return Ok(());
        }
        match &mut self.phase {
            Phase::Waiting if now >= self.end.flow.spec.start => {
                self.start(clock, waiter, key, recorder)
            }
            Phase::Listening(listener) => {
                let Some(socket) = socket::accept(listener) else {
                    return Ok(());
                };
                insist(&socket, &self.end.flow);
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
                        insist(&socket, &self.end.flow);
                        self.phase = Phase::Open(KernelStream::new(socket));
                    }
                    self.advance(clock, waiter, key, recorder)
                }
                Some(Err(e)) => {
                    self.end.flow.fail(now, reason(&e));
                    self.finish(now, recorder);
                    Ok(())
                }
            },
            Phase::Open(stream) => {
                let interest = self.end.flow.drive(now, self.end.side, stream);
                self.follow(now, interest, waiter, key, recorder)
            }
            Phase::Datagrams(datagrams) => {
                let (flow, side) = (&self.end.flow, self.end.side);
                let interest = loop {
                    let more = side == 1 && datagrams.fetch();
                    // Read after the datagram was: it cannot have arrived later.
                    let interest = flow.drive_datagrams(clock.now(), side, datagrams);
                    if !more || interest.over {
                        break interest;
                    }
                };
                self.follow(now, interest, waiter, key, recorder)
            }
            Phase::Waiting | Phase::Over => Ok(()),
        }
    }

    /// The flow starts.
    fn start(
        &mut self,
        clock: Clock,
        waiter: &Waiter,
        key: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        let end = &self.end;
        match &end.flow.tcp {
            Some(tcp) => {
                let socket = socket::connect(
                    &end.host,
                    end.local,
                    end.remote,
                    tcp,
                    end.flow.sender() == 0,
                    end.flow.mptcp().is_some(),
                )?;
                self.phase = Phase::Connecting(socket);
                self.flags = EpollFlags::EPOLLOUT;
                self.due = end.flow.stop;
                self.phase.register(waiter, key)
            }
            None => {
                let socket = socket::datagrams(&end.host, end.local, end.remote)?;
                self.phase = Phase::Datagrams(KernelDatagrams::new(socket));
                self.flags = EpollFlags::EPOLLIN;
                self.phase.register(waiter, key)?;
                self.advance(clock, waiter, key, recorder)
            }
        }
    }

    /// Waits for what the application is interested in.
    fn follow(
        &mut self,
        now: Instant,
        interest: Interest,
        waiter: &Waiter,
        key: usize,
        recorder: &Recorder,
    ) -> Result<()> {
        if interest.over {
            // Its counts are not final before the peer has everything.
            if let Phase::Open(stream) = &self.phase
                && !self.end.flow.is_over()
                && socket::unacknowledged(&stream.socket) > 0
            {
                self.due = now + LONGEST_WAIT;
                // It would say all the time that it is shut.
                if !self.flags.is_empty() {
                    self.flags = EpollFlags::empty();
                    waiter.forget(&stream.socket)?;
                }
                return Ok(());
            }
            self.finish(now, recorder);
            return Ok(());
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

    /// An edge of the measured window passes.
    fn mark(&mut self, edge: Edge, recorder: &Recorder) {
        let flow = &self.end.flow;
        let Phase::Open(stream) = &self.phase else {
            return;
        };
        if self.end.side != flow.sender() {
            return;
        }
        let all = infos(flow, stream);
        if !all.is_empty() {
            flow.count_at(edge, totals(&all));
        }
        if flow.mptcp().is_some() {
            let socket = stream.socket.as_fd();
            multipath::mark(flow, socket, recorder, edge, &mut self.marked);
        }
    }

    /// Keeps what the kernel counted and closes.
    fn finish(&mut self, now: Instant, recorder: &Recorder) {
        if let Phase::Open(stream) = &self.phase {
            let flow = &self.end.flow;
            let all = infos(flow, stream);
            if self.end.side == flow.sender() && !all.is_empty() {
                flow.count(totals(&all));
                flow.marks(all.iter().map(TcpInfo::ce_marks).sum());
            }
            if flow.mptcp().is_some() {
                let socket = stream.socket.as_fd();
                flow.report(multipath::report(
                    flow,
                    self.end.side,
                    socket,
                    recorder,
                    &self.marked,
                ));
            }
            if now >= flow.stop {
                socket::abort(&stream.socket);
            }
        }
        self.phase = Phase::Over;
        self.listener = None;
        self.due = Instant::MAX;
    }
}

/// Counters of all subflows together.
fn totals(all: &[TcpInfo]) -> Totals {
    let totals = all.iter().map(TcpInfo::totals);
    totals.fold(Totals::default(), multipath::add)
}

/// What the kernel knows of each subflow, or of the only connection.
fn infos(flow: &Flow, stream: &KernelStream) -> Vec<TcpInfo> {
    let socket = stream.socket.as_fd();
    if flow.mptcp().is_some() {
        let all = multipath::infos(socket);
        if !all.is_empty() {
            return all;
        }
    }
    TcpInfo::of(socket).into_iter().collect()
}

/// The flow's congestion control once more: that of a host's routes has replaced it.
fn insist(socket: &Socket, flow: &Flow) {
    if let Some(tcp) = &flow.tcp {
        let _ = socket.set_tcp_congestion(tcp.congestion.name().as_bytes());
    }
}

pub(crate) use socket::wants_ecn;

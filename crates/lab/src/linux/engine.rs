//! The forwarding loop: devices, in-process hosts and the network between them, in real time.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gargalo_flow::Edge;
use gargalo_trace::Quantiles;
use gargalo_units::{Duration, Instant};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::epoll::EpollFlags;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::Pid;

use crate::linux::fabric::{Fabric, Passage, PortId};
use crate::linux::schedule;
use crate::linux::traffic::WireCounter;
use crate::linux::waiter::Waiter;
use crate::spec::Tuning;
use crate::{Error, Result};
use gargalo_device::Clock;
use gargalo_device::{BATCH, Device, Frame, HEADROOM};

/// Reads from one device in a row before the others are served.
const TURN: usize = 8;
/// Datagrams that a host may send before the network is advanced.
const BURST: usize = 128;
/// Times that the network is advanced before devices are read.
const ROUNDS: usize = 8;
/// Longest wait: the delay after which a stop is noticed that does not wake the loop.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// Key of the wake-up event; devices use the number of their port.
const WAKE: u64 = u64::MAX - 1;

/// A host in this process: sans-IO, with its applications.
pub trait Station: Send {
    /// Handles a datagram that arrived.
    fn handle(&mut self, now: Instant, datagram: &[u8]);
    /// Handles the timers that are due.
    fn handle_timeout(&mut self, now: Instant);
    /// When the next timer is due.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Appends the next datagram to send; `false`: there is none.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool;
    /// Whether its applications have finished.
    fn is_done(&self) -> bool;
    /// Samples its connections.
    fn sample(&mut self, now: Instant);
    /// Takes the counts at an edge of the measured window.
    fn mark(&mut self, now: Instant, edge: Edge);
    /// Closes the host at the end of the run: counters are read, connections aborted.
    fn close(&mut self, now: Instant);
}

/// Observes the network at intervals.
pub trait Observer: Send {
    /// Time between two observations; `None`: never.
    fn interval(&self) -> Option<Duration>;
    /// Observes the network.
    fn look(&mut self, now: Instant, fabric: &mut Fabric);
    /// The next edge of the measured window; `None`: there is none.
    fn next_edge(&self) -> Option<(Edge, Instant)> {
        None
    }
    /// When [`Self::turn`] is due; it is called at other times too.
    fn poll_timeout(&self) -> Instant {
        Instant::MAX
    }
    /// Handles a turn of the loop, before the hosts.
    ///
    /// When the run cannot continue.
    fn turn(&mut self, _now: Instant) -> Result<()> {
        Ok(())
    }
    /// Handles an edge of the measured window; the stations have handled it already.
    fn mark(&mut self, _now: Instant, _edge: Edge, _fabric: &mut Fabric) {}
}

/// Observes every datagram at the ports.
pub trait Tap: Send {
    /// A datagram enters the network.
    fn entered(&mut self, now: Instant, port: PortId, datagram: &[u8]);
    /// A datagram leaves the network.
    fn left(&mut self, port: PortId, datagram: &[u8], passage: Passage);
}

/// An observer that does nothing.
impl Observer for () {
    fn interval(&self) -> Option<Duration> {
        None
    }
    fn look(&mut self, _now: Instant, _fabric: &mut Fabric) {}
}

/// A request that ends a running engine, from any thread.
#[derive(Clone, Debug)]
pub struct Stop {
    wanted: Arc<AtomicBool>,
    wake: Arc<EventFd>,
}

impl Stop {
    /// Creates a new one.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_flags(flags).map_err(|e| Error::system("making an event", e))?;
        Ok(Self {
            wanted: Arc::default(),
            wake: Arc::new(wake),
        })
    }

    /// Requests the end.
    pub fn stop(&self) {
        self.wanted.store(true, Ordering::Release);
        let _ = self.wake.write(1);
    }

    /// Clears the wake-up event.
    fn clear(&self) {
        let _ = self.wake.read();
    }

    /// Whether the end was requested.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }
}

/// What is attached to a port.
enum End {
    Device(Device),
    /// Index of a station.
    Station(usize),
}

struct Port {
    end: End,
    outbox: Vec<Frame>,
}

struct Attached {
    station: Box<dyn Station>,
    /// Its addresses, by interface.
    ports: Vec<(IpAddr, PortId)>,
    /// It may have datagrams to send.
    active: bool,
}

/// The loop, with the network, devices and hosts that it serves.
pub struct Engine {
    fabric: Fabric,
    ports: Vec<Port>,
    stations: Vec<Attached>,
    tuning: Tuning,
    /// Frames for the next datagrams to be read.
    inbox: Vec<Frame>,
    /// Datagrams that were read, with the port at which they arrived.
    arrived: Vec<(PortId, Frame)>,
    ready: Vec<PortId>,
    tap: Option<Box<dyn Tap>>,
    wire: Option<WireCounter>,
    late: Quantiles,
}

/// Counters of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Turns of the loop.
    pub turns: u64,
    /// Times it slept.
    pub sleeps: u64,
    /// How late datagrams left the network: half of them at most so much,
    pub late_p50: Duration,
    /// 99% at most so much,
    pub late_p99: Duration,
    /// and all at most so much.
    pub late_max: Duration,
}

impl Engine {
    /// Creates an engine for a network whose paths end at ports to be attached.
    pub fn new(fabric: Fabric, tuning: Tuning) -> Self {
        Self {
            fabric,
            ports: Vec::new(),
            stations: Vec::new(),
            tuning,
            inbox: Vec::new(),
            arrived: Vec::new(),
            ready: Vec::new(),
            tap: None,
            wire: None,
            late: Quantiles::default(),
        }
    }

    /// Attaches a device to the next port of the network.
    pub fn attach_device(&mut self, device: Device) -> PortId {
        self.attach(End::Device(device))
    }

    /// Attaches a host with interfaces that have these addresses, one port each; port numbers continue from the last.
    pub fn attach_station(&mut self, station: Box<dyn Station>, interfaces: &[Vec<IpAddr>]) {
        let index = self.stations.len();
        let mut ports = Vec::new();
        for addresses in interfaces {
            let port = self.attach(End::Station(index));
            ports.extend(addresses.iter().map(|a| (*a, port)));
        }
        self.stations.push(Attached {
            station,
            ports,
            active: true,
        });
    }

    fn attach(&mut self, end: End) -> PortId {
        self.ports.push(Port {
            end,
            outbox: Vec::new(),
        });
        (self.ports.len() - 1) as PortId
    }

    /// Sets the observer of every datagram that enters from a device or leaves the network.
    pub fn set_tap(&mut self, tap: Box<dyn Tap>) {
        self.tap = Some(tap);
    }

    /// Sets the counter of the wire bytes of flows.
    pub fn set_wire_counter(&mut self, counter: WireCounter) {
        self.wire = Some(counter);
    }

    /// The emulated network, with its links and queues.
    pub fn fabric_mut(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Samples every connection.
    pub fn sample(&mut self, now: Instant) {
        self.stations.iter_mut().for_each(|a| a.station.sample(now));
    }

    /// Closes every host at the end of the run.
    pub fn close(&mut self, now: Instant) {
        self.stations.iter_mut().for_each(|a| a.station.close(now));
    }

    /// Serves until `end`, or until `stop` is requested, or until `over` returns true after an observation (it is
    /// called several times a second, with whether every station is done).
    ///
    /// # Errors
    /// When a device has disappeared or the system refuses to wait.
    pub fn run(
        &mut self,
        clock: Clock,
        end: Instant,
        stop: &Stop,
        observer: &mut dyn Observer,
        over: &mut dyn FnMut(Instant, bool) -> bool,
    ) -> Result<EngineStats> {
        let waiter = self.waiter(stop)?;
        schedule::prefer_short_slices();
        let mut stats = EngineStats::default();
        let mut ask = Instant::ZERO;
        let interval = observer.interval();
        let mut look = interval.map_or(Instant::MAX, |i| clock.now() + i);
        self.ready = (0..self.ports.len() as PortId).collect();
        loop {
            // Before the clock is read: a datagram with a time before its arrival would leave its links too early.
            let more = self.read()?;
            let now = clock.now();
            stats.turns += 1;
            observer.turn(now)?;
            let busy = self.forward(now)?;
            while look <= now && look < end {
                observer.look(now, &mut self.fabric);
                self.sample(now);
                look += interval.unwrap_or(Duration::MAX);
            }
            while let Some((edge, _)) = observer.next_edge().filter(|(_, at)| *at <= now) {
                self.stations
                    .iter_mut()
                    .for_each(|a| a.station.mark(now, edge));
                observer.mark(now, edge, &mut self.fabric);
            }
            if now >= end || stop.is_wanted() {
                return Ok(self.stats(stats));
            }
            if now >= ask {
                ask = now + LONGEST_WAIT / 4;
                let idle = self.stations.iter().all(|a| a.station.is_done());
                if over(now, idle) {
                    return Ok(self.stats(stats));
                }
            }
            self.inject(now);
            let edge = observer.next_edge().map_or(Instant::MAX, |(_, at)| at);
            let due = self.next_event().min(look).min(edge).min(end).min(ask);
            let due = due.min(observer.poll_timeout());
            let mut wait = clock.until(due).min(LONGEST_WAIT);
            if more || busy || wait <= self.tuning.busy_poll {
                wait = Duration::ZERO;
            }
            stats.sleeps += u64::from(!wait.is_zero());
            let ready = &mut self.ready;
            waiter.wait(wait, |key| match key {
                WAKE => stop.clear(),
                port if ready.contains(&(port as PortId)) => {}
                port => ready.push(port as PortId),
            })?;
        }
    }

    fn stats(&self, counts: EngineStats) -> EngineStats {
        let late = |p| self.late.quantile(p).unwrap_or_default();
        EngineStats {
            late_p50: late(0.5),
            late_p99: late(0.99),
            late_max: self.late.max().unwrap_or_default(),
            ..counts
        }
    }

    fn waiter(&self, stop: &Stop) -> Result<Waiter> {
        let waiter = Waiter::new()?;
        waiter.add(&stop.wake, WAKE, EpollFlags::EPOLLIN)?;
        for (i, port) in self.ports.iter().enumerate() {
            if let End::Device(device) = &port.end {
                waiter.add(device, i as u64, EpollFlags::EPOLLIN)?;
            }
        }
        if let Some(cpu) = self.tuning.cpu {
            let mut set = CpuSet::new();
            let pinned = set
                .set(cpu)
                .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
            pinned.map_err(|e| Error::system(format!("running on processor {cpu} only"), e))?;
        }
        Ok(waiter)
    }

    fn next_event(&self) -> Instant {
        let timer = |a: &Attached| a.station.poll_timeout().unwrap_or(Instant::MAX);
        let timers = self.stations.iter().map(timer).min();
        self.fabric.next_event().min(timers.unwrap_or(Instant::MAX))
    }

    /// Handles everything that is due; hosts may respond at once over links without delay. Returns whether work is
    /// left.
    fn forward(&mut self, now: Instant) -> Result<bool> {
        for _ in 0..ROUNDS {
            let (ports, stations, tap) = (&mut self.ports, &mut self.stations, &mut self.tap);
            let late = &mut self.late;
            self.fabric.advance(now, |port, frame, passage| {
                if let Some(tap) = tap {
                    tap.left(port, &frame[HEADROOM..], passage);
                }
                let port = &mut ports[port as usize];
                if let End::Station(host) = port.end {
                    let attached = &mut stations[host];
                    attached.station.handle(now, &frame[HEADROOM..]);
                    attached.active = true;
                }
                late.record(now.saturating_since(passage.due));
                port.outbox.push(frame);
            });
            self.flush()?;
            self.transmit(now);
            let hosts = self.stations.iter().any(|a| a.active);
            if !hosts && self.fabric.next_event() > now {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes frames to devices; frames that hosts have read are reused.
    fn flush(&mut self) -> Result<()> {
        for port in &mut self.ports {
            if port.outbox.is_empty() {
                continue;
            }
            if let End::Device(device) = &mut port.end {
                let sent = device.send(&mut port.outbox);
                sent.map_err(|e| Error::system("writing to a device", e))?;
            }
            port.outbox.drain(..).for_each(|f| self.fabric.recycle(f));
        }
        Ok(())
    }

    /// Takes the datagrams that hosts have to send.
    fn transmit(&mut self, now: Instant) {
        for attached in &mut self.stations {
            let station = &mut attached.station;
            if station.poll_timeout().is_some_and(|t| t <= now) {
                station.handle_timeout(now);
                attached.active = true;
            }
            if !attached.active {
                continue;
            }
            attached.active = true;
            for _ in 0..BURST {
                let mut frame = self.fabric.frame();
                frame.truncate(HEADROOM);
                if !station.poll_transmit(now, &mut frame) {
                    self.fabric.recycle(frame);
                    attached.active = false;
                    break;
                }
                let port = match attached.ports.as_slice() {
                    [(_, only)] => Some(*only),
                    ports => source(&frame).and_then(|from| {
                        let own = ports.iter().find(|(address, _)| *address == from);
                        own.map(|(_, port)| *port)
                    }),
                };
                count(self.wire.as_ref(), &frame);
                match port {
                    Some(port) => self.fabric.inject(now, port, frame),
                    None => self.fabric.recycle(frame),
                }
            }
        }
    }

    /// Reads from devices that are ready; returns whether there may be more.
    fn read(&mut self) -> Result<bool> {
        let mut more = false;
        for port in std::mem::take(&mut self.ready) {
            let End::Device(device) = &mut self.ports[port as usize].end else {
                continue;
            };
            for turn in 0..TURN {
                while self.inbox.len() < BATCH {
                    self.inbox.push(self.fabric.frame());
                }
                let n = device.receive(&mut self.inbox);
                let n = n.map_err(|e| Error::system("reading from a device", e))?;
                for frame in &mut self.inbox[..n] {
                    let frame = std::mem::replace(frame, self.fabric.frame());
                    self.arrived.push((port, frame));
                }
                if n == 0 {
                    break;
                }
                if turn + 1 == TURN {
                    more = true;
                    self.ready.push(port);
                }
            }
        }
        Ok(more)
    }

    /// Gives the network what was read.
    fn inject(&mut self, now: Instant) {
        for (port, frame) in self.arrived.drain(..) {
            if let Some(tap) = &mut self.tap {
                tap.entered(now, port, &frame[HEADROOM..]);
            }
            count(self.wire.as_ref(), &frame);
            self.fabric.inject(now, port, frame);
        }
    }
}

fn count(wire: Option<&WireCounter>, frame: &Frame) {
    let datagram = frame.get(HEADROOM..).unwrap_or_default();
    if let Some((wire, ports)) = wire.zip(crate::linux::header::port_pair(datagram)) {
        wire.count(ports, datagram.len());
    }
}

fn source(frame: &Frame) -> Option<IpAddr> {
    crate::linux::header::read_header(frame.get(HEADROOM..)?).map(|g| g.src)
}

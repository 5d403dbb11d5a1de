//! A program behind an emulated link: an inner network namespace, the link, and the network outside.

mod learn;
mod log;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration as StdDuration;

use gargalo_flow::rng;
use gargalo_link::{Delay, LinkConfig};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use nix::net::if_::if_nametoindex;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::linux::engine::{Engine, Observer, Stop};
use crate::linux::fabric::Fabric;
use crate::spec::Tuning;
use crate::{Error, Result};
use gargalo_device::Choice;
use gargalo_device::Clock;
use gargalo_device::Device;
use gargalo_device::NetNs;
use gargalo_device::netlink::{Netlink, any};
use gargalo_device::{Nat, Place};
use learn::Learner;
use log::Log;

/// Time between two samples of the link.
const INTERVAL: Duration = Duration::from_millis(100);
/// The interface in the inner namespace.
const INSIDE: &str = "eth0";

/// A program and the link in front of it.
#[derive(Clone, Debug)]
pub struct ShellSpec {
    /// The link direction of packets from the program.
    pub up: LinkConfig,
    /// The link direction of packets to the program.
    pub down: LinkConfig,
    /// Seed of the link's random streams (loss, jitter).
    pub seed: u64,
    /// The program and its arguments; empty: the user's shell.
    pub command: Vec<String>,
    /// A shell command that runs at the outer end in the background and is ended with the program.
    pub outside: Option<String>,
    /// Hide the program behind this machine's own address.
    pub nat: bool,
    /// Log files of the uplink and the downlink, in mahimahi's format.
    pub logs: [Option<PathBuf>; 2],
    /// How the forwarding loop waits.
    pub tuning: Tuning,
    /// The kind of device.
    pub devices: Choice,
}

/// The state of a link direction over the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DirectionSample {
    /// Rate that it carried.
    pub rate: Rate,
    /// Rate that it could have carried; `None`: unlimited.
    pub capacity: Option<Rate>,
    /// Queueing delay of a packet that would arrive now.
    pub queue_delay: Duration,
    /// Packets in the queue, without the one in transmission.
    pub queue_packets: u64,
    /// Packets dropped since the start.
    pub dropped_packets: u64,
}

/// The state of the link over the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShellSample {
    /// Time of the sample.
    pub time: Instant,
    /// The uplink (packets from the program), then the downlink.
    pub directions: [DirectionSample; 2],
    /// The exit code of the line at the outer end, once it has ended.
    pub outside_exit_code: Option<i32>,
}

/// Runs the program and returns its exit code. The network outside is that of the calling thread, in which the process
/// must be root ([`sandbox`](crate::sandbox)); `watch` is called with the state of the link ten times a second.
///
/// # Errors
/// When the link cannot be created or the program cannot be started.
pub fn shell(spec: &ShellSpec, watch: &mut dyn FnMut(&ShellSample)) -> Result<i32> {
    let mut link = EmulatedLink::new(spec)?;
    let clock = Clock::start();
    let stop = Stop::new()?;
    let (tell, events) = mpsc::channel();
    let mut watcher = Watcher::new(tell.clone());
    let failure = Mutex::new(None);
    let code = std::thread::scope(|scope| {
        let (stop, failure, engine) = (&stop, &failure, &mut link.engine);
        scope.spawn(move || {
            let mut forever = |_, _| false;
            if let Err(e) = engine.run(clock, Instant::MAX, stop, &mut watcher, &mut forever) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
            }
        });
        let mut helper = None;
        let done = (|| {
            helper = spec
                .outside
                .as_ref()
                .map(|line| start_outside(line, &link.environment))
                .transpose()?;
            let mut child = link.inside.run(|| start(spec, &link.environment))?;
            scope.spawn(move || {
                let status = child.wait();
                let _ = tell.send(Event::Ended(status));
            });
            loop {
                match events.recv() {
                    Ok(Event::Sample(mut sample)) => {
                        sample.outside_exit_code = helper.as_ref().and_then(ended);
                        watch(&sample);
                    }
                    Ok(Event::Ended(status)) => {
                        return status.map_err(|e| Error::system("waiting for the program", e));
                    }
                    Err(_) => {
                        let gone = std::io::Error::other("its thread has ended");
                        return Err(Error::system("waiting for the program", gone));
                    }
                }
            }
        })();
        // The last packets of the program are still in transit, and so are the responses.
        std::thread::sleep(linger(spec));
        stop.stop();
        if let Some(child) = helper {
            end(child);
        }
        done
    })?;
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None => Ok(exit_code(code)),
    }
}

/// The link between the inner namespace and the network outside.
struct EmulatedLink {
    inside: NetNs,
    engine: Engine,
    /// Variables of the programs at both ends.
    environment: [(String, String); 4],
    /// Removed with the link.
    _nat: Option<Nat>,
}

impl EmulatedLink {
    /// Creates the inner namespace, the devices at both ends with their addresses and routes, and the engine that
    /// forwards between them.
    fn new(spec: &ShellSpec) -> Result<Self> {
        let outside = NetNs::current()?;
        let inside = NetNs::new()?;
        // Places of nested shells must differ too: the search starts at an arbitrary place.
        let anywhere = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8);
        let place = Place::free(anywhere as u32)?;
        let mtu = spec.up.mtu.min(spec.down.mtu);
        let inner = Device::new(&inside, INSIDE, mtu, spec.devices)?;
        let (name, outer) = outer_device(&outside, mtu, spec.devices)?;
        let (v4, v6) = (place.v4, place.v6);
        address([v4.0.into(), v6.0.into()], outer.index(), false)?;
        inside.run(|| address([v4.1.into(), v6.1.into()], inner.index(), true))?;
        // So that nested shells can reach the outside through this one.
        inside.set("ipv4/ip_forward", "1")?;
        let _ = inside.set("ipv6/conf/all/forwarding", "1");
        let nat = spec.nat.then(|| Nat::for_place(&place)).transpose()?;

        let links = [("uplink", &spec.up), ("downlink", &spec.down)];
        let fabric = Fabric::chain(links, |d| rng::stream(spec.seed, &format!("link/link/{d}")))?;
        let tap = Tapped {
            log: Log::create(&spec.logs, [&spec.up, &spec.down])?,
            learner: Learner::new(outer.index(), &place)?,
        };
        let mut engine = Engine::new(fabric, spec.tuning);
        engine.attach_device(inner);
        engine.attach_device(outer);
        engine.set_tap(Box::new(tap));

        // In a nested shell the base remains the outermost end, as in mahimahi.
        let outermost = |name: &str, own: String| {
            let value = std::env::var(name).unwrap_or(own);
            (name.to_owned(), value)
        };
        Ok(Self {
            inside,
            engine,
            environment: [
                outermost("GARGALO_BASE", v4.0.to_string()),
                outermost("GARGALO_BASE6", v6.0.to_string()),
                ("GARGALO_ADDRESS".to_owned(), v4.1.to_string()),
                ("GARGALO_DEVICE".to_owned(), name),
            ],
            _nat: nat,
        })
    }
}

/// Gives an interface of the calling thread's namespace its addresses, and default routes on request.
fn address(own: [IpAddr; 2], index: u32, routes: bool) -> Result<()> {
    let mut netlink = Netlink::open()?;
    for (own, prefix) in own.into_iter().zip([30, 126]) {
        let given = netlink.add_address(index, own, prefix);
        if own.is_ipv6() && given.is_err() {
            continue; // a system without IPv6
        }
        given?;
        if routes {
            netlink.add_route(index, any(own), 0, Some(own))?;
        }
    }
    Ok(())
}

/// How long the link outlives the program: two round trips, within limits.
fn linger(spec: &ShellSpec) -> StdDuration {
    const LEAST: u64 = 20_000_000;
    const MOST: u64 = 1_000_000_000;
    let base = |link: &LinkConfig| match &link.delay {
        Delay::Constant(d) => d.as_nanos(),
        Delay::Steps(steps) => steps.iter().map(|s| s.1.as_nanos()).max().unwrap_or(0),
    };
    let round_trip = base(&spec.up).saturating_add(base(&spec.down));
    StdDuration::from_nanos(round_trip.saturating_mul(2).clamp(LEAST, MOST))
}

/// Creates a device with a name that is unused outside.
fn outer_device(outside: &NetNs, mtu: u32, devices: Choice) -> Result<(String, Device)> {
    const MOST: u32 = 10_000;
    let exists = |name: &str| if_nametoindex(name).is_ok();
    for name in (0..MOST).map(|n| format!("gargalo{n}")) {
        if exists(&name) {
            continue;
        }
        match Device::new(outside, &name, mtu, devices) {
            // Another shell was faster.
            Err(_) if exists(&name) => {}
            made => return Ok((name, made?)),
        }
    }
    Err(Error::Unsupported(format!(
        "{MOST} devices of shells exist"
    )))
}

fn start(spec: &ShellSpec, environment: &[(String, String)]) -> Result<Child> {
    let shell = || std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let (program, arguments) = match spec.command.split_first() {
        Some((program, arguments)) => (program.clone(), arguments),
        None => (shell(), &[][..]),
    };
    Command::new(&program)
        .args(arguments)
        .envs(environment.iter().map(|(k, v)| (k, v)))
        .spawn()
        .map_err(|e| Error::system(format!("starting {program}"), e))
}

fn start_outside(line: &str, environment: &[(String, String)]) -> Result<Child> {
    use std::os::unix::process::CommandExt;
    Command::new("/bin/sh")
        .arg("-c")
        .arg(line)
        .envs(environment.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| Error::system("starting /bin/sh", e))
}

/// The exit code of a program that has ended. It is not waited for, so the name of its process group stays its own.
fn ended(child: &Child) -> Option<i32> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(Pid::from_raw(child.id() as i32)), flags) {
        Ok(WaitStatus::Exited(_, code)) => Some(code),
        Ok(WaitStatus::Signaled(_, signal, _)) => Some(128 + signal as i32),
        _ => None,
    }
}

/// Ends a program and its process group.
fn end(mut child: Child) {
    let group = Pid::from_raw(-(child.id() as i32));
    let _ = kill(group, Signal::SIGTERM);
    for _ in 0..50 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(StdDuration::from_millis(10));
    }
    let _ = kill(group, Signal::SIGKILL);
    let _ = child.wait();
}

/// The exit code as a shell reports it: 128 plus the number of the signal that ended the program.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let by_signal = status.signal().map(|s| 128 + s);
    status.code().or(by_signal).unwrap_or(1)
}

enum Event {
    Sample(ShellSample),
    Ended(std::io::Result<std::process::ExitStatus>),
}

/// Samples the link and sends the samples to the main thread.
struct Watcher {
    tell: mpsc::Sender<Event>,
    before: [(u64, Instant); 2],
}

impl Watcher {
    fn new(tell: mpsc::Sender<Event>) -> Self {
        Self {
            tell,
            before: [(0, Instant::ZERO); 2],
        }
    }
}

impl Observer for Watcher {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn look(&mut self, now: Instant, fabric: &mut Fabric) {
        let mut sample = ShellSample {
            time: now,
            ..ShellSample::default()
        };
        let links = fabric.links_mut().iter_mut();
        for ((out, before), link) in sample
            .directions
            .iter_mut()
            .zip(&mut self.before)
            .zip(links)
        {
            let s = link.sample(now);
            let (sent, at) = std::mem::replace(before, (s.sent_bytes, now));
            let span = now.saturating_since(at);
            *out = DirectionSample {
                rate: Rate::from_transfer(Bytes::new(s.sent_bytes - sent), span),
                capacity: link.capacity(at, now).map(|c| Rate::from_transfer(c, span)),
                queue_delay: s.queue_delay,
                queue_packets: s.queue_packets,
                dropped_packets: s.dropped_packets,
            };
        }
        let _ = self.tell.send(Event::Sample(sample));
    }
}

/// The observers of every datagram.
struct Tapped {
    learner: Learner,
    log: Log,
}

impl crate::linux::engine::Tap for Tapped {
    fn entered(&mut self, now: Instant, port: u32, datagram: &[u8]) {
        self.log.entered(now, port as usize, datagram.len());
    }

    fn left(&mut self, port: u32, datagram: &[u8], passage: crate::linux::fabric::Passage) {
        self.log.left(1 - port as usize, datagram.len(), passage);
        if port == 1 {
            self.learner.seen(datagram);
        }
    }
}

//! Two connected ends for the tests of this module: any number of paths, without limits of rate, on which segments are
//! seen, changed and lost as a test wants.

mod addresses;
mod closing;
mod handshake;
mod incoming;
mod questions;
mod resending;
mod scheduling;
mod timers;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use gargalo_cc::{Params, Registered};
use gargalo_settings::Switch;
use gargalo_units::{Bytes, Duration, Ecn, Instant};
use gargalo_wire::mptcp::{List, MptcpOption};
use gargalo_wire::tcp::{Flags, Segment};
use rand_pcg::Pcg64;

use super::{Connection, Transmit};
use crate::scheduler::{Choice, Context, Scheduler};
use crate::{Addresses, Carried, Config, Event, Factory, Init, Notice, Options};

/// Time on each path in one direction.
const DELAY: Duration = ms(10);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The address of side 0, the client, or 1, the server, on a path.
fn address(side: usize, path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, 1 + side as u8))
}

/// The path of the packets with these addresses of the client.
fn path_of(side: usize, addresses: &Addresses) -> usize {
    let of_client = [addresses.local, addresses.remote][side];
    match of_client.ip() {
        IpAddr::V4(ip) => usize::from(ip.octets()[2]),
        IpAddr::V6(_) => unreachable!("all addresses are IPv4"),
    }
}

fn congestion() -> Arc<Registered> {
    Arc::new(Registered::new("reno", Params::new()).unwrap())
}

fn init(side: usize, paths: usize) -> Init {
    Init {
        key: 1 + side as u64,
        rng: Pcg64::new(7, side as u128),
        addresses: (0..paths).map(|p| address(side, p)).collect(),
        backups: Vec::new(),
        gateways: Vec::new(),
        names: Default::default(),
    }
}

/// With a receive buffer of 1 MB and notices.
fn config() -> Config {
    Config {
        tcp: Arc::new(gargalo_tcp::Config {
            receive_buffer: Bytes::new(1_000_000),
            ..gargalo_tcp::Config::default()
        }),
        notices: true,
        ..Config::default()
    }
}

/// A segment that was sent: when, by which side, on which path.
#[derive(Clone, Debug)]
struct Sent {
    at: Instant,
    side: usize,
    path: usize,
    transmit: Transmit,
}

impl Sent {
    fn segment(&self) -> &Segment {
        &self.transmit.segment
    }
    fn is(&self, flags: Flags) -> bool {
        self.segment().flags.contains(flags)
    }
    fn options(&self) -> Vec<MptcpOption> {
        options(self.segment())
    }
    fn has(&self, which: fn(&MptcpOption) -> bool) -> bool {
        self.options().iter().any(which)
    }
}

fn options(segment: &Segment) -> Vec<MptcpOption> {
    let list = segment.options.mptcp.iter();
    list.flat_map(|l| l.iter().cloned()).collect()
}

fn set_option(segment: &mut Segment, option: MptcpOption) {
    segment.options.mptcp = Some(Box::new(List::from(option)));
}

/// What happens to a segment on its way; `false`: it is lost.
type Way<'a> = &'a mut dyn FnMut(&mut Sent) -> bool;

struct Ends {
    now: Instant,
    ends: [Connection; 2],
    delays: Vec<Duration>,
    wire: BTreeMap<(Instant, u64), (usize, Transmit)>,
    order: u64,
    events: [Vec<Event>; 2],
    read: [u64; 2],
    reads: [bool; 2],
}

impl Ends {
    /// The client has sent nothing yet.
    fn new(configs: [Config; 2], inits: [Init; 2]) -> Self {
        let paths = inits.iter().map(|i| i.addresses.len()).max();
        let [client, server] = configs;
        let [of_client, of_server] = inits;
        let addresses = Addresses {
            local: SocketAddr::new(address(0, 0), 40_000),
            remote: SocketAddr::new(address(1, 0), 80),
        };
        let now = Instant::from_nanos(1_000_000_000);
        let client = Connection::connect(client, congestion(), of_client, addresses, now);
        let server = Connection::listen(server, congestion(), of_server);
        Self {
            now,
            ends: [client.unwrap(), server.unwrap()],
            delays: vec![DELAY; paths.unwrap_or(1)],
            wire: BTreeMap::new(),
            order: 0,
            events: Default::default(),
            read: [0; 2],
            reads: [true; 2],
        }
    }

    fn both(config: &Config, paths: usize) -> Self {
        let inits = [0, 1].map(|side| init(side, paths));
        Self::new([config.clone(), config.clone()], inits)
    }

    /// All paths are open.
    fn open(config: &Config, paths: usize) -> Self {
        let mut ends = Self::both(config, paths);
        ends.wait(ms(300));
        for end in &ends.ends {
            assert_eq!(end.views.iter().filter(|v| v.usable).count(), paths);
        }
        ends
    }

    /// What a side sends now.
    fn poll(&mut self, side: usize) -> Vec<Sent> {
        let end = &mut self.ends[side];
        while let Some(e) = end.poll_event() {
            self.events[side].push(e);
        }
        while self.reads[side]
            && let Some(chunk) = end.read(u64::MAX)
        {
            self.read[side] += chunk.len();
        }
        let all = std::iter::from_fn(|| end.poll_transmit(self.now));
        let all: Vec<_> = all.take(10_000).collect();
        let sent = |transmit: Transmit| Sent {
            at: self.now,
            side,
            path: path_of(side, &transmit.addresses),
            transmit,
        };
        all.into_iter().map(sent).collect()
    }

    /// A segment arrives at the other side now.
    fn deliver(&mut self, s: &Sent) {
        let t = s.transmit.clone();
        self.ends[1 - s.side].handle(self.now, t.addresses.reversed(), t.segment, t.ecn);
    }

    /// Runs for a while; all segments arrive.
    fn wait(&mut self, time: Duration) -> Vec<Sent> {
        self.run(time, &mut |_| true)
    }

    /// Runs for a while; returns what was sent, also what was lost.
    fn run(&mut self, time: Duration, way: Way<'_>) -> Vec<Sent> {
        let until = self.now + time;
        let mut all = Vec::new();
        let mut same = 0;
        loop {
            for side in 0..2 {
                for mut s in self.poll(side) {
                    all.push(s.clone());
                    if way(&mut s) {
                        self.order += 1;
                        let at = self.now + self.delays.get(s.path).copied().unwrap_or(DELAY);
                        self.wire.insert((at, self.order), (side, s.transmit));
                    }
                }
            }
            let timers = self.ends.iter().filter_map(Connection::poll_timeout);
            let arrival = self.wire.first_key_value().map(|(k, _)| k.0);
            let next = timers.chain(arrival).min().unwrap_or(Instant::MAX);
            if next > until {
                self.now = until;
                return all;
            }
            same = if next > self.now { 0 } else { same + 1 };
            assert!(same < 1000, "time stands still");
            self.now = self.now.max(next);
            while let Some(first) = self.wire.first_entry()
                && first.key().0 <= self.now
            {
                let (from, t) = first.remove();
                self.ends[1 - from].handle(self.now, t.addresses.reversed(), t.segment, t.ecn);
            }
            for end in &mut self.ends {
                if end.poll_timeout().is_some_and(|t| t <= self.now) {
                    end.handle_timeout(self.now);
                }
            }
        }
    }

    /// An option arrives alone on an acknowledgement of the peer of `to`.
    fn tell(&mut self, to: usize, path: usize, option: MptcpOption) {
        let mut s = self.ack_of(1 - to, path);
        set_option(&mut s.transmit.segment, option);
        self.deliver(&s);
    }

    /// An acknowledgement that a side would send now.
    fn ack_of(&mut self, side: usize, path: usize) -> Sent {
        let end = &mut self.ends[side];
        let found = |s: &&mut crate::subflow::Subflow| path_of(side, &s.addresses) == path;
        let s = end.subflows.iter_mut().find(found).unwrap();
        let t = s.endpoint.pure_ack(self.now).unwrap();
        let transmit = Transmit {
            addresses: s.addresses,
            gateway: None,
            segment: t.segment,
            ecn: Ecn::NotEct,
        };
        Sent {
            at: self.now,
            side,
            path,
            transmit,
        }
    }

    /// The same as the peer sends it, with the options of the connection.
    fn full_ack_of(&mut self, side: usize, path: usize) -> Sent {
        let mut s = self.ack_of(side, path);
        let i = self.ends[side].index_of(s.transmit.addresses).unwrap();
        let t = gargalo_tcp::Transmit {
            segment: s.transmit.segment.clone(),
            ecn: s.transmit.ecn,
        };
        s.transmit = self.ends[side].add_options(i, t);
        s
    }

    fn client(&mut self) -> &mut Connection {
        &mut self.ends[0]
    }
    fn server(&mut self) -> &mut Connection {
        &mut self.ends[1]
    }
}

/// Differences between times, in milliseconds.
fn gaps(times: &[Instant]) -> Vec<u64> {
    times
        .windows(2)
        .map(|w| (w[1] - w[0]).as_millis())
        .collect()
}

fn times(all: &[Sent], which: impl Fn(&Sent) -> bool) -> Vec<Instant> {
    all.iter().filter(|s| which(s)).map(|s| s.at).collect()
}

/// A scheduler that does as it is told.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Orders>);

#[derive(Debug, Default)]
struct Orders {
    /// The path of the next segment; none: the scheduler waits.
    path: Mutex<Option<usize>>,
    /// Copies are wanted on all paths.
    all: AtomicBool,
    minds_window: AtomicBool,
}

impl Told {
    fn send_on(&self, path: Option<usize>) {
        *self.0.path.lock().unwrap() = path;
    }
}

impl Factory<dyn Scheduler> for Told {
    fn name(&self) -> &'static str {
        "told"
    }
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

impl Scheduler for Told {
    fn select(&mut self, _context: &Context<'_>) -> Choice {
        match *self.0.path.lock().unwrap() {
            Some(i) if self.0.all.load(Relaxed) => Choice::SendAll(i),
            Some(i) => Choice::Send(i),
            None => Choice::Wait,
        }
    }
    fn minds_window(&self) -> bool {
        self.0.minds_window.load(Relaxed)
    }
}

/// Without copies, with all decisions, and the scheduler that is told.
fn told(options: Options) -> (Config, Told) {
    let told = Told::default();
    let config = Config {
        scheduler: Arc::new(told.clone()),
        decisions: true,
        options: Options {
            probe_interval: Switch::Off,
            ..options
        },
        ..config()
    };
    (config, told)
}

impl Ends {
    /// The client sends this many full segments on a path; they are lost, unless they are delivered. Returns them.
    fn carry(&mut self, told: &Told, path: usize, segments: u64) -> Vec<Sent> {
        told.send_on(Some(path));
        let mss = self.ends[0].views[path].mss;
        self.client().write_synthetic(segments * mss);
        let sent = self.poll(0);
        told.send_on(None);
        let data = sent.iter().filter(|s| !s.segment().payload.is_empty());
        assert!(data.clone().all(|s| s.path == path));
        assert_eq!(data.count() as u64, segments);
        while self.client().poll_notice().is_some() {}
        sent
    }

    /// What the client has assigned since the last question: path, first byte in segments, reason.
    fn assigned(&mut self) -> Vec<(usize, u64, Carried)> {
        let client = &mut self.ends[0];
        let all: Vec<_> = std::iter::from_fn(|| client.poll_notice()).collect();
        let one = |n: Notice| match n {
            Notice::Scheduled {
                subflow,
                offset,
                why,
                ..
            } => {
                let i = client.views.iter().position(|v| v.id == subflow)?;
                Some((i, offset / client.views[i].mss, why))
            }
            _ => None,
        };
        all.into_iter().filter_map(one).collect()
    }
}

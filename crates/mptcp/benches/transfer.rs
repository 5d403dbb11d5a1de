//! A bulk transfer without content between two ends in memory: what a core does to a data packet and its
//! share of acknowledgements, both ends and a simple link. Five subflows of 200 Mbit/s, one of 1 Gbit/s, and
//! plain TCP over the same 1 Gbit/s for comparison, whose time per packet the others are told in.
//!
//! For a profiler: `COUNT="five 200000"` sends so many packets over five subflows (or `one`, `tcp`) and ends.

use std::collections::VecDeque;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gargalo_cc::{ControllerFactory, Init as ControllerInit, Params, Registered};
use gargalo_mptcp::{Addresses, Config, Connection, Init, scheduler};
use gargalo_tcp::Endpoint;
use gargalo_units::{Bytes, Count, Duration, Ecn, Instant, Rate, Seq};
use gargalo_wire::tcp::Segment;
use rand_pcg::Pcg64;

/// Data packets of one iteration.
const PACKETS: u64 = 100_000;

/// One end, whatever it speaks.
trait End {
    fn handle(&mut self, now: Instant, path: usize, segment: Segment);
    fn transmit(&mut self, now: Instant) -> Option<(usize, Segment)>;
    fn timeout(&self) -> Instant;
    fn on_timeout(&mut self, now: Instant);
    fn read(&mut self);
    fn sent(&self) -> Count;
}

fn address(side: usize, path: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, path as u8, side as u8).into()
}

fn path_of(a: &Addresses, side: usize) -> usize {
    match if side == 0 { a.local } else { a.remote } {
        SocketAddr::V4(a) => usize::from(a.ip().octets()[2]),
        SocketAddr::V6(_) => 0,
    }
}

struct Multi {
    side: usize,
    connection: Connection,
    addresses: Vec<Addresses>,
}

impl End for Multi {
    fn handle(&mut self, now: Instant, path: usize, segment: Segment) {
        let addresses = self.addresses[path];
        self.connection.handle(now, addresses, segment, Ecn::NotEct);
    }
    fn transmit(&mut self, now: Instant) -> Option<(usize, Segment)> {
        let t = self.connection.poll_transmit(now)?;
        Some((path_of(&t.addresses, self.side), t.segment))
    }
    fn timeout(&self) -> Instant {
        self.connection.poll_timeout().unwrap_or(Instant::MAX)
    }
    fn on_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }
    fn read(&mut self) {
        while let Some(chunk) = self.connection.read(u64::MAX) {
            black_box(chunk.len());
        }
        while self.connection.poll_event().is_some() {}
    }
    fn sent(&self) -> Count {
        self.connection.stats().tcp.sender.sent_packets
    }
}

struct Plain(Endpoint);

impl End for Plain {
    fn handle(&mut self, now: Instant, _: usize, segment: Segment) {
        self.0.handle(now, segment, Ecn::NotEct);
    }
    fn transmit(&mut self, now: Instant) -> Option<(usize, Segment)> {
        Some((0, self.0.poll_transmit(now)?.segment))
    }
    fn timeout(&self) -> Instant {
        self.0.poll_timeout().unwrap_or(Instant::MAX)
    }
    fn on_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }
    fn read(&mut self) {
        while let Some(chunk) = self.0.read(u64::MAX) {
            black_box(chunk.len());
        }
        while self.0.poll_event().is_some() {}
    }
    fn sent(&self) -> Count {
        self.0.stats().sender.sent_packets
    }
}

/// One direction of a path: constant rate and delay, a queue of one bandwidth-delay product.
struct Link {
    rate: Rate,
    delay: Duration,
    free_at: Instant,
    /// The next arrival.
    next: Instant,
    wire: VecDeque<(Instant, Segment)>,
}

impl Link {
    fn send(&mut self, now: Instant, segment: Segment) {
        let start = self.free_at.max(now);
        if start - now > self.delay * 2 {
            return;
        }
        let bytes = Bytes::new(20 + u64::from(segment.wire_len()));
        self.free_at = start + self.rate.transmission_time(bytes);
        let at = self.free_at + self.delay;
        self.next = self.next.min(at);
        self.wire.push_back((at, segment));
    }
    fn arrive(&mut self) -> Option<Segment> {
        let (_, segment) = self.wire.pop_front()?;
        self.next = self.wire.front().map_or(Instant::MAX, |w| w.0);
        Some(segment)
    }
}

struct Bench<E> {
    now: Instant,
    ends: [E; 2],
    timeouts: [Instant; 2],
    /// Links of each sending end, one for each path.
    links: [Vec<Link>; 2],
}

impl<E: End> Bench<E> {
    fn new(ends: [E; 2], paths: usize) -> Self {
        let link = |_| Link {
            rate: Rate::from_mbps(1000 / paths as u64),
            delay: Duration::from_millis(5),
            free_at: Instant::ZERO,
            next: Instant::MAX,
            wire: VecDeque::new(),
        };
        let mut bench = Self {
            now: Instant::ZERO,
            ends,
            timeouts: [Instant::MAX; 2],
            links: [0, 1].map(|_| (0..paths).map(link).collect()),
        };
        bench.drain(0);
        bench
    }

    fn drain(&mut self, side: usize) {
        self.ends[side].read();
        while let Some((path, segment)) = self.ends[side].transmit(self.now) {
            self.links[side][path].send(self.now, segment);
        }
        self.timeouts[side] = self.ends[side].timeout();
    }

    /// The next thing that happens.
    #[inline(never)]
    fn step(&mut self) {
        let mut next = (Instant::MAX, 0, usize::MAX);
        for (side, links) in self.links.iter().enumerate() {
            for (path, link) in links.iter().enumerate() {
                if link.next < next.0 {
                    next = (link.next, 1 - side, path);
                }
            }
        }
        for (side, at) in self.timeouts.iter().enumerate() {
            if *at < next.0 {
                next = (*at, side, usize::MAX);
            }
        }
        let (at, side, path) = next;
        self.now = self.now.max(at);
        if path == usize::MAX {
            self.ends[side].on_timeout(self.now);
        } else if let Some(segment) = self.links[1 - side][path].arrive() {
            self.ends[side].handle(self.now, path, segment);
        }
        self.drain(side);
    }

    /// Sends so many data packets.
    fn run(&mut self, packets: u64) {
        let until = self.ends[0].sent() + Count::new(packets);
        loop {
            for _ in 0..256 {
                self.step();
            }
            if self.ends[0].sent() >= until {
                return;
            }
        }
    }
}

fn tcp() -> gargalo_tcp::Config {
    gargalo_tcp::Config {
        receive_buffer: Bytes::new(16 << 20),
        send_buffer: Bytes::new(u64::MAX / 4),
        ..gargalo_tcp::Config::default()
    }
}

fn cubic() -> Arc<dyn ControllerFactory> {
    Arc::new(Registered::new("cubic", Params::new()).expect("registered"))
}

fn multi(paths: usize, name: &str) -> Bench<Multi> {
    let config = Arc::new(Config {
        tcp: Arc::new(tcp()),
        scheduler: Arc::new(scheduler::Registered::new(name, Params::new()).expect("registered")),
        ..Config::default()
    });
    let init = |side: usize| Init {
        key: 77 + side as u64,
        rng: Pcg64::new(1, side as u128),
        addresses: (0..paths).map(|p| address(side, p)).collect(),
        backups: Vec::new(),
        gateways: Vec::new(),
        names: Default::default(),
    };
    let addresses = |p: usize| Addresses {
        local: SocketAddr::new(address(0, p), 40_000),
        remote: SocketAddr::new(address(1, p), 80),
    };
    let all: Vec<_> = (0..paths).map(addresses).collect();
    let now = Instant::ZERO;
    let mut client =
        Connection::connect(config.clone(), cubic(), init(0), all[0], now).expect("valid");
    let server = Connection::listen(config, cubic(), init(1)).expect("valid");
    client.write_synthetic(u64::MAX / 4);
    let reversed = all.iter().map(|a| a.reversed()).collect();
    let ends = [
        Multi {
            side: 0,
            connection: client,
            addresses: all,
        },
        Multi {
            side: 1,
            connection: server,
            addresses: reversed,
        },
    ];
    let mut bench = Bench::new(ends, paths);
    bench.run(PACKETS);
    let used = |v: &gargalo_mptcp::scheduler::PathView| v.sent_packets > 1000;
    let views = bench.ends[0].connection.path_views();
    assert_eq!(views.iter().filter(|v| used(v)).count(), paths);
    bench
}

fn plain() -> Bench<Plain> {
    let config = Arc::new(tcp());
    let now = Instant::ZERO;
    let controller = || {
        let init = ControllerInit {
            now,
            mss: Bytes::new(u64::from(config.mss)),
            initial_window: Bytes::new(u64::from(config.mss) * 10),
            rng: Pcg64::new(3, 3),
        };
        cubic().build(init).expect("valid")
    };
    let init = |local_port, remote_port| gargalo_tcp::Init {
        local_port,
        remote_port,
        isn: Seq::new(5),
        ts_offset: 9,
        ..gargalo_tcp::Init::default()
    };
    let mut client = Endpoint::connect(config.clone(), controller(), init(40_000, 80), now);
    let server = Endpoint::listen(config.clone(), controller(), init(80, 40_000), now);
    client.write_synthetic(u64::MAX / 4);
    let mut bench = Bench::new([Plain(client), Plain(server)], 1);
    bench.run(PACKETS);
    bench
}

fn measure<E: End>(bench: &mut Bench<E>, iterations: u64) -> StdDuration {
    let start = StdInstant::now();
    for _ in 0..iterations {
        bench.run(PACKETS);
    }
    start.elapsed()
}

/// Sends the packets that COUNT says, if it is set.
fn count() -> bool {
    let Ok(text) = std::env::var("COUNT") else {
        return false;
    };
    let (what, packets) = text.split_once(' ').expect("what and how many packets");
    let packets = packets.parse().expect("a number of packets");
    match what {
        "five" => multi(5, scheduler::DEFAULT).run(packets),
        "one" => multi(1, scheduler::DEFAULT).run(packets),
        "tcp" => plain().run(packets),
        _ => panic!("{what} is none of five, one and tcp"),
    }
    true
}

fn transfer(c: &mut Criterion) {
    if count() {
        return;
    }
    // Turn by turn, so that what else the machine does falls on all alike.
    let (mut five, mut one, mut tcp) = (
        multi(5, scheduler::DEFAULT),
        multi(1, scheduler::DEFAULT),
        plain(),
    );
    let mut best = [f64::INFINITY; 3];
    for _ in 0..10 {
        let times = [
            measure(&mut five, 1),
            measure(&mut one, 1),
            measure(&mut tcp, 1),
        ];
        for (b, t) in best.iter_mut().zip(times) {
            *b = b.min(t.as_secs_f64() / PACKETS as f64);
        }
    }
    let [a, b, t] = best;
    println!(
        "best of ten: five subflows {:.2} M packets/s, one {:.2}, plain TCP {:.2}; time per packet of plain TCP's: \
         {:.2} and {:.2}",
        1e-6 / a,
        1e-6 / b,
        1e-6 / t,
        a / t,
        b / t
    );
    let mut group = c.benchmark_group("transfer");
    group.sample_size(10);
    group.throughput(Throughput::Elements(PACKETS));
    for entry in scheduler::SCHEDULERS {
        group.bench_function(format!("5 subflows/{}", entry.name), |b| {
            b.iter_custom(|n| measure(&mut multi(5, entry.name), n));
        });
    }
    group.bench_function("1 subflow", |b| b.iter_custom(|n| measure(&mut one, n)));
    group.bench_function("plain TCP", |b| b.iter_custom(|n| measure(&mut tcp, n)));
    group.finish();
}

criterion_group!(benches, transfer);
criterion_main!(benches);

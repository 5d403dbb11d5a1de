//! Two hosts in memory and one connection with segments of 1448 bytes: what a core does to a data
//! packet and its share of acknowledgements, on both sides: building, checksums, parsing, TCP.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gargalo_cc::{Params, Registered};
use gargalo_host::{ConnectionId, Host, HostConfig, HostEvent, SocketOptions};
use gargalo_tcp::Config;
use gargalo_units::{Duration, Instant};

const MSS: usize = 1448;
/// Data packets of one iteration.
const PACKETS: u64 = 10_000;

struct Pair {
    now: Instant,
    hosts: [Host; 2],
    ids: [ConnectionId; 2],
    block: Bytes,
    buffer: Vec<u8>,
    datagrams: u64,
}

fn address(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

impl Pair {
    fn new() -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mut hosts =
            [1, 2].map(|n| Host::new(HostConfig::new([address(n)]), now).expect("an address"));
        let options = SocketOptions {
            tcp: Arc::new(Config {
                receive_buffer: gargalo_units::Bytes::new(1 << 20),
                send_buffer: gargalo_units::Bytes::new(1 << 20),
                ..Config::default()
            }),
            congestion: Arc::new(Registered::new("cubic", Params::new()).expect("registered")),
            mptcp: None,
            fast_open: false,
            dscp: 0,
        };
        let server = SocketAddr::new(address(2), 80);
        hosts[1].listen(server, options.clone()).expect("a port");
        let client = hosts[0].connect(now, None, server, &options);
        let mut pair = Self {
            now,
            hosts,
            ids: [client.expect("a port"); 2],
            block: Bytes::from(vec![7; 16 * MSS]),
            buffer: Vec::with_capacity(2048),
            datagrams: 0,
        };
        pair.exchange(4);
        while let Some(event) = pair.hosts[1].poll_event() {
            if let HostEvent::Accepted { connection, .. } = event {
                pair.ids[1] = connection;
            }
        }
        pair
    }

    /// Each side sends what it has, in turns of at most 64 datagrams, as a driver in batches does.
    fn exchange(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.now += Duration::from_micros(50);
            for side in 0..2 {
                for _ in 0..64 {
                    self.buffer.clear();
                    if !self.hosts[side].poll_transmit(self.now, &mut self.buffer) {
                        break;
                    }
                    self.datagrams += 1;
                    self.hosts[1 - side].handle(self.now, &self.buffer);
                }
            }
            for host in &mut self.hosts {
                host.handle_timeout(self.now);
            }
        }
    }

    fn transfer(&mut self, bytes: u64) {
        let mut read = 0;
        while read < bytes {
            while self.hosts[0].write_room(self.ids[0]) >= self.block.len() as u64 {
                self.hosts[0].write(self.ids[0], self.block.clone());
            }
            self.exchange(1);
            while let Some(data) = self.hosts[1].read(self.ids[1], u64::MAX) {
                read += black_box(data).len() as u64;
            }
            while let Some(event) = self.hosts[1].poll_event() {
                black_box(event);
            }
        }
    }
}

fn bench(c: &mut Criterion) {
    let mut pair = Pair::new();
    // The window is open.
    pair.transfer(32 << 20);
    let mut group = c.benchmark_group("host_pair");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("data packets of 1448 bytes", |b| {
        b.iter(|| pair.transfer(PACKETS * MSS as u64));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

//! Two hosts in memory, one virtual clock, and a network between them with delay, loss, reordering, duplication and
//! MTU changes.
#![allow(dead_code)] // each test file uses its part

pub mod attack;
pub mod forge;
pub mod join_attack;
pub mod multi;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use gargalo_cc::{Params, Registered};
use gargalo_host::{ConnectionId, Host, HostConfig, HostEvent, SocketOptions};
use gargalo_tcp::Config;
use gargalo_units::{Duration, Instant};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
pub const fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

pub fn address(v6: bool, side: usize) -> IpAddr {
    if v6 {
        IpAddr::V6(format!("fd00::{}", side + 1).parse().unwrap())
    } else {
        IpAddr::V4([10, 0, 0, side as u8 + 1].into())
    }
}

pub fn server(v6: bool) -> SocketAddr {
    SocketAddr::new(address(v6, SERVER), 80)
}

/// A host with an IPv4 and an IPv6 address.
pub fn host_config(side: usize) -> HostConfig {
    HostConfig {
        seed: 7 + side as u64,
        ..HostConfig::new([address(false, side), address(true, side)])
    }
}

pub fn options(tcp: Config, congestion: &str) -> SocketOptions {
    let congestion = Registered::new(congestion, Params::new()).unwrap();
    SocketOptions::new(Arc::new(tcp), Arc::new(congestion))
}

/// Small buffers, so that memory limits take effect.
pub fn cubic() -> SocketOptions {
    let tcp = Config {
        receive_buffer: gargalo_units::Bytes::new(256 << 10),
        send_buffer: gargalo_units::Bytes::new(256 << 10),
        ..Config::default()
    };
    options(tcp, "cubic")
}

/// The impairments of datagrams in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub delay: Duration,
    pub loss: f64,
    pub duplicate: f64,
    /// A datagram is delayed by up to this much more.
    pub jitter: Duration,
    /// Longer datagrams are dropped, with or without an ICMP error.
    pub mtu: usize,
    pub tells: bool,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            delay: ms(5),
            loss: 0.0,
            duplicate: 0.0,
            jitter: Duration::ZERO,
            mtu: 65_535,
            tells: true,
        }
    }
}

/// A middlebox that modifies datagrams of a side; `false`: the datagram is dropped.
pub type Alter = fn(Instant, usize, &mut Vec<u8>) -> bool;

#[derive(Debug)]
pub struct World {
    pub now: Instant,
    pub hosts: [Host; 2],
    pub network: Network,
    /// Every event, in order.
    pub events: Vec<(usize, HostEvent)>,
    /// Datagrams that were dropped for their length.
    pub too_long: u64,
    /// The latest datagrams that each side sent, if that many are to be kept.
    pub recent: [VecDeque<Vec<u8>>; 2],
    pub keep: usize,
    /// A middlebox on the path; `None`: datagrams pass unchanged.
    pub alter: Option<Alter>,
    in_flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    count: u64,
    rng: Pcg64,
}

impl World {
    pub fn new(network: Network) -> Self {
        Self::with([host_config(CLIENT), host_config(SERVER)], network)
    }

    pub fn with(configs: [HostConfig; 2], network: Network) -> Self {
        let now = at(1000);
        Self {
            now,
            hosts: configs.map(|c| Host::new(c, now).unwrap()),
            network,
            events: Vec::new(),
            too_long: 0,
            recent: Default::default(),
            keep: 0,
            alter: None,
            in_flight: BTreeMap::new(),
            count: 0,
            rng: Pcg64::new(42, 1),
        }
    }

    /// Sends a datagram to `side`.
    pub fn inject(&mut self, side: usize, datagram: Vec<u8>) {
        let more = match self.network.jitter.as_nanos() {
            0 => 0,
            n => self.rng.random_range(0..n),
        };
        let arrives = self.now + self.network.delay + Duration::from_nanos(more);
        self.count += 1;
        self.in_flight
            .insert((arrives, self.count), (side, datagram));
    }

    fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && (self.rng.next_u64() as f64) < p * u64::MAX as f64
    }

    fn carry(&mut self, from: usize, mut datagram: Vec<u8>) {
        if self
            .alter
            .is_some_and(|f| !f(self.now, from, &mut datagram))
        {
            return;
        }
        if self.keep > 0 {
            self.recent[from].push_back(datagram.clone());
            if self.recent[from].len() > self.keep {
                self.recent[from].pop_front();
            }
        }
        if datagram.len() > self.network.mtu {
            self.too_long += 1;
            if self.network.tells {
                let report = too_big(&datagram, self.network.mtu as u32);
                self.inject(from, report);
            }
            return;
        }
        if self.chance(self.network.loss) {
            return;
        }
        if self.chance(self.network.duplicate) {
            self.inject(1 - from, datagram.clone());
        }
        self.inject(1 - from, datagram);
    }

    /// Sends all pending datagrams, and collects events.
    pub fn drain(&mut self) {
        for side in 0..2 {
            loop {
                let mut out = Vec::new();
                if !self.hosts[side].poll_transmit(self.now, &mut out) {
                    break;
                }
                self.carry(side, out);
            }
            while let Some(event) = self.hosts[side].poll_event() {
                self.events.push((side, event));
            }
        }
    }

    /// Advances to the next event; `false` if there is none.
    pub fn step(&mut self) -> bool {
        self.drain();
        let arrival = self.in_flight.first_key_value().map(|(k, _)| k.0);
        let timers = self.hosts.iter().filter_map(Host::poll_timeout);
        let Some(next) = timers.chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (side, datagram) = entry.remove();
            self.hosts[side].handle(self.now, &datagram);
        }
        for host in &mut self.hosts {
            host.handle_timeout(self.now);
        }
        self.drain();
        true
    }

    /// Steps until `until` has come.
    pub fn run_until(&mut self, until: Instant) {
        loop {
            self.drain();
            let arrival = self.in_flight.first_key_value().map(|(k, _)| k.0);
            let timers = self.hosts.iter().filter_map(Host::poll_timeout);
            match timers.chain(arrival).min() {
                Some(next) if next <= until => assert!(self.step()),
                _ => break,
            }
        }
        self.now = until;
    }

    pub fn run_for(&mut self, d: Duration) {
        self.run_until(self.now + d);
    }

    /// Steps until `done`; panics after `limit`.
    #[track_caller]
    pub fn run_while(&mut self, limit: Duration, mut busy: impl FnMut(&mut Self) -> bool) {
        let end = self.now + limit;
        while busy(self) {
            assert!(self.step(), "there are no more events, and it is not done");
            assert!(self.now < end, "not done after {limit}");
        }
    }

    /// Opens a connection; returns the ids at the client and at the server, which listens already.
    #[track_caller]
    pub fn connect(&mut self, remote: SocketAddr, o: &SocketOptions) -> [ConnectionId; 2] {
        let from = self.events.len();
        let near = self.hosts[CLIENT]
            .connect(self.now, None, remote, o)
            .unwrap();
        let mut far = None;
        self.run_while(Duration::from_secs(60), |w| {
            far = w.events[from..].iter().find_map(|e| match e {
                (SERVER, HostEvent::Accepted { connection, .. }) => Some(*connection),
                _ => None,
            });
            far.is_none() || !w.events[from..].contains(&(CLIENT, HostEvent::Connected(near)))
        });
        [near, far.unwrap()]
    }

    /// Moves `total` bytes from `from` to `to` and checks each.
    #[track_caller]
    pub fn transfer(&mut self, ids: [ConnectionId; 2], from: usize, total: u64, limit: Duration) {
        let mut t = Transfer::new(ids, from, total);
        self.run_while(limit, |w| !t.step(&mut w.hosts));
    }
}

/// A transfer whose content is known.
#[derive(Debug)]
pub struct Transfer {
    ids: [ConnectionId; 2],
    from: usize,
    total: u64,
    pub written: u64,
    pub read: u64,
}

/// Byte `i` of every stream: a period that no segment size divides.
pub fn content(i: u64) -> u8 {
    ((i % 251) ^ (i >> 16)) as u8
}

impl Transfer {
    pub fn new(ids: [ConnectionId; 2], from: usize, total: u64) -> Self {
        Self {
            ids,
            from,
            total,
            written: 0,
            read: 0,
        }
    }

    /// Ends the transfer with the bytes written so far.
    pub fn stop(&mut self) {
        self.total = self.written;
    }

    /// Writes and reads as much as possible; returns whether all has arrived.
    #[track_caller]
    pub fn step(&mut self, hosts: &mut [Host; 2]) -> bool {
        let (from, to) = (self.from, 1 - self.from);
        while self.written < self.total {
            let room = hosts[from].write_room(self.ids[from]);
            let n = room.min(self.total - self.written).min(16 << 10);
            if n == 0 {
                break;
            }
            let data: Bytes = (self.written..self.written + n).map(content).collect();
            self.written += hosts[from].write(self.ids[from], data) as u64;
        }
        while let Some(data) = hosts[to].read(self.ids[to], u64::MAX) {
            for b in &data {
                assert_eq!(*b, content(self.read), "byte {} is wrong", self.read);
                self.read += 1;
            }
        }
        assert!(self.read <= self.total);
        self.read == self.total
    }
}

/// The "too big" error of a router to the sender of a datagram (RFC 792, 1191, 4443).
pub fn too_big(datagram: &[u8], mtu: u32) -> Vec<u8> {
    icmp_error(datagram, mtu, (3, 4), (2, 0))
}

/// An ICMP error about `datagram`, from its destination: type and code of either version; `word` is
/// what stands after the checksum.
pub fn icmp_error(datagram: &[u8], word: u32, v4: (u8, u8), v6: (u8, u8)) -> Vec<u8> {
    let addresses = parses(datagram).unwrap().reversed();
    let is_v6 = datagram[0] >> 4 == 6;
    let (kind, code) = if is_v6 { v6 } else { v4 };
    let mut body = vec![kind, code, 0, 0];
    body.extend(word.to_be_bytes());
    body.extend(&datagram[..datagram.len().min(128)]);
    let protocol = if is_v6 { 58 } else { 1 };
    dress(addresses, protocol, &mut body, gargalo_units::Ecn::NotEct)
}

/// The addresses of an IP datagram whose header is whole.
pub fn parses(datagram: &[u8]) -> Option<gargalo_wire::ip::Addresses> {
    use gargalo_wire::{ip::Addresses, ipv4, ipv6};
    if let Ok(p) = ipv4::Packet::parse(datagram) {
        let (src, dst) = (p.src(), p.dst());
        return Some(Addresses::V4 { src, dst });
    }
    let p = ipv6::Packet::parse(datagram).ok()?;
    let (src, dst) = (p.src(), p.dst());
    Some(Addresses::V6 { src, dst })
}

/// A datagram with this body; the checksum field of TCP, UDP and ICMP is corrected.
pub fn dress(
    addresses: gargalo_wire::ip::Addresses,
    protocol: u8,
    body: &mut [u8],
    ecn: gargalo_units::Ecn,
) -> Vec<u8> {
    use gargalo_wire::Checksum;
    use gargalo_wire::ip::Header;
    let place = match protocol {
        6 => Some(16),
        17 => Some(6),
        1 | 58 => Some(2),
        _ => None,
    };
    if let Some(place) = place.filter(|p| p + 2 <= body.len()) {
        body[place..place + 2].fill(0);
        let start = match protocol {
            1 => Checksum::new(),
            p => addresses.pseudo_header(p, body.len() as u32),
        };
        let sum = start.add_bytes(body).finish();
        body[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
    let header = Header {
        ecn,
        ..Header::new(addresses)
    };
    let mut out = Vec::new();
    header.emit(protocol, body.len() as u32, &mut out).unwrap();
    out.extend_from_slice(body);
    out
}

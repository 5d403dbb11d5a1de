//! The network between the two hosts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};

use gargalo_mptcp::{Addresses, Chunk, Config, Connection, Event, Transmit};
use gargalo_units::{Bytes, Duration, Ecn, Instant};
use gargalo_wire::tcp::Segment;
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use super::{Path, address, at, byte, congestion, content, init, ms};

#[derive(Debug)]
struct InFlight {
    at: Instant,
    order: u64,
    to: usize,
    transmit: Transmit,
}
impl PartialEq for InFlight {
    fn eq(&self, o: &Self) -> bool {
        (self.at, self.order) == (o.at, o.order)
    }
}
impl Eq for InFlight {}
impl PartialOrd for InFlight {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for InFlight {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(o.at, o.order))
    }
}

/// What a middlebox does to a segment that `side` sends on a path; `false`: drops it.
pub type Middlebox = Box<dyn FnMut(usize, usize, &mut Segment) -> bool>;

pub struct Net {
    pub now: Instant,
    pub ends: [Connection; 2],
    pub paths: Vec<Path>,
    pub events: [Vec<Event>; 2],
    pub read: [u64; 2],
    /// The receiver reads no more than this.
    pub read_limit: [u64; 2],
    endless: [bool; 2],
    /// Content is checked against the test stream.
    pub checks: bool,
    pub middlebox: Middlebox,
    /// Segments sent at one instant on one subflow share a mapping, as with Linux; not with checksums.
    pub long_mappings: bool,
    pub log: Option<Vec<(Instant, usize, Transmit)>>,
    /// Payload bytes that entered each path from side 0.
    pub carried: Vec<u64>,
    pub segments: u64,
    free_at: [Vec<Instant>; 2],
    wire: BinaryHeap<Reverse<InFlight>>,
    order: u64,
    rng: Pcg64,
    /// One per path, so that events on one path do not change the draws of another.
    rngs: [Vec<Pcg64>; 2],
}

impl Net {
    pub fn new(paths: &[Path], config: Config, cc: &str, seed: u64) -> Self {
        Self::asymmetric(paths, config.clone(), config, cc, seed)
    }

    pub fn asymmetric(paths: &[Path], client: Config, server: Config, cc: &str, seed: u64) -> Self {
        let n = paths.len();
        let addresses = Addresses {
            local: SocketAddr::new(address(0, 0), 40_000),
            remote: SocketAddr::new(address(1, 0), 80),
        };
        let cc = congestion(cc);
        let now = at(0);
        let client = Connection::connect(client, cc.clone(), init(seed, 0, n), addresses, now);
        let server = Connection::listen(server, cc, init(seed, 1, n));
        Self {
            now,
            ends: [client.unwrap(), server.unwrap()],
            paths: paths.to_vec(),
            events: [Vec::new(), Vec::new()],
            read: [0; 2],
            read_limit: [u64::MAX; 2],
            endless: [false; 2],
            checks: false,
            middlebox: Box::new(|_, _, _| true),
            long_mappings: false,
            log: None,
            carried: vec![0; n],
            segments: 0,
            free_at: [vec![at(0); n], vec![at(0); n]],
            wire: BinaryHeap::new(),
            order: 0,
            rng: Pcg64::new(u128::from(seed) + 77, 3),
            rngs: [0, 1].map(|side| {
                let stream =
                    |p: &Path| Pcg64::new(u128::from(p.rate.as_bps()) + side, u128::from(seed));
                paths.iter().map(stream).collect()
            }),
        }
    }

    /// The path of a packet: that of the client's address.
    fn path_of(side: usize, a: &Addresses) -> usize {
        let ip = if side == 0 {
            a.local.ip()
        } else {
            a.remote.ip()
        };
        match ip {
            IpAddr::V4(v4) => usize::from(v4.octets()[2]),
            IpAddr::V6(_) => 0,
        }
    }

    fn transmit(&mut self, side: usize, mut t: Transmit) {
        let p = Self::path_of(side, &t.addresses);
        if let Some(log) = &mut self.log {
            log.push((self.now, side, t.clone()));
        }
        self.segments += 1;
        let Some(path) = self.paths.get(p).copied() else {
            return;
        };
        if side == 0 {
            self.carried[p] += u64::from(t.segment.payload.len());
        }
        assert!(
            t.segment.header_len() <= 60,
            "options fit: {:?}",
            t.segment.options
        );
        assert!(
            t.segment.wire_len() <= 1480,
            "a packet of 1500 bytes: {}",
            t.segment.wire_len()
        );
        if !(self.middlebox)(side, p, &mut t.segment) {
            return;
        }
        if (path.dead.0..path.dead.1).contains(&self.now) && path.silenced[side] {
            return;
        }
        let free = &mut self.free_at[side][p];
        let start = (*free).max(self.now);
        let bytes = Bytes::new(20 + u64::from(t.segment.wire_len()));
        if (path.rate * (start - self.now)).get() + bytes.get() > path.queue {
            return;
        }
        *free = start + path.rate.transmission_time(bytes);
        let lost = path.loss > 0.0 && self.rngs[side][p].random::<f64>() < path.loss;
        if lost {
            return;
        }
        let leaves = *free;
        t.addresses = t.addresses.reversed();
        let rng = &mut self.rngs[side][p];
        if path.duplicate > 0.0 && rng.random::<f64>() < path.duplicate {
            let extra = path.jitter.mul_f64(rng.random::<f64>());
            self.fly(leaves + path.delay + extra, 1 - side, t.clone());
        }
        let rng = &mut self.rngs[side][p];
        let extra = if path.jitter.is_zero() {
            path.jitter
        } else {
            path.jitter.mul_f64(rng.random::<f64>())
        };
        self.fly(leaves + path.delay + extra, 1 - side, t);
    }

    fn fly(&mut self, at: Instant, to: usize, transmit: Transmit) {
        self.order += 1;
        self.wire.push(Reverse(InFlight {
            at,
            order: self.order,
            to,
            transmit,
        }));
    }

    /// Passes a segment to a side as if it had arrived from the network.
    pub fn inject(&mut self, to: usize, addresses: Addresses, segment: Segment) {
        self.ends[to].handle(self.now, addresses, segment, Ecn::NotEct);
        self.settle(to);
    }

    /// Writes an endless stream.
    pub fn write_endlessly(&mut self, side: usize) {
        self.endless[side] = true;
        self.ends[side].write_synthetic(u64::MAX);
    }

    pub fn settle(&mut self, side: usize) {
        if self.endless[side] {
            self.ends[side].write_synthetic(u64::MAX);
        }
        while let Some(e) = self.ends[side].poll_event() {
            self.events[side].push(e);
        }
        loop {
            let room = self.read_limit[side].saturating_sub(self.read[side]);
            let Some(chunk) = self.ends[side].read(room) else {
                break;
            };
            if let (Chunk::Real(b), true) = (&chunk, self.checks) {
                for (k, c) in b.iter().enumerate() {
                    let i = self.read[side] + k as u64;
                    assert_eq!(*c, byte(i), "byte {i} of side {side} at {}", self.now);
                }
            }
            self.read[side] += chunk.len();
        }
        if self.long_mappings {
            let mut burst = Vec::new();
            while let Some(t) = self.ends[side].poll_transmit(self.now) {
                burst.push(t);
            }
            lengthen(&mut burst);
            for t in burst {
                self.transmit(side, t);
            }
            return;
        }
        while let Some(t) = self.ends[side].poll_transmit(self.now) {
            self.transmit(side, t);
        }
    }

    /// Runs until `until` or until `done`; returns whether `done` was reached.
    pub fn run(&mut self, until: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let mut same = 0;
        loop {
            self.settle(0);
            self.settle(1);
            if done(self) {
                return true;
            }
            let mut next = until + ms(1);
            if let Some(Reverse(f)) = self.wire.peek() {
                next = next.min(f.at);
            }
            for e in &self.ends {
                next = next.min(e.poll_timeout().unwrap_or(Instant::MAX));
            }
            if next > until {
                self.now = until;
                return false;
            }
            same = if next > self.now { 0 } else { same + 1 };
            assert!(
                same < 10_000,
                "time stands still at {}: {:?}",
                self.now,
                self.ends
            );
            self.now = self.now.max(next);
            while self.wire.peek().is_some_and(|f| f.0.at <= self.now) {
                let Some(Reverse(f)) = self.wire.pop() else {
                    break;
                };
                let t = f.transmit;
                self.ends[f.to].handle(self.now, t.addresses, t.segment, t.ecn);
                self.settle(f.to);
            }
            for side in 0..2 {
                if self.ends[side]
                    .poll_timeout()
                    .is_some_and(|t| t <= self.now)
                {
                    self.ends[side].handle_timeout(self.now);
                    self.settle(side);
                }
            }
        }
    }

    pub fn run_for(&mut self, d: Duration) {
        let until = self.now + d;
        self.run(until, |_| false);
    }

    /// Writes as much of the test stream as fits; returns the new position.
    pub fn write_stream(&mut self, side: usize, written: u64, total: u64) -> u64 {
        let room = self.ends[side]
            .write_room()
            .min(total - written)
            .min(1 << 20);
        if room == 0 {
            return written;
        }
        let data = content(written, room as usize);
        written + self.ends[side].write(data) as u64
    }

    /// Sends `total` bytes of content from side 0 and closes; both sides must end in order with exactly
    /// these bytes. Returns when the last byte was read.
    pub fn transfer(&mut self, total: u64, limit: Duration) -> Instant {
        self.checks = true;
        let mut written = 0;
        let until = self.now + limit;
        let mut finished = None;
        let mut server_closed = false;
        let done = self.run(until, |net| {
            if written < total {
                written = net.write_stream(0, written, total);
                if written == total {
                    let now = net.now;
                    net.ends[0].close(now);
                }
                net.settle(0);
            }
            if net.read[1] == total && finished.is_none() {
                finished = Some(net.now);
            }
            if net.events[1].contains(&Event::PeerClosed) && !server_closed {
                server_closed = true;
                let now = net.now;
                net.ends[1].close(now);
                net.settle(1);
            }
            net.events.iter().all(|e| e.contains(&Event::Closed))
        });
        assert!(
            done,
            "not over at {}: read {} of {total}, written {written}; {:#?}",
            self.now,
            self.read[1],
            self.summary()
        );
        assert_eq!(self.read[1], total);
        assert_eq!([self.ends[0].error(), self.ends[1].error()], [None, None]);
        finished.expect("everything was read")
    }

    /// Bulk transfer for `duration` after a start of `warm_up`: goodput in Mbit/s.
    pub fn goodput(&mut self, warm_up: Duration, duration: Duration) -> f64 {
        self.write_endlessly(0);
        self.run_for(warm_up);
        let before = self.read[1];
        self.run_for(duration);
        (self.read[1] - before) as f64 * 8e-6 / duration.as_secs_f64()
    }

    pub fn summary(&self) -> Vec<String> {
        let one = |e: &Connection| {
            let subflows: Vec<_> = e
                .subflows(self.now)
                .map(|s| {
                    format!(
                        "{} {} {} in_loss={} cwnd={} flight={} srtt={:?} lost={} to={}",
                        s.id,
                        s.addresses,
                        s.state,
                        s.in_loss,
                        s.sender.cwnd,
                        s.sender.in_flight,
                        s.sender.srtt.map(|d| d.as_millis()),
                        s.stats.sender.lost_packets,
                        s.stats.sender.timeouts
                    )
                })
                .collect();
            format!(
                "{} unacked={} unsent={} ooo={} timeout={:?} {:?}\n  {}",
                e.state(),
                e.unacknowledged(),
                e.unsent(),
                e.out_of_order(),
                e.poll_timeout(),
                e.stats(),
                subflows.join("\n  ")
            )
        };
        self.ends.iter().map(one).collect()
    }

    pub fn random(&mut self) -> u64 {
        self.rng.next_u64()
    }
}

/// Gives segments that are contiguous in the subflow and in the stream a common mapping.
fn lengthen(burst: &mut [Transmit]) {
    let mapping = |t: &Transmit| {
        let list = t.segment.options.mptcp.as_ref()?;
        let m = list.dss()?.mapping?;
        let plain = m.checksum.is_none() && u32::from(m.length) == t.segment.payload.len();
        plain.then_some(m)
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in 0..burst.len() {
        let Some(m) = mapping(&burst[i]) else {
            continue;
        };
        let continued = groups.iter_mut().find(|g| {
            let last = &burst[g[g.len() - 1]];
            let follows = mapping(last).is_some_and(|l| {
                let next = super::forge::shifted(l.data_seq, u64::from(l.length));
                next == m.data_seq
                    && l.subflow_seq.wrapping_add(u32::from(l.length)) == m.subflow_seq
            });
            follows && last.addresses == burst[i].addresses
        });
        match continued {
            Some(g) => g.push(i),
            None => groups.push(vec![i]),
        }
    }
    for g in groups {
        let Some(mut whole) = mapping(&burst[g[0]]) else {
            continue;
        };
        let len: u32 = g.iter().map(|i| burst[*i].segment.payload.len()).sum();
        let Ok(len) = u16::try_from(len) else {
            continue;
        };
        whole.length = len;
        for i in g {
            super::forge::change_dss(&mut burst[i].segment, |d| d.mapping = Some(whole));
        }
    }
}

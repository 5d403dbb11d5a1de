//! Two endpoints and two links between them, in virtual time.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod abuse;
pub mod attack;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gargalo_cc as cc;
use gargalo_quic::{
    Config, Congestion, Datagram, Direction, Endpoint, Event, Init, Realm, Stack, StreamId,
};
use gargalo_units::{Bytes as Size, Duration, Ecn, Instant, Rate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// A path in one direction.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub rate: Rate,
    pub delay: Duration,
    /// Size of the queue in bytes.
    pub buffer: u64,
    /// Larger datagrams are dropped.
    pub mtu: usize,
    pub loss: f64,
    pub duplication: f64,
    /// Each datagram is delayed by up to this more.
    pub jitter: Duration,
    /// Datagrams that find more than this waiting are marked.
    pub mark_above: Option<u64>,
}

impl Link {
    pub fn new(mbps: u64, delay_ms: u64) -> Self {
        Self {
            rate: Rate::from_mbps(mbps),
            delay: Duration::from_millis(delay_ms),
            buffer: 10_000_000,
            mtu: 65_527,
            loss: 0.0,
            duplication: 0.0,
            jitter: Duration::ZERO,
            mark_above: None,
        }
    }
}

struct Wire {
    link: Link,
    free_at: Instant,
}

/// Modifies or removes a datagram on its way to an endpoint.
pub type Mangle = Box<dyn FnMut(&mut Pcg64, usize, &mut BytesMut) -> bool>;

/// A sent datagram: time, sender, length, content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Instant,
    pub from: usize,
    pub payload: Vec<u8>,
}

#[derive(Debug)]
struct Flying {
    to: usize,
    datagram: Datagram,
}

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

pub struct Pair {
    pub ends: [Endpoint; 2],
    pub now: Instant,
    wires: [Wire; 2],
    /// Those of 10.1.0.0/16.
    second: Option<[Wire; 2]>,
    watching: bool,
    /// From where and to where each end has sent.
    pub addresses: [Vec<(SocketAddr, SocketAddr)>; 2],
    flying: BTreeMap<(Instant, u64), Flying>,
    serial: u64,
    rng: Pcg64,
    pub events: [Vec<(Instant, Event)>; 2],
    pub sent: Vec<Sent>,
    pub keep: bool,
    pub apps: [App; 2],
    pub drops: u64,
    /// Hook: changes datagrams before they are delivered.
    pub mangle: Option<Mangle>,
}

static ZEROS: [u8; 1 << 18] = [0; 1 << 18];

/// An application that writes and checks patterns.
#[derive(Default)]
pub struct App {
    /// Streams to open, with how much to write on each.
    pub to_send: Vec<u64>,
    /// Answer each finished stream with this much.
    pub answer: Option<u64>,
    /// Zeros to write on one stream, which are not checked.
    pub bulk: u64,
    /// Bytes of `bulk` written at once; 0: 64 KiB.
    pub at_once: u64,
    bulk_stream: Option<StreamId>,
    pub unchecked: bool,
    writing: BTreeMap<StreamId, (u64, u64)>,
    pub read: BTreeMap<StreamId, u64>,
    pub ended: Vec<(Instant, StreamId)>,
}

/// Byte `i` of stream `s`.
fn pattern(stream: StreamId, from: u64, len: u64) -> Bytes {
    let mut data = BytesMut::with_capacity(len as usize);
    for i in from..from + len {
        let x = (i ^ stream << 13).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        data.extend_from_slice(&[(x >> 56) as u8]);
    }
    data.freeze()
}

impl App {
    fn run(&mut self, now: Instant, end: &mut Endpoint) {
        while let Some(chunk) = end.poll_read() {
            let at = self.read.entry(chunk.stream).or_default();
            if !self.unchecked {
                let expected = pattern(chunk.stream, *at, chunk.data.len() as u64);
                assert_eq!(chunk.data, expected);
            }
            *at += chunk.data.len() as u64;
            if chunk.end {
                self.ended.push((now, chunk.stream));
                if let Some(len) = self.answer {
                    self.writing.insert(chunk.stream, (0, len));
                }
            }
        }
        if self.bulk > 0 {
            if self.bulk_stream.is_none() {
                self.bulk_stream = end.open(now, Direction::Bidirectional);
            }
            while let (Some(stream), 1..) = (self.bulk_stream, self.bulk) {
                let most = if self.at_once == 0 {
                    1 << 16
                } else {
                    self.at_once
                };
                let n = self.bulk.min(most) as usize;
                match end.write(now, stream, Bytes::from_static(&ZEROS[..n])) {
                    0 => break,
                    taken => self.bulk -= taken as u64,
                }
            }
            if self.bulk == 0 {
                self.bulk_stream.iter().for_each(|s| end.finish(now, *s));
            }
        }
        while let Some(len) = self.to_send.last().copied() {
            let Some(stream) = end.open(now, Direction::Bidirectional) else {
                break;
            };
            self.to_send.pop();
            self.writing.insert(stream, (0, len));
        }
        self.writing.retain(|stream, (done, len)| {
            while *done < *len {
                let n = end.write_room(*stream).min(*len - *done).min(16_384);
                if n == 0 {
                    return true;
                }
                *done += end.write(now, *stream, pattern(*stream, *done, n)) as u64;
            }
            end.finish(now, *stream);
            false
        });
    }

    pub fn is_done(&self) -> bool {
        self.bulk == 0 && self.to_send.is_empty() && self.writing.is_empty()
    }
}

pub fn addr(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 4433))
}

pub fn ours(name: &'static str) -> Congestion {
    Congestion::Ours(Arc::new(move |init| {
        cc::build(name, &cc::Params::new(), init).map_err(|e| e.to_string())
    }))
}

pub fn init(side: usize, seed: u64) -> Init {
    Init {
        now: Instant::ZERO,
        local: addr(side as u8 + 1),
        remote: addr(2 - side as u8),
        rng: Pcg64::seed_from_u64(seed * 2 + side as u64),
        secrets: false,
        datagrams: false,
        qlog: None,
    }
}

pub fn pair(seed: u64, config: &Config, congestion: &Congestion, link: Link) -> Pair {
    let realm = Realm::new(seed).unwrap();
    pair_in(
        &realm,
        [config, config],
        congestion,
        [link, link],
        [init(CLIENT, seed), init(SERVER, seed)],
    )
}

pub fn pair_in(
    realm: &Realm,
    [cc, sc]: [&Config; 2],
    congestion: &Congestion,
    links: [Link; 2],
    [client, server]: [Init; 2],
) -> Pair {
    let now = client.now;
    let mut server = Endpoint::listen(realm, sc, congestion, server).unwrap();
    let mut client = Endpoint::connect(realm, cc, congestion, client).unwrap();
    server.record_notices();
    client.record_notices();
    Pair {
        ends: [client, server],
        now,
        wires: links.map(|link| Wire { link, free_at: now }),
        second: None,
        watching: false,
        addresses: [Vec::new(), Vec::new()],
        flying: BTreeMap::new(),
        serial: 0,
        rng: Pcg64::seed_from_u64(99),
        events: [Vec::new(), Vec::new()],
        sent: Vec::new(),
        keep: true,
        apps: [App::default(), App::default()],
        drops: 0,
        mangle: None,
    }
}

impl Pair {
    fn pump(&mut self) {
        for side in [CLIENT, SERVER] {
            self.pump_one(side);
        }
    }

    /// What a driver does after each call.
    fn pump_one(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            self.events[side].push((self.now, event));
        }
        self.apps[side].run(self.now, &mut self.ends[side]);
        while let Some(datagram) = self.ends[side].poll_transmit(self.now) {
            self.send(side, datagram);
        }
    }

    fn send(&mut self, side: usize, mut datagram: Datagram) {
        if self.keep {
            self.sent.push(Sent {
                at: self.now,
                from: side,
                payload: datagram.payload.to_vec(),
            });
        }
        if self.watching {
            self.addresses[side].push((datagram.local, datagram.remote));
        }
        let on_second = matches!(datagram.local, SocketAddr::V4(a) if a.ip().octets()[1] == 1);
        let wire = match &mut self.second {
            Some(wires) if on_second => &mut wires[side],
            _ => &mut self.wires[side],
        };
        let link = wire.link;
        let size = datagram.payload.len() as u64 + 28;
        let start = wire.free_at.max(self.now);
        let waiting = (start - self.now).as_secs_f64() * link.rate.bytes_per_sec();
        let lost = link.loss > 0.0 && self.rng.random_bool(link.loss);
        if datagram.payload.len() > link.mtu || lost || waiting + size as f64 > link.buffer as f64 {
            self.drops += 1;
            return;
        }
        if datagram.ecn.is_capable() && link.mark_above.is_some_and(|m| waiting > m as f64) {
            datagram.ecn = Ecn::Ce;
        }
        wire.free_at = start + link.rate.transmission_time(Size::new(size));
        let mut arrival = wire.free_at + link.delay;
        if !link.jitter.is_zero() {
            arrival += link.jitter.mul_f64(self.rng.random::<f64>());
        }
        let copies =
            1 + usize::from(link.duplication > 0.0 && self.rng.random_bool(link.duplication));
        for _ in 1..copies {
            let copy = Datagram {
                payload: datagram.payload.clone(),
                ..datagram
            };
            self.fly(arrival + link.delay, 1 - side, copy);
        }
        self.fly(arrival, 1 - side, datagram);
    }

    fn fly(&mut self, at: Instant, to: usize, datagram: Datagram) {
        self.serial += 1;
        self.flying
            .insert((at, self.serial), Flying { to, datagram });
    }

    /// Runs one step; `false` if there are no more events.
    pub fn step(&mut self) -> bool {
        let timers = [CLIENT, SERVER].map(|s| self.ends[s].poll_timeout());
        let arrival = self.flying.first_key_value().map(|(k, _)| k.0);
        let Some(next) = timers.into_iter().flatten().chain(arrival).min() else {
            return false;
        };
        assert!(next >= self.now, "time goes forward");
        self.now = next;
        if arrival == Some(next) {
            let (_, Flying { to, datagram }) = self.flying.pop_first().unwrap();
            self.deliver(to, datagram);
            self.pump_one(to);
        } else {
            for side in [CLIENT, SERVER] {
                if timers[side] == Some(next) {
                    self.ends[side].handle_timeout(next);
                    self.pump_one(side);
                }
            }
        }
        true
    }

    pub fn deliver(&mut self, to: usize, mut datagram: Datagram) {
        if let Some(mangle) = &mut self.mangle
            && !mangle(&mut self.rng, to, &mut datagram.payload)
        {
            return;
        }
        let Datagram {
            payload,
            ecn,
            local,
            remote,
        } = datagram;
        self.ends[to].handle(self.now, payload, ecn, remote, local);
    }

    /// Runs until `done`, at most for this long.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + limit;
        self.pump();
        while !done(self) {
            assert!(
                self.now <= end,
                "not done after {limit:?}: {:?}",
                self.events
            );
            assert!(self.step(), "nothing happens any more: {:?}", self.events);
        }
        self.pump();
    }

    /// Everything is delivered and acknowledged.
    pub fn is_settled(&mut self) -> bool {
        let quiet = self.apps.iter().all(App::is_done);
        quiet && self.ends.iter_mut().all(Endpoint::all_acknowledged)
    }

    /// The client closes; runs until both ends are over.
    pub fn close(&mut self) {
        let now = self.now;
        self.ends[CLIENT].close(now);
        self.run_until(Duration::from_secs(120), |p| {
            p.ends.iter().all(Endpoint::is_over)
        });
    }

    /// Processes the results of a call to an endpoint.
    pub fn poke(&mut self) {
        self.pump();
    }

    pub fn watch_addresses(&mut self) {
        self.watching = true;
    }

    pub fn second_wires(&mut self, link: Link) {
        let free_at = self.now;
        self.second = Some([link; 2].map(|link| Wire { link, free_at }));
    }

    pub fn happened(&self, side: usize, event: &Event) -> Option<Instant> {
        let (at, _) = self.events[side].iter().find(|(_, e)| e == event)?;
        Some(*at)
    }
}

//! A pair of endpoints on a virtual clock, and a lone endpoint with a scripted peer.
#![allow(dead_code)] // each test file uses its part

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes as Content;
use gargalo_cc::{Acked, Congestion, Controller, Path};
use gargalo_tcp::{Chunk, Config, DelayedAck, Endpoint, Event, Init, State, Transmit};
use gargalo_units::{Bytes, Duration, Ecn, Instant, Seq};
use gargalo_wire::tcp::{Extra, Flags, Options, Payload, SackBlocks, Segment, Timestamps};

/// Initial sequence numbers: close to the wrap, so that every test crosses it.
pub const ISN: [u32; 2] = [u32::MAX - 500, 5_000];

/// A constant window.
#[derive(Clone, Debug)]
pub struct Fixed(pub u64);

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Acked, _path: &Path<'_>) {}
    fn on_congestion(&mut self, _event: &Congestion, _path: &Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.0)
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "fixed"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

pub fn fixed() -> Box<dyn Controller> {
    Box::new(Fixed(100 * 1000))
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
pub const fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

/// Segments of 1000 bytes, no delay of the first acknowledgements.
pub fn config() -> Config {
    Config {
        mss: 1000,
        delayed_ack: DelayedAck {
            quick: 0,
            ..DelayedAck::default()
        },
        ..Config::default()
    }
}

pub fn init(side: usize) -> Init {
    Init {
        local_port: [40_000, 80][side],
        remote_port: [80, 40_000][side],
        isn: Seq::new(ISN[side]),
        ts_offset: [7, 900][side],
        is_ipv6: false,
        fast_open_cookie: None,
    }
}

/// "data ackno" of a segment sent by `side`, relative to the first data bytes: `S`, `S.`, `. ack 0`,
/// `P. 0:1000 ack 0`, `F. 1000 ack 0`, blocks as `<from:to>`.
pub fn show(side: usize, segment: &Segment) -> String {
    let rel = |seq: Seq, s: usize| seq.distance(Seq::new(ISN[s]) + 1);
    let mut out = format!("{:?}", segment.flags);
    let from = rel(segment.seq, side) + i32::from(segment.flags.contains(Flags::SYN));
    let n = segment.payload.len();
    if n > 0 {
        let _ = write!(out, " {from}:{}", from + n as i32);
    } else if segment.flags.intersects(Flags::FIN | Flags::RST) {
        let _ = write!(out, " {from}");
    }
    if segment.flags.contains(Flags::ACK) {
        let _ = write!(out, " ack {}", rel(segment.ack, 1 - side));
    }
    for (l, r) in segment.options.sack.as_slice() {
        let _ = write!(out, " <{}:{}>", rel(*l, 1 - side), rel(*r, 1 - side));
    }
    out
}

/// What the network does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    Late(Duration),
    Twice,
    Mark,
}

type Network = Box<dyn FnMut(usize, usize, &Segment) -> Fate>;

/// Two endpoints, a one-way delay of 10 ms and a network that may drop, duplicate or delay. Side 0 is the client.
pub struct Pair {
    pub now: Instant,
    pub ends: [Endpoint; 2],
    pub events: [Vec<Event>; 2],
    pub read: [u64; 2],
    pub content: [Vec<u8>; 2],
    /// Whether the application reads as soon as it can.
    pub reads: [bool; 2],
    pub log: Vec<(Instant, usize, Transmit)>,
    pub delay: Duration,
    pub network: Network,
    sent: [usize; 2],
    wire: BTreeMap<(Instant, u64), (usize, Transmit)>,
    order: u64,
}

impl Pair {
    pub fn new(client: Config, server: Config) -> Self {
        let now = at(0);
        Self::of([
            Endpoint::connect(client, fixed(), init(0), now),
            Endpoint::listen(server, fixed(), init(1), now),
        ])
    }

    pub fn of(ends: [Endpoint; 2]) -> Self {
        Self {
            now: at(0),
            ends,
            events: [Vec::new(), Vec::new()],
            read: [0; 2],
            content: [Vec::new(), Vec::new()],
            reads: [true; 2],
            log: Vec::new(),
            delay: ms(10),
            network: Box::new(|_, _, _| Fate::Pass),
            sent: [0; 2],
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    /// Established, with an empty log.
    pub fn connected(client: Config, server: Config) -> Self {
        let mut pair = Self::new(client, server);
        pair.run_for(ms(100));
        assert_eq!(pair.states(), [State::Established; 2]);
        pair.log.clear();
        pair.sent = [0; 2];
        pair
    }

    pub fn states(&self) -> [State; 2] {
        [self.ends[0].state(), self.ends[1].state()]
    }

    /// `network(side, n, segment)` decides on the n-th segment that `side` sends from now on.
    pub fn with(mut self, network: impl FnMut(usize, usize, &Segment) -> Fate + 'static) -> Self {
        self.network = Box::new(network);
        self
    }

    fn put(&mut self, due: Instant, to: usize, transmit: Transmit) {
        self.order += 1;
        self.wire.insert((due, self.order), (to, transmit));
    }

    /// Runs one side until it has nothing more to do now.
    pub fn settle(&mut self, side: usize) {
        let end = &mut self.ends[side];
        while let Some(event) = end.poll_event() {
            self.events[side].push(event);
        }
        if self.reads[side] {
            while let Some(chunk) = end.read(u64::MAX) {
                self.read[side] += chunk.len();
                if let Chunk::Real(bytes) = chunk {
                    self.content[side].extend_from_slice(&bytes);
                }
            }
        }
        while let Some(mut t) = self.ends[side].poll_transmit(self.now) {
            self.log.push((self.now, side, t.clone()));
            let n = self.sent[side];
            self.sent[side] += 1;
            let due = self.now + self.delay;
            match (self.network)(side, n, &t.segment) {
                Fate::Drop => continue,
                Fate::Pass => {}
                Fate::Late(by) => {
                    self.put(due + by, 1 - side, t);
                    continue;
                }
                Fate::Twice => self.put(due, 1 - side, t.clone()),
                Fate::Mark => {
                    if t.ecn.is_capable() {
                        t.ecn = Ecn::Ce;
                    }
                }
            }
            self.put(due, 1 - side, t);
        }
    }

    /// Runs until `until`; timers and deliveries in the order of time.
    pub fn run_until(&mut self, until: Instant) {
        for _ in 0..1_000_000 {
            self.settle(0);
            self.settle(1);
            let mut next = until + ms(1);
            if let Some(((t, _), _)) = self.wire.first_key_value() {
                next = next.min(*t);
            }
            for end in &self.ends {
                next = next.min(end.poll_timeout().unwrap_or(Instant::MAX));
            }
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.wire.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (to, t) = entry.remove();
                self.ends[to].handle(self.now, t.segment, t.ecn);
                self.settle(to);
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
        panic!("the pair does not become idle");
    }

    pub fn run_for(&mut self, d: Duration) {
        self.run_until(self.now + d);
    }

    /// All segments sent so far, one per line: `12 C P. 0:5 ack 0`.
    pub fn lines(&self) -> Vec<String> {
        let line = |(t, side, transmit): &(Instant, usize, Transmit)| {
            let ms = t.as_nanos() / 1_000_000;
            format!(
                "{ms} {} {}",
                ["C", "S"][*side],
                show(*side, &transmit.segment)
            )
        };
        self.log.iter().map(line).collect()
    }

    #[track_caller]
    pub fn assert_log(&self, expected: &[&str]) {
        assert_eq!(self.lines(), expected);
    }
}

/// A server with a connection to a scripted client.
pub struct Lone {
    pub now: Instant,
    pub end: Endpoint,
    /// TSval of the client's next segment; `None`: no timestamps.
    pub timestamp: Option<u32>,
}

impl Lone {
    /// Connected, with all options offered by the client.
    pub fn new(config: Config) -> Self {
        Self::offering(
            config,
            Extra {
                mss: Some(1012),
                window_scale: Some(0),
                sack_permitted: true,
                ..Extra::default()
            },
            Some(100),
        )
    }

    pub fn offering(config: Config, extra: Extra, timestamp: Option<u32>) -> Self {
        let end = Endpoint::listen(config, fixed(), init(1), at(0));
        Self::with(end, extra, timestamp)
    }

    /// Connects to a listening endpoint.
    pub fn with(end: Endpoint, extra: Extra, timestamp: Option<u32>) -> Self {
        let now = at(1000);
        let mut lone = Self {
            now,
            end,
            timestamp,
        };
        let mut syn = lone.segment(Flags::SYN, -1, 0);
        syn.options.extra = Some(Box::new(extra));
        let answer = lone.give(syn);
        assert_eq!(answer, ["S. ack 0"]);
        assert_eq!(lone.give(lone.segment(Flags::ACK, 0, 0)), [""; 0]);
        assert_eq!(lone.end.state(), State::Established);
        lone
    }

    /// A segment of the client: `from` relative to its first data byte, acknowledging nothing yet.
    pub fn segment(&self, flags: Flags, from: i32, len: u32) -> Segment {
        Segment {
            src_port: 40_000,
            dst_port: 80,
            seq: Seq::new((ISN[0] + 1).wrapping_add_signed(from)),
            ack: Seq::new(ISN[1] + 1),
            flags,
            window: 60_000,
            options: Options {
                timestamps: self.timestamp.map(|value| Timestamps { value, echo: 0 }),
                sack: SackBlocks::EMPTY,
                ..Options::default()
            },
            payload: Payload::synthetic(len),
            ..Segment::default()
        }
    }

    /// Data `from..to` of the client.
    pub fn data(&mut self, from: i32, to: i32) -> Vec<String> {
        self.give(self.segment(Flags::ACK, from, (to - from) as u32))
    }

    pub fn give(&mut self, segment: Segment) -> Vec<String> {
        self.give_marked(segment, Ecn::NotEct)
    }

    pub fn give_marked(&mut self, segment: Segment, ecn: Ecn) -> Vec<String> {
        self.end.handle(self.now, segment, ecn);
        self.sent()
    }

    pub fn sent(&mut self) -> Vec<String> {
        self.sent_segments()
            .iter()
            .map(|t| show(1, &t.segment))
            .collect()
    }

    pub fn sent_segments(&mut self) -> Vec<Transmit> {
        let now = self.now;
        std::iter::from_fn(|| self.end.poll_transmit(now)).collect()
    }

    pub fn read_all(&mut self) -> u64 {
        std::iter::from_fn(|| self.end.read(u64::MAX))
            .map(|c| c.len())
            .sum()
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.end.poll_event()).collect()
    }

    /// Moves the clock to the endpoint's next timer and fires it.
    pub fn wait(&mut self) -> Vec<String> {
        self.now = self.end.poll_timeout().expect("a timer is armed");
        self.end.handle_timeout(self.now);
        self.sent()
    }
}

pub fn real(text: &'static str) -> Content {
    Content::from_static(text.as_bytes())
}

//! Connections of one or several subflows with unlimited data, driven by acknowledgements, on shared bottlenecks
//! that drop at random before they are full: all flows on one have the same loss rate.

use std::collections::VecDeque;

use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::{MSS, ack, congestion, sent};
use crate::Controller;
use crate::event::{Acked, Cause};
use crate::params::Params;
use crate::path::{LossIntervals, Path, Sibling};
use crate::registry::{Init, build};

/// A bottleneck of constant rate with random drops before its queue is full.
pub(crate) struct Link {
    rate: Rate,
    /// Random drops begin here, and everything is dropped at `full`.
    early: Bytes,
    full: Bytes,
    free: Instant,
}

impl Link {
    /// Drops nothing before a quarter of its `full` queue and a tenth of the packets just before the end.
    pub(crate) fn new(mbps: u64, full: Bytes) -> Self {
        Self {
            rate: Rate::from_mbps(mbps),
            early: full / 4,
            full,
            free: Instant::ZERO,
        }
    }

    /// When a packet that arrives now has been sent; nothing if it is dropped.
    fn carry(&mut self, now: Instant, rng: &mut Pcg64) -> Option<Instant> {
        let queue = self.rate * self.free.saturating_since(now);
        let depth = (queue - self.early).as_f64() / (self.full - self.early).as_f64();
        if queue + MSS > self.full || rng.random::<f64>() < 0.1 * depth {
            return None;
        }
        self.free = self.free.max(now) + MSS / self.rate;
        Some(self.free)
    }
}

struct Packet {
    sent_at: Instant,
    /// When its acknowledgement arrives, unless it is lost.
    arrives: Option<Instant>,
    /// Delivered in all when it was sent.
    delivered: Bytes,
}

/// A subflow over a link.
pub(crate) struct Subflow {
    pub(crate) cc: Box<dyn Controller>,
    link: usize,
    /// Round-trip time without queue.
    base: Duration,
    flight: VecDeque<Packet>,
    pub(crate) delivered: Bytes,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
    recovery_until: Option<Bytes>,
    round_end: Bytes,
    intervals: LossIntervals,
    timeouts: u32,
    progress: Instant,
    /// Sum of the queueing delays seen, and how many.
    queueing: (Duration, u32),
}

impl Subflow {
    fn new(name: &str, link: usize, base: Duration, seed: u64) -> Self {
        let init = Init {
            now: Instant::ZERO,
            mss: MSS,
            initial_window: MSS * 10,
            rng: Pcg64::new(u128::from(seed), 1),
        };
        Self {
            cc: build(name, &Params::new(), init).unwrap(),
            link,
            base,
            flight: VecDeque::new(),
            delivered: Bytes::ZERO,
            srtt: None,
            min_rtt: None,
            recovery_until: None,
            round_end: Bytes::ZERO,
            intervals: LossIntervals::default(),
            timeouts: 0,
            progress: Instant::ZERO,
            queueing: (Duration::ZERO, 0),
        }
    }

    fn in_flight(&self) -> Bytes {
        MSS * self.flight.len() as u64
    }

    fn view(&self) -> Sibling {
        let settled = self.cc.ssthresh().filter(|_| self.recovery_until.is_some());
        Sibling {
            cwnd: settled.unwrap_or(self.cc.cwnd()),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            mss: MSS,
            since_loss: self.intervals.since_loss(),
            between_losses: self.intervals.between_losses(),
            rate: 0.0,
            can_send: true,
        }
    }

    fn path<'a>(&self, siblings: &'a [Sibling], index: usize) -> Path<'a> {
        Path {
            mss: MSS,
            srtt: self.srtt,
            latest_rtt: self.srtt,
            min_rtt: self.min_rtt,
            in_flight: self.in_flight(),
            siblings,
            index,
            sack: true,
        }
    }

    /// The next acknowledgement, or else the timeout.
    fn next(&self) -> Instant {
        let arrival = self.flight.iter().find_map(|p| p.arrives);
        let rto = Duration::from_millis(200).max(self.srtt.unwrap_or(self.base) * 2);
        arrival.unwrap_or(self.progress + rto * (1 << self.timeouts.min(6)))
    }

    /// Mean queueing delay in seconds since the last call.
    pub(crate) fn queueing(&mut self) -> f64 {
        let (sum, n) = std::mem::take(&mut self.queueing);
        sum.as_secs_f64() / f64::from(n.max(1))
    }

    fn lose(
        &mut self,
        now: Instant,
        cause: Cause,
        before: Bytes,
        siblings: &[Sibling],
        index: usize,
    ) {
        self.intervals.on_congestion(cause);
        let mut event = congestion(cause, before);
        event.now = now;
        let path = self.path(siblings, index);
        self.cc.on_congestion(&event, &path);
    }

    /// Processes the due event: an acknowledgement, before which everything older is lost, or a timeout.
    fn handle(&mut self, now: Instant, siblings: &[Sibling], index: usize) {
        let before = self.in_flight();
        self.progress = now;
        let Some(first) = self.flight.iter().position(|p| p.arrives.is_some()) else {
            self.flight.clear();
            self.timeouts += 1;
            self.recovery_until = None;
            let consecutive = self.timeouts;
            return self.lose(now, Cause::Timeout { consecutive }, before, siblings, index);
        };
        self.timeouts = 0;
        let lost = self.flight.drain(..first).count();
        let packet = self.flight.pop_front().expect("it was found");
        self.delivered += MSS;
        self.intervals.on_acked(MSS);
        let rtt = now - packet.sent_at;
        let eighth = |s: Duration| (s * 7 + rtt) / 8;
        self.srtt = Some(self.srtt.map_or(rtt, eighth));
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        self.queueing.0 += rtt - self.min_rtt.unwrap_or(rtt);
        self.queueing.1 += 1;
        if lost > 0 && self.recovery_until.is_none() {
            self.recovery_until = Some(self.delivered + self.in_flight());
            self.lose(now, Cause::Loss, before, siblings, index);
        }
        let path = self.path(siblings, index);
        if self.recovery_until.is_some_and(|d| self.delivered >= d) {
            self.recovery_until = None;
            self.cc.on_recovered(now, &path);
        }
        let round_start = packet.delivered >= self.round_end;
        if round_start {
            self.round_end = self.delivered;
        }
        let one = Acked {
            now,
            rtt: Some(rtt),
            sent_at: Some(packet.sent_at),
            in_flight_before: before,
            in_flight: self.in_flight(),
            in_recovery: self.recovery_until.is_some(),
            round_start,
            ..ack(MSS.get())
        };
        self.cc.on_ack(&one, &path);
    }

    fn send(
        &mut self,
        now: Instant,
        link: &mut Link,
        rng: &mut Pcg64,
        siblings: &[Sibling],
        index: usize,
    ) {
        while self.in_flight() + MSS <= self.cc.cwnd() {
            let mut packet = sent(MSS, self.in_flight());
            packet.now = now;
            let path = self.path(siblings, index);
            self.cc.on_send(&packet, &path);
            if self.flight.is_empty() {
                self.progress = now;
            }
            self.flight.push_back(Packet {
                sent_at: now,
                arrives: link.carry(now, rng).map(|out| out + self.base),
                delivered: self.delivered,
            });
        }
    }
}

/// Links and connections.
pub(crate) struct World {
    now: Instant,
    links: Vec<Link>,
    pub(crate) connections: Vec<Vec<Subflow>>,
    rng: Pcg64,
    siblings: Vec<Sibling>,
}

impl World {
    pub(crate) fn new(links: Vec<Link>, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            links,
            connections: Vec::new(),
            rng: Pcg64::new(u128::from(seed), 7),
            siblings: Vec::new(),
        }
    }

    /// Adds a connection with a subflow for each link and round-trip time in milliseconds.
    pub(crate) fn connect(&mut self, name: &str, paths: &[(usize, u64)]) {
        let subflow = |&(link, ms)| Subflow::new(name, link, Duration::from_millis(ms), 1);
        self.connections.push(paths.iter().map(subflow).collect());
    }

    /// The view a coupled algorithm has of a connection.
    fn look(&mut self, connection: usize) {
        self.siblings.clear();
        let subflows = &self.connections[connection];
        self.siblings.extend(subflows.iter().map(Subflow::view));
    }

    fn step(&mut self) {
        let all = self.connections.iter().enumerate();
        let all = all.flat_map(|(c, s)| s.iter().enumerate().map(move |(i, s)| (s.next(), c, i)));
        let (now, c, i) = all.min().expect("there are connections");
        self.now = now;
        self.look(c);
        self.connections[c][i].handle(now, &self.siblings, i);
        self.send(c, i);
    }

    fn send(&mut self, c: usize, i: usize) {
        self.look(c);
        let subflow = &mut self.connections[c][i];
        let link = &mut self.links[subflow.link];
        subflow.send(self.now, link, &mut self.rng, &self.siblings, i);
    }

    /// Runs for `secs`; what each subflow of each connection delivered, in segments a second.
    pub(crate) fn run(&mut self, secs: u64) -> Vec<Vec<f64>> {
        for c in 0..self.connections.len() {
            for i in 0..self.connections[c].len() {
                if self.connections[c][i].flight.is_empty() {
                    self.send(c, i);
                }
            }
        }
        let before = self.delivered();
        let end = self.now + Duration::from_secs(secs);
        while self.now < end {
            self.step();
        }
        let after = self.delivered();
        let rates = before.iter().zip(after).map(|(b, a)| {
            let rate = |(b, a): (&f64, f64)| (a - b) / secs as f64;
            b.iter().zip(a).map(rate).collect()
        });
        rates.collect()
    }

    fn delivered(&self) -> Vec<Vec<f64>> {
        let segments = |s: &Subflow| s.delivered.as_f64() / MSS.as_f64();
        let all = self.connections.iter();
        all.map(|c| c.iter().map(segments).collect()).collect()
    }
}

//! The network between two ends, controlled by the input: which segments pass, are lost, changed or forged, and when.

use std::collections::VecDeque;

use arbitrary::{Result, Unstructured};
use bytes::Bytes as Content;
use gargalo_mptcp::Transmit;
use gargalo_tcp::{Chunk, Error, State};
use gargalo_units::{Duration, Ecn, Instant};
use gargalo_wire::tcp::{Flags, Options, Payload, SackBlocks, Segment, Timestamps};

use super::forge::Forger;
use crate::targets::RandomBytes;

/// Longer inputs are truncated.
const STEPS: u32 = 300;
/// Most segments that an end may send at once: its window in the smallest segments, several times.
const BURST: u32 = 4_000;
/// Most timers that may expire at one instant.
const EXPIRIES: u32 = 1_000;
/// Rounds within which all data must be delivered once the network is free of faults.
const ROUNDS: u32 = 20_000;

/// An end of a connection.
pub(super) trait End: std::fmt::Debug {
    fn handle(&mut self, now: Instant, t: Transmit);
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit>;
    fn poll_timeout(&self) -> Option<Instant>;
    fn handle_timeout(&mut self, now: Instant);
    fn write(&mut self, data: Content) -> usize;
    fn read(&mut self) -> Option<Chunk>;
    fn close(&mut self, now: Instant);
    fn abort(&mut self, now: Instant);
    fn error(&self) -> Option<Error>;
    fn state(&self) -> State;
    /// Handles its events; panics when it holds more than its limits allow.
    fn check(&mut self);
}

/// A connection under control of the input.
pub(super) struct Play<'a, E> {
    u: Unstructured<'a>,
    ends: [E; 2],
    now: Instant,
    /// Segments in transit to each end.
    flying: [VecDeque<Transmit>; 2],
    /// The latest segment that each end has sent.
    latest: [Option<Transmit>; 2],
    written: [u64; 2],
    read: [u64; 2],
    closed: [bool; 2],
    /// The listener has received a segment of the peer; one that is closed before ends with the data that it was
    /// given.
    opened: bool,
    /// A segment arrived that no end has sent: from now on any data may be read.
    forged: bool,
}

/// Byte `i` of the stream that a side writes.
fn byte(side: usize, i: u64) -> u8 {
    ((i + side as u64 * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Returns a distance, usually small, of either sign.
fn distance(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.arbitrary::<u8>()? & 7 {
        0 => u.arbitrary()?,
        1 => 0x8000_0000_u32.wrapping_add_signed(i32::from(u.arbitrary::<i8>()?)),
        2 | 3 => u32::from(u.arbitrary::<u16>()?),
        4 => u32::from(u.arbitrary::<u16>()?).wrapping_neg(),
        _ => i32::from(u.arbitrary::<i8>()?).cast_unsigned(),
    })
}

impl<'a, E: End> Play<'a, E> {
    pub(super) fn new(u: Unstructured<'a>, ends: [E; 2]) -> Self {
        Self {
            u,
            ends,
            now: Instant::ZERO,
            flying: Default::default(),
            latest: Default::default(),
            written: [0; 2],
            read: [0; 2],
            closed: [false; 2],
            opened: false,
            forged: false,
        }
    }

    /// Runs the whole input; without forged segments the connection then continues on a network without faults.
    pub(super) fn run(mut self) {
        self.settle(0);
        self.settle(1);
        for _ in 0..STEPS {
            if self.u.is_empty() || self.step().is_err() {
                break;
            }
        }
        if !self.forged {
            self.finish();
        }
    }

    /// Lets an end do everything that is possible now.
    fn settle(&mut self, side: usize) {
        let state = self.ends[1].state();
        self.opened |= !matches!(state, State::Listen | State::SynReceived | State::Closed);
        let end = &mut self.ends[side];
        while let Some(chunk) = end.read() {
            if let (Chunk::Real(bytes), false) = (&chunk, self.forged) {
                for (b, i) in bytes.iter().zip(self.read[side]..) {
                    assert_eq!(*b, byte(1 - side, i), "byte {i} to side {side}");
                }
            }
            self.read[side] += chunk.len();
        }
        let mut sent = 0;
        while let Some(t) = end.poll_transmit(self.now) {
            sent += 1;
            assert!(sent < BURST, "it does not stop to send: {end:?}");
            assert!(t.segment.header_len() <= 60, "options fit: {t:?}");
            self.latest[side] = Some(t.clone());
            self.flying[1 - side].push_back(t);
        }
        end.check();
    }

    fn deliver(&mut self, to: usize, mut t: Transmit) {
        t.addresses = t.addresses.reversed();
        self.ends[to].handle(self.now, t);
        self.settle(to);
    }

    fn wait_until(&mut self, t: Instant) {
        self.now = self.now.max(t);
        for side in 0..2 {
            let mut expired = 0;
            while self.ends[side]
                .poll_timeout()
                .is_some_and(|t| t <= self.now)
            {
                self.ends[side].handle_timeout(self.now);
                self.settle(side);
                expired += 1;
                assert!(
                    expired < EXPIRIES,
                    "time stands still: {:?}",
                    self.ends[side]
                );
            }
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.ends.iter().filter_map(End::poll_timeout).min()
    }

    fn step(&mut self) -> Result<()> {
        let op: u8 = self.u.arbitrary()?;
        let to = usize::from(op & 1);
        match op >> 1 & 15 {
            0..=3 => {
                // A flight without faults.
                for _ in 0..=(op >> 5) * 3 {
                    if let Some(t) = self.flying[to].pop_front() {
                        self.deliver(to, t);
                    }
                }
            }
            4 => drop(self.flying[to].pop_front()),
            5 => {
                if let Some(t) = self.flying[to].front().cloned() {
                    self.deliver(to, t);
                }
            }
            6 => {
                if let Some(t) = self.flying[to].pop_back() {
                    self.deliver(to, t);
                }
            }
            7 => {
                if let Some(mut t) = self.flying[to].pop_front() {
                    t.ecn = if t.ecn.is_capable() { Ecn::Ce } else { t.ecn };
                    self.deliver(to, t);
                }
            }
            8 | 9 => {
                if let Some(t) = self.next_timer() {
                    self.wait_until(t);
                }
            }
            10 => {
                let bits: u8 = self.u.arbitrary()?;
                let nanos = u64::from(bits | 0x80) << (bits & 31);
                self.wait_until(self.now + Duration::from_nanos(nanos));
            }
            11 => self.write(to, usize::from(op >> 5) * 1_500 + 1),
            12 => self.application(to, op >> 5),
            _ => self.forge(to)?,
        }
        Ok(())
    }

    fn write(&mut self, side: usize, len: usize) {
        if !self.closed[side] {
            let from = self.written[side];
            let data: Vec<u8> = (from..from + len as u64).map(|i| byte(side, i)).collect();
            self.written[side] += self.ends[side].write(data.into()) as u64;
            self.settle(side);
        }
    }

    fn application(&mut self, side: usize, what: u8) {
        match what {
            0 => {
                self.ends[side].abort(self.now);
                self.closed[side] = true;
            }
            1..=3 => self.close(side),
            n => return self.write(side, usize::from(n) * 9_000),
        }
        self.settle(side);
    }

    fn close(&mut self, side: usize) {
        self.closed[side] = true;
        self.ends[side].close(self.now);
    }

    /// Delivers a segment that no correct end would have sent, in place of a real one or in addition to it.
    fn forge(&mut self, to: usize) -> Result<()> {
        let real = match self.u.arbitrary::<u8>()? & 3 {
            0 => self.flying[to].pop_front(),
            1 => self.flying[to].front().cloned(),
            2 => self.latest[to].clone().map(|t| Transmit {
                addresses: t.addresses.reversed(),
                ..t
            }),
            _ => self.latest[1 - to].clone(),
        };
        let Some(mut t) = real else { return Ok(()) };
        self.forged = true;
        for _ in 0..=self.u.arbitrary::<u8>()? & 3 {
            change(&mut self.u, &mut t.segment)?;
        }
        let mut out = Vec::new();
        if t.segment.options.emit(&mut out).is_err() {
            t.segment.options = Options::default();
        }
        if self.u.arbitrary::<u8>()? & 15 == 0 {
            let port = self.u.arbitrary()?;
            t.segment.src_port = port;
            t.addresses.local.set_port(port);
        }
        self.deliver(to, t);
        Ok(())
    }

    /// Delivers everything from now on: the connection must end in order.
    fn finish(&mut self) {
        for side in 0..2 {
            if !self.closed[side] {
                self.close(side);
            }
            self.settle(side);
        }
        for _ in 0..ROUNDS {
            let before = self.now;
            let arriving = self.flying.each_mut().map(std::mem::take);
            if arriving.iter().all(VecDeque::is_empty) {
                match self.next_timer() {
                    Some(t) => self.wait_until(t),
                    None => break,
                }
                continue;
            }
            self.wait_until(before + Duration::from_millis(10));
            for (to, all) in arriving.into_iter().enumerate() {
                for t in all {
                    self.deliver(to, t);
                }
            }
        }
        // An end that waited too long, in the time that the input let pass, has given up.
        if self.ends.iter().any(|e| e.error().is_some()) {
            return;
        }
        if !self.opened {
            return;
        }
        for side in 0..2 {
            let end = &self.ends[side];
            assert_eq!(end.state(), State::Closed, "side {side}: {end:?}");
            assert_eq!(
                self.read[1 - side],
                self.written[side],
                "written by side {side}"
            );
        }
    }
}

/// Changes one field of a segment.
pub(crate) fn change(u: &mut Unstructured<'_>, s: &mut Segment) -> Result<()> {
    match u.arbitrary::<u8>()? % 16 {
        0 | 1 => s.seq = s.seq + distance(u)?,
        2 | 3 => s.ack = s.ack + distance(u)?,
        4 => s.flags = Flags::from_bits(u.arbitrary()?),
        5 => s.flags = s.flags | Flags::from_bits(1 << (u.arbitrary::<u8>()? & 7)),
        6 => s.window = u.arbitrary()?,
        7 => s.urgent = u.arbitrary()?,
        8 => {
            let len = s.payload.len();
            let from = u32::from(u.arbitrary::<u8>()?).min(len);
            s.payload = s.payload.slice(from, len);
            s.seq = s.seq + from;
        }
        9 => s.payload = Payload::real(vec![0xee; u.arbitrary::<u8>()?.into()].into()),
        10 => s.payload = Payload::EMPTY,
        11 => {
            let mut blocks = SackBlocks::EMPTY;
            for _ in 0..u.arbitrary::<u8>()? & 3 {
                let left = s.ack + distance(u)?;
                blocks.push(left, left + distance(u)?);
            }
            s.options.sack = blocks;
        }
        12 => {
            s.options.timestamps = match s.options.timestamps {
                Some(t) => Some(Timestamps {
                    value: t.value.wrapping_add(distance(u)?),
                    echo: t.echo.wrapping_add(distance(u)?),
                }),
                None => u.arbitrary::<bool>()?.then_some(Timestamps::default()),
            };
        }
        13 => {
            let len = usize::from(u.arbitrary::<u8>()? % 41).min(u.len());
            s.options = Options::decode_prefix(u.bytes(len)?);
        }
        _ => drop(Forger::with(RandomBytes(u)).forge(s)),
    }
    Ok(())
}

//! The emulated network: links between ports, with real datagrams inside. Sans-IO.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gargalo_flow::Stripper;
use gargalo_host::packet_too_big;
use gargalo_link::{DropReason, Ecn, Link, LinkConfig, Packet, Strip};
use gargalo_units::Instant;
use rand_pcg::Pcg64;

use crate::linux::header::{mark, read_header};
use crate::{Error, Result};
use gargalo_device::{Frame, HEADROOM};

mod strip;

/// The source address of a router's report that a packet is too big.
const ROUTER: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(10, 77, 255, 254),
    Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 0xffff),
);

/// Index of a place where datagrams enter and leave the network.
pub type PortId = u32;
/// Index of one direction of a link: twice the link's index, plus one for down.
pub type Direction = u32;

/// A path through the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Link directions, in order.
    pub hops: Vec<Direction>,
    /// Where it ends.
    pub exit: PortId,
}

/// The paths of datagrams that enter at a port.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    by_destination: BTreeMap<IpAddr, u32>,
    otherwise: Option<u32>,
}

/// Observes every datagram at both ends of every link.
pub trait Witness: Send {
    /// A datagram enters a link, or has `arrived` at its end.
    fn seen(&mut self, at: Instant, direction: Direction, arrived: bool, datagram: &[u8]);
    /// Ends the observation.
    ///
    /// # Errors
    /// When the observed datagrams could not be written.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Datagrams that the network could not carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricStats {
    /// Datagrams that entered.
    pub packets: u64,
    /// Arrivals at the end of a link.
    pub arrivals: u64,
    /// Datagrams that are not IP, or truncated.
    pub malformed: u64,
    /// Datagrams to an address that no host has, such as a kernel's router solicitations.
    pub unroutable: u64,
}

/// All links and the datagrams in them.
pub struct Fabric {
    links: Vec<Link<u32>>,
    /// Time of each direction's entry in `due`, or [`Instant::MAX`].
    pending: Vec<Instant>,
    due: BinaryHeap<Reverse<(Instant, Direction)>>,
    paths: Vec<Path>,
    ports: Vec<Ingress>,
    transit: Vec<Transit>,
    vacant: Vec<u32>,
    /// Reports of routers, for the port at which the datagram in question entered.
    replies: VecDeque<(PortId, Frame)>,
    frames: Frames,
    /// Middleboxes that remove options, and where they are.
    strippers: Vec<(Direction, Stripper)>,
    witness: Option<Box<dyn Witness>>,
    stats: FabricStats,
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric")
            .field("links", &self.links)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// A datagram in the network.
#[derive(Debug)]
struct Transit {
    frame: Frame,
    path: u32,
    port: PortId,
    hop: u32,
    flow: u32,
    ecn: Ecn,
    entered: Instant,
}

/// When a datagram entered the network and when it was due to leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it entered.
    pub entered: Instant,
    /// When it was due to leave.
    pub due: Instant,
}

impl Fabric {
    /// Creates a network of links, with two directions and a name for messages each; `rng` returns the random stream
    /// of each direction.
    ///
    /// # Errors
    /// When the configuration of a link is impossible.
    pub fn new<'a>(
        links: impl IntoIterator<Item = (&'a str, &'a LinkConfig)>,
        mut rng: impl FnMut(Direction) -> Pcg64,
    ) -> Result<Self> {
        let mut made: Vec<Link<u32>> = Vec::new();
        let mut largest = 0;
        for (name, config) in links {
            largest = largest.max(config.mtu);
            let link = Link::new(config.clone(), rng(made.len() as u32));
            made.push(link.map_err(|reason| Error::Link {
                link: name.to_owned(),
                reason,
            })?);
        }
        Ok(Self {
            pending: vec![Instant::MAX; made.len()],
            links: made,
            due: BinaryHeap::new(),
            paths: Vec::new(),
            ports: Vec::new(),
            transit: Vec::new(),
            vacant: Vec::new(),
            replies: VecDeque::new(),
            frames: Frames::new(largest as usize),
            strippers: Vec::new(),
            witness: None,
            stats: FabricStats::default(),
        })
    }

    /// Creates a network of two ports, 0 and 1, joined by a path over all links, each of which has two directions in
    /// `links`: away from port 0, and back.
    ///
    /// # Errors
    /// When the configuration of a link is impossible.
    pub fn chain<'a>(
        links: impl IntoIterator<Item = (&'a str, &'a LinkConfig)>,
        rng: impl FnMut(Direction) -> Pcg64,
    ) -> Result<Self> {
        let mut fabric = Self::new(links, rng)?;
        let ports = [fabric.add_port(), fabric.add_port()];
        let directions = 0..fabric.links.len() as Direction;
        let there = directions.clone().step_by(2).collect();
        let back = directions.skip(1).step_by(2).rev().collect();
        for (from, to, hops) in [(0, 1, there), (1, 0, back)] {
            let exit = ports[to];
            fabric.add_path(ports[from], None, Path { hops, exit });
        }
        Ok(fabric)
    }

    /// Sets the observer of datagrams at the ends of links.
    pub fn set_witness(&mut self, witness: Box<dyn Witness>) {
        self.witness = Some(witness);
    }

    /// Removes and returns the witness.
    pub fn take_witness(&mut self) -> Option<Box<dyn Witness>> {
        self.witness.take()
    }

    /// Removes Multipath TCP options from segments that pass in a direction.
    pub fn strip(&mut self, direction: Direction, where_: Strip) {
        self.strippers.push((direction, Stripper::new(where_)));
    }

    /// Adds a port.
    pub fn add_port(&mut self) -> PortId {
        self.ports.push(Ingress::default());
        (self.ports.len() - 1) as PortId
    }

    /// Sets the path of datagrams that enter at `port` for `destination` (`None`: for any other).
    pub fn add_path(&mut self, port: PortId, destination: Option<IpAddr>, path: Path) {
        let index = self.paths.len() as u32;
        self.paths.push(path);
        let ingress = &mut self.ports[port as usize];
        match destination {
            Some(address) => {
                ingress.by_destination.insert(address, index);
            }
            None => ingress.otherwise = Some(index),
        }
    }

    /// Returns an empty frame of full length, to be filled after its headroom and truncated.
    #[inline]
    pub fn frame(&mut self) -> Frame {
        self.frames.take()
    }

    /// Returns a frame for reuse.
    #[inline]
    pub fn recycle(&mut self, frame: Frame) {
        self.frames.give(frame);
    }

    /// Inserts a datagram at `port`. The network must have been [advanced](Self::advance) to `now` first.
    pub fn inject(&mut self, now: Instant, port: PortId, frame: Frame) {
        let Some(seen) = frame.get(HEADROOM..).and_then(read_header) else {
            self.stats.malformed += 1;
            return self.frames.give(frame);
        };
        let ingress = &self.ports[port as usize];
        let path = ingress.by_destination.get(&seen.dst).copied();
        let Some(path) = path.or(ingress.otherwise) else {
            self.stats.unroutable += 1;
            return self.frames.give(frame);
        };
        self.stats.packets += 1;
        let slot = self.settle(Transit {
            frame,
            path,
            port,
            hop: 0,
            flow: seen.flow,
            ecn: seen.ecn,
            entered: now,
        });
        self.forward(now, slot);
    }

    fn settle(&mut self, transit: Transit) -> u32 {
        match self.vacant.pop() {
            Some(slot) => {
                self.transit[slot as usize] = transit;
                slot
            }
            None => {
                self.transit.push(transit);
                (self.transit.len() - 1) as u32
            }
        }
    }

    /// Puts a datagram on the next link of its path.
    fn forward(&mut self, now: Instant, slot: u32) {
        let t = &self.transit[slot as usize];
        let direction = self.paths[t.path as usize].hops[t.hop as usize];
        if let Some(witness) = &mut self.witness {
            witness.seen(now, direction, false, &t.frame[HEADROOM..]);
        }
        let packet = Packet {
            bytes: (t.frame.len() - HEADROOM) as u32,
            flow: t.flow,
            ecn: t.ecn,
            payload: slot,
        };
        self.links[direction as usize].send(now, packet);
        self.after(direction);
    }

    /// Reuses the frames of datagrams that a link dropped, and records when its next event is due.
    fn after(&mut self, direction: Direction) {
        let link = &mut self.links[direction as usize];
        while let Some((packet, why)) = link.poll_dropped() {
            let slot = packet.payload;
            let transit = &mut self.transit[slot as usize];
            let frame = std::mem::take(&mut transit.frame);
            if why == DropReason::TooBig
                && let Some(mtu) = link.reported_mtu()
                && let Some(reply) = report(mtu, &frame)
            {
                self.replies.push_back((transit.port, reply));
            }
            self.frames.give(frame);
            self.vacant.push(slot);
        }
        let next = link.next_event();
        if next < self.pending[direction as usize] {
            self.pending[direction as usize] = next;
            self.due.push(Reverse((next, direction)));
        }
    }

    /// When [`Fabric::advance`] is due; [`Instant::MAX`]: never.
    #[inline]
    pub fn next_event(&self) -> Instant {
        if !self.replies.is_empty() {
            return Instant::ZERO;
        }
        self.due.peek().map_or(Instant::MAX, |Reverse((at, _))| *at)
    }

    /// Handles all events due by `now`, in the order of time, each at the time at which it was due: lateness does not
    /// accumulate over links. Datagrams that leave the network are passed to `deliver`.
    pub fn advance(&mut self, now: Instant, mut deliver: impl FnMut(PortId, Frame, Passage)) {
        while let Some((port, frame)) = self.replies.pop_front() {
            let passage = Passage {
                entered: now,
                due: now,
            };
            deliver(port, frame, passage);
        }
        while let Some(&Reverse((at, direction))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            if self.pending[direction as usize] != at {
                continue; // an earlier entry replaced it
            }
            self.pending[direction as usize] = Instant::MAX;
            while let Some(arrived) = self.links[direction as usize].poll(at) {
                self.stats.arrivals += 1;
                let (packet, last) = (arrived.packet, arrived.last);
                let slot = if last {
                    packet.payload
                } else {
                    self.copy(packet.payload)
                };
                self.arrive(at, slot, packet.ecn, &mut deliver);
            }
            self.after(direction);
        }
    }

    /// Duplicates the datagram in `slot`.
    fn copy(&mut self, slot: u32) -> u32 {
        let mut frame = self.frames.take();
        let original = &self.transit[slot as usize];
        frame.clear();
        frame.extend_from_slice(&original.frame);
        let copy = Transit { frame, ..*original };
        self.settle(copy)
    }

    fn arrive(
        &mut self,
        at: Instant,
        slot: u32,
        ecn: Ecn,
        deliver: &mut impl FnMut(PortId, Frame, Passage),
    ) {
        let t = &mut self.transit[slot as usize];
        if ecn != t.ecn {
            t.ecn = ecn;
            mark(&mut t.frame[HEADROOM..]);
        }
        let path = &self.paths[t.path as usize];
        let direction = path.hops[t.hop as usize];
        for (d, stripper) in &mut self.strippers {
            if *d == direction {
                strip::pass(stripper, &mut t.frame[HEADROOM..]);
            }
        }
        if let Some(witness) = &mut self.witness {
            witness.seen(at, direction, true, &t.frame[HEADROOM..]);
        }
        t.hop += 1;
        if (t.hop as usize) < path.hops.len() {
            return self.forward(at, slot);
        }
        let passage = Passage {
            entered: t.entered,
            due: at,
        };
        deliver(path.exit, std::mem::take(&mut t.frame), passage);
        self.vacant.push(slot);
    }

    /// The links, by direction.
    pub fn links_mut(&mut self) -> &mut [Link<u32>] {
        &mut self.links
    }

    /// The counters of the network.
    pub fn stats(&self) -> FabricStats {
        self.stats
    }
}

/// A router's report of a datagram that is longer than the MTU of its next link. It returns without delay.
fn report(mtu: u32, frame: &Frame) -> Option<Frame> {
    let datagram = frame.get(HEADROOM..)?;
    let router = match read_header(datagram)?.src {
        IpAddr::V4(_) => ROUTER.0.into(),
        IpAddr::V6(_) => ROUTER.1.into(),
    };
    let mut reply = vec![0; HEADROOM];
    reply.extend(packet_too_big(router, mtu, datagram)?);
    Some(reply)
}

#[cfg(test)]
mod tests;

/// Frames for reuse.
#[derive(Debug)]
struct Frames {
    length: usize,
    free: Vec<Frame>,
}

impl Frames {
    fn new(mtu: usize) -> Self {
        Self {
            length: HEADROOM + mtu,
            free: Vec::new(),
        }
    }

    #[inline]
    fn take(&mut self) -> Frame {
        let mut frame = self
            .free
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(self.length));
        frame.resize(self.length, 0);
        frame
    }

    #[inline]
    fn give(&mut self, frame: Frame) {
        // Coalescing enlarges some of them.
        if frame.capacity() <= 2 * self.length && frame.capacity() > 0 {
            self.free.push(frame);
        }
    }
}

//! The emulated network: links between ports, with real datagrams inside. Sans-IO.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gargalo_flow::Stripper;
use gargalo_host::packet_too_big;
use gargalo_link::{DropReason, Ecn, Link, LinkConfig, LinkStats, Packet, Strip};
use gargalo_units::{Bytes, Instant};
use rand_pcg::Pcg64;

use crate::glance::{glance, mark};
use crate::{Error, Result};
use gargalo_device::{Frame, HEADROOM};

mod strip;

/// Whose word routers have when they report a packet that is too long.
const ROUTER: (Ipv4Addr, Ipv6Addr) = (
    Ipv4Addr::new(10, 77, 255, 254),
    Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 0xffff),
);

/// Index of a place where datagrams enter and leave the network.
pub type PortId = u32;
/// Index of one direction of a link: twice the link's index, plus one for down.
pub type Direction = u32;

/// A way through the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Link directions, in order.
    pub hops: Vec<Direction>,
    /// Where it ends.
    pub exit: PortId,
}

/// Which way datagrams take that enter at a port.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    by_destination: BTreeMap<IpAddr, u32>,
    otherwise: Option<u32>,
}

/// Sees every datagram at both ends of every link.
pub trait Witness: Send {
    /// One comes to a link, or has `arrived` at its end.
    fn seen(&mut self, at: Instant, direction: Direction, arrived: bool, datagram: &[u8]);
    /// Nothing more will be seen.
    ///
    /// # Errors
    /// When what was seen could not be kept.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// What the network could not carry at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricStats {
    /// Datagrams that entered.
    pub packets: u64,
    /// Arrivals at the end of a link.
    pub arrivals: u64,
    /// Not IP, or cut off.
    pub malformed: u64,
    /// To an address that no host has, like multicasts of a kernel that looks for routers.
    pub unroutable: u64,
}

/// All links and what is inside them.
pub struct Fabric {
    links: Vec<Link<u32>>,
    /// Entry of each direction in `due`, or [`Instant::MAX`].
    pending: Vec<Instant>,
    due: BinaryHeap<Reverse<(Instant, Direction)>>,
    paths: Vec<Path>,
    ports: Vec<Ingress>,
    transit: Vec<Transit>,
    vacant: Vec<u32>,
    /// MTU of each direction, in bytes.
    mtus: Vec<u32>,
    /// What routers say, for the port at which the datagram in question entered.
    replies: VecDeque<(PortId, Frame)>,
    frames: Frames,
    /// Who takes options out, and where.
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

/// A datagram inside.
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

/// When a datagram entered the network and was due to leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it entered.
    pub entered: Instant,
    /// When it was due to leave.
    pub due: Instant,
}

impl Fabric {
    /// A network of links, two directions each, with a name for messages; `rng` gives each direction
    /// its random stream.
    ///
    /// # Errors
    /// When a link makes no sense.
    pub fn new<'a>(
        links: impl IntoIterator<Item = (&'a str, &'a LinkConfig)>,
        mut rng: impl FnMut(Direction) -> Pcg64,
    ) -> Result<Self> {
        let mut made: Vec<Link<u32>> = Vec::new();
        let mut mtus = Vec::new();
        for (name, config) in links {
            mtus.push(config.mtu);
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
            frames: Frames::new(mtus.iter().max().map_or(0, |m| *m as usize)),
            mtus,
            strippers: Vec::new(),
            witness: None,
            stats: FabricStats::default(),
        })
    }

    /// Shows everything at the ends of links.
    pub fn set_witness(&mut self, witness: Box<dyn Witness>) {
        self.witness = Some(witness);
    }

    /// Takes the witness back.
    pub fn take_witness(&mut self) -> Option<Box<dyn Witness>> {
        self.witness.take()
    }

    /// Takes Multipath TCP options out of what passes in a direction.
    pub fn strip(&mut self, direction: Direction, where_: Strip) {
        self.strippers.push((direction, Stripper::new(where_)));
    }

    /// Adds a port.
    pub fn add_port(&mut self) -> PortId {
        self.ports.push(Ingress::default());
        (self.ports.len() - 1) as PortId
    }

    /// Datagrams that enter at `port` for `destination` (`None`: for any other) take `path`.
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

    /// An empty frame of full length, to be filled behind its headroom and cut.
    #[inline]
    pub fn frame(&mut self) -> Frame {
        self.frames.take()
    }

    /// Takes a frame back.
    #[inline]
    pub fn recycle(&mut self, frame: Frame) {
        self.frames.give(frame);
    }

    /// A datagram enters at `port`. First everything due by `now` must have been
    /// [advanced](Self::advance).
    pub fn inject(&mut self, now: Instant, port: PortId, frame: Frame) {
        let Some(seen) = frame.get(HEADROOM..).and_then(glance) else {
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

    /// What a link dropped is free; when it wants to be asked next is noted.
    fn after(&mut self, direction: Direction) {
        let link = &mut self.links[direction as usize];
        while let Some((packet, why)) = link.poll_dropped() {
            let slot = packet.payload;
            let transit = &mut self.transit[slot as usize];
            let frame = std::mem::take(&mut transit.frame);
            if why == DropReason::TooBig
                && let Some(reply) = report(self.mtus[direction as usize], &frame)
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

    /// When [`Fabric::advance`] has something to do; [`Instant::MAX`]: never.
    #[inline]
    pub fn next_event(&self) -> Instant {
        if !self.replies.is_empty() {
            return Instant::ZERO;
        }
        self.due.peek().map_or(Instant::MAX, |Reverse((at, _))| *at)
    }

    /// Does everything that is due by `now`, in the order of time, at the time it was due: lateness
    /// does not add up over links. What leaves the network goes to `deliver`.
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
                continue; // an earlier entry stood in for it
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

    /// A duplicate of what `slot` holds.
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

    /// Counters of a direction.
    pub fn link_stats(&self, direction: Direction) -> &LinkStats {
        self.links[direction as usize].stats()
    }

    /// Bytes that a direction could have carried.
    pub fn capacity(&self, direction: Direction, from: Instant, to: Instant) -> Option<Bytes> {
        self.links[direction as usize].capacity(from, to)
    }

    /// Counters.
    pub fn stats(&self) -> FabricStats {
        self.stats
    }
}

/// What a router says about a datagram that is longer than the MTU of its next link. It comes back
/// without delay.
fn report(mtu: u32, frame: &Frame) -> Option<Frame> {
    let datagram = frame.get(HEADROOM..)?;
    let router = match glance(datagram)?.src {
        IpAddr::V4(_) => ROUTER.0.into(),
        IpAddr::V6(_) => ROUTER.1.into(),
    };
    let mut reply = vec![0; HEADROOM];
    reply.extend(packet_too_big(router, mtu, datagram)?);
    Some(reply)
}

#[cfg(test)]
mod tests;

/// Frames to be used again.
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
        // Coalescing makes some grow.
        if frame.capacity() <= 2 * self.length && frame.capacity() > 0 {
            self.free.push(frame);
        }
    }
}

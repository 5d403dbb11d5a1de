//! Packets in transit: links, routes and the event queue.

use gargalo_flow::{DirectionId, Slab, Stripper};
use gargalo_link::{Ecn, Link, Packet};
use gargalo_units::Instant;

use crate::capture::Capture;
use crate::event::EventQueue;
use crate::packet::{Body, Content};
use gargalo_link::Strip;

/// Marks the end of a route in [`Net::hops`].
const HOST: u32 = u32::MAX;

/// The reference that a link carries for a packet: the slot of its content and its hop on the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    id: u32,
    hop: u32,
}

#[derive(Debug)]
struct LinkSlot {
    link: Link<Handle>,
    strip: Option<Stripper>,
    /// Time of the earliest event in the queue for this link.
    armed: Instant,
}

/// The network of a world.
#[derive(Debug, Default)]
pub struct Net {
    /// The event queue.
    pub queue: EventQueue,
    links: Vec<LinkSlot>,
    packets: Slab<Body>,
    /// All routes one after another, each ended by [`HOST`].
    hops: Vec<DirectionId>,
    /// Where packets are captured, if asked for.
    pub capture: Option<Capture>,
    transmitted: u64,
    /// Flow and generation of dropped datagrams, until the engine records them.
    pub lost_datagrams: Vec<(u32, u32)>,
}

impl Net {
    /// Adds one direction of a link; its index is its event target.
    pub fn add_link(&mut self, link: Link<Handle>, strip: Strip) {
        self.links.push(LinkSlot {
            link,
            strip: (strip != Strip::None).then(|| Stripper::new(strip)),
            armed: Instant::MAX,
        });
    }

    /// Stores a route and returns its handle.
    pub fn add_route(&mut self, directions: &[DirectionId]) -> u32 {
        let start = self.hops.len() as u32;
        self.hops.extend_from_slice(directions);
        self.hops.push(HOST);
        start
    }

    /// The directions of a route.
    pub fn route(&self, route: u32) -> &[DirectionId] {
        let from_here = self.hops.get(route as usize..).unwrap_or_default();
        let length = from_here.iter().position(|d| *d == HOST);
        &from_here[..length.unwrap_or(0)]
    }

    /// The first link of a route, by index.
    pub fn first_link(&self, route: u32) -> Option<usize> {
        let direction = *self.hops.get(route as usize)?;
        (direction != HOST).then_some(direction as usize / 2)
    }

    /// The links of a route in order, by index.
    pub fn links_of(&self, route: u32) -> impl Iterator<Item = usize> {
        let hops = self.hops.iter().skip(route as usize);
        let hops = hops.take_while(|d| **d != HOST);
        hops.map(|d| *d as usize / 2)
    }

    /// Number of link directions.
    pub fn directions(&self) -> u32 {
        self.links.len() as u32
    }

    /// One direction of a link.
    pub fn link_mut(&mut self, direction: DirectionId) -> &mut Link<Handle> {
        &mut self.links[direction as usize].link
    }

    /// Packets sent by hosts so far.
    pub fn transmitted(&self) -> u64 {
        self.transmitted
    }

    /// Sends a packet of a host along a route; returns its size including the IP header.
    #[inline]
    pub fn transmit(&mut self, now: Instant, ecn: Ecn, hash: u32, body: Body) -> u64 {
        self.transmitted += 1;
        let bytes = body.content.ip_len();
        let route = body.route;
        let id = self.packets.insert(body);
        let payload = Handle { id, hop: route };
        self.forward(
            now,
            Packet {
                bytes,
                flow: hash,
                ecn,
                payload,
            },
        );
        u64::from(bytes)
    }

    #[inline]
    fn forward(&mut self, now: Instant, packet: Packet<Handle>) {
        let direction = self.hops[packet.payload.hop as usize];
        if self.capture.is_some() {
            self.record(now, direction, &packet, false);
        }
        let slot = &mut self.links[direction as usize];
        if let Some(stripper) = &mut slot.strip
            && let Some(body) = self.packets.get_mut(packet.payload.id)
            && let Content::Tcp(segment) = &mut body.content
        {
            stripper.pass(segment);
        }
        slot.link.send(now, packet);
        while let Some((dropped, _)) = slot.link.poll_dropped() {
            if let Some(flow) = release(&mut self.packets, dropped) {
                self.lost_datagrams.push(flow);
            }
        }
        let next = slot.link.next_event();
        if next < slot.armed {
            slot.armed = next;
            self.queue.push(next, direction);
        }
    }

    /// Handles an event of a link: forwards packets that have arrived at routers and returns the next packet that has
    /// arrived at a host. Must be called until it returns `None`.
    #[inline]
    pub fn poll(&mut self, now: Instant, direction: DirectionId) -> Option<(Body, Ecn)> {
        loop {
            let slot = &mut self.links[direction as usize];
            let Some(delivery) = slot.link.poll(now) else {
                while let Some((dropped, _)) = slot.link.poll_dropped() {
                    if let Some(flow) = release(&mut self.packets, dropped) {
                        self.lost_datagrams.push(flow);
                    }
                }
                let next = slot.link.next_event();
                // An event that has fired is no longer in the queue; a later one may still be.
                if slot.armed <= now || next < slot.armed {
                    slot.armed = next;
                    if next != Instant::MAX {
                        self.queue.push(next, direction);
                    }
                }
                return None;
            };
            let mut packet = delivery.packet;
            if self.capture.is_some() {
                self.record(now, direction, &packet, true);
            }
            packet.payload.hop += 1;
            let at_host = self.hops[packet.payload.hop as usize] == HOST;
            if delivery.last && at_host {
                if let Some(body) = self.packets.remove(packet.payload.id) {
                    return Some((body, packet.ecn));
                }
                continue;
            }
            if !delivery.last {
                // A duplicate shares its content with a packet still inside the link.
                let Some(body) = self.packets.get(packet.payload.id).cloned() else {
                    continue;
                };
                if at_host {
                    return Some((body, packet.ecn));
                }
                packet.payload.id = self.packets.insert(body);
            }
            self.forward(now, packet);
        }
    }

    fn record(&mut self, now: Instant, direction: u32, packet: &Packet<Handle>, arrived: bool) {
        if let (Some(capture), Some(body)) =
            (&mut self.capture, self.packets.get(packet.payload.id))
        {
            capture.packet(now, direction, arrived, packet.ecn, body);
        }
    }
}

/// Frees the content of a dropped packet; returns the flow of a datagram (TCP and QUIC detect their losses themselves,
/// and so does a sender that misses reports).
fn release(packets: &mut Slab<Body>, dropped: Packet<Handle>) -> Option<(u32, u32)> {
    let body = packets.remove(dropped.payload.id)?;
    match body.content {
        Content::Udp(_) if body.side == 1 => Some((body.flow, body.generation)),
        Content::Udp(_) | Content::Tcp(_) | Content::Quic(_) => None,
    }
}

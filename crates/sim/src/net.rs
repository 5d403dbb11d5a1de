//! Packets in transit: links, routes and the event queue.
//!
//! A packet has an event where order is decided, and nowhere else. As soon as a link knows when a packet arrives at its
//! end, the packet is put ahead into the next link, sorted by the time of its arrival, and enters when that link is
//! next looked at: before another packet enters, when its counters are read, and at the latest when the packet could
//! leave it. What comes of it is the same, to the byte, as if each packet had an event at the end of each link.

use gargalo_flow::{DirectionId, Stripper};
use gargalo_link::{Delivery, DropReason, Ecn, Flight, Link, Packet};
use gargalo_units::{Duration, Instant};

use crate::capture::Capture;
use crate::event::{EventQueue, Target};
use crate::line::{Coming, Line, Nodes};
use crate::packet::{Body, Content, Handle};
use crate::pool::Pool;
use gargalo_link::Strip;

/// Marks the end of a route in [`Net::hops`].
const HOST: u32 = u32::MAX;

/// A packet that has arrived at its host, to be [taken](Net::take) or [discarded](Net::discard).
#[derive(Clone, Copy, Debug)]
pub struct Arrived(u32);

/// Most packets that one put ahead may pass by: more than that costs more than its event.
const MOST_PASSED: usize = 16;

/// A point in the total order of events: everything before it has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    time: Instant,
    target: Target,
}

impl Moment {
    /// The moment of an event.
    #[inline]
    pub const fn new(time: Instant, target: Target) -> Self {
        Self { time, target }
    }
    /// After all events at `time`.
    pub const fn after(time: Instant) -> Self {
        let target = Target::MAX;
        Self { time, target }
    }
}

#[derive(Debug)]
struct LinkSlot {
    link: Link<Handle>,
    strip: Option<Stripper>,
    /// Time of the earliest event in the queue for this link.
    armed: Instant,
    /// Packets that have not arrived yet, in the order of their arrival.
    ahead: Line,
    /// Packets may be put ahead into it: each takes time here, so that nothing happens when it arrives.
    takes_ahead: bool,
    /// Packets that have left the queue and arrive where order is decided: at a host, or at another link.
    landing: Line,
    /// Packets that leave it do not overtake each other; else the link keeps them until they arrive.
    keeps_order: bool,
    /// A packet that enters leaves its queue at once, or is dropped, and nothing else happens to it.
    relays: bool,
    /// What is put ahead into it can be let in when it arrives at its end, and not before.
    passes_through: bool,
    /// The largest packet that has no effect but in the link: senders of larger ones may be told.
    largest: u32,
    /// Packets that enter it are captured: each has an event.
    captures_entries: bool,
    /// Those that arrive at its end are.
    captures_arrivals: bool,
}

impl LinkSlot {
    /// When something happens at its end, at the earliest.
    #[inline]
    fn next_event(&mut self, nodes: &Nodes) -> Instant {
        let next = match self.keeps_order {
            true => self.link.next_service(),
            false => self.link.next_event(),
        };
        // Those ahead arrive after those that have left the queue.
        if let Some(first) = nodes.first(self.landing) {
            return next.min(first.flight.arrival());
        }
        match nodes.first(self.ahead) {
            Some(c) => {
                let bytes = c.flight.packet().bytes;
                next.min(self.link.earliest_arrival(c.flight.arrival(), bytes))
            }
            None => next,
        }
    }
}

/// The network of a world.
#[derive(Debug, Default)]
pub struct Net {
    /// The event queue.
    pub queue: EventQueue,
    links: Vec<LinkSlot>,
    packets: Pool,
    /// Those of the packets that have left the queue of a link.
    nodes: Nodes,
    /// All routes one after another, each ended by [`HOST`].
    hops: Vec<DirectionId>,
    /// Where packets are captured, if requested.
    pub capture: Option<Capture>,
    transmitted: u64,
    /// Flow and generation of dropped datagrams, until the engine records them.
    pub lost_datagrams: Vec<(u32, u32)>,
    /// Packets that were too large for a link, and its MTU, until the engine tells their senders.
    pub too_big: Vec<(Body, u32)>,
    /// Event target of the first direction.
    pub first: Target,
    /// Every packet has an event at the end of every link.
    pub every_event: bool,
    /// The latest of the events so far. One that is caused at the instant at which it is due may come after later ones.
    pub moment: Moment,
}

impl Net {
    /// Adds one direction of a link.
    pub fn add_link(&mut self, link: Link<Handle>, strip: Strip) {
        let keeps_order = link.keeps_order();
        let takes_ahead = keeps_order && link.least_delay() > Duration::ZERO;
        let relays = keeps_order && link.is_plain() && strip == Strip::None;
        self.links.push(LinkSlot {
            relays,
            passes_through: takes_ahead && relays,
            largest: link.reported_mtu().unwrap_or(u32::MAX),
            strip: (strip != Strip::None).then(|| Stripper::new(strip)),
            armed: Instant::MAX,
            ahead: Line::default(),
            takes_ahead,
            landing: Line::default(),
            keeps_order,
            captures_entries: false,
            captures_arrivals: false,
            link,
        });
    }

    /// Begins a capture: where packets are captured, each has an event.
    pub fn capture_with(&mut self, capture: Capture) {
        for (direction, slot) in (0..).zip(&mut self.links) {
            slot.captures_entries = capture.sees(direction, false);
            slot.captures_arrivals = capture.sees(direction, true);
            slot.takes_ahead &= !slot.captures_entries;
            slot.passes_through &= slot.takes_ahead && !slot.captures_arrivals;
        }
        self.capture = Some(capture);
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

    /// Reads one direction of a link; what leaves its queue by that is sent on.
    pub fn read<T>(
        &mut self,
        direction: DirectionId,
        look: impl FnOnce(&mut Link<Handle>) -> T,
    ) -> T {
        let seen = look(&mut self.links[direction as usize].link);
        self.send_on(direction);
        self.arm(direction);
        seen
    }

    /// Packets sent by hosts so far.
    pub fn transmitted(&self) -> u64 {
        self.transmitted
    }

    /// Sends a packet of a host along its route; returns its size including the IP header.
    #[inline(always)]
    pub fn transmit(&mut self, now: Instant, ecn: Ecn, hash: u32, body: Body) -> u64 {
        let (bytes, hop) = (body.content.ip_len(), body.route);
        let payload = Handle {
            id: self.packets.insert(body),
            hop,
        };
        let packet = Packet {
            bytes,
            flow: hash,
            ecn,
            payload,
        };
        self.send(now, packet);
        u64::from(bytes)
    }

    /// A packet of a host arrives at its first link now.
    fn send(&mut self, now: Instant, packet: Packet<Handle>) {
        self.transmitted += 1;
        let Handle { id, hop } = packet.payload;
        let direction = self.hops[hop as usize];
        if self.links[direction as usize].captures_entries {
            self.record(now, direction, &packet, false);
        }
        self.catch_up(self.moment, direction);
        let slot = &mut self.links[direction as usize];
        if slot.relays {
            let coming = Coming {
                flight: Flight::new(now, packet),
                from: direction,
            };
            let coming = self.nodes.keep(id, coming);
            if slot.link.relay(&mut coming.flight) {
                self.line_up(direction, id);
            } else {
                self.send_on(direction);
            }
        } else {
            self.enter(now, direction, packet);
        }
        self.arm_after_entry(direction);
    }

    /// A packet arrives at a link now.
    #[inline(never)]
    fn forward(&mut self, now: Instant, packet: Packet<Handle>) {
        let direction = self.hops[packet.payload.hop as usize];
        if self.links[direction as usize].captures_entries {
            self.record(now, direction, &packet, false);
        }
        self.catch_up(self.moment, direction);
        self.enter(now, direction, packet);
        self.arm_after_entry(direction);
    }

    /// Sees to the next event of a link that a packet has entered.
    #[inline(always)]
    fn arm_after_entry(&mut self, direction: DirectionId) {
        let slot = &self.links[direction as usize];
        let is_put_ahead = slot.keeps_order && slot.link.is_scheduled() && slot.landing.is_empty();
        if !is_put_ahead || !slot.ahead.is_empty() {
            self.arm(direction);
        }
    }

    /// Does what happens at the entry and in the queue of a link by `moment`.
    #[inline(always)]
    fn catch_up(&mut self, moment: Moment, direction: DirectionId) {
        let slot = &self.links[direction as usize];
        if !slot.link.is_scheduled() || !slot.ahead.is_empty() {
            self.make_up(moment, direction);
        }
    }

    fn make_up(&mut self, moment: Moment, direction: DirectionId) {
        while let Some(first) = self.nodes.first(self.links[direction as usize].ahead) {
            let (time, from) = first.order();
            let never = time == Instant::MAX;
            if never || Moment::new(time, self.first + from) > moment {
                break;
            }
            if let Some(place) = self.enter_first(direction) {
                self.line_up(direction, place);
            }
        }
        loop {
            let slot = &mut self.links[direction as usize];
            let service = slot.link.next_service();
            let never = service == Instant::MAX;
            if never || Moment::new(service, self.first + direction) > moment {
                return;
            }
            slot.link.serve(service);
            self.send_on(direction);
        }
    }

    /// Lets the first packet enter that was put ahead into a link; returns its place if it leaves the queue at once, to
    /// be [lined up](Self::line_up).
    #[inline(always)]
    fn enter_first(&mut self, direction: DirectionId) -> Option<u32> {
        let slot = &mut self.links[direction as usize];
        let (place, coming) = self.nodes.take_first(&mut slot.ahead)?;
        if !slot.relays || coming.flight.is_shared() {
            let coming = *coming;
            self.enter_apart(direction, place, coming);
            return None;
        }
        let from = std::mem::replace(&mut coming.from, direction);
        self.links[from as usize].link.land(&coming.flight);
        coming.flight.payload_mut().hop += 1;
        let slot = &mut self.links[direction as usize];
        if slot.link.relay(&mut coming.flight) {
            return Some(place);
        }
        self.send_on(direction);
        None
    }

    /// The same if the link may keep the packet, or a copy shares its content.
    #[inline(never)]
    fn enter_apart(&mut self, direction: DirectionId, place: u32, coming: Coming) {
        let entry = coming.flight.arrival();
        let delivery = self.land(place, coming);
        if let Some(packet) = self.at_next(delivery) {
            self.enter(entry, direction, packet);
        }
    }

    /// A packet that was taken out of a list arrives at the end of its link.
    #[inline(always)]
    fn land(&mut self, place: u32, coming: Coming) -> Delivery<Handle> {
        if coming.flight.is_shared() {
            self.packets.release(place);
        }
        self.links[coming.from as usize].link.land(&coming.flight)
    }

    /// The packet at its next hop; a duplicate gets a content of its own.
    #[inline(always)]
    fn at_next(&mut self, delivery: Delivery<Handle>) -> Option<Packet<Handle>> {
        let mut packet = delivery.packet;
        packet.payload.hop += 1;
        if !delivery.last {
            let body = self.packets.get(packet.payload.id).cloned()?;
            packet.payload.id = self.packets.insert(body);
        }
        Some(packet)
    }

    /// A packet enters a link; what leaves the queue by that is sent on.
    #[inline(always)]
    fn enter(&mut self, now: Instant, direction: DirectionId, packet: Packet<Handle>) {
        let slot = &mut self.links[direction as usize];
        if let Some(stripper) = &mut slot.strip
            && let Some(body) = self.packets.get_mut(packet.payload.id)
            && let Content::Tcp(segment) = &mut body.content
        {
            stripper.pass(segment);
        }
        let flight = match slot.keeps_order {
            true => slot.link.pass(now, packet),
            false => {
                slot.link.send(now, packet);
                None
            }
        };
        match flight {
            Some(flight) => self.hand_over(direction, flight),
            None => self.send_on(direction),
        }
    }

    /// Frees what a link has dropped, and sends on what has left its queue.
    #[inline(never)]
    fn send_on(&mut self, direction: DirectionId) {
        let slot = &mut self.links[direction as usize];
        while let Some((dropped, why)) = slot.link.poll_dropped() {
            let Some(body) = self.packets.remove(dropped.payload.id) else {
                continue;
            };
            self.lost_datagrams.extend(lost_datagram(&body));
            if why == DropReason::TooBig
                && let Some(mtu) = slot.link.reported_mtu()
            {
                self.too_big.push((body, mtu));
            }
        }
        if !slot.keeps_order {
            return;
        }
        while let Some(flight) = self.links[direction as usize].link.take_flight() {
            self.hand_over(direction, flight);
        }
    }

    /// A packet has left the queue of a link.
    #[inline(always)]
    fn hand_over(&mut self, direction: DirectionId, flight: Flight<Handle>) {
        // Copies that share a content have places of their own until they arrive.
        let place = match flight.is_shared() {
            true => self.packets.reserve(),
            false => flight.packet().payload.id,
        };
        let from = direction;
        self.nodes.keep(place, Coming { flight, from });
        self.line_up(direction, place);
    }

    /// A packet that has left the queue of a link waits for its arrival.
    #[inline(always)]
    fn line_up(&mut self, direction: DirectionId, place: u32) {
        if !self.put_ahead(direction, place) {
            let landing = &mut self.links[direction as usize].landing;
            self.nodes.append(landing, place);
        }
    }

    /// Puts a packet ahead into the next link, if that is one and nothing happens when it arrives there.
    #[inline(always)]
    fn put_ahead(&mut self, direction: DirectionId, place: u32) -> bool {
        let coming = self.nodes.coming(place);
        let next = self.hops[coming.flight.packet().payload.hop as usize + 1];
        let from_here = &self.links[direction as usize];
        // Those of one link stay in their order.
        let behind = !from_here.landing.is_empty();
        // What takes no time is ordered by what happens at this instant.
        let at_once = !from_here.takes_ahead && coming.flight.arrival() <= self.moment.time;
        let observed = from_here.captures_arrivals || self.every_event;
        if next == HOST || behind || at_once || observed {
            return false;
        }
        let slot = &mut self.links[next as usize];
        if !slot.takes_ahead || coming.flight.packet().bytes > slot.largest {
            return false;
        }
        match self.nodes.last(slot.ahead) {
            Some(last) if last.order() > coming.order() => return self.put_between(next, place),
            Some(_) => self.nodes.append(&mut slot.ahead, place),
            None => {
                self.nodes.append(&mut slot.ahead, place);
                self.arm_for_first(next);
            }
        }
        true
    }

    /// Puts a packet ahead before others that were put there.
    #[inline(never)]
    fn put_between(&mut self, next: DirectionId, place: u32) -> bool {
        let ahead = &mut self.links[next as usize].ahead;
        let inserted = self.nodes.insert(ahead, place, MOST_PASSED);
        if inserted == Some(true) {
            self.arm_for_first(next);
        }
        inserted.is_some()
    }

    /// The first of those ahead has changed.
    #[inline(always)]
    fn arm_for_first(&mut self, direction: DirectionId) {
        // Those that have left the queue arrive before.
        if self.links[direction as usize].landing.is_empty() {
            self.arm(direction);
        }
    }

    /// Sees to it that a link has an event when something happens at its end.
    #[inline(always)]
    fn arm(&mut self, direction: DirectionId) {
        let slot = &mut self.links[direction as usize];
        // An edge of the measured window is looked at when the event after it has been taken: the services between both
        // are made up for at the time of that event.
        let next = slot.next_event(&self.nodes).max(self.moment.time);
        if next < slot.armed {
            slot.armed = next;
            self.queue.push(next, self.first + direction);
        }
    }

    /// Lets every packet enter that has arrived at a link by `moment`.
    pub fn settle(&mut self, moment: Moment) {
        for direction in 0..self.directions() {
            self.catch_up(moment, direction);
            self.arm(direction);
        }
    }

    /// Handles an event of a link, if that is a packet that passes through it to a host: returns the packet, and sees
    /// to the next event. Otherwise [`poll`](Self::poll) has to.
    #[inline(always)]
    pub fn poll_through(&mut self, now: Instant, direction: DirectionId) -> Option<(Arrived, Ecn)> {
        let slot = &mut self.links[direction as usize];
        if !slot.passes_through || !slot.landing.is_empty() {
            return None;
        }
        let first = self.nodes.first(slot.ahead)?;
        let (entry, from) = first.order();
        let next = self.hops[first.flight.packet().payload.hop as usize + 2];
        if next != HOST || Moment::new(entry, self.first + from) > self.moment {
            return None;
        }
        let place = self.enter_first(direction)?;
        let coming = *self.nodes.coming(place);
        let slot = &mut self.links[direction as usize];
        if coming.flight.arrival() > now {
            self.nodes.append(&mut slot.landing, place);
            return None;
        }
        let delivery = slot.link.land(&coming.flight);
        self.rearm(now, direction);
        self.arrive(&delivery)
    }

    /// Sees to the next event of a link whose event has been handled.
    #[inline(always)]
    fn rearm(&mut self, now: Instant, direction: DirectionId) {
        let slot = &mut self.links[direction as usize];
        // An event that has fired is no longer in the queue; a later one may still be.
        if slot.armed <= now {
            slot.armed = Instant::MAX;
        }
        self.arm(direction);
    }

    /// Handles an event of a link: forwards packets that have arrived at routers and returns the next packet that has
    /// arrived at a host. Must be called until it returns `None`.
    pub fn poll(&mut self, now: Instant, direction: DirectionId) -> Option<(Arrived, Ecn)> {
        self.catch_up(self.moment, direction);
        loop {
            let Some(delivery) = self.arrived(now, direction) else {
                self.rearm(now, direction);
                return None;
            };
            if self.links[direction as usize].captures_arrivals {
                self.record(now, direction, &delivery.packet, true);
            }
            let hop = delivery.packet.payload.hop as usize + 1;
            if self.hops[hop] != HOST {
                if let Some(packet) = self.at_next(delivery) {
                    self.forward(now, packet);
                }
                continue;
            }
            let arrived = self.arrive(&delivery);
            if arrived.is_some() {
                return arrived;
            }
        }
    }

    /// What a packet that has arrived contains.
    #[inline(always)]
    pub fn content(&mut self, arrived: Arrived) -> Option<&mut Body> {
        self.packets.get_mut(arrived.0)
    }

    /// Takes out what a packet that has arrived contains.
    pub fn take(&mut self, arrived: Arrived) -> Option<Body> {
        self.packets.remove(arrived.0)
    }

    /// The same if nobody needs it any more.
    #[inline(always)]
    pub fn discard(&mut self, arrived: Arrived) {
        self.packets.discard(arrived.0);
    }

    /// A packet has arrived at its host.
    #[inline(always)]
    fn arrive(&mut self, delivery: &Delivery<Handle>) -> Option<(Arrived, Ecn)> {
        let mut id = delivery.packet.payload.id;
        if !delivery.last {
            // A duplicate shares its content with a packet still inside the link.
            let body = self.packets.get(id).cloned()?;
            id = self.packets.insert(body);
        }
        Some((Arrived(id), delivery.packet.ecn))
    }

    /// The next packet that has arrived at the end of a link by `now`.
    #[inline]
    fn arrived(&mut self, now: Instant, direction: DirectionId) -> Option<Delivery<Handle>> {
        let slot = &mut self.links[direction as usize];
        if !slot.keeps_order {
            return slot.link.poll(now);
        }
        self.nodes
            .first(slot.landing)
            .filter(|c| c.flight.arrival() <= now)?;
        let (place, coming) = self.nodes.take_first(&mut slot.landing)?;
        let coming = *coming;
        Some(self.land(place, coming))
    }

    fn record(&mut self, now: Instant, direction: u32, packet: &Packet<Handle>, arrived: bool) {
        if let (Some(capture), Some(body)) =
            (&mut self.capture, self.packets.get(packet.payload.id))
        {
            capture.packet(now, direction, arrived, packet.ecn, body);
        }
    }
}

/// The flow and generation of a dropped datagram (TCP and QUIC detect their losses themselves, and so does a sender
/// that misses reports).
fn lost_datagram(body: &Body) -> Option<(u32, u32)> {
    match body.content {
        Content::Udp(_) if body.side == 1 => Some((body.flow, body.generation)),
        Content::Udp(_) | Content::Tcp(_) | Content::Quic(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use gargalo_link::LinkConfig;
    use gargalo_units::{Bytes, Rate};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::packet::{Datagram, QuicDatagram};

    fn body(side: u8, content: Content) -> Body {
        Body {
            flow: 4,
            generation: 9,
            side,
            interfaces: (0, 0),
            route: 0,
            content,
        }
    }

    fn udp(bytes: u32) -> Content {
        Content::Udp(Datagram {
            bytes,
            number: 0,
            sent_at: Instant::ZERO,
            ports: (1, 2),
        })
    }

    #[test]
    fn a_route_is_its_directions_up_to_the_host() {
        let mut net = Net::default();
        let first = net.add_route(&[4, 7]);
        let nowhere = net.add_route(&[]);
        let last = net.add_route(&[3]);
        assert_eq!((net.route(first), net.route(last)), (&[4, 7][..], &[3][..]));
        assert_eq!(
            (net.first_link(first), net.first_link(last)),
            (Some(2), Some(1))
        );
        assert!(net.links_of(first).eq([2, 3]) && net.links_of(last).eq([1]));
        assert!(net.route(nowhere).is_empty() && net.first_link(nowhere).is_none());
        assert!(net.route(99).is_empty() && net.first_link(99).is_none());
    }

    #[test]
    fn only_of_a_datagram_to_the_server_is_it_told_that_the_network_dropped_it() {
        let socket = "10.0.0.1:443".parse().unwrap();
        let quic = Content::Quic(QuicDatagram {
            payload: Default::default(),
            from: socket,
            to: socket,
        });
        let cases = [
            (1, udp(10), Some((4, 9))),
            (0, udp(10), None),
            (1, quic, None),
            (1, Content::Tcp(Default::default()), None),
        ];
        for (side, content, told) in cases {
            assert_eq!(lost_datagram(&body(side, content)), told);
        }
    }

    #[test]
    fn a_packet_that_is_dropped_leaves_nothing_but_what_its_sender_is_told() {
        for icmp in [false, true] {
            let mut net = Net::default();
            let config = LinkConfig {
                mtu: 1000,
                icmp,
                ..LinkConfig::default()
            };
            net.add_link(Link::new(config, Pcg64::new(1, 1)).unwrap(), Strip::None);
            let route = net.add_route(&[0]);
            let large = Body {
                route,
                ..body(1, udp(1000))
            };
            net.transmit(Instant::ZERO, Ecn::NotEct, 3, large);
            assert!(net.packets.get(0).is_none());
            assert_eq!(net.lost_datagrams, [(4, 9)]);
            let told: Vec<_> = net.too_big.iter().map(|(b, mtu)| (b.flow, *mtu)).collect();
            assert_eq!(told, if icmp { vec![(4, 1000)] } else { vec![] });
        }
    }

    #[test]
    fn a_packet_arrives_after_its_links_and_counts_once() {
        let mut net = Net::default();
        for _ in 0..2 {
            let config = LinkConfig {
                rate: gargalo_link::RateModel::Constant(Rate::from_mbps(8)),
                delay: gargalo_link::Delay::Constant(Duration::from_millis(5)),
                mtu: 1500,
                ..LinkConfig::default()
            };
            net.add_link(Link::new(config, Pcg64::new(1, 1)).unwrap(), Strip::None);
        }
        assert_eq!(net.directions(), 2);
        let route = net.add_route(&[0, 1]);
        let sent = net.transmit(
            Instant::ZERO,
            Ecn::NotEct,
            3,
            Body {
                route,
                ..body(1, udp(972))
            },
        );
        assert_eq!((sent, net.transmitted()), (1000, 1));
        let (mut arrived, mut at) = (None, Instant::ZERO);
        while let Some(entry) = net.queue.pop() {
            at = entry.time();
            net.moment = Moment::new(at, entry.target());
            arrived = net
                .poll_through(at, entry.target())
                .or_else(|| net.poll(at, entry.target()))
                .or(arrived);
        }
        // A millisecond of transmission and five on the way, twice.
        assert_eq!(at, Instant::ZERO + Duration::from_millis(12));
        assert_eq!(
            arrived
                .and_then(|(a, _)| net.take(a))
                .map(|b| Bytes::new(b.content.ip_len().into())),
            Some(Bytes::new(1000))
        );
        assert_eq!(net.transmitted(), 1);
    }

    #[test]
    fn moments_are_in_the_order_of_time_and_then_of_targets() {
        let at = Instant::from_nanos;
        let order = [
            Moment::new(at(5), 0),
            Moment::new(at(5), 7),
            Moment::after(at(5)),
            Moment::new(at(6), 0),
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
    }
}

use gargalo_link::{Link, Packet};
use gargalo_tcp::Endpoint;
use gargalo_units::{Ecn, Instant};
use gargalo_wire::tcp::Segment;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Opened the connection.
    Client = 0,
    /// Accepted the connection.
    Server = 1,
}

/// A client and a server joined by two links.
#[derive(Debug)]
pub struct Pair {
    /// The present virtual time.
    pub now: Instant,
    /// Client and server.
    pub ends: [Endpoint; 2],
    /// Client to server, server to client.
    links: [Link<u32>; 2],
    packets: Vec<Option<Segment>>,
    free: Vec<u32>,
    /// Segments sent by each side.
    pub sent: [u64; 2],
}

impl Pair {
    /// Joins two endpoints; `up` carries what the client sends.
    pub fn new(client: Endpoint, server: Endpoint, up: Link<u32>, down: Link<u32>) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            ends: [client, server],
            links: [up, down],
            packets: Vec::new(),
            free: Vec::new(),
            sent: [0; 2],
        };
        pair.flush();
        pair
    }

    /// The time of the next event.
    pub fn next_event(&self) -> Option<Instant> {
        let links = self
            .links
            .iter()
            .map(Link::next_event)
            .filter(|t| *t != Instant::MAX);
        let timers = self.ends.iter().filter_map(Endpoint::poll_timeout);
        links.chain(timers).min().map(|t| t.max(self.now))
    }

    /// Advances to the next event and runs both endpoints; `false` if there is none.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next_event() else {
            return false;
        };
        self.now = next;
        for side in 0..2 {
            while let Some(delivery) = self.links[side].poll(self.now) {
                let id = delivery.packet.payload;
                let slot = &mut self.packets[id as usize];
                let segment = if delivery.last {
                    self.free.push(id);
                    slot.take()
                } else {
                    slot.clone()
                };
                if let Some(segment) = segment {
                    self.ends[1 - side].handle(self.now, segment, delivery.packet.ecn);
                    self.flush();
                }
            }
            self.release_dropped(side);
            if self.ends[side]
                .poll_timeout()
                .is_some_and(|t| t <= self.now)
            {
                self.ends[side].handle_timeout(self.now);
            }
        }
        self.flush();
        true
    }

    /// Steps until there are no more events or `limit` is reached.
    pub fn run_until(&mut self, limit: Instant) {
        while self.next_event().is_some_and(|t| t <= limit) && self.step() {}
        self.now = self.now.max(limit);
    }

    /// Sends everything the endpoints want to send now; call after commands to an endpoint.
    pub fn flush(&mut self) {
        for side in 0..2 {
            while let Some(out) = self.ends[side].poll_transmit(self.now) {
                self.sent[side] += 1;
                self.send(side, out.segment, out.ecn);
            }
        }
    }

    fn send(&mut self, side: usize, segment: Segment, ecn: Ecn) {
        let bytes = 20 + segment.wire_len();
        let id = match self.free.pop() {
            Some(id) => {
                self.packets[id as usize] = Some(segment);
                id
            }
            None => {
                self.packets.push(Some(segment));
                self.packets.len() as u32 - 1
            }
        };
        self.links[side].send(
            self.now,
            Packet {
                bytes,
                flow: side as u32,
                ecn,
                payload: id,
            },
        );
        self.release_dropped(side);
    }

    fn release_dropped(&mut self, side: usize) {
        while let Some((dropped, _)) = self.links[side].poll_dropped() {
            self.packets[dropped.payload as usize] = None;
            self.free.push(dropped.payload);
        }
    }
}

//! One direction of a link.

use std::collections::VecDeque;

use gargalo_settings::Setting;
use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

use crate::ConfigError;
use crate::chance::split;
use crate::config::LinkConfig;
use crate::delay::Propagation;
use crate::histogram::DelayHistogram;
use crate::ledger::{Item, Ledger};
use crate::packet::Packet;
use crate::queue::{
    Discipline, DropTail, LinkContext, QueueConfig, QueueDiscipline, QueueLimit, Queued,
};
use crate::screen::{Fate, Screen};
use crate::server::{BYTE, Server};
use crate::stats::{Carried, DropReason, LinkSample, LinkStats};

/// A packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The packet; CE may have been set.
    pub packet: Packet<P>,
    /// `false` if a duplicate with the same payload is still inside, so that the owner must copy
    /// what the payload stands for instead of taking it.
    pub last: bool,
}

/// One direction of a link. See the [crate] for the stages that a packet passes.
///
/// Call [`send`](Self::send) when a packet enters and [`poll`](Self::poll) until `None` when
/// [`next_event`](Self::next_event) is reached; after either, drain [`poll_dropped`](Self::poll_dropped)
/// and ask `next_event` again. Time must not decrease between calls.
///
/// With a tail-drop queue the departure of a packet is known when it enters, for every rate model, so its arrival
/// is the only event. Every other queue is served packet by packet.
///
/// An owner that knows where packets go next may take them from a link that [keeps their order](Self::keeps_order)
/// as soon as their arrival is known: instead of `poll` it calls [`serve`](Self::serve) at
/// [`next_service`](Self::next_service), after `send` and `serve` it drains [`take_flight`](Self::take_flight), and it
/// says when a packet [lands](Self::land).
#[derive(Debug)]
pub struct Link<P> {
    mtu: u32,
    reports_mtu: bool,
    /// What can happen to a packet before it enters the queue, if anything can.
    screen: Option<Box<Screen>>,
    queue: Queue<P>,
    server: Server,
    propagation: Propagation,
    keeps_order: bool,
    /// Packets in flight, by arrival time; with tail drop also the waiting ones.
    line: VecDeque<Flight<P>>,
    ledger: Ledger<P>,
    clock: Instant,
}

/// A packet that has left the queue, and when it arrives at the end of the link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight<P> {
    arrival: Instant,
    item: Item<P>,
}

impl<P> Flight<P> {
    /// A packet that arrives at the first link.
    #[inline]
    pub fn new(arrival: Instant, packet: Packet<P>) -> Self {
        let item = Item::new(packet);
        Self { arrival, item }
    }
    /// When it arrives; [`Instant::MAX`] if never.
    #[inline]
    pub fn arrival(&self) -> Instant {
        self.arrival
    }
    /// The packet in flight.
    #[inline]
    pub fn packet(&self) -> &Packet<P> {
        &self.item.packet
    }
    /// Its payload.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut P {
        &mut self.item.packet.payload
    }
    /// Whether a copy of it has the same payload.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.item.is_shared()
    }
}

#[derive(Debug)]
enum Queue<P> {
    /// Tail drop: departures are computed on arrival.
    Fast(DropTail),
    /// All other queues: `service` is when the next packet is taken from the queue.
    Managed {
        discipline: Box<Discipline<P>>,
        service: Instant,
    },
}

impl<P: Copy> Link<P> {
    /// A link without packets. `rng` should be a stream of its own; each random effect draws from a stream split
    /// off it, so that enabling one does not change the draws of another.
    ///
    /// # Errors
    /// When a value of `config` is invalid ([`Setting::check`]).
    pub fn new(config: LinkConfig, rng: Pcg64) -> Result<Self, ConfigError> {
        let fast = match &config.queue {
            QueueConfig::DropTail(limit) => Some(DropTail::new(*limit)),
            _ => None,
        };
        Self::with_queue(config, rng, |c, rng| match fast {
            Some(tail) => Queue::Fast(tail),
            None => Self::managed(c, rng),
        })
    }

    /// A link that serves every queue packet by packet, tail drop included.
    #[cfg(test)]
    pub(crate) fn new_general(config: LinkConfig, rng: Pcg64) -> Result<Self, ConfigError> {
        Self::with_queue(config, rng, Self::managed)
    }

    fn managed(config: &LinkConfig, rng: Pcg64) -> Queue<P> {
        let surroundings = LinkContext {
            mtu: config.mtu,
            packet_time: config.rate.packet_time(config.mtu),
        };
        Queue::Managed {
            discipline: Box::new(Discipline::new(&config.queue, surroundings, rng)),
            service: Instant::MAX,
        }
    }

    fn with_queue(
        config: LinkConfig,
        mut rng: Pcg64,
        queue: impl FnOnce(&LinkConfig, Pcg64) -> Queue<P>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mut size = config.queue;
        if let Some(QueueLimit::Bdp(_)) = size.size() {
            let message = "a single link cannot resolve a size in bandwidth-delay products";
            return Err(ConfigError::of("queue", message).help("give packets, bytes or a time"));
        }
        let (losses, duplicates) = (split(&mut rng), split(&mut rng));
        let propagation = Propagation::new(
            &config.delay,
            config.aggregation,
            config.jitter,
            config.reorder.as_ref(),
            split(&mut rng),
        );
        Ok(Self {
            mtu: config.mtu,
            reports_mtu: config.icmp,
            screen: Screen::new(&config, losses, duplicates),
            queue: queue(&config, split(&mut rng)),
            server: Server::new(&config.rate),
            keeps_order: propagation.keeps_order(),
            propagation,
            line: VecDeque::new(),
            ledger: Ledger::new(),
            clock: Instant::ZERO,
        })
    }

    /// A packet enters the link at `now`.
    pub fn send(&mut self, now: Instant, packet: Packet<P>) {
        if let Some(flight) = self.pass(now, packet) {
            self.fly(flight);
        }
    }

    /// A packet enters the link at `now`, and leaves the queue at once if its departure is known then: its flight need
    /// not be taken.
    #[inline(always)]
    pub fn pass(&mut self, now: Instant, packet: Packet<P>) -> Option<Flight<P>> {
        self.check_clock(now);
        let item = self.ledger.offer(packet);
        if packet.bytes > self.mtu {
            self.ledger.drop(item, DropReason::TooBig);
            return None;
        }
        match (&self.screen, &self.queue) {
            (None, Queue::Fast(_)) => self.transmit(now, item),
            _ => self.screen(now, item),
        }
    }

    /// The packet of a flight, of which there is no copy, enters the link when it arrives, as by [`Self::pass`];
    /// returns whether it leaves the queue at once. The flight is then the one through this link.
    #[inline(always)]
    pub fn relay(&mut self, flight: &mut Flight<P>) -> bool {
        let (now, bytes) = (flight.arrival, flight.item.packet.bytes);
        if self.is_plain() && bytes <= self.mtu {
            // In place: the same without a copy of the packet.
            self.check_clock(now);
            self.ledger.count(bytes);
            let arrival = self.depart(now, bytes);
            match arrival {
                Some(arrival) => flight.arrival = arrival,
                None => self.ledger.drop(flight.item, DropReason::QueueFull),
            }
            return arrival.is_some();
        }
        match self.pass(now, flight.item.packet) {
            Some(passed) => {
                *flight = passed;
                true
            }
            None => false,
        }
    }

    /// A packet that may not reach the queue.
    #[inline(never)]
    fn screen(&mut self, now: Instant, mut item: Item<P>) -> Option<Flight<P>> {
        let fate = match &mut self.screen {
            Some(screen) => screen.pass(now, &mut item.packet),
            None => Fate::Enters,
        };
        match fate {
            Fate::Enters => self.admit(now, item),
            Fate::EntersTwice => {
                let copy = self.ledger.duplicate(&mut item);
                for item in [item, copy] {
                    if let Some(flight) = self.admit(now, item) {
                        self.fly(flight);
                    }
                }
                None
            }
            Fate::Dropped(reason) => {
                self.ledger.drop(item, reason);
                None
            }
        }
    }

    /// The next dropped packet and why; drain after [`Self::send`] and [`Self::poll`].
    ///
    /// A packet whose duplicate is still inside is not reported: each payload leaves the link once,
    /// here or as a [`Delivery`] with `last` set.
    #[inline]
    pub fn poll_dropped(&mut self) -> Option<(Packet<P>, DropReason)> {
        self.ledger.poll_dropped()
    }

    /// The MTU that senders of [larger packets](DropReason::TooBig) are told; `None`: they are told nothing.
    pub fn reported_mtu(&self) -> Option<u32> {
        self.reports_mtu.then_some(self.mtu)
    }

    /// When to call [`Self::poll`] next; [`Instant::MAX`] if nothing is inside.
    #[inline]
    pub fn next_event(&self) -> Instant {
        let front = self.line.front().map_or(Instant::MAX, |f| f.arrival);
        front.min(self.next_service())
    }

    /// When to call [`Self::serve`] next; [`Instant::MAX`] if no packet waits for its departure to be decided.
    #[inline]
    pub fn next_service(&self) -> Instant {
        match &self.queue {
            Queue::Fast(_) => Instant::MAX,
            Queue::Managed { service, .. } => *service,
        }
    }

    /// Whether the departure of a packet is known when it enters, so that there is no [service](Self::next_service).
    #[inline]
    pub fn is_scheduled(&self) -> bool {
        matches!(self.queue, Queue::Fast(_))
    }

    /// Whether nothing but a full tail-drop queue drops packets, and none is duplicated.
    pub fn is_plain(&self) -> bool {
        self.screen.is_none() && self.is_scheduled()
    }

    /// Whether packets arrive in the order in which they leave.
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// Takes the next packet that has left the queue, on its way to the end of the link.
    #[inline]
    pub fn take_flight(&mut self) -> Option<Flight<P>> {
        self.line.pop_front()
    }

    /// A packet that was taken by [`Self::take_flight`] has arrived.
    #[inline]
    pub fn land(&mut self, flight: &Flight<P>) -> Delivery<P> {
        Delivery {
            packet: flight.item.packet,
            last: self.ledger.deliver(&flight.item),
        }
    }

    /// The least time that every packet takes, without its transmission.
    pub fn least_delay(&self) -> Duration {
        self.propagation.constant().unwrap_or(Duration::ZERO)
    }

    /// A lower bound of the arrival of any packet that enters from `now` on, of which the first has `bytes` bytes;
    /// exact with tail drop, a constant rate and a constant delay if the link is idle then and loses none.
    #[inline]
    pub fn earliest_arrival(&mut self, now: Instant, bytes: u32) -> Instant {
        let departure = match &self.queue {
            Queue::Fast(_) if self.screen.is_none() && bytes <= self.mtu => {
                self.server.earliest(now, bytes)
            }
            _ => now,
        };
        departure + self.least_delay()
    }

    /// The next packet that has arrived by `now`, in order of arrival. Also serves the queue.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Delivery<P>> {
        self.check_clock(now);
        self.serve(now);
        let flight = self.line.front().filter(|f| f.arrival <= now).copied()?;
        self.line.pop_front();
        Some(self.land(&flight))
    }

    /// The queue at `now` and the counters so far. It serves the queue: what has left it by that is to be taken.
    pub fn sample(&mut self, now: Instant) -> LinkSample {
        self.check_clock(now);
        self.serve(now);
        let (packets, bytes, delay) = match &mut self.queue {
            Queue::Fast(tail) => {
                tail.advance(now);
                // All waiting packets are already in the server's schedule.
                let delay = self.server.drain_time(now, 0, 0);
                (tail.packets(), tail.bytes(), delay)
            }
            Queue::Managed { discipline, .. } => {
                let (packets, bytes) = (discipline.packets(), discipline.bytes());
                let delay = self.server.drain_time(now, bytes, packets);
                (packets, bytes, delay)
            }
        };
        let stats = &self.ledger.stats;
        LinkSample {
            queue_packets: packets,
            queue_bytes: bytes,
            queue_delay: delay,
            sent_packets: stats.admitted_packets() - packets,
            sent_bytes: stats.admitted_bytes() - bytes,
            delivered_packets: stats.delivered_packets,
            delivered_bytes: stats.delivered_bytes,
            dropped_packets: stats.dropped_packets(),
            dropped_bytes: stats.dropped_bytes,
            marked_packets: stats.marked_packets,
        }
    }

    /// Counters since the start.
    pub fn stats(&self) -> &LinkStats {
        &self.ledger.stats
    }

    /// Returns the queueing delays recorded so far and starts a new histogram.
    pub fn take_queue_delays(&mut self) -> DelayHistogram {
        std::mem::take(&mut self.ledger.stats.queue_delay)
    }

    /// The amount that has left the link by `now`, with the transmitted part of the packet in transmission. On a
    /// trace, whose opportunities are instants, a packet counts when its transmission begins.
    pub fn carried(&mut self, now: Instant) -> Carried {
        let sample = self.sample(now);
        let waiting = match self.queue {
            // Waiting packets are in the server's schedule already.
            Queue::Fast(_) => sample.queue_bytes,
            Queue::Managed { .. } => 0,
        };
        let begun = u128::from(sample.sent_bytes) * u128::from(BYTE);
        let all = u128::from(sample.sent_bytes + waiting) * u128::from(BYTE);
        let left = self.server.remaining_work(now);
        Carried {
            at: now,
            work: left.map_or(begun, |left| all.saturating_sub(left).min(begun)),
        }
    }

    /// The share of the capacity between two instants that was used: never more than 1 for a constant rate, zero if
    /// there was no capacity, `None` if unlimited.
    pub fn utilization(&self, since: Carried, until: Carried) -> Option<f64> {
        let capacity = self.server.capacity_work(since.at, until.at)?;
        let used = until.work.saturating_sub(since.work);
        Some(match capacity {
            0 => 0.0,
            _ => used as f64 / capacity as f64,
        })
    }

    /// How many whole bytes the rate model could have carried between two instants; `None` if unlimited.
    pub fn capacity(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.capacity(from, to).map(Bytes::new)
    }

    fn admit(&mut self, now: Instant, item: Item<P>) -> Option<Flight<P>> {
        match &self.queue {
            Queue::Fast(_) => self.transmit(now, item),
            Queue::Managed { .. } => {
                self.enqueue(now, item);
                None
            }
        }
    }

    /// A packet enters a tail-drop queue; `None` if it is full.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, item: Item<P>) -> Option<Flight<P>> {
        match self.depart(now, item.packet.bytes) {
            Some(arrival) => Some(Flight { arrival, item }),
            None => {
                self.ledger.drop(item, DropReason::QueueFull);
                None
            }
        }
    }

    /// When a packet that enters a tail-drop queue now arrives at the end of the link; `None` if the queue is full.
    #[inline(always)]
    fn depart(&mut self, now: Instant, bytes: u32) -> Option<Instant> {
        let Queue::Fast(tail) = &mut self.queue else {
            return None;
        };
        tail.advance(now);
        let start = self.server.start(now);
        if start > now {
            let wait = start - now;
            if !tail.push(start, wait, bytes) {
                return None;
            }
            if start < Instant::MAX {
                self.ledger.stats.queue_delay.record(wait);
            }
        } else {
            self.ledger.stats.queue_delay.record_zero();
        }
        let departure = self.server.transmit(bytes);
        Some(self.propagation.arrival(departure))
    }

    fn enqueue(&mut self, now: Instant, item: Item<P>) {
        // Service up to and including this instant comes before the arrival.
        self.serve(now);
        let Queue::Managed {
            discipline,
            service,
        } = &mut self.queue
        else {
            return;
        };
        let queued = Queued {
            item,
            enqueued: now,
        };
        discipline.enqueue(now, queued, &mut self.ledger);
        if *service == Instant::MAX && discipline.packets() > 0 {
            *service = self.server.start(now);
            self.serve(now);
        }
    }

    /// Takes packets from the queue as long as the server is free by `now`.
    #[inline]
    pub fn serve(&mut self, now: Instant) {
        if let Queue::Managed { service, .. } = &self.queue
            && *service <= now
        {
            self.serve_due(now);
        }
    }

    fn serve_due(&mut self, now: Instant) {
        loop {
            let Queue::Managed {
                discipline,
                service,
            } = &mut self.queue
            else {
                return;
            };
            let at = *service;
            if at > now || at == Instant::MAX {
                return;
            }
            let Some(queued) = discipline.dequeue(at, &mut self.ledger) else {
                *service = Instant::MAX;
                return;
            };
            let bytes = queued.item.packet.bytes;
            let departure = self.server.transmit(bytes);
            *service = match discipline.packets() {
                0 => Instant::MAX,
                _ => self.server.resume(),
            };
            self.ledger.stats.queue_delay.record(at - queued.enqueued);
            let arrival = self.propagation.arrival(departure);
            self.fly(Flight {
                arrival,
                item: queued.item,
            });
        }
    }

    #[inline]
    fn fly(&mut self, flight: Flight<P>) {
        if self.keeps_order {
            self.line.push_back(flight);
            return;
        }
        // A displaced packet moves only a few places: search from the back.
        let later = |f: &&Flight<P>| f.arrival > flight.arrival;
        let overtaken = self.line.iter().rev().take_while(later).count();
        self.line.insert(self.line.len() - overtaken, flight);
    }

    #[inline]
    fn check_clock(&mut self, now: Instant) {
        assert!(now >= self.clock, "time decreases on a link");
        self.clock = now;
    }
}

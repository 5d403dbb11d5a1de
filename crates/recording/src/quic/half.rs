//! One direction of a decrypted connection as a capture sees it: what one end sends, and what the other acknowledges.

use gargalo_units::{Count, Duration, Instant, Rate, SenderCounters};
use gargalo_wire::quic::Ack;

use super::board::{Board, Sent};
use super::hello::Delays;
use super::opener::Space;
use crate::Options;
use crate::streams::{Part, Streams};
use crate::tcp::{
    Bursts, Delivered, Event, Limit, Limits, Passages, RoundTrips, Sample, SentPacket, is_stall,
};

/// Acknowledgements by which other times than that of their arrival are told: clocks are coarse, and captures late.
const NEARLY: f64 = 0.95;
/// Longer delays than an end can promise (RFC 9000, section 18.2) are not told.
const MOST_DELAY_US: u64 = 1 << 24;
/// Most doublings of the probe timeout.
const MOST_BACKOFF: u32 = 16;
/// What packets count as where positions of a stream are compared: at least the distance of two positions.
const POSITION: u64 = 4_096;

/// What a packet has, as far as its sender's direction is concerned.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Whether it is to be acknowledged.
    pub eliciting: bool,
    /// Whether it has frames that are neither PING nor PADDING.
    pub is_more: bool,
    /// Data of streams.
    pub parts: Vec<Part>,
    /// The sender says that the receiver's limits keep it from sending.
    pub is_blocked: bool,
}

/// A packet of this direction.
#[derive(Clone, Debug)]
pub struct Passing {
    /// Its space.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// Its length.
    pub size: u64,
    /// Headers of the datagram.
    pub headers: u32,
    /// Its content.
    pub content: Content,
}

/// A direction.
#[derive(Debug)]
pub struct Half {
    boards: [Board; 3],
    in_flight: u64,
    /// The largest packet that carries more than a trial of its size.
    full: u64,

    /// Data of streams that was sent.
    pub sent: Streams,
    /// Data of streams that was acknowledged.
    pub acked: Streams,
    /// When the first data of a stream was seen.
    pub first_data: Option<Instant>,
    /// When the last data of a stream was seen that had not been seen before.
    pub last_data: Option<Instant>,
    /// When something was acknowledged that had not been before.
    pub last_progress: Option<Instant>,
    last_sent: Option<Instant>,
    last_was_short: bool,

    /// Round trips.
    pub rtt: RoundTrips,
    delivered: Delivered,
    delivery_rate: Option<Rate>,
    /// What was limiting.
    pub limits: Limits,
    is_blocked: bool,

    /// When the last episode of losses began, until a packet that was sent later is acknowledged.
    recovery: Option<Instant>,
    /// When the last episode began.
    episode: Option<Instant>,
    /// When the last packet of each space was sent that is to be acknowledged.
    last_eliciting: [Option<Instant>; 3],
    backoff: u32,

    data_passages: Passages,
    ack_passages: Passages,

    /// What was counted.
    pub counters: SenderCounters,
    /// Episodes of losses.
    pub episodes: u64,
    /// Packets that were taken for lost, and acknowledged later.
    pub spurious: u64,
    /// Packets that a probe timeout sent.
    pub probes: u64,
    /// Packets that others had passed.
    pub late_packets: u64,
    /// Packets with acknowledgements and nothing to be acknowledged.
    pub pure_acks: u64,
    /// Acknowledgements with more marks than those before.
    pub echoes: u64,
    marks: u64,
    /// How many packets were sent at once, and how often.
    pub bursts: Bursts,
    /// Stalls.
    pub stalls: u64,

    interval: Duration,
    next_sample: Instant,
    /// Samples at intervals.
    pub samples: Vec<Sample>,
    /// What happened, in the order of time.
    pub events: Vec<(Instant, Event)>,
    /// Packets with data of streams, if they are wanted.
    pub packets: Option<Vec<SentPacket>>,
}

impl Half {
    /// A direction whose first packet passes now.
    pub fn new(now: Instant, options: &Options) -> Self {
        Self {
            boards: Default::default(),
            in_flight: 0,
            full: 0,
            sent: Streams::default(),
            acked: Streams::default(),
            first_data: None,
            last_data: None,
            last_progress: None,
            last_sent: None,
            last_was_short: false,
            rtt: RoundTrips::default(),
            delivered: Delivered::default(),
            delivery_rate: None,
            limits: Limits::new(now),
            is_blocked: false,
            recovery: None,
            episode: None,
            last_eliciting: [None; 3],
            backoff: 0,
            data_passages: Passages::default(),
            ack_passages: Passages::default(),
            counters: SenderCounters {
                spurious_losses: Count::UNKNOWN,
                duplicate_acks: Count::UNKNOWN,
                ..SenderCounters::default()
            },
            episodes: 0,
            spurious: 0,
            probes: 0,
            late_packets: 0,
            pure_acks: 0,
            echoes: 0,
            marks: 0,
            bursts: Bursts::default(),
            stalls: 0,
            interval: options.interval,
            next_sample: now,
            samples: Vec::new(),
            events: Vec::new(),
            packets: options.packets.then(Vec::new),
        }
    }

    /// Length of a full packet.
    pub const fn full_packet(&self) -> u64 {
        self.full
    }

    /// When packets and acknowledgements passed here.
    pub const fn passages(&self) -> [&Passages; 2] {
        [&self.data_passages, &self.ack_passages]
    }

    /// Whether all data that was sent has been acknowledged.
    pub fn is_complete(&self) -> bool {
        self.acked.are_all_of(&self.sent)
    }

    /// Takes a packet. `delays` are those of the end that acknowledges it.
    pub fn on_sent(&mut self, now: Instant, packet: Passing, delays: Delays) {
        let Passing {
            space,
            number,
            size,
            headers,
            content,
        } = packet;
        let board = &self.boards[space as usize];
        if board.has(number) {
            // A device has handed it to the capture twice.
            return;
        }
        if board.largest.is_some_and(|n| number < n) {
            self.late_packets += 1;
        }
        self.expire(now);
        self.sample_until(now);
        let mut row = None;
        let tries_size = content.eliciting && !content.is_more && size > self.full && self.full > 0;
        if !tries_size {
            self.full = self.full.max(size);
        }
        if space == Space::Data {
            self.data_passages
                .record((number + 1).saturating_mul(POSITION), now);
        }
        if content.eliciting {
            self.note_probe(now, space, delays);
            let start = self.sent.bytes();
            let again = self.count(now, size, &content.parts);
            if !content.parts.is_empty()
                && let Some(packets) = &mut self.packets
            {
                row = Some(packets.len());
                packets.push(SentPacket {
                    time: now,
                    start,
                    payload: content.parts.iter().map(|p| p.length as u32).sum(),
                    size: headers + size as u32,
                    again,
                    acknowledged: None,
                });
            }
            if self.in_flight == 0 {
                (self.delivered.at, self.delivered.sent) = (now, now);
            }
            self.in_flight += size;
            self.last_sent = Some(now);
            self.last_eliciting[space as usize] = Some(now);
            self.last_was_short = size < self.full;
        }
        self.is_blocked |= content.is_blocked;
        let sent = Sent {
            time: now,
            size,
            eliciting: content.eliciting,
            tries_size,
            row,
            parts: content.parts,
            then: self.delivered,
        };
        if let Some(forgotten) = self.boards[space as usize].send(number, sent) {
            self.leave(&forgotten);
        }
        self.set_limit(now, false);
    }

    /// Counts a packet that is to be acknowledged; whether data of it had been sent before.
    fn count(&mut self, now: Instant, size: u64, parts: &[Part]) -> bool {
        self.counters.sent_packets += 1;
        let window = self.in_flight + size.max(self.full);
        let even = self
            .rtt
            .smoothed()
            .map(|srtt| srtt.mul_f64(size.max(1) as f64 / window.max(1) as f64));
        let gap = self.last_sent.map(|t| now.saturating_since(t));
        self.bursts.note(1, gap, even);
        let mut is_again = false;
        for part in parts {
            self.counters.sent_bytes += part.length;
            let new = self.sent.add(*part);
            is_again |= new < part.length;
            if new > 0 {
                self.last_data = Some(now);
            }
            self.first_data.get_or_insert(now);
        }
        self.counters.retransmitted_packets += u64::from(is_again);
        is_again
    }

    /// Whether a packet is sent because for long nothing was acknowledged (RFC 9002, section 6.2).
    fn note_probe(&mut self, now: Instant, space: Space, delays: Delays) {
        let waits = self.boards[space as usize].waiting().next().is_some();
        let Some(last) = self.last_eliciting[space as usize].filter(|_| waits) else {
            return;
        };
        let delay = match space {
            Space::Data => delays.most,
            _ => Duration::ZERO,
        };
        let timeout = (self.rtt.probe_timeout() + delay).saturating_mul(1 << self.backoff);
        if now.saturating_since(last) < timeout.mul_f64(NEARLY) {
            return;
        }
        self.backoff = (self.backoff + 1).min(MOST_BACKOFF);
        self.counters.timeouts += 1;
        self.probes += 1;
        self.events.push((now, Event::Probe));
    }

    /// Takes what the other end acknowledges. `delays` are those of that end.
    pub fn on_ack(&mut self, now: Instant, space: Space, ack: &Ack<'_>, delays: Delays) {
        self.expire(now);
        self.sample_until(now);
        let oldest = self.boards[space as usize].waiting().next().map(|p| p.time);
        let acked = self.boards[space as usize].acknowledge(ack);
        if space == Space::Data {
            self.ack_passages
                .record((ack.largest + 1).saturating_mul(POSITION), now);
        }
        if let Some(sent) = acked.sample_of {
            let delay = match space {
                Space::Initial => Duration::ZERO,
                _ => {
                    let delay_us = ack.delay.saturating_mul(1 << delays.exponent);
                    Duration::from_micros(delay_us.min(MOST_DELAY_US)).min(delays.most)
                }
            };
            self.rtt.record_delayed(now.saturating_since(sent), delay);
        }
        if let Some([.., marks]) = ack.ecn
            && marks > self.marks
        {
            self.marks = marks;
            self.echoes += 1;
        }
        let (mut bytes, mut latest) = (0, None);
        for packet in &acked.packets {
            self.leave(packet);
            bytes += if packet.eliciting { packet.size } else { 0 };
            if packet.eliciting && latest.is_none_or(|(t, _)| t <= packet.time) {
                latest = Some((packet.time, packet.then));
            }
        }
        for packet in acked.packets.iter().chain(&acked.spurious) {
            packet.parts.iter().for_each(|part| {
                self.acked.add(*part);
            });
            let row = packet.row.and_then(|n| self.packets.as_mut()?.get_mut(n));
            if let Some(row) = row {
                row.acknowledged = Some(now);
            }
        }
        if !acked.spurious.is_empty() {
            let packets = acked.spurious.len() as u64;
            self.spurious += packets;
            self.events.push((now, Event::Spurious(packets)));
        }
        if let Some(latest) = latest {
            let least = self.rtt.all.min().unwrap_or(Duration::ZERO);
            let rate = self.delivered.advance(now, bytes, latest, least);
            self.delivery_rate = rate.or(self.delivery_rate);
            self.note_progress(now, oldest);
            self.backoff = 0;
            if self.recovery.is_some_and(|began| latest.0 > began) {
                self.recovery = None;
                self.events.push((now, Event::Recovered));
            }
        }
        self.lose(now, space);
        self.set_limit(now, bytes > 0);
    }

    /// Packets that are lost by now.
    fn lose(&mut self, now: Instant, space: Space) {
        let lost = self.boards[space as usize].lost(now, &self.rtt);
        let mut packets = 0;
        let mut latest = None;
        for (_, packet) in lost.iter().filter(|(_, p)| p.eliciting) {
            self.leave(packet);
            if !packet.tries_size {
                packets += 1;
                latest = latest.max(Some(packet.time));
            }
        }
        let Some(latest) = latest else {
            return;
        };
        self.counters.lost_packets += packets;
        self.events.push((now, Event::Loss(packets)));
        // RFC 9002, section 7.3.2: losses of what was sent before an episode belong to it.
        if self.episode.is_none_or(|began| latest > began) {
            self.episodes += 1;
            self.episode = Some(now);
            if self.recovery.is_none() {
                self.events.push((now, Event::Recovery));
            }
            self.recovery = Some(now);
        }
    }

    /// Losses that a timer showed before `now`.
    fn expire(&mut self, now: Instant) {
        for space in [Space::Initial, Space::Handshake, Space::Data] {
            if let Some(due) = self.boards[space as usize].due().filter(|t| *t <= now) {
                self.sample_until(due);
                self.lose(due, space);
            }
        }
    }

    /// The receiver lets the sender send more.
    pub const fn on_limits(&mut self) {
        self.is_blocked = false;
    }

    /// The keys of a space are discarded.
    pub fn discard(&mut self, space: Space) {
        for packet in self.boards[space as usize].discard() {
            self.leave(&packet);
        }
        self.last_eliciting[space as usize] = None;
        self.backoff = 0;
    }

    /// A packet is in flight no more.
    fn leave(&mut self, packet: &Sent) {
        if packet.eliciting {
            self.in_flight = self.in_flight.saturating_sub(packet.size);
        }
    }

    /// Something was acknowledged; the oldest packet that waited for it was sent at `oldest`.
    fn note_progress(&mut self, now: Instant, oldest: Option<Instant>) {
        if let Some(oldest) = oldest {
            let quiet = now.saturating_since(self.last_progress.map_or(oldest, |t| t.max(oldest)));
            if is_stall(quiet, self.rtt.smoothed()) {
                self.stalls += 1;
                self.events.push((now, Event::Stall(quiet)));
            }
        }
        self.last_progress = Some(now);
    }

    fn set_limit(&mut self, now: Instant, acknowledged: bool) {
        let starved = acknowledged && self.last_was_short;
        let limit = match () {
            () if self.is_blocked => Limit::Receiver,
            () if self.in_flight == 0 => Limit::Application,
            () if self.recovery.is_some() => Limit::Recovery,
            () if starved => Limit::Application,
            () => Limit::Network,
        };
        self.limits.set(limit, now);
    }

    /// Records the state at the sampling instants before `now`: at the first of them, since nothing happened after it.
    fn sample_until(&mut self, now: Instant) {
        if now < self.next_sample {
            return;
        }
        self.samples.push(Sample {
            time: self.next_sample,
            in_flight: self.in_flight,
            srtt: self.rtt.smoothed(),
            delivery_rate: self.delivery_rate,
            delivered: self.acked.bytes(),
            received: self.acked.bytes(),
        });
        let step = self.interval.as_nanos().max(1);
        self.next_sample = Instant::from_nanos((now.as_nanos() / step + 1) * step);
    }

    /// The capture ends.
    pub fn finish(&mut self, now: Instant) {
        self.expire(now);
        self.sample_until(now);
        self.bursts.end();
        self.set_limit(now, false);
    }
}

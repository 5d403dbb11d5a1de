//! One direction of a connection as a capture sees it: the data of one end, and what the other acknowledges of it.

use std::collections::VecDeque;

use gargalo_units::{Count, Duration, Ecn, Instant, Rate, SenderCounters, Seq};
use gargalo_wire::tcp::Flags;

use super::bursts::Bursts;
use super::clocks::Passages;
use super::limits::{Limit, Limits};
use super::round_trips::RoundTrips;
use super::scoreboard::{Delivered, Piece, Scoreboard, Sent};
use crate::Options;
use crate::packet::Segment;

/// Duplicate acknowledgements that a loss is concluded from (RFC 5681).
const DUP_THRESH: u32 = 3;
/// Payload of a full segment until more is known: that of Ethernet with the timestamps option.
const USUAL_PAYLOAD: u32 = 1448;
/// Most time stamps that are remembered: at one for each millisecond, of some seconds.
const MOST_STAMPS: usize = 1 << 13;
/// Least time without an acknowledgement of anything that is a stall, if data waits for one.
const STALL: Duration = Duration::from_millis(200);

/// Whether it was a stall that nothing was acknowledged for so long while data waited.
pub fn is_stall(quiet: Duration, srtt: Option<Duration>) -> bool {
    let trips = srtt.unwrap_or(Duration::ZERO).saturating_mul(2);
    quiet > STALL.max(trips)
}

/// Why data was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Acknowledgements showed that later data had arrived (RFC 6675, RFC 8985).
    Fast,
    /// Nothing was acknowledged until the timer expired, or in the recovery after that (RFC 6298).
    Timeout,
    /// The last segment was sent again to have an acknowledgement (RFC 8985, section 7).
    Probe,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// So many packets were sent again, because they were lost as far as the sender knew.
    Loss(u64),
    /// A timeout.
    Timeout,
    /// A tail loss probe.
    Probe,
    /// The first retransmission of an episode.
    Recovery,
    /// All that was sent before this episode is acknowledged.
    Recovered,
    /// So many packets had been sent again without need (RFC 2883).
    Spurious(u64),
    /// The receiver closed its window.
    ZeroWindow,
    /// For so long nothing was acknowledged while data waited.
    Stall(Duration),
}

/// The state at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub time: Instant,
    /// Bytes sent, and neither acknowledged nor lost as far as the acknowledgements show.
    pub in_flight: u64,
    /// Smoothed round trip.
    pub srtt: Option<Duration>,
    /// Latest delivery rate.
    pub delivery_rate: Option<Rate>,
    /// Bytes acknowledged in order.
    pub delivered: u64,
    /// Bytes acknowledged, in order or not.
    pub received: u64,
}

/// Retransmissions of each kind, in packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retransmissions {
    /// By acknowledgements.
    pub fast: u64,
    /// By a timer.
    pub timeout: u64,
    /// Probes.
    pub probe: u64,
    /// Without need, as the receiver reported.
    pub spurious: u64,
}

/// Packets by the ECN field of the IP header, and acknowledgements that echo a mark (RFC 3168).
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// ECN-capable, without a mark.
    pub capable: u64,
    /// Congestion Experienced.
    pub marked: u64,
    /// Acknowledgements with the flag ECE.
    pub echoes: u64,
}

/// A packet with data, as its sender sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// When.
    pub time: Instant,
    /// Its first byte, counted from the first of the stream.
    pub start: u64,
    /// Payload.
    pub payload: u32,
    /// With the headers of IP and TCP.
    pub size: u32,
    /// Whether all or a part of it had been sent before.
    pub again: bool,
    /// When it was first acknowledged, unless its data was sent again before.
    pub acknowledged: Option<Instant>,
}

/// The packet that carried a piece last has been acknowledged, unless another acknowledgement had named it.
fn mark(packets: &mut Option<Vec<SentPacket>>, piece: &Piece, fresh: bool, now: Instant) {
    let packet = packets.as_mut().and_then(|all| all.get_mut(piece.packet));
    if let Some(packet) = packet.filter(|_| fresh) {
        packet.acknowledged.get_or_insert(now);
    }
}

/// What an acknowledgement delivered.
#[derive(Debug, Default)]
struct Delivery {
    bytes: u64,
    /// The piece sent last of those that were sent once.
    newest: Option<Piece>,
    /// The piece sent last of all.
    latest: Option<Piece>,
    /// Whether one of them was sent more than once.
    resent: bool,
}

impl Delivery {
    /// Takes a piece, unless another acknowledgement had named it.
    fn take(&mut self, piece: &Piece, fresh: bool) {
        if !fresh {
            return;
        }
        self.bytes += piece.len();
        self.resent |= piece.transmissions > 1;
        let is_later = |than: Option<Piece>| than.is_none_or(|p| p.last <= piece.last);
        if piece.transmissions == 1 && is_later(self.newest) {
            self.newest = Some(*piece);
        }
        if is_later(self.latest) {
            self.latest = Some(*piece);
        }
    }
}

/// A direction with data.
#[derive(Debug)]
pub struct Half {
    base: Seq,
    board: Scoreboard,
    /// Payload of a full segment.
    full: u32,
    fin: Option<u64>,
    /// The end of the window that the receiver advertised.
    edge: Option<u64>,
    /// Its window is closed.
    closed: bool,

    /// When the first data was sent, and when the last of it was delivered or acknowledged.
    pub first_data: Option<Instant>,
    /// When something was acknowledged that had not been before.
    pub last_progress: Option<Instant>,
    /// When the last data was seen that had not been seen before.
    pub last_new: Option<Instant>,
    /// When the last data was seen.
    last_sent: Option<Instant>,
    last_was_short: bool,

    /// Round trips.
    pub rtt: RoundTrips,
    /// Time stamps of the sender, and when each was sent first.
    stamps: VecDeque<(u32, Instant)>,
    delivered: Delivered,
    delivery_rate: Option<Rate>,
    /// What was limiting.
    pub limits: Limits,

    /// The byte with which the present recovery ends.
    recovery: Option<u64>,
    by_timeout: bool,
    duplicates_in_row: u32,
    /// Number of the event that has what was lost since the last acknowledgement.
    lost: Option<usize>,

    data_passages: Passages,
    ack_passages: Passages,

    /// What was counted.
    pub counters: SenderCounters,
    /// Retransmissions by kind.
    pub retransmissions: Retransmissions,
    /// Packets with data that others had passed, or of which the capture has only a retransmission.
    pub late_packets: u64,
    /// ECN.
    pub marks: Marks,
    /// Acknowledgements without data.
    pub pure_acks: u64,
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
    /// Packets with data, if they are wanted.
    pub packets: Option<Vec<SentPacket>>,
}

impl Half {
    /// A direction whose first byte of data has this sequence number.
    pub fn new(base: Seq, now: Instant, options: &Options) -> Self {
        Self {
            base,
            board: Scoreboard::new(0),
            full: USUAL_PAYLOAD,
            fin: None,
            edge: None,
            closed: false,
            first_data: None,
            last_progress: None,
            last_new: None,
            last_sent: None,
            last_was_short: false,
            rtt: RoundTrips::default(),
            stamps: VecDeque::new(),
            delivered: Delivered::default(),
            delivery_rate: None,
            limits: Limits::new(now),
            recovery: None,
            by_timeout: false,
            duplicates_in_row: 0,
            lost: None,
            data_passages: Passages::default(),
            ack_passages: Passages::default(),
            counters: SenderCounters {
                spurious_losses: Count::UNKNOWN,
                ..SenderCounters::default()
            },
            retransmissions: Retransmissions::default(),
            late_packets: 0,
            marks: Marks::default(),
            pure_acks: 0,
            bursts: Bursts::default(),
            stalls: 0,
            interval: options.interval,
            next_sample: now,
            samples: Vec::new(),
            events: Vec::new(),
            packets: options.packets.then(Vec::new),
        }
    }

    /// The handshake says how much a full segment has.
    pub fn set_full_segment(&mut self, payload: u32) {
        self.full = payload.max(1);
    }

    /// Payload of a full segment.
    pub const fn full_segment(&self) -> u32 {
        self.full
    }

    /// When data and acknowledgements passed here.
    pub const fn passages(&self) -> [&Passages; 2] {
        [&self.data_passages, &self.ack_passages]
    }

    /// Bytes acknowledged in order.
    pub const fn delivered(&self) -> u64 {
        self.board.una()
    }

    /// Bytes of the stream that have been sent, each once.
    pub const fn sent(&self) -> u64 {
        self.board.next()
    }

    /// Whether the end of the stream has been acknowledged.
    pub fn is_complete(&self) -> bool {
        self.fin.is_some_and(|end| self.board.una() >= end)
    }

    /// Takes a segment with data, or the end of the stream.
    pub fn on_data(&mut self, now: Instant, segment: &Segment, ecn: Ecn) {
        let Some(start) = segment.seq.unwrap_near(self.base, self.board.next()) else {
            return;
        };
        let end = start + u64::from(segment.payload);
        if segment.flags.contains(Flags::FIN) {
            self.fin = Some(end);
        }
        if segment.payload == 0 || (segment.payload == 1 && end <= self.board.una()) {
            // The end alone, or a probe of a connection that is idle or whose window is closed.
            return;
        }
        self.sample_until(now);
        self.note_burst(now, segment.payload);
        self.note_stamp(now, segment);
        if self.board.una() == self.board.next() {
            (self.delivered.at, self.delivered.sent) = (now, now);
        }
        let kind = self.kind_of(now, start, end);
        let sent = self.send(now, start, segment);
        self.count(now, segment.payload, kind, sent);
        self.data_passages.record(self.board.next(), now);
        match ecn {
            Ecn::NotEct => (),
            Ecn::Ce => self.marks.marked += 1,
            _ => self.marks.capable += 1,
        }
        self.first_data.get_or_insert(now);
        self.last_sent = Some(now);
        self.last_was_short = !segment.payload.is_multiple_of(self.full);
        self.set_limit(now, false);
    }

    /// Records a segment; as the packets that it becomes if a device cuts it, if packets are wanted.
    fn send(&mut self, now: Instant, start: u64, segment: &Segment) -> Sent {
        let end = start + u64::from(segment.payload);
        let Some(packets) = &mut self.packets else {
            return self.board.send(0, (start, end), now, self.delivered);
        };
        let (mut sent, mut at) = (Sent::default(), start);
        while at < end {
            let payload = self.full.min((end - at) as u32);
            let range = (at, at + u64::from(payload));
            let one = self.board.send(packets.len(), range, now, self.delivered);
            packets.push(SentPacket {
                time: now,
                start: at,
                payload,
                size: segment.headers + payload,
                again: one.again > 0,
                acknowledged: None,
            });
            sent += one;
            at = range.1;
        }
        sent
    }

    /// Counts a segment, as the packets that it becomes if a device cuts it.
    fn count(&mut self, now: Instant, payload: u32, kind: Kind, sent: Sent) {
        let packets = |bytes: u64| bytes.div_ceil(u64::from(self.full));
        let (all, late) = (packets(u64::from(payload)), packets(sent.late));
        let again = packets(sent.again);
        if sent.new + sent.late > 0 {
            self.last_new = Some(now);
        }
        self.counters.sent_packets += all;
        self.counters.sent_bytes += u64::from(payload);
        self.late_packets += late;
        if again == 0 {
            return;
        }
        self.counters.retransmitted_packets += again;
        match kind {
            Kind::Probe => {
                self.retransmissions.probe += again;
                self.events.push((now, Event::Probe));
                return;
            }
            Kind::Fast => self.retransmissions.fast += again,
            Kind::Timeout => self.retransmissions.timeout += again,
        }
        self.counters.lost_packets += again;
        match self.lost.and_then(|i| self.events.get_mut(i)) {
            Some((_, Event::Loss(packets))) => *packets += again,
            _ => {
                self.lost = Some(self.events.len());
                self.events.push((now, Event::Loss(again)));
            }
        }
        let begins = kind == Kind::Timeout && !(self.by_timeout && self.recovery.is_some());
        if begins {
            self.counters.timeouts += 1;
            self.events.push((now, Event::Timeout));
        }
        if self.recovery.is_none() {
            self.events.push((now, Event::Recovery));
        }
        if begins || self.recovery.is_none() {
            self.by_timeout = kind == Kind::Timeout;
            self.recovery = Some(self.board.next());
        }
    }

    /// Why what lies between these bytes is sent now, if it is sent again.
    fn kind_of(&self, now: Instant, start: u64, end: u64) -> Kind {
        let shown = self.board.highest_sacked() > start || self.duplicates_in_row >= DUP_THRESH;
        let since = self.last_sent.max(self.last_progress);
        let quiet = since.map_or(Duration::ZERO, |t| now.saturating_since(t));
        let srtt = self.rtt.smoothed().unwrap_or(Duration::from_millis(100));
        let (is_first, is_last) = (start <= self.board.una(), end >= self.board.next());
        // Timers of hosts are coarse, and captures are a little late.
        let expired = quiet >= self.rtt.timeout().mul_f64(0.9);
        match (is_first, is_last) {
            (true, _) if expired => Kind::Timeout,
            (_, true) if quiet >= srtt && !shown => Kind::Probe,
            _ if self.recovery.is_some() && self.by_timeout && !shown => Kind::Timeout,
            _ => Kind::Fast,
        }
    }

    /// Takes what a segment of the other end acknowledges, with its window in bytes if that is known.
    pub fn on_ack(&mut self, now: Instant, segment: &Segment, window: Option<u64>) {
        let Some(ack) = segment.ack.unwrap_near(self.base, self.board.next()) else {
            return;
        };
        // The end of the stream has a sequence number of its own.
        let ack = match self.fin {
            Some(end) if ack == end + 1 => end,
            _ => ack,
        };
        self.sample_until(now);
        self.lost = None;
        if segment.payload == 0 {
            self.pure_acks += 1;
        }
        self.marks.echoes += u64::from(segment.flags.contains(Flags::ECE));
        let before = self.board.una();
        let mut delivery = Delivery::default();
        let oldest = self.board.pieces().next().map(|p| p.first);
        let waiting = self.board.next() > before;
        self.board.acknowledge(ack, |p| {
            delivery.take(p, !p.sacked);
            mark(&mut self.packets, p, !p.sacked, now);
        });
        // Data behind a hole that is filled may have arrived long ago (Karn; RFC 6298, section 3).
        let of_hole = delivery.resent;
        self.ack_passages.record(ack, now);
        let blocks = segment.options.sack.as_slice();
        let mut spurious = 0;
        for (i, (left, right)) in blocks.iter().enumerate() {
            let near = self.board.next();
            let range = (
                left.unwrap_near(self.base, near),
                right.unwrap_near(self.base, near),
            );
            let (Some(left), Some(right)) = range else {
                continue;
            };
            let within = |(l, r): &(Seq, Seq)| {
                l.unwrap_near(self.base, near).is_some_and(|l| l <= left)
                    && r.unwrap_near(self.base, near).is_some_and(|r| right <= r)
            };
            if i == 0 && (right <= ack || blocks.get(1).is_some_and(within)) {
                // RFC 2883: the first block tells of data that had arrived before.
                spurious = right.saturating_sub(left).div_ceil(u64::from(self.full));
            } else {
                self.board.sack(left, right, |p| {
                    delivery.take(p, true);
                    mark(&mut self.packets, p, true, now);
                });
            }
        }
        if spurious > 0 {
            self.retransmissions.spurious += spurious;
            self.events.push((now, Event::Spurious(spurious)));
        }
        let sample = match delivery.newest {
            Some(piece) if !of_hole => Some(now.saturating_since(piece.last)),
            _ if ack > before => self.echoed(now, segment),
            _ => None,
        };
        if let Some(sample) = sample {
            self.rtt.record(sample);
        }
        if let Some(piece) = delivery.latest {
            self.note_delivery(now, delivery.bytes, &piece);
        }
        self.note_window(now, ack, window, segment, before, waiting);
        if delivery.bytes > 0 || ack > before {
            self.note_progress(now, oldest);
        }
        if self.recovery.is_some_and(|end| self.board.una() >= end) {
            self.recovery = None;
            self.by_timeout = false;
            self.events.push((now, Event::Recovered));
        }
        self.set_limit(now, delivery.bytes > 0);
    }

    /// The round trip by the time stamp that an acknowledgement echoes (RFC 7323, section 4): since the first segment
    /// that had it.
    fn echoed(&mut self, now: Instant, segment: &Segment) -> Option<Duration> {
        let echo = segment.options.timestamps?.echo;
        let (_, sent) = self.stamps.iter().rev().find(|(value, _)| *value == echo)?;
        Some(now.saturating_since(*sent))
    }

    /// Remembers when a time stamp was sent for the first time.
    fn note_stamp(&mut self, now: Instant, segment: &Segment) {
        let Some(stamps) = segment.options.timestamps else {
            return;
        };
        if self
            .stamps
            .back()
            .is_none_or(|(value, _)| (stamps.value.wrapping_sub(*value) as i32) > 0)
        {
            self.stamps.push_back((stamps.value, now));
            if self.stamps.len() > MOST_STAMPS {
                self.stamps.pop_front();
            }
        }
    }

    /// A sample of the delivery rate (draft-ietf-ccwg-bbr, section 4.1.2).
    fn note_delivery(&mut self, now: Instant, bytes: u64, piece: &Piece) {
        let least = self.rtt.all.min().unwrap_or(Duration::ZERO);
        let rate = self
            .delivered
            .advance(now, bytes, (piece.last, piece.then), least);
        self.delivery_rate = rate.or(self.delivery_rate);
    }

    /// The window that was advertised, and whether this acknowledgement is a duplicate.
    fn note_window(
        &mut self,
        now: Instant,
        ack: u64,
        window: Option<u64>,
        segment: &Segment,
        before: u64,
        waiting: bool,
    ) {
        let edge = window.map(|w| ack + w);
        let same = self.edge == edge;
        self.edge = self.edge.max(edge);
        if window == Some(0) && !self.closed {
            self.events.push((now, Event::ZeroWindow));
        }
        self.closed = window == Some(0);
        let plain = segment.payload == 0
            && !segment
                .flags
                .intersects(Flags::SYN | Flags::FIN | Flags::RST);
        let sacks = !segment.options.sack.is_empty();
        if plain && ack == before && waiting && (same || sacks) {
            self.counters.duplicate_acks += 1;
            self.duplicates_in_row += 1;
        } else if ack > before {
            self.duplicates_in_row = 0;
        }
    }

    /// Something was acknowledged; the oldest data that waited for it was sent at `oldest`.
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

    /// What limits the sender now, after an acknowledgement of new data or not.
    fn set_limit(&mut self, now: Instant, acknowledged: bool) {
        let next = self.board.next();
        let starved = acknowledged && self.last_was_short;
        let limit = if self.board.una() == next {
            Limit::Application
        } else if self.recovery.is_some() {
            Limit::Recovery
        } else if self.edge.is_some_and(|e| e < next + u64::from(self.full)) {
            Limit::Receiver
        } else if starved {
            Limit::Application
        } else {
            Limit::Network
        };
        self.limits.set(limit, now);
    }

    /// Bytes that are on their way as far as the acknowledgements show: what has neither arrived nor been passed by
    /// three segments that did (RFC 6675), but for what was sent again since.
    fn in_flight(&self) -> u64 {
        let lost_below = self
            .board
            .highest_sacked()
            .saturating_sub(u64::from(DUP_THRESH * self.full));
        let flying = |p: &&Piece| !p.sacked && (p.transmissions > 1 || p.end > lost_below);
        match self.board.sacked() {
            0 => self.board.next() - self.board.una(),
            _ => self.board.pieces().filter(flying).map(Piece::len).sum(),
        }
    }

    /// Whether this packet was sent at once with the one before: within a quarter of the time that lies between two
    /// packets if those of a round trip are spread evenly.
    fn note_burst(&mut self, now: Instant, payload: u32) {
        let packets = payload.div_ceil(self.full);
        let window = self.board.next() - self.board.una() + u64::from(self.full);
        let share = f64::from(self.full) / window as f64;
        let even = self.rtt.smoothed().map(|srtt| srtt.mul_f64(share));
        let gap = self.last_sent.map(|t| now.saturating_since(t));
        self.bursts.note(packets, gap, even);
    }

    /// Records the state at the sampling instants before `now`: at the first of them, since nothing happened after it.
    fn sample_until(&mut self, now: Instant) {
        if now < self.next_sample {
            return;
        }
        self.samples.push(Sample {
            time: self.next_sample,
            in_flight: self.in_flight(),
            srtt: self.rtt.smoothed(),
            delivery_rate: self.delivery_rate,
            delivered: self.board.una(),
            received: self.board.una() + self.board.sacked(),
        });
        let step = self.interval.as_nanos().max(1);
        self.next_sample = Instant::from_nanos((now.as_nanos() / step + 1) * step);
    }

    /// The capture ends.
    pub fn finish(&mut self, now: Instant) {
        self.sample_until(now);
        self.bursts.end();
        self.set_limit(now, false);
    }
}

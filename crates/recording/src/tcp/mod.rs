//! TCP connections of a capture.

mod bursts;
mod clocks;
mod half;
mod limits;
mod membership;
mod round_trips;
mod scoreboard;
mod turnaround;

use std::net::SocketAddr;

use gargalo_units::{Duration, Instant, Seq};
use gargalo_wire::tcp::Flags;

pub use bursts::Bursts;
pub use clocks::{Offset, Passages, offset, offset_by};
pub use half::{Event, Half, Sample, SentPacket, is_stall};
pub use limits::{Limit, Limits, Spent};
pub use membership::{DataAcks, Membership};
pub use round_trips::RoundTrips;
pub use scoreboard::Delivered;
use turnaround::Turnaround;

use crate::Options;
use crate::packet::{Packet, Segment};

/// Length of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS_LEN: u32 = 12;
/// Greatest shift of a window (RFC 7323, section 2.3).
const MOST_SHIFT: u8 = 14;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// The end that opened it, or that was seen first, and the other.
    pub ends: [SocketAddr; 2],
    /// The first packet.
    pub first: Instant,
    /// The last packet.
    pub last: Instant,
    /// Whether it was reset.
    pub reset: bool,
    /// What it has to do with Multipath TCP, if anything.
    pub membership: Option<Box<Membership>>,
    /// What each place of capture saw of it.
    pub views: Vec<View>,
}

/// A connection at one place.
#[derive(Debug)]
pub struct View {
    /// Number of the place.
    pub place: usize,
    /// The first packet there.
    pub first: Option<Instant>,
    /// The last packet there.
    pub last: Option<Instant>,
    /// The first SYN, the first answer to it, and what followed that.
    pub handshake: Handshake,
    /// The data of each end, and its acknowledgements.
    pub halves: [Option<Half>; 2],
    opening: [Option<Opening>; 2],
    turnarounds: [Turnaround; 2],
}

/// When the packets of a handshake passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// The last SYN before the answer: which one it answers is not known otherwise.
    pub syn: Option<Instant>,
    /// The first SYN.
    pub first_syn: Option<Instant>,
    /// The first answer.
    pub syn_ack: Option<Instant>,
    /// The third packet.
    pub ack: Option<Instant>,
    /// The soonest that each end has answered what had passed, if later packets tell.
    pub soonest: [Option<Duration>; 2],
}

impl Handshake {
    /// The round trip that a packet has ended, `before` which it was in this state; `None` if a SYN was sent twice.
    fn sample(&self, before: &Self) -> Option<Duration> {
        if self.first_syn != self.syn {
            return None;
        }
        match (before, self) {
            (
                Self {
                    syn: Some(syn),
                    syn_ack: None,
                    ..
                },
                Self {
                    syn_ack: Some(answer),
                    ..
                },
            ) => Some(answer.saturating_since(*syn)),
            (
                Self {
                    syn_ack: Some(answer),
                    ack: None,
                    ..
                },
                Self { ack: Some(ack), .. },
            ) => Some(ack.saturating_since(*answer)),
            _ => None,
        }
    }
}

impl Handshake {
    /// On which side of the data of `sender` this place is, by the handshake.
    pub fn side_of(&self, sender: usize) -> Option<Side> {
        let before = self.share_before(sender)?;
        Some(match () {
            () if before <= 0.1 => Side::Sender,
            () if before >= 0.9 => Side::Receiver,
            () => Side::Between,
        })
    }

    /// The share of the handshake's round trip that was between the sender of data and this place. An end may be late
    /// in a handshake; that any of its answers was sooner tells that it is nearer.
    pub fn share_before(&self, sender: usize) -> Option<f64> {
        let (syn, syn_ack, ack) = (self.syn?, self.syn_ack?, self.ack?);
        let least = |took: Duration, end: usize| {
            let soonest = self.soonest[end].unwrap_or(took);
            took.min(soonest).as_nanos()
        };
        let toward_server = least(syn_ack.saturating_since(syn), 1);
        let toward_client = least(ack.saturating_since(syn_ack), 0);
        let before = if sender == 0 {
            toward_client
        } else {
            toward_server
        };
        let all = toward_server + toward_client;
        // Both at once: nothing is between.
        Some(if all == 0 {
            0.0
        } else {
            before as f64 / all as f64
        })
    }
}

/// What an end said in its SYN.
#[derive(Clone, Copy, Debug)]
struct Opening {
    isn: Seq,
    mss: u32,
    shift: Option<u8>,
    timestamps: bool,
}

/// Where between two ends packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// At the sender of the data, or so near that nine tenths of the round trip are behind.
    Sender,
    /// As near to its receiver.
    Receiver,
    /// In between.
    Between,
}

impl Connection {
    /// One whose first packet is this.
    pub fn new(packet: &Packet, segment: &Segment) -> Self {
        // Who answers did not open it.
        let answer = segment.flags.contains(Flags::SYN | Flags::ACK);
        let ends = match answer {
            true => [packet.to, packet.from],
            false => [packet.from, packet.to],
        };
        Self {
            ends,
            first: packet.time,
            last: packet.time,
            reset: false,
            membership: None,
            views: Vec::new(),
        }
    }

    /// Whether a SYN begins another connection between the same ports: this one has another initial sequence number.
    pub fn is_over(&self, packet: &Packet, segment: &Segment) -> bool {
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::ACK) {
            return false;
        }
        let from = usize::from(packet.from != self.ends[0]);
        let known = self.views.iter().find_map(|v| v.opening[from]);
        match known {
            Some(opening) => opening.isn != segment.seq,
            // Its beginning was not captured, and now one is.
            None => self
                .views
                .iter()
                .any(|v| v.halves.iter().any(Option::is_some)),
        }
    }

    /// Takes a packet of it.
    pub fn on_packet(&mut self, packet: &Packet, segment: &Segment, options: &Options) {
        self.last = self.last.max(packet.time);
        self.first = self.first.min(packet.time);
        self.reset |= segment.flags.contains(Flags::RST);
        let from = usize::from(packet.from != self.ends[0]);
        if let Some(list) = segment.options.mptcp.as_deref() {
            let membership = self.membership.get_or_insert_default();
            membership.note(packet, list, from, options.interval);
        }
        let i = match self.views.iter().position(|v| v.place == packet.place) {
            Some(i) => i,
            None => {
                self.views.push(View::new(packet.place));
                self.views.len() - 1
            }
        };
        self.views[i].on_segment(packet, segment, from, options);
    }

    /// When its handshake was complete, where that was seen first.
    pub fn established(&self) -> Option<Instant> {
        self.views.iter().filter_map(|v| v.handshake.ack).min()
    }

    /// The end whose data is the connection's: the one that sent more.
    pub fn sender(&self) -> usize {
        let sent = |end: usize| {
            let halves = self.views.iter().filter_map(|v| v.halves[end].as_ref());
            halves.map(Half::sent).max().unwrap_or(0)
        };
        usize::from(sent(1) > sent(0))
    }

    /// The places where the data of an end was seen first and last.
    pub fn places_of(&self, end: usize) -> Option<(&View, &View)> {
        first_and_last(&self.views, end)
    }

    /// How far the clock at the second place is from that at the first, by the data of `end` and its acknowledgements.
    pub fn offset(end: usize, first: &View, last: &View) -> Option<Offset> {
        let (first, last) = (first.halves[end].as_ref()?, last.halves[end].as_ref()?);
        clocks::offset(first.passages(), last.passages())
    }

    /// The capture ends.
    pub fn finish(&mut self, now: Instant) {
        for half in self
            .views
            .iter_mut()
            .flat_map(|v| v.halves.iter_mut().flatten())
        {
            half.finish(now.min(self.last));
        }
    }
}

/// What a place has seen of a connection.
pub trait Seeing {
    /// The handshake there.
    fn handshake(&self) -> &Handshake;
    /// When it saw data of an end first.
    fn first_data(&self, end: usize) -> Option<Instant>;
    /// How much data of an end it saw.
    fn seen(&self, end: usize) -> u64;
}

/// The places where the data of an end was seen first and last.
pub fn first_and_last<V: Seeing>(views: &[V], end: usize) -> Option<(&V, &V)> {
    let seeing = || views.iter().filter(|v| v.first_data(end).is_some());
    let most = seeing().map(|v| v.seen(end)).max()?;
    // A place that saw a part only is none to measure at.
    let whole = |v: &&V| v.seen(end) >= most - most / 20;
    // The handshake tells which place is nearer, whatever the clocks; without one their times do.
    let share = |v: &V| v.handshake().share_before(end);
    let all: Option<Vec<f64>> = seeing().map(share).collect();
    let order = |v: &&V| {
        let share = share(v).filter(|_| all.is_some());
        ((share.unwrap_or(0.0) * 1e6) as u64, v.first_data(end))
    };
    let first = seeing().filter(whole).min_by_key(order)?;
    let last = seeing().filter(whole).max_by_key(order)?;
    Some((first, last))
}

impl Seeing for View {
    fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    fn first_data(&self, end: usize) -> Option<Instant> {
        self.halves[end].as_ref()?.first_data
    }

    fn seen(&self, end: usize) -> u64 {
        self.halves[end].as_ref().map_or(0, Half::sent)
    }
}

impl View {
    fn new(place: usize) -> Self {
        Self {
            place,
            first: None,
            last: None,
            handshake: Handshake::default(),
            halves: [None, None],
            opening: [None, None],
            turnarounds: Default::default(),
        }
    }

    fn on_segment(&mut self, packet: &Packet, segment: &Segment, from: usize, options: &Options) {
        let (now, flags) = (packet.time, segment.flags);
        self.first.get_or_insert(now);
        self.last = Some(now);
        let syn = flags.contains(Flags::SYN);
        let before = self.handshake;
        if syn {
            self.open(now, segment, from);
        } else if from == 0 && flags.contains(Flags::ACK) && before.syn_ack.is_some() {
            self.handshake.ack.get_or_insert(now);
        }
        if flags.contains(Flags::RST) {
            return;
        }
        if let Some(stamps) = segment.options.timestamps {
            self.turnarounds[1 - from].on_packet(now, stamps);
            self.turnarounds[from].on_answer(now, stamps);
            self.handshake.soonest[from] = self.turnarounds[from].least;
        }
        // Data in a SYN (RFC 7413) follows it.
        let first = segment.seq + u32::from(syn);
        if segment.payload > 0 || flags.contains(Flags::FIN) {
            let base = self.opening[from].map_or(first, |o| o.isn + 1);
            let segment = Segment {
                seq: first,
                ..segment.clone()
            };
            let full = self.full_segment();
            let half = self.halves[from].get_or_insert_with(|| Half::new(base, now, options));
            if let Some(full) = full {
                half.set_full_segment(full);
            }
            half.on_data(now, &segment, packet.ecn);
        }
        if flags.contains(Flags::ACK) {
            let window = self.window(segment, from, syn);
            let other = 1 - from;
            let opening = self.opening[other];
            let half = match opening {
                Some(o) => {
                    self.halves[other].get_or_insert_with(|| Half::new(o.isn + 1, now, options))
                }
                None => match &mut self.halves[other] {
                    Some(half) => half,
                    None => return,
                },
            };
            half.on_ack(now, segment, window);
            if let Some(sample) = self.handshake.sample(&before)
                && let Some(half) = &mut self.halves[other]
            {
                half.rtt.record(sample);
            }
        }
    }

    fn open(&mut self, now: Instant, segment: &Segment, from: usize) {
        let extra = segment.options.extra.as_deref();
        self.opening[from] = Some(Opening {
            isn: segment.seq,
            // RFC 9293, section 3.7.1.
            mss: extra.and_then(|e| e.mss).map_or(536, u32::from),
            shift: extra.and_then(|e| e.window_scale),
            timestamps: segment.options.timestamps.is_some(),
        });
        let handshake = &mut self.handshake;
        match segment.flags.contains(Flags::ACK) {
            true => {
                handshake.syn_ack.get_or_insert(now);
            }
            false if handshake.syn_ack.is_none() => {
                handshake.first_syn.get_or_insert(now);
                handshake.syn = Some(now);
            }
            false => (),
        }
    }

    /// Payload of a full segment as both ends announced it.
    fn full_segment(&self) -> Option<u32> {
        let [a, b] = [self.opening[0]?, self.opening[1]?];
        let options = if a.timestamps && b.timestamps {
            TIMESTAMPS_LEN
        } else {
            0
        };
        Some(a.mss.min(b.mss).saturating_sub(options).max(1))
    }

    /// The window of a segment in bytes; `None` if the capture lacks the handshake that says what it is counted in.
    fn window(&self, segment: &Segment, from: usize, syn: bool) -> Option<u64> {
        let window = u64::from(segment.window);
        if syn {
            return Some(window);
        }
        let [own, other] = [self.opening[from]?, self.opening[1 - from]?];
        Some(match (own.shift, other.shift) {
            (Some(shift), Some(_)) => window << shift.min(MOST_SHIFT),
            _ => window,
        })
    }

    /// On which side of the data of `sender` this place is, by the handshake.
    pub fn side_of(&self, sender: usize) -> Option<Side> {
        self.handshake.side_of(sender)
    }
}

//! UDP flows of a capture: datagrams between two ports, by their sizes and times.

use std::cmp::Reverse;
use std::net::SocketAddr;

use gargalo_units::{Duration, Ecn, Instant};

use crate::crossings::{Marks, Selection};
use crate::packet::Packet;
use crate::rtp;

/// Datagrams between two ports.
#[derive(Debug)]
pub struct Conversation {
    /// The end that sent first, and the other.
    pub ends: [SocketAddr; 2],
    /// The first packet.
    pub first: Instant,
    /// The last packet.
    pub last: Instant,
    /// What each place saw of each end's datagrams.
    pub views: Vec<(usize, [Seen; 2])>,
    /// By what each place knows each end's datagrams, in the order of the views.
    pub marks: Vec<[Marks; 2]>,
}

/// What one place saw of one direction.
#[derive(Debug, Default)]
pub struct Seen {
    /// Datagrams.
    pub datagrams: u64,
    /// Payload.
    pub bytes: u64,
    /// The first and the last of them.
    pub span: Option<(Instant, Instant)>,
    /// Datagrams with a mark of congestion.
    pub marked: u64,
    /// Others that were sent ECN-capable.
    pub capable: u64,
    /// Payload until the sampling instants.
    pub samples: Vec<(Instant, u64)>,
    /// What they are as RTP.
    pub rtp: rtp::Stream,
}

/// Bytes of payload, and what it is if it is RTP.
type Content = (u32, Option<rtp::Header>);

impl Conversation {
    /// One that begins with this packet.
    pub fn new(packet: &Packet) -> Self {
        Self {
            ends: [packet.from, packet.to],
            first: packet.time,
            last: packet.time,
            views: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Takes a datagram of it, which is known by this mark.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        content: Content,
        interval: Duration,
        (mark, selection): (u64, &mut Selection),
    ) {
        self.first = self.first.min(packet.time);
        self.last = self.last.max(packet.time);
        let from = usize::from(packet.from != self.ends[0]);
        let i = match self.views.iter().position(|v| v.0 == packet.place) {
            Some(i) => i,
            None => {
                self.views.push((packet.place, Default::default()));
                self.marks.push(Default::default());
                self.views.len() - 1
            }
        };
        self.views[i].1[from].take(packet, content, interval);
        self.marks[i][from].pass(mark, packet.time, selection);
    }

    /// Forgets datagrams that are no longer selected.
    pub fn thin(&mut self, selection: &mut Selection) {
        let marks = self.marks.iter_mut().flatten();
        marks.for_each(|m| m.thin(selection));
    }

    /// The end whose datagrams are the flow: the one that sent more.
    pub fn sender(&self) -> usize {
        let sent = |end: usize| self.views.iter().map(|v| v.1[end].bytes).max();
        usize::from(sent(1) > sent(0))
    }

    /// The numbers of the views that saw an end's datagrams first and last, by the clocks there.
    pub fn seen_of(&self, end: usize) -> Option<(usize, usize)> {
        let begins = || {
            let views = self.views.iter().enumerate();
            views.filter_map(|(i, v)| Some((v.1[end].span?.0, i)))
        };
        // Of those at once the one that was there first.
        let last = begins().max_by_key(|(begin, i)| (*begin, Reverse(*i)));
        Some((begins().min()?.1, last?.1))
    }
}

impl Seen {
    /// Takes a datagram of this direction.
    pub fn take(&mut self, packet: &Packet, (payload, header): Content, interval: Duration) {
        let now = packet.time;
        let step = interval.as_nanos().max(1);
        let due = self
            .samples
            .last()
            .map_or(0, |(at, _)| at.as_nanos() + step);
        if now.as_nanos() >= due {
            let at = Instant::from_nanos(now.as_nanos() / step * step);
            self.samples.push((at, self.bytes));
        }
        self.datagrams += 1;
        self.bytes += u64::from(payload);
        self.marked += u64::from(packet.ecn == Ecn::Ce);
        self.capable += u64::from(matches!(packet.ecn, Ecn::Ect0 | Ecn::Ect1));
        self.rtp.take(now, header);
        let first = self.span.map_or(now, |s| s.0);
        self.span = Some((first, now));
    }
}

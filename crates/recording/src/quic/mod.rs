//! QUIC connections of a capture (RFC 9000, RFC 9001, RFC 9002, RFC 9369): by sizes, times and the spin bit, and, where
//! a key log has their secrets, by what is in their packets.

mod board;
mod half;
mod hello;
mod identifiers;
mod opener;
mod protection;
mod spin;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use gargalo_units::{Duration, Instant};
use gargalo_wire::quic::{Frame, Frames, Header, Kind, Packet, packets};

use crate::Options;
use crate::facts::Encrypted;
use crate::packet;
use crate::secrets::Secrets;
use crate::streams::Part;
use crate::tcp::{Handshake, Offset, Seeing, offset};
use crate::udp::Seen;
pub use half::Half;
use half::{Content, Passing};
pub use identifiers::Identifiers;
use opener::{Opened, Opener, Sealed, Space};
pub use spin::Spin;

/// Most connection identifiers that are remembered of each end.
const MOST_IDS: usize = 256;
/// Most pairs of addresses of a connection.
const MOST_ADDRESSES: usize = 64;
/// Initial packets of a client that come so soon after each other are of one flight.
const FLIGHT: Duration = Duration::from_millis(10);
/// Longest datagram over Ethernet. What is longer may be several that a device was to send.
const LONGEST: usize = 1_472;
/// Shortest packets of which a sender makes such a datagram.
const SHORTEST: usize = 1_000;
/// After so many vain searches for that length there is none.
const MOST_SEARCHES: u8 = 8;

/// What is said of a datagram at a place.
#[derive(Clone, Copy)]
struct Here<'a> {
    now: Instant,
    /// Length of the headers of IP and UDP.
    headers: u32,
    options: &'a Options,
}

/// Length of the headers of IP and UDP.
const fn headers(from: SocketAddr) -> u32 {
    match from {
        SocketAddr::V4(_) => 28,
        SocketAddr::V6(_) => 48,
    }
}

impl Encrypted {
    /// Counts one.
    fn note(&mut self, why: Sealed) {
        match why {
            Sealed::NoKey => self.without_key += 1,
            Sealed::Cut => self.cut += 1,
            Sealed::Damaged => self.damaged += 1,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Client and server.
    pub ends: [SocketAddr; 2],
    /// The first packet.
    pub first: Instant,
    /// The last packet.
    pub last: Instant,
    /// Whether an end has closed it with an error of the transport.
    pub failed: bool,
    /// What each place of capture saw of it.
    pub views: Vec<View>,
    /// Client and server under the addresses that they have had.
    addresses: Vec<[SocketAddr; 2]>,
    ids: [Ids; 2],
}

/// The connection identifiers of an end.
#[derive(Debug, Default)]
struct Ids {
    known: Vec<Vec<u8>>,
    /// Those that nobody has asked for.
    fresh: usize,
    /// Their length, as soon as a long header has shown it.
    length: Option<usize>,
}

impl Ids {
    fn add(&mut self, id: &[u8]) {
        if !id.is_empty() && self.known.len() < MOST_IDS && !self.known.iter().any(|k| k == id) {
            self.known.push(id.to_vec());
        }
    }
}

impl View {
    /// Key updates of the client and the server that it shows; `None`: nothing was decrypted.
    pub fn key_updates(&self) -> Option<[u64; 2]> {
        let of = |end: usize| self.opener.key_updates(end).unwrap_or(0);
        let opened = [0, 1]
            .iter()
            .any(|end| self.opener.key_updates(*end).is_some());
        opened.then(|| [of(0), of(1)])
    }
}

/// A connection at one place.
#[derive(Debug)]
pub struct View {
    /// Number of the place.
    pub place: usize,
    /// The first packet there.
    pub first: Instant,
    /// The last packet there.
    pub last: Instant,
    /// The client's Initial, the answer, and what followed that.
    pub handshake: Handshake,
    /// When the client sent the end of its handshake.
    pub finished: Option<Instant>,
    /// The datagrams of each end.
    pub seen: [Seen; 2],
    spins: [Spin; 2],
    /// Packets of each end that were decrypted.
    pub opened: [u64; 2],
    /// Packets of each end that were not.
    pub encrypted: [Encrypted; 2],
    /// What was in the decrypted packets of each end, and how they were acknowledged.
    pub halves: [Option<Half>; 2],
    opener: Box<Opener>,
    /// The length of the packets in the last datagram of each end that had several.
    segments: [Option<usize>; 2],
    /// How often that length was looked for in vain.
    searches: [u8; 2],
    room: Vec<u8>,
}

/// The first packet of a datagram that can be one of QUIC's handshakes: with a long header of a known version.
pub fn handshake_packet(kept: &[u8], length: usize) -> Option<Packet<'_>> {
    let packet = packets(kept, length, 0).next()?;
    matches!(packet.header, Header::Long(_)).then_some(packet)
}

impl Connection {
    /// One whose first packet is this.
    pub fn new(datagram: &packet::Packet, first: &Packet<'_>) -> Self {
        let ends = match is_of_client(datagram, first) {
            true => [datagram.from, datagram.to],
            false => [datagram.to, datagram.from],
        };
        Self {
            ends,
            first: datagram.time,
            last: datagram.time,
            failed: false,
            views: Vec::new(),
            addresses: vec![ends],
            ids: Default::default(),
        }
    }

    /// Whether a datagram between its addresses begins another connection: an Initial of the client to an identifier
    /// that the server does not have, after the server has answered or from another one.
    pub fn is_over(&self, datagram: &packet::Packet, kept: &[u8], length: usize) -> bool {
        let Some(Packet {
            header: Header::Long(header),
            ..
        }) = packets(kept, length, 0).next()
        else {
            return false;
        };
        if header.kind != Kind::Initial || self.end_of(datagram) != Some(0) {
            return false;
        }
        let knows = |end: usize, id: &[u8]| self.ids[end].known.iter().any(|k| k == id);
        if knows(1, header.to) {
            return false;
        }
        let is_same_client = header.from.is_empty() || knows(0, header.from);
        !is_same_client || (header.from.is_empty() && !self.ids[1].known.is_empty())
    }

    /// Which end has sent a datagram.
    fn end_of(&self, datagram: &packet::Packet) -> Option<usize> {
        let from = |[client, server]: &[SocketAddr; 2]| match (datagram.from, datagram.to) {
            (from, to) if (from, to) == (*client, *server) => Some(0),
            (from, to) if (from, to) == (*server, *client) => Some(1),
            _ => None,
        };
        self.addresses.iter().rev().find_map(from)
    }

    /// The connection goes on between the addresses of a datagram that is to this end.
    pub fn moves(&mut self, datagram: &packet::Packet, to: usize) {
        if self.addresses.len() < MOST_ADDRESSES {
            self.addresses.push(match to {
                1 => [datagram.from, datagram.to],
                _ => [datagram.to, datagram.from],
            });
        }
    }

    /// Identifiers that have become known since this was asked last, with their ends.
    pub fn fresh_ids(&mut self) -> impl Iterator<Item = (usize, &[u8])> {
        self.ids.iter_mut().enumerate().flat_map(|(end, ids)| {
            let from = std::mem::replace(&mut ids.fresh, ids.known.len());
            ids.known[from..].iter().map(move |id| (end, &id[..]))
        })
    }

    /// Takes a datagram of it, of whose payload of `length` bytes these were kept.
    pub fn on_packet(
        &mut self,
        datagram: &packet::Packet,
        (kept, length): (&[u8], u32),
        secrets: &Secrets,
        options: &Options,
    ) {
        self.first = self.first.min(datagram.time);
        self.last = self.last.max(datagram.time);
        let from = self.end_of(datagram).unwrap_or(0);
        let i = match self.views.iter().position(|v| v.place == datagram.place) {
            Some(i) => i,
            None => {
                self.views.push(View::new(datagram));
                self.views.len() - 1
            }
        };
        let view = &mut self.views[i];
        view.last = datagram.time;
        view.seen[from].take(datagram, (length, None), options.interval);
        let id = self.ids[1 - from].length.unwrap_or(0);
        for packet in packets(kept, length as usize, id) {
            if let Header::Long(header) = packet.header {
                let own = &mut self.ids[from];
                own.length = Some(header.from.len());
                own.add(header.from);
                // To the server's own identifier goes what follows its first answer.
                if from == 1 || header.kind == Kind::Handshake {
                    self.ids[1 - from].length.get_or_insert(header.to.len());
                }
            }
            let here = Here {
                now: datagram.time,
                headers: headers(datagram.from),
                options,
            };
            view.note_handshake(datagram.time, from, &packet);
            let Some(packet) = view.note_open(here, from, packet) else {
                continue;
            };
            self.failed |= view.on_packet(here, from, &packet, secrets, &mut self.ids);
        }
    }

    /// The end whose data is the connection's: the one that sent more.
    pub fn sender(&self) -> usize {
        let data = |end: usize| {
            let halves = self.views.iter().filter_map(|v| v.halves[end].as_ref());
            halves.map(|h| h.sent.bytes()).max().unwrap_or(0)
        };
        let seen = |end: usize| self.views.iter().map(|v| v.seen[end].bytes).max();
        match data(0).max(data(1)) {
            0 => usize::from(seen(1) > seen(0)),
            _ => usize::from(data(1) > data(0)),
        }
    }

    /// How far the clock at the second place is from that at the first, by the packets of `end` and their
    /// acknowledgements.
    pub fn offset(end: usize, first: &View, last: &View) -> Option<Offset> {
        let (first, last) = (first.halves[end].as_ref()?, last.halves[end].as_ref()?);
        offset(first.passages(), last.passages())
    }

    /// The capture ends.
    pub fn finish(&mut self, now: Instant) {
        let halves = self
            .views
            .iter_mut()
            .flat_map(|v| v.halves.iter_mut().flatten());
        halves.for_each(|half| half.finish(now.min(self.last)));
    }
}

/// Whether the client has sent the first packet that was captured.
fn is_of_client(datagram: &packet::Packet, first: &Packet<'_>) -> bool {
    let Header::Long(header) = first.header else {
        return true;
    };
    match header.kind {
        Kind::ZeroRtt => true,
        Kind::Retry => false,
        // Servers have the low ports.
        Kind::Handshake => datagram.from.port() > datagram.to.port(),
        Kind::Initial => {
            let found = Opener::default().open(0, first, &Secrets::default(), &mut Vec::new());
            // If it was cut, the client's is the one that comes first.
            !matches!(found, Err(Sealed::Damaged | Sealed::NoKey))
        }
    }
}

impl Seeing for View {
    fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    fn first_data(&self, end: usize) -> Option<Instant> {
        self.seen[end].span.map(|(first, _)| first)
    }

    fn seen(&self, end: usize) -> u64 {
        // Of data each byte counts once, and of what is encrypted the time: what is lost before a place is not missing
        // there.
        let data = self.halves[end].as_ref().map_or(0, |h| h.sent.bytes());
        let time = self.seen[end]
            .span
            .map(|(first, last)| last.saturating_since(first).as_millis());
        if data > 0 { data } else { time.unwrap_or(0) }
    }
}

impl View {
    fn new(datagram: &packet::Packet) -> Self {
        Self {
            place: datagram.place,
            first: datagram.time,
            last: datagram.time,
            handshake: Handshake::default(),
            finished: None,
            seen: Default::default(),
            spins: Default::default(),
            opened: [0; 2],
            encrypted: Default::default(),
            halves: [None, None],
            opener: Box::default(),
            segments: [None; 2],
            searches: [0; 2],
            room: Vec::new(),
        }
    }

    /// Whether nearly all packets of both ends were decrypted, so that their figures are the connection's.
    pub fn is_open(&self) -> bool {
        let encrypted: u64 = self.encrypted.iter().map(Encrypted::all).sum();
        let opened: u64 = self.opened.iter().sum();
        opened > 0 && encrypted.saturating_mul(100) <= opened
    }

    /// The round trip of the handshake, which is that of both ways wherever it is seen (RFC 9312, section 3.8.1).
    pub fn handshake_trip(&self) -> Option<Duration> {
        let Handshake {
            syn,
            first_syn,
            ack,
            ..
        } = self.handshake;
        let is_clear = first_syn == syn;
        ack.filter(|_| is_clear)
            .zip(syn)
            .map(|(ack, syn)| ack.saturating_since(syn))
    }

    /// The round trips that the spin bit of an end's packets shows, if it spins.
    pub fn spin(&self, end: usize) -> Option<&Spin> {
        Some(&self.spins[end]).filter(|s| s.spins())
    }

    fn note_handshake(&mut self, now: Instant, from: usize, packet: &Packet<'_>) {
        let handshake = &mut self.handshake;
        let is_initial = matches!(packet.header, Header::Long(h) if h.kind == Kind::Initial);
        match (from, handshake.syn, handshake.syn_ack) {
            (0, None, None) if is_initial => {
                handshake.first_syn = Some(now);
                handshake.syn = Some(now);
            }
            (0, Some(syn), None) if is_initial && now.saturating_since(syn) > FLIGHT => {
                handshake.syn = Some(now)
            }
            (1, Some(_), None) => handshake.syn_ack = Some(now),
            (0, _, Some(_)) => {
                handshake.ack.get_or_insert(now);
            }
            _ => (),
        }
    }

    /// Looks at what is not encrypted; the packet, unless it is a Retry, which has nothing else.
    fn note_open<'a>(
        &mut self,
        here: Here<'_>,
        from: usize,
        packet: Packet<'a>,
    ) -> Option<Packet<'a>> {
        match packet.header {
            Header::Short(header) => {
                let trip = self.handshake_trip();
                self.spins[from].take(here.now, header.spin, trip, here.options.interval);
            }
            Header::Long(header) if header.kind == Kind::Retry => {
                // What the client has sent before is forgotten (RFC 9002, section 6.3).
                self.discard(Space::Initial);
                return None;
            }
            Header::Long(_) => (),
        }
        Some(packet)
    }

    /// Takes a packet; whether it closes the connection with an error.
    fn on_packet(
        &mut self,
        here: Here<'_>,
        from: usize,
        packet: &Packet<'_>,
        secrets: &Secrets,
        ids: &mut [Ids; 2],
    ) -> bool {
        let mut room = std::mem::take(&mut self.room);
        let failed = match self.opener.open(from, packet, secrets, &mut room) {
            Ok(opened) => {
                let frames = room.get(opened.frames.clone()).unwrap_or_default();
                self.on_frames(here, from, packet.length, &opened, frames, ids)
            }
            Err(why) => self.on_segments(here, from, packet, secrets, ids, (why, &mut room)),
        };
        self.room = room;
        failed
    }

    /// Takes a datagram that does not open as one packet: it may be several of one length that a device was to send, or
    /// has received, as one.
    fn on_segments(
        &mut self,
        here: Here<'_>,
        from: usize,
        packet: &Packet<'_>,
        secrets: &Secrets,
        ids: &mut [Ids; 2],
        (why, room): (Sealed, &mut Vec<u8>),
    ) -> bool {
        let may_be_several = matches!(packet.header, Header::Short(_)) && why == Sealed::Damaged;
        let length = match may_be_several && packet.length > LONGEST {
            true => self.segment_length(from, packet, secrets, room),
            false => None,
        };
        let Some(length) = length else {
            self.encrypted[from].note(why);
            return false;
        };
        let mut failed = false;
        for bytes in packet.bytes.chunks(length) {
            let length = bytes.len();
            let piece = Packet {
                bytes,
                length,
                ..*packet
            };
            match self.opener.open(from, &piece, secrets, room) {
                Ok(opened) => {
                    let frames = room.get(opened.frames.clone()).unwrap_or_default();
                    failed |= self.on_frames(here, from, length, &opened, frames, ids);
                }
                Err(why) => self.encrypted[from].note(why),
            }
        }
        failed
    }

    /// The length of the packets of which a datagram is made.
    fn segment_length(
        &mut self,
        from: usize,
        packet: &Packet<'_>,
        secrets: &Secrets,
        room: &mut Vec<u8>,
    ) -> Option<usize> {
        let lengths = match self.searches[from] {
            MOST_SEARCHES.. => 0..0,
            _ => SHORTEST..LONGEST + 1,
        };
        let mut lengths = self.segments[from].into_iter().chain(lengths);
        let found = lengths.find(|length| {
            let piece = packet.bytes.get(..*length).map(|bytes| Packet {
                bytes,
                length: *length,
                ..*packet
            });
            piece.is_some_and(|piece| self.opener.open(from, &piece, secrets, room).is_ok())
        });
        match found {
            Some(_) => self.segments[from] = found,
            None => self.searches[from] = self.searches[from].saturating_add(1),
        }
        found
    }

    /// Takes a decrypted packet; whether it closes the connection with an error.
    fn on_frames(
        &mut self,
        here: Here<'_>,
        from: usize,
        size: usize,
        opened: &Opened,
        frames: &[u8],
        ids: &mut [Ids; 2],
    ) -> bool {
        self.opened[from] += 1;
        let (space, mut content, mut failed) = (opened.space, Content::default(), false);
        let (now, delays) = (here.now, self.opener.delays);
        let mut has_ack = false;
        for frame in Frames::new(frames) {
            content.eliciting |= frame.is_ack_eliciting();
            content.is_more |= !matches!(frame, Frame::Ping | Frame::Padding(_));
            match frame {
                Frame::Ack(ack) => {
                    has_ack = true;
                    if let Some(half) = &mut self.halves[1 - from] {
                        half.on_ack(now, space, &ack, delays[from]);
                    }
                }
                Frame::Crypto { offset, data } => {
                    self.opener.on_crypto(from, space, offset, data);
                    if from == 0 && space == Space::Handshake {
                        self.finished.get_or_insert(now);
                    }
                }
                Frame::Stream(stream) => content.parts.push(Part {
                    stream: stream.id,
                    offset: stream.offset,
                    length: stream.len,
                    is_last: stream.fin,
                }),
                Frame::DataBlocked(_) | Frame::StreamDataBlocked { .. } => {
                    content.is_blocked = true
                }
                Frame::MaxData(_) | Frame::MaxStreamData { .. } => {
                    if let Some(half) = &mut self.halves[1 - from] {
                        half.on_limits();
                    }
                }
                Frame::NewConnectionId { id, .. } => ids[from].add(id),
                Frame::ConnectionClose {
                    application, code, ..
                } => failed |= !application && code != 0,
                // The server has discarded its keys of the handshake (RFC 9001, section 4.9.2).
                Frame::HandshakeDone => self.discard(Space::Handshake),
                _ => (),
            }
        }
        if from == 0 && space == Space::Handshake {
            // RFC 9001, section 4.9.1.
            self.discard(Space::Initial);
        }
        if has_ack
            && !content.eliciting
            && let Some(half) = &mut self.halves[1 - from]
        {
            half.pure_acks += 1;
        }
        let half = self.halves[from].get_or_insert_with(|| Half::new(now, here.options));
        let packet = Passing {
            space,
            number: opened.number,
            size: size as u64,
            headers: here.headers,
            content,
        };
        half.on_sent(now, packet, delays[1 - from]);
        failed
    }

    fn discard(&mut self, space: Space) {
        self.halves
            .iter_mut()
            .flatten()
            .for_each(|half| half.discard(space));
    }
}

//! What one end of a connection has sent and the other not acknowledged, as seen by a capture.

use std::collections::VecDeque;
use std::ops::AddAssign;

use gargalo_units::{Bytes, Duration, Instant, Rate};

/// Most pieces that are kept of what nobody acknowledges: a capture may lack the acknowledgements.
const MOST: usize = 1 << 17;

/// A piece of the stream that was sent in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first byte, counted from the first of the stream.
    pub start: u64,
    /// The byte behind its last.
    pub end: u64,
    /// When it was sent for the first time.
    pub first: Instant,
    /// When it was sent for the last time.
    pub last: Instant,
    /// How often it was sent.
    pub transmissions: u32,
    /// Whether a selective acknowledgement has named it.
    pub sacked: bool,
    /// What was known when it was sent for the last time.
    pub then: Delivered,
    /// The packet that carried it last.
    pub packet: usize,
}

/// What was delivered until a packet was sent (draft-ietf-ccwg-bbr, section 4.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Bytes delivered.
    pub bytes: u64,
    /// When the last of them was.
    pub at: Instant,
    /// When the packet was sent whose delivery that was.
    pub sent: Instant,
}

impl Delivered {
    /// So many bytes are delivered now, of packets of which the latest was sent at `sent` when `then` was known: the
    /// delivery rate since; `None` if the time is shorter than the least round trip.
    pub fn advance(
        &mut self,
        now: Instant,
        bytes: u64,
        (sent, then): (Instant, Self),
        least: Duration,
    ) -> Option<Rate> {
        self.bytes += bytes;
        let sending = sent.saturating_since(then.sent);
        let acknowledging = now.saturating_since(then.at);
        let took = sending.max(acknowledging);
        (self.at, self.sent) = (now, sent);
        let is_long = !took.is_zero() && took >= least;
        is_long.then(|| Rate::from_transfer(Bytes::new(self.bytes - then.bytes), took))
    }
}

impl Piece {
    /// Length in bytes.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// What a packet with data was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that had not been sent before.
    pub new: u64,
    /// Bytes that had been seen before.
    pub again: u64,
    /// Bytes before the highest ones that are seen for the first time: others had passed them, or the capture missed
    /// their first transmission.
    pub late: u64,
}

impl AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.again += other.again;
        self.late += other.late;
    }
}

/// The pieces in the order of the stream, each byte in at most one.
#[derive(Debug, Default)]
pub struct Scoreboard {
    pieces: VecDeque<Piece>,
    /// The byte behind the highest that was sent.
    next: u64,
    /// The byte behind the last that was acknowledged in order.
    una: u64,
    sacked: u64,
    /// The byte behind the highest that was selectively acknowledged.
    highest_sacked: u64,
}

impl Scoreboard {
    /// One of a stream that a capture sees from this byte on.
    pub fn new(first: u64) -> Self {
        Self {
            next: first,
            una: first,
            highest_sacked: first,
            ..Self::default()
        }
    }

    /// The byte behind the highest that was sent.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The byte behind the last that was acknowledged in order.
    pub const fn una(&self) -> u64 {
        self.una
    }

    /// The byte behind the highest that was selectively acknowledged.
    pub const fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// Bytes selectively acknowledged and not yet in order.
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// The pieces that are not acknowledged in order.
    pub fn pieces(&self) -> impl DoubleEndedIterator<Item = &Piece> {
        self.pieces.iter()
    }

    /// Records packet number `packet` with the bytes from `start` to `end`.
    pub fn send(
        &mut self,
        packet: usize,
        (start, end): (u64, u64),
        now: Instant,
        then: Delivered,
    ) -> Sent {
        let mut sent = Sent::default();
        let fresh = |start, end| Piece {
            start,
            end,
            first: now,
            last: now,
            transmissions: 1,
            sacked: false,
            then,
            packet,
        };
        if start < self.next {
            let before = end.min(self.next);
            // What is acknowledged in order was seen by the other end, whether the capture has it or not.
            sent.again += self.una.clamp(start, before) - start;
            let start = start.max(self.una);
            if start < before {
                let first = self.split(start);
                let mut at = start;
                let mut i = first;
                while at < before {
                    match self.pieces.get_mut(i).map(|p| p.start) {
                        Some(begin) if begin <= at => {
                            let cut = self.split(before);
                            debug_assert!(cut > i);
                            let piece = &mut self.pieces[i];
                            piece.last = now;
                            piece.transmissions = piece.transmissions.saturating_add(1);
                            piece.then = then;
                            piece.packet = packet;
                            sent.again += piece.len();
                            at = piece.end;
                        }
                        begin => {
                            let end = begin.unwrap_or(before).min(before);
                            self.pieces.insert(i, fresh(at, end));
                            sent.late += end - at;
                            at = end;
                        }
                    }
                    i += 1;
                }
            }
        }
        if end > self.next {
            let start = start.max(self.next);
            sent.new = end - start;
            self.pieces.push_back(fresh(start, end));
            self.next = end;
        }
        while self.pieces.len() > MOST {
            self.forget();
        }
        sent
    }

    /// Removes what is before `ack`, and tells of each piece; of one that is acknowledged in part, the part.
    pub fn acknowledge(&mut self, ack: u64, mut each: impl FnMut(&Piece)) {
        // The capture may lack what is acknowledged.
        let ack = ack.max(self.una);
        self.next = self.next.max(ack);
        while let Some(piece) = self.pieces.front_mut().filter(|p| p.start < ack) {
            if piece.end > ack {
                let part = Piece { end: ack, ..*piece };
                piece.start = ack;
                self.sacked -= if part.sacked { part.len() } else { 0 };
                each(&part);
                break;
            }
            let whole = *piece;
            self.sacked -= if whole.sacked { whole.len() } else { 0 };
            self.pieces.pop_front();
            each(&whole);
        }
        self.una = ack;
        self.highest_sacked = self.highest_sacked.max(ack);
    }

    /// Marks the bytes of a selective acknowledgement, and tells of the pieces that none has named before.
    pub fn sack(&mut self, left: u64, right: u64, mut each: impl FnMut(&Piece)) {
        let (left, right) = (left.max(self.una), right.min(self.next));
        if left >= right {
            return;
        }
        let first = self.split(left);
        let last = self.split(right);
        for piece in self.pieces.range_mut(first..last) {
            if !piece.sacked {
                piece.sacked = true;
                self.sacked += piece.len();
                each(piece);
            }
        }
        self.highest_sacked = self.highest_sacked.max(right);
    }

    /// Cuts the piece that a byte is within, and returns the number of the first piece from this byte on.
    fn split(&mut self, at: u64) -> usize {
        let i = self.pieces.partition_point(|p| p.end <= at);
        match self.pieces.get_mut(i) {
            Some(piece) if piece.start < at => {
                let rest = Piece {
                    start: at,
                    ..*piece
                };
                piece.end = at;
                self.pieces.insert(i + 1, rest);
                i + 1
            }
            _ => i,
        }
    }

    /// Forgets the oldest piece.
    fn forget(&mut self) {
        if let Some(piece) = self.pieces.front().copied() {
            self.acknowledge(piece.end, |_| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn send(board: &mut Scoreboard, start: u64, end: u64, ms: u64) -> Sent {
        board.send(0, (start, end), at(ms), Delivered::default())
    }

    #[test]
    fn what_is_sent_again_is_told_from_what_was_never_seen() {
        let mut board = Scoreboard::new(0);
        assert_eq!(
            send(&mut board, 0, 100, 1),
            Sent {
                new: 100,
                ..Sent::default()
            }
        );
        // 100 to 200 is missing in the capture, until it comes late.
        assert_eq!(
            send(&mut board, 200, 300, 2),
            Sent {
                new: 100,
                ..Sent::default()
            }
        );
        assert_eq!(
            send(&mut board, 50, 250, 3),
            Sent {
                again: 100,
                late: 100,
                new: 0
            }
        );
        assert_eq!(
            send(&mut board, 250, 350, 4),
            Sent {
                again: 50,
                late: 0,
                new: 50
            }
        );
        let ends: Vec<_> = board
            .pieces()
            .map(|p| (p.start, p.end, p.transmissions))
            .collect();
        let expected = [
            (0, 50, 1),
            (50, 100, 2),
            (100, 200, 1),
            (200, 250, 2),
            (250, 300, 2),
            (300, 350, 1),
        ];
        assert_eq!(ends, expected);
    }

    #[test]
    fn a_piece_is_delivered_once_by_whichever_acknowledgement_comes_first() {
        let mut board = Scoreboard::new(0);
        for n in 0..4 {
            send(&mut board, n * 100, (n + 1) * 100, n);
        }
        let mut told = Vec::new();
        board.sack(200, 300, |p| told.push((p.start, p.end, p.sacked)));
        board.sack(150, 300, |p| told.push((p.start, p.end, p.sacked)));
        assert_eq!(told, [(200, 300, true), (150, 200, true)]);
        assert_eq!((board.sacked(), board.highest_sacked()), (150, 300));
        told.clear();
        board.acknowledge(350, |p| told.push((p.start, p.end, p.sacked)));
        let expected = [
            (0, 100, false),
            (100, 150, false),
            (150, 200, true),
            (200, 300, true),
            (300, 350, false),
        ];
        assert_eq!(told, expected);
        assert_eq!((board.sacked(), board.una(), board.next()), (0, 350, 400));
    }

    #[test]
    fn without_acknowledgements_the_oldest_pieces_are_forgotten() {
        let mut board = Scoreboard::new(0);
        for n in 0..MOST as u64 + 10 {
            send(&mut board, n, n + 1, n);
        }
        assert_eq!((board.pieces().count(), board.una()), (MOST, 10));
    }

    proptest! {
        /// Beside the board: for each byte whether it was sent, acknowledged, named by a SACK.
        #[test]
        fn the_board_agrees_with_a_list_of_bytes(steps in prop::collection::vec((0..3u8, 0..60u64, 1..20u64), 1..60)) {
            let (mut board, mut sent, mut sacked) = (Scoreboard::new(0), [false; 100], [false; 100]);
            let (mut una, mut next) = (0, 0);
            for (kind, start, length) in steps {
                let end = start + length;
                let bytes = start as usize..end as usize;
                match kind {
                    0 => {
                        let told = send(&mut board, start, end, 0);
                        let seen = |b: &usize| sent[*b] || (*b as u64) < una;
                        let again = bytes.clone().filter(seen).count() as u64;
                        let late = bytes.clone().filter(|b| !seen(b) && (*b as u64) < next).count() as u64;
                        let new = bytes.clone().filter(|b| !seen(b) && *b as u64 >= next).count() as u64;
                        prop_assert_eq!(told, Sent { new, again, late });
                        bytes.for_each(|b| sent[b] = true);
                        next = next.max(end);
                    }
                    1 => {
                        board.acknowledge(end, |_| ());
                        una = una.max(end);
                        next = next.max(end);
                    }
                    _ => {
                        let mut told = 0;
                        board.sack(start, end, |p| told += p.len());
                        let fresh: Vec<_> = bytes.filter(|b| sent[*b] && !sacked[*b] && *b as u64 >= una).collect();
                        prop_assert_eq!(told, fresh.len() as u64);
                        fresh.iter().for_each(|b| sacked[*b] = true);
                    }
                }
                let waiting = (una as usize..100).filter(|b| sacked[*b]).count() as u64;
                prop_assert_eq!(board.sacked(), waiting);
                let whole: Vec<_> = board.pieces().flat_map(|p| p.start..p.end).collect();
                let expected: Vec<_> = (una..100).filter(|b| sent[*b as usize]).collect();
                prop_assert_eq!(whole, expected);
            }
        }
    }
}

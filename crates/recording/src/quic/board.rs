//! Packets that one end has sent and the other not acknowledged, in one packet number space, and which of them its
//! sender takes for lost (RFC 9002 §6.1).

use std::collections::BTreeMap;

use gargalo_units::{Duration, Instant};
use gargalo_wire::quic::Ack;

use crate::streams::Part;
use crate::tcp::{Delivered, RoundTrips};

/// Packets that were sent so much later and are acknowledged make an earlier one lost.
const PACKET_THRESHOLD: u64 = 3;
/// Granularity of timers.
const GRANULARITY: Duration = Duration::from_millis(1);
/// Most packets that are kept, waiting and lost: a capture may lack the acknowledgements.
const MOST: usize = 1 << 16;

/// A packet as it was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When.
    pub time: Instant,
    /// Length.
    pub size: u64,
    /// Whether it is to be acknowledged. Others are in no flight and are not missed.
    pub eliciting: bool,
    /// Whether it only tries a larger size: its loss is none of congestion (RFC 9000, section 14.4).
    pub tries_size: bool,
    /// Its number among the packets that are kept, if it is.
    pub row: Option<usize>,
    /// The data of streams in it.
    pub parts: Vec<Part>,
    /// What was delivered before.
    pub then: Delivered,
}

/// What an acknowledgement says that no other has said.
#[derive(Debug, Default)]
pub struct Acked {
    /// Packets that waited for it.
    pub packets: Vec<Sent>,
    /// Packets that had been taken for lost.
    pub spurious: Vec<Sent>,
    /// When the largest that it acknowledges was sent, if that is new and something new was to be acknowledged.
    pub sample_of: Option<Instant>,
}

/// The packets of a space.
#[derive(Debug, Default)]
pub struct Board {
    waiting: BTreeMap<u64, Sent>,
    lost: BTreeMap<u64, Sent>,
    largest_acked: Option<u64>,
    /// When the next packet is taken for lost by its time.
    due: Option<Instant>,
    /// The largest number that was sent.
    pub largest: Option<u64>,
}

impl Board {
    /// Adds a packet; those that are too many and have waited longest are returned.
    pub fn send(&mut self, number: u64, sent: Sent) -> Option<Sent> {
        self.largest = self.largest.max(Some(number));
        self.waiting.insert(number, sent);
        match self.waiting.len() > MOST {
            true => self.waiting.pop_first().map(|(_, sent)| sent),
            false => None,
        }
    }

    /// Whether this packet has been seen, as far as that is remembered.
    pub fn has(&self, number: u64) -> bool {
        self.waiting.contains_key(&number) || self.lost.contains_key(&number)
    }

    /// Takes an acknowledgement.
    pub fn acknowledge(&mut self, ack: &Ack<'_>) -> Acked {
        let mut found = Acked::default();
        // Of what was not captured nothing is known.
        if self.largest.is_none_or(|n| ack.largest > n) {
            self.largest = self.largest.max(Some(ack.largest));
        }
        self.largest_acked = self.largest_acked.max(Some(ack.largest));
        let mut newest = None;
        let waiting = self.waiting.first_key_value().map_or(u64::MAX, |(n, _)| *n);
        let lost = self.lost.first_key_value().map_or(u64::MAX, |(n, _)| *n);
        for (low, high) in ack.ranges() {
            if high < waiting.min(lost) {
                break;
            }
            while let Some((&number, _)) = self.waiting.range(low..=high).next() {
                if let Some(sent) = self.waiting.remove(&number) {
                    if number == ack.largest {
                        newest = Some(sent.time);
                    }
                    found.packets.push(sent);
                }
            }
            while let Some((&number, _)) = self.lost.range(low..=high).next() {
                found.spurious.extend(self.lost.remove(&number));
            }
        }
        found.sample_of = newest.filter(|_| found.packets.iter().any(|p| p.eliciting));
        found
    }

    /// Packets that are lost by now, by what was acknowledged after them or by the time that has passed since they were
    /// sent, and when that was concluded.
    pub fn lost(&mut self, now: Instant, rtt: &RoundTrips) -> Vec<(u64, Sent)> {
        self.due = None;
        let Some(largest) = self.largest_acked else {
            return Vec::new();
        };
        let trip = rtt.latest().max(rtt.smoothed()).unwrap_or(Duration::ZERO);
        let delay = (trip.mul_f64(9.0 / 8.0)).max(GRANULARITY);
        let mut numbers = Vec::new();
        for (number, sent) in self.waiting.range(..largest) {
            if largest - number >= PACKET_THRESHOLD || sent.time + delay <= now {
                numbers.push(*number);
            } else {
                self.due = Some(
                    self.due
                        .map_or(sent.time + delay, |t| t.min(sent.time + delay)),
                );
            }
        }
        let take = |n: u64| Some((n, self.waiting.remove(&n)?));
        let found: Vec<_> = numbers.into_iter().filter_map(take).collect();
        for (number, sent) in &found {
            self.lost.insert(*number, sent.clone());
        }
        while self.lost.len() > MOST {
            self.lost.pop_first();
        }
        found
    }

    /// When the next packet is lost by its time, if nothing happens before.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Packets that wait to be acknowledged.
    pub fn waiting(&self) -> impl Iterator<Item = &Sent> {
        self.waiting.values().filter(|p| p.eliciting)
    }

    /// The keys are discarded, and with them what waits: it is returned.
    pub fn discard(&mut self) -> Vec<Sent> {
        self.lost.clear();
        self.due = None;
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use gargalo_wire::quic::{Frame, Frames};

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn board(packets: u64) -> Board {
        let mut board = Board::default();
        for n in 0..packets {
            let sent = Sent {
                time: at(n),
                size: 1_200,
                eliciting: true,
                tries_size: false,
                row: None,
                parts: Vec::new(),
                then: Delivered::default(),
            };
            assert!(board.send(n, sent).is_none());
        }
        board
    }

    /// An acknowledgement of the largest, and so many before it.
    fn acknowledge(board: &mut Board, largest: u8, first: u8) -> Acked {
        let bytes = [2, largest, 0, 0, first];
        let Some(Frame::Ack(ack)) = Frames::new(&bytes).next() else {
            panic!("an ACK frame");
        };
        board.acknowledge(&ack)
    }

    #[test]
    fn what_three_later_packets_have_passed_is_lost_and_the_rest_after_its_time() {
        let mut rtt = RoundTrips::default();
        rtt.record(Duration::from_millis(80));
        let mut board = board(10);
        let acked = acknowledge(&mut board, 5, 1);
        assert_eq!((acked.packets.len(), acked.sample_of), (2, Some(at(5))));
        let lost: Vec<_> = board
            .lost(at(85), &rtt)
            .into_iter()
            .map(|(n, _)| n)
            .collect();
        assert_eq!(lost, [0, 1, 2]);
        // 3 was sent at 3 ms; 9/8 of 80 ms later it is lost.
        assert_eq!(board.due(), Some(at(93)));
        let lost: Vec<_> = board
            .lost(at(93), &rtt)
            .into_iter()
            .map(|(n, _)| n)
            .collect();
        assert_eq!((lost, board.due()), (vec![3], None));
        assert_eq!(board.waiting().count(), 4);
        // One was not lost after all.
        let acked = acknowledge(&mut board, 6, 5);
        assert_eq!((acked.packets.len(), acked.spurious.len()), (1, 3));
        // Again: nothing is new.
        let again = acknowledge(&mut board, 6, 5);
        assert_eq!(
            (again.packets.len(), again.spurious.len(), again.sample_of),
            (0, 0, None)
        );
    }

    #[test]
    fn without_acknowledgements_the_oldest_are_forgotten() {
        let mut board = board(MOST as u64);
        let sent = board.waiting().next().unwrap().clone();
        let forgotten = board.send(MOST as u64, sent).unwrap();
        assert_eq!((forgotten.time, board.waiting.len()), (at(0), MOST));
    }
}

//! Receivers that misbehave (RFC 9743 §7.6): their acknowledgements do not report what happened.
//!
//! The transport itself is correct; its segments are rewritten before they leave, as a modified receiver would send
//! them (Savage, Cardwell, Wetherall, Anderson, CCR 29(5), 1999).

use gargalo_settings::names;
use gargalo_units::Seq;
use gargalo_wire::tcp::{Flags, SackBlocks, Segment};

/// Number of parts of a divided acknowledgement.
const PIECES: u32 = 4;

names! {
    /// How a receiver's acknowledgements deviate from what it received.
    pub enum Misbehaviour {
        /// Not at all: the receiver acknowledges as TCP requires.
        None = "honest",
        /// Everything up to the latest segment is acknowledged, lost or not: the sender never detects a loss, and the
        /// data has holes.
        Optimistic = "optimistic",
        /// Each acknowledgement is replaced by four that acknowledge a part each (ACK division).
        DividesAcks = "divides-acks",
        /// Congestion Experienced marks are not echoed.
        HidesEcn = "hides-ecn",
    }
}

/// The state of a misbehaving receiver.
#[derive(Clone, Debug)]
pub struct MisbehavingReceiver {
    how: Misbehaviour,
    /// End of the latest data seen.
    seen: Option<Seq>,
    /// The latest acknowledgement sent.
    last_ack: Option<Seq>,
}

impl MisbehavingReceiver {
    /// Creates the state before anything was received.
    pub const fn new(how: Misbehaviour) -> Self {
        Self {
            how,
            seen: None,
            last_ack: None,
        }
    }

    /// Records the arrival of a segment.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment) {
        let end = segment.seq + segment.sequence_len();
        if self.seen.is_none_or(|s| end.distance(s) > 0) {
            self.seen = Some(end);
        }
    }

    /// Returns what is sent in place of this segment.
    pub fn rewrite(&mut self, mut segment: Segment) -> Vec<Segment> {
        let plain = segment.payload.is_empty()
            && segment.flags.contains(Flags::ACK)
            && !segment
                .flags
                .intersects(Flags::SYN | Flags::FIN | Flags::RST);
        match self.how {
            Misbehaviour::HidesEcn if !segment.flags.contains(Flags::SYN) => {
                segment.flags = Flags::from_bits(segment.flags.bits() & !Flags::ECE.bits());
            }
            Misbehaviour::Optimistic if plain => {
                if let Some(seen) = self.seen
                    && seen.distance(segment.ack) > 0
                {
                    segment.ack = seen;
                }
                segment.options.sack = SackBlocks::EMPTY;
            }
            Misbehaviour::DividesAcks if plain => {
                let before = self.last_ack.replace(segment.ack);
                let Some(before) = before else {
                    return vec![segment];
                };
                let bytes = segment.ack.distance(before).max(0) as u32;
                let pieces = PIECES.min(bytes).max(1);
                return (1..=pieces)
                    .map(|i| {
                        let mut piece = segment.clone();
                        let part = u64::from(bytes) * u64::from(i) / u64::from(pieces);
                        piece.ack = before + part as u32;
                        piece
                    })
                    .collect();
            }
            _ => {}
        }
        vec![segment]
    }
}

#[cfg(test)]
mod tests {
    use gargalo_wire::tcp::Payload;

    use super::*;

    fn ack(n: u32) -> Segment {
        Segment {
            ack: Seq::new(n),
            flags: Flags::ACK | Flags::ECE,
            ..Segment::default()
        }
    }

    fn data(seq: u32) -> Segment {
        Segment {
            seq: Seq::new(seq),
            flags: Flags::ACK,
            payload: Payload::synthetic(1000),
            ..Segment::default()
        }
    }

    fn acks(receiver: &mut MisbehavingReceiver, n: u32) -> Vec<u32> {
        let sent = receiver.rewrite(ack(n));
        sent.iter().map(|s| s.ack.get()).collect()
    }

    #[test]
    fn optimists_acknowledge_what_was_lost() {
        let mut receiver = MisbehavingReceiver::new(Misbehaviour::Optimistic);
        receiver.on_segment(&data(5000));
        receiver.on_segment(&data(2000));
        assert_eq!(acks(&mut receiver, 2000), [6000]);
        assert_eq!(acks(&mut receiver, 7000), [7000]);
    }

    #[test]
    fn dividers_make_many_of_one() {
        let mut receiver = MisbehavingReceiver::new(Misbehaviour::DividesAcks);
        assert_eq!(acks(&mut receiver, 1000), [1000], "nothing to divide yet");
        assert_eq!(acks(&mut receiver, 2000), [1250, 1500, 1750, 2000]);
        assert_eq!(acks(&mut receiver, 2000), [2000], "a duplicate stays one");
        assert_eq!(acks(&mut receiver, 2002), [2001, 2002]);
        // Segments with data are not changed.
        assert_eq!(receiver.rewrite(data(0)).len(), 1);
    }

    #[test]
    fn what_opens_or_ends_a_connection_is_sent_as_it_is() {
        for how in [Misbehaviour::Optimistic, Misbehaviour::DividesAcks] {
            let mut receiver = MisbehavingReceiver::new(how);
            receiver.on_segment(&data(9000));
            acks(&mut receiver, 1000);
            for special in [Flags::SYN, Flags::FIN, Flags::RST] {
                let mut segment = ack(2000);
                segment.flags = segment.flags | special;
                let sent = receiver.rewrite(segment);
                assert_eq!((sent.len(), sent[0].ack.get()), (1, 2000), "{special:?}");
            }
            let mut without_ack = ack(2000);
            without_ack.flags = Flags::ECE;
            assert_eq!(receiver.rewrite(without_ack)[0].ack.get(), 2000);
        }
    }

    #[test]
    fn marks_are_hidden_except_in_the_handshake() {
        let mut receiver = MisbehavingReceiver::new(Misbehaviour::HidesEcn);
        assert_eq!(receiver.rewrite(ack(1))[0].flags, Flags::ACK);
        let mut syn = ack(1);
        syn.flags = syn.flags | Flags::SYN;
        assert!(receiver.rewrite(syn)[0].flags.contains(Flags::ECE));
    }
}

//! The frames of a call's encoder: what each was cut into, and when all of it had arrived.

use gargalo_units::{Bytes, Duration, Instant};

/// A frame of the encoder, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaFrame {
    /// Its size, RTP headers included.
    pub size: Bytes,
    /// Number of packets into which it was cut.
    pub packets: u64,
    /// How many of them have arrived, copies not counted.
    pub received: u64,
    /// When it left the encoder.
    pub encoded: Instant,
    /// When the last of its packets arrived; `None`: one has not.
    pub completed: Option<Instant>,
}

impl MediaFrame {
    /// From the encoder to the arrival of its last packet: time in the shaping buffer and in the network.
    pub fn delay(&self) -> Option<Duration> {
        self.completed.map(|t| t.saturating_since(self.encoded))
    }
}

/// The log of a call's frames. Packets are numbered in the order of the frames.
#[derive(Debug, Default)]
pub(super) struct MediaFrames {
    frames: Vec<MediaFrame>,
    /// The number after the last packet of each frame.
    ends: Vec<u64>,
    /// A bit for each packet that has arrived: a link may copy packets.
    arrived: Vec<u64>,
}

impl MediaFrames {
    /// The encoder has produced a frame.
    pub(super) fn encoded(&mut self, now: Instant, bytes: u64, packets: u64) {
        let end = self.ends.last().copied().unwrap_or(0) + packets;
        self.ends.push(end);
        self.arrived.resize(end.div_ceil(64) as usize, 0);
        self.frames.push(MediaFrame {
            size: Bytes::new(bytes),
            packets,
            received: 0,
            encoded: now,
            completed: None,
        });
    }

    /// A packet has arrived.
    pub(super) fn arrived(&mut self, now: Instant, packet: u64) {
        let Some(word) = self.arrived.get_mut((packet / 64) as usize) else {
            return;
        };
        let bit = 1 << (packet % 64);
        if *word & bit != 0 {
            return;
        }
        *word |= bit;
        let frame = self.ends.partition_point(|end| *end <= packet);
        if let Some(frame) = self.frames.get_mut(frame) {
            frame.received += 1;
            if frame.received == frame.packets {
                frame.completed = Some(now);
            }
        }
    }

    /// The frames in their order.
    pub(super) fn all(&self) -> Vec<MediaFrame> {
        self.frames.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_frame_is_complete_when_its_last_packet_has_arrived() {
        let mut log = MediaFrames::default();
        log.encoded(at(0), 2500, 3);
        log.encoded(at(33), 800, 1);
        log.encoded(at(66), 1500, 2);
        // The second frame overtakes; a copy of a packet counts once.
        for (ms, packet) in [(20, 0), (40, 3), (45, 2), (50, 2), (60, 1), (80, 5)] {
            log.arrived(at(ms), packet);
        }
        let all = log.all();
        let received: Vec<_> = all.iter().map(|f| (f.received, f.packets)).collect();
        assert_eq!(received, [(3, 3), (1, 1), (1, 2)]);
        let delays: Vec<_> = all
            .iter()
            .map(|f| f.delay().map(|d| d.as_millis()))
            .collect();
        assert_eq!(delays, [Some(60), Some(7), None]);
        assert_eq!(all[0].size, Bytes::new(2500));
    }

    #[test]
    fn a_packet_that_was_never_sent_is_ignored() {
        let mut log = MediaFrames::default();
        log.arrived(at(1), 0);
        log.encoded(at(1), 800, 1);
        for packet in [1, 63, 64, u64::MAX] {
            log.arrived(at(2), packet);
        }
        assert_eq!(log.all()[0].received, 0);
    }

    proptest! {
        /// Whatever the order and the copies: each frame has the packets that arrived, and the instant of the last.
        #[test]
        fn each_packet_counts_once_for_its_frame(
            frames in prop::collection::vec(1_u64..100, 1..20),
            order in prop::collection::vec(any::<u64>(), 0..400),
        ) {
            let mut log = MediaFrames::default();
            for packets in &frames {
                log.encoded(at(0), packets * 100, *packets);
            }
            let all: u64 = frames.iter().sum();
            let mut seen = std::collections::BTreeMap::new();
            for (i, packet) in order.iter().map(|n| n % all).enumerate() {
                log.arrived(at(i as u64), packet);
                seen.entry(packet).or_insert(at(i as u64));
            }
            let mut first = 0;
            for (frame, packets) in log.all().iter().zip(&frames) {
                let mine: Vec<_> = seen.range(first..first + packets).map(|(_, at)| *at).collect();
                first += packets;
                prop_assert_eq!(frame.received, mine.len() as u64);
                let completed = mine.iter().max().filter(|_| mine.len() as u64 == *packets);
                prop_assert_eq!(frame.completed, completed.copied());
            }
        }
    }
}

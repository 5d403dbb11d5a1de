//! Counts stream data on its way out: noq tells what was lost, but not what was sent again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use noq_proto::PathId;

use super::arrived::Arrived;
use super::frames::{Frame, Frames, Stream};
use crate::tls::lock;

/// Stream data that has gone over a path so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Bytes sent, repetitions included.
    pub(crate) bytes: u64,
    /// Packets sent with any.
    pub(crate) packets: u64,
    /// Of them, those that repeat some.
    pub(crate) repeating_packets: u64,
    /// Bytes received that had not come before, by whatever path.
    pub(crate) received_bytes: u64,
}

/// Sees the content of each 0-RTT and 1-RTT packet before it is encrypted and after it was decrypted.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Paths in the order of their first packets.
    paths: Vec<(PathId, Carried)>,
    /// The stream that was written to last, and how far it has been sent.
    current: (u64, u64),
    /// The same of the others.
    others: BTreeMap<u64, u64>,
    /// What has arrived on each stream, that of the latest packet apart.
    arriving: (u64, Arrived),
    arrived: BTreeMap<u64, Arrived>,
}

impl Meter {
    /// On all paths together.
    pub(crate) fn total(&self) -> Carried {
        let sum = |a: Carried, (_, b): &(PathId, Carried)| Carried {
            bytes: a.bytes + b.bytes,
            packets: a.packets + b.packets,
            repeating_packets: a.repeating_packets + b.repeating_packets,
            received_bytes: a.received_bytes + b.received_bytes,
        };
        lock(&self.0).paths.iter().fold(Carried::default(), sum)
    }

    pub(crate) fn on_path(&self, id: PathId) -> Carried {
        *lock(&self.0).path(id)
    }

    /// A packet with these frames leaves.
    #[inline]
    pub(crate) fn packet(&self, path: PathId, frames: &[u8]) {
        let mut state = lock(&self.0);
        let (mut bytes, mut repeats) = (0, false);
        for frame in Frames(frames) {
            if let Frame::Stream(frame) = frame
                && frame.len > 0
            {
                bytes += frame.len;
                repeats |= state.repeats(frame);
            }
        }
        if bytes > 0 {
            let carried = state.path(path);
            carried.bytes += bytes;
            carried.packets += 1;
            carried.repeating_packets += u64::from(repeats);
        }
    }

    /// A packet with these frames has arrived.
    #[inline]
    pub(crate) fn arrived(&self, path: PathId, frames: &[u8]) {
        let mut state = lock(&self.0);
        let mut bytes = 0;
        for frame in Frames(frames) {
            if let Frame::Stream(frame) = frame
                && frame.len > 0
            {
                bytes += state.arrives(frame);
            }
        }
        if bytes > 0 {
            state.path(path).received_bytes += bytes;
        }
    }

    /// How many pieces of a stream wait for others before them.
    pub(crate) fn waiting(&self, stream: u64) -> u64 {
        let state = lock(&self.0);
        if state.arriving.0 == stream {
            return state.arriving.1.waiting();
        }
        state.arrived.get(&stream).map_or(0, Arrived::waiting)
    }

    /// Early data was rejected: what is sent now is sent for the first time as far as streams know.
    pub(crate) fn start_again(&self) {
        let mut state = lock(&self.0);
        state.current = (0, 0);
        state.others.clear();
    }
}

impl State {
    #[inline]
    fn path(&mut self, id: PathId) -> &mut Carried {
        let known = self.paths.iter().position(|(other, _)| *other == id);
        let at = known.unwrap_or_else(|| {
            self.paths.push((id, Carried::default()));
            self.paths.len() - 1
        });
        &mut self.paths[at].1
    }

    /// Returns how much of this has not arrived before; it has now.
    #[inline]
    fn arrives(&mut self, frame: Stream) -> u64 {
        if self.arriving.0 != frame.id {
            let own = self.arrived.remove(&frame.id).unwrap_or_default();
            let (id, other) = std::mem::replace(&mut self.arriving, (frame.id, own));
            self.arrived.insert(id, other);
        }
        let end = frame.offset.saturating_add(frame.len);
        self.arriving.1.insert(frame.offset, end)
    }

    /// Whether this has been sent before, in part at least; it is sent now.
    #[inline]
    fn repeats(&mut self, frame: Stream) -> bool {
        if self.current.0 != frame.id {
            let (id, end) = self.current;
            self.others.insert(id, end);
            self.current = (frame.id, self.others.remove(&frame.id).unwrap_or(0));
        }
        let repeats = frame.offset < self.current.1;
        self.current.1 = self.current.1.max(frame.offset + frame.len);
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_data_and_packets_that_repeat() {
        const ZERO: PathId = PathId::ZERO;
        let m = Meter::default();
        // ACK with one extra range, MAX_DATA, then stream 4, offset 0, 3 bytes.
        m.packet(
            ZERO,
            &[2, 9, 0, 1, 0, 1, 1, 0x10, 0x40, 0x80, 0x0a, 4, 3, 1, 2, 3],
        );
        // Stream 8 without length to the end.
        m.packet(ZERO, &[0x08, 8, 1, 2, 3, 4]);
        assert_eq!((m.total().bytes, m.total().repeating_packets), (7, 0));
        // Stream 4 goes on at offset 3, twice; then from 1 again.
        m.packet(ZERO, &[0x0e, 4, 3, 1, 7]);
        assert_eq!(m.total().repeating_packets, 0);
        m.packet(ZERO, &[0x0e, 4, 3, 1, 7]);
        m.packet(ZERO, &[0x01, 0x0e, 4, 1, 1, 7, 0x0e, 4, 2, 1, 7, 0, 0]);
        assert_eq!((m.total().bytes, m.total().repeating_packets), (11, 2));
        // The end of a stream alone repeats nothing.
        m.packet(ZERO, &[0x0f, 4, 4, 0]);
        assert_eq!((m.total().bytes, m.total().repeating_packets), (11, 2));
    }

    #[test]
    fn counts_by_path_what_comes_and_goes() {
        let m = Meter::default();
        let other = PathId::from(1u32);
        // Stream 4, offset 0, 3 bytes; then a part of it on another path, and a PING there.
        m.packet(PathId::ZERO, &[0x0e, 4, 0, 3, 1, 2, 3]);
        m.packet(other, &[0x0e, 4, 1, 1, 2]);
        m.packet(other, &[1]);
        m.arrived(other, &[0x0e, 0, 0, 2, 1, 2, 1]);
        m.arrived(PathId::ZERO, &[0x0e, 0, 0, 2, 1, 2]); // the same again
        m.arrived(PathId::ZERO, &[0x0e, 0, 9, 1, 1]);
        m.arrived(PathId::ZERO, &[0x0e, 4, 1, 1, 1]);
        assert_eq!([0, 4, 8].map(|s| m.waiting(s)), [1, 1, 0]);
        m.arrived(PathId::ZERO, &[1]);
        let carried = |bytes, packets, repeating_packets, received_bytes| Carried {
            bytes,
            packets,
            repeating_packets,
            received_bytes,
        };
        assert_eq!(m.on_path(PathId::ZERO), carried(3, 1, 0, 2));
        assert_eq!(m.on_path(other), carried(1, 1, 1, 2));
        assert_eq!(m.total(), carried(4, 2, 1, 4));
    }
}

//! Counts stream data on its way out: noq tells what was lost, but not what was sent again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::frames::{Frame, Frames, Stream};
use crate::tls::lock;

/// Stream data sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Bytes of stream data, repetitions included.
    pub(crate) bytes: u64,
    /// Packets that repeat some.
    pub(crate) repeating_packets: u64,
}

/// Sees the content of each 0-RTT and 1-RTT packet before it is encrypted.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    sent: Sent,
    /// The stream that was written to last, and how far it has been sent.
    current: (u64, u64),
    /// The same of the others.
    others: BTreeMap<u64, u64>,
}

impl Meter {
    pub(crate) fn sent(&self) -> Sent {
        lock(&self.0).sent
    }

    /// A packet with these frames leaves.
    #[inline]
    pub(crate) fn packet(&self, frames: &[u8]) {
        let mut state = lock(&self.0);
        let mut repeats = false;
        for frame in Frames(frames) {
            if let Frame::Stream(frame) = frame
                && frame.len > 0
            {
                repeats |= state.stream(frame);
            }
        }
        state.sent.repeating_packets += u64::from(repeats);
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
    fn stream(&mut self, frame: Stream) -> bool {
        if self.current.0 != frame.id {
            let (id, end) = self.current;
            self.others.insert(id, end);
            self.current = (frame.id, self.others.remove(&frame.id).unwrap_or(0));
        }
        self.sent.bytes += frame.len;
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
        let m = Meter::default();
        // ACK with one extra range, MAX_DATA, then stream 4, offset 0, 3 bytes.
        m.packet(&[2, 9, 0, 1, 0, 1, 1, 0x10, 0x40, 0x80, 0x0a, 4, 3, 1, 2, 3]);
        // Stream 8 without length to the end.
        m.packet(&[0x08, 8, 1, 2, 3, 4]);
        assert_eq!((m.sent().bytes, m.sent().repeating_packets), (7, 0));
        // Stream 4 goes on at offset 3, twice; then from 1 again.
        m.packet(&[0x0e, 4, 3, 1, 7]);
        assert_eq!(m.sent().repeating_packets, 0);
        m.packet(&[0x0e, 4, 3, 1, 7]);
        m.packet(&[0x01, 0x0e, 4, 1, 1, 7, 0x0e, 4, 2, 1, 7, 0, 0]);
        assert_eq!((m.sent().bytes, m.sent().repeating_packets), (11, 2));
        // The end of a stream alone repeats nothing.
        m.packet(&[0x0f, 4, 4, 0]);
        assert_eq!((m.sent().bytes, m.sent().repeating_packets), (11, 2));
    }
}

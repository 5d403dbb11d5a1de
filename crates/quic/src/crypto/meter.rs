//! Counts the stream data sent: noq reports losses, but not retransmissions.

use std::collections::BTreeMap;
use std::sync::Mutex;

use noq_proto::PathId;

use super::arrived::Arrived;
use crate::tls::lock;
use gargalo_wire::quic::{Frame, Frames, Stream};

/// Stream data of a path so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Bytes sent, retransmissions included.
    pub(crate) bytes: u64,
    /// Packets sent with stream data.
    pub(crate) packets: u64,
    /// Of these, packets with retransmitted data.
    pub(crate) repeating_packets: u64,
    /// New bytes received, on any path.
    pub(crate) received_bytes: u64,
}

/// Gets the content of each 0-RTT and 1-RTT packet before encryption and after decryption.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    paths: BTreeMap<PathId, Carried>,
    /// Highest offset sent of each stream.
    sent: ByStream<u64>,
    arrived: ByStream<Arrived>,
}

/// A value per stream, with fast access to the one used last.
#[derive(Debug, Default)]
struct ByStream<T> {
    latest: (u64, T),
    others: BTreeMap<u64, T>,
}

impl<T: Default> ByStream<T> {
    #[inline]
    fn of(&mut self, stream: u64) -> &mut T {
        if self.latest.0 != stream {
            let own = self.others.remove(&stream).unwrap_or_default();
            let (id, other) = std::mem::replace(&mut self.latest, (stream, own));
            self.others.insert(id, other);
        }
        &mut self.latest.1
    }
}

/// The data in a packet with these frames.
fn data(frames: &[u8]) -> impl Iterator<Item = Stream> {
    Frames::new(frames).filter_map(|frame| match frame {
        Frame::Stream(stream) if stream.len > 0 => Some(stream),
        _ => None,
    })
}

impl Meter {
    /// The sum over all paths.
    pub(crate) fn total(&self) -> Carried {
        let sum = |a: Carried, b: &Carried| Carried {
            bytes: a.bytes + b.bytes,
            packets: a.packets + b.packets,
            repeating_packets: a.repeating_packets + b.repeating_packets,
            received_bytes: a.received_bytes + b.received_bytes,
        };
        lock(&self.0).paths.values().fold(Carried::default(), sum)
    }

    pub(crate) fn on_path(&self, id: PathId) -> Carried {
        lock(&self.0).paths.get(&id).copied().unwrap_or_default()
    }

    /// Counts a sent packet with these frames.
    #[inline]
    pub(crate) fn packet(&self, path: PathId, frames: &[u8]) {
        let mut state = lock(&self.0);
        let (mut bytes, mut repeats) = (0, false);
        for frame in data(frames) {
            bytes += frame.len;
            let sent = state.sent.of(frame.id);
            repeats |= frame.offset < *sent;
            *sent = (*sent).max(frame.offset + frame.len);
        }
        if bytes > 0 {
            let carried = state.paths.entry(path).or_default();
            carried.bytes += bytes;
            carried.packets += 1;
            carried.repeating_packets += u64::from(repeats);
        }
    }

    /// Counts a received packet with these frames.
    #[inline]
    pub(crate) fn arrived(&self, path: PathId, frames: &[u8]) {
        let mut state = lock(&self.0);
        let mut bytes = 0;
        for frame in data(frames) {
            let end = frame.offset.saturating_add(frame.len);
            bytes += state.arrived.of(frame.id).insert(frame.offset, end);
        }
        if bytes > 0 {
            state.paths.entry(path).or_default().received_bytes += bytes;
        }
    }

    /// Number of out-of-order pieces of a stream.
    pub(crate) fn waiting(&self, stream: u64) -> u64 {
        lock(&self.0).arrived.of(stream).waiting()
    }

    /// Early data was rejected: data sent from now on counts as sent for the first time.
    pub(crate) fn start_again(&self) {
        lock(&self.0).sent = ByStream::default();
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
        // The end of a stream without data is not a retransmission.
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

//! Counts stream data on its way out: noq tells what was lost, but not what was sent again.

use std::collections::BTreeMap;
use std::sync::Mutex;

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
        let mut rest = Reader(frames);
        while let Some(frame) = rest.next() {
            if frame.len > 0 {
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
    fn stream(&mut self, frame: StreamFrame) -> bool {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamFrame {
    id: u64,
    offset: u64,
    len: u64,
}

/// Finds the STREAM frames among others (RFC 9000 §19, draft-ietf-quic-ack-frequency,
/// draft-ietf-quic-multipath); ends at a frame it does not know, which noq puts last.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    #[inline]
    fn next(&mut self) -> Option<StreamFrame> {
        loop {
            let kind = self.varint()?;
            match kind {
                0x08..=0x0f => return self.stream(kind),
                // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK
                0x00 | 0x01 | 0x1e | 0x1f => {}
                0x02 | 0x03 => self.ack(kind == 0x03)?,
                0x3e | 0x3f => {
                    self.varint()?;
                    self.ack(kind == 0x3f)?;
                }
                // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID,
                // MAX_PATH_ID, PATHS_BLOCKED
                0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 | 0x3e7a | 0x3e7b => self.varints(1)?,
                // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED, PATH_ABANDON, PATH_STATUS,
                // PATH_RETIRE_CONNECTION_ID, PATH_CIDS_BLOCKED
                0x05 | 0x11 | 0x15 | 0x3e75..=0x3e77 | 0x3e79 | 0x3e7c => self.varints(2)?,
                0x04 => self.varints(3)?,
                0xaf => self.varints(4)?,
                0x06 => {
                    self.varint()?;
                    self.counted()?;
                }
                0x07 => self.counted()?,
                0x18 => self.connection_id()?,
                0x3e78 => {
                    self.varint()?;
                    self.connection_id()?;
                }
                0x1a | 0x1b => self.skip(8)?,
                _ => return None,
            }
        }
    }

    #[inline]
    fn stream(&mut self, kind: u64) -> Option<StreamFrame> {
        let id = self.varint()?;
        let offset = if kind & 4 != 0 { self.varint()? } else { 0 };
        let len = if kind & 2 != 0 {
            self.varint()?
        } else {
            self.0.len() as u64
        };
        self.skip(len)?;
        Some(StreamFrame { id, offset, len })
    }

    fn ack(&mut self, ecn: bool) -> Option<()> {
        self.varints(2)?;
        let ranges = self.varint()?;
        self.varint()?;
        for _ in 0..ranges {
            self.varints(2)?;
        }
        self.varints(if ecn { 3 } else { 0 })
    }

    fn connection_id(&mut self) -> Option<()> {
        self.varints(2)?;
        let (len, rest) = self.0.split_first()?;
        self.0 = rest;
        self.skip(u64::from(*len) + 16)
    }

    fn counted(&mut self) -> Option<()> {
        let len = self.varint()?;
        self.skip(len)
    }

    fn varints(&mut self, n: u32) -> Option<()> {
        for _ in 0..n {
            self.varint()?;
        }
        Some(())
    }

    #[inline]
    fn skip(&mut self, n: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(n).ok()?..)?;
        Some(())
    }

    /// RFC 9000 §16.
    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let len = 1 << (first >> 6);
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        let mut value = u64::from(first & 0x3f);
        for b in &bytes[1..] {
            value = value << 8 | u64::from(*b);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn any_bytes_do(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Meter::default().packet(&bytes);
        }
    }
}

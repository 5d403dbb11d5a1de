//! Stream data that has been written, for implementations that tell of no room in advance, and forget early data that
//! the server rejects.

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};

/// Bytes of one stream that wait for room in the implementation.
const WAITING: usize = 64 << 10;

/// The implementation.
pub trait Sink {
    /// Takes stream data; returns how many bytes.
    fn take(&mut self, stream: u64, data: &[u8]) -> usize;
    /// The stream ends here; may be told again.
    fn finish(&mut self, stream: u64);
}

/// What has been written and not taken, by stream.
#[derive(Debug, Default)]
pub struct Outgoing(BTreeMap<u64, Stream>);

#[derive(Debug, Default)]
struct Stream {
    waiting: BytesMut,
    fin: bool,
    early: BytesMut,
}

impl Outgoing {
    /// Takes data and passes on what has room; `early` data is kept too. Returns how many bytes were taken.
    pub fn write(&mut self, sink: &mut impl Sink, id: u64, data: &[u8], fin: bool, early: bool) -> usize {
        let stream = self.0.entry(id).or_default();
        let taken = data.len().min(WAITING.saturating_sub(stream.waiting.len()));
        stream.waiting.extend_from_slice(&data[..taken]);
        stream.fin |= fin && taken == data.len();
        if early {
            stream.early.extend_from_slice(&data[..taken]);
        }
        stream.flush(sink, id);
        taken
    }

    /// Bytes that [`Outgoing::write`] would take.
    pub fn room(&self, id: u64) -> usize {
        WAITING.saturating_sub(self.0.get(&id).map_or(0, |stream| stream.waiting.len()))
    }

    /// Passes on what has room now.
    pub fn flush(&mut self, sink: &mut impl Sink) {
        for (id, stream) in &mut self.0 {
            stream.flush(sink, *id);
        }
    }

    /// A stream has been acknowledged to its end.
    pub fn remove(&mut self, id: u64) {
        self.0.remove(&id);
    }

    /// The handshake is complete. Early data that was rejected waits again; `open` is called for each of its streams.
    pub fn end_early(&mut self, rejected: bool, mut open: impl FnMut()) {
        for stream in self.0.values_mut() {
            let early = std::mem::take(&mut stream.early);
            if rejected {
                open();
                stream.waiting = early;
            }
        }
    }
}

impl Stream {
    fn flush(&mut self, sink: &mut impl Sink, id: u64) {
        while !self.waiting.is_empty() {
            match sink.take(id, &self.waiting) {
                0 => return,
                taken => self.waiting.advance(taken),
            }
        }
        if self.fin {
            sink.finish(id);
        }
    }
}

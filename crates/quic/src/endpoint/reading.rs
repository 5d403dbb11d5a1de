//! Data of streams on its way to the application.
//!
//! noq puts a stream in order, but ends the connection when more than about two thousand packets wait
//! behind holes: two and a half megabytes, less than a round trip at 1 Gbit/s and 20 ms, and easily there
//! with several paths. So a stream on which nearly that many wait is read out of order from then on, and put
//! in order here. noq takes for read what waits here and would let the peer send as much again: so from then
//! on the connection's flow control is ours, see [`Credit`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use noq_proto::{Connection, ReadError, VarInt};

use super::{Chunk, StreamId};
use crate::crypto::Meter;

/// Packets behind holes that noq is trusted with; beyond 1024 it may give up.
const PATIENCE: u64 = 1000;

/// What has arrived of each stream, and what of that has been put in order.
#[derive(Debug, Default)]
pub(super) struct Reading {
    readable: VecDeque<noq_proto::StreamId>,
    ready: VecDeque<Chunk>,
    unordered: BTreeMap<noq_proto::StreamId, Order>,
    credit: Credit,
    meter: Arc<Meter>,
}

/// The connection's flow control for data that noq takes for read before it is.
///
/// noq lets the peer send up to R + W + D: R is what was read from it, W its window, and D what W was made
/// smaller by, less what was read since. With W at nearly nothing D takes in whatever is read, and the sum stays
/// as it is. Making W larger and smaller again at once raises D, and the peer is told. That is done for data
/// in order, by an eighth of the window at a time, as noq does.
#[derive(Debug, Default)]
struct Credit {
    window: u64,
    /// Data in order that the peer does not know of; `None`: noq does all that itself.
    owed: Option<u64>,
}

impl Credit {
    /// What is left of noq's window: so many bytes more it may give of itself, while fewer are missing. An eighth
    /// of them it would announce: with nothing left it would do so all the time.
    fn rest(&self) -> u64 {
        self.window.min(8)
    }

    fn take_over(&mut self, connection: &mut Connection) {
        if self.owed.is_none() && self.set(connection, self.rest()) {
            self.owed = Some(0);
        }
    }

    /// So much was put in order.
    fn on_read(&mut self, connection: &mut Connection, bytes: u64) {
        let Some(owed) = &mut self.owed else {
            return;
        };
        *owed += bytes;
        let grant = *owed;
        if grant >= (self.window / 8).max(1) && self.set(connection, self.rest() + grant) {
            self.set(connection, self.rest());
            self.owed = Some(0);
        }
    }

    fn set(&self, connection: &mut Connection, window: u64) -> bool {
        let window = VarInt::from_u64(window);
        window.is_ok_and(|w| {
            connection.set_receive_window(w);
            true
        })
    }
}

/// A stream has been reset by the peer.
pub(super) struct Reset;

impl Reading {
    /// Of a connection with this receive window.
    pub(super) fn new(window: u64, meter: Arc<Meter>) -> Self {
        let credit = Credit { window, owed: None };
        Self {
            credit,
            meter,
            ..Self::default()
        }
    }

    /// Something has happened on this stream.
    pub(super) fn on_readable(&mut self, id: noq_proto::StreamId) {
        self.readable.push_back(id);
    }

    /// The next piece in order.
    pub(super) fn next(&mut self, connection: &mut Connection) -> Result<Option<Chunk>, Reset> {
        while self.ready.is_empty() {
            let Some(id) = self.readable.pop_front() else {
                return Ok(None);
            };
            self.drain(connection, id)?;
        }
        Ok(self.ready.pop_front())
    }

    /// Takes over everything that has arrived on a stream.
    fn drain(&mut self, connection: &mut Connection, id: noq_proto::StreamId) -> Result<(), Reset> {
        let stream = StreamId::from(id);
        let patient = !self.unordered.contains_key(&id);
        if patient && self.meter.waiting(stream) > PATIENCE {
            let at = connection.recv_stream(id).bytes_read().unwrap_or(0);
            self.unordered.insert(id, Order::from(at));
            self.credit.take_over(connection);
        }
        let mut order = self.unordered.get_mut(&id);
        let mut receiver = connection.recv_stream(id);
        let Ok(mut chunks) = receiver.read(order.is_none()) else {
            return Ok(()); // closed
        };
        let (before, mut read) = (self.ready.len(), 0);
        let ready = &mut self.ready;
        let mut take = |data: Bytes| {
            read += data.len() as u64;
            ready.push_back(Chunk {
                stream,
                data,
                end: false,
            });
        };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match &mut order {
                    None => take(chunk.bytes),
                    Some(order) => order.insert(chunk.offset, chunk.bytes, &mut take),
                },
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(_)) => return Err(Reset),
            }
        };
        let _ = chunks.finalize();
        let progress = self.ready.len() > before;
        if end {
            self.unordered.remove(&id);
            match self.ready.back_mut() {
                Some(last) if progress => last.end = true,
                _ => self.ready.push_back(Chunk {
                    stream,
                    data: Bytes::new(),
                    end,
                }),
            }
        }
        self.credit.on_read(connection, read);
        Ok(())
    }
}

/// Puts pieces in order, none of which comes twice.
#[derive(Debug, Default)]
struct Order {
    next: u64,
    waiting: BTreeMap<u64, Bytes>,
}

impl Order {
    fn from(next: u64) -> Self {
        Self {
            next,
            waiting: BTreeMap::new(),
        }
    }

    fn insert(&mut self, offset: u64, mut data: Bytes, take: &mut impl FnMut(Bytes)) {
        if offset > self.next {
            self.waiting.insert(offset, data);
            return;
        }
        let known = self.next - offset;
        if known >= data.len() as u64 {
            return;
        }
        data.advance(known as usize);
        self.next += data.len() as u64;
        take(data);
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() <= self.next
        {
            let (offset, mut data) = entry.remove_entry();
            let known = (self.next - offset).min(data.len() as u64);
            data.advance(known as usize);
            if !data.is_empty() {
                self.next += data.len() as u64;
                take(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_in_any_order_come_out_in_order(
            cuts in prop::collection::btree_set(1u64..400, 0..30),
            keys in prop::collection::vec(any::<u32>(), 32),
        ) {
            let content: Vec<u8> = (0..400u32).map(|i| (i * 7) as u8).collect();
            let mut edges: Vec<u64> = std::iter::once(0).chain(cuts).collect();
            edges.push(400);
            let mut pieces: Vec<_> = edges.windows(2).zip(keys).map(|(w, k)| (k, w[0], w[1])).collect();
            pieces.sort_unstable();
            let (mut order, mut out) = (Order::from(0), Vec::new());
            for (_, from, to) in pieces {
                let piece = Bytes::copy_from_slice(&content[from as usize..to as usize]);
                order.insert(from, piece, &mut |data| out.extend_from_slice(&data));
            }
            prop_assert_eq!(out, content);
            prop_assert!(order.waiting.is_empty());
        }
    }
}

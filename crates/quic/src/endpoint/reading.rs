//! Reassembly of stream data for the application.
//!
//! noq reassembles a stream, but ends the connection when more than about two thousand packets are out of order:
//! two and a half megabytes, about a round trip at 1 Gbit/s and 20 ms, and easily reached with several paths. So a
//! stream with nearly that many is read out of order from then on, and reassembled here. noq counts the data stored
//! here as read and would let the peer send as much again; so from then on the connection's flow control is done
//! here, see [`Credit`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use noq_proto::{Connection, ReadError, VarInt};

use crate::crypto::Meter;
use crate::types::{Chunk, StreamId};

/// Out-of-order packets left to noq; beyond 1024 it may give up.
const MOST_OUT_OF_ORDER: u64 = 1000;

/// The received data of each stream, and the reassembled part of it.
#[derive(Debug, Default)]
pub(super) struct Reading {
    readable: VecDeque<noq_proto::StreamId>,
    ready: VecDeque<Chunk>,
    unordered: BTreeMap<noq_proto::StreamId, Order>,
    credit: Credit,
    meter: Arc<Meter>,
    /// Bytes that the application has read.
    taken: u64,
}

/// The connection's flow control for data that noq counts as read before it is.
///
/// noq lets the peer send up to R + W + D: R is the amount read from it, W its window, and D the amount by which W
/// was reduced, less the amount read since. With W near zero, D absorbs all reads, and the sum does not change.
/// Raising W and reducing it again at once raises D, and the new limit is announced to the peer. This is done for
/// data in order, by an eighth of the window at a time, as noq does.
#[derive(Debug, Default)]
struct Credit {
    window: u64,
    /// Data in order that was not announced to the peer; `None`: noq controls the window.
    owed: Option<u64>,
}

impl Credit {
    /// The rest of noq's window, in bytes. noq announces every eighth of its window: with a window of zero it would
    /// do so all the time.
    fn rest(&self) -> u64 {
        self.window.min(8)
    }

    fn take_over(&mut self, connection: &mut Connection) {
        if self.owed.is_none() && self.set(connection, self.rest()) {
            self.owed = Some(0);
        }
    }

    /// Records that bytes were reassembled.
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
pub(super) struct Reset(pub(super) StreamId);

impl Reading {
    /// The state for a connection with this receive window.
    pub(super) fn new(window: u64, meter: Arc<Meter>) -> Self {
        let credit = Credit { window, owed: None };
        Self {
            credit,
            meter,
            ..Self::default()
        }
    }

    /// A stream is readable, finished or reset.
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
        let chunk = self.ready.pop_front();
        self.taken += chunk.as_ref().map_or(0, |c| c.data.len() as u64);
        Ok(chunk)
    }

    /// Bytes that have arrived, each counted once, and that the application has not read.
    pub(super) fn buffered(&self) -> u64 {
        self.meter.total().received_bytes.saturating_sub(self.taken)
    }

    /// Reads everything that has arrived on a stream.
    fn drain(&mut self, connection: &mut Connection, id: noq_proto::StreamId) -> Result<(), Reset> {
        let stream = StreamId::from(id);
        let patient = !self.unordered.contains_key(&id);
        if patient && self.meter.waiting(stream) > MOST_OUT_OF_ORDER {
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
                Err(ReadError::Reset(_)) => return Err(Reset(stream)),
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

/// Reassembles pieces, each of which is received once.
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

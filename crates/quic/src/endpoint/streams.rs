//! Streams between the application and noq.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamEvent, WriteError};

use super::reading::{Reading, Reset};
use crate::crypto::Meter;
use crate::types::{Chunk, StreamId};

/// Bytes that a stream accepts ahead of noq's windows.
const ROOM: usize = 256 << 10;

/// Data that waits for noq's windows, and data that the application has not read.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// Written, but not yet taken by noq.
    waiting: BTreeMap<StreamId, Waiting>,
    /// Streams with data that is not acknowledged completely.
    unfinished: BTreeSet<StreamId>,
    reading: Reading,
    /// Operations before the handshake was complete, to be repeated if early data is rejected.
    early: Option<Vec<Early>>,
    /// The peer has reset a stream.
    pub(super) reset: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    data: VecDeque<Bytes>,
    end: bool,
}

#[derive(Clone, Debug)]
enum Early {
    Open,
    Write(StreamId, Bytes),
    Finish(StreamId),
}

fn noq_id(stream: StreamId) -> Option<noq_proto::StreamId> {
    // Bidirectional streams only: noq asserts the direction of others.
    (stream & 2 == 0 && stream < 1 << 62).then(|| {
        let side = match stream & 1 {
            0 => noq_proto::Side::Client,
            _ => noq_proto::Side::Server,
        };
        noq_proto::StreamId::new(side, Dir::Bi, stream >> 2)
    })
}

impl Streams {
    /// The state for a connection with this receive window.
    pub(super) fn new(window: u64, meter: Arc<Meter>) -> Self {
        Self {
            reading: Reading::new(window, meter),
            ..Self::default()
        }
    }

    /// Early data may be written from now on.
    pub(super) fn begin_early(&mut self) {
        self.early = Some(Vec::new());
    }

    /// The handshake is complete.
    pub(super) fn end_early(&mut self, connection: &mut Connection, rejected: bool) {
        let Some(early) = self.early.take() else {
            return;
        };
        if !rejected {
            return;
        }
        // noq has removed the streams; opened again in the same order, they get the same numbers.
        self.waiting.clear();
        self.unfinished.clear();
        for step in early {
            match step {
                Early::Open => drop(self.open(connection)),
                Early::Write(stream, data) => drop(self.push(connection, stream, data)),
                Early::Finish(stream) => self.finish(connection, stream),
            }
        }
    }

    pub(super) fn open(&mut self, connection: &mut Connection) -> Option<StreamId> {
        let id = connection.streams().open(Dir::Bi)?;
        if let Some(early) = &mut self.early {
            early.push(Early::Open);
        }
        Some(id.into())
    }

    pub(super) fn room(&self, connection: &mut Connection, stream: StreamId) -> u64 {
        if self.waiting.contains_key(&stream) {
            return 0;
        }
        let open = noq_id(stream)
            .is_some_and(|id| matches!(connection.send_stream(id).stopped(), Ok(None)));
        if open { ROOM as u64 } else { 0 }
    }

    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
        mut data: Bytes,
    ) -> usize {
        if self.room(connection, stream) == 0 || data.is_empty() {
            return 0;
        }
        data.truncate(ROOM);
        let len = data.len();
        if let Some(early) = &mut self.early {
            early.push(Early::Write(stream, data.clone()));
        }
        match self.push(connection, stream, data) {
            Ok(()) => len,
            Err(()) => 0,
        }
    }

    fn push(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
        data: Bytes,
    ) -> Result<(), ()> {
        if let Some(waiting) = self.waiting.get_mut(&stream) {
            waiting.data.push_back(data);
            return Ok(());
        }
        let rest = offer(connection, stream, data)?;
        self.unfinished.insert(stream);
        if !rest.is_empty() {
            self.waiting.entry(stream).or_default().data.push_back(rest);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, connection: &mut Connection, stream: StreamId) {
        if let Some(early) = &mut self.early {
            early.push(Early::Finish(stream));
        }
        if let Some(waiting) = self.waiting.get_mut(&stream) {
            waiting.end = true;
        } else if let Some(id) = noq_id(stream)
            && connection.send_stream(id).finish().is_ok()
        {
            self.unfinished.insert(stream);
        }
    }

    pub(super) fn on_event(&mut self, connection: &mut Connection, event: &StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = connection.streams().accept(*dir) {
                    self.reading.on_readable(id);
                }
            }
            StreamEvent::Readable { id } => self.reading.on_readable(*id),
            StreamEvent::Writable { id } => self.on_writable(connection, (*id).into()),
            StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. } => {
                self.unfinished.remove(&(*id).into());
                self.waiting.remove(&(*id).into());
            }
            StreamEvent::Available { .. } => {}
        }
    }

    fn on_writable(&mut self, connection: &mut Connection, stream: StreamId) {
        let Some(waiting) = self.waiting.get_mut(&stream) else {
            return;
        };
        while let Some(data) = waiting.data.pop_front() {
            match offer(connection, stream, data) {
                Ok(rest) if rest.is_empty() => {}
                Ok(rest) => {
                    waiting.data.push_front(rest);
                    return;
                }
                Err(()) => break,
            }
        }
        let end = waiting.end;
        self.waiting.remove(&stream);
        if end && let Some(id) = noq_id(stream) {
            let _ = connection.send_stream(id).finish();
        }
    }

    pub(super) fn read(&mut self, connection: &mut Connection) -> Option<Chunk> {
        let chunk = self.reading.next(connection);
        chunk.unwrap_or_else(|Reset| {
            self.reset = true;
            None
        })
    }

    /// Bytes that have arrived and that the application has not read.
    pub(super) fn buffered(&self) -> u64 {
        self.reading.buffered()
    }

    /// Whether everything written was acknowledged; a stream that is not finished never counts as acknowledged.
    pub(super) fn all_acknowledged(&self) -> bool {
        self.unfinished.is_empty() && self.waiting.is_empty()
    }
}

/// Writes as much of `data` to noq as it accepts; returns the rest.
fn offer(connection: &mut Connection, stream: StreamId, data: Bytes) -> Result<Bytes, ()> {
    let id = noq_id(stream).ok_or(())?;
    let mut data = [data];
    loop {
        // Write until it is blocked: only then it reports when it is writable again.
        match connection.send_stream(id).write_chunks(&mut &mut data[..]) {
            Ok(_) if data[0].is_empty() => return Ok(Bytes::new()),
            Ok(_) => {}
            Err(WriteError::Blocked) => {
                let [rest] = data;
                return Ok(rest);
            }
            Err(_) => return Err(()),
        }
    }
}

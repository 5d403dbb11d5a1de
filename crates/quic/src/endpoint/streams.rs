//! Streams between the application and noq.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamEvent, VarInt, WriteError};

use super::reading::{Reading, Reset};
use crate::crypto::Meter;
use crate::types::{Chunk, Direction, StreamId};

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
    /// Those whose end the peer was asked for, and what of them is still to be read.
    stopped: BTreeSet<StreamId>,
    /// The peer has reset a stream that it was not asked to end.
    pub(super) reset: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    data: VecDeque<Bytes>,
    end: bool,
}

#[derive(Clone, Debug)]
enum Early {
    Open(Direction),
    Write(StreamId, Bytes),
    Finish(StreamId),
    Stop(StreamId),
}

/// The application error of an HTTP request that is cancelled, H3_REQUEST_CANCELLED (RFC 9114 §8.1).
const CANCELLED: VarInt = VarInt::from_u32(0x10c);

fn noq_id(stream: StreamId) -> Option<noq_proto::StreamId> {
    (stream < 1 << 62).then(|| {
        let side = match stream & 1 {
            0 => noq_proto::Side::Client,
            _ => noq_proto::Side::Server,
        };
        let dir = match stream & 2 {
            0 => Dir::Bi,
            _ => Dir::Uni,
        };
        noq_proto::StreamId::new(side, dir, stream >> 2)
    })
}

/// The stream, if this end sends on it: noq panics for those that only the peer sends on.
fn sending(connection: &Connection, stream: StreamId) -> Option<noq_proto::StreamId> {
    noq_id(stream).filter(|id| id.dir() == Dir::Bi || id.initiator() == connection.side())
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
                Early::Open(direction) => drop(self.open(connection, direction)),
                Early::Write(stream, data) => drop(self.push(connection, stream, data)),
                Early::Finish(stream) => self.finish(connection, stream),
                Early::Stop(stream) => self.stop(connection, stream),
            }
        }
    }

    pub(super) fn open(
        &mut self,
        connection: &mut Connection,
        direction: Direction,
    ) -> Option<StreamId> {
        let id = connection.streams().open(match direction {
            Direction::Bidirectional => Dir::Bi,
            Direction::Unidirectional => Dir::Uni,
        })?;
        if let Some(early) = &mut self.early {
            early.push(Early::Open(direction));
        }
        Some(id.into())
    }

    pub(super) fn room(&self, connection: &mut Connection, stream: StreamId) -> u64 {
        if self.waiting.contains_key(&stream) {
            return 0;
        }
        let open = sending(connection, stream)
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
        } else if let Some(id) = sending(connection, stream)
            && connection.send_stream(id).finish().is_ok()
        {
            self.unfinished.insert(stream);
        }
    }

    /// Ends a stream at once.
    pub(super) fn reset(&mut self, connection: &mut Connection, stream: StreamId) {
        self.waiting.remove(&stream);
        self.unfinished.remove(&stream);
        if let Some(id) = sending(connection, stream) {
            // It fails for one that has ended, where there is nothing to reset.
            let _ = connection.send_stream(id).reset(CANCELLED);
        }
    }

    /// Asks the peer to end a stream.
    pub(super) fn stop(&mut self, connection: &mut Connection, stream: StreamId) {
        let receives =
            noq_id(stream).filter(|id| id.dir() == Dir::Bi || id.initiator() != connection.side());
        if let Some(id) = receives
            && connection.recv_stream(id).stop(CANCELLED).is_ok()
        {
            self.stopped.insert(stream);
            if let Some(early) = &mut self.early {
                early.push(Early::Stop(stream));
            }
        }
    }

    pub(super) fn set_urgency(&self, connection: &mut Connection, stream: StreamId, urgency: u8) {
        if let Some(id) = sending(connection, stream) {
            // For noq the highest goes first. It fails for a stream that has ended.
            let _ = connection.send_stream(id).set_priority(-i32::from(urgency));
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
        if end && let Some(id) = sending(connection, stream) {
            let _ = connection.send_stream(id).finish();
        }
    }

    pub(super) fn read(&mut self, connection: &mut Connection) -> Option<Chunk> {
        loop {
            match self.reading.next(connection) {
                Ok(Some(chunk)) if self.stopped.contains(&chunk.stream) => {}
                Ok(chunk) => return chunk,
                Err(Reset(stream)) if self.stopped.contains(&stream) => {}
                Err(Reset(_)) => {
                    self.reset = true;
                    return None;
                }
            }
        }
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
    let id = sending(connection, stream).ok_or(())?;
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

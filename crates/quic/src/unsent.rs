//! Stream data between the application and a foreign stack, which may take less than is written, and may discard early
//! data that the server rejects.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};
use gargalo_units::Instant;

use crate::{Direction, StreamId};

/// Bytes that a stream accepts ahead of the stack, as with noq.
const ROOM: u64 = 256 << 10;
/// Send windows that a stack may take in one instant. One that keeps no more than a window takes at most two: one in
/// place of what was acknowledged just now, and one that was free.
const WINDOWS_AT_ONCE: u64 = 4;

/// What has been written, by stream, until the stack has taken all of it.
#[derive(Debug)]
pub(crate) struct Unsent {
    streams: BTreeMap<StreamId, Stream>,
    /// Of those for which it is set.
    urgency: BTreeMap<StreamId, u8>,
    room: u64,
    /// What a stack may take in one instant, and has taken in the present one.
    most_at_once: u64,
    at_once: (Instant, u64),
}

/// The urgency of a stream for which none is set (RFC 9218 §4.1).
const URGENCY: u8 = 3;

#[derive(Debug, Default)]
struct Stream {
    waiting: VecDeque<Bytes>,
    ends: bool,
    /// The stack knows that it ends.
    ended: bool,
    /// Written before the handshake was complete.
    early: Vec<Bytes>,
}

impl Unsent {
    /// For a connection that may keep this many bytes to be sent.
    pub(crate) fn new(send_window: u64) -> Self {
        Self {
            streams: BTreeMap::new(),
            urgency: BTreeMap::new(),
            room: send_window.min(ROOM),
            most_at_once: WINDOWS_AT_ONCE.saturating_mul(send_window),
            at_once: (Instant::ZERO, 0),
        }
    }

    /// A stream has been opened.
    pub(crate) fn open(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_default();
    }

    /// Offers the data of a stream before that of less urgent ones: a stack may take no more than can be sent now.
    pub(crate) fn set_urgency(&mut self, stream: StreamId, urgency: u8) {
        self.urgency.insert(stream, urgency);
    }

    /// A stream is reset: its data is not offered any more.
    pub(crate) fn discard(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    /// Bytes that [`Unsent::write`] takes.
    pub(crate) fn room(&self, stream: StreamId) -> u64 {
        match self.streams.get(&stream) {
            Some(s) if s.ends || !s.waiting.is_empty() => 0,
            _ => self.room,
        }
    }

    /// Takes data; returns how many bytes.
    pub(crate) fn write(&mut self, stream: StreamId, mut data: Bytes, early: bool) -> usize {
        data.truncate(usize::try_from(self.room(stream)).unwrap_or(usize::MAX));
        let taken = data.len();
        if taken > 0 {
            let s = self.streams.entry(stream).or_default();
            s.early.extend(early.then(|| data.clone()));
            s.waiting.push_back(data);
        }
        taken
    }

    /// The stream ends after what was written.
    pub(crate) fn finish(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_default().ends = true;
    }

    /// Offers the stack what waits, by `write`. While data is early, all of it is kept.
    ///
    /// # Errors
    /// The stack breaks a rule.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        early: bool,
        mut write: impl FnMut(StreamId, &[u8], bool) -> usize,
    ) -> Result<(), String> {
        let mut order: Vec<StreamId> = self.streams.keys().copied().collect();
        if !self.urgency.is_empty() {
            order.sort_by_key(|id| self.urgency.get(id).copied().unwrap_or(URGENCY));
        }
        for id in order {
            self.offer_of(id, now, &mut write)?;
        }
        if !early {
            self.streams.retain(|_, s| {
                s.early.clear();
                !s.ended
            });
        }
        Ok(())
    }

    /// Offers what waits on one stream.
    fn offer_of(
        &mut self,
        id: StreamId,
        now: Instant,
        write: &mut impl FnMut(StreamId, &[u8], bool) -> usize,
    ) -> Result<(), String> {
        let Some(s) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        while let Some(data) = s.waiting.front_mut() {
            let taken = write(id, data, false);
            if taken > data.len() {
                return Err(format!("write took {taken} bytes of {}", data.len()));
            }
            data.advance(taken);
            if self.at_once.0 != now {
                self.at_once = (now, 0);
            }
            self.at_once.1 += taken as u64;
            if self.at_once.1 > self.most_at_once {
                return Err(format!(
                    "write takes more than {WINDOWS_AT_ONCE} times send_window at once; take no more than the \
                     window has room for"
                ));
            }
            if !data.is_empty() {
                break;
            }
            s.waiting.pop_front();
        }
        if s.ends && !s.ended && s.waiting.is_empty() {
            s.ended = true;
            write(id, &[], true);
        }
        Ok(())
    }

    /// The server has rejected early data and the stack has discarded its streams: they are opened again, and all of
    /// their data waits.
    ///
    /// # Errors
    /// The stack breaks a rule.
    pub(crate) fn again(
        &mut self,
        mut open_stream: impl FnMut(Direction) -> Option<StreamId>,
    ) -> Result<(), String> {
        for (id, s) in &mut self.streams {
            // The second lowest bit of its number (RFC 9000 §2.1).
            let opened = open_stream(match *id & 2 {
                0 => Direction::Bidirectional,
                _ => Direction::Unidirectional,
            });
            if opened != Some(*id) {
                return Err(format!(
                    "open_stream did not open stream {id} again after the rejection of early data"
                ));
            }
            s.waiting = std::mem::take(&mut s.early).into();
            s.ended = false;
        }
        Ok(())
    }

    /// Whether the stack has taken all data that was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.values().all(|s| s.waiting.is_empty())
    }
}

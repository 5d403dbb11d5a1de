//! What an application changes of a connection in use (socket options of real programs), and how it writes parts of a
//! message.

use bytes::Bytes as Content;
use gargalo_units::{Bytes, Duration, Instant};

use super::Endpoint;
use super::super_segments::{Queue, Sizes, SuperSegments};
use crate::sender::Hold;
use crate::{Event, Nagle};

/// What follows the data of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is known.
    #[default]
    Plain,
    /// More follows soon: what does not fill a segment waits for it, for an acknowledgement or for the retransmission
    /// timeout, even without Nagle's algorithm (Linux: `MSG_MORE`).
    More,
    /// A record ends here: no segment has data from before and from after it (Linux: `MSG_EOR`).
    Record,
}

impl Endpoint {
    /// Writes content like [`write`](Self::write), and says what follows it. What was taken leaves with the next
    /// [`poll_transmit`](Self::poll_transmit), so a write whose data shall not wait for this one is polled first.
    pub fn write_with(&mut self, data: Content, ending: Ending) -> usize {
        if !self.may_write() {
            return 0;
        }
        let offered = data.len();
        let from = self.writes.buffer.end();
        let taken = self.writes.buffer.write(data, self.write_bound());
        self.append(taken as u64, offered as u64);
        let end = self.writes.buffer.end();
        let sizes = self.sizes();
        if let (Some(sizes), Some(list)) = (sizes, &mut self.writes.super_segments)
            && taken > 0
        {
            list.on_write(from, end, self.seq.sent, sizes, ending == Ending::More);
            if ending == Ending::Record && taken == offered {
                list.close(end);
            }
        }
        match ending {
            _ if taken == 0 => {}
            Ending::Plain => {}
            Ending::More => self.hold_mut().on_write(true),
            // A write that was not taken in full continues.
            Ending::Record if taken < offered => {}
            Ending::Record => self.hold_mut().end_record(end),
        }
        taken
    }

    /// Nagle's algorithm (RFC 9293 §3.7.4). Switched off, all that is written leaves at once, corked or not (Linux:
    /// `TCP_NODELAY`).
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.hold_mut().set_nagle(nagle);
    }

    /// The present setting of Nagle's algorithm.
    pub fn nagle(&self) -> Nagle {
        self.hold().nagle
    }

    /// Holds what does not fill a segment back until it is switched off, at most for the retransmission timeout once
    /// nothing is in flight (Linux: `TCP_CORK`; by Linux's rules the timeout is at least 200 ms).
    pub fn set_cork(&mut self, on: bool) {
        self.hold_mut().set_cork(on);
    }

    /// Whether it is on.
    pub fn is_corked(&self) -> bool {
        self.hold().is_corked()
    }

    /// Capacity of the send buffer (Linux: `SO_SNDBUF`). What it has already stays.
    pub fn set_send_buffer(&mut self, bytes: Bytes) {
        self.writes.capacity = bytes.get();
    }

    /// The present capacity of the send buffer.
    pub fn send_buffer(&self) -> Bytes {
        Bytes::new(self.writes.capacity)
    }

    /// Unsent bytes above which nothing more is taken, up to a full segment; `None`: only the send buffer limits them
    /// (Linux: `TCP_NOTSENT_LOWAT`).
    pub fn set_notsent_lowat(&mut self, bytes: Option<Bytes>) {
        self.writes.notsent_lowat = bytes.map_or(u64::MAX, Bytes::get);
    }

    /// How long data may stay unacknowledged, and a window closed, before the connection is given up; `None`: as many
    /// retransmissions as the configuration says (RFC 5482; Linux: `TCP_USER_TIMEOUT`). As in Linux it counts from the
    /// first retransmission or window probe on; of a SYN from the first transmission on.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.user_timeout = timeout;
        if let Some(sender) = &mut self.sender {
            sender.set_user_timeout(timeout);
        }
    }

    /// The present user timeout.
    pub fn user_timeout(&self) -> Option<Duration> {
        self.user_timeout
    }

    /// Whether an application that waits for room should write: a third of the send buffer is free, and less than half
    /// of what [`set_notsent_lowat`](Self::set_notsent_lowat) allows is unsent (Linux's rule of `poll`).
    pub fn is_writable(&self) -> bool {
        let used = self.writes.buffer.len();
        let free = self.writes.capacity.saturating_sub(used);
        self.may_write()
            && free >= used / 2
            && free > 0
            && self.unsent().saturating_mul(2) < self.writes.notsent_lowat
    }

    /// Whether a write was not taken in full and that it may continue has not been reported to the application by
    /// [`is_writable`](Self::is_writable).
    pub fn wants_room(&self) -> bool {
        self.sender.as_ref().is_some_and(|s| s.written.wants_room)
    }

    fn hold(&self) -> &Hold {
        self.sender.as_ref().map_or(&self.early_hold, |s| &s.hold)
    }

    pub(super) fn hold_mut(&mut self) -> &mut Hold {
        match &mut self.sender {
            Some(sender) => &mut sender.hold,
            None => &mut self.early_hold,
        }
    }

    /// What the lengths of super-segments depend on; `None`: the data is not kept in such.
    fn sizes(&self) -> Option<Sizes> {
        let sender = self.sender.as_ref()?;
        self.writes.super_segments.as_ref()?;
        Some(Sizes {
            mss: sender.mss().into(),
            window: self.peer.largest(),
        })
    }

    /// How many bytes of a write should be passed, and sent as far as they may, before the rest, as Linux does it:
    /// there are super-segments, and nothing unsent is before this one. `None`: all of it.
    pub fn first_piece(&self) -> Option<u64> {
        SuperSegments::first(self.writes.buffer.end(), self.seq.sent, self.sizes()?)
    }

    /// The bytes that the send buffer may have now if contents are written.
    pub(super) fn write_bound(&self) -> u64 {
        let (Some(sizes), Some(list)) = (self.sizes(), &self.writes.super_segments) else {
            return self.write_limit();
        };
        let queue = Queue {
            end: self.writes.buffer.end(),
            sent: self.seq.sent,
            held: self.writes.buffer.len(),
            room: self.writes.capacity,
            lowat: self.writes.notsent_lowat,
        };
        self.writes
            .buffer
            .len()
            .saturating_add(list.room(queue, sizes))
    }

    /// The bytes that the send buffer may have now.
    #[inline]
    pub(super) fn write_limit(&self) -> u64 {
        if self.writes.notsent_lowat == u64::MAX {
            return self.writes.capacity;
        }
        let unsent = self.unsent();
        let room = self.writes.notsent_lowat.saturating_sub(unsent);
        let segment = u64::from(self.size.agreed.max(1));
        let room = room.div_ceil(segment).saturating_mul(segment);
        self.writes
            .capacity
            .min(self.writes.buffer.len().saturating_add(room))
    }

    /// All that may be sent was sent: an application that waits for room may continue.
    #[inline]
    pub(super) fn check_room(&mut self) {
        if self.wants_room() && self.is_writable() {
            self.got_room();
        }
    }

    #[inline(never)]
    fn got_room(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.written.wants_room = false;
        }
        if self.writes.notsent_lowat != u64::MAX && self.writes.blocked {
            self.writes.blocked = false;
            self.events.push(Event::Writable);
        }
    }

    /// When a SYN that was sent at `first` and must be sent again at `deadline` is given up or sent again.
    pub(super) fn syn_deadline(&self, now: Instant, first: Instant, deadline: Instant) -> Instant {
        match self.user_timeout {
            Some(timeout) => deadline.min((first + timeout).max(now + Duration::from_millis(1))),
            None => deadline,
        }
    }
}

//! From the streams of subflows to the one of the connection (RFC 8684 §3.3.1, §3.7).

use bytes::BytesMut;
use gargalo_tcp::Chunk;
use gargalo_units::{Duration, Instant};
use gargalo_wire::Checksum;
use gargalo_wire::mptcp::MptcpOption;

use super::{Connection, Courtesy, Mode};
use crate::error::ResetReason;
use crate::event::Event;
use crate::mapping::Mapping;
use crate::scheduler::PathView;
use crate::subflow::{Origin, Subflow};

/// After this time without data a path may be unknown to who sends.
const EXPLORES: Duration = Duration::from_millis(100);

/// The checksum of a mapping over its pseudo-header and its data (RFC 8684 §3.3.1).
pub(crate) fn checksum(data_seq: u64, subflow_seq: u32, length: u16, data: &[u8]) -> u16 {
    Checksum::new()
        .add_u32((data_seq >> 32) as u32)
        .add_u32(data_seq as u32)
        .add_u32(subflow_seq)
        .add_u16(length)
        .add_bytes(data)
        .finish()
}

impl Connection {
    /// Takes what a subflow has in order.
    #[inline]
    pub(super) fn drain(&mut self, now: Instant, i: usize) {
        let before = (self.receive.next(), self.receive.is_finished());
        let mut disorder = false;
        let mut readable = false;
        let mut useless = false;
        let consumed = self.subflows[i].consumed;
        loop {
            let s = &mut self.subflows[i];
            let available = s.endpoint.readable();
            if available == 0 {
                break;
            }
            let mapping = match self.mode {
                Mode::Multipath => s.received.at(s.consumed),
                Mode::Plain => Some(Mapping {
                    subflow: s.consumed,
                    data: self.receive.next() as i64,
                    len: available.min(u64::from(u32::MAX)) as u32,
                    checksum: None,
                }),
                Mode::Opening => break,
            };
            let Some(m) = mapping else {
                if self.over || s.closing {
                    // Nobody wants it any more.
                    while let Some(chunk) = s.endpoint.read(u64::MAX) {
                        s.consumed += chunk.len();
                    }
                    break;
                }
                if !self.on_broken(now, i, None) {
                    break;
                }
                continue;
            };
            if m.checksum.is_some() && s.consumed == m.subflow {
                if available < u64::from(m.len) {
                    break; // it covers all or nothing
                }
                if !self.take_checked(now, i, m) {
                    continue;
                }
                disorder = true;
                readable = true;
                continue;
            }
            let Some(chunk) = s.endpoint.read(m.end() - s.consumed) else {
                break;
            };
            let at = m.data + (s.consumed - m.subflow) as i64;
            s.consumed += chunk.len();
            let arrived = match self.mode {
                Mode::Plain => self.receive.take_plain(chunk),
                _ => self.receive.take(at, chunk),
            };
            disorder |= arrived.disorder;
            useless |= arrived.useless;
            readable |= arrived.readable;
        }
        // The peer has sent something twice: its subflow is not the stream.
        self.contiguous &= !useless;
        if readable && self.receive.next() != before.0 {
            self.events.readable();
        }
        let s = &mut self.subflows[i];
        let fresh = now - s.fed_at >= EXPLORES;
        if s.consumed != consumed {
            s.fed_at = now;
            if useless || fresh || (disorder && self.receive.next() != before.0) {
                // A hole is filled: whoever waits for the window should know. And what comes first after
                // long, or comes twice, explores its path, which an acknowledgement that is delayed would
                // make look longer.
                s.endpoint.demand_ack();
            }
        }
        if self.receive.next() != before.0 && self.subflows.len() > 1 {
            self.tell_fastest();
        }
        if self.receive.is_finished() && !before.1 {
            self.events.push(Event::PeerClosed);
            self.subflows[i].endpoint.demand_ack();
        }
    }

    /// The acknowledgement of data that came by a slow path is back sooner by the fastest one. There it leaves
    /// when a sixteenth of the window has arrived since that path told of it last.
    fn tell_fastest(&mut self) {
        let usable = |v: &&PathView| v.usable && !v.in_loss;
        let fastest = self.views.iter().filter(usable).min_by_key(|v| v.latency());
        let Some(id) = fastest.map(|v| v.id) else {
            return;
        };
        let news = self.receive.news();
        let next = self.receive.next();
        let late = |s: &&mut Subflow| s.id == id && next - s.told >= news;
        if let Some(s) = self.subflows.iter_mut().find(late) {
            s.endpoint.demand_ack();
            self.active |= s.bit();
        }
    }

    /// Takes a whole mapping with a checksum; `false`: it is wrong.
    fn take_checked(&mut self, now: Instant, i: usize, m: Mapping) -> bool {
        let s = &mut self.subflows[i];
        let mut bytes = BytesMut::new();
        let mut chunks = Vec::new();
        let mut left = u64::from(m.len);
        while let Some(chunk) = s.endpoint.read(left) {
            left -= chunk.len();
            match &chunk {
                Chunk::Real(b) => bytes.extend_from_slice(b),
                Chunk::Synthetic(n) => bytes.resize(bytes.len() + *n as usize, 0),
            }
            chunks.push(chunk);
        }
        s.consumed += u64::from(m.len);
        let Some(peer) = self.peer else { return false };
        let data_seq = peer.idsn().wrapping_add(1).wrapping_add(m.data as u64);
        let subflow_seq = (m.subflow as u32).wrapping_add(1);
        let expected = checksum(data_seq, subflow_seq, m.len as u16, &bytes);
        // Both zeros of ones' complement are the same.
        let same = m.checksum.is_some_and(|c| {
            c == expected || (c ^ expected) == 0xffff && (c == 0 || expected == 0)
        });
        if !same && !self.on_broken(now, i, Some(&m)) {
            return false;
        }
        let mut at = m.data;
        for chunk in chunks {
            let len = chunk.len() as i64;
            if same {
                self.receive.take(at, chunk);
            } else {
                // What was changed on the way is the stream now, and follows what has come.
                self.receive.take_plain(chunk);
            }
            at += len;
        }
        true
    }

    /// Bytes without a mapping, or with a wrong checksum: something on the path changes the stream. A
    /// connection of one subflow goes on as plain TCP (`true`), else the subflow ends.
    fn on_broken(&mut self, now: Instant, i: usize, wrong: Option<&Mapping>) -> bool {
        let alone = self.subflows[i].origin == Origin::Initial
            && self.subflows.len() == 1
            && self.contiguous
            && self.receive.out_of_order() == 0;
        if !alone {
            if wrong.is_some() {
                let data_seq = self.failed_at(wrong);
                // With the reset, as there is room for no other option (RFC 8684 §3.7).
                self.reset_subflow(now, i, ResetReason::Middlebox);
                self.subflows[i].last_words = Some(MptcpOption::Fail { data_seq });
            } else {
                self.reset_subflow(now, i, ResetReason::ProtocolError);
            }
            return false;
        }
        if self.confirmed {
            self.warn(i, wrong);
        }
        self.fall_back(now, i);
        true
    }

    /// This end is about to fall back, and the peer may not know. Further acknowledgements have DATA_ACK, or
    /// it would repeat at data level what is not acknowledged there, and its repetitions would be taken for
    /// new data. It is told by MP_FAIL (RFC 8684 §3.7) at once if a checksum is wrong; if mappings are
    /// missing, only when it has nothing more to send, because Linux 6.18 then stops.
    pub(super) fn warn(&mut self, i: usize, wrong: Option<&Mapping>) {
        self.courtesy = Courtesy::Silent;
        if wrong.is_some() {
            self.say_failed(i, wrong);
        }
    }

    fn say_failed(&mut self, i: usize, wrong: Option<&Mapping>) {
        self.courtesy = Courtesy::Said;
        let data_seq = self.failed_at(wrong);
        self.subflows[i]
            .signals
            .push_back(MptcpOption::Fail { data_seq });
    }

    /// After fallback the peer repeats itself without data. It may be DATA_FIN, which does not arrive.
    pub(super) fn on_plain_repetition(&mut self, now: Instant, i: usize) {
        let s = &self.subflows[i];
        if self.courtesy == Courtesy::Silent && now - s.fed_at >= s.endpoint.snapshot(now).rto {
            self.say_failed(i, None);
        }
    }

    fn failed_at(&self, wrong: Option<&Mapping>) -> u64 {
        let at = wrong.map_or(self.receive.next() as i64, |m| m.data);
        let base = self.peer.map_or(0, |k| k.idsn().wrapping_add(1));
        base.wrapping_add(at as u64)
    }

    /// The peer found a mapping of ours broken (RFC 8684 §3.7).
    pub(super) fn on_fail(&mut self, now: Instant, i: usize, _data_seq: u64) {
        if self.mode != Mode::Multipath {
            return;
        }
        if self.subflows.len() == 1 && self.contiguous {
            self.fall_back(now, i);
        } else {
            self.reset_subflow(now, i, ResetReason::Middlebox);
        }
    }
}

//! Reassembly of the connection's stream from those of its subflows (RFC 8684 §3.3.1, §3.7).

use bytes::BytesMut;
use gargalo_tcp::Chunk;
use gargalo_units::{Duration, Instant};
use gargalo_wire::Checksum;
use gargalo_wire::mptcp::MptcpOption;

use super::{Connection, FallbackNotice, Mode};
use crate::error::ResetReason;
use crate::event::Event;
use crate::mapping::Mapping;
use crate::scheduler::PathView;
use crate::subflow::{Origin, Subflow};

/// After this time without data the sender's measurements of a path may be outdated.
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
    /// Reads the in-order data of a subflow.
    #[inline]
    pub(super) fn drain(&mut self, now: Instant, i: usize) {
        if self.subflows[i].endpoint.readable() == 0 {
            return;
        }
        let before = (self.receive.next(), self.receive.is_finished());
        let mut disorder = false;
        let mut readable = false;
        let mut useless = false;
        let consumed = self.subflows[i].input.consumed;
        loop {
            let s = &mut self.subflows[i];
            let available = s.endpoint.readable();
            if available == 0 {
                break;
            }
            let mapping = match self.mode {
                Mode::Multipath => s.input.received.at(s.input.consumed),
                Mode::Plain => Some(Mapping {
                    subflow: s.input.consumed,
                    data: self.receive.next() as i64,
                    len: available.min(u64::from(u32::MAX)) as u32,
                    checksum: None,
                }),
                Mode::Opening => break,
            };
            let Some(m) = mapping else {
                if self.over || s.closing {
                    // The data is discarded after the end.
                    while let Some(chunk) = s.endpoint.read(u64::MAX) {
                        s.input.consumed += chunk.len();
                    }
                    break;
                }
                if !self.on_broken(now, i, None) {
                    break;
                }
                continue;
            };
            if m.checksum.is_some() && s.input.consumed == m.subflow {
                if available < u64::from(m.len) {
                    break; // a checksum covers the whole mapping
                }
                if !self.take_checked(now, i, m) {
                    continue;
                }
                disorder = true;
                readable = true;
                continue;
            }
            let Some(chunk) = s.endpoint.read(m.end() - s.input.consumed) else {
                break;
            };
            let at = m.data + (s.input.consumed - m.subflow) as i64;
            s.input.consumed += chunk.len();
            let arrived = match self.mode {
                Mode::Plain => self.receive.take_plain(chunk),
                _ => self.receive.take(at, chunk),
            };
            disorder |= arrived.disorder;
            useless |= arrived.useless;
            readable |= arrived.readable;
        }
        // The peer has sent data twice: the subflow's stream is not the connection's.
        self.fallback.contiguous &= !useless;
        if readable && self.receive.next() != before.0 {
            self.events.readable();
        }
        let s = &mut self.subflows[i];
        let fresh = now - s.input.read_at >= EXPLORES;
        if s.input.consumed != consumed {
            s.input.read_at = now;
            if useless || fresh || (disorder && self.receive.next() != before.0) {
                // A hole is filled: a sender that waits for the window must learn it. And the first data after a
                // long time, or duplicate data, probes its path; a delayed acknowledgement would inflate its
                // round-trip time.
                s.endpoint.demand_ack();
            }
        }
        if self.receive.next() != before.0 && self.subflows.len() > 1 {
            self.ack_on_fastest();
        }
        if self.receive.is_finished() && !before.1 {
            self.events.push(Event::PeerClosed);
            self.subflows[i].endpoint.demand_ack();
        }
    }

    /// Acknowledges data of slow paths on the fastest one, by which the acknowledgement arrives earlier: once per
    /// sixteenth of the window received since the last DATA_ACK on that path.
    fn ack_on_fastest(&mut self) {
        let ack_threshold = self.receive.ack_threshold();
        let next = self.receive.next();
        let late = |s: &Subflow| next - s.outbox.data_ack >= ack_threshold;
        if !self.subflows.iter().any(late) {
            return;
        }
        let usable = |v: &&PathView| v.usable && !v.in_loss;
        let fastest = self.views.iter().filter(usable).min_by_key(|v| v.latency());
        let Some(id) = fastest.map(|v| v.id) else {
            return;
        };
        if let Some(s) = self.subflows.iter_mut().find(|s| s.id == id && late(s)) {
            s.endpoint.demand_ack();
            self.work.active |= s.bit();
        }
    }

    /// Reads a whole mapping with a checksum; `false` if the checksum is wrong.
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
        s.input.consumed += u64::from(m.len);
        let Some(peer) = self.handshake.peer else {
            return false;
        };
        let data_seq = peer.idsn().wrapping_add(1).wrapping_add(m.data as u64);
        let subflow_seq = (m.subflow as u32).wrapping_add(1);
        let expected = checksum(data_seq, subflow_seq, m.len as u16, &bytes);
        // Both zeros of one's complement are equal.
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
                // The modified data becomes part of the stream, behind the data received before.
                self.receive.take_plain(chunk);
            }
            at += len;
        }
        true
    }

    /// Handles bytes without a mapping, or with a wrong checksum: a middlebox modifies the stream. A connection of
    /// one subflow continues as plain TCP (`true`), else the subflow ends.
    fn on_broken(&mut self, now: Instant, i: usize, wrong: Option<&Mapping>) -> bool {
        let alone = self.subflows[i].origin == Origin::Initial
            && self.subflows.len() == 1
            && self.fallback.contiguous
            && self.receive.out_of_order() == 0;
        if !alone {
            if wrong.is_some() {
                let data_seq = self.failed_at(wrong);
                // Sent with the reset (RFC 8684 §3.7).
                self.reset_subflow(now, i, ResetReason::Middlebox);
                self.subflows[i].outbox.reset_options = Some(MptcpOption::Fail { data_seq });
            } else {
                self.reset_subflow(now, i, ResetReason::Middlebox);
            }
            return false;
        }
        if self.handshake.confirmed {
            self.notify_fallback(i, wrong);
        }
        self.fall_back(now, i);
        true
    }

    /// Informs the peer that this end falls back. Further acknowledgements carry DATA_ACK; otherwise the peer would
    /// retransmit at data level, and the retransmissions would be taken for new data. MP_FAIL (RFC 8684 §3.7) is
    /// sent at once if a checksum is wrong. If mappings are missing, it is sent only when the peer has nothing more
    /// to send, because Linux 6.18 stops sending on MP_FAIL.
    pub(super) fn notify_fallback(&mut self, i: usize, wrong: Option<&Mapping>) {
        self.fallback.notice = FallbackNotice::DataAck;
        if wrong.is_some() {
            self.say_failed(i, wrong);
        }
    }

    fn say_failed(&mut self, i: usize, wrong: Option<&Mapping>) {
        self.fallback.notice = FallbackNotice::Fail;
        let data_seq = self.failed_at(wrong);
        self.subflows[i]
            .outbox
            .signals
            .push_back(MptcpOption::Fail { data_seq });
    }

    /// After fallback the peer retransmits segments without data. These may be for a DATA_FIN that does not arrive.
    pub(super) fn on_plain_repetition(&mut self, now: Instant, i: usize) {
        let s = &self.subflows[i];
        if self.fallback.notice == FallbackNotice::DataAck
            && now - s.input.read_at >= s.endpoint.snapshot(now).rto
        {
            self.say_failed(i, None);
        }
    }

    fn failed_at(&self, wrong: Option<&Mapping>) -> u64 {
        let at = wrong.map_or(self.receive.next() as i64, |m| m.data);
        let base = self.handshake.peer.map_or(0, |k| k.idsn().wrapping_add(1));
        base.wrapping_add(at as u64)
    }

    /// Processes MP_FAIL: the peer found one of our mappings broken (RFC 8684 §3.7).
    pub(super) fn on_fail(&mut self, now: Instant, i: usize, _data_seq: u64) {
        if self.mode != Mode::Multipath {
            return;
        }
        if self.subflows.len() == 1 && self.fallback.contiguous {
            self.fall_back(now, i);
        } else {
            self.reset_subflow(now, i, ResetReason::Middlebox);
        }
    }
}

//! Assignment of segments to subflows.

use gargalo_units::{Duration, Instant};

use super::reading::checksum;
use super::{Connection, Mode};
use crate::event::{Carried, Notice};
use crate::mapping::Mapping;
use crate::scheduler::{Choice, Context};
use crate::send::Outstanding;
use crate::subflow::Subflow;

/// Length of MP_CAPABLE with data length, with or without checksum, in whole words.
const CAPABLE_WITH_DATA: u16 = 24;

impl Connection {
    /// Assigns one segment to a subflow; `false` if there is no segment or no subflow for it until the next event.
    #[inline]
    pub(super) fn schedule(&mut self, now: Instant) -> bool {
        if !self.work.schedule_due || self.over {
            return false;
        }
        if !self.send.is_busy() {
            self.work.schedule_due = false;
            return false;
        }
        self.update_changed_views(now);
        let given = self.views.iter().any(|v| v.can_send)
            && ((!self.send.again.is_empty() && self.resend(now))
                || self.copy(now)
                || self.send_new(now)
                || self.opportunistic_retransmit(now));
        self.work.schedule_due = given;
        if !given {
            for (s, v) in self.subflows.iter_mut().zip(&self.views) {
                if v.can_send {
                    s.endpoint.leave_unused();
                }
            }
        }
        given
    }

    /// Sends new data on the path that the scheduler selects.
    fn send_new(&mut self, now: Instant) -> bool {
        let unsent = self.send.unsent();
        let room = self.send.window_room();
        if unsent == 0 || room == 0 {
            return false;
        }
        for (v, p) in self.views.iter_mut().zip(&self.places) {
            v.held = self.send.held_by(p.slot);
        }
        let context = Context {
            now,
            paths: &self.views,
            labels: &self.labels,
            unsent,
            more: self.send.write_blocked,
            window: self.send.window(),
            window_room: self.send.fillable(),
            blocked: self.blocked,
        };
        let (i, to_all) = match self.scheduler.select(&context) {
            Choice::Send(i) => (i, false),
            Choice::SendAll(i) => (i, true),
            Choice::Wait => {
                // Nothing is in flight: no event would end the wait.
                let idle = self.views.iter().all(|v| v.in_flight == 0);
                match context.lowest_latency().filter(|_| idle) {
                    Some(i) => (i, false),
                    None => return false,
                }
            }
        };
        let Some(view) = self.views.get(i).filter(|v| v.can_send) else {
            return false;
        };
        let mut most = view.mss;
        if self.is_client && !self.handshake.confirmed && self.subflows[i].written == 0 {
            // MP_CAPABLE with data length may be longer than the room reserved for DSS.
            let longer = CAPABLE_WITH_DATA.saturating_sub(self.reserved());
            most = most.saturating_sub(u64::from(longer)).max(1);
        }
        let len = most.min(unsent).min(room);
        let waits = len < unsent || self.send.is_full();
        if len < most && waits && self.send.una < self.send.next {
            return false; // silly window avoidance (RFC 9293 §3.8.6.2.1)
        }
        let (data, len) = (self.send.next, len as u32);
        let subflow = self.subflows[i].written;
        self.push_bytes(now, i, data, len);
        let s = &self.subflows[i];
        self.send.on_sent(Outstanding {
            data,
            subflow,
            sent_at: now,
            carriers: s.bit(),
            len,
            latest: s.slot,
        });
        self.stats.new_segments += 1;
        self.note(now, i, data, len, Carried::New);
        if self.timers.data == Instant::MAX {
            self.arm_data_timer(now);
        }
        if self.subflows.len() > 1 && (to_all || self.views.iter().any(|v| v.in_flight == 0)) {
            self.copy_to_others(now, i, data, len, to_all);
        }
        if self.send.unsent() == 0 {
            self.advance_close(now);
        }
        true
    }

    /// Queues copies: on all paths for a redundant scheduler, and at intervals on idle paths, to keep their
    /// measurements current. Backups get none.
    fn copy_to_others(&mut self, now: Instant, i: usize, data: u64, len: u32, all: bool) {
        let interval = self.config.options.probes();
        for (j, (s, v)) in self.subflows.iter_mut().zip(&self.views).enumerate() {
            // A backup carries neither copies nor probes while other paths can send.
            let idle_backup = v.backup && !self.views[i].backup;
            if j == i || !v.usable || v.in_loss || idle_backup {
                continue;
            }
            let is_old = |s: &Subflow| {
                let aged = |t: Duration| v.srtt.is_none_or(|r| now - s.last_pushed >= t.max(r * 4));
                interval.is_some_and(aged) && s.copies.is_empty()
            };
            if all || (v.in_flight == 0 && is_old(s)) {
                self.work.has_copies = true;
                let end = data + u64::from(len);
                match s.copies.back_mut() {
                    Some(last) if last.1 == data => last.1 = end,
                    _ => s.copies.push_back((data, end)),
                }
            }
        }
    }

    /// Sends a pending copy.
    fn copy(&mut self, now: Instant) -> bool {
        if !self.work.has_copies {
            return false;
        }
        for i in 0..self.subflows.len() {
            if !self.views[i].can_send || self.subflows[i].copies.is_empty() {
                continue;
            }
            let una = self.send.una;
            let s = &mut self.subflows[i];
            let bit = s.bit();
            while let Some((from, to)) = s.copies.front_mut() {
                *from = (*from).max(una);
                if *from >= *to {
                    s.copies.pop_front();
                    continue;
                }
                let Some(o) = self.send.find(*from).copied() else {
                    s.copies.pop_front();
                    continue;
                };
                *from = o.end();
                if o.carriers & bit == 0 {
                    self.give_again(now, i, o.data, Carried::Copy);
                    return true;
                }
            }
        }
        self.work.has_copies = self.subflows.iter().any(|s| !s.copies.is_empty());
        false
    }

    /// Assigns an outstanding segment to one more subflow.
    pub(super) fn give_again(&mut self, now: Instant, i: usize, start: u64, why: Carried) {
        let una = self.send.una;
        let s = &self.subflows[i];
        let delivery = (why != Carried::Copy).then_some((s.written, now));
        self.send.give(start, s.slot, delivery);
        let Some(o) = self.send.find(start) else {
            return;
        };
        // The acknowledged part is not in the buffer any more.
        let from = o.data.max(una);
        let len = (o.end() - from) as u32;
        self.fallback.contiguous = false;
        self.push_bytes(now, i, from, len);
        *match why {
            Carried::New => &mut self.stats.new_segments,
            Carried::Reinjected => &mut self.stats.reinjected_segments,
            Carried::Opportunistic => &mut self.stats.opportunistic_segments,
            Carried::Copy => &mut self.stats.copied_segments,
        } += 1;
        self.note(now, i, from, len, why);
    }

    /// Writes bytes of the stream to a subflow and maps them.
    fn push_bytes(&mut self, now: Instant, i: usize, data: u64, len: u32) {
        let payload = self.send.buffer.payload(data, len);
        let base = self.own_base();
        let several = self.subflows.len() > 1;
        let s = &mut self.subflows[i];
        let sum = || {
            let zeros;
            let bytes = match payload.bytes() {
                Some(b) => &b[..],
                None => {
                    zeros = vec![0; len as usize];
                    &zeros
                }
            };
            let number = (s.written as u32).wrapping_add(1);
            checksum(base.wrapping_add(data), number, len as u16, bytes)
        };
        let mapping = Mapping {
            subflow: s.written,
            data: data as i64,
            len,
            checksum: (self.handshake.checksum && self.mode == Mode::Multipath).then(sum),
        };
        match payload.bytes() {
            Some(bytes) => {
                s.endpoint.write(bytes.clone());
            }
            None => {
                s.endpoint.write_synthetic(u64::from(len));
            }
        }
        s.sent.push(mapping);
        s.written += u64::from(len);
        s.last_pushed = now;
        if several {
            s.burst.on_send(now, len);
        }
        self.work.active |= s.bit();
        // There is room for more only after the endpoint has sent it.
        self.views[i].can_send = false;
    }

    #[inline]
    fn note(&mut self, now: Instant, i: usize, offset: u64, len: u32, why: Carried) {
        if self.config.decisions {
            let subflow = self.subflows[i].id;
            self.notices.push_back(Notice::Scheduled {
                now,
                subflow,
                offset,
                len,
                why,
            });
        }
    }
}

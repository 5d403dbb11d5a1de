//! The end of connections and subflows (RFC 8684 §3.3.3, §3.5, §3.6).

use gargalo_tcp::{Error, State};
use gargalo_units::Instant;
use gargalo_wire::mptcp::MptcpOption;

use super::opening::reset_option;
use super::{Connection, Mode};
use crate::error::ResetReason;
use crate::event::{Event, Notice};
use crate::send::Fin;
use crate::subflow::{Origin, Subflow};

/// Maximum number of ended subflows kept for [`Connection::poll_ended`].
const MOST_ENDED: usize = 256;

impl Connection {
    /// Closes our direction: DATA_FIN follows the written data. The peer's direction stays open.
    pub fn close(&mut self, now: Instant) {
        if self.over || self.send.fin != Fin::Open {
            return;
        }
        self.send.fin = Fin::Wanted;
        if !self.connected && self.send.end == 0 {
            self.end(now, None);
            return;
        }
        self.work.schedule_due = true;
        self.advance_close(now);
    }

    /// Ends the connection at once: every subflow is reset, with MP_FASTCLOSE (RFC 8684 §3.5).
    pub fn abort(&mut self, now: Instant) {
        self.end(now, Some(Error::Aborted));
    }

    /// Ends the connection: subflows that are still open are reset.
    pub(super) fn end(&mut self, now: Instant, error: Option<Error>) {
        if self.over {
            return;
        }
        self.over = true;
        self.error = error;
        self.timers.clear();
        self.send.again.clear();
        let words = match (self.mode, self.handshake.peer) {
            (Mode::Multipath, Some(peer)) => Some(MptcpOption::FastClose {
                receiver_key: peer.get(),
            }),
            _ => None,
        };
        for s in &mut self.subflows {
            s.closing = true;
            s.outbox.reset_options.clone_from(&words);
            s.endpoint.abort(now);
            self.work.active |= s.bit();
        }
        self.events.push(match error {
            None | Some(Error::Aborted) => Event::Closed,
            Some(Error::Reset | Error::Refused | Error::Unreachable) => Event::Reset,
            Some(Error::TimedOut) => Event::TimedOut,
        });
    }

    /// Both directions have sent DATA_FIN.
    pub(super) fn is_finishing(&self) -> bool {
        self.send.fin == Fin::Acked && self.receive.is_finished()
    }

    /// Takes the next step of an orderly close, if possible.
    #[inline]
    pub(super) fn advance_close(&mut self, now: Instant) {
        if self.send.fin == Fin::Open || self.over {
            return;
        }
        match self.mode {
            Mode::Opening => {}
            Mode::Plain => self.close_plain(now),
            Mode::Multipath => {
                if self.send.fin == Fin::Wanted && self.send.unsent() == 0 && self.connected {
                    self.send.fin = Fin::Sent;
                    self.send_fin(now);
                }
                if self.is_finishing() {
                    self.finish(now);
                }
            }
        }
    }

    fn close_plain(&mut self, now: Instant) {
        if self.send.unsent() == 0
            && self.send.fin == Fin::Wanted
            && let Some(s) = self
                .subflows
                .iter_mut()
                .find(|s| s.origin == Origin::Initial)
        {
            self.send.fin = Fin::Sent;
            s.endpoint.close(now);
            self.work.active |= s.bit();
        }
    }

    /// Sends DATA_FIN on an acknowledgement of the best subflow; a retransmission goes on all subflows. Before it,
    /// a client repeats its keys if the peer may not have them.
    pub(super) fn send_fin(&mut self, now: Instant) {
        self.handshake.keys_sent &= self.timers.backoff == 0;
        let usable = self.views.iter().enumerate().filter(|(_, v)| v.usable);
        let best = usable.min_by_key(|(_, v)| (v.in_loss, v.latency()));
        let best = best.map(|(i, _)| i);
        for (i, s) in self.subflows.iter_mut().enumerate() {
            if Some(i) == best || (self.timers.backoff > 0 && s.is_usable()) {
                s.outbox.ack_wanted = true;
                self.work.active |= s.bit();
            }
        }
        self.arm_data_timer(now);
    }

    /// Both DATA_FINs are acknowledged: the subflows close (RFC 8684 §3.3.3).
    fn finish(&mut self, now: Instant) {
        self.over = true;
        self.timers.clear();
        for s in &mut self.subflows {
            s.closing = true;
            s.copies.clear();
            if s.confirmed {
                s.endpoint.close(now);
            } else {
                s.endpoint.abort(now);
            }
            self.work.active |= s.bit();
        }
        self.events.push(Event::Closed);
    }

    /// Ends a subflow by a reset with a reason (RFC 8684 §3.6).
    pub(super) fn reset_subflow(&mut self, now: Instant, i: usize, reason: ResetReason) {
        let s = &mut self.subflows[i];
        if s.closing {
            return;
        }
        s.closing = true;
        s.outbox.reset_options = Some(reset_option(reason));
        s.endpoint.abort(now);
        self.work.active |= s.bit();
        let subflow = s.id;
        if reason != ResetReason::Unspecified {
            self.stats.subflows_reset += 1;
        }
        self.notice(Notice::ResetSubflow {
            now,
            subflow,
            reason,
        });
        self.reinject(now, i);
    }

    /// Processes MP_FASTCLOSE: the peer has aborted the connection.
    pub(super) fn on_fast_close(&mut self, now: Instant) {
        if !self.over {
            // The answer is a plain reset of the subflows that the peer has not reset itself (RFC 8684 §3.5).
            self.end(now, Some(Error::Reset));
            for s in &mut self.subflows {
                s.outbox.reset_options = None;
            }
        }
    }

    /// Processes the FIN of a subflow.
    pub(super) fn on_subflow_fin(&mut self, now: Instant, i: usize) {
        if self.mode == Mode::Plain {
            self.drain(now, i);
            if !self.receive.is_finished() {
                self.receive.finish_here();
                self.events.push(Event::PeerClosed);
            }
            return;
        }
        // Also before DATA_FIN: the peer closes the subflow, not the connection.
        let s = &mut self.subflows[i];
        if !s.closing {
            s.closing = true;
            s.endpoint.close(now);
            self.reinject(now, i);
        }
    }

    /// The endpoint of a subflow is closed or in TIME-WAIT.
    pub(super) fn on_subflow_over(&mut self, now: Instant, i: usize) {
        let s = &mut self.subflows[i];
        let error = s.endpoint.error();
        let lost = s.endpoint.state() == State::Closed && error.is_some();
        let decisive = s.origin == Origin::Initial && (!self.connected || self.mode == Mode::Plain);
        if decisive && !self.over {
            if error.is_none() {
                self.over = true;
                self.timers.clear();
                self.events.push(Event::Closed);
            } else {
                self.end(now, error);
            }
            return;
        }
        if lost {
            s.closing = true;
            self.reinject(now, i);
        }
    }

    /// Removes a closed subflow that has nothing left to send.
    pub(super) fn remove(&mut self, now: Instant, i: usize) {
        self.drain(now, i);
        if !self.subflows[i].closing {
            self.reinject(now, i);
        }
        let s = self.subflows.remove(i);
        self.work.changed &= !s.bit();
        self.places.remove(i);
        self.views.remove(i);
        self.labels.remove(i);
        self.siblings.remove(i);
        self.send.forget_carrier(s.slot);
        super::add(&mut self.stats.tcp, &s.endpoint.stats());
        if s.announced {
            let (id, addresses) = (s.id, s.addresses);
            self.events.push(Event::SubflowClosed { id, addresses });
            if self.ended.len() == MOST_ENDED {
                self.ended.pop_front();
            }
            self.ended.push_back(s.snapshot(now));
        }
        self.work.schedule_due = true;
        if self.over {
            return;
        }
        if self.timers.orphan == Instant::MAX && !self.subflows.iter().any(Subflow::is_usable) {
            self.timers.orphan = now + self.config.orphan_timeout;
        }
        self.on_path_failed(now, &s);
        self.on_paths_changed(now);
    }
}

//! Selection of the segments that are sent.

use gargalo_tcp::State;
use gargalo_units::Instant;
use gargalo_wire::mptcp::List;

use super::{Connection, Transmit};
use crate::subflow::Origin;

impl Connection {
    /// The next segment to send now; call until it returns `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(t) = self.stray.pop_front() {
            return Some(t);
        }
        loop {
            while self.work.active != 0 {
                let slot = self.work.active.trailing_zeros() as u8;
                let Some(i) = self.index_of_slot(slot) else {
                    self.work.active &= !(1 << slot);
                    continue;
                };
                if let Some(t) = self.poll_subflow(now, i) {
                    return Some(t);
                }
                self.work.active &= !(1 << slot);
                self.on_nothing_to_send(now, i);
            }
            if !self.schedule(now) {
                return None;
            }
        }
    }

    #[inline]
    fn poll_subflow(&mut self, now: Instant, i: usize) -> Option<Transmit> {
        let window = self.receive.window();
        let ready = self.send.has_ready(self.views[i].mss);
        let more = ready && self.send.window_room() > 0;
        let s = &mut self.subflows[i];
        s.endpoint.share_window(Some(window));
        s.endpoint.set_more(more);
        if s.confirmed
            && !s.outbox.signals.is_empty()
            && let Some(mut t) = s.endpoint.pure_ack(now)
            && let Some(option) = s.outbox.signals.pop_front()
        {
            // Alone: beside DSS it might not fit.
            t.segment.options.mptcp = Some(Box::new(List::from(option)));
            t.segment.options.fit();
            return Some(Transmit {
                addresses: s.addresses,
                gateway: s.gateway,
                segment: t.segment,
                ecn: t.ecn,
            });
        }
        if s.outbox.ack_wanted
            && let Some(t) = s.endpoint.pure_ack(now)
        {
            s.outbox.ack_wanted = false;
            return Some(self.add_options(i, t));
        }
        let t = s.endpoint.poll_transmit(now)?;
        Some(self.add_options(i, t))
    }

    /// Updates a subflow that has nothing more to send now.
    #[inline]
    fn on_nothing_to_send(&mut self, now: Instant, i: usize) {
        let idle = !self.send.is_busy();
        let s = &self.subflows[i];
        let is_over = match s.endpoint.state() {
            State::Closed => true,
            // The handshake of a join was not completed.
            State::Listen => s.origin == Origin::PeerJoin,
            _ => false,
        };
        if is_over {
            self.remove(now, i);
        } else {
            self.update_view(now, i, idle);
        }
    }
}

//! TIME-WAIT (RFC 9293 §3.6.1): its begin and its early end.

use gargalo_units::{Instant, Seq};
use gargalo_wire::tcp::{Flags, Segment};

use super::Endpoint;
use crate::{Event, State};

impl Endpoint {
    /// Enters TIME-WAIT: both FINs are acknowledged, ours last (RFC 9293 §3.6).
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.become_state(State::TimeWait);
        self.events.push(Event::Closed);
        self.timers.arm_time_wait(now + self.config.time_wait);
    }

    /// Whether this connection, in TIME-WAIT, may be replaced by a new one of the same addresses and ports that
    /// `syn` opens: the timestamp of `syn` is later or, without timestamps or with equal ones, its sequence number
    /// is (RFC 6191 §2, RFC 9293 §3.10.7.4).
    pub fn may_be_succeeded_by(&self, syn: &Segment) -> bool {
        let is_syn =
            syn.flags.contains(Flags::SYN) && !syn.flags.intersects(Flags::ACK | Flags::RST);
        if self.state != State::TimeWait || !is_syn {
            return false;
        }
        let later = self.ack_seq().precedes(syn.seq);
        match (self.timestamps.recent(), syn.options.timestamps) {
            (Some(recent), Some(t)) if t.value != recent => {
                (t.value.wrapping_sub(recent) as i32) > 0
            }
            _ => later,
        }
    }

    /// Ends TIME-WAIT early: a successor needs the ports, or there are too many. Returns SND.NXT, above which a
    /// successor's sequence numbers must be (RFC 9293 §3.6.1); `None` in another state.
    pub fn end_time_wait(&mut self) -> Option<Seq> {
        (self.state == State::TimeWait).then(|| {
            self.end(None);
            self.next_seq()
        })
    }
}

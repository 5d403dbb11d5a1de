use gargalo_units::Instant;

use super::{Endpoint, Urgent};
use crate::{Error, State};

/// The timers that neither the sender nor the receiver owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// End of TIME-WAIT; [`Instant::MAX`]: not armed.
    linger: Instant,
    /// Next keep-alive probe; [`Instant::MAX`]: not armed.
    pub(super) probe: Instant,
    /// Keep-alive probes without an answer.
    pub(super) probes: u32,
    /// A probe has to be sent.
    pub(super) probe_due: bool,
    /// When the last segment of the peer was received.
    pub(super) heard: Instant,
    /// When the last data of the peer was received, or the connection was opened.
    pub(super) data: Instant,
}

impl Timers {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            linger: Instant::MAX,
            probe: Instant::MAX,
            probes: 0,
            probe_due: false,
            heard: now,
            data: now,
        }
    }

    pub(super) fn arm_time_wait(&mut self, until: Instant) {
        self.clear();
        self.linger = until;
    }

    pub(super) fn clear(&mut self) {
        *self = Self {
            data: self.data,
            ..Self::new(self.heard)
        };
    }
}

impl Endpoint {
    /// When to call [`handle_timeout`](Self::handle_timeout); `None` if no timer is armed. It costs a few
    /// comparisons.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        let mut t = self
            .receiver
            .ack()
            .deadline()
            .min(self.timers.linger)
            .min(self.timers.probe);
        if let Some(h) = &self.handshake {
            t = t.min(h.deadline);
        }
        if let Some(s) = &self.sender
            && self.state != State::Closed
            && let Some(at) = s.next_timeout()
        {
            t = t.min(at);
        }
        (t < Instant::MAX).then_some(t)
    }

    /// Runs the timers due at `now`; does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timers.linger <= now {
            self.end(None);
        }
        if self.state == State::Closed {
            return;
        }
        self.receiver.on_timeout(now);
        if self.timers.probe <= now {
            self.on_keep_alive(now);
        }
        if self.handshake.as_ref().is_some_and(|h| h.deadline <= now) {
            self.on_handshake_timeout(now);
        }
        if let Some(sender) = &mut self.sender
            && sender.next_timeout().is_some_and(|t| t <= now)
        {
            sender.on_timeout(now);
            if sender.has_given_up() {
                self.end(Some(self.timeout_error()));
            } else {
                self.suspect_black_hole(now);
            }
        }
    }

    fn on_handshake_timeout(&mut self, now: Instant) {
        let retries = match self.state {
            State::SynSent => self.config.syn_retries,
            _ => self.config.syn_ack_retries,
        };
        let user_timeout = self.user_timeout.filter(|_| self.state == State::SynSent);
        let Some(h) = &mut self.handshake else { return };
        let waited = now.saturating_since(h.first_sent());
        let expired = h.transmissions() > 1 && user_timeout.is_some_and(|t| waited >= t);
        if expired || h.transmissions() > retries {
            self.end(Some(self.timeout_error()));
        } else {
            h.due = true;
            h.deadline = Instant::MAX;
        }
    }

    /// Arms the keep-alive timer if it is wanted (RFC 9293 §3.8.4).
    pub(super) fn arm_keep_alive(&mut self, now: Instant) {
        if let Some(k) = &self.config.keep_alive {
            self.timers.heard = now;
            self.timers.probe = now + k.idle;
        }
    }

    /// Whether keep-alive probes go unanswered for too long: as many as are configured or, with a user timeout, until
    /// it has passed (Linux).
    fn has_probed_enough(&self, now: Instant, most: u32) -> bool {
        match self.user_timeout {
            Some(timeout) => {
                self.timers.probes > 0 && now.saturating_since(self.timers.heard) >= timeout
            }
            None => self.timers.probes >= most,
        }
    }

    fn on_keep_alive(&mut self, now: Instant) {
        let Some(k) = self.config.keep_alive else {
            self.timers.probe = Instant::MAX;
            return;
        };
        // Lazily: received segments only store their time.
        let idle_until = self.timers.heard + k.idle;
        if now < idle_until {
            self.timers.probe = idle_until;
            self.timers.probes = 0;
        } else if self.seq.una < self.seq.sent {
            // Outstanding data is retransmitted and needs no keep-alive.
            self.timers.probe = now + k.interval;
        } else if self.has_probed_enough(now, k.probes) {
            let (seq, ack) = (self.next_seq(), self.ack_seq());
            self.end(Some(Error::TimedOut));
            self.urgent = Some(Urgent::Reset(seq, Some(ack)));
        } else {
            self.timers.probes += 1;
            self.timers.probe_due = true;
            self.timers.probe = now + k.interval;
        }
    }
}

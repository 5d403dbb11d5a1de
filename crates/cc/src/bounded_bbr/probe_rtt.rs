//! PROBE_RTT (draft §5.3.4).

use gargalo_units::Instant;

use super::bounds::ShortTerm;
use super::{BoundedBbr, State, Version};
use crate::event::Acked;

impl<V: Version> BoundedBbr<V> {
    /// UpdateMinRTT and CheckProbeRTT (draft §5.3.4.3).
    pub(crate) fn update_min_rtt(&mut self, ack: &Acked) {
        let expired = self.min_rtt.update(ack.now, ack.rtt);
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt.enter(self.delivered);
            self.probe.stopping();
            self.round.restart(self.delivered);
        }
        if self.state == State::ProbeRtt {
            let (floor, hold) = (self.probe_rtt_cwnd(), self.params.probe_rtt_duration);
            let (probe, round) = (&mut self.probe_rtt, &mut self.round);
            if probe.on_ack(ack, self.delivered, floor, hold, round) {
                self.leave_probe_rtt(ack.now);
            }
        }
        if ack.sample.is_some() {
            self.idle_restart = false;
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    pub(crate) fn leave_probe_rtt(&mut self, now: Instant) {
        self.min_rtt.schedule(now);
        self.restore_cwnd();
        self.short_term = ShortTerm::NONE;
        if self.full_bw.is_reached() {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}

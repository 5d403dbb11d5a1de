//! Reports of the sender: counters, its current state, and its view for sibling subflows.

use gargalo_cc::Sibling;
use gargalo_units::{Bytes, Instant, Rate, SenderCounters};

use super::chrono::Work;
use super::{Phase, Sender};
use crate::Activity;
use crate::stats::{Detail, Snapshot};

impl Sender {
    /// The view of this path for sibling subflows.
    pub(crate) fn sibling(&self, can_send: bool) -> Sibling {
        let cwnd = self.controller.cwnd();
        let settled = match self.episode.phase {
            Phase::Open => cwnd,
            _ => self.controller.ssthresh().unwrap_or(cwnd),
        };
        let delivered = self.sampler.delivered().get();
        Sibling {
            cwnd: settled,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            mss: Bytes::new(u64::from(self.mss)),
            since_loss: Bytes::new(delivered.saturating_sub(self.loss_marks.0)),
            between_losses: Bytes::new(self.loss_marks.1),
            rate: self.delivery_rate().map_or(0.0, Rate::bytes_per_sec),
            can_send: can_send && self.timeouts.in_a_row == 0,
        }
    }

    /// What was counted so far.
    #[inline]
    pub(crate) fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    pub(crate) fn snapshot(&self, _now: Instant) -> Snapshot {
        Snapshot {
            cwnd: self.controller.cwnd(),
            ssthresh: self.controller.ssthresh(),
            in_slow_start: self.controller.in_slow_start(),
            in_flight: Bytes::new(self.pipe()),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            latest_rtt: self.rtt.latest(),
            rto: self.rtt.rto(),
            pacing_rate: self.pacing_rate(),
            delivery_rate: self.delivery_rate(),
            delivered: self.sampler.delivered(),
            phase: self.phase_name(),
        }
    }

    /// The sender's part of [`Detail`].
    pub(crate) fn detail(&self) -> Detail {
        let (lost, resent) = self.board.repairs();
        let stands_for = self.duplicates.bytes.div_ceil(u64::from(self.mss));
        Detail {
            reducing: self.episode.phase == Phase::Reducing,
            sacked: self.board.sacked() + stands_for as u32,
            lost,
            resent,
            dup_thresh: self.dup_thresh(),
            timeouts: self.timeouts.in_a_row,
            backoff: if self.board.is_empty() {
                self.peer.probes
            } else {
                self.rtt.backoff()
            },
            probes: self.peer.unanswered,
            acked_bytes: self.una.min(self.written.end),
            ..Detail::default()
        }
    }

    /// The sender's part of [`Activity`].
    pub(crate) fn activity(&self, now: Instant) -> Activity {
        let c = &self.counts;
        let time = |work| self.chrono.time(now, work);
        let (window_limited, buffer_limited) = (time(Work::Window), time(Work::Buffer));
        Activity {
            busy: time(Work::Busy) + window_limited + buffer_limited,
            window_limited,
            buffer_limited,
            since_sent: now.saturating_since(self.last_sent),
            delivered_packets: c.delivered_packets,
            delivered_ce_packets: c.delivered_ce_packets,
            retransmitted_bytes: c.retransmitted_bytes,
            dsack_packets: c.dsack_packets,
            reorderings: self.rack.reorderings(),
            app_limited: self.rate.app_limited,
            ..Activity::default()
        }
    }

    pub(crate) fn phase_name(&self) -> &'static str {
        match self.episode.phase {
            Phase::Recovery if !self.controller.governs_recovery() => "recovery",
            Phase::Loss if !self.controller.governs_recovery() => "loss",
            _ => self.controller.phase(),
        }
    }

    pub(crate) fn gauges(&self, out: &mut Vec<(&'static str, f64)>) {
        self.controller.gauges(out);
    }
}

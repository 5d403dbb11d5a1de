//! Recovery episodes: their begin with a congestion event, their end and their undo.

use gargalo_cc::{Cause, Congestion, Spurious};
use gargalo_units::{Bytes, Instant};

use super::prr::Prr;
use super::{Flight, Frto, Notice, Phase, Sender};

impl Sender {
    /// Reduces the window on a congestion event and starts PRR unless the controller governs recovery itself.
    pub(super) fn congestion(&mut self, now: Instant, cause: Cause, flight: Flight, lost: u64) {
        let event = Congestion {
            now,
            cause,
            lost: Bytes::new(lost),
            in_flight: Bytes::new(flight.size),
        };
        if !matches!(cause, Cause::Timeout { consecutive: 2.. }) {
            let delivered = self.sampler.delivered().get();
            self.loss_marks = (delivered, delivered.saturating_sub(self.loss_marks.0));
        }
        let window = self.controller.cwnd().get();
        let (controller, path) = self.parts();
        controller.on_congestion(&event, &path);
        let target = self.controller.cwnd().get();
        self.recovery_point = self.nxt;
        self.duplicates.reported = 0;
        self.cwr.due = true;
        self.prr = None;
        if self.settings.prr
            && !matches!(cause, Cause::Timeout { .. })
            && !self.controller.governs_recovery()
        {
            self.prr = Some(if self.settings.counts_segments {
                Prr::in_segments(target, window, u64::from(self.mss))
            } else {
                Prr::new(target, flight.pipe)
            });
            self.prr_window = self.pipe();
        }
        self.notice(Notice::Congestion {
            cause,
            cwnd: target,
        });
    }

    /// Ends the recovery episode.
    pub(super) fn recovered(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.rack.on_recovered();
        }
        self.phase = Phase::Open;
        self.prr = None;
        self.frto = Frto::Off;
        self.resend_due = false;
        self.duplicates.bytes = 0;
        self.duplicates.acks = 0;
        self.undo.end();
        let (controller, path) = self.parts();
        controller.on_recovered(now, &path);
        self.notice(Notice::Recovered);
    }

    /// Undoes the latest congestion event, which was spurious.
    pub(super) fn undo(&mut self, now: Instant) {
        let cause = match self.phase {
            Phase::Loss => Cause::Timeout { consecutive: 1 },
            _ => Cause::Loss,
        };
        self.board.unmark_lost();
        self.counters.spurious_losses += 1;
        let (controller, path) = self.parts();
        controller.on_spurious(&Spurious { now, cause }, &path);
        self.phase = Phase::Open;
        self.prr = None;
        self.frto = Frto::Off;
        self.resend_due = false;
        self.duplicates.bytes = 0;
        self.undo.end();
        self.notice(Notice::Undone);
    }
}

//! Recovery episodes: their begin with a congestion event, their end and their undo.

use gargalo_cc::{Cause, Congestion, Spurious};
use gargalo_units::{Bytes, Instant};

use super::prr::Prr;
use super::{Flight, Notice, Sender};

/// The recovery phase of the sender (RFC 5681, 6675, 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No recovery is in progress.
    Open,
    /// Reducing because of an ECN echo.
    Reducing,
    /// Fast recovery from losses that acknowledgements revealed.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Forward RTO-Recovery (RFC 5682 §2.1): whether a timeout was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    Off,
    /// The first segment was retransmitted; waiting for the next acknowledgement.
    First,
    /// The acknowledgement advanced: new data is sent instead of retransmissions.
    SendNew,
    /// New data was sent; the next acknowledgement decides.
    Second,
}

/// The state of the present recovery, or of none.
#[derive(Clone, Debug)]
pub(super) struct Episode {
    pub(super) phase: Phase,
    /// Recovery ends when this offset is acknowledged.
    pub(super) point: u64,
    pub(super) prr: Option<Prr>,
    /// The window that PRR allows.
    pub(super) prr_window: u64,
    /// The first lost segment is retransmitted regardless of the window (RFC 5681 §3.2 step 2, RFC 6675 §5 step
    /// 4.3).
    pub(super) resend_due: bool,
    /// The rescue retransmission of this recovery was sent (RFC 6675 §4: RescueRxt).
    pub(super) rescued: bool,
    /// The timeout may have been spurious; new data is preferred once (RFC 5682 §3).
    pub(super) frto: Frto,
}

impl Default for Episode {
    fn default() -> Self {
        Self {
            phase: Phase::Open,
            point: 0,
            prr: None,
            prr_window: 0,
            resend_due: false,
            rescued: false,
            frto: Frto::Off,
        }
    }
}

impl Episode {
    /// Nothing is being recovered any more.
    fn close(&mut self) {
        self.phase = Phase::Open;
        self.prr = None;
        self.frto = Frto::Off;
        self.resend_due = false;
    }
}

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
        self.episode.point = self.nxt;
        self.duplicates.reported = 0;
        self.cwr.due = true;
        self.episode.prr = None;
        if self.config.prr
            && !matches!(cause, Cause::Timeout { .. })
            && !self.controller.governs_recovery()
        {
            self.episode.prr = Some(if self.config.whole_segments {
                Prr::in_segments(target, window, u64::from(self.mss))
            } else {
                Prr::new(target, flight.pipe)
            });
            self.episode.prr_window = self.pipe();
        }
        self.notice(Notice::Congestion {
            cause,
            cwnd: target,
        });
    }

    /// Ends the recovery episode.
    pub(super) fn recovered(&mut self, now: Instant) {
        if matches!(self.episode.phase, Phase::Recovery | Phase::Loss) {
            self.rack.on_recovered();
        }
        self.episode.close();
        self.duplicates.bytes = 0;
        self.duplicates.acks = 0;
        self.undo.end();
        let (controller, path) = self.parts();
        controller.on_recovered(now, &path);
        self.notice(Notice::Recovered);
    }

    /// Undoes the latest congestion event, which was spurious.
    pub(super) fn undo(&mut self, now: Instant) {
        let cause = match self.episode.phase {
            Phase::Loss => Cause::Timeout { consecutive: 1 },
            _ => Cause::Loss,
        };
        self.board.unmark_lost();
        self.counters.spurious_losses += 1;
        let (controller, path) = self.parts();
        controller.on_spurious(&Spurious { now, cause }, &path);
        self.episode.close();
        self.duplicates.bytes = 0;
        self.undo.end();
        self.notice(Notice::Undone);
    }
}

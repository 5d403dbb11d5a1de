//! Losses, congestion events, recovery and undo.

use gargalo_cc::{Cause, Congestion, Lost, Spurious};
use gargalo_units::{Bytes, Instant};

use super::{Episode, Sender};

impl Sender {
    pub(in crate::controller) fn on_lost(&mut self, now: Instant, bytes: u16, number: u64) {
        self.now = now;
        self.report.on_lost(number);
        // Other packets are of an earlier path, or not counted.
        let Some((_, record)) = self.records.take(number, None) else {
            return;
        };
        let first = self.before_losses.is_none();
        self.before_losses.get_or_insert(self.in_flight);
        self.lost += 1;
        let size = Bytes::new(record.bytes());
        self.in_flight = self.in_flight.saturating_sub(u64::from(bytes));
        self.sampler.on_lost(size);
        let lost = Lost {
            now,
            bytes: size,
            state: record.state,
            new_burst: first,
            in_flight: Bytes::new(self.in_flight),
        };
        let (controller, path) = self.parts();
        controller.on_loss(&lost, &path);
    }

    /// `sent`: when the newest of the packets that were lost or marked was sent.
    pub(in crate::controller) fn on_congestion(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        lost_bytes: u64,
    ) {
        self.now = now;
        let flight = self.before_losses.take().unwrap_or(self.in_flight);
        self.tell_losses();
        if ecn && let Some(batch) = &mut self.batch {
            batch.marked = true;
        }
        if !persistent && self.episode.began.is_some_and(|began| sent <= began) {
            return;
        }
        let cause = match (persistent, ecn) {
            (true, _) => Cause::Timeout { consecutive: 1 },
            (false, true) => Cause::Ecn,
            (false, false) => Cause::Loss,
        };
        self.episode = Episode {
            began: Some(now),
            open: true,
            timeout: persistent,
        };
        let event = Congestion {
            now,
            cause,
            lost: Bytes::new(lost_bytes),
            in_flight: Bytes::new(flight),
        };
        let (controller, path) = self.parts();
        controller.on_congestion(&event, &path);
        let window = self.window();
        self.report.notice(
            match cause {
                Cause::Timeout { .. } => "persistent-congestion",
                Cause::Ecn => "ecn",
                Cause::Loss => "recovery",
            },
            || format!("cwnd_bytes={window}"),
        );
        self.tell(None);
    }

    pub(in crate::controller) fn on_spurious(&mut self) {
        if self.episode.began.is_none() {
            return;
        }
        let cause = if self.episode.timeout {
            Cause::Timeout { consecutive: 1 }
        } else {
            Cause::Loss
        };
        self.episode.open = false;
        let event = Spurious {
            now: self.now,
            cause,
        };
        let (controller, path) = self.parts();
        controller.on_spurious(&event, &path);
        self.report.on_spurious();
        self.report.notice("undo", String::new);
    }

    pub(super) fn tell_losses(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.report.notice("loss", || format!("packets={lost}"));
        }
    }
}

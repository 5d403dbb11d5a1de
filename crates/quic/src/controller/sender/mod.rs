//! The transport side of our congestion controls: samples, rounds, limits and recovery episodes.

mod losses;
#[cfg(test)]
mod tests;

use gargalo_cc::pacer::rate_of_window;
use gargalo_cc::{Acked, Controller, Idle, Path, RateSampler, Sent};
use gargalo_units::{Bytes, Duration, Instant, Rate};

use super::Settings;
use super::records::Records;
use super::report::Reporter;
use super::rtt::Rtt;
use crate::Snapshot;
use crate::qlog::Metrics;

/// Pacing gains, in windows per round trip: Linux's, as in our TCP.
const SLOW_START_GAIN: f64 = 2.0;
const AVOIDANCE_GAIN: f64 = 1.2;
/// Datagrams that are sent unpaced once there is a pacing rate, as with Linux and Chromium.
const UNPACED: u64 = 10;
/// The minimum window in datagrams (RFC 9002 §7.2).
const MIN_WINDOW: u64 = 2;
/// Packets this far below the largest acknowledged one have been reported lost by then.
const FORGET: u64 = 4096;

/// One path's sender.
#[derive(Debug)]
pub(super) struct Sender {
    controller: Box<dyn Controller>,
    settings: Settings,
    report: Reporter,
    mss: u64,
    records: Records,
    sampler: RateSampler,
    rtt: Rtt,
    in_flight: u64,
    /// The round trip ends when a packet of this index is acknowledged.
    round_end: u64,
    limited: Limited,
    episode: Episode,
    batch: Option<Batch>,
    /// Bytes in flight before the first loss of the current batch, and bytes lost.
    before_losses: Option<u64>,
    lost: u64,
    last_sent: Instant,
    /// The application limited the sender then.
    was_app_limited: bool,
    /// Every transmission is reported to the controller, not only of the first after an idle time
    /// ([`Controller::watches_sends`]).
    tells_sends: bool,
    /// Time of the latest event.
    now: Instant,
    delivery_rate: Option<Rate>,
    /// Datagrams that may still be sent unpaced.
    unpaced: u64,
}

/// Whether the window limited the sender.
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    now: bool,
    /// Valid until a packet of this index is acknowledged.
    until: u64,
    most_in_flight: u64,
}

/// A congestion event and its recovery period (RFC 9002 §7.3.2).
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    /// Losses of packets sent up to then belong to it.
    began: Option<Instant>,
    /// No packet sent since then has been acknowledged.
    open: bool,
    /// It was persistent congestion: the window grows during it.
    timeout: bool,
}

/// The data delivered by one acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Batch {
    now: Instant,
    bytes: u64,
    in_flight_before: u64,
    newest_sent: Instant,
    newest_number: u64,
    newest_index: Option<u64>,
    rtt: Option<Duration>,
    marked: bool,
}

impl Sender {
    pub(super) fn new(
        controller: Box<dyn Controller>,
        now: Instant,
        mtu: u16,
        settings: Settings,
        report: Reporter,
    ) -> Self {
        let sender = Self {
            tells_sends: controller.watches_sends(),
            controller,
            settings,
            report,
            mss: u64::from(mtu),
            records: Records::default(),
            sampler: RateSampler::new(),
            rtt: Rtt::default(),
            in_flight: 0,
            round_end: 0,
            limited: Limited::default(),
            episode: Episode::default(),
            batch: None,
            before_losses: None,
            lost: 0,
            last_sent: now,
            was_app_limited: false,
            now,
            delivery_rate: None,
            unpaced: settings.initial_window.min(UNPACED * u64::from(mtu)),
        };
        sender.tell(None);
        sender
    }

    fn parts(&mut self) -> (&mut Box<dyn Controller>, Path<'_>) {
        let path = Path {
            mss: Bytes::new(self.mss),
            srtt: self.rtt.smoothed,
            latest_rtt: self.rtt.latest,
            min_rtt: self.rtt.min,
            in_flight: Bytes::new(self.in_flight),
            siblings: &[],
            index: 0,
            sack: true,
        };
        (&mut self.controller, path)
    }

    /// Identifies the path of the controller.
    pub(super) fn answer(&self) {
        self.report.answer();
    }

    pub(super) fn window(&self) -> u64 {
        self.controller
            .cwnd()
            .get()
            .min(self.settings.max_window)
            .max(MIN_WINDOW * self.mss)
    }

    pub(super) fn ssthresh(&self) -> Option<u64> {
        self.controller.ssthresh().map(Bytes::get)
    }

    pub(super) fn quantum(&self) -> Option<u64> {
        self.controller.send_quantum().map(Bytes::get)
    }

    /// `None`: not paced.
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        if let Some(rate) = self.controller.pacing_rate() {
            return Some(rate);
        }
        let paced = self.settings.pacing && self.unpaced == 0;
        let srtt = self.rtt.smoothed.filter(|_| paced)?;
        let gain = if self.controller.in_slow_start() {
            SLOW_START_GAIN
        } else {
            AVOIDANCE_GAIN
        };
        rate_of_window(Bytes::new(self.window()), srtt, gain)
    }

    /// Records a sent packet; returns whether the controller's outputs may have changed.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u16, number: u64) -> bool {
        self.now = now;
        // noq takes a Retry for an acknowledgement of the Initial. It is none (RFC 9002 §6.3), and no ACK frame ends
        // it.
        self.batch = None;
        let size = Bytes::new(u64::from(bytes));
        let in_flight = Bytes::new(self.in_flight);
        let idle = (self.in_flight == 0).then(|| Idle {
            duration: now - self.last_sent,
            rto: self.rtt.timeout(),
            restart_window: None, // RFC 9002 has none
            was_app_limited: self.was_app_limited,
        });
        let state = self.sampler.on_send(now, size, in_flight);
        self.records.push(number, bytes, state);
        let app_limited = self.sampler.is_app_limited();
        if self.tells_sends || idle.is_some() {
            let event = Sent {
                now,
                bytes: size,
                in_flight,
                app_limited,
                retransmission: false,
                idle,
            };
            let (controller, path) = self.parts();
            controller.on_send(&event, &path);
        }
        self.in_flight += u64::from(bytes);
        self.limited.most_in_flight = self.limited.most_in_flight.max(self.in_flight);
        self.last_sent = now;
        self.was_app_limited = app_limited;
        self.report.on_sent(self.in_flight);
        self.trace();
        let mut changed = idle.is_some();
        if self.unpaced > 0 && self.rtt.smoothed.is_some() {
            self.unpaced = self.unpaced.saturating_sub(u64::from(bytes));
            changed |= self.unpaced == 0;
        }
        changed
    }

    /// The window blocks data.
    pub(super) fn on_window_limited(&mut self) {
        self.limited.now = true;
        self.limited.until = self.records.next_index();
    }

    /// One packet of an acknowledgement.
    #[inline]
    pub(super) fn on_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        smoothed: std::time::Duration,
    ) {
        self.now = now;
        if self.batch.is_none() {
            self.rtt.before(smoothed);
            if app_limited && self.in_flight < self.window() {
                self.sampler.set_app_limited(Bytes::new(self.in_flight));
            }
        }
        let batch = self.batch.get_or_insert(Batch {
            now,
            bytes: 0,
            in_flight_before: self.in_flight,
            newest_sent: sent,
            newest_number: number,
            newest_index: None,
            rtt: None,
            marked: false,
        });
        batch.bytes += bytes;
        if sent >= batch.newest_sent {
            batch.newest_sent = sent;
            batch.newest_number = number;
        }
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if let Some((index, record)) = self.records.take(number, Some(sent)) {
            batch.newest_index = batch.newest_index.max(Some(index));
            self.sampler
                .on_delivered(now, &record.state, Bytes::new(bytes), false);
        }
    }

    /// Ends the acknowledgement; returns whether it delivered anything.
    pub(super) fn end_of_acks(&mut self, in_flight: u64, largest: Option<u64>) -> bool {
        // noq's count also includes packets that it does not report: those of discarded number spaces.
        self.in_flight = in_flight;
        let Some(batch) = &mut self.batch else {
            return false;
        };
        if largest == Some(batch.newest_number) {
            batch.rtt = Some(batch.now - batch.newest_sent);
        }
        if let Some(rtt) = batch.rtt {
            self.rtt.sample(rtt);
        }
        true
    }

    pub(super) fn on_mtu(&mut self, mtu: u16) {
        self.mss = u64::from(mtu);
        let (controller, path) = self.parts();
        controller.on_mss(&path);
        self.report
            .notice("mtu", || format!("datagram_bytes={mtu}"));
    }

    /// Reports the current acknowledgement to the controller.
    pub(super) fn release(&mut self) {
        let Some(batch) = self.batch.take() else {
            return;
        };
        self.before_losses = None;
        self.tell_losses();
        let sample = self.sampler.finish(self.rtt.min);
        if let Some(s) = &sample
            && !s.app_limited
        {
            self.delivery_rate = Some(s.delivery_rate());
        }
        let round_start = batch.newest_index.is_some_and(|i| i >= self.round_end);
        if round_start {
            self.round_end = self.records.next_index();
        }
        if self.episode.open && self.episode.began.is_some_and(|b| batch.newest_sent > b) {
            self.episode.open = false;
            let (controller, path) = self.parts();
            controller.on_recovered(batch.now, &path);
            self.report.notice("recovered", String::new);
        }
        let cwnd = self.controller.cwnd().get();
        let cwnd_limited = self.limited.now
            || (self.controller.in_slow_start() && cwnd < 2 * self.limited.most_in_flight);
        if batch.bytes > 0 {
            let acked = Acked {
                now: batch.now,
                bytes: Bytes::new(batch.bytes),
                acknowledged: Bytes::new(batch.bytes),
                ce_bytes: Bytes::new(if batch.marked { batch.bytes } else { 0 }),
                rtt: batch.rtt,
                sent_at: Some(batch.newest_sent),
                in_flight_before: Bytes::new(batch.in_flight_before),
                in_flight: Bytes::new(self.in_flight),
                cwnd_limited,
                in_recovery: self.episode.open && !self.episode.timeout,
                round_start,
                sample,
            };
            let (controller, path) = self.parts();
            controller.on_ack(&acked, &path);
        }
        self.records
            .forget_below(batch.newest_number.saturating_sub(FORGET));
        if self.records.oldest_index() >= self.limited.until {
            self.limited = Limited {
                now: false,
                until: self.records.next_index(),
                most_in_flight: self.in_flight,
            };
        }
        self.tell(batch.rtt);
    }

    /// A sender for another path to the same peer, with nothing in flight.
    pub(super) fn on_new_path(&self) -> Self {
        let mut records = self.records.clone();
        records.clear();
        Self {
            controller: self.controller.clone_box(),
            report: self.report.clone(),
            records,
            sampler: self.sampler.clone(),
            rtt: self.rtt.clone(),
            in_flight: 0,
            batch: None,
            before_losses: None,
            lost: 0,
            ..*self
        }
    }

    fn tell(&self, rtt: Option<Duration>) {
        self.report.on_ack(
            || Snapshot {
                cwnd: Bytes::new(self.window()),
                ssthresh: self.controller.ssthresh(),
                in_flight: Some(Bytes::new(self.in_flight)),
                srtt: self.rtt.smoothed,
                pacing_rate: self.pacing_rate(),
                delivery_rate: self.delivery_rate,
                phase: self.controller.phase(),
            },
            rtt,
        );
        self.trace();
    }

    fn trace(&self) {
        self.report.metrics(|| Metrics {
            congestion_window: Some(self.window()),
            bytes_in_flight: Some(self.in_flight),
            ssthresh: self.ssthresh(),
            min_rtt: self.rtt.min,
            smoothed_rtt: self.rtt.smoothed,
            latest_rtt: self.rtt.latest,
            rtt_variance: self.rtt.latest.map(|_| self.rtt.var),
            pacing_rate: self.pacing_rate(),
            phase: self.controller.phase(),
        });
    }
}

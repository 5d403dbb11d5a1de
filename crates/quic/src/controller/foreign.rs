//! noq's own congestion controls, with reports and an upper limit of the window.

use std::any::Any;
use std::time::Instant as StdInstant;

use gargalo_units::{Bytes, Instant, Rate};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};

use super::report::Reporter;
use super::{Settings, UNPACED, ours};
use crate::Snapshot;
use crate::qlog::Metrics;

/// One of noq's controllers.
#[derive(Debug)]
pub(super) struct Foreign {
    inner: Box<dyn Controller>,
    /// Its phase, if it has only one name.
    phase: Option<&'static str>,
    settings: Settings,
    report: Reporter,
    mtu: u64,
    in_flight: u64,
    lost: u64,
    /// Number and send time of the newest packet of the current acknowledgement.
    newest: Option<(u64, Instant)>,
    srtt: Option<std::time::Duration>,
    sampled: bool,
}

impl Foreign {
    pub(super) fn new(
        inner: Box<dyn Controller>,
        phase: Option<&'static str>,
        settings: Settings,
        report: Reporter,
        mtu: u16,
    ) -> Self {
        let foreign = Self {
            inner,
            phase,
            settings,
            report,
            mtu: u64::from(mtu),
            in_flight: 0,
            lost: 0,
            newest: None,
            srtt: None,
            sampled: false,
        };
        foreign.tell(None);
        foreign
    }

    fn tell(&self, rtt: Option<gargalo_units::Duration>) {
        let metrics = self.inner.metrics();
        self.report.on_ack(
            || Snapshot {
                cwnd: Bytes::new(self.window()),
                ssthresh: ssthresh(&metrics).map(Bytes::new),
                in_flight: Some(Bytes::new(self.in_flight)),
                srtt: self.srtt.map(ours),
                pacing_rate: rate(&metrics),
                delivery_rate: None,
                phase: self.phase_now(&metrics),
            },
            rtt,
        );
        self.report.metrics(|| Metrics {
            congestion_window: Some(self.window()),
            bytes_in_flight: Some(self.in_flight),
            ssthresh: ssthresh(&metrics),
            smoothed_rtt: self.srtt.map(ours),
            latest_rtt: rtt,
            pacing_rate: rate(&metrics),
            phase: self.phase_now(&metrics),
            ..Metrics::default()
        });
    }

    fn phase_now(&self, metrics: &ControllerMetrics) -> &'static str {
        let starting = ssthresh(metrics).is_none_or(|s| metrics.congestion_window < s);
        self.phase.unwrap_or(if starting {
            "slow-start"
        } else {
            "congestion-avoidance"
        })
    }
}

/// Infinite is the largest number to noq.
fn ssthresh(metrics: &ControllerMetrics) -> Option<u64> {
    metrics.ssthresh.filter(|s| *s != u64::MAX)
}

fn rate(metrics: &ControllerMetrics) -> Option<Rate> {
    let bytes = metrics.pacing_rate?;
    Some(Rate::from_bps(bytes.saturating_mul(8)))
}

impl Controller for Foreign {
    fn on_sent(&mut self, now: StdInstant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: StdInstant, bytes: u16, pn: u64) {
        self.in_flight += u64::from(bytes);
        self.report.on_sent(self.in_flight);
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let at = self.settings.time.to_ours(sent);
        self.newest = self.newest.max(Some((pn, at)));
        if self.sampled {
            self.srtt = Some(rtt.get());
        }
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: StdInstant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.in_flight = in_flight;
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        let now = self.settings.time.to_ours(now);
        let rtt = self
            .newest
            .take()
            .filter(|(pn, _)| largest_packet_num_acked == Some(*pn))
            .map(|(_, sent)| now - sent);
        if let Some(rtt) = rtt {
            self.sampled = true;
            self.srtt
                .get_or_insert(std::time::Duration::from_nanos(rtt.as_nanos()));
        }
        self.tell(rtt);
    }

    fn on_congestion_event(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let before = self.inner.window();
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.report.notice("loss", || format!("packets={lost}"));
        }
        let window = self.window();
        if self.inner.window() < before {
            let kind = match (is_persistent_congestion, is_ecn) {
                (true, _) => "persistent-congestion",
                (false, true) => "ecn",
                (false, false) => "recovery",
            };
            self.report.notice(kind, || format!("cwnd_bytes={window}"));
        }
        self.tell(None);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: StdInstant) {
        self.in_flight = self.in_flight.saturating_sub(u64::from(lost_bytes));
        self.lost += 1;
        self.report.on_lost(pn);
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
        self.report.on_spurious();
        self.report.notice("undo", String::new);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu);
        self.inner.on_mtu_update(new_mtu);
        self.report
            .notice("mtu", || format!("datagram_bytes={new_mtu}"));
    }

    fn on_ack_frequency_update(
        &mut self,
        ack_eliciting_threshold: u64,
        requested_max_ack_delay: std::time::Duration,
    ) {
        self.inner
            .on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
    }

    fn window(&self) -> u64 {
        let least = 2 * self.mtu;
        self.inner.window().min(self.settings.max_window.max(least))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.window();
        if !self.settings.pacing && metrics.pacing_rate.is_none() {
            metrics.pacing_rate = Some(UNPACED);
        }
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            report: self.report.clone(),
            in_flight: 0,
            lost: 0,
            newest: None,
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.report.answer();
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

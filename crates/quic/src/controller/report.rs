//! What controllers tell their endpoint; noq owns them and gives no way back.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use gargalo_units::{Bytes, Duration};

use crate::qlog::{Metrics, Trace};
use crate::tls::lock;
use crate::{Notice, Snapshot};

/// Shared between an endpoint and the controllers of its paths.
#[derive(Default)]
pub(crate) struct Report {
    in_flight: AtomicU64,
    sent_packets: AtomicU64,
    wants_notices: AtomicBool,
    failed: AtomicBool,
    rest: Mutex<Rest>,
    trace: Option<Arc<Trace>>,
}

#[derive(Debug, Default)]
struct Rest {
    snapshot: Snapshot,
    rtt: Option<Duration>,
    spurious: u64,
    notices: VecDeque<Notice>,
    failure: Option<String>,
}

/// One controller's way to a report.
#[derive(Clone, Debug)]
pub(super) struct Voice {
    report: Arc<Report>,
    /// It is of the path whose state is shown.
    shown: bool,
}

impl Voice {
    pub(super) fn new(report: Arc<Report>, shown: bool) -> Self {
        Self { report, shown }
    }

    pub(super) fn on_sent(&self, in_flight: u64) {
        let report = &self.report;
        report
            .sent_packets
            .store(report.sent_packets.load(Relaxed) + 1, Relaxed);
        if self.shown {
            report.in_flight.store(in_flight, Relaxed);
        }
    }

    pub(super) fn on_ack(&self, snapshot: impl FnOnce() -> Snapshot, rtt: Option<Duration>) {
        if !self.shown {
            return;
        }
        let snapshot = snapshot();
        self.report
            .in_flight
            .store(snapshot.in_flight.get(), Relaxed);
        let mut rest = lock(&self.report.rest);
        rest.snapshot = snapshot;
        rest.rtt = rtt.or(rest.rtt);
    }

    /// Tells the trace of the sender's view, if there is one.
    pub(super) fn metrics(&self, metrics: impl FnOnce() -> Metrics) {
        if let Some(trace) = self.report.trace.as_ref().filter(|_| self.shown) {
            trace.metrics(metrics());
        }
    }

    pub(super) fn on_lost(&self, number: u64) {
        if let Some(trace) = &self.report.trace {
            trace.packet_lost(number);
        }
    }

    pub(super) fn on_spurious(&self) {
        lock(&self.report.rest).spurious += 1;
    }

    pub(super) fn notice(&self, kind: &'static str, detail: impl FnOnce() -> String) {
        self.report.notice(kind, detail);
    }
}

impl Report {
    pub(crate) fn new(trace: Option<Arc<Trace>>) -> Self {
        Self {
            trace,
            ..Self::default()
        }
    }

    /// A probe timeout has expired.
    pub(crate) fn probe_timeout(&self) {
        self.notice("timeout", String::new);
        if let Some(trace) = &self.trace {
            trace.probe_timeout();
        }
    }

    pub(super) fn on_failure(&self, why: String) {
        lock(&self.rest).failure.get_or_insert(why);
        self.failed.store(true, Relaxed);
    }

    /// Tells of an event, if anybody listens.
    pub(crate) fn notice(&self, kind: &'static str, detail: impl FnOnce() -> String) {
        if self.wants_notices.load(Relaxed) {
            let detail = detail();
            lock(&self.rest).notices.push_back(Notice { kind, detail });
        }
    }

    pub(crate) fn record_notices(&self) {
        self.wants_notices.store(true, Relaxed);
    }

    pub(crate) fn poll_notice(&self) -> Option<Notice> {
        if !self.wants_notices.load(Relaxed) {
            return None;
        }
        lock(&self.rest).notices.pop_front()
    }

    pub(crate) fn take_rtt_sample(&self) -> Option<Duration> {
        lock(&self.rest).rtt.take()
    }

    pub(crate) fn take_failure(&self) -> Option<String> {
        if !self.failed.load(Relaxed) {
            return None;
        }
        lock(&self.rest).failure.take()
    }

    pub(crate) fn spurious(&self) -> u64 {
        lock(&self.rest).spurious
    }

    /// Ack-eliciting packets sent so far.
    pub(crate) fn sent_packets(&self) -> u64 {
        self.sent_packets.load(Relaxed)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = lock(&self.rest).snapshot;
        snapshot.in_flight = Bytes::new(self.in_flight.load(Relaxed));
        snapshot
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("in_flight", &self.in_flight)
            .field("sent_packets", &self.sent_packets)
            .finish_non_exhaustive()
    }
}

//! Reports of controllers to their endpoint; noq owns the controllers and gives no access to them.
//!
//! noq returns the controller of a path as a trait object without identity. A call of `initial_window`, which noq
//! makes only when a path begins, is used to identify it: see [`Report::path_of`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use gargalo_units::{Bytes, Duration};
use noq_proto::congestion::Controller;

use crate::qlog::{Metrics, Trace};
use crate::tls::lock;
use crate::{Notice, Snapshot};

/// Shared between an endpoint and the controllers of its paths.
#[derive(Default)]
pub(crate) struct Report {
    first: Arc<PathReport>,
    /// Reports of further paths, in the order in which noq requested their controllers.
    others: Mutex<Vec<Arc<PathReport>>>,
    /// The path whose controller was identified last.
    asked: AtomicUsize,
    sent_packets: AtomicU64,
    wants_notices: AtomicBool,
    failed: AtomicBool,
    rest: Mutex<Rest>,
    trace: Option<Arc<Trace>>,
}

/// The state of one path's sender.
#[derive(Debug, Default)]
pub(crate) struct PathReport {
    in_flight: AtomicU64,
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    snapshot: Snapshot,
    rtt: Option<Duration>,
}

#[derive(Debug, Default)]
struct Rest {
    spurious: u64,
    notices: VecDeque<Notice>,
    failure: Option<String>,
}

/// The handle of a controller to its report.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    report: Arc<Report>,
    path: Arc<PathReport>,
    /// 0 is the first path, whose state the trace shows.
    number: usize,
}

impl Reporter {
    /// A handle for the first path, or for a further one.
    pub(super) fn new(report: Arc<Report>, first: bool) -> Self {
        let (path, number) = if first {
            (Arc::clone(&report.first), 0)
        } else {
            let mut others = lock(&report.others);
            let path = Arc::default();
            others.push(Arc::clone(&path));
            (path, others.len())
        };
        Self {
            report,
            path,
            number,
        }
    }

    /// Identifies the controller; see [`Report::path_of`].
    pub(super) fn answer(&self) {
        self.report.asked.store(self.number, Relaxed);
    }

    pub(super) fn on_sent(&self, in_flight: u64) {
        let report = &self.report;
        report
            .sent_packets
            .store(report.sent_packets.load(Relaxed) + 1, Relaxed);
        self.path.in_flight.store(in_flight, Relaxed);
    }

    pub(super) fn on_ack(&self, snapshot: impl FnOnce() -> Snapshot, rtt: Option<Duration>) {
        let snapshot = snapshot();
        self.path
            .in_flight
            .store(snapshot.in_flight.map_or(0, Bytes::get), Relaxed);
        let mut latest = lock(&self.path.latest);
        latest.snapshot = snapshot;
        latest.rtt = rtt.or(latest.rtt);
    }

    /// Passes the sender's metrics to the trace, if there is one.
    pub(super) fn metrics(&self, metrics: impl FnOnce() -> Metrics) {
        if let Some(trace) = self.report.trace.as_ref().filter(|_| self.number == 0) {
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

    /// Records an expired probe timeout.
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

    /// Records an event, if notices are collected.
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

    pub(crate) fn first_path(&self) -> &PathReport {
        &self.first
    }

    /// The report of the path that has this controller.
    pub(crate) fn path_of(&self, controller: &dyn Controller) -> Arc<PathReport> {
        controller.initial_window();
        let others = lock(&self.others);
        let number = self.asked.load(Relaxed).checked_sub(1);
        let other = number.and_then(|n| others.get(n));
        Arc::clone(other.unwrap_or(&self.first))
    }
}

impl PathReport {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = lock(&self.latest).snapshot;
        snapshot.in_flight = Some(Bytes::new(self.in_flight.load(Relaxed)));
        snapshot
    }

    /// The latest sample, once.
    pub(crate) fn take_rtt_sample(&self) -> Option<Duration> {
        lock(&self.latest).rtt.take()
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("first", &self.first)
            .field("sent_packets", &self.sent_packets)
            .finish_non_exhaustive()
    }
}

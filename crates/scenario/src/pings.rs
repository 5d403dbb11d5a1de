//! Echo requests of pings in the results: a row for each, and the figures that `ping` prints.

use gargalo_flow::{FlowResult, Outcome};
use gargalo_trace::schema::{FlowRow, PingRow, Pings};
use gargalo_trace::{Table, stats};
use gargalo_units::{Duration, Instant};
use gargalo_workload::{AppResult, Echo, PingResult};
use serde_json::{Map, Value as Json, json};

/// The pings of a flow; `None` for another workload.
fn of(flow: &FlowResult) -> Option<&PingResult> {
    match &flow.application {
        Some(AppResult::Ping(p)) => Some(p),
        _ => None,
    }
}

/// Whether the timeout of a request had passed when its flow ended.
fn is_due(echo: &Echo, timeout: Duration, end: Instant) -> bool {
    end.saturating_since(echo.sent) >= timeout
}

/// Whether a request of a flow that ended is lost; `None`: its answer might still have come in time.
fn is_lost(echo: &Echo, timeout: Duration, end: Instant) -> Option<bool> {
    match echo.round_trip() {
        Some(_) => Some(false),
        None => is_due(echo, timeout, end).then_some(true),
    }
}

/// Appends the rows of a flow.
pub(crate) fn push(flow: &FlowResult, table: &mut Table<Pings>) {
    let Some(pings) = of(flow) else { return };
    for (sequence, echo) in pings.echoes.iter().enumerate() {
        table.push(&PingRow {
            flow: flow.id,
            sequence: sequence as u64,
            sent: echo.sent,
            round_trip: echo.round_trip(),
            forward: echo.forward,
            back: echo.back,
            lost: is_lost(echo, pings.timeout, flow.end),
        });
    }
}

/// Figures of the requests that were sent in the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RoundTrips {
    pub sent: u64,
    pub answered: u64,
    pub lost: u64,
    /// Requests whose timeout has passed.
    due: u64,
    /// Answers after the first, in the whole run.
    duplicates: u64,
    /// Round trips in seconds, sorted.
    times: Vec<f64>,
}

impl RoundTrips {
    pub(crate) fn of<'a>(out: &Outcome, flows: impl IntoIterator<Item = &'a FlowResult>) -> Self {
        let mut all = Self::default();
        let measured = out.measured;
        for flow in flows {
            let Some(pings) = of(flow) else { continue };
            all.duplicates += pings.duplicates;
            let inside = |e: &&Echo| measured.is_none_or(|(a, b)| a <= e.sent && e.sent < b);
            for echo in pings.echoes.iter().filter(inside) {
                all.sent += 1;
                all.due += u64::from(is_due(echo, pings.timeout, flow.end));
                all.lost += u64::from(is_lost(echo, pings.timeout, flow.end) == Some(true));
                all.times
                    .extend(echo.round_trip().map(Duration::decimal_secs));
            }
        }
        all.answered = all.times.len() as u64;
        all.times.sort_unstable_by(f64::total_cmp);
        all
    }

    /// Share of the requests whose timeout has passed that are lost. Those sent shortly before the end would count only
    /// if they were answered.
    fn loss(&self) -> Option<f64> {
        (self.due > 0).then(|| self.lost as f64 / self.due as f64)
    }

    fn percentile(&self, p: f64) -> Option<f64> {
        stats::percentile(&mut self.times.clone(), p)
    }

    fn mean(&self) -> Option<f64> {
        stats::mean(&self.times)
    }

    /// Fills the columns of a flow.
    pub(crate) fn fill(&self, row: &mut FlowRow<'_>) {
        let time = |s: Option<f64>| s.map(Duration::from_secs_f64);
        row.loss = self.loss();
        row.rtt_min = time(self.times.first().copied());
        row.rtt_mean = time(self.mean());
        row.rtt_p50 = time(self.percentile(0.5));
        row.rtt_p95 = time(self.percentile(0.95));
        row.rtt_p99 = time(self.percentile(0.99));
        row.rtt_max = time(self.times.last().copied());
    }

    /// The entries of a summary.
    pub(crate) fn json(&self) -> Map<String, Json> {
        let entries = [
            ("pings_sent", json!(self.sent)),
            ("pings_answered", json!(self.answered)),
            ("pings_lost", json!(self.lost)),
            ("ping_duplicates", json!(self.duplicates)),
            ("ping_loss", json!(self.loss())),
            ("ping_rtt_min_s", json!(self.times.first())),
            ("ping_rtt_mean_s", json!(self.mean())),
            ("ping_rtt_p50_s", json!(self.percentile(0.5))),
            ("ping_rtt_p95_s", json!(self.percentile(0.95))),
            ("ping_rtt_max_s", json!(self.times.last())),
            (
                "ping_rtt_mdev_s",
                json!(stats::population_deviation(&self.times)),
            ),
        ];
        let named = entries.into_iter().map(|(k, v)| (k.to_owned(), v));
        named.collect()
    }
}

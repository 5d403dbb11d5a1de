//! Objects of request workloads in the results: a row for each, and their completion times.

use gargalo_flow::FlowResult;
use gargalo_trace::schema::{ObjectRow, Objects};
use gargalo_trace::{Table, stats};
use gargalo_workload::{AppResult, ObjectResult};
use serde_json::{Map, Value as Json, json};

/// The objects of a flow; empty for another workload.
pub(crate) fn of(flow: &FlowResult) -> &[ObjectResult] {
    match &flow.application {
        Some(AppResult::Request(r)) => &r.objects,
        _ => &[],
    }
}

/// Appends the rows of a flow.
pub(crate) fn push(flow: &FlowResult, table: &mut Table<Objects>) {
    for o in of(flow) {
        table.push(&ObjectRow {
            flow: flow.id,
            object: u64::from(o.object),
            size: o.size,
            requested: o.requested,
            first_byte: o.first_byte.map(|t| t.saturating_since(o.requested)),
            completed: o.completed,
            completion: o.completion(),
        });
    }
}

/// Completion times of objects, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Completion {
    /// How many arrived.
    pub count: u64,
    /// Median, 95th percentile, maximum.
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub max: Option<f64>,
}

impl Completion {
    pub(crate) fn of<'a>(objects: impl Iterator<Item = &'a ObjectResult>) -> Self {
        let mut times: Vec<f64> = objects
            .filter_map(|o| Some(o.completion()?.decimal_secs()))
            .collect();
        Self {
            count: times.len() as u64,
            p50: stats::percentile(&mut times, 0.5),
            p95: stats::percentile(&mut times, 0.95),
            max: times.last().copied(),
        }
    }

    /// The entries of a summary.
    pub(crate) fn json(&self) -> Map<String, Json> {
        let entries = [
            ("completed_objects", json!(self.count)),
            ("object_completion_p50_s", json!(self.p50)),
            ("object_completion_p95_s", json!(self.p95)),
            ("object_completion_max_s", json!(self.max)),
        ];
        entries
            .map(|(k, v)| (k.to_owned(), v))
            .into_iter()
            .collect()
    }
}

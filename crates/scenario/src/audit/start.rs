//! Rules about flows for which the run was too short.

use std::collections::BTreeMap;

use gargalo_flow::SubflowSample;
use gargalo_units::Bytes;
use gargalo_workload::Workload;
use serde_json::json;

use super::{Case, Finding, subject};

/// A sender this close to its window is limited by it.
const WINDOW_LIMITED: f64 = 0.75;

/// Whether a sender has grown since its start: a window-based control in its first slow start, or a model-based one
/// that has not found the capacity yet.
fn is_starting(phase: &str, ssthresh: Option<Bytes>) -> bool {
    phase == "startup" || (phase == "slow-start" && ssthresh.is_none())
}

pub(super) fn ends_in_slow_start(case: &Case<'_>) -> Vec<Finding> {
    let limited =
        |in_flight: Bytes, cwnd: Bytes| in_flight.as_f64() >= WINDOW_LIMITED * cwnd.as_f64();
    let last = &case.out.last;
    let mut paths: BTreeMap<u64, Vec<&SubflowSample>> = BTreeMap::new();
    for s in &last.subflows {
        paths.entry(s.flow).or_default().push(s);
    }
    let mut starting = BTreeMap::new();
    for s in &last.flows {
        let grows = match paths.get(&s.flow) {
            Some(paths) => paths
                .iter()
                .all(|p| is_starting(p.phase, p.ssthresh) && limited(p.in_flight, p.cwnd)),
            None => {
                is_starting(s.phase, s.ssthresh)
                    && s.in_flight.is_some_and(|flight| limited(flight, s.cwnd))
            }
        };
        if grows && !s.cwnd.is_zero() {
            starting.insert(s.flow, s);
        }
    }
    let flows = case
        .out
        .flows
        .iter()
        .filter(|f| f.completion.is_none() && f.failure.is_none());
    flows
        .filter_map(|f| {
            let endless = match &case.template(f)?.workload {
                Workload::Bulk(bulk) => bulk.bytes.is_none(),
                _ => false,
            };
            let s = starting.get(&f.id).filter(|_| endless)?;
            let text = format!(
                "had not left slow start at {} s, with a window of {} bytes that was still growing: its figures are of the start, \
                 not of what follows; give it more time",
                s.time.decimal_secs(),
                s.cwnd.get()
            );
            let figures = json!({ "time_s": s.time.decimal_secs(), "cwnd_bytes": s.cwnd.get() });
            Some(Finding::new("ends-in-slow-start", subject(f), text, figures))
        })
        .collect()
}

//! Rules about flows for which the run was too short.

use std::collections::{BTreeMap, BTreeSet};

use gargalo_flow::SubflowSample;
use gargalo_units::{Bytes, Instant};
use serde_json::json;

use super::{Case, Finding, subject};
use crate::resolved::{Flow, Transport};

/// A sender this close to its window is limited by it.
const WINDOW_LIMITED: f64 = 0.75;

/// Whether a sender has grown since its start: a window-based control in its first slow start, or a model-based one
/// that has not found the capacity yet.
fn is_starting(phase: &str, ssthresh: Option<Bytes>) -> bool {
    phase == "startup" || (phase == "slow-start" && ssthresh.is_none())
}

/// Reports flows that delivered nothing because their time is shorter than a handshake and the way of the first packet.
pub(super) fn ends_before_data(case: &mut Case<'_>) -> Vec<Finding> {
    let (scenario, out) = (case.scenario, case.out);
    let delivering = out.flows.iter().filter(|f| !f.delivered.is_zero());
    let delivering: BTreeSet<u64> = delivering.map(|f| f.template).collect();
    let delivers = |f: &Flow| match f.group.filter(|_| !f.rows) {
        Some(group) => out.groups.get(group).is_some_and(|g| g.delivered > 0),
        None => delivering.contains(&f.id),
    };
    let end = Instant::ZERO + scenario.duration;
    let silent = |f: &&Flow| f.source.is_none() && !delivers(f);
    let mut found = Vec::new();
    for f in scenario.flows.iter().filter(silent) {
        let (from, to) = (f.from as u32, f.to as u32);
        let (there, back) = (case.least_delay(from, to), case.least_delay(to, from));
        let data = if f.is_download() { back } else { there };
        let (what, delay, least) = match &f.transport {
            Transport::Udp => ("one-way delay", data, data),
            _ => ("round-trip time", there + back, there + back + data),
        };
        let has = f.stop.unwrap_or(end).min(end).saturating_since(f.start);
        if has > least {
            continue;
        }
        let text = format!(
            "delivered nothing: it has {} s, and its {what} is {} s, without what links take to send; give it more \
             time, or \
             its path less delay",
            has.decimal_secs(),
            delay.decimal_secs()
        );
        let figures = json!({ "time_s": has.decimal_secs(), "delay_s": delay.decimal_secs() });
        let subject = format!("flow {} ({})", f.id, f.label);
        found.push(Finding::new("ends-before-data", subject, text, figures));
    }
    found
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
            let s = starting.get(&f.id).filter(|_| case.is_endless(f))?;
            let text = format!(
                "had not left slow start at {} s, with a window of {} bytes that was still growing: its figures are \
                 of the start, \
                 not of what follows; give it more time",
                s.time.decimal_secs(),
                s.cwnd.get()
            );
            let figures = json!({ "time_s": s.time.decimal_secs(), "cwnd_bytes": s.cwnd.get() });
            Some(Finding::new("ends-in-slow-start", subject(f), text, figures))
        })
        .collect()
}

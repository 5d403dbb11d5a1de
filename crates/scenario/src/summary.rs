//! The summary of a run: one JSON object, all in SI units.

use std::collections::{BTreeMap, BTreeSet};

use gargalo_flow::{FlowResult, LinkResult, Outcome};
use gargalo_quic::NOQ;
use gargalo_trace::stats;
use gargalo_units::{Count, SenderCounters};
use gargalo_workload::AppResult;
use serde_json::{Value as Json, json};

use crate::background;
use crate::media_frames;
use crate::objects::{self, Completion};
use crate::pings::RoundTrips;
use crate::resolved::{Flow, Scenario, Transport};

/// A share of packets; null if it is not known, or nothing was sent.
fn share(part: Count, sent: Count) -> Json {
    let sent = sent.get().filter(|n| *n > 0);
    let both = part.get().zip(sent);
    let share = both.map(|(part, sent)| part as f64 / sent as f64);
    share.map_or(Json::Null, Json::from)
}

/// The QUIC stack of a flow in brackets, unless it is noq's.
fn stack(scenario: &Scenario, flow: &FlowResult) -> String {
    let spec = scenario.flows.iter().find(|f| f.id == flow.id);
    match spec.map(|f| &f.transport) {
        Some(Transport::Quic(q)) if !q.stack.is_noq() => format!(" (stack {})", q.stack),
        _ => String::new(),
    }
}

/// Whether noq's own BBRv3 is at one of its ends: noq-proto 1.4 offers no way to give that a seed.
fn draws_of_the_system(flow: &Flow) -> bool {
    match &flow.transport {
        Transport::Quic(q) => {
            q.congestion.name == "noq-bbr3" && (q.stack.client == NOQ || q.stack.server == NOQ)
        }
        Transport::Tcp(_) | Transport::Mptcp(_) | Transport::Udp => false,
    }
}

/// `{"summary", "run"}`.
pub(crate) fn json(scenario: &Scenario, out: &Outcome, wall_s: f64) -> Json {
    let mut warnings = Vec::new();
    if out.interrupted {
        warnings.push("interrupted before the end".to_owned());
    }
    for f in &out.flows {
        if f.corrupted {
            warnings.push(format!(
                "flow {}{}: delivered content differs from what was sent",
                f.label,
                stack(scenario, f)
            ));
        }
        if let Some(why) = &f.failure {
            warnings.push(format!("flow {}: {why}", f.label));
        }
    }
    if scenario.flows.iter().any(draws_of_the_system) {
        warnings.push(
            "noq-bbr3 draws random numbers of the system, which no seed decides: runs of this scenario differ"
                .to_owned(),
        );
    }
    if let Some((from, until)) = out.measured
        && from == until
    {
        warnings.push(format!(
            "nothing was measured: the run ended at {} s, before measure.from ({} s)",
            out.end.decimal_secs(),
            from.decimal_secs()
        ));
    }
    warnings.extend(background::warnings(scenario, out));
    let mut summary = summary(out);
    let any = |is: fn(&AppResult) -> bool| {
        let mut results = out.flows.iter().filter_map(|f| f.application.as_ref());
        results.any(is)
    };
    if let Some(map) = summary.as_object_mut() {
        if any(|r| matches!(r, AppResult::Request(_))) {
            map.extend(Completion::of(out.flows.iter().flat_map(objects::of)).json());
        }
        if any(|r| matches!(r, AppResult::Ping(_))) {
            map.extend(RoundTrips::of(out, &out.flows).json());
        }
        // Calls of groups keep no frames.
        if any(|r| matches!(r, AppResult::Media(m) if m.frames.is_some())) {
            map.extend(media_frames::json(out));
        }
        let background = background::json(scenario, out);
        if !background.is_null() {
            map.insert("background".to_owned(), background);
        }
    }
    // Flows that have rows are in the list already.
    let without_rows = scenario.flows.iter().filter(|f| !f.rows);
    let groups: BTreeSet<usize> = without_rows.filter_map(|f| f.group).collect();
    let groups = groups.iter().filter_map(|g| out.groups.get(*g));
    let in_groups: u64 = groups.map(|g| g.flows).sum();
    json!({
        "summary": summary,
        "run": {
            "name": scenario.name,
            "scenario_hash": scenario.hash(),
            "seed": scenario.seed,
            "duration_s": scenario.duration.decimal_secs(),
            "virtual_s": out.end.decimal_secs(),
            "wall_s": wall_s,
            "packets": out.packets,
            "packets_per_s": if wall_s > 0.0 { json!(out.packets as f64 / wall_s) } else { Json::Null },
            "events": out.events,
            "flows": out.flows.len() as u64 + in_groups,
            "peak_flows": out.peak_flows,
            "warnings": warnings,
        },
    })
}

fn summary(out: &Outcome) -> Json {
    let (from, until) = out.window();
    let length = until.saturating_since(from);
    // Bytes over one time for all: the rates of flows, each over its own time, cannot be added.
    let over = |bytes: u64| {
        let bits = 8.0 * bytes as f64;
        (!length.is_zero()).then(|| bits / length.as_secs_f64())
    };
    let own = out.flows.iter().filter_map(|f| out.goodput(f));
    let rates: Vec<f64> = own.map(|r| r.as_bps() as f64).collect();
    let mut groups: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for f in &out.flows {
        let name = if f.congestion.is_empty() {
            f.transport
        } else {
            f.congestion.as_str()
        };
        let g = groups.entry(name).or_default();
        g.0 += 1;
        g.1 += f.inside.delivered;
    }
    let groups: serde_json::Map<String, Json> = groups
        .into_iter()
        .map(|(name, (flows, bytes))| {
            let value = json!({
                "flows": flows,
                "goodput_bps": over(bytes),
                "goodput_mean_bps": over(bytes).map(|sum| sum / flows as f64),
            });
            (name.to_owned(), value)
        })
        .collect();
    // The bottleneck: of the directions with a rate, the one with the highest utilization.
    let bottleneck = out.links.iter().filter(|l| l.utilization.is_some()).fold(
        None,
        |best: Option<&LinkResult>, l| match best {
            Some(b) if b.utilization >= l.utilization => Some(b),
            _ => Some(l),
        },
    );
    let mut sums = SenderCounters::default();
    out.flows.iter().for_each(|f| sums += f.inside.sender);
    let sent = sums.sent_packets;
    let mut times: Vec<f64> = out
        .flows
        .iter()
        .filter_map(|f| Some(f.completion?.decimal_secs()))
        .collect();
    let completed = times.len();
    let mut time = |p: f64| stats::percentile(&mut times, p);
    let (p50, p95, p99) = (time(0.5), time(0.95), time(0.99));
    json!({
        "measured_from_s": from.decimal_secs(),
        "measured_until_s": until.decimal_secs(),
        "goodput_bps": over(out.flows.iter().map(|f| f.inside.delivered).sum()),
        "groups": groups,
        "jain_index": stats::jain_index(&rates),
        "goodput_cov": stats::coefficient_of_variation(&rates),
        "bottleneck": bottleneck.map(|l| format!("{} {}", l.name, l.direction)),
        "utilization": bottleneck.and_then(|l| l.utilization),
        "queue_delay_mean_s": bottleneck.map(|l| l.queue_delay.mean().decimal_secs()),
        "queue_delay_p50_s": bottleneck.map(|l| l.queue_delay.percentile(50.0).decimal_secs()),
        "queue_delay_p95_s": bottleneck.map(|l| l.queue_delay.percentile(95.0).decimal_secs()),
        "queue_delay_p99_s": bottleneck.map(|l| l.queue_delay.percentile(99.0).decimal_secs()),
        "loss_rate": share(sums.lost_packets, sent),
        "retransmission_rate": share(sums.retransmitted_packets, sent),
        "completed_flows": completed,
        "completion_p50_s": p50,
        "completion_p95_s": p95,
        "completion_p99_s": p99,
    })
}

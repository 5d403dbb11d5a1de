//! The part of the summary about flows that are counted together: the requested, offered and carried load of links,
//! and the results of the flows.

use std::collections::BTreeMap;

use gargalo_flow::{Group as Totals, Outcome};
use gargalo_trace::Quantiles;
use gargalo_units::{Duration, SenderCounters};
use serde_json::{Map, Value as Json, json};

use crate::resolved::{Group, Loaded, Rest, Scenario};

/// A group with its results, and the seconds of it in the measured window.
struct Counted<'a> {
    spec: &'a Group,
    totals: &'a Totals,
    seconds: f64,
}

impl Counted<'_> {
    /// Wire bytes before losses: datagrams are never retransmitted.
    fn offered(&self) -> f64 {
        match self.totals.inside.planned.forward {
            0 if self.is_datagrams() => self.totals.inside.sent.forward as f64,
            planned => planned as f64,
        }
    }

    fn is_datagrams(&self) -> bool {
        self.totals.one_way || self.spec.congestion.is_empty()
    }

    fn is_twin(&self, of: &Loaded) -> bool {
        self.spec
            .loaded
            .is_some_and(|l| l.link == of.link && l.down != of.down)
    }

    fn per_second(&self, bytes: f64) -> f64 {
        if self.seconds > 0.0 {
            bytes * 8.0 / self.seconds
        } else {
            0.0
        }
    }
}

fn counted<'a>(scenario: &'a Scenario, out: &'a Outcome) -> Vec<Counted<'a>> {
    let pairs = scenario.groups.iter().zip(&out.groups);
    pairs
        .map(|(spec, totals)| {
            let (start, end) = spec.window;
            let seconds = out.active(start, end.min(out.end));
            let seconds = seconds.unwrap_or_default().decimal_secs();
            Counted {
                spec,
                totals,
                seconds,
            }
        })
        .collect()
}

/// Builds `{"loads", "groups"}`; null if there are no groups.
pub(crate) fn json(scenario: &Scenario, out: &Outcome) -> Json {
    let all = counted(scenario, out);
    if all.is_empty() {
        return Json::Null;
    }
    json!({
        "loads": loads(scenario, &all),
        "groups": all.iter().map(|c| group(scenario, c)).collect::<Vec<_>>(),
    })
}

/// Warnings: loads that were missed, flows that failed.
pub(crate) fn warnings(scenario: &Scenario, out: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    for c in counted(scenario, out) {
        let label = &c.spec.label;
        if let Some(asked) = c.totals.offer.asked
            && !out.interrupted
        {
            let share = c.totals.planned.forward as f64 / asked.max(1.0);
            if (share - 1.0).abs() > 0.03 {
                lines.push(format!(
                    "{label}: {:.0}% of the load asked for was offered; its transfers are too few and too large for \
                     the length of the run",
                    share * 100.0
                ));
            }
        }
        if c.totals.failed > 0 {
            lines.push(format!(
                "{label}: {} flows were reset or timed out",
                c.totals.failed
            ));
        }
        if c.totals.corrupted > 0 {
            lines.push(format!(
                "{label}: delivered content of {} flows differs from what was sent",
                c.totals.corrupted
            ));
        }
    }
    lines
}

/// Every loaded link direction.
fn loads(scenario: &Scenario, all: &[Counted<'_>]) -> Vec<Json> {
    let mut directions: BTreeMap<(usize, bool), Vec<&Counted<'_>>> = BTreeMap::new();
    for c in all {
        if let Some(l) = c.spec.loaded {
            directions.entry((l.link, l.down)).or_default().push(c);
        }
    }
    let of = |(&(link, down), groups): (&(usize, bool), &Vec<&Counted<'_>>)| {
        let l = scenario.links.get(link);
        let config = l.map(|l| if down { &l.down } else { &l.up });
        let capacity = config.map_or(0.0, |c| c.rate.mean().as_bps() as f64);
        let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
        let (mut asked, mut offered, mut sent) = (0.0, 0.0, 0.0);
        for c in groups {
            let Some(loaded) = &c.spec.loaded else {
                continue;
            };
            asked += loaded.asked.as_bps() as f64;
            let mut own = c.per_second(c.offered());
            sent += c.per_second(c.totals.inside.sent.forward as f64);
            if loaded.rest == Rest::Included {
                let twins = all.iter().filter(|t| t.is_twin(loaded));
                let twins = twins.filter(|t| t.spec.workload == c.spec.workload);
                own += twins
                    .map(|t| t.per_second(t.totals.inside.planned.reverse as f64))
                    .sum::<f64>();
            }
            offered += own;
            *shares.entry(c.spec.workload).or_default() += own;
        }
        // Bytes that the opposite direction's transfers send back are on the wire in either case.
        if let Some(loaded) = groups.first().and_then(|c| c.spec.loaded) {
            let twins = all.iter().filter(|t| t.is_twin(&loaded));
            sent += twins
                .map(|t| t.per_second(t.totals.inside.sent.reverse as f64))
                .sum::<f64>();
        }
        let ratio = |a: f64, b: f64| if b > 0.0 { json!(a / b) } else { Json::Null };
        let shares: Map<String, Json> = shares
            .into_iter()
            .map(|(name, bps)| (name.to_owned(), ratio(bps, offered)))
            .collect();
        json!({
            "link": l.map_or("", |l| l.name.as_str()),
            "direction": if down { "down" } else { "up" },
            "capacity_bps": capacity,
            "asked_bps": asked,
            "offered_bps": offered,
            "sent_bps": sent,
            "asked_load": ratio(asked, capacity),
            "offered_load": ratio(offered, capacity),
            "sent_load": ratio(sent, capacity),
            "shares": shares,
        })
    };
    directions.iter().map(of).collect()
}

fn group(scenario: &Scenario, c: &Counted<'_>) -> Json {
    let t = c.totals;
    let link = c.spec.loaded.and_then(|l| scenario.links.get(l.link));
    let mut out = json!({
        "label": &*t.label,
        "workload": c.spec.workload,
        "congestion": c.spec.congestion,
        "link": link.map(|l| l.name.as_str()),
        "direction": c.spec.loaded.map(|l| if l.down { "down" } else { "up" }),
        "flows": t.flows,
        "completed_flows": t.completed,
        "failed_flows": t.failed,
        "peak_flows": t.peak,
        "asked_bps": c.spec.loaded.map(|l| l.asked.as_bps()),
        "offered_bps": c.per_second(c.offered()),
        "sent_bps": c.per_second(t.inside.sent.forward as f64),
        "returned_bps": c.per_second(t.inside.sent.reverse as f64),
        "goodput_bps": c.per_second(t.inside.delivered as f64),
        "offered_bytes": t.offered.get(),
        "delivered_bytes": t.delivered,
        "ce_marks": t.ce_marks,
    });
    if let Some(map) = out.as_object_mut() {
        for (counter, count) in SenderCounters::DECLARED.iter().zip(t.counters.counts()) {
            map.insert(counter.name.to_owned(), json!(count.get()));
        }
        let datagrams = c.is_datagrams();
        quantiles(if datagrams { "delay" } else { "rtt" }, &t.rtt, map);
        quantiles("completion", &t.completion, map);
        if t.offer.asked.is_some() {
            map.insert("size_scale".to_owned(), json!(t.offer.scale));
        }
        if c.spec.workload == "web" {
            map.insert("sessions".to_owned(), t.sessions.into());
            map.insert("pages".to_owned(), t.pages.into());
            quantiles("page", &t.page_time, map);
        }
        if t.scores.0 > 0 {
            map.insert("mos_mean".to_owned(), json!(t.scores.1 / t.scores.0 as f64));
        }
        let p = &t.players;
        if p.count > 0 {
            let mean = |d: Duration, n: u64| match n {
                0 => Json::Null,
                n => json!(d.decimal_secs() / n as f64),
            };
            map.insert("startup_mean_s".to_owned(), mean(p.startup, p.played));
            map.insert(
                "rebuffering_mean_s".to_owned(),
                mean(p.rebuffering, p.count),
            );
            map.insert("rebufferings".to_owned(), p.rebufferings.into());
            map.insert("bitrate_switches".to_owned(), p.switches.into());
            let rate = p.bitrate.as_bps() as f64 / p.count as f64;
            map.insert("bitrate_mean_bps".to_owned(), json!(rate));
        }
    }
    out
}

/// `name_min_s` and so on.
fn quantiles(name: &str, of: &Quantiles, map: &mut Map<String, Json>) {
    let s = of.summary();
    for (figure, value) in [
        ("min", s.map(|s| s.min)),
        ("mean", s.map(|s| s.mean)),
        ("p50", s.map(|s| s.p50)),
        ("p95", s.map(|s| s.p95)),
        ("p99", s.map(|s| s.p99)),
        ("max", s.map(|s| s.max)),
    ] {
        map.insert(
            format!("{name}_{figure}_s"),
            json!(value.map(|d| d.decimal_secs())),
        );
    }
}

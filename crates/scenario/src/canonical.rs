//! The resolved scenario as JSON, always the same text for the same scenario, and its hash.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use gargalo_flow::{CaptureEnds, LinkSpec, Node};
use gargalo_lab::Stack;
use gargalo_link::{Delay, LinkConfig, LossModel, RateModel};
use gargalo_settings::Setting;
use gargalo_units::{Duration, Instant};
use gargalo_workload::plan::Demand;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::resolved::{Flow, Scenario, Transport};

impl Scenario {
    /// The scenario as resolved: SI units, the unit in the name of each key.
    pub fn to_json(&self) -> Value {
        let node = |n: usize| self.node_name(n);
        let mut out = self.frame();
        // Not within `json!`, which copies what it is given.
        let nodes = self.nodes.iter();
        out["nodes"] = nodes
            .map(|n| json!({ "name": n.name, "host": n.is_host }))
            .collect();
        let mut known = Known::default();
        let links = self.links.iter().map(|l| {
            let (from, to) = (node(l.a as usize), node(l.b as usize));
            let mut out = json!({ "name": l.name, "from": from, "to": to });
            for (key, config) in [("up", &l.up), ("down", &l.down)] {
                out[key] = known.written(config, link).clone();
            }
            out
        });
        out["links"] = links.collect();
        let flows = self.flows.iter().map(|f| {
            let mut out = flow(f, &node);
            out["transport"] = f.transport.write();
            out
        });
        out["flows"] = flows.collect();
        out
    }

    /// [`to_json`](Self::to_json) as text of a size that does not grow with the number of copies: flows that differ
    /// only in `id` are one, with the first `id` and a `count`.
    pub fn compact_json(&self) -> String {
        let mut kinds: Vec<(&Flow, Value, u64)> = Vec::new();
        for f in &self.flows {
            let mut kind = flow(f, &|n: usize| self.node_name(n));
            kind["id"] = Value::Null;
            match kinds.last_mut() {
                Some((first, known, count))
                    if first.id + *count == f.id
                        && first.transport.is_same(&f.transport)
                        && *known == kind =>
                {
                    *count += 1;
                }
                _ => kinds.push((f, kind, 1)),
            }
        }
        let mut text = String::new();
        let mut known = None;
        let kinds = kinds.into_iter().map(|(first, mut kind, count)| {
            kind["id"] = first.id.into();
            if count > 1 {
                kind["count"] = count.into();
            }
            (first, kind)
        });
        self.write(
            &self.frame(),
            kinds,
            |(first, kind), out| write_flow(&kind, &first.transport, &mut known, out),
            &mut |part| text.push_str(part),
        );
        text
    }

    fn node_name(&self, n: usize) -> &str {
        self.nodes.get(n).map_or("", |n| n.name.as_str())
    }

    /// All but the nodes, links and flows, which may be many: their lists are empty.
    fn frame(&self) -> Value {
        let node = |n: usize| self.node_name(n);
        let mut out = json!({
            "name": self.name,
            "description": self.description,
            "seed": self.seed,
            "duration_s": seconds(self.duration),
            "topology": self.topology,
            "nodes": [],
            "links": [],
            "flows": [],
            "record": {
                "interval_s": seconds(self.record.interval), "flows": self.record.flows,
                "links": self.record.links, "events": self.record.events,
                "captures": self.record.captures, "verify": self.record.verify,
            },
        });
        // Written only if requested, so that scenarios without QUIC keep their hash.
        if self.record.qlog {
            out["record"]["qlog"] = true.into();
        }
        if self.record.decisions {
            out["record"]["decisions"] = true.into();
        }
        if self.record.gauges {
            out["record"]["gauges"] = true.into();
        }
        if self.record.capture_ends != CaptureEnds::From {
            out["record"]["capture_ends"] = ends(self.record.capture_ends).into();
        }
        if self.record.capture_payload {
            out["record"]["capture_payload"] = true.into();
        }
        if let Some((from, until)) = self.measure {
            out["measure"] = json!({ "from_s": at(from), "until_s": at(until) });
        }
        // Likewise for scenarios of the simulator.
        if let Some(hosts) = hosts(self) {
            out["hosts"] = hosts;
        }
        if !self.lab.commands.is_empty() {
            let commands = self.lab.commands.iter().map(|c| {
                json!({
                    "host": node(c.host as usize), "run": c.run, "start_s": at(c.start),
                    "background": c.background,
                })
            });
            out["commands"] = commands.collect();
        }
        out
    }

    /// [`to_json`](Self::to_json) as text with sorted keys and without spaces.
    pub fn canonical_json(&self) -> String {
        text(&self.to_json())
    }

    /// SHA-256 of the canonical JSON, in hexadecimal: two scenarios with the same hash give the same results. The seed
    /// and the contents of traces are included, name and description are not.
    pub fn hash(&self) -> String {
        let mut json = self.frame();
        if let Value::Object(map) = &mut json {
            map.remove("name");
            map.remove("description");
        }
        let mut hash = Sha256::new();
        let mut known = None;
        self.write(
            &json,
            self.flows.iter(),
            |f, out| {
                let flow = flow(f, &|n: usize| self.node_name(n));
                write_flow(&flow, &f.transport, &mut known, out);
            },
            &mut |part| hash.update(part.as_bytes()),
        );
        hex(&hash.finalize())
    }

    /// Writes the scenario as in [`canonical_json`](Self::canonical_json), the text of one link, flow or node at a
    /// time: it may have a hundred thousand. `frame` is all but these.
    fn write<F>(
        &self,
        frame: &Value,
        flows: impl Iterator<Item = F>,
        write_flow: impl FnMut(F, &mut String),
        sink: &mut dyn FnMut(&str),
    ) {
        let frame = text(frame);
        // Keys are sorted: flows, links, nodes.
        let (head, tail) = frame.split_once(NO_FLOWS).unwrap_or((&frame, ""));
        list(head, "flows", flows, write_flow, sink);
        let (head, tail) = tail.split_once(NO_LINKS).unwrap_or((tail, ""));
        let mut known = Known::default();
        let write_link = |l, out: &mut String| self.write_link(l, &mut known, out);
        list(head, "links", self.links.iter(), write_link, sink);
        let (head, tail) = tail.split_once(NO_NODES).unwrap_or((tail, ""));
        let write_node = |n: &Node, out: &mut String| {
            out.extend(["{\"host\":", if n.is_host { "true" } else { "false" }]);
            out.push_str(",\"name\":");
            write_string(&n.name, out);
            out.push('}');
        };
        list(head, "nodes", self.nodes.iter(), write_node, sink);
        sink(tail);
    }

    /// Writes a link as it is in [`canonical_json`](Self::canonical_json).
    fn write_link<'a>(
        &self,
        l: &'a LinkSpec,
        known: &mut Known<'a, LinkConfig, String>,
        out: &mut String,
    ) {
        let config = |c: &LinkConfig| text(&link(c));
        out.extend(["{\"down\":", known.written(&l.down, config)]);
        for (key, name) in [
            (",\"from\":", self.node_name(l.a as usize)),
            (",\"name\":", &*l.name),
            (",\"to\":", self.node_name(l.b as usize)),
        ] {
            out.push_str(key);
            write_string(name, out);
        }
        out.extend([",\"up\":", known.written(&l.up, config), "}"]);
    }
}

/// Writes a flow, given as JSON but for its transport. `known`: the last transport and its text, which copies of a flow
/// share.
fn write_flow<'a>(
    flow: &Value,
    transport: &'a Transport,
    known: &mut Option<(&'a Transport, String)>,
    out: &mut String,
) {
    let text = text(flow);
    let known = match known {
        Some(known) if known.0.is_same(transport) => known,
        _ => {
            let mut text = String::from("\"transport\":");
            write(&transport.write(), &mut text);
            known.insert((transport, text))
        }
    };
    let (head, tail) = text.split_once(NO_TRANSPORT).unwrap_or((&text, ""));
    out.extend([head, known.1.as_str(), tail]);
}

/// Passes on what is before a list, and the list, an item at a time.
fn list<T>(
    head: &str,
    key: &str,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
    sink: &mut dyn FnMut(&str),
) {
    sink(head);
    sink(&format!("\"{key}\":["));
    let mut text = String::new();
    for (i, item) in items.enumerate() {
        text.clear();
        text.push_str(if i > 0 { "," } else { "" });
        write(item, &mut text);
        sink(&text);
    }
    sink("]");
}

/// Where flows, links, nodes, and the transport of a flow belong in a text. No string has it: quotes in strings are
/// escaped.
const NO_FLOWS: &str = "\"flows\":[]";
const NO_LINKS: &str = "\"links\":[]";
const NO_NODES: &str = "\"nodes\":[]";
const NO_TRANSPORT: &str = "\"transport\":null";

fn ends(ends: CaptureEnds) -> &'static str {
    match ends {
        CaptureEnds::From => "from",
        CaptureEnds::To => "to",
        CaptureEnds::Both => "both",
    }
}

/// The hosts with the kernel's stack; `None`: there are none.
fn hosts(scenario: &Scenario) -> Option<Value> {
    let named = scenario.nodes.iter().zip(&scenario.lab.stacks);
    let kernels = named.filter_map(|(node, stack)| match stack {
        Stack::Kernel {
            congestion,
            settings,
        } if node.is_host => {
            let sysctl: Map<String, Value> = settings
                .iter()
                .map(|(k, v)| (k.clone(), v.as_str().into()))
                .collect();
            let host = json!({ "stack": "kernel", "congestion": congestion, "sysctl": sysctl });
            Some((node.name.clone(), host))
        }
        _ => None,
    });
    let map: Map<String, Value> = kernels.collect();
    (!map.is_empty()).then(|| map.into())
}

/// SHA-256 of all results of a run: its summary, flows, links and tables, in hexadecimal. The seed and figures of the
/// machine are excluded: runs with the same hash had the same results. `go_on` is called regularly; `None`: it broke.
pub(crate) fn results_hash(
    found: &Value,
    tables: &gargalo_trace::Tables,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Option<String> {
    /// Bytes hashed between two calls.
    const EVERY: usize = 1 << 20;
    let mut hash = Sha256::new();
    let mut text = String::new();
    let mut canonical = |value: &Value, hash: &mut Sha256| {
        text.clear();
        write(value, &mut text);
        hash.update(text.as_bytes());
    };
    canonical(&found["summary"], &mut hash);
    // As arrays, a flow or link at a time.
    for table in [&*tables.flows, &*tables.links] {
        hash.update("[");
        for (i, row) in table.rows().enumerate() {
            hash.update(if i > 0 { "," } else { "" });
            canonical(&row, &mut hash);
        }
        hash.update("]");
    }
    let (mut since, mut stopped) = (0, false);
    let is_there_already = |t: &gargalo_trace::Columns| t.schema() == tables.links.schema();
    // Without rows these are no part of it: runs without them have the hash that they had before there were
    // such tables.
    let later = [
        tables.datagrams.schema().name,
        tables.pings.schema().name,
        tables.media_frames.schema().name,
        tables.packets.schema().name,
    ];
    let counts = |t: &&gargalo_trace::Columns| {
        !is_there_already(t) && (!t.is_empty() || !later.contains(&t.schema().name))
    };
    for table in tables.all().into_iter().filter(counts) {
        table.feed(&mut |bytes| {
            for piece in bytes.chunks(EVERY) {
                if stopped {
                    return;
                }
                hash.update(piece);
                since += piece.len();
                if since >= EVERY {
                    since = 0;
                    stopped = go_on().is_break();
                }
            }
        });
    }
    (!stopped).then(|| hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// JSON as text with sorted keys and without spaces.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Writes JSON with sorted keys and without spaces, whatever order the map keeps.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(k, _)| k.as_str());
            out.push('{');
            for (i, (k, v)) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(k, out);
                out.push(':');
                write(v, out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (i, v) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(v, out);
            }
            out.push(']');
        }
        Value::String(text) => write_string(text, out),
        plain => {
            // Writing to a text cannot fail.
            let _ = write!(out, "{plain}");
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    if text
        .bytes()
        .all(|b| b >= b' ' && !matches!(b, b'"' | b'\\'))
    {
        out.extend(["\"", text, "\""]);
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// Seconds; null for an unlimited duration.
fn seconds(d: Duration) -> Value {
    match d {
        Duration::MAX => Value::Null,
        d => d.decimal_secs().into(),
    }
}

fn at(t: Instant) -> f64 {
    t.decimal_secs()
}

/// A link as it is without a key.
static USUAL: LazyLock<Value> = LazyLock::new(|| LinkConfig::default().write());

/// Keys of a link that differ from those of a scenario, or belong to the queue (`ecn`).
const OWN_FORM: [&str; 11] = [
    "rate",
    "delay",
    "jitter",
    "loss",
    "reorder",
    "duplicate",
    "mtu",
    "queue",
    "outages",
    "policer",
    "ecn",
];

/// How many links are compared with the next one: networks have few kinds.
const KNOWN_LINKS: usize = 8;

/// What was written of the latest kinds.
struct Known<'a, T, W>(Vec<(&'a T, W)>);

impl<T, W> Default for Known<'_, T, W> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T: PartialEq, W> Known<'a, T, W> {
    /// What is written of something, or was of one that is the same.
    fn written(&mut self, of: &'a T, write: impl FnOnce(&T) -> W) -> &W {
        let place = self.0.iter().position(|(same, _)| *same == of);
        let place = place.unwrap_or_else(|| {
            self.0.truncate(KNOWN_LINKS - 1);
            self.0.insert(0, (of, write(of)));
            0
        });
        &self.0[place].1
    }
}

fn link(c: &LinkConfig) -> Value {
    let rate = match &c.rate {
        RateModel::Unlimited => Value::Null,
        RateModel::Constant(r) => json!({ "constant_bps": r.as_bps() }),
        RateModel::Steps(s) => json!({
            "steps": s.iter().map(|(t, r)| json!([at(*t), r.as_bps()])).collect::<Vec<_>>()
        }),
        RateModel::Trace(t) => {
            let mut hash = Sha256::new();
            for time in t.times() {
                hash.update(time.as_nanos().to_le_bytes());
            }
            json!({ "trace": {
                "opportunities": t.opportunities(), "period_s": seconds(t.period()),
                "mean_bps": t.mean_rate().as_bps(), "sha256": hex(&hash.finalize())
            } })
        }
    };
    let delay = match &c.delay {
        Delay::Constant(d) => json!({ "constant_s": seconds(*d) }),
        Delay::Steps(s) => json!({
            "steps": s.iter().map(|(t, d)| json!([at(*t), seconds(*d)])).collect::<Vec<_>>()
        }),
    };
    let jitter = c
        .jitter
        .filter(|j| !j.scale.is_zero())
        .map(|j| json!({ "scale_s": seconds(j.scale), "distribution": j.distribution.name() }));
    let loss = match c.loss {
        LossModel::NONE => Value::Null,
        LossModel::Independent(p) => json!({ "independent": p }),
        LossModel::Periodic(n) => json!({ "periodic": n }),
        LossModel::GilbertElliott(g) => {
            json!({ "gilbert-elliott": { "p": g.p, "r": g.r, "h": g.h, "k": g.k } })
        }
    };
    let reorder = c.reorder.as_ref().map(|r| {
        let early = match (r.late, r.early) {
            (Some(_), _) => Value::Null,
            (None, Some(early)) => seconds(early),
            (None, None) => "all".into(),
        };
        json!({
            "probability": r.probability, "gap": r.gap, "correlation": r.correlation,
            "late_s": r.late.map(seconds), "early_s": early
        })
    });
    let mut out = json!({
        "rate": rate, "delay": delay, "jitter": jitter, "loss": loss, "reorder": reorder,
        "duplicate": c.duplicate, "mtu_bytes": c.mtu, "queue": c.queue.write()
    });
    // Written only where there are any, so that links without them keep their hash.
    if !c.outages.is_empty() {
        let spans = c.outages.iter().map(|(a, b)| json!([at(*a), at(*b)]));
        out["outages"] = spans.collect();
    }
    if let Some(p) = &c.policer {
        out["policer"] = json!({ "rate_bps": p.rate.as_bps(), "burst_bytes": p.burst.get() });
    }
    // Every other key is as in a scenario, if it is given.
    for (key, value) in c.write().as_object().into_iter().flatten() {
        if !OWN_FORM.contains(&key.as_str()) && USUAL.get(key) != Some(value) {
            out[key] = value.clone();
        }
    }
    out
}

/// A flow without its transport.
fn flow<'a>(f: &Flow, name: &dyn Fn(usize) -> &'a str) -> Value {
    let (from, to) = (name(f.from), name(f.to));
    let workload = f.workload.write();
    let mut out = json!({
        "id": f.id, "label": f.label.as_ref(), "from": from, "to": to, "start_s": at(f.start),
        "stop_s": f.stop.map(at), "transport": null, "workload": workload,
        "arrivals_mean_s": f.arrivals.map(seconds)
    });
    if let Some(map) = out.as_object_mut() {
        if let Some(source) = &f.source {
            let demand = match source.demand {
                Demand::PerSecond(n) => json!({ "per_second": n }),
                Demand::Load { forward, opposite } => json!({
                    "load_bps": forward.as_bps(), "opposite_load_bps": opposite.as_bps()
                }),
            };
            let pairs = source.pairs.iter().map(|&(a, b)| json!([name(a), name(b)]));
            map.insert("demand".to_owned(), demand);
            map.insert("pairs".to_owned(), pairs.collect());
        }
        // Written only if requested, so that other flows keep their hash.
        if f.path > 0 {
            map.insert("path".to_owned(), f.path.into());
        }
        if !f.start_jitter.is_zero() {
            map.insert("start_jitter_s".to_owned(), seconds(f.start_jitter));
        }
        if f.group.is_some() {
            let record = if f.rows { "full" } else { "summary" };
            map.insert("record".to_owned(), record.into());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_json_has_them() {
        for text in [
            "plain",
            "",
            "ação \u{1f980}",
            "\"quoted\"",
            "a\\b",
            "line\nline\t\u{1}",
        ] {
            let value = json!({ "b": [text, 1.5, null, 7], text: true });
            let sorted: Value = serde_json::from_str(&super::text(&value)).unwrap();
            assert_eq!(sorted, value);
            let mut written = String::new();
            write_string(text, &mut written);
            assert_eq!(written, Value::from(text).to_string());
        }
    }

    #[test]
    fn links_that_are_alike_are_written_once() {
        let kinds: Vec<LinkConfig> = (1..20)
            .map(|i| LinkConfig {
                mtu: 1000 + i,
                ..LinkConfig::default()
            })
            .collect();
        let mut known = Known::default();
        for config in kinds.iter().chain(&kinds).chain(&kinds[18..]) {
            assert_eq!(known.written(config, link), &link(config));
            assert!(known.0.len() <= KNOWN_LINKS);
        }
    }
}

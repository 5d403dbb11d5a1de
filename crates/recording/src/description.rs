//! A recording in the words of a run: its summary, its network and what its reader should know.

use std::collections::BTreeSet;

use gargalo_trace::Tables;
use gargalo_units::Count;
use serde_json::{Value, json};

use crate::Recording;
use crate::facts::{Encrypted, Facts, LeftOut};

/// Sentences for damage, of at most so many files.
const MOST_NAMED: usize = 5;

impl Recording {
    /// `{"summary", "links", "run"}`, as a run has them; `name` is what it is called. Figures that need the network,
    /// which a capture does not show, are absent.
    pub fn json(&self, name: &str) -> Value {
        let rows: Vec<Value> = self.tables.flows.rows().collect();
        let sum =
            |column: &str| -> Count { rows.iter().map(|r| Count::from(r[column].as_u64())).sum() };
        let delivered = sum("measured_bytes").get();
        let goodput = delivered
            .filter(|_| self.facts.duration_s > 0.0)
            .map(|bytes| bytes as f64 * 8.0 / self.facts.duration_s);
        let tcp = || rows.iter().filter(|r| r["transport"] == "tcp");
        let of_tcp = |column: &str| -> Option<u64> {
            tcp()
                .map(|r| Count::from(r[column].as_u64()))
                .sum::<Count>()
                .get()
        };
        let rate = of_tcp("retransmitted_packets").zip(of_tcp("sent_packets"));
        let rate = rate.filter(|(_, sent)| *sent > 0);
        json!({
            "summary": {
                "goodput_bps": goodput,
                "completed_flows": rows.iter().filter(|r| !r["completion_s"].is_null()).count(),
                "retransmission_rate": rate.map(|(again, sent)| again as f64 / sent as f64),
                "measured_from_s": 0.0,
                "measured_until_s": self.facts.duration_s,
            },
            "run": {
                "name": name,
                "world": "recorded",
                "seed": null,
                "duration_s": self.facts.duration_s,
                "virtual_s": self.facts.duration_s,
                "packets": self.facts.packets,
                "flows": rows.len(),
                "warnings": self.facts.notes(),
                "recording": self.facts,
            },
        })
    }

    /// Hosts and flows, as the engine describes those of a scenario.
    pub fn setup(&self, name: &str) -> Value {
        let rows: Vec<Value> = self.tables.flows.rows().collect();
        let hosts = rows.iter().flat_map(|r| [&r["from"], &r["to"]]);
        let hosts: BTreeSet<&str> = hosts.filter_map(Value::as_str).collect();
        let nodes = hosts.iter().map(|h| json!({ "name": h, "host": true }));
        let flows = rows.iter().map(|r| {
            json!({
                "id": r["id"],
                "label": r["label"],
                "from": r["from"],
                "to": r["to"],
                "start_s": r["start_s"],
                "transport": { r["transport"].as_str().unwrap_or_default(): {} },
            })
        });
        let samples = self.tables.link_samples.rows();
        let links: BTreeSet<String> = samples
            .filter_map(|r| r["link"].as_str().map(str::to_owned))
            .collect();
        let links = links.iter().map(|name| json!({ "name": name }));
        json!({
            "name": name,
            "description": "Recorded traffic",
            "duration_s": self.facts.duration_s,
            "nodes": nodes.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "flows": flows.collect::<Vec<_>>(),
            "record": { "flows": true, "links": !self.tables.link_samples.is_empty(), "events": true },
        })
    }

    /// The tables alone.
    pub fn into_tables(self) -> Tables {
        self.tables
    }
}

impl Facts {
    /// What a reader of the figures should know: what could not be read, and what the capture cannot show.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let damaged = self
            .files
            .iter()
            .filter_map(|f| Some((f, f.damage?, f.damaged_at_byte?)));
        for (file, why, at) in damaged.take(MOST_NAMED) {
            let frames = file.frames;
            notes.push(format!(
                "{}: {why} (byte {at}); the {frames} packets before it were read",
                file.path
            ));
        }
        notes.extend(self.left_out.notes());
        if self.clock.set_back > 0 {
            notes.push(format!(
                "the clock of the capture was set back {} times by more than a second; times after that go on \
                 without the step",
                self.clock.set_back
            ));
        }
        let count = |side: Option<&str>| {
            let data = |f: &&crate::Flow| f.full_segment_bytes.or(f.full_packet_bytes).is_some();
            self.flows
                .iter()
                .filter(data)
                .filter(|f| f.captured_at == side)
                .count()
        };
        for (side, text) in [
            (
                Some("receiver"),
                "was captured at its receiver: round trips and retransmissions of its sender are not seen there",
            ),
            (
                Some("between"),
                "was captured between its ends: round trips of its sender are not seen there",
            ),
            (
                None,
                "has no handshake in the capture: where it was captured and what its windows are counted in is not \
                 known; round trips are those from the place of capture to the receiver",
            ),
        ] {
            match count(side) {
                0 => (),
                1 => notes.push(format!("1 flow {text}")),
                n => notes.push(format!("{n} flows: each {text}")),
            }
        }
        notes.extend(self.encrypted_notes());
        notes
    }

    /// What of QUIC was not decrypted, and why.
    fn encrypted_notes(&self) -> Vec<String> {
        let flows = self
            .flows
            .iter()
            .filter_map(|f| Some((f, f.encrypted_packets?)));
        let sealed = flows
            .clone()
            .filter(|(f, _)| f.full_packet_bytes.is_none())
            .count();
        let sum = |of: fn(&Encrypted) -> u64| flows.clone().map(|(_, e)| of(&e)).sum::<u64>();
        let packets = [
            (
                sum(|e| e.without_key),
                "no key log has their secrets, or the handshake, by which these are found, is not whole in the capture",
            ),
            (sum(|e| e.cut), "the capture has not kept all of them"),
            (
                sum(|e| e.damaged),
                "they do not open with the keys of their connection",
            ),
        ];
        let some = packets.into_iter().filter(|(n, _)| *n > 0);
        let packets =
            some.map(|(n, why)| format!("packets of QUIC that were not decrypted: {n} ({why})"));
        let whole = match sealed {
            0 => None,
            1 => Some("1 flow of QUIC was not decrypted".to_owned()),
            n => Some(format!("{n} flows of QUIC were not decrypted")),
        };
        let whole = whole.map(|text| {
            format!("{text}: what was delivered, sent again and lost there is not seen, round trips are those of the \
                handshake and of the spin bit")
        });
        packets.chain(whole).collect()
    }
}

impl LeftOut {
    fn notes(&self) -> Vec<String> {
        let of = [
            (self.other, "neither TCP nor UDP over IP"),
            (self.unknown_link, "a link type that is not known"),
            (self.fragments, "a later fragment of an IP packet"),
            (self.malformed, "a header that is cut off or makes no sense"),
            (
                self.unusable,
                "no time, or an interface that the file does not describe",
            ),
            (self.beyond_most_flows, "of more flows than are followed"),
        ];
        let some = of.into_iter().filter(|(n, _)| *n > 0);
        let packets = some.map(|(n, why)| format!("packets left out: {n} ({why})"));
        let lines = self.unused_lines;
        let lines = (lines > 0).then(|| format!("lines of logs that could not be used: {lines}"));
        packets.chain(lines).collect()
    }
}

//! A trace: events at one end of a connection, or of several that are told apart by their groups.

use std::collections::HashMap;

use gargalo_units::Duration;
use serde_json::Value;

use super::Found;
use super::clock::Clock;
use super::connection::Connection;
use super::event::{self, Event};
use super::head::{End, Head};
use super::packet::Packet;
use super::words::Space;
use crate::logs::Log;

/// Most events that are kept until a trace has told how they are to be read.
const MOST_EARLY: usize = 1 << 14;
/// Most connections of a trace.
const MOST_CONNECTIONS: usize = 1 << 16;

/// A trace.
#[derive(Default)]
pub struct Trace {
    head: Head,
    clock: Clock,
    columns: Vec<String>,
    file_title: String,
    /// The description, if it is the ID of a connection.
    description: String,
    /// Whether how events are to be read is known.
    is_known: bool,
    /// Events before that.
    early: Vec<Value>,
    /// Whether an event was read otherwise than the trace has told later.
    is_misread: bool,
    /// Of the events before that, those that could not be used.
    unused: u64,
    connections: Vec<Connection>,
    /// The groups of each connection, from the first.
    groups: Vec<Vec<String>>,
    by_group: HashMap<String, usize>,
}

impl Trace {
    /// Takes a field that is not the events.
    pub fn set(&mut self, key: &str, value: &Value) {
        let before = self.clock.clone();
        match key {
            "common_fields" => {
                self.clock.set(value);
                let id = ["ODCID", "odcid", "group_id", "dcid", "scid"].iter();
                let id = id.filter_map(|k| event::text(&value[*k])).next();
                self.head.id = id.unwrap_or_default();
                self.is_known = true;
            }
            "configuration" => {
                self.clock.configure(value);
                self.is_known = true;
            }
            "event_fields" => {
                let columns = event::array(value).filter_map(Value::as_str);
                self.columns = columns.map(column).collect();
                self.columns.iter().for_each(|c| self.clock.set_column(c));
                self.is_known = true;
            }
            "vantage_point" => self.set_vantage_point(value),
            // picoquic has the connection ID there.
            "description" => {
                let text = value.as_str().unwrap_or_default();
                if !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit()) {
                    text.clone_into(&mut self.description);
                }
            }
            "title" => self.head.title = value.as_str().unwrap_or_default().to_owned(),
            _ => (),
        }
        let is_other =
            self.clock.unit_ns != before.unit_ns || self.clock.is_delta != before.is_delta;
        self.is_misread |= is_other && !self.connections.is_empty();
    }

    fn set_vantage_point(&mut self, value: &Value) {
        let end = |word: &Value| match word.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("client") => End::Client,
            Some("server") => End::Server,
            _ => End::Unknown,
        };
        self.head.is_between = value["type"].as_str() == Some("network");
        self.head.end = match self.head.is_between {
            true => end(&value["flow"]),
            // Writers of the first drafts have the type alone.
            false if value.is_string() => end(value),
            false => end(&value["type"]),
        };
    }

    /// The title of the file.
    pub fn set_file_title(&mut self, title: &str) {
        title.clone_into(&mut self.file_title);
    }

    /// Nothing more is told of how events are to be read.
    pub fn head_is_read(&mut self) {
        self.is_known = true;
    }

    /// Takes an event of a document, in which the head may follow; whether it can be used.
    pub fn take_event(&mut self, event: Value) -> bool {
        if !self.is_known && self.early.len() < MOST_EARLY {
            let is_event = event.is_object() || event.is_array();
            if is_event {
                self.early.push(event);
            }
            return is_event;
        }
        self.end_early();
        self.on_event(&event)
    }

    fn end_early(&mut self) {
        self.is_known = true;
        let early = std::mem::take(&mut self.early);
        for event in &early {
            let is_used = self.on_event(event);
            self.unused += u64::from(!is_used);
        }
    }

    /// Takes an event; whether it can be used.
    pub fn on_event(&mut self, value: &Value) -> bool {
        let Some(event) = Event::read(value, &self.columns) else {
            // An empty one ends the list of writers that put a comma after each event.
            return value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty);
        };
        let time = self.clock.time(event.time);
        let group = event.group.and_then(event::text).unwrap_or_default();
        let i = match self.by_group.get(&group) {
            Some(i) => *i,
            None if self.by_group.len() >= MOST_CONNECTIONS => return false,
            None => {
                let i = self.continued(&event).unwrap_or_else(|| {
                    self.connections.push(Connection::new(time));
                    self.groups.push(Vec::new());
                    self.connections.len() - 1
                });
                self.groups[i].push(group.clone());
                self.by_group.insert(group, i);
                i
            }
        };
        self.connections[i].on_event(time, &event, &self.clock);
        true
    }
}

impl Trace {
    /// The connection of the first event of a group, if there is only one and none begins with such a packet, of the
    /// Handshake space: quinn names groups by the peer's connection ID, which becomes known with its first packet.
    fn continued(&self, event: &Event<'_>) -> Option<usize> {
        let is_packet = matches!(&event.name[..], "packet_sent" | "packet_received");
        let packet = Packet::read(event.data).filter(|_| is_packet)?;
        (packet.space == Space::Handshake && self.connections.len() == 1).then_some(0)
    }
}

fn column(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "event_type" => "event".to_owned(),
        name => name.to_owned(),
    }
}

/// The flows of all traces, with times since the first of those that have a date.
pub fn log_of(found: Found) -> Log {
    let mut log = Log {
        unused: found.unused,
        ..Log::default()
    };
    let mut flows = Vec::new();
    for mut trace in found.traces {
        trace.end_early();
        log.unused += trace.unused;
        if trace.is_misread {
            log.unused += 1;
            continue;
        }
        for (connection, groups) in trace.connections.into_iter().zip(trace.groups) {
            if connection.is_empty() {
                continue;
            }
            let begun = connection.begun_ns();
            let (mut flow, unused) = connection.finish(&trace.head);
            log.unused += unused;
            if let Some(twin) = &mut flow.twin {
                twin.names.extend(groups.iter().cloned());
                twin.names.push(trace.description.clone());
            }
            let group = &groups[0];
            let titles = [
                &trace.head.title,
                group,
                &trace.head.id,
                &trace.file_title,
                &found.title,
            ];
            let title = titles
                .into_iter()
                .find(|t| !t.is_empty())
                .unwrap_or(&flow.label);
            let mut names = vec![title.as_str()];
            for more in [&trace.description, group] {
                if !more.is_empty() && !names.contains(&more.as_str()) {
                    names.push(more);
                }
            }
            flow.label = names.join(" ");
            flows.push((flow, begun, trace.clock.clone(), trace.head.end));
        }
    }
    let date = |begun: i64, clock: &Clock| clock.date_ns(begun);
    log.begun_ns = flows
        .iter()
        .filter_map(|(_, t, clock, _)| date(*t, clock))
        .min();
    // Of clocks that began at any time, such as that of the machine.
    let free = flows
        .iter()
        .filter(|(_, _, clock, _)| !clock.begins_at_zero());
    let free = free.map(|(_, t, ..)| *t).min().unwrap_or(0);
    let mut named: HashMap<String, usize> = HashMap::new();
    for (flow, ..) in &flows {
        *named.entry(flow.label.clone()).or_default() += 1;
    }
    for (mut flow, begun, clock, end) in flows {
        // Both ends of a connection have its name.
        if named.get(&flow.label).is_some_and(|n| *n > 1) {
            flow.label.push_str(match end {
                End::Client => " client",
                End::Server => " server",
                End::Unknown => "",
            });
        }
        let later = match (date(begun, &clock), log.begun_ns) {
            (Some(date), Some(first)) => date - first,
            _ if clock.begins_at_zero() => begun.max(0) as u64,
            _ => begun.saturating_sub(free).max(0) as u64,
        };
        flow.delay(Duration::from_nanos(later));
        log.flows.push(flow);
    }
    log
}

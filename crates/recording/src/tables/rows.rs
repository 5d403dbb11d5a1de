//! Rows as they are found, and in the order of the tables.

use gargalo_trace::Tables;
use gargalo_trace::schema::{EventRow, FlowRow, FlowSample, LinkSample, PacketRow, SubflowSample};
use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::facts::Flow;
use crate::logs::{Link, Logged};
use crate::names::Names;
use crate::tcp::{Event, SentPacket};

/// Whether two places have one clock.
pub type SameClock<'a> = dyn Fn(usize, usize) -> bool + 'a;

/// An event: when, of which flow, what, and details.
type Told = (Instant, u64, &'static str, String);

/// What has been found. Flows and subflows are in the tables, what has a time is put in order at the end.
#[derive(Debug, Default)]
pub struct Rows {
    /// Rows of flows and subflows.
    pub tables: Tables,
    /// What was concluded of each flow.
    pub facts: Vec<Flow>,
    /// Samples of flows.
    pub samples: Vec<FlowSample<'static>>,
    /// Samples of subflows, each with the name of its path.
    pub subflow_samples: Vec<(SubflowSample<'static>, String)>,
    link_samples: Vec<(LinkSample<'static>, String)>,
    events: Vec<Told>,
    packets: Vec<PacketRow>,
}

impl Rows {
    /// Adds what happened to a TCP connection.
    pub fn add_events(&mut self, flow: u64, events: &[(Instant, Event)]) {
        self.events.extend(events.iter().map(|(time, event)| {
            let (kind, detail) = described(*event);
            (*time, flow, kind, detail)
        }));
    }

    /// Adds the packets of a connection, if they were wanted.
    pub fn add_packets(&mut self, flow: u64, subflow: Option<u64>, packets: Option<&[SentPacket]>) {
        self.packets
            .extend(packets.into_iter().flatten().map(|p| PacketRow {
                time: p.time,
                flow,
                subflow,
                offset: Bytes::new(p.start),
                payload: Bytes::new(p.payload.into()),
                size: Bytes::new(p.size.into()),
                again: p.again,
                acknowledged: p.acknowledged,
            }));
    }

    /// Adds a flow of a log.
    pub fn add_logged(&mut self, id: u64, logged: &Logged, names: &mut Names) {
        let called = names.of_log(&logged.label, &logged.from, &logged.to);
        self.tables.flows.push(&FlowRow {
            id,
            label: &called.label,
            from: &called.from,
            to: &called.to,
            congestion: &logged.congestion,
            ..logged.row
        });
        let facts = logged.facts.clone();
        self.facts.push(Flow { id, ..facts });
        let samples = logged.samples.iter();
        self.samples
            .extend(samples.map(|s| FlowSample { flow: id, ..*s }));
        let events = logged.events.iter();
        self.events
            .extend(events.map(|(time, kind, detail)| (*time, id, *kind, detail.clone())));
    }

    /// Adds a link of a log.
    pub fn add_link(&mut self, link: &Link) {
        let samples = link.samples.iter();
        self.link_samples
            .extend(samples.map(|s| (*s, link.name.clone())));
    }

    /// All of it in order.
    pub fn into_tables(mut self) -> (Tables, Vec<Flow>) {
        let tables = &mut self.tables;
        self.samples.sort_by_key(|s| (s.time, s.flow));
        self.samples
            .iter()
            .for_each(|s| tables.flow_samples.push(s));
        self.subflow_samples
            .sort_by_key(|(s, _)| (s.time, s.flow, s.subflow));
        for (s, link) in &self.subflow_samples {
            tables.subflow_samples.push(&SubflowSample { link, ..*s });
        }
        self.link_samples.sort_by_key(|(s, _)| s.time);
        for (s, link) in &self.link_samples {
            tables.link_samples.push(&LinkSample { link, ..*s });
        }
        self.events.sort_by_key(|(time, id, ..)| (*time, *id));
        for (time, id, kind, detail) in &self.events {
            tables.events.push(&EventRow {
                time: *time,
                flow: Some(*id),
                kind,
                detail,
            });
        }
        self.packets.sort_by_key(|p| (p.time, p.flow));
        self.packets.iter().for_each(|p| tables.packets.push(p));
        (self.tables, self.facts)
    }
}

/// The rate of an amount in a time; `None` in no time.
pub fn rate(bytes: Bytes, time: Duration) -> Option<Rate> {
    (!time.is_zero()).then(|| Rate::from_transfer(bytes, time))
}

fn described(event: Event) -> (&'static str, String) {
    match event {
        Event::Loss(packets) => ("loss", format!("segments={packets}")),
        Event::Timeout => ("timeout", String::new()),
        Event::Probe => ("probe", String::new()),
        Event::Recovery => ("recovery", String::new()),
        Event::Recovered => ("recovered", String::new()),
        Event::Spurious(packets) => ("spurious", format!("segments={packets}")),
        Event::ZeroWindow => ("zero-window", String::new()),
        Event::Stall(quiet) => ("stall", format!("quiet_s={}", quiet.as_secs_f64())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_has_no_rate() {
        assert_eq!(rate(Bytes::new(9), Duration::ZERO), None);
        let found = rate(Bytes::new(125), Duration::from_millis(1));
        assert_eq!(found, Some(Rate::from_mbps(1)));
    }
}

//! From what was followed to the tables of a run.

use std::collections::BTreeMap;

use gargalo_trace::schema::{EventRow, FlowRow, FlowSample, LinkSample, SubflowRow, SubflowSample};
use gargalo_trace::{Quantiles, Tables, stats};
use gargalo_units::{Bytes, Count, Duration, Instant, Rate, SenderCounters};

use crate::Known;
use crate::facts::Flow;
use crate::logs::Link;
use crate::multipath::Multipath;
use crate::names::Names;
use crate::tcp::{Connection, Event, Half, Sample, Side};
use crate::udp::Conversation;

/// Whether two places have one clock.
pub type SameClock<'a> = dyn Fn(usize, usize) -> bool + 'a;

/// The tables, and what else was concluded of each flow.
pub fn of(
    flows: &[Known],
    links: &[Link],
    names: &mut Names,
    same_clock: &SameClock<'_>,
) -> (Tables, Vec<Flow>) {
    let mut tables = Tables::default();
    let mut samples = Vec::new();
    let mut subflow_samples: Vec<(SubflowSample<'static>, String)> = Vec::new();
    let mut told: Vec<Told> = Vec::new();
    let mut facts = Vec::with_capacity(flows.len());
    for (id, flow) in flows.iter().enumerate() {
        let id = id as u64;
        match flow {
            Known::Tcp(connection) => {
                facts.push(tcp(id, connection, names, same_clock, &mut tables));
                if let Some((first, _)) = connection.places_of(connection.sender())
                    && let Some(half) = &first.halves[connection.sender()]
                {
                    samples.extend(half.samples.iter().map(|s| (id, sample(s, id))));
                    told.extend(half.events.iter().map(|e| told_of(id, e)));
                }
            }
            Known::Multipath(multipath) => {
                let whole = multipath_flow(id, multipath, names, same_clock, &mut tables);
                facts.push(whole.facts);
                samples.extend(whole.samples.iter().map(|s| (id, *s)));
                subflow_samples.extend(whole.subflow_samples);
                told.extend(whole.events);
            }
            Known::Logged(logged) => {
                let called = names.of_log(&logged.label, &logged.from, &logged.to);
                let (label, from, to) = (&called.label, &called.from, &called.to);
                let congestion = &logged.congestion;
                tables.flows.push(&FlowRow {
                    id,
                    label,
                    from,
                    to,
                    congestion,
                    ..logged.row
                });
                facts.push(Flow {
                    id,
                    ..logged.facts.clone()
                });
                samples.extend(
                    logged
                        .samples
                        .iter()
                        .map(|s| (id, FlowSample { flow: id, ..*s })),
                );
                told.extend(
                    logged
                        .events
                        .iter()
                        .map(|(t, kind, detail)| (*t, id, *kind, detail.clone())),
                );
            }
            Known::Udp(conversation) => {
                facts.push(udp(id, conversation, names, &mut tables));
                let sender = conversation.sender();
                let seen = conversation
                    .seen_of(sender)
                    .map_or(&[][..], |(_, last)| &last.samples);
                samples.extend(seen.iter().map(|(time, bytes)| {
                    let sample = FlowSample {
                        time: *time,
                        flow: id,
                        delivered: Some(Bytes::new(*bytes)),
                        received: Some(Bytes::new(*bytes)),
                        ..FlowSample::default()
                    };
                    (id, sample)
                }));
            }
        }
    }
    subflow_samples.sort_by_key(|(s, _)| (s.time, s.flow, s.subflow));
    for (s, link) in &subflow_samples {
        tables.subflow_samples.push(&SubflowSample { link, ..*s });
    }
    samples.sort_by_key(|(id, s)| (s.time, *id));
    samples
        .iter()
        .for_each(|(_, s)| tables.flow_samples.push(s));
    let of_links = links.iter().flat_map(|link| {
        let named = |s: &LinkSample<'static>| LinkSample {
            link: &link.name,
            ..*s
        };
        link.samples.iter().map(named)
    });
    let mut of_links: Vec<LinkSample<'_>> = of_links.collect();
    of_links.sort_by_key(|s| s.time);
    of_links.iter().for_each(|s| tables.link_samples.push(s));
    told.sort_by_key(|(time, id, ..)| (*time, *id));
    for (time, id, kind, detail) in &told {
        let row = EventRow {
            time: *time,
            flow: Some(*id),
            kind,
            detail,
        };
        tables.events.push(&row);
    }
    (tables, facts)
}

fn sample(s: &Sample, flow: u64) -> FlowSample<'static> {
    FlowSample {
        time: s.time,
        flow,
        bytes_in_flight: Some(Bytes::new(s.in_flight)),
        srtt: s.srtt,
        delivery_rate: s.delivery_rate,
        delivered: Some(Bytes::new(s.delivered)),
        received: Some(Bytes::new(s.received)),
        ..FlowSample::default()
    }
}

/// An event as a row: when, of which flow, what, and details.
type Told = (Instant, u64, &'static str, String);

fn told_of(id: u64, (time, event): &(Instant, Event)) -> Told {
    let (kind, detail) = described(*event);
    (*time, id, kind, detail)
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

/// The row of a connection, and what was concluded of it.
fn tcp(
    id: u64,
    connection: &Connection,
    names: &mut Names,
    same_clock: &SameClock<'_>,
    tables: &mut Tables,
) -> Flow {
    let sender = connection.sender();
    let ends = connection.ends;
    let called = names.of(ends[sender], ends[1 - sender]);
    let (row, facts) = connected(connection, sender, same_clock);
    tables.flows.push(&FlowRow {
        id,
        label: &called.label,
        from: &called.from,
        to: &called.to,
        transport: "tcp",
        ..row
    });
    Flow { id, ..facts }
}

/// What is known of the data of an end of a connection, without names and numbers.
fn connected(
    connection: &Connection,
    sender: usize,
    same_clock: &SameClock<'_>,
) -> (FlowRow<'static>, Flow) {
    let other = connection
        .views
        .iter()
        .filter_map(|v| v.halves[1 - sender].as_ref());
    let mut facts = Flow {
        reverse_bytes: other.map(Half::sent).max().unwrap_or(0),
        reset: connection.reset,
        ..Flow::default()
    };
    let mut row = FlowRow {
        start: connection.first,
        end: connection.last,
        counters: SenderCounters::UNKNOWN,
        ..FlowRow::default()
    };
    let client = connection
        .views
        .iter()
        .filter(|v| v.side_of(0) == Some(Side::Sender));
    row.handshake = client
        .filter_map(|v| {
            Some(
                v.handshake
                    .syn_ack?
                    .saturating_since(v.handshake.first_syn?),
            )
        })
        .max();
    let places = connection.places_of(sender);
    let halves = places
        .and_then(|(a, b)| Some((a, a.halves[sender].as_ref()?, b, b.halves[sender].as_ref()?)));
    let Some((first, sent, last, received)) = halves else {
        return (row, facts);
    };
    let (side, far) = (first.side_of(sender), last.side_of(sender));
    let at_receiver = far == Some(Side::Receiver);
    facts.captured_at = match (side, at_receiver) {
        (Some(Side::Sender), true) => Some("both"),
        (Some(Side::Sender), false) => Some("sender"),
        (Some(Side::Receiver), _) => Some("receiver"),
        (Some(Side::Between), _) => Some("between"),
        (None, _) => None,
    };
    let offset = match same_clock(first.place, last.place) {
        true => None,
        false => Connection::offset(sender, first, last),
    };
    facts.clock_offset_s = offset.map(|o| o.offset_s);
    facts.clock_drift_ppm = offset.and_then(|o| o.drift_ppm);
    let at_sender = |time: Instant| offset.map_or(time, |o| o.corrected(time));
    row.start = first.first.unwrap_or(row.start);
    let ends = [first.last, last.last.map(at_sender)];
    row.end = ends.into_iter().flatten().max().unwrap_or(row.end);
    // The last byte was delivered when it arrived, or, if that was not seen, when it was acknowledged.
    let delivered_at = if at_receiver {
        received.last_sent.map(at_sender)
    } else {
        sent.last_progress
    };
    let first_byte = if at_receiver {
        received.first_data.map(at_sender)
    } else {
        None
    };
    row.first_byte = first_byte.map(|t| t.saturating_since(row.start));
    if sent.is_complete() || received.is_complete() {
        row.end = delivered_at.unwrap_or(row.end);
        row.completion = delivered_at.map(|t| t.saturating_since(row.start));
    }
    let delivered = Bytes::new(sent.delivered().max(received.delivered()));
    let active = row.end.saturating_since(row.start);
    (row.delivered, row.measured) = (Some(delivered), Some(delivered));
    row.goodput = rate(delivered, active);
    // Retransmissions before the place of capture are not seen there.
    if side != Some(Side::Receiver) {
        row.counters = sent.counters;
        row.throughput = sent
            .counters
            .sent_bytes
            .get()
            .and_then(|n| rate(Bytes::new(n), active));
        if matches!(side, None | Some(Side::Sender)) {
            row.set_rtt(&sent.rtt.all);
        }
    }
    row.ce_marks = at_receiver.then_some(received.marks.marked);
    row.failure = connection.reset.then_some("reset");
    conclude(sent, side, &mut facts);
    (row, facts)
}

/// A Multipath TCP flow, but for its rows of flows and subflows.
struct Whole {
    facts: Flow,
    samples: Vec<FlowSample<'static>>,
    /// Each with the name of its path.
    subflow_samples: Vec<(SubflowSample<'static>, String)>,
    events: Vec<Told>,
}

/// The rows of a Multipath TCP connection and its subflows, and all else of it.
fn multipath_flow(
    id: u64,
    multipath: &Multipath,
    names: &mut Names,
    same_clock: &SameClock<'_>,
    tables: &mut Tables,
) -> Whole {
    let sent_by = |end: usize| multipath.delivered(end).unwrap_or(0);
    let sender = usize::from(sent_by(1) > sent_by(0));
    let mut whole = Whole {
        facts: Flow {
            id,
            ..Flow::default()
        },
        samples: Vec::new(),
        subflow_samples: Vec::new(),
        events: Vec::new(),
    };
    let mut row = FlowRow::default();
    let mut rtt = Quantiles::default();
    let mut called = None;
    for (number, (connection, opener)) in multipath.subflows.iter().enumerate() {
        let number = number as u64;
        let own = if *opener == 0 { sender } else { 1 - sender };
        let ends = connection.ends;
        let path = names.of(ends[own], ends[1 - own]);
        let (mut one, facts) = connected(connection, own, same_clock);
        let half = connection
            .places_of(own)
            .and_then(|(v, _)| v.halves[own].as_ref());
        if let Some(half) = half {
            rtt.merge(&half.rtt.all);
            whole.subflow_samples.extend(half.samples.iter().map(|s| {
                let sample = SubflowSample {
                    time: s.time,
                    flow: id,
                    subflow: number,
                    bytes_in_flight: Bytes::new(s.in_flight),
                    srtt: s.srtt,
                    delivery_rate: s.delivery_rate,
                    sent: Count::UNKNOWN,
                    delivered: Bytes::new(s.delivered),
                    ..SubflowSample::default()
                };
                (sample, path.label.clone())
            }));
            whole
                .events
                .extend(half.events.iter().map(|e| told_of(id, e)));
        }
        tables.subflows.push(&SubflowRow {
            flow: id,
            subflow: number,
            link: &path.label,
            peer_link: &path.label,
            backup: Some(connection.membership.backup() == Some(true)),
            opened: connection.established().unwrap_or(one.start),
            closed: (connection.reset || one.completion.is_some()).then_some(one.end),
            delivered: one.delivered.unwrap_or_default(),
            measured: one.measured.unwrap_or_default(),
            goodput: one.goodput,
            counters: one.counters,
            rtt_min: one.rtt_min,
            rtt_mean: one.rtt_mean,
            rtt_p95: one.rtt_p95,
            ..SubflowRow::default()
        });
        if number == 0 {
            whole.facts = Flow { id, ..facts };
            called = Some(path);
            one.completion = None;
            row = one;
        } else {
            row.end = row.end.max(one.end);
            row.delivered = row.delivered.zip(one.delivered).map(|(a, b)| a + b);
            row.counters += one.counters;
            row.ce_marks = row.ce_marks.zip(one.ce_marks).map(|(a, b)| a + b);
            whole.facts.reverse_bytes += facts.reverse_bytes;
            whole.facts.add(&facts);
        }
    }
    if let Some(delivered) = multipath.delivered(sender) {
        let delivered = Bytes::new(delivered);
        row.duplicate = row.delivered.map(|all| all.saturating_sub(delivered));
        row.delivered = Some(delivered);
    }
    row.measured = row.delivered;
    let active = row.end.saturating_since(row.start);
    row.goodput = row.delivered.and_then(|n| rate(n, active));
    let sent = row.counters.sent_bytes.get();
    row.throughput = sent.and_then(|n| rate(Bytes::new(n), active));
    row.subflows = Some(multipath.subflows.len() as u64);
    if row.rtt_min.is_some() {
        row.set_rtt(&rtt);
    }
    if let Some(called) = &called {
        tables.flows.push(&FlowRow {
            id,
            label: &called.label,
            from: &called.from,
            to: &called.to,
            transport: "mptcp",
            ..row
        });
    }
    whole.samples = summed(&whole.subflow_samples);
    whole
}

/// The samples of a flow: sums over its subflows, and the smallest of their round-trip times. Between two samples of a
/// subflow it is as before.
fn summed(subflows: &[(SubflowSample<'static>, String)]) -> Vec<FlowSample<'static>> {
    let mut latest: BTreeMap<u64, SubflowSample<'static>> = BTreeMap::new();
    let mut at: BTreeMap<Instant, Vec<&SubflowSample<'static>>> = BTreeMap::new();
    for (sample, _) in subflows {
        at.entry(sample.time).or_default().push(sample);
    }
    let mut found = Vec::with_capacity(at.len());
    for (time, samples) in at {
        latest.extend(samples.into_iter().map(|s| (s.subflow, *s)));
        let all = || latest.values();
        let delivered = all().map(|s| s.delivered.get()).sum();
        found.push(FlowSample {
            time,
            flow: latest.values().next().map_or(0, |s| s.flow),
            bytes_in_flight: Some(Bytes::new(all().map(|s| s.bytes_in_flight.get()).sum())),
            srtt: all().filter_map(|s| s.srtt).min(),
            delivered: Some(Bytes::new(delivered)),
            received: Some(Bytes::new(delivered)),
            ..FlowSample::default()
        });
    }
    found
}

/// What was concluded of the data of a sender.
fn conclude(half: &Half, side: Option<Side>, facts: &mut Flow) {
    facts.full_segment_bytes = Some(u64::from(half.full_segment()));
    facts.late_packets = Some(half.late_packets);
    facts.ecn_capable_packets = Some(half.marks.capable + half.marks.marked);
    facts.ecn_echoes = Some(half.marks.echoes);
    facts.packets_per_ack = match (half.counters.sent_packets.get(), half.pure_acks) {
        (Some(packets), acks) if acks > 0 => Some(packets as f64 / acks as f64),
        _ => None,
    };
    if side == Some(Side::Receiver) {
        return;
    }
    facts.base_rtt_s = half.rtt.all.min().map(Duration::as_secs_f64);
    let above = |q: fn(&gargalo_trace::QuantileSummary) -> Duration| {
        let summary = Quantiles::summary(&half.rtt.all)?;
        Some(q(&summary).saturating_sub(summary.min).as_secs_f64())
    };
    facts.queueing_delay_p50_s = above(|s| s.p50);
    facts.queueing_delay_p95_s = above(|s| s.p95);
    let mut rates: Vec<f64> = half
        .samples
        .iter()
        .filter_map(|s| Some(s.delivery_rate?.as_bps() as f64))
        .collect();
    facts.delivery_rate_p95_bps = stats::percentile(&mut rates, 0.95);
    let again = half.retransmissions;
    facts.fast_retransmissions = Some(again.fast);
    facts.timeout_retransmissions = Some(again.timeout);
    facts.probe_retransmissions = Some(again.probe);
    facts.spurious_retransmissions = Some(again.spurious);
    let episodes = half.events.iter().filter(|(_, e)| *e == Event::Recovery);
    facts.loss_episodes = Some(episodes.count() as u64);
    facts.burst_p50_packets = of_bursts(&half.bursts, 0.5);
    facts.burst_p95_packets = of_bursts(&half.bursts, 0.95);
    facts.burst_max_packets = half.bursts.last_key_value().map(|(n, _)| u64::from(*n));
    facts.limited_by = Some(half.limits.spent());
    facts.stalls = Some(half.stalls);
}

/// The size of a burst below which this share of all packets was sent.
fn of_bursts(bursts: &BTreeMap<u32, u64>, share: f64) -> Option<u64> {
    let packets = |(size, count): (&u32, &u64)| u64::from(*size) * count;
    let all: u64 = bursts.iter().map(packets).sum();
    let mut before = 0;
    let mut sizes = bursts.iter();
    let found = sizes.find(|(size, count)| {
        before += packets((size, count));
        before as f64 >= share * all as f64
    });
    found.map(|(size, _)| u64::from(*size))
}

/// The row of a conversation over UDP.
fn udp(id: u64, conversation: &Conversation, names: &mut Names, tables: &mut Tables) -> Flow {
    let sender = conversation.sender();
    let ends = conversation.ends;
    let called = names.of(ends[sender], ends[1 - sender]);
    let mut row = FlowRow {
        id,
        label: &called.label,
        from: &called.from,
        to: &called.to,
        transport: "udp",
        start: conversation.first,
        end: conversation.last,
        counters: SenderCounters::UNKNOWN,
        ..FlowRow::default()
    };
    if let Some((first, last)) = conversation.seen_of(sender) {
        let active = row.end.saturating_since(row.start);
        let delivered = Bytes::new(last.bytes);
        (row.delivered, row.measured) = (Some(delivered), Some(delivered));
        row.goodput = rate(delivered, active);
        row.throughput = rate(Bytes::new(first.bytes), active);
        if last.rtp.is_one() {
            row.workload = "rtp";
            row.loss = Some(last.rtp.loss());
            row.jitter = last.rtp.jitter();
        }
        row.counters.sent_packets = Count::new(first.datagrams);
        row.counters.sent_bytes = Count::new(first.bytes);
        if !std::ptr::eq(first, last) {
            row.ce_marks = Some(last.marked);
        }
    }
    tables.flows.push(&row);
    let other = conversation.views.iter().map(|v| v.1[1 - sender].bytes);
    Flow {
        id,
        reverse_bytes: other.max().unwrap_or(0),
        ..Flow::default()
    }
}

fn rate(bytes: Bytes, time: Duration) -> Option<Rate> {
    (!time.is_zero()).then(|| Rate::from_transfer(bytes, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_bursts_is_one_of_packets() {
        // 90 single packets, and one burst of 10 in which a tenth of all was sent.
        let bursts = BTreeMap::from([(1, 90), (10, 1)]);
        assert_eq!(of_bursts(&bursts, 0.5), Some(1));
        assert_eq!(of_bursts(&bursts, 0.95), Some(10));
        assert_eq!(of_bursts(&BTreeMap::new(), 0.5), None);
    }

    #[test]
    fn no_time_has_no_rate() {
        assert_eq!(rate(Bytes::new(9), Duration::ZERO), None);
        assert_eq!(
            rate(Bytes::new(125), Duration::from_millis(1)),
            Some(Rate::from_mbps(1))
        );
    }
}

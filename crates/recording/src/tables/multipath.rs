//! The rows of a Multipath TCP connection and its subflows.

use std::collections::BTreeMap;

use gargalo_trace::Quantiles;
use gargalo_trace::schema::{FlowRow, FlowSample, SubflowRow, SubflowSample};
use gargalo_units::{Bytes, Count, Instant};

use super::connection::{connected, measured};
use super::rows::{Rows, SameClock, rate};
use crate::facts::Flow;
use crate::multipath::Multipath;
use crate::names::{Called, Names};
use crate::tcp::{Connection, Half};

/// Adds a connection: the flow is the sum of its subflows, but for its data, which counts once.
pub fn add(
    id: u64,
    multipath: &Multipath,
    names: &mut Names,
    same_clock: &SameClock<'_>,
    rows: &mut Rows,
) {
    let sent_by = |end: usize| multipath.delivered(end).unwrap_or(0);
    let sender = usize::from(sent_by(1) > sent_by(0));
    let mut sum: Option<(FlowRow<'static>, Flow, Called)> = None;
    let mut rtt = Quantiles::default();
    let mut samples = Vec::new();
    for (number, (connection, opener)) in multipath.subflows.iter().enumerate() {
        let own = if *opener == 0 { sender } else { 1 - sender };
        let ends = connection.ends;
        let path = names.of(ends[own], ends[1 - own]);
        let (one, facts) = connected(connection, own, same_clock);
        let number = number as u64;
        add_subflow((id, number), connection, &one, &path, rows);
        if let Some(half) = measured(connection, own) {
            rtt.merge(&half.rtt.all);
            rows.add_events(id, &half.events);
            rows.add_packets(id, Some(number), half.packets.as_deref());
            let own: Vec<_> = samples_of((id, number), half).collect();
            let named = own.iter().map(|s| (*s, path.label.clone()));
            rows.subflow_samples.extend(named);
            samples.extend(own);
        }
        match &mut sum {
            None => {
                sum = Some((
                    FlowRow {
                        completion: None,
                        ..one
                    },
                    facts,
                    path,
                ))
            }
            Some((row, all, _)) => {
                row.end = row.end.max(one.end);
                row.delivered = row.delivered.zip(one.delivered).map(|(a, b)| a + b);
                row.counters += one.counters;
                row.ce_marks = row.ce_marks.zip(one.ce_marks).map(|(a, b)| a + b);
                all.reverse_bytes += facts.reverse_bytes;
                all.add(&facts);
            }
        }
    }
    // It has a first subflow.
    let Some((mut row, facts, called)) = sum else {
        return;
    };
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
    rows.tables.flows.push(&FlowRow {
        id,
        label: &called.label,
        from: &called.from,
        to: &called.to,
        transport: "mptcp",
        ..row
    });
    rows.facts.push(Flow { id, ..facts });
    let delivered = |at: Instant| multipath.delivered_until(sender, at).map(Bytes::new);
    rows.samples.extend(summed(&samples, delivered));
}

/// Adds the row of a subflow.
fn add_subflow(
    (flow, subflow): (u64, u64),
    connection: &Connection,
    one: &FlowRow<'static>,
    path: &Called,
    rows: &mut Rows,
) {
    rows.tables.subflows.push(&SubflowRow {
        flow,
        subflow,
        link: &path.label,
        peer_link: &path.label,
        backup: connection.membership.as_ref().map(|m| m.is_backup()),
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
}

fn samples_of(
    (flow, subflow): (u64, u64),
    half: &Half,
) -> impl Iterator<Item = SubflowSample<'static>> {
    half.samples.iter().map(move |s| SubflowSample {
        time: s.time,
        flow,
        subflow,
        bytes_in_flight: Bytes::new(s.in_flight),
        srtt: s.srtt,
        delivery_rate: s.delivery_rate,
        sent: Count::UNKNOWN,
        delivered: Bytes::new(s.delivered),
        ..SubflowSample::default()
    })
}

/// The samples of a flow: sums over its subflows, and the smallest of their round-trip times. Between two samples of a
/// subflow it is as before.
fn summed(
    subflows: &[SubflowSample<'static>],
    delivered: impl Fn(Instant) -> Option<Bytes>,
) -> Vec<FlowSample<'static>> {
    let mut latest: BTreeMap<u64, SubflowSample<'static>> = BTreeMap::new();
    let mut at: BTreeMap<Instant, Vec<&SubflowSample<'static>>> = BTreeMap::new();
    for sample in subflows {
        at.entry(sample.time).or_default().push(sample);
    }
    let mut found = Vec::with_capacity(at.len());
    for (time, samples) in at {
        latest.extend(samples.into_iter().map(|s| (s.subflow, *s)));
        let all = || latest.values();
        let data = delivered(time);
        found.push(FlowSample {
            time,
            flow: all().next().map_or(0, |s| s.flow),
            bytes_in_flight: Some(Bytes::new(all().map(|s| s.bytes_in_flight.get()).sum())),
            srtt: all().filter_map(|s| s.srtt).min(),
            delivered: data,
            received: data,
            ..FlowSample::default()
        });
    }
    found
}

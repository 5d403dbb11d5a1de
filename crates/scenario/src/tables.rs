//! Builds the tables of results from the outcome of a run.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use gargalo_flow::{FlowResult, LinkResult, Outcome, Phase, Progress, Samples, Watch};
use gargalo_trace::Tables;
use gargalo_trace::schema::{
    DatagramRow, EventRow, FlowRow, FlowSample, GaugeRow, LinkRow, LinkSample,
};
use gargalo_units::Bytes;
use gargalo_workload::AppResult;

use crate::media_frames;
use crate::multipath;
use crate::objects::{self, Completion};
use crate::options::RunError;
use crate::pings::{self, RoundTrips};
use crate::resolved::{Flow, Scenario};

/// Builds the tables of an outcome.
pub(crate) fn tables(
    scenario: &Scenario,
    mut out: Outcome,
    watch: &mut Watch<'_>,
) -> Result<Tables, RunError> {
    let mut tables = Tables::default();
    let mut rows = Rows::new(&out, watch);
    // Records that have been converted are freed.
    let samples = std::mem::take(&mut out.samples);
    let spec: BTreeMap<u64, &Flow> = scenario.flows.iter().map(|f| (f.id, f)).collect();
    for f in &out.flows {
        rows.next()?;
        let mut row = flow_row(scenario, spec.get(&f.template).copied(), &out, f);
        objects::push(f, &mut tables.objects);
        pings::push(f, &mut tables.pings);
        media_frames::push(f, &mut tables.media_frames);
        multipath::push(scenario, &out, f, &mut row, &mut tables.subflows);
        tables.flows.push(&row);
    }
    for l in &out.links {
        rows.next()?;
        tables.links.push(&link_row(l));
    }
    samples_of(scenario, &out, samples, &mut rows, &mut tables)?;
    Ok(tables)
}

/// The row of a flow; `template`: the flow of the scenario from which it was created.
fn flow_row<'a>(
    scenario: &'a Scenario,
    template: Option<&'a Flow>,
    out: &'a Outcome,
    f: &'a FlowResult,
) -> FlowRow<'a> {
    let node = |i: usize| scenario.nodes[i].name.as_str();
    // With several pairs of hosts a source draws one: the engine's result has the direction of the data.
    let (from, to) = match template {
        Some(t) if t.workload.is_asked_for() => (f.hosts.1, f.hosts.0),
        _ => f.hosts,
    };
    let mut row = FlowRow {
        id: f.id,
        label: &f.label,
        from: node(from as usize),
        to: node(to as usize),
        transport: f.transport,
        congestion: &f.congestion,
        workload: template.map_or("", |t| t.workload.kind()),
        start: f.start,
        end: f.end,
        handshake: f.handshake,
        first_byte: f.first_byte.map(|t| t.saturating_since(f.start)),
        completion: f.completion,
        delivered: Some(f.delivered),
        measured: Some(Bytes::new(f.inside.delivered)),
        goodput: out.goodput(f),
        throughput: out.throughput(f),
        counters: f.counters,
        ce_marks: Some(f.ce_marks),
        verified: scenario.record.verify.then_some(!f.corrupted),
        failure: f.failure.as_deref(),
        ..FlowRow::default()
    };
    match f.one_way {
        true => row.set_delay(&f.rtt),
        false => row.set_rtt(&f.rtt),
    }
    if let Some(result) = &f.application {
        add_application(result, (out, f), &mut row);
    }
    row
}

/// The row of a link direction.
fn link_row(l: &LinkResult) -> LinkRow<'_> {
    let delay = &l.queue_delay;
    LinkRow {
        name: &l.name,
        direction: l.direction,
        capacity: l.capacity.map(|c| c.as_bps()),
        utilization: l.utilization,
        offered_packets: l.offered_packets,
        duplicated_packets: l.duplicated_packets,
        sent_packets: l.sent_packets,
        sent: Bytes::new(l.sent_bytes),
        dropped_packets: l.dropped_queue_full + l.dropped_aqm + l.lost + l.too_big,
        dropped_queue_full_packets: l.dropped_queue_full,
        dropped_aqm_packets: l.dropped_aqm,
        lost_packets: l.lost,
        too_big_packets: l.too_big,
        marked_packets: l.marked_packets,
        queue_delay_mean: delay.mean(),
        queue_delay_p50: delay.percentile(50.0),
        queue_delay_p95: delay.percentile(95.0),
        queue_delay_p99: delay.percentile(99.0),
        queue_delay_max: delay.max(),
    }
}

/// Adds the application's results of a flow.
fn add_application(result: &AppResult, (out, f): (&Outcome, &FlowResult), row: &mut FlowRow<'_>) {
    match result {
        AppResult::Media(m) => {
            row.jitter = Some(m.jitter);
            row.bitrate = Some(m.mean_rate);
            row.loss = Some(m.loss);
            row.reports = Some(m.reports);
        }
        AppResult::Voice(v) => {
            row.late_packets = Some(v.late_packets);
            row.jitter = Some(v.jitter);
            row.mouth_to_ear = Some(v.mouth_to_ear);
            row.loss = Some(v.loss);
            row.rating = v.rating;
            row.mos = v.mos;
        }
        AppResult::Video(v) => {
            row.startup = v.startup;
            row.segments = Some(v.segments);
            row.played = Some(v.played);
            row.rebuffering = Some(v.rebuffering);
            row.rebufferings = Some(v.rebufferings);
            row.bitrate = Some(v.mean_bitrate);
            row.bitrate_switches = Some(v.switches);
        }
        AppResult::Ping(_) => RoundTrips::of(out, [f]).fill(row),
        AppResult::Request(r) => {
            let took = Completion::of(r.objects.iter());
            row.completed_objects = Some(took.count);
            row.object_completion_p50 = took.p50;
            row.object_completion_p95 = took.p95;
            row.object_completion_max = took.max;
        }
    }
}

/// Builds the rows of all samples.
fn samples_of(
    scenario: &Scenario,
    out: &Outcome,
    samples: Samples,
    rows: &mut Rows<'_, '_>,
    tables: &mut Tables,
) -> Result<(), RunError> {
    for s in samples.flows {
        rows.next()?;
        tables.flow_samples.push(&FlowSample {
            time: s.time,
            flow: s.flow,
            congestion_window: Some(s.cwnd),
            slow_start_threshold: s.ssthresh,
            bytes_in_flight: s.in_flight,
            srtt: s.srtt,
            pacing_rate: s.pacing_rate,
            delivery_rate: s.delivery_rate,
            delivered: Some(s.delivered),
            received: s.received,
            phase: s.phase,
            out_of_order: s.out_of_order,
        });
    }
    for s in samples.subflows {
        rows.next()?;
        multipath::sample(scenario, &s, &mut tables.subflow_samples);
    }
    for s in samples.links {
        rows.next()?;
        let link = &out.links[s.direction as usize];
        tables.link_samples.push(&LinkSample {
            time: s.time,
            link: &link.name,
            direction: link.direction,
            queue_packets: s.queue_packets,
            queue: Bytes::new(s.queue_bytes),
            queue_delay: s.queue_delay,
            sent: Bytes::new(s.sent_bytes),
            dropped_packets: s.dropped_packets,
            marked_packets: s.marked_packets,
            utilization: s.utilization,
        });
    }
    for e in samples.events {
        rows.next()?;
        tables.events.push(&EventRow {
            time: e.time,
            flow: Some(e.flow),
            kind: e.kind,
            detail: &e.detail,
        });
    }
    for g in samples.gauges {
        rows.next()?;
        tables.gauges.push(&GaugeRow {
            time: g.time,
            flow: g.flow,
            cause: &g.cause,
            phase: g.phase,
            name: g.name,
            value: g.value,
        });
    }
    for d in samples.datagrams {
        rows.next()?;
        tables.datagrams.push(&DatagramRow {
            flow: d.flow,
            datagram: d.number,
            size: d.size,
            sent: d.sent,
            arrived: d.arrived,
            delay: d.arrived.saturating_since(d.sent),
        });
    }
    Ok(())
}

/// Counts rows of results tables, and lets the caller stop now and then.
struct Rows<'a, 'w> {
    done: u64,
    total: u64,
    at: Progress<'static>,
    watch: &'a mut Watch<'w>,
}

impl<'a, 'w> Rows<'a, 'w> {
    /// Rows between two calls of the caller's progress function.
    const EVERY: u64 = 1 << 12;

    fn new(out: &Outcome, watch: &'a mut Watch<'w>) -> Self {
        let s = &out.samples;
        let samples = s.flows.len() + s.subflows.len() + s.links.len();
        let records = s.events.len() + s.gauges.len() + s.datagrams.len();
        let total = out.flows.len() + out.links.len() + samples + records;
        Self {
            done: 0,
            total: total as u64,
            at: Progress {
                now: out.end,
                packets: out.packets,
                events: out.events,
                ..Progress::begin(Phase::Writing, out.end)
            },
            watch,
        }
    }

    fn next(&mut self) -> Result<(), RunError> {
        self.done += 1;
        if !self.done.is_multiple_of(Self::EVERY) {
            return Ok(());
        }
        // Half of the work: writing the files is the other half.
        self.at.fraction = 0.5 * self.done as f64 / self.total as f64;
        match (self.watch)(&self.at) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Stopped),
        }
    }
}

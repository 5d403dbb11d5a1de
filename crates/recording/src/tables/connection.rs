//! The rows of a TCP connection, and what was concluded of it.

use gargalo_trace::schema::{FlowRow, FlowSample};
use gargalo_trace::{QuantileSummary, stats};
use gargalo_units::{Bytes, Duration, Instant, SenderCounters};

use super::rows::{Rows, SameClock, rate};
use crate::facts::Flow;
use crate::names::Names;
use crate::tcp::{Bursts, Connection, Event, Half, RoundTrips, Sample, Side, Spent};

/// Adds a connection.
pub fn add(
    id: u64,
    connection: &Connection,
    names: &mut Names,
    same_clock: &SameClock<'_>,
    rows: &mut Rows,
) {
    let sender = connection.sender();
    let ends = connection.ends;
    let called = names.of(ends[sender], ends[1 - sender]);
    let (row, facts) = connected(connection, sender, same_clock);
    rows.tables.flows.push(&FlowRow {
        id,
        label: &called.label,
        from: &called.from,
        to: &called.to,
        transport: "tcp",
        ..row
    });
    rows.facts.push(Flow { id, ..facts });
    let Some(half) = measured(connection, sender) else {
        return;
    };
    rows.add_events(id, &half.events);
    rows.add_packets(id, None, half.packets.as_deref());
    rows.samples.extend(half.samples.iter().map(|s| s.row(id)));
}

impl Sample {
    /// As a row.
    pub fn row(&self, flow: u64) -> FlowSample<'static> {
        FlowSample {
            time: self.time,
            flow,
            bytes_in_flight: Some(Bytes::new(self.in_flight)),
            srtt: self.srtt,
            delivery_rate: self.delivery_rate,
            delivered: Some(Bytes::new(self.delivered)),
            received: Some(Bytes::new(self.received)),
            ..FlowSample::default()
        }
    }
}

/// Where packets were captured, by the sides of the places where they were seen first and last.
pub fn captured_at(first: Option<Side>, last: Option<Side>) -> Option<&'static str> {
    Some(match (first?, last) {
        (Side::Sender, Some(Side::Receiver)) => "both",
        (Side::Sender, _) => "sender",
        (Side::Receiver, _) => "receiver",
        (Side::Between, _) => "between",
    })
}

/// The data of an end where it was seen first.
pub fn measured(connection: &Connection, sender: usize) -> Option<&Half> {
    let (first, _) = connection.places_of(sender)?;
    first.halves[sender].as_ref()
}

/// What is known of the data of an end of a connection, without names and numbers.
pub fn connected(
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
    facts.captured_at = captured_at(side, far);
    let offset = match same_clock(first.place, last.place) {
        true => None,
        false => Connection::offset(sender, first, last),
    };
    facts.clock_offset_s = offset.map(|o| o.offset_s);
    facts.clock_drift_ppm = offset.and_then(|o| o.drift_ppm);
    let at_sender = |time: Instant| offset.map_or(time, |o| o.corrected(time));
    // Who receives may have begun.
    let begins = [first.first, last.first.map(at_sender)];
    row.start = begins.into_iter().flatten().min().unwrap_or(row.start);
    let ends = [first.last, last.last.map(at_sender)];
    row.end = ends.into_iter().flatten().max().unwrap_or(row.end);
    // The last byte was delivered when it arrived, or, if that was not seen, when it was acknowledged.
    let delivered_at = if at_receiver {
        received.last_new.map(at_sender)
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
    tell_path(&half.rtt, &half.samples, facts);
    tell_sending(&half.bursts, half.limits.spent(), half.stalls, facts);
    let again = half.retransmissions;
    facts.fast_retransmissions = Some(again.fast);
    facts.timeout_retransmissions = Some(again.timeout);
    facts.probe_retransmissions = Some(again.probe);
    facts.spurious_retransmissions = Some(again.spurious);
    let episodes = half.events.iter().filter(|(_, e)| *e == Event::Recovery);
    facts.loss_episodes = Some(episodes.count() as u64);
}

/// What round trips and delivery rates say of the path.
pub fn tell_path(rtt: &RoundTrips, samples: &[Sample], facts: &mut Flow) {
    facts.base_rtt_s = rtt.all.min().map(Duration::as_secs_f64);
    let above = |q: fn(&QuantileSummary) -> Duration| {
        let summary = rtt.all.summary()?;
        Some(q(&summary).saturating_sub(summary.min).as_secs_f64())
    };
    facts.queueing_delay_p50_s = above(|s| s.p50);
    facts.queueing_delay_p95_s = above(|s| s.p95);
    let rates = samples
        .iter()
        .filter_map(|s| Some(s.delivery_rate?.as_bps() as f64));
    let mut rates: Vec<f64> = rates.collect();
    facts.delivery_rate_p95_bps = stats::percentile(&mut rates, 0.95);
}

/// How a sender sent, and what kept it from more.
pub fn tell_sending(bursts: &Bursts, limits: Spent, stalls: u64, facts: &mut Flow) {
    facts.burst_p50_packets = bursts.quantile(0.5);
    facts.burst_p95_packets = bursts.quantile(0.95);
    facts.burst_max_packets = bursts.longest();
    facts.limited_by = Some(limits);
    facts.stalls = Some(stalls);
}

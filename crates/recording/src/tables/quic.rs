//! The rows of a QUIC connection, and what was concluded of it.

use gargalo_trace::schema::{FlowRow, FlowSample};
use gargalo_units::{Bytes, Duration, Instant, SenderCounters};

use super::connection::{captured_at, tell_path, tell_sending};
use super::rows::{Rows, SameClock, rate};
use crate::facts::{Encrypted, Flow};
use crate::names::Names;
use crate::quic::{Connection, Half, View};
use crate::tcp::{RoundTrips, Side, first_and_last};

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
    let mut found = Found {
        row: FlowRow {
            start: connection.first,
            end: connection.last,
            counters: SenderCounters::UNKNOWN,
            failure: connection.failed.then_some("closed with an error"),
            ..FlowRow::default()
        },
        facts: Flow {
            id,
            reset: connection.failed,
            encrypted_packets: Some(encrypted(connection)),
            key_updates: connection.views.iter().find_map(View::key_updates),
            ..Flow::default()
        },
    };
    if let Some((first, last)) = first_and_last(&connection.views, sender) {
        found.tell_place(first, last, sender);
        let halves = [first, last].map(|v| v.halves[sender].as_ref().filter(|_| v.is_open()));
        match halves {
            [Some(sent), Some(received)] => {
                let offset = match same_clock(first.place, last.place) {
                    true => None,
                    false => Connection::offset(sender, first, last),
                };
                found.facts.clock_offset_s = offset.map(|o| o.offset_s);
                found.facts.clock_drift_ppm = offset.and_then(|o| o.drift_ppm);
                let at_sender = |time: Instant| offset.map_or(time, |o| o.corrected(time));
                found.tell_data(
                    connection,
                    [first, last],
                    [sent, received],
                    sender,
                    &at_sender,
                );
                rows.add_events(id, &sent.events);
                rows.add_packets(id, None, sent.packets.as_deref());
                rows.samples.extend(sent.samples.iter().map(|s| s.row(id)));
            }
            _ => {
                found.tell_outside(first, sender);
                let samples = first.spin(sender).map_or(&[][..], |s| &s.samples);
                rows.samples
                    .extend(samples.iter().map(|(time, srtt)| FlowSample {
                        time: *time,
                        flow: id,
                        srtt: Some(*srtt),
                        ..FlowSample::default()
                    }));
            }
        }
    }
    rows.tables.flows.push(&FlowRow {
        id,
        label: &called.label,
        from: &called.from,
        to: &called.to,
        transport: "quic",
        ..found.row
    });
    rows.facts.push(found.facts);
}

/// Packets that were not decrypted, at the place where most are.
fn encrypted(connection: &Connection) -> Encrypted {
    let of = |view: &View| {
        let [a, b] = view.encrypted;
        Encrypted {
            without_key: a.without_key + b.without_key,
            cut: a.cut + b.cut,
            damaged: a.damaged + b.damaged,
        }
    };
    connection
        .views
        .iter()
        .map(of)
        .max_by_key(Encrypted::all)
        .unwrap_or_default()
}

struct Found {
    row: FlowRow<'static>,
    facts: Flow,
}

impl Found {
    /// What any capture shows: where it was taken, datagrams, and marks.
    fn tell_place(&mut self, first: &View, last: &View, sender: usize) {
        let (side, far) = (
            first.handshake.side_of(sender),
            last.handshake.side_of(sender),
        );
        self.facts.captured_at = captured_at(side, far);
        let sent = &first.seen[sender];
        self.facts.datagrams = Some(sent.datagrams);
        self.facts.datagram_bytes = Some(sent.bytes);
        self.row.end = first.last.max(last.last);
        self.row.ce_marks = (far == Some(Side::Receiver)).then_some(last.seen[sender].marked);
    }

    /// What is seen of a connection that is encrypted: what it delivered is not.
    fn tell_outside(&mut self, first: &View, sender: usize) {
        let (row, sent) = (&mut self.row, &first.seen[sender]);
        row.throughput = rate(Bytes::new(sent.bytes), row.end.saturating_since(row.start));
        let mut trips = RoundTrips::default();
        if let Some(spin) = first.spin(sender) {
            self.facts.spin_round_trips = Some(spin.trips.all.count());
            trips.all.merge(&spin.trips.all);
        }
        if let Some(trip) = first.handshake_trip() {
            trips.record(trip);
        }
        row.set_rtt(&trips.all);
        tell_path(&trips, &[], &mut self.facts);
    }

    /// What the packets say.
    fn tell_data(
        &mut self,
        connection: &Connection,
        [first, last]: [&View; 2],
        [sent, received]: [&Half; 2],
        sender: usize,
        at_sender: &dyn Fn(Instant) -> Instant,
    ) {
        let (row, facts) = (&mut self.row, &mut self.facts);
        let (side, far) = (
            first.handshake.side_of(sender),
            last.handshake.side_of(sender),
        );
        let at_receiver = far == Some(Side::Receiver);
        // Who receives may have begun.
        row.start = first.first.min(at_sender(last.first));
        row.end = first.last.max(at_sender(last.last));
        let client = connection
            .views
            .iter()
            .filter(|v| v.handshake.side_of(0) == Some(Side::Sender));
        row.handshake = client.filter_map(handshake).max();
        let since = |time: Instant, row: &FlowRow<'_>| time.saturating_since(row.start);
        if at_receiver {
            row.first_byte = received.first_data.map(|t| since(at_sender(t), row));
        }
        // The last byte was delivered when it arrived, or, if that was not seen, when it was acknowledged.
        let (delivered, is_complete, at) = match at_receiver {
            true => {
                let is_complete = received.sent.are_all_of(&sent.sent);
                (
                    received.sent.bytes(),
                    is_complete,
                    received.last_data.map(at_sender),
                )
            }
            false => (sent.acked.bytes(), sent.is_complete(), sent.last_progress),
        };
        if is_complete && let Some(at) = at {
            row.end = at;
            row.completion = Some(since(at, row));
        }
        let delivered = Bytes::new(delivered);
        let active = row.end.saturating_since(row.start);
        (row.delivered, row.measured) = (Some(delivered), Some(delivered));
        row.goodput = rate(delivered, active);
        let reverse = connection
            .views
            .iter()
            .filter_map(|v| v.halves[1 - sender].as_ref());
        facts.reverse_bytes = reverse.map(|h| h.sent.bytes()).max().unwrap_or(0);
        facts.full_packet_bytes = Some(sent.full_packet());
        facts.late_packets = Some(sent.late_packets);
        let seen = &first.seen[sender];
        facts.ecn_capable_packets = Some(seen.capable + seen.marked);
        facts.ecn_echoes = Some(sent.echoes);
        let packets = sent.counters.sent_packets.get().unwrap_or(0);
        facts.packets_per_ack =
            (sent.pure_acks > 0).then(|| packets as f64 / sent.pure_acks as f64);
        // Packets that were lost before the place of capture are not seen there.
        if side == Some(Side::Receiver) {
            return;
        }
        row.counters = sent.counters;
        row.throughput = sent
            .counters
            .sent_bytes
            .get()
            .and_then(|n| rate(Bytes::new(n), active));
        if matches!(side, None | Some(Side::Sender)) {
            row.set_rtt(&sent.rtt.all);
        }
        tell_path(&sent.rtt, &sent.samples, facts);
        tell_sending(&sent.bursts, sent.limits.spent(), sent.stalls, facts);
        facts.loss_episodes = Some(sent.episodes);
        facts.probe_packets = Some(sent.probes);
        facts.spurious_losses = Some(sent.spurious);
    }
}

/// From the client's first packet until it can write: until the end of its handshake, or its early data before.
fn handshake(view: &View) -> Option<Duration> {
    let finished = view.finished?;
    let early = view.halves[0].as_ref().and_then(|h| h.first_data);
    let ready = early.map_or(finished, |t| t.min(finished));
    Some(ready.saturating_since(view.handshake.first_syn?))
}

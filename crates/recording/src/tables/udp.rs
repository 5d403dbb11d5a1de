//! The rows of a conversation over UDP.

use gargalo_trace::schema::{FlowRow, FlowSample};
use gargalo_units::{Bytes, Count, SenderCounters};

use super::rows::{Rows, rate};
use crate::facts::Flow;
use crate::names::Names;
use crate::udp::Conversation;

/// Adds a conversation.
pub fn add(id: u64, conversation: &Conversation, names: &mut Names, rows: &mut Rows) {
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
    rows.tables.flows.push(&row);
    let other = conversation.views.iter().map(|v| v.1[1 - sender].bytes);
    rows.facts.push(Flow {
        id,
        reverse_bytes: other.max().unwrap_or(0),
        ..Flow::default()
    });
    let seen = conversation.seen_of(sender);
    let samples = seen.map_or(&[][..], |(_, last)| &last.samples);
    rows.samples
        .extend(samples.iter().map(|(time, bytes)| FlowSample {
            time: *time,
            flow: id,
            delivered: Some(Bytes::new(*bytes)),
            received: Some(Bytes::new(*bytes)),
            ..FlowSample::default()
        }));
}

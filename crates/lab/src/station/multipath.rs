//! What a station tells of Multipath TCP connections.

use gargalo_mptcp::{Connection, Event};
use gargalo_sim::{FlowSample, ProtocolEvent};
use gargalo_units::{Bytes, Instant, Rate};

use crate::multipath::{MultipathReport, SubflowReport};

/// What became of a connection; one that is none was TCP from its SYN on.
pub(super) fn report(
    now: Instant,
    flow: u64,
    side: usize,
    connection: Option<&Connection>,
) -> MultipathReport {
    let subflows = connection.into_iter().flat_map(|c| c.subflows(now));
    let subflow = |s: gargalo_mptcp::SubflowSnapshot| SubflowReport {
        local: s.addresses.local,
        remote: s.addresses.remote,
        sent_bytes: s.stats.sent_bytes,
        received_bytes: s.received_bytes,
        retransmitted_packets: s.stats.retransmitted_packets,
        srtt: s.sender.srtt,
    };
    MultipathReport {
        flow,
        side,
        fell_back: connection.is_none_or(Connection::has_fallen_back),
        subflows: subflows.map(subflow).collect(),
        stats: connection.map(Connection::stats),
    }
}

/// A row of the table of events.
pub(super) fn event(time: Instant, flow: u64, news: &Event) -> ProtocolEvent {
    let (kind, detail) = match news {
        Event::SubflowOpened { id, addresses } => (
            "subflow-opened",
            format!("subflow={id} addresses={addresses}"),
        ),
        Event::SubflowClosed { id, addresses } => (
            "subflow-closed",
            format!("subflow={id} addresses={addresses}"),
        ),
        _ => ("fallback", String::new()),
    };
    ProtocolEvent {
        time,
        flow,
        kind,
        detail,
    }
}

/// A row of the flow samples: sums over the subflows, the round trip of the fastest; `None` while there is
/// none.
pub(super) fn sample(
    time: Instant,
    flow: u64,
    delivered: Bytes,
    connection: &Connection,
) -> Option<FlowSample> {
    let all: Vec<_> = connection.subflows(time).collect();
    let sum = |f: fn(&gargalo_tcp::Snapshot) -> Bytes| {
        all.iter().fold(Bytes::ZERO, |t, s| t + f(&s.sender))
    };
    let rates = |f: fn(&gargalo_tcp::Snapshot) -> Option<Rate>| {
        let known = all.iter().filter_map(|s| f(&s.sender)).map(Rate::as_bps);
        Some(known.sum::<u64>())
            .filter(|sum| *sum > 0)
            .map(Rate::from_bps)
    };
    let cwnd = sum(|s| s.cwnd);
    (!cwnd.is_zero()).then(|| FlowSample {
        time,
        flow,
        cwnd,
        ssthresh: None,
        in_flight: sum(|s| s.in_flight),
        srtt: all.iter().filter_map(|s| s.sender.srtt).min(),
        pacing_rate: rates(|s| s.pacing_rate),
        delivery_rate: rates(|s| s.delivery_rate),
        delivered,
        phase: all.first().map_or("", |s| s.sender.phase),
    })
}

//! Multipath TCP at a station: subflows and their results, addresses that are added and removed.

use gargalo_flow::{
    Counts, Edge, FlowSample, Marks, MptcpSpec, ProtocolEvent, SubflowResult, SubflowSample,
};
use gargalo_host::{ConnectionId, Host};
use gargalo_mptcp::{Connection, Event, SubflowSnapshot};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Instant};

use crate::multipath::{MultipathReport, Part, SubflowReport};
use crate::traffic::{Flow, Recorder};

/// The subflows of one end of a flow.
#[derive(Debug, Default)]
pub(super) struct Track {
    subflows: Vec<SubflowReport>,
    out_of_order_max: u64,
    /// Number of address changes made.
    changed: usize,
}

impl Track {
    /// Handles an event of the subflows.
    pub(super) fn on_news(&mut self, now: Instant, flow: &Flow, news: &Event, recorder: &Recorder) {
        let (kind, detail) = match *news {
            Event::SubflowOpened { id, addresses } => {
                let links = recorder.links_of(addresses.local, addresses.remote);
                self.subflows.push(SubflowReport {
                    local: addresses.local,
                    remote: addresses.remote,
                    received_bytes: 0,
                    result: SubflowResult {
                        id,
                        link: links.0,
                        reverse_link: links.1,
                        gateway: None,
                        opened: now,
                        closed: None,
                        backup: Some(false),
                        delivered: Bytes::ZERO,
                        stats: gargalo_tcp::Stats::default(),
                        rtt: Quantiles::default(),
                        marks: Marks::default(),
                        inside: Counts::default(),
                    },
                });
                ("subflow-opened", about(recorder, id, links))
            }
            Event::SubflowClosed { id, addresses } => {
                let links = recorder.links_of(addresses.local, addresses.remote);
                ("subflow-closed", about(recorder, id, links))
            }
            _ => ("fallback", String::new()),
        };
        if flow.spec.rows {
            recorder.event(event(now, flow.spec.id, kind, detail));
        }
    }

    fn keep(&mut self, s: &SubflowSnapshot) -> Option<&mut SubflowReport> {
        let mut all = self.subflows.iter_mut().rev();
        let known = all.find(|k| k.result.id == s.id)?;
        known.received_bytes = s.received_bytes;
        known.result.stats = s.stats;
        known.result.backup = Some(s.backup);
        known.result.delivered = s.sender.delivered;
        Some(known)
    }

    /// Records the ends of subflows; for the end that `sends` also round-trip samples, notices, and a sample if it is
    /// due.
    #[allow(clippy::too_many_arguments)] // a flow's end and all its records
    pub(super) fn observe(
        &mut self,
        now: Instant,
        flow: &Flow,
        host: &mut Host,
        id: ConnectionId,
        recorder: &Recorder,
        sends: bool,
        sample: bool,
    ) {
        let Some(connection) = host.multipath_mut(id) else {
            return;
        };
        let number = flow.spec.id;
        self.out_of_order_max = self.out_of_order_max.max(connection.out_of_order());
        while let Some(s) = connection.poll_ended() {
            if let Some(known) = self.keep(&s) {
                known.result.closed = Some(now);
            }
        }
        if !sends {
            return;
        }
        while let Some((id, rtt)) = connection.take_rtt_sample() {
            flow.round_trip(rtt);
            let mut all = self.subflows.iter_mut().rev();
            if let Some(known) = all.find(|k| k.result.id == id) {
                known.result.rtt.record(rtt);
            }
        }
        let tell = |kind, detail| {
            if flow.spec.rows {
                recorder.event(event(now, number, kind, detail));
            }
        };
        while let Some((id, notice)) = connection.poll_subflow_notice() {
            let detail = format!("subflow={id} {}", notice.detail());
            tell(notice.kind(), detail.trim_end().to_owned());
        }
        while let Some(notice) = connection.poll_notice() {
            tell(notice.kind(), notice.detail());
        }
        if sample && !flow.is_over() {
            let all: Vec<SubflowSnapshot> = connection.subflows(now).collect();
            for s in &all {
                recorder.subflow(row(now, number, s, recorder));
            }
            let total = all.iter().map(|s| total_of(now, flow, s)).reduce(sum);
            total.into_iter().for_each(|t| recorder.sample(t));
        }
    }

    /// Takes the counts at an edge of the measured window.
    pub(super) fn mark(&mut self, now: Instant, connection: &Connection, edge: Edge) {
        for s in connection.subflows(now) {
            self.keep(&s);
        }
        self.subflows.iter_mut().for_each(|s| s.result.mark(edge));
    }

    /// The results of the connection; without one it was plain TCP from its SYN on.
    pub(super) fn report(
        &mut self,
        now: Instant,
        flow: &Flow,
        side: usize,
        host: &Host,
        id: ConnectionId,
    ) -> MultipathReport {
        let connection = host.multipath(id);
        for s in connection.into_iter().flat_map(|c| c.subflows(now)) {
            self.keep(&s);
        }
        MultipathReport {
            flow: flow.spec.id,
            side,
            fell_back: connection.is_none_or(|c| c.has_fallen_back()),
            subflows: std::mem::take(&mut self.subflows),
            stats: connection.map(|c| c.stats()),
            out_of_order_max: self.out_of_order_max,
        }
    }

    /// When the next change of addresses is due; [`Instant::MAX`]: never.
    pub(super) fn next_change(&self, start: Instant, mptcp: &MptcpSpec) -> Instant {
        let next = mptcp.changes.get(self.changed);
        next.map_or(Instant::MAX, |c| start + c.after)
    }

    /// Makes the changes of addresses that are due by now.
    pub(super) fn change(
        &mut self,
        now: Instant,
        (flow, side): (&Flow, usize),
        host: &mut Host,
        id: Option<ConnectionId>,
        parts: &[Part],
    ) {
        let Some(mptcp) = flow.mptcp() else { return };
        while self.next_change(flow.spec.start, mptcp) <= now {
            let change = mptcp.changes[self.changed];
            self.changed += 1;
            let part = parts.iter().find(|p| p.link == change.link);
            let Some(part) = part.filter(|_| usize::from(change.side) == side) else {
                continue;
            };
            if change.add {
                host.add_address(now, part.address);
                if let Some(c) = id.and_then(|id| host.multipath_mut(id)) {
                    c.add_address(now, part.address, part.backup);
                }
            } else {
                host.remove_address(now, part.address);
            }
        }
    }
}

/// Describes a subflow for the events table.
fn about(recorder: &Recorder, id: u32, (near, far): (usize, usize)) -> String {
    let name = |link| recorder.link_name(link);
    if near == far {
        format!("subflow={id} link={}", name(near))
    } else {
        format!("subflow={id} link={} peer_link={}", name(near), name(far))
    }
}

fn row(time: Instant, flow: u64, s: &SubflowSnapshot, recorder: &Recorder) -> SubflowSample {
    let q = &s.sender;
    SubflowSample {
        time,
        flow,
        subflow: s.id,
        link: recorder.links_of(s.addresses.local, s.addresses.remote).0,
        cwnd: q.cwnd,
        ssthresh: q.ssthresh,
        in_flight: q.in_flight,
        srtt: q.srtt,
        delivery_rate: q.delivery_rate,
        sent: Bytes::new(s.stats.sent_bytes),
        delivered: q.delivered,
        phase: q.phase,
    }
}

fn total_of(time: Instant, flow: &Flow, s: &SubflowSnapshot) -> FlowSample {
    let q = &s.sender;
    FlowSample {
        time,
        flow: flow.spec.id,
        cwnd: q.cwnd,
        ssthresh: None,
        in_flight: q.in_flight,
        srtt: q.srtt,
        pacing_rate: q.pacing_rate,
        delivery_rate: q.delivery_rate,
        delivered: flow.delivered(),
        phase: q.phase,
        out_of_order: None,
    }
}

/// Combines the samples of two subflows: sums, and the least round-trip time.
pub(crate) fn sum(a: FlowSample, b: FlowSample) -> FlowSample {
    let both = |a: Option<gargalo_units::Rate>, b| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    FlowSample {
        cwnd: a.cwnd + b.cwnd,
        ssthresh: None,
        in_flight: a.in_flight + b.in_flight,
        srtt: [a.srtt, b.srtt].into_iter().flatten().min(),
        pacing_rate: both(a.pacing_rate, b.pacing_rate),
        delivery_rate: both(a.delivery_rate, b.delivery_rate),
        ..a
    }
}

fn event(time: Instant, flow: u64, kind: &'static str, detail: String) -> ProtocolEvent {
    ProtocolEvent {
        time,
        flow,
        kind,
        detail,
    }
}

//! Multipath TCP at a station: subflows and their results, addresses that are added and removed.

use gargalo_flow::{Edge, FlowSample, MptcpSpec, SubflowResult, SubflowSample, describe_subflow};
use gargalo_host::{ConnectionId, Host};
use gargalo_mptcp::{Connection, Event, SubflowSnapshot};
use gargalo_units::Instant;

use crate::linux::plan::Part;
use crate::linux::traffic::{Flow, Recorder};
use crate::multipath::{MultipathReport, SubflowReport};

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
                    result: SubflowResult::opened(id, links, None, now),
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
            recorder.event(now, flow.spec.id, kind, detail);
        }
    }

    fn keep(&mut self, s: &SubflowSnapshot) -> Option<&mut SubflowReport> {
        let mut all = self.subflows.iter_mut().rev();
        let known = all.find(|k| k.result.id == s.id)?;
        known.received_bytes = s.received_bytes;
        known.result.record(s);
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
            if sample {
                flow.buffered(Some(connection.buffered()));
            }
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
                recorder.event(now, number, kind, detail);
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
            let mut total = FlowSample::over_paths(now, number, flow.reached());
            for s in &all {
                let link = recorder.links_of(s.addresses.local, s.addresses.remote).0;
                let sample = SubflowSample::of_mptcp(now, number, link, s);
                total.add(&sample, s.sender.pacing_rate);
                recorder.subflow(sample);
            }
            if !all.is_empty() {
                recorder.sample(total);
            }
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
    describe_subflow(id, (recorder.link_name(near), recorder.link_name(far)))
}

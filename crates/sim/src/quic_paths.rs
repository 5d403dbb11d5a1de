//! What is remembered of the paths of a multipath QUIC connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gargalo_flow::{
    Counts, Edge, FlowSample, Marks, MultipathResult, SubflowResult, SubflowSample, Window,
};
use gargalo_quic::{Endpoint, PathSnapshot};
use gargalo_tcp as tcp;
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Instant};

use crate::drive_quic::path;
use crate::flow::Flow;
use crate::net::Net;
use crate::recorder::Recorder;

/// The paths of one end.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// The first link of each route there and back.
    links: Vec<(usize, usize)>,
    /// Round-trip samples by identifier.
    rtt: BTreeMap<u32, Quantiles>,
    /// Counts at the edges of the measured window, likewise.
    marks: BTreeMap<u32, Marks>,
}

impl Paths {
    /// Of an end that sends by the routes `there`; nothing is remembered of a single one.
    pub(crate) fn new(net: &Net, there: &[u32], back: &[u32]) -> Self {
        let ends = there.iter().zip(back).filter(|_| there.len() > 1);
        let links = ends.filter_map(|(a, b)| Some((net.first_link(*a)?, net.first_link(*b)?)));
        Self {
            links: links.collect(),
            ..Self::default()
        }
    }

    /// Takes the samples of the latest acknowledgements, for the flow too.
    pub(crate) fn rtt_samples(&mut self, endpoint: &mut Endpoint, all: &mut Quantiles) {
        for (id, rtt) in endpoint.take_path_rtt_samples() {
            all.record(rtt);
            self.rtt.entry(id).or_default().record(rtt);
        }
    }

    fn links_of(&self, snapshot: &PathSnapshot) -> Option<(usize, usize)> {
        match snapshot.remote {
            SocketAddr::V4(remote) => self.links.get(path(remote)).copied(),
            SocketAddr::V6(_) => None,
        }
    }
}

/// A path of the sender.
struct Sending {
    path: PathSnapshot,
    /// The links by which its data leaves, and what comes back.
    links: (usize, usize),
    /// What has arrived on it.
    delivered: Bytes,
}

/// The paths of the sender; `None`: there is but one.
fn paths(flow: &mut Flow) -> Option<Vec<Sending>> {
    let sender = flow.talk.sender();
    if flow.sides[sender].quic()?.paths.links.is_empty() {
        return None;
    }
    let far = flow.sides[1 - sender].quic()?;
    let arrived: BTreeMap<u32, u64> = far
        .end
        .endpoint
        .paths()
        .iter()
        .map(|p| (p.id, p.received_bytes))
        .collect();
    let side = flow.sides[sender].quic()?;
    let of = |path: PathSnapshot| {
        Some(Sending {
            path,
            links: side.paths.links_of(&path)?,
            delivered: Bytes::new(arrived.get(&path.id).copied().unwrap_or(0)),
        })
    };
    Some(
        side.end
            .endpoint
            .paths()
            .into_iter()
            .filter_map(of)
            .collect(),
    )
}

/// The state of the sender over all paths, each of which goes to the recorder.
pub(crate) fn sample(flow: &mut Flow, now: Instant, recorder: &mut Recorder) -> Option<FlowSample> {
    let all = paths(flow)?;
    let mut total = FlowSample::over_paths(now, flow.id, Bytes::new(flow.talk.delivered()));
    for Sending {
        path: p,
        links,
        delivered,
    } in all
    {
        if p.closed.is_some() {
            continue;
        }
        let sample = SubflowSample {
            time: now,
            flow: flow.id,
            subflow: p.id,
            link: links.0,
            cwnd: p.sender.cwnd,
            ssthresh: p.sender.ssthresh,
            in_flight: p.sender.in_flight,
            srtt: p.sender.srtt,
            delivery_rate: p.sender.delivery_rate,
            sent: Bytes::new(p.sent_bytes),
            delivered,
            phase: p.sender.phase,
        };
        total.add(&sample, p.sender.pacing_rate);
        recorder.subflow(sample);
    }
    Some(total)
}

/// What has happened on the paths of a flow until now; `None`: there is but one, or it is not QUIC.
fn standing(flow: &mut Flow) -> Option<Vec<SubflowResult>> {
    let all = paths(flow)?;
    let known = &mut flow.sides[flow.talk.sender()].quic()?.paths;
    let of = |Sending {
                  path: p,
                  links,
                  delivered,
              }| SubflowResult {
        id: p.id,
        link: links.0,
        reverse_link: links.1,
        gateway: None,
        opened: p.opened,
        closed: p.closed,
        backup: Some(false),
        delivered,
        stats: tcp::Stats {
            sent_packets: p.sent_packets,
            sent_bytes: p.sent_bytes,
            retransmitted_packets: p.retransmitted_packets,
            lost_packets: p.lost_packets,
            timeouts: p.timeouts,
            ..tcp::Stats::default()
        },
        rtt: known.rtt.remove(&p.id).unwrap_or_default(),
        marks: known.marks.remove(&p.id).unwrap_or_default(),
        inside: Counts::default(),
    };
    Some(all.into_iter().map(of).collect())
}

/// An edge of the measured window passes.
pub(crate) fn mark(flow: &mut Flow, edge: Edge) {
    let Some(mut all) = standing(flow) else {
        return;
    };
    if let Some(side) = flow.sides[flow.talk.sender()].quic() {
        for path in &mut all {
            path.mark(edge);
            let marks = std::mem::take(&mut path.marks);
            side.paths.marks.insert(path.id, marks);
        }
    }
}

/// What happened on the paths of a flow; `None`: there was but one, or it is not QUIC.
pub(crate) fn result(flow: &mut Flow, window: &Window) -> Option<MultipathResult> {
    let mut subflows = standing(flow)?;
    subflows.iter_mut().for_each(|s| s.close(window));
    Some(MultipathResult {
        subflows,
        mptcp: None,
    })
}

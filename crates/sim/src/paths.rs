//! The paths of a multipath connection, over TCP or QUIC, in the simulator, where both ends are accessible.

use std::net::SocketAddr;

use gargalo_flow::quic_paths::{SendingPath, arrived, sample as sample_of, sending};
use gargalo_flow::{Edge, FlowSample, MptcpResult, MultipathResult, SubflowSample, Window};
use gargalo_units::{Bytes, Instant};

use crate::flow::Flow;
use crate::quic::path;
use crate::recorder::Recorder;

/// The paths of the sender; `None`: there is only one, or it is not QUIC.
fn paths(flow: &mut Flow) -> Option<Vec<SendingPath>> {
    let sender = flow.talk.sender();
    if flow.sides[sender].quic()?.links.is_empty() {
        return None;
    }
    let arrived = arrived(&mut *flow.sides[1 - sender].quic()?.end.endpoint);
    let side = flow.sides[sender].quic()?;
    let links = &side.links;
    let of = |remote: SocketAddr| match remote {
        SocketAddr::V4(remote) => links.get(path(remote)).copied(),
        SocketAddr::V6(_) => None,
    };
    let endpoint = &mut *side.end.endpoint;
    Some(sending(endpoint, &arrived, |p| of(p.remote)))
}

/// Samples the sender over all paths, and each path; the samples of paths go to the recorder. `None`: it has only one.
pub(crate) fn sample(flow: &mut Flow, now: Instant, recorder: &mut Recorder) -> Option<FlowSample> {
    let reached = flow.reached();
    if let Some(all) = paths(flow) {
        let (total, samples) = sample_of(all, (now, flow.id, reached));
        samples.into_iter().for_each(|s| recorder.subflow(s));
        return Some(total);
    }
    let (sender, id) = (flow.talk.sender(), flow.id);
    let out_of_order = flow.sides[1 - sender].mptcp()?.connection.out_of_order();
    let side = flow.sides[sender].mptcp()?;
    let mut total = FlowSample::over_paths(now, id, reached);
    total.out_of_order = Some(Bytes::new(out_of_order));
    for s in side.connection.subflows(now) {
        let Some((link, _)) = side.links_of(s.addresses) else {
            continue;
        };
        if s.sender.cwnd.is_zero() {
            continue; // not established yet
        }
        let sample = SubflowSample::of_mptcp(now, id, link, &s);
        total.add(&sample, s.sender.pacing_rate);
        recorder.subflow(sample);
    }
    Some(total)
}

/// Takes the counts at an edge of the measured window.
pub(crate) fn mark(flow: &mut Flow, now: Instant, edge: Edge) {
    let quic = paths(flow);
    let side = &mut flow.sides[flow.talk.sender()];
    if let Some(side) = side.mptcp() {
        side.look(now);
        side.subflows.iter_mut().for_each(|s| s.mark(edge));
    } else if let (Some(all), Some(side)) = (quic, side.quic()) {
        side.paths.mark(edge, all);
    }
}

/// The results of the paths of a flow; `None`: there was only one.
pub(crate) fn result(flow: &mut Flow, now: Instant, window: &Window) -> Option<MultipathResult> {
    if let Some(all) = paths(flow) {
        let side = flow.sides[flow.talk.sender()].quic()?;
        return Some(MultipathResult {
            subflows: side.paths.results(window, all),
            mptcp: None,
        });
    }
    let sender = flow.talk.sender();
    let far = flow.sides[1 - sender].mptcp()?;
    let duplicate_bytes = far.connection.stats().duplicate_bytes;
    let out_of_order_max = far.out_of_order_max;
    let side = flow.sides[sender].mptcp()?;
    side.look(now);
    let mut subflows = std::mem::take(&mut side.subflows);
    subflows.iter_mut().for_each(|s| s.close(window));
    Some(MultipathResult {
        subflows,
        mptcp: Some(MptcpResult {
            stats: side.connection.stats(),
            duplicate_bytes,
            out_of_order_max,
        }),
    })
}

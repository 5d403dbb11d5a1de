//! The paths of a multipath QUIC connection in the simulator, where both ends are accessible.

use std::net::SocketAddr;

use gargalo_flow::quic_paths::{SendingPath, arrived, sample as sample_of, sending};
use gargalo_flow::{Edge, FlowSample, MultipathResult, Window};
use gargalo_units::{Bytes, Instant};

use crate::drive_quic::path;
use crate::flow::Flow;
use crate::recorder::Recorder;

/// The paths of the sender; `None`: there is only one, or it is not QUIC.
fn paths(flow: &mut Flow) -> Option<Vec<SendingPath>> {
    let sender = flow.talk.sender();
    if flow.sides[sender].quic()?.links.is_empty() {
        return None;
    }
    let arrived = arrived(&mut flow.sides[1 - sender].quic()?.end.endpoint);
    let side = flow.sides[sender].quic()?;
    let links = &side.links;
    let of = |remote: SocketAddr| match remote {
        SocketAddr::V4(remote) => links.get(path(remote)).copied(),
        SocketAddr::V6(_) => None,
    };
    let endpoint = &mut side.end.endpoint;
    Some(sending(endpoint, &arrived, |p| of(p.remote)))
}

/// Samples the sender over all paths, and each path; the samples of paths go to the recorder.
pub(crate) fn sample(flow: &mut Flow, now: Instant, recorder: &mut Recorder) -> Option<FlowSample> {
    let about = (now, flow.id, Bytes::new(flow.talk.delivered()));
    let (total, samples) = sample_of(paths(flow)?, about);
    samples.into_iter().for_each(|s| recorder.subflow(s));
    Some(total)
}

/// Takes the counts at an edge of the measured window.
pub(crate) fn mark(flow: &mut Flow, edge: Edge) {
    if let Some(all) = paths(flow)
        && let Some(side) = flow.sides[flow.talk.sender()].quic()
    {
        side.paths.mark(edge, all);
    }
}

/// The results of the paths of a flow; `None`: there was only one, or it is not QUIC.
pub(crate) fn result(flow: &mut Flow, window: &Window) -> Option<MultipathResult> {
    let all = paths(flow)?;
    let side = flow.sides[flow.talk.sender()].quic()?;
    Some(MultipathResult {
        subflows: side.paths.results(window, all),
        mptcp: None,
    })
}

//! State of the paths of a multipath QUIC connection that the connection itself does not keep.

use std::collections::BTreeMap;

use gargalo_quic::{PathSnapshot, Stack};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Instant};

use crate::result::SubflowResult;
use crate::samples::{FlowSample, Reached, SubflowSample};
use crate::window::{Counts, Edge, Marks, Window};

/// The paths of a sender: the measurements that the connection does not keep.
#[derive(Debug, Default)]
pub struct QuicPaths {
    /// Round-trip samples by identifier.
    rtt: BTreeMap<u32, Quantiles>,
    /// Counts at the edges of the measured window, by identifier.
    marks: BTreeMap<u32, Marks>,
}

/// A path of the sender.
#[derive(Clone, Copy, Debug)]
pub struct SendingPath {
    path: PathSnapshot,
    /// The links by which its data leaves and its acknowledgements return.
    links: (usize, usize),
    /// Bytes that arrived on it.
    delivered: Bytes,
}

/// Bytes of stream data that each path delivered first, by identifier.
pub fn arrived(endpoint: &mut dyn Stack) -> BTreeMap<u32, u64> {
    let paths = endpoint.paths();
    paths.iter().map(|p| (p.id, p.received_bytes)).collect()
}

/// The paths of a sender: the links by which their data leaves and acknowledgements return, and how much of it
/// [arrived] at the other end.
pub fn sending(
    endpoint: &mut dyn Stack,
    arrived: &BTreeMap<u32, u64>,
    links_of: impl Fn(&PathSnapshot) -> Option<(usize, usize)>,
) -> Vec<SendingPath> {
    let of = |path: PathSnapshot| {
        Some(SendingPath {
            links: links_of(&path)?,
            delivered: Bytes::new(arrived.get(&path.id).copied().unwrap_or(0)),
            path,
        })
    };
    endpoint.paths().into_iter().filter_map(of).collect()
}

/// Samples a sender over all paths, and each of the paths.
pub fn sample(
    all: Vec<SendingPath>,
    (now, flow, reached): (Instant, u64, Reached),
) -> (FlowSample, Vec<SubflowSample>) {
    let mut total = FlowSample::over_paths(now, flow, reached);
    let open = all.into_iter().filter(|s| s.path.closed.is_none());
    let samples = open.map(|s| {
        let sender = s.path.sender;
        let sample = SubflowSample {
            time: now,
            flow,
            subflow: s.path.id,
            link: s.links.0,
            cwnd: sender.cwnd,
            ssthresh: sender.ssthresh,
            in_flight: sender.in_flight.unwrap_or_default(),
            srtt: sender.srtt,
            delivery_rate: sender.delivery_rate,
            sent: s.path.counters.sent_bytes,
            delivered: s.delivered,
            phase: sender.phase,
        };
        total.add(&sample, sender.pacing_rate);
        sample
    });
    let samples = samples.collect();
    (total, samples)
}

impl QuicPaths {
    /// Takes the round-trip samples of the latest acknowledgements, also into those of the flow.
    pub fn rtt_samples(&mut self, endpoint: &mut dyn Stack, all: &mut Quantiles) {
        for (id, rtt) in endpoint.take_path_rtt_samples() {
            all.record(rtt);
            self.rtt.entry(id).or_default().record(rtt);
        }
    }

    /// The results of the paths so far, with counts at the edges of the window that have passed.
    pub fn standing(&mut self, all: Vec<SendingPath>) -> Vec<SubflowResult> {
        let of = |SendingPath {
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
            counters: p.counters,
            rtt: self.rtt.remove(&p.id).unwrap_or_default(),
            marks: self.marks.remove(&p.id).unwrap_or_default(),
            inside: Counts::default(),
        };
        all.into_iter().map(of).collect()
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge, all: Vec<SendingPath>) {
        for mut path in self.standing(all) {
            path.mark(edge);
            self.marks.insert(path.id, path.marks);
        }
    }

    /// The results of the paths when the connection is over.
    pub fn results(&mut self, window: &Window, all: Vec<SendingPath>) -> Vec<SubflowResult> {
        let mut subflows = self.standing(all);
        subflows.iter_mut().for_each(|s| s.close(window));
        subflows
    }
}

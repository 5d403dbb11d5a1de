//! State of the paths of a multipath QUIC connection that the connection itself does not keep.

use std::collections::BTreeMap;

use gargalo_quic::{PathSnapshot, Stack};
use gargalo_trace::Quantiles;
use gargalo_units::{Bytes, Duration, Instant};

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
    pub fn rtt_samples(&mut self, endpoint: &mut dyn Stack, mut all: impl FnMut(Duration)) {
        for (id, rtt) in endpoint.take_path_rtt_samples() {
            all(rtt);
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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use gargalo_quic::Snapshot;
    use gargalo_units::{Duration, Rate, SenderCounters};

    use super::*;
    use crate::testing::{Told, at};

    fn path(id: u32, cwnd: u64, sent: u64) -> PathSnapshot {
        let local = IpAddr::from(Ipv4Addr::new(10, 0, 0, id as u8));
        PathSnapshot {
            id,
            local,
            remote: SocketAddr::new(local, 443),
            opened: at(10),
            closed: None,
            counters: SenderCounters {
                sent_bytes: sent.into(),
                ..SenderCounters::default()
            },
            received_bytes: 100 * u64::from(id),
            sender: Snapshot {
                cwnd: Bytes::new(cwnd),
                in_flight: Some(Bytes::new(cwnd / 2)),
                pacing_rate: Some(Rate::from_mbps(cwnd)),
                phase: "startup",
                ..Snapshot::default()
            },
        }
    }

    /// The paths of a sender; the link of each has its number, and one whose link is not known is left out.
    fn paths(stack: &mut Told, all: Vec<PathSnapshot>) -> Vec<SendingPath> {
        stack.script().paths = all;
        let arrived = arrived(stack);
        let link = |p: &PathSnapshot| (p.id < 9).then_some((p.id as usize, p.id as usize + 100));
        sending(stack, &arrived, link)
    }

    #[test]
    fn a_sender_is_the_sum_of_its_open_paths() {
        let mut stack = Told::default();
        let mut closed = path(3, 7, 0);
        closed.closed = Some(at(50));
        let all = vec![path(1, 10, 500), path(2, 30, 600), closed, path(9, 1000, 0)];
        let all = paths(&mut stack, all);
        let (whole, each) = sample(all, (at(60), 4, Reached::default()));
        assert_eq!(
            (whole.flow, whole.time, whole.cwnd),
            (4, at(60), Bytes::new(40))
        );
        assert_eq!(whole.pacing_rate, Some(Rate::from_mbps(40)));
        let ids: Vec<_> = each.iter().map(|s| (s.subflow, s.link)).collect();
        assert_eq!(ids, [(1, 1), (2, 2)]);
        assert_eq!(
            (each[0].in_flight, each[0].delivered),
            (Bytes::new(5), Bytes::new(100))
        );
        assert_eq!((each[1].sent.get(), each[1].phase), (Some(600), "startup"));
    }

    #[test]
    fn results_of_paths_have_their_round_trips_and_what_is_inside_the_window() {
        let (mut stack, mut kept) = (Told::default(), QuicPaths::default());
        let mut window = Window::new(Some((at(20), at(30))));
        let mut all = Quantiles::new();
        let mut round_trips = |kept: &mut QuicPaths, stack: &mut Told, samples: &[u32]| {
            let rtt = Duration::from_millis(5);
            stack.script().rtt = samples.iter().map(|id| (*id, rtt)).collect();
            kept.rtt_samples(stack, |rtt| all.record(rtt));
            all.count()
        };
        assert_eq!(round_trips(&mut kept, &mut stack, &[1, 1, 2]), 3);
        let begin = paths(&mut stack, vec![path(1, 10, 500), path(2, 10, 50)]);
        kept.mark(Edge::From, begin);
        window.pass(Edge::From, at(20));
        assert_eq!(round_trips(&mut kept, &mut stack, &[2]), 4);
        let end = paths(&mut stack, vec![path(1, 10, 800), path(2, 10, 60)]);
        let results = kept.results(&window, end);
        let inside = |r: &SubflowResult| (r.inside.sender.sent_bytes.get(), r.rtt.count());
        let figures: Vec<_> = results.iter().map(inside).collect();
        assert_eq!(figures, [(Some(300), 0), (Some(10), 1)]);
        let first = &results[0];
        assert_eq!((first.id, first.link, first.reverse_link), (1, 1, 101));
        assert_eq!((first.opened, first.closed), (at(10), None));
        assert_eq!(
            (first.delivered, first.backup),
            (Bytes::new(100), Some(false))
        );
        assert_eq!(first.counters.sent_bytes, 800);
    }
}

//! Totals of flows that have no rows of their own: thousands may start and end each second, and the memory kept for
//! them stays constant.

use std::sync::Arc;

use gargalo_trace::Quantiles;
use gargalo_units::{Duration, Instant, Rate};

use crate::result::FlowResult;
use crate::window::Edge;
use gargalo_workload::AppResult;
use gargalo_workload::plan::Offer;
use gargalo_workload::wire::WireBytes;

/// Number of a group in a world.
pub type GroupId = u32;

/// Flows that are counted together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name in results.
    pub label: Arc<str>,
    /// Flows that were started.
    pub flows: u64,
    /// Of those, completed.
    pub completed: u64,
    /// Ended early by a reset or too many timeouts.
    pub failed: u64,
    /// Most of them alive at once.
    pub peak: u64,
    /// Flows that exist at present; see [`Group::peak`].
    alive: u64,
    /// Planned counts at the edges of the measured window.
    marks: (WireBytes, Option<WireBytes>),
    /// The part of these counts inside the measured window.
    pub inside: Inside,
    /// Payload that applications asked to send; an unlimited transfer counts with what it sent.
    pub offered: u64,
    /// Wire bytes that a source's transfers need by calculation, without retransmissions.
    pub planned: WireBytes,
    /// Bytes that hosts put on the wire, retransmissions included.
    pub sent: WireBytes,
    /// Payload that receivers read.
    pub delivered: u64,
    /// Data packets sent, retransmissions included. This and the next three are `None` as soon as the stack of one of
    /// the flows does not report them: a sum without it would be too small.
    pub sent_packets: Option<u64>,
    /// Those of them that were retransmissions.
    pub retransmitted_packets: Option<u64>,
    /// Marked lost by the sender (UDP: dropped by the network).
    pub lost_packets: Option<u64>,
    /// Retransmission timeouts, of QUIC probe timeouts.
    pub timeouts: Option<u64>,
    /// Congestion Experienced marks received.
    pub ce_marks: u64,
    /// Flows whose delivered content differed from what was sent.
    pub corrupted: u64,
    /// Completion times of the completed flows, from start to last byte.
    pub completion: Quantiles,
    /// Round-trip samples (UDP: one-way delays).
    pub rtt: Quantiles,
    /// Sessions that a web source has started.
    pub sessions: u64,
    /// Pages that a web source has requested.
    pub pages: u64,
    /// Times from the request for a page to its last byte.
    pub page_time: Quantiles,
    /// The demand on a source, and how it was met.
    pub offer: Offer,
    /// When the first flow may start and the last may end.
    pub window: (Instant, Instant),
    /// Opinion scores: how many and their sum.
    pub scores: (u64, f64),
    /// Players that played anything.
    pub players: Players,
}

/// The counts from which rates are computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inside {
    /// Wire bytes that a source's transfers need by calculation.
    pub planned: WireBytes,
    /// Bytes that hosts put on the wire.
    pub sent: WireBytes,
    /// Payload that receivers read.
    pub delivered: u64,
}

/// Totals of video players.
#[derive(Clone, Copy, Debug, Default)]
pub struct Players {
    /// How many there were.
    pub count: u64,
    /// Sum of the start-up delays of those that played.
    pub startup: Duration,
    /// How many of them played.
    pub played: u64,
    /// Total time stalled.
    pub rebuffering: Duration,
    /// Number of stalls.
    pub rebufferings: u64,
    /// Sum of the mean rates.
    pub bitrate: Rate,
    /// Number of rate changes.
    pub switches: u64,
}

impl Group {
    /// Creates the totals of flows that start within `window`.
    pub fn new(label: Arc<str>, window: (Instant, Instant)) -> Self {
        Self {
            label,
            flows: 0,
            completed: 0,
            failed: 0,
            peak: 0,
            alive: 0,
            marks: Default::default(),
            inside: Inside::default(),
            offered: 0,
            planned: WireBytes::default(),
            sent: WireBytes::default(),
            delivered: 0,
            sent_packets: Some(0),
            retransmitted_packets: Some(0),
            lost_packets: Some(0),
            timeouts: Some(0),
            ce_marks: 0,
            corrupted: 0,
            completion: Quantiles::new(),
            rtt: Quantiles::new(),
            sessions: 0,
            pages: 0,
            page_time: Quantiles::new(),
            offer: Offer::default(),
            window,
            scores: (0, 0.0),
            players: Players::default(),
        }
    }

    /// Takes the counts at an edge of the measured window.
    pub fn mark(&mut self, edge: Edge) {
        match edge {
            Edge::From => self.marks.0 = self.planned,
            Edge::Until => self.marks.1 = Some(self.planned),
        }
    }

    /// Closes the totals at the end of the run. `began`: the measured window had begun.
    pub fn close(&mut self, began: bool) {
        let until = self.marks.1.unwrap_or(self.planned);
        if began {
            self.inside.planned = until - self.marks.0;
        }
    }

    /// Records the start of a flow that will carry `total` bytes; `None`: unlimited, or not known yet.
    pub fn start(&mut self, total: Option<u64>) {
        self.flows += 1;
        self.alive += 1;
        self.peak = self.peak.max(self.alive);
        self.offered = self.offered.saturating_add(total.unwrap_or(0));
    }

    /// Adds the result of a flow that has ended.
    pub fn fold(&mut self, flow: &FlowResult, had_total: bool) {
        self.alive -= 1;
        if !had_total {
            self.offered = self.offered.saturating_add(flow.sent.get());
        }
        if let Some(time) = flow.completion {
            self.completed += 1;
            self.completion.record(time);
        }
        self.failed += u64::from(flow.failure.is_some());
        self.sent.add(flow.wire);
        self.inside.sent.add(flow.inside.wire);
        self.inside.delivered += flow.inside.delivered;
        self.delivered = self.delivered.saturating_add(flow.delivered.get());
        let known = &flow.known;
        add(
            &mut self.sent_packets,
            known.sent_packets,
            flow.sent_packets,
        );
        add(
            &mut self.retransmitted_packets,
            known.retransmitted_packets,
            flow.retransmitted_packets,
        );
        add(
            &mut self.lost_packets,
            known.lost_packets,
            flow.lost_packets,
        );
        add(&mut self.timeouts, known.timeouts, flow.timeouts);
        self.ce_marks += flow.ce_marks;
        self.corrupted += u64::from(flow.corrupted);
        self.rtt.merge(&flow.rtt);
        match &flow.application {
            Some(AppResult::Voice(v)) => {
                if let Some(mos) = v.mos {
                    self.scores = (self.scores.0 + 1, self.scores.1 + mos);
                }
            }
            Some(AppResult::Video(v)) => {
                let p = &mut self.players;
                p.count += 1;
                p.played += u64::from(v.startup.is_some());
                p.startup += v.startup.unwrap_or_default();
                p.rebuffering += v.rebuffering;
                p.rebufferings += v.rebufferings;
                p.bitrate = p.bitrate + v.mean_bitrate;
                p.switches += v.switches;
            }
            Some(AppResult::Request(_) | AppResult::Media(_)) | None => {}
        }
    }
}

/// Adds a counter of a flow to a sum, which is not known once a part of it is not.
fn add(sum: &mut Option<u64>, known: bool, part: u64) {
    *sum = sum
        .filter(|_| known)
        .map(|so_far| so_far.saturating_add(part));
}

#[cfg(test)]
mod tests {
    use gargalo_quic::Known;
    use gargalo_units::Bytes;

    use super::*;
    use crate::window::Counts;

    /// A flow that sent ten packets, three of them again.
    fn result(completion: Option<Duration>) -> FlowResult {
        FlowResult {
            id: 0,
            template: 0,
            hosts: (0, 1),
            label: "g".into(),
            transport: "tcp",
            congestion: "reno".into(),
            start: Instant::ZERO,
            end: Instant::ZERO,
            handshake: None,
            first_byte: None,
            completion,
            delivered: Bytes::new(700),
            sent_packets: 10,
            sent: Bytes::new(1000),
            retransmitted_packets: 3,
            lost_packets: 2,
            timeouts: 1,
            spurious_losses: 0,
            known: Known::default(),
            ce_marks: 4,
            rtt: Quantiles::new(),
            inside: Counts::default(),
            corrupted: false,
            failure: None,
            wire: WireBytes::default(),
            application: None,
            multipath: None,
        }
    }

    #[test]
    fn flows_are_counted_while_they_live_and_added_up_when_they_end() {
        let mut group = Group::new("g".into(), (Instant::ZERO, Instant::MAX));
        group.start(Some(700));
        group.start(None);
        group.fold(&result(Some(Duration::from_secs(1))), true);
        group.start(Some(700));
        assert_eq!((group.flows, group.peak, group.completed), (3, 2, 1));
        group.fold(&result(None), false);
        group.fold(&result(None), true);
        assert_eq!((group.flows, group.peak, group.alive), (3, 2, 0));
        // An unlimited flow offers what it sent.
        assert_eq!(group.offered, 700 + 1000 + 700);
        assert_eq!(
            (group.sent_packets, group.retransmitted_packets),
            (Some(30), Some(9))
        );
        assert_eq!((group.lost_packets, group.timeouts), (Some(6), Some(3)));
        assert_eq!((group.ce_marks, group.delivered), (12, 2100));
    }
}

//! Totals of flows that have no rows of their own: thousands may start and end each second, and the memory kept for
//! them stays constant.

use std::sync::Arc;

use gargalo_trace::Quantiles;
use gargalo_units::{Count, Duration, Instant, Rate, SenderCounters};

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
    /// Flows that completed.
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
    pub offered: Count,
    /// Wire bytes that a source's transfers need by calculation, without retransmissions.
    pub planned: WireBytes,
    /// Bytes that hosts put on the wire, retransmissions included.
    pub sent: WireBytes,
    /// Payload that receivers read.
    pub delivered: u64,
    /// What the senders counted; a count is unknown as soon as the stack of one of the flows does not report it.
    pub counters: SenderCounters,
    /// Congestion Experienced marks received.
    pub ce_marks: u64,
    /// Flows whose delivered content differed from what was sent.
    pub corrupted: u64,
    /// The delays are those of datagrams in one direction.
    pub one_way: bool,
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
            offered: Count::default(),
            planned: WireBytes::default(),
            sent: WireBytes::default(),
            delivered: 0,
            counters: SenderCounters::default(),
            ce_marks: 0,
            corrupted: 0,
            one_way: false,
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
        self.offered += total.unwrap_or(0);
    }

    /// Adds the result of a flow that has ended.
    pub fn fold(&mut self, flow: &FlowResult, had_total: bool) {
        self.alive -= 1;
        if !had_total {
            self.offered += flow.counters.sent_bytes;
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
        self.counters += flow.counters;
        self.ce_marks += flow.ce_marks;
        self.corrupted += u64::from(flow.corrupted);
        self.one_way |= flow.one_way;
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
            Some(AppResult::Request(_) | AppResult::Media(_) | AppResult::Ping(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use gargalo_units::Bytes;
    use gargalo_workload::video::VideoResult;
    use gargalo_workload::voice::VoiceResult;

    use super::*;
    use crate::testing;
    use crate::window::Counts;

    /// A flow that sent ten packets, three of them again.
    fn result(completion: Option<Duration>) -> FlowResult {
        FlowResult {
            completion,
            delivered: Bytes::new(700),
            counters: SenderCounters {
                sent_packets: 10.into(),
                sent_bytes: 1000.into(),
                retransmitted_packets: 3.into(),
                lost_packets: 2.into(),
                timeouts: 1.into(),
                ..SenderCounters::default()
            },
            ce_marks: 4,
            ..testing::result()
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
        let sums: Vec<_> = group.counters.counts().map(Count::get).collect();
        assert_eq!(sums[..5], [30, 3000, 9, 6, 3].map(Some));
        assert_eq!((group.ce_marks, group.delivered), (12, 2100));
    }

    #[test]
    fn only_what_is_inside_the_window_counts_for_rates() {
        let bytes = |forward| WireBytes {
            forward,
            reverse: 2 * forward,
        };
        let mut group = Group::new("g".into(), (Instant::ZERO, Instant::MAX));
        group.planned = bytes(100);
        let mut early = group.clone();
        early.close(false);
        assert_eq!(early.inside.planned, WireBytes::default());
        group.mark(Edge::From);
        group.planned = bytes(250);
        let mut open = group.clone();
        open.close(true);
        assert_eq!(open.inside.planned, bytes(150));
        group.mark(Edge::Until);
        group.planned = bytes(900);
        group.close(true);
        assert_eq!(group.inside.planned, bytes(150));
        let mut flow = result(None);
        flow.wire = bytes(1000);
        flow.inside = Counts {
            delivered: 40,
            wire: bytes(50),
            ..Counts::default()
        };
        flow.failure = Some("reset".into());
        flow.corrupted = true;
        flow.rtt.record(Duration::from_millis(10));
        for _ in 0..2 {
            group.start(None);
            group.fold(&flow, true);
        }
        assert_eq!((group.sent, group.inside.sent), (bytes(2000), bytes(100)));
        assert_eq!((group.inside.delivered, group.delivered), (80, 1400));
        assert_eq!(
            (group.failed, group.corrupted, group.rtt.count()),
            (2, 2, 2)
        );
    }

    #[test]
    fn a_sum_without_what_a_stack_does_not_report_is_unknown() {
        let mut group = Group::new("g".into(), (Instant::ZERO, Instant::MAX));
        let mut silent = result(None);
        silent.counters.lost_packets = Count::UNKNOWN;
        silent.counters.sent_bytes = Count::UNKNOWN;
        for flow in [&silent, &result(None)] {
            group.start(None);
            group.fold(flow, false);
        }
        assert_eq!(group.counters.lost_packets, Count::UNKNOWN);
        assert_eq!(group.counters.sent_packets, 20);
        // What an unlimited flow offers is what it sent.
        assert_eq!(group.offered, Count::UNKNOWN);
    }

    #[test]
    fn means_of_players_and_calls_are_over_those_that_have_the_value() {
        let mut group = Group::new("g".into(), (Instant::ZERO, Instant::MAX));
        let video = |startup, stalls: u64, mbps, switches| VideoResult {
            startup,
            rebuffering: Duration::from_secs(3 * stalls),
            rebufferings: stalls,
            played: Duration::ZERO,
            segments: 0,
            mean_bitrate: Rate::from_mbps(mbps),
            switches,
        };
        let call = |mos| VoiceResult {
            late_packets: 0,
            loss: 0.0,
            jitter: Duration::ZERO,
            mouth_to_ear: Duration::ZERO,
            rating: None,
            mos,
        };
        for application in [
            AppResult::Video(video(Some(Duration::from_secs(2)), 2, 5, 4)),
            AppResult::Video(video(None, 0, 0, 0)),
            AppResult::Video(video(Some(Duration::from_secs(1)), 1, 3, 2)),
            AppResult::Voice(call(Some(4.25))),
            AppResult::Voice(call(None)),
            AppResult::Voice(call(Some(2.5))),
        ] {
            let mut ended = result(None);
            ended.application = Some(application);
            group.start(None);
            group.fold(&ended, false);
        }
        let p = &group.players;
        assert_eq!(
            (p.count, p.played, p.rebufferings, p.switches),
            (3, 2, 3, 6)
        );
        let seconds = [p.startup, p.rebuffering].map(|d| d.as_secs_f64());
        assert_eq!(seconds, [3.0, 9.0]);
        assert_eq!(p.bitrate, Rate::from_mbps(8));
        assert_eq!(group.scores, (2, 6.75));
    }
}

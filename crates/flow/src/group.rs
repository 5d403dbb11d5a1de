//! Totals of flows that have no row of their own: thousands a second come and go, and what is kept of
//! them stays the same size.

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
    /// Most of them at once.
    pub peak: u64,
    /// Alive now.
    alive: u64,
    /// What was planned at the edges of the measured window.
    marks: (WireBytes, Option<WireBytes>),
    /// What of all this was inside of the measured window.
    pub inside: Inside,
    /// Payload that applications wanted carried; without end counts as what was sent.
    pub offered: u64,
    /// What transfers of a source put on the wire by arithmetic, when nothing is repeated.
    pub planned: WireBytes,
    /// What hosts put on the wire, repetitions included.
    pub sent: WireBytes,
    /// Payload that receivers got.
    pub delivered: u64,
    /// Data packets sent, repetitions included.
    pub sent_packets: u64,
    /// Of those, repetitions.
    pub retransmitted_packets: u64,
    /// Taken for lost by the sender (UDP: dropped by the network).
    pub lost_packets: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Congestion Experienced marks received.
    pub ce_marks: u64,
    /// Content that was not what had been sent.
    pub corrupted: u64,
    /// Completion times.
    pub completion: Quantiles,
    /// Round-trip samples (UDP: one-way delays).
    pub rtt: Quantiles,
    /// Sessions begun.
    pub sessions: u64,
    /// Pages asked for.
    pub pages: u64,
    /// From a page's request to its last byte.
    pub page_time: Quantiles,
    /// What a source was asked for and how it met it.
    pub offer: Offer,
    /// When the first flow may start and the last may end.
    pub window: (Instant, Instant),
    /// Opinion scores: how many and their sum.
    pub scores: (u64, f64),
    /// Players that showed anything.
    pub players: Players,
}

/// What rates are made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inside {
    /// What transfers of a source put on the wire by arithmetic.
    pub planned: WireBytes,
    /// What hosts put on the wire.
    pub sent: WireBytes,
    /// Payload that receivers got.
    pub delivered: u64,
}

/// Totals of video players.
#[derive(Clone, Copy, Debug, Default)]
pub struct Players {
    /// How many there were.
    pub count: u64,
    /// Sum of the start-up delays of those that played.
    pub startup: Duration,
    /// How many played.
    pub played: u64,
    /// Time spent standing still.
    pub rebuffering: Duration,
    /// How often.
    pub rebufferings: u64,
    /// Sum of the mean rates.
    pub bitrate: Rate,
    /// Changes of rate.
    pub switches: u64,
}

impl Group {
    /// Of flows that start within `window`; none has started.
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
            sent_packets: 0,
            retransmitted_packets: 0,
            lost_packets: 0,
            timeouts: 0,
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

    /// An edge of the measured window passes.
    pub fn mark(&mut self, edge: Edge) {
        match edge {
            Edge::From => self.marks.0 = self.planned,
            Edge::Until => self.marks.1 = Some(self.planned),
        }
    }

    /// Nothing more will happen. `began`: the measured window did.
    pub fn close(&mut self, began: bool) {
        let until = self.marks.1.unwrap_or(self.planned);
        if began {
            self.inside.planned = until - self.marks.0;
        }
    }

    /// A flow starts that will carry `total` bytes; `None`: without end, or not known yet.
    pub fn start(&mut self, total: Option<u64>) {
        self.flows += 1;
        self.alive += 1;
        self.peak = self.peak.max(self.alive);
        self.offered = self.offered.saturating_add(total.unwrap_or(0));
    }

    /// Takes a flow in that is over.
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
        self.sent_packets += flow.sent_packets;
        self.retransmitted_packets += flow.retransmitted_packets;
        self.lost_packets += flow.lost_packets;
        self.timeouts += flow.timeouts;
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

//! The progress of a run, and what it produced.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use gargalo_units::{Bytes, Duration, Instant, Rate};

use crate::group::Group;
use crate::result::FlowResult;
use crate::routing::{DirectionId, NodeId};
use crate::samples::{FlowSample, LinkResult, Samples};

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Flows are being created; virtual time has not started.
    Building,
    /// Virtual time advances.
    Running,
    /// Results are being written.
    Writing,
}

impl Phase {
    /// The phase in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Building => "building",
            Self::Running => "running",
            Self::Writing => "writing",
        }
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The current phase.
    pub phase: Phase,
    /// Share of the phase that is done, 0 to 1.
    pub fraction: f64,
    /// Virtual time that was reached.
    pub now: Instant,
    /// Virtual time at which the run ends.
    pub end: Instant,
    /// Packets sent by hosts.
    pub packets: u64,
    /// Events handled by the engine.
    pub events: u64,
    /// Bytes of memory that samples and events take.
    pub recorded: u64,
    /// In real time: samples of flows since the last call.
    pub samples: &'a [FlowSample],
}

impl Progress<'_> {
    /// The progress at the beginning of a phase of a run that ends at `end`.
    pub const fn begin(phase: Phase, end: Instant) -> Self {
        Self {
            phase,
            fraction: 0.0,
            now: Instant::ZERO,
            end,
            packets: 0,
            events: 0,
            recorded: 0,
            samples: &[],
        }
    }
}

/// A callback that receives the progress of a run and may stop it.
pub type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// What a run produced.
#[derive(Debug)]
pub struct Outcome {
    /// Every flow that has a row, in the order of identifiers.
    pub flows: Vec<FlowResult>,
    /// Totals of flows that are counted in groups, in the order of their declaration.
    pub groups: Vec<Group>,
    /// Every link direction: `up` then `down`, in the order of the links.
    pub links: Vec<LinkResult>,
    /// The link directions from a host to another on a path ([`FlowSpec::path`](crate::FlowSpec::path)), as far as
    /// flows took them; empty in the lab.
    pub routes: BTreeMap<(NodeId, NodeId, u8), Vec<DirectionId>>,
    /// Samples of flows, subflows and links, events, gauges and datagrams, as far as they were recorded.
    pub samples: Samples,
    /// Senders that still existed when the run ended, in their state at that time: samples of flows that have a row
    /// and of their subflows, whether or not these were recorded (kernel flows in the lab: the last sample).
    pub last: Samples,
    /// Virtual time reached.
    pub end: Instant,
    /// The part of the measured window that the run covered; `None`: no window is set.
    pub measured: Option<(Instant, Instant)>,
    /// Packets sent by hosts.
    pub packets: u64,
    /// Events handled by the simulator; in the lab, arrivals of packets at the ends of links.
    pub events: u64,
    /// Most flows alive at once.
    pub peak_flows: usize,
    /// The caller stopped the run before its end.
    pub interrupted: bool,
}

impl Outcome {
    /// The window over which all sums of rates are taken: the requested one as far as the run covered it, or the time
    /// from the earliest start of a flow to the latest end.
    pub fn window(&self) -> (Instant, Instant) {
        let whole = || {
            let from = self.flows.iter().map(|f| f.start).min();
            let until = self.flows.iter().map(|f| f.end).max();
            (from.unwrap_or(Instant::ZERO), until.unwrap_or(self.end))
        };
        self.measured.unwrap_or_else(whole)
    }

    /// How long something that lasted from `start` to `end` was inside the requested window; `None`: never.
    pub fn active(&self, start: Instant, end: Instant) -> Option<Duration> {
        let Some((from, until)) = self.measured else {
            return Some(end.saturating_since(start));
        };
        let active = end.min(until).saturating_since(start.max(from));
        (!active.is_zero()).then_some(active)
    }

    /// Delivered data over the time that a flow was active in the window; `None`: it was not.
    pub fn goodput(&self, flow: &FlowResult) -> Option<Rate> {
        let active = self.active(flow.start, flow.end)?;
        Some(Bytes::new(flow.inside.delivered) / active)
    }

    /// Sent payload, likewise; `None` also if the sender does not report it.
    pub fn throughput(&self, flow: &FlowResult) -> Option<Rate> {
        let active = self.active(flow.start, flow.end)?;
        let sent = flow.inside.sender.sent_bytes.get()?;
        Some(Bytes::new(sent) / active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, result};
    use crate::window::Counts;

    /// A run of ten seconds with a flow from 2 s to 6 s and one from 4 s to 9 s, each of which delivered and sent
    /// 1000 bytes.
    fn outcome(measured: Option<(Instant, Instant)>) -> Outcome {
        let flow = |start, end| {
            let mut inside = Counts {
                delivered: 1000,
                ..Counts::default()
            };
            inside.sender.sent_bytes = 2000.into();
            FlowResult {
                start: at(start),
                end: at(end),
                inside,
                ..result()
            }
        };
        Outcome {
            flows: vec![flow(2000, 6000), flow(4000, 9000)],
            groups: Vec::new(),
            links: Vec::new(),
            routes: BTreeMap::new(),
            samples: Samples::default(),
            last: Samples::default(),
            end: at(10_000),
            measured,
            packets: 0,
            events: 0,
            peak_flows: 2,
            interrupted: false,
        }
    }

    #[test]
    fn a_phase_begins_with_nothing_done() {
        let phases = [Phase::Building, Phase::Running, Phase::Writing];
        assert_eq!(phases.map(Phase::name), ["building", "running", "writing"]);
        let begin = Progress::begin(Phase::Writing, at(9));
        assert_eq!(
            (begin.phase, begin.end, begin.now),
            (Phase::Writing, at(9), at(0))
        );
        assert_eq!((begin.fraction, begin.packets, begin.events), (0.0, 0, 0));
    }

    #[test]
    fn without_a_window_a_rate_is_over_the_time_of_the_flow() {
        let mut run = outcome(None);
        assert_eq!(run.window(), (at(2000), at(9000)));
        let [first, second] = [0, 1].map(|i| run.flows[i].clone());
        assert_eq!(run.goodput(&first), Some(Rate::from_bps(2000)));
        assert_eq!(run.throughput(&second), Some(Rate::from_bps(3200)));
        run.flows.clear();
        assert_eq!(run.window(), (Instant::ZERO, at(10_000)));
    }

    #[test]
    fn a_rate_is_over_the_part_of_the_window_in_which_the_flow_was_active() {
        let run = outcome(Some((at(5000), at(7000))));
        assert_eq!(run.window(), (at(5000), at(7000)));
        let [first, second] = [0, 1].map(|i| &run.flows[i]);
        assert_eq!(run.active(at(2000), at(6000)), Some(Duration::from_secs(1)));
        assert_eq!(run.goodput(first), Some(Rate::from_bps(8000)));
        assert_eq!(run.throughput(second), Some(Rate::from_bps(8000)));
        for never in [(0, 5000), (7000, 8000), (8000, 9000)] {
            assert_eq!(run.active(at(never.0), at(never.1)), None);
        }
    }
}

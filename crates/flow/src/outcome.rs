//! How far a run is, and what it produced.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use gargalo_units::Instant;

use crate::group::Group;
use crate::result::FlowResult;
use crate::samples::{LinkResult, Samples};
use crate::topology::{DirectionId, NodeId};

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Flows are being made; virtual time has not begun.
    Building,
    /// Virtual time passes.
    Running,
    /// Results are being written.
    Writing,
}

impl Phase {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Building => "building",
            Self::Running => "running",
            Self::Writing => "writing",
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Share of the phase that is done, 0 to 1.
    pub fraction: f64,
    /// Virtual time.
    pub now: Instant,
    /// Virtual end.
    pub end: Instant,
    /// Packets sent by hosts.
    pub packets: u64,
    /// Events handled.
    pub events: u64,
    /// Bytes of memory that samples and events take.
    pub recorded: u64,
}

impl Progress {
    /// At the beginning of a phase of a run that ends at `end`.
    pub const fn begin(phase: Phase, end: Instant) -> Self {
        Self {
            phase,
            fraction: 0.0,
            now: Instant::ZERO,
            end,
            packets: 0,
            events: 0,
            recorded: 0,
        }
    }
}

/// Is told how far a run is, and may stop it.
pub type Watch<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// What a run produced.
#[derive(Debug)]
pub struct Outcome {
    /// Every flow that has a row, in the order of identifiers.
    pub flows: Vec<FlowResult>,
    /// Totals of flows that are counted together, in the order of their declaration.
    pub groups: Vec<Group>,
    /// Every link direction: `up` then `down`, in the order of the links.
    pub links: Vec<LinkResult>,
    /// The link directions that packets of a pair of hosts take, where there is only one way; not in the lab.
    pub routes: BTreeMap<(NodeId, NodeId), Vec<DirectionId>>,
    /// Sampled tables.
    pub samples: Samples,
    /// Senders that were still there when the run ended, as they were then: samples of flows that have a row and of
    /// their subflows, whether or not these were to be recorded (of the kernel's flows in the lab: those that were, last).
    pub last: Samples,
    /// Virtual time reached.
    pub end: Instant,
    /// The part of the measured window that the run had; `None`: that is not set.
    pub measured: Option<(Instant, Instant)>,
    /// Packets sent by hosts.
    pub packets: u64,
    /// Events handled.
    pub events: u64,
    /// Most flows alive at once.
    pub peak_flows: usize,
    /// The caller stopped the run before its end.
    pub interrupted: bool,
}

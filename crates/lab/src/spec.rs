//! What a run in real time is asked to do; values without any system behind them.

use std::path::PathBuf;
use std::sync::Arc;

use gargalo_device::Choice;
use gargalo_flow::{CaptureSpec, FlowSpec, GeneratorSpec, Topology};
use gargalo_units::{Duration, Instant};

use crate::multipath::MultipathSpec;

/// Whose stack a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// Ours, in this process.
    #[default]
    Gargalo,
    /// The kernel's, in a namespace of its own.
    Kernel {
        /// Congestion control of programs that do not choose one.
        congestion: Option<String>,
        /// Settings under `/proc/sys/net`: names with dots or slashes, and values.
        settings: Vec<(String, String)>,
    },
}

/// What a run in real time needs.
#[derive(Clone, Debug)]
pub struct LabSpec {
    /// Nodes and links.
    pub topology: Topology,
    /// The stack of every node, in their order; of no account for routers.
    pub stacks: Vec<Stack>,
    /// Flows.
    pub flows: Vec<FlowSpec>,
    /// Flows that come and go, and totals of those that are counted together.
    pub population: Population,
    /// Programs.
    pub commands: Vec<CommandSpec>,
    /// Seed of random streams: loss, jitter, and our stack's choices.
    pub seed: u64,
    /// Length of the run.
    pub end: Instant,
    /// The window in which rates, ratios and distributions are measured; `None`: all of the run.
    pub measure: Option<(Instant, Instant)>,
    /// Carry a pattern and compare it at the receiver.
    pub verify: bool,
    /// Time between samples; `None`: no samples.
    pub interval: Option<Duration>,
    /// Sample flows.
    pub sample_flows: bool,
    /// Sample links.
    pub sample_links: bool,
    /// Look into congestion controls over TCP at hosts with our stack.
    pub gauges: bool,
    /// Keep protocol events of hosts with our stack.
    pub events: bool,
    /// Packet captures.
    pub captures: Option<CaptureSpec>,
    /// How the forwarding loop waits.
    pub tuning: Tuning,
    /// How devices are made.
    pub devices: Choice,
    /// Folder for the qlog traces of QUIC flows that have a row.
    pub qlog: Option<PathBuf>,
    /// Directory for what programs print.
    pub directory: PathBuf,
    /// Multipath TCP.
    pub multipath: MultipathSpec,
}

/// A program to be run on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Index of the host.
    pub host: u32,
    /// A line for the shell.
    pub run: String,
    /// When it starts.
    pub start: Instant,
    /// The run does not wait for it; it is ended with the run.
    pub background: bool,
}

/// How the loop waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Does not sleep when the next event is nearer than this: costs a core, saves wake-ups.
    pub busy_poll: Duration,
    /// Runs on this processor only.
    pub cpu: Option<usize>,
}

/// What comes and goes in a run.
#[derive(Clone, Debug, Default)]
pub struct Population {
    /// Flows that are counted together: label, and the window in which they start.
    pub groups: Vec<(Arc<str>, (Instant, Instant))>,
    /// Sources of flows.
    pub sources: Vec<GeneratorSpec>,
    /// Flows that arrive at random, or are counted in a group.
    pub flows: Vec<FlowSpec>,
}

impl Population {
    /// Nothing comes or goes.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.flows.is_empty()
    }

    /// The hosts between which flows come and go.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let sources = self.sources.iter().flat_map(|s| s.pairs.iter().copied());
        sources.chain(self.flows.iter().map(|f| (f.from, f.to)))
    }
}

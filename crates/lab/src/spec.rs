//! The specification of a run in real time; plain values, available on every system.

use std::path::PathBuf;
use std::sync::Arc;

use gargalo_device::Choice;
use gargalo_flow::{CaptureSpec, FlowSpec, GeneratorSpec, Topology};
use gargalo_units::{Duration, Instant};

use crate::multipath::MultipathSpec;

/// The network stack of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// Our stack, in this process.
    #[default]
    Gargalo,
    /// The kernel's stack, in a namespace of its own.
    Kernel {
        /// Congestion control of programs that do not choose one.
        congestion: Option<String>,
        /// Settings under `/proc/sys/net`: names with dots or slashes, and values.
        settings: Vec<(String, String)>,
    },
}

/// The specification of a run in real time.
#[derive(Clone, Debug)]
pub struct LabSpec {
    /// Nodes and links.
    pub topology: Topology,
    /// The stack of every node, in their order; ignored for routers.
    pub stacks: Vec<Stack>,
    /// Flows that start at a given instant and are in no group.
    pub flows: Vec<FlowSpec>,
    /// Flows that start and end during the run, and totals of those that are counted together.
    pub population: Population,
    /// Programs that run on hosts.
    pub commands: Vec<CommandSpec>,
    /// Seed of random streams: loss, jitter, and our stack's choices.
    pub seed: u64,
    /// Length of the run.
    pub end: Instant,
    /// The window in which rates, ratios and distributions are measured; `None`: all of the run.
    pub measure: Option<(Instant, Instant)>,
    /// Carry a known pattern and compare it at the receiver.
    pub verify: bool,
    /// Sampling interval; `None`: no samples.
    pub interval: Option<Duration>,
    /// Sample the state of flows, at `interval`.
    pub sample_flows: bool,
    /// Sample the state of link directions, at `interval`.
    pub sample_links: bool,
    /// Record internal quantities of congestion controls over TCP at hosts with our stack.
    pub gauges: bool,
    /// Record protocol events of hosts with our stack.
    pub events: bool,
    /// Record every datagram of flows over UDP that arrives.
    pub datagrams: bool,
    /// Links whose packets are captured, and the file; `None`: no capture.
    pub captures: Option<CaptureSpec>,
    /// How the forwarding loop waits.
    pub tuning: Tuning,
    /// The kind of device.
    pub devices: Choice,
    /// Folder for the qlog traces of QUIC flows that have a row.
    pub qlog: Option<PathBuf>,
    /// Directory for the output of programs.
    pub directory: PathBuf,
    /// Configuration of the kernel's Multipath TCP.
    pub multipath: MultipathSpec,
}

/// A program to run on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Index of the host.
    pub host: u32,
    /// A command line for the shell.
    pub run: String,
    /// When it starts.
    pub start: Instant,
    /// The run does not wait for it; it is ended with the run.
    pub background: bool,
}

/// How the forwarding loop waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// It does not sleep when the next event is nearer than this: this uses a core, and saves wake-ups.
    pub busy_poll: Duration,
    /// It runs on this processor only.
    pub cpu: Option<usize>,
}

/// Flows that start and end during a run.
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
    /// Whether there are no such flows.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.flows.is_empty()
    }

    /// The pairs of hosts of these flows.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let sources = self.sources.iter().flat_map(|s| s.pairs.iter().copied());
        sources.chain(self.flows.iter().map(|f| (f.from, f.to)))
    }
}

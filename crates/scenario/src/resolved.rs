//! The resolved scenario: one graph, one list of flows, every default filled in.

use std::sync::Arc;

pub use crate::model::{Record, Tcp};
pub use gargalo_flow::{AddressChange, LinkSpec as Link, Node};
use gargalo_lab::{CommandSpec, Stack, Tuning};
use gargalo_settings::{Json, Setting};
use gargalo_units::{Duration, Instant, Rate};
use gargalo_workload::Workload;
use gargalo_workload::plan::Demand;
use serde_json::json;

/// A validated scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name in results.
    pub name: String,
    /// Description of the scenario; may be empty.
    pub description: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Length of the run.
    pub duration: Duration,
    /// Kind of topology as written, like `dumbbell`.
    pub topology: &'static str,
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Links between nodes.
    pub links: Vec<Link>,
    /// Every flow; copies are separate, arrivals and sources are one template.
    pub flows: Vec<Flow>,
    /// Groups of flows that are counted together.
    pub groups: Vec<Group>,
    /// What is recorded.
    pub record: Record,
    /// The measured window; `None`: the whole run.
    pub measure: Option<(Instant, Instant)>,
    /// Settings that only the lab has.
    pub lab: Lab,
    /// The scenario in the form of a scenario file, with every default written out: parsing it gives this scenario
    /// again.
    pub document: Json,
}

/// Settings that only the lab has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lab {
    /// The stack of every node, in their order.
    pub stacks: Vec<Stack>,
    /// Programs that run on hosts.
    pub commands: Vec<CommandSpec>,
    /// How the forwarding loop waits.
    pub tuning: Tuning,
    /// Several segments may pass in one system call.
    pub offload: bool,
}

/// A flow, or the template of many if `arrivals` is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Identifier: position in [`Scenario::flows`].
    pub id: u64,
    /// Name in results; copies share it.
    pub label: Arc<str>,
    /// The label was given.
    pub is_labelled: bool,
    /// Index of the node that opens the connection.
    pub from: usize,
    /// Index of the other node.
    pub to: usize,
    /// Number of the path that it takes in both directions, as in [`gargalo_flow::FlowSpec::path`].
    pub path: u8,
    /// When it starts, or arrivals begin.
    pub start: Instant,
    /// Upper limit of the start jitter, which the seed determines; zero: none.
    pub start_jitter: Duration,
    /// When its application stops; `None`: at the end of the run.
    pub stop: Option<Instant>,
    /// How data is carried.
    pub transport: Transport,
    /// The traffic: what the applications at both ends do. Copies share it.
    pub workload: Arc<Workload>,
    /// Mean time between two starts of a Poisson process; `None`: one flow.
    pub arrivals: Option<Duration>,
    /// The plan of a source of flows; `None`: not a source.
    pub source: Option<Source>,
    /// Index of the group in which it is counted.
    pub group: Option<usize>,
    /// It has a row in the tables, samples and events.
    pub rows: bool,
}

impl Flow {
    /// The node that sends the bulk of the data.
    pub fn sender(&self) -> usize {
        if self.is_download() {
            self.to
        } else {
            self.from
        }
    }

    /// Whether that is the node at `to`.
    pub fn is_download(&self) -> bool {
        self.workload.is_asked_for() || matches!(*self.workload, Workload::Request(_))
    }
}

/// A source of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Pairs of hosts, the one with the data first.
    pub pairs: Vec<(usize, usize)>,
    /// The amount of traffic that its transfers add up to.
    pub demand: Demand,
}

/// Flows that are counted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name in results.
    pub label: Arc<str>,
    /// Kind of workload.
    pub workload: &'static str,
    /// Name of the congestion control; empty over UDP.
    pub congestion: String,
    /// When the first flow may start and the last may end.
    pub window: (Instant, Instant),
    /// The link direction for which a load was requested.
    pub loaded: Option<Loaded>,
}

/// A load requested on a link direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// Index of the link.
    pub link: usize,
    /// The down direction, not up.
    pub down: bool,
    /// Bits on the wire per second, of this group.
    pub asked: Rate,
    /// The total load as a share of the capacity, if it was written so.
    pub share: Option<f64>,
    /// Whether acknowledgements of the opposite direction are part of the load.
    pub rest: Rest,
}

/// Acknowledgements and requests of transfers in the opposite direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Part of the load.
    Included,
    /// In addition to it.
    Extra,
}

/// How data is carried.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// TCP, with its options.
    Tcp(Arc<Tcp>),
    /// Multipath TCP, with its options.
    Mptcp(Arc<Mptcp>),
    /// QUIC, with its options.
    Quic(Arc<gargalo_quic::Config>),
    /// UDP, which has no options.
    Udp,
}

impl Transport {
    /// The form in a scenario file, with every option.
    pub fn write(&self) -> Json {
        match self {
            Self::Tcp(tcp) => json!({ "tcp": tcp.write() }),
            Self::Mptcp(mptcp) => json!({ "mptcp": mptcp.spec.write() }),
            Self::Quic(quic) => json!({ "quic": quic.write() }),
            Self::Udp => json!({ "udp": {} }),
        }
    }

    /// Whether two flows share this value, as copies do.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp(a), Self::Tcp(b)) => Arc::ptr_eq(a, b),
            (Self::Mptcp(a), Self::Mptcp(b)) => Arc::ptr_eq(a, b),
            (Self::Quic(a), Self::Quic(b)) => Arc::ptr_eq(a, b),
            (Self::Udp, Self::Udp) => true,
            _ => false,
        }
    }

    /// The label of a flow that was given none.
    pub fn label(&self) -> String {
        let congestion = self.congestion();
        match self {
            Self::Tcp(_) => congestion.to_owned(),
            Self::Mptcp(_) => format!("mptcp {congestion}"),
            Self::Quic(_) => format!("quic {congestion}"),
            Self::Udp => "udp".to_owned(),
        }
    }

    /// Name of the congestion control; empty over UDP.
    pub fn congestion(&self) -> &str {
        match self {
            Self::Tcp(tcp) => &tcp.congestion.name,
            Self::Mptcp(mptcp) => &mptcp.spec.tcp.congestion.name,
            Self::Quic(quic) => &quic.congestion.name,
            Self::Udp => "",
        }
    }
}

/// Multipath TCP with all options.
#[derive(Clone, Debug, PartialEq)]
pub struct Mptcp {
    /// The settings as written; the path manager is set when the hosts of the flow are known.
    pub spec: crate::model::Mptcp,
    /// Indices of links whose addresses take part from the beginning; `None`: all.
    pub links: Option<Vec<usize>>,
    /// Indices of links whose subflows are backups.
    pub backups: Vec<usize>,
    /// Indices of routers for the path manager `binder`.
    pub gateways: Vec<usize>,
    /// Addresses that come and go.
    pub changes: Vec<AddressChange>,
}

impl Scenario {
    /// Index of the node of this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.name == name)
    }

    /// Index of the link of this name.
    pub fn link(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|l| l.name == name)
    }
}

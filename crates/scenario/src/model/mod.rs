//! The scenario as written: the one definition from which parsing, schema and reference follow.
//!
//! The doc comments here are the user's documentation of each key.

mod distribution;
mod flow;
mod lab;
mod link;
mod media;
mod mptcp;
mod quic;
mod source;
mod tls;
mod transport;
mod written;

use std::collections::BTreeMap;

use gargalo_units::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

pub use distribution::{
    CountMap, CountPareto, CountSpec, SizeHybrid, SizeLogNormal, SizeMap, SizePareto, SizeSpec,
    TimeMap, TimePareto, TimeSpec,
};
pub use flow::{
    Arrivals, Bulk, Cbr, CbrRate, CbrRateMap, Flow, OnOff, OrderName, PeriodMap, PeriodSpec,
    RecordName, Request, Workload,
};
pub use lab::{Command, Host, Lab, StackName};
pub use link::{GraphLink, Link};
pub use media::{
    ByBuffer, ByThroughput, Codec, Media, PlayoutName, PlayoutSpec, SelectionMap, SelectionName,
    SelectionSpec, Video, Voice,
};
pub use mptcp::{AddressChange, DataNumbersName, EndName, Mptcp, PathManagerName, SchedulerName};
pub(crate) use quic::OWN;
pub use quic::{
    AckMap, ChangeName, CryptoName, HandshakeName, MigrationMap, Quic, QuicCongestion,
    QuicProfileName,
};
pub use source::{Ftp, Mix, MixDirection, Shares, Web, WebModel};
pub use tls::{TlsMap, TlsSpec, TlsVersion};
pub use transport::{
    Congestion, DelayedAck, EcnName, KeepAlive, PacingMap, PacingName, PacingSpec, ProfileName,
    ReceiverName, RecoveryName, Switch, Tcp, Transport, Udp,
};

pub use written::Written;

use crate::quantity::{Quantity, StartJitter};

/// A network, the flows on it and how long to watch them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name in results. Default: the file's name without its extension.
    pub name: Option<String>,
    /// What the scenario shows, in a sentence.
    pub description: Option<String>,
    /// Seed of every random stream; the same seed gives the same results, byte for byte.
    #[schemars(extend("default" = 1))]
    pub seed: Option<u64>,
    /// Length of the run.
    pub duration: Quantity<Duration>,
    /// Hosts, routers and links.
    pub topology: Topology,
    /// What happens on the network, in the order of identifiers.
    #[serde(default)]
    #[schemars(extend("default" = []))]
    pub flows: Vec<Flow>,
    /// Hosts that are special, by name.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub hosts: BTreeMap<String, Host>,
    /// Programs, in the lab.
    #[serde(default)]
    #[schemars(extend("default" = []))]
    pub commands: Vec<Command>,
    /// How the lab works.
    pub lab: Option<Lab>,
    /// What is recorded.
    pub record: Option<Record>,
    /// Flows start by less than this later than they say, each by another time that follows from the seed and the
    /// flow, so that repeats with other seeds are other runs. Where the network is the same at all times, flows move
    /// against each other only: the first of them keeps its time. Where rates or delays have steps or traces, or
    /// there are outages, all move. As time, or in `RTT`, round trips on the flow's empty path. At most half of the
    /// time that a flow has. Flows that start at random anyway (`arrivals`, web, ftp, mix) are left alone.
    /// Sweeps with repeats set it to 1RTT.
    #[schemars(extend("default" = "0s"))]
    pub start_jitter: Option<Quantity<StartJitter>>,
    /// The part of the run that figures are of. Default: all of it.
    pub measure: Option<Measure>,
}

/// Hosts, routers and links: one of the following.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Topology {
    /// Two hosts, `client` and `server`, and one link between them, named `link`.
    Simple(Simple),
    /// Hosts `left0`, `left1`, … and `right0`, `right1`, … that share one bottleneck.
    Dumbbell(Dumbbell),
    /// A chain of bottlenecks that a long flow shares with cross traffic on each.
    ParkingLot(ParkingLot),
    /// Two hosts, `client` and `server`, joined by several disjoint paths `path0`, `path1`, ….
    Multipath(Multipath),
    /// Named nodes and links; packets take the path with the fewest links.
    Graph(Graph),
}

/// Two hosts, `client` and `server`, and one link between them, named `link`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Simple {
    /// The link; up is from client to server.
    pub link: Written<Link>,
}

/// Hosts `left0`, `left1`, … and `right0`, `right1`, … that share one bottleneck.
///
/// Links: `left0-routerL`, `bottleneck`, `routerR-right0` and so on; up is from left to right.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on each side.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 1))]
    pub pairs: Option<u32>,
    /// The links between hosts and routers: one for all, or a list with one for each pair (used on both
    /// sides). Default: perfect wires.
    pub access: Option<OneOrMany>,
    /// The link between the two routers.
    pub bottleneck: Written<Link>,
}

/// A chain of bottlenecks that a long flow shares with cross traffic on each.
///
/// Bottleneck i leads from `router`i to `router`i+1 and is named `bottleneck`i. Host `left` is at the
/// first router, `right` at the last; host `cross`i enters before bottleneck i and host `sink`i is
/// right behind it, so that a flow from `cross*` to `sink*` loads every bottleneck once. Access links
/// are named after their ends, like `cross0-router0` and `router1-sink0`; up is from left to right.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkingLot {
    /// Number of bottlenecks.
    #[schemars(range(min = 1, max = 1000))]
    pub hops: u32,
    /// The links between hosts and routers. Default: perfect wires.
    pub access: Option<Written<Link>>,
    /// The links between routers: one for all, or a list with one for each hop.
    pub bottleneck: OneOrMany,
}

/// Two hosts, `client` and `server`, joined by several disjoint paths `path0`, `path1`, ….
///
/// A transport with one path uses the first.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multipath {
    /// The paths; up is from client to server.
    #[schemars(length(min = 1, max = 256))]
    pub paths: Vec<Written<Link>>,
}

/// Named nodes and links; packets take the path with the fewest links.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Names of all nodes.
    #[schemars(length(min = 2, max = 20_000))]
    pub nodes: Vec<String>,
    /// The nodes that never forward packets of others. Default: those with only one link.
    pub hosts: Option<Vec<String>>,
    /// The links.
    #[schemars(length(min = 1, max = 40_000))]
    pub links: Vec<Written<GraphLink>>,
}

/// One link specification for all, or a list with one for each.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One for each.
    Many(#[schemars(length(max = 10_000))] Vec<Written<Link>>),
    /// The same for all.
    One(Written<Link>),
}

/// The part of the run that figures are of: rates, ratios and distributions (goodput, utilization, loss,
/// Jain's index, queueing delays, round-trip times). Counts, samples and completion times are of all of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// When it begins: what is before is warm-up.
    #[schemars(extend("default" = "0s"))]
    pub from: Option<Quantity<Duration>>,
    /// When it ends. Default: with the run.
    pub until: Option<Quantity<Duration>>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CaptureEndsName {
    /// Where up begins: the client's, the left one.
    From,
    /// Where up ends: the server's, the right one.
    To,
    /// Both, each as an interface of its own.
    Both,
}

/// What is recorded besides the summary.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Time between two samples of flows and links.
    #[schemars(extend("default" = "100ms"))]
    pub interval: Option<Quantity<Duration>>,
    /// Sample the state of flows: windows, round-trip times, rates.
    #[schemars(extend("default" = true))]
    pub flows: Option<bool>,
    /// Sample the state of links: queues, drops, marks.
    #[schemars(extend("default" = true))]
    pub links: Option<bool>,
    /// Record protocol events: losses, timeouts, recoveries.
    #[schemars(extend("default" = true))]
    pub events: Option<bool>,
    /// Names of links whose packets are captured (pcapng); `*` at the end of a name stands for anything.
    #[schemars(extend("default" = []))]
    pub captures: Option<Vec<String>>,
    /// At which end of these links. A program that follows connections takes what passes both for
    /// repetitions.
    #[schemars(extend("default" = "from"))]
    pub capture_ends: Option<CaptureEndsName>,
    /// Keep whole packets. Otherwise only headers are kept (with the true length), and whole QUIC datagrams
    /// of the simulator, which could not be decrypted otherwise.
    #[schemars(extend("default" = false))]
    pub capture_payload: Option<bool>,
    /// Record every decision of MPTCP schedulers among the events: one for each segment.
    #[schemars(extend("default" = false))]
    pub decisions: Option<bool>,
    /// Record the internal quantities of the congestion control of TCP flows, in the simulator: with each
    /// sample, and whenever its phase changes or the sender loses, recovers or finds a loss spurious.
    #[schemars(extend("default" = false))]
    pub gauges: Option<bool>,
    /// Write a qlog trace (`*.sqlog`) of each end of each QUIC flow.
    #[schemars(extend("default" = false))]
    pub qlog: Option<bool>,
    /// Carry real bytes and compare them at the receiver (slow).
    #[schemars(extend("default" = false))]
    pub verify: Option<bool>,
}

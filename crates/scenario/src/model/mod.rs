//! The scenario as written: the one definition from which parsing, schema and reference follow.
//!
//! The doc comments here are the user's documentation of each key.

mod expect;
mod flow;
mod lab;
mod link;
mod mptcp;
mod tcp;
mod transport;
mod written;

use std::collections::BTreeMap;

use gargalo_flow::CaptureEnds;
use gargalo_settings::{Error, Files, Json, Schemas, Setting, kinds, settings};
use gargalo_units::Duration;
use serde_json::json;

pub use expect::Expectation;
pub use flow::{Arrivals, Flow, RecordName};
pub use lab::{Command, Host, Lab, StackName};
pub use link::{GraphLink, Link};
pub use mptcp::{AddressChange, EndName, Mptcp};
pub use tcp::Tcp;
pub use transport::{Transport, Udp};
pub use written::Written;

use crate::quantity::StartJitter;

settings! {
    /// A network, the flows on it and how long to watch them.
    pub struct Scenario as "Scenario" {
        /// Name in results. Default: the file's name without its extension.
        name: Option<String> = None;
        /// What the scenario shows, in a sentence.
        description: Option<String> = None;
        /// Seed of every random stream; the same seed gives the same results, byte for byte.
        seed: u64 = 1, in 0..=i64::MAX as u64;
        /// Length of the run.
        duration: Duration;
        /// Hosts, routers and links.
        topology: Topology;
        /// What happens on the network, in the order of identifiers.
        flows: Vec<Flow> = Vec::new();
        /// Hosts that are special, by name.
        hosts: BTreeMap<String, Host> = BTreeMap::new();
        /// Programs, in the lab.
        commands: Vec<Command> = Vec::new();
        /// How the lab works.
        lab: Lab = Lab::default();
        /// What is recorded.
        record: Record = Record::default();
        /// Flows start by less than this later than they say, each by another time that follows from the seed and the
        /// flow, so that repeats with other seeds are other runs. Where the network is the same at all times, flows
        /// move against each other only: the first of them keeps its time. Where rates or delays have steps or traces,
        /// or there are outages, all move. As time, or in `RTT`, round trips on the flow's empty path. At most half of
        /// the time that a flow has. Flows that start at random anyway (`arrivals`, web, ftp, mix) are left alone.
        /// Sweeps with repeats set it to 1RTT.
        start_jitter: StartJitter = StartJitter::Time(Duration::ZERO);
        /// The part of the run that figures are of.
        measure: Measure = Measure::default();
        /// What a run has to show: `gargalo check` says whether it does. Runs are the same without it.
        expect: Vec<Expectation> = Vec::new();
    }
}

kinds! {
    /// Hosts, routers and links: one of the following.
    pub enum Topology as "Topology" {
        tables {
            /// Two hosts, `client` and `server`, and one link between them, named `link`.
            "simple" => Simple(Simple);
            /// Hosts `left0`, `left1`, … and `right0`, `right1`, … that share one bottleneck.
            "dumbbell" => Dumbbell(Dumbbell);
            /// A chain of bottlenecks that a long flow shares with cross traffic on each.
            "parking-lot" => ParkingLot(ParkingLot);
            /// Two hosts, `client` and `server`, joined by several disjoint paths `path0`, `path1`, ….
            "multipath" => Multipath(Multipath);
            /// Named nodes and links; packets take the path with the fewest links.
            "graph" => Graph(Graph);
        }
    }
}

settings! {
    /// Two hosts, `client` and `server`, and one link between them, named `link`.
    pub struct Simple as "Simple" {
        /// The link; up is from client to server.
        link: Link;
    }
}

settings! {
    /// Hosts `left0`, `left1`, … and `right0`, `right1`, … that share one bottleneck.
    ///
    /// Links: `left0-routerL`, `bottleneck`, `routerR-right0` and so on; up is from left to right.
    pub struct Dumbbell as "Dumbbell" {
        /// Hosts on each side.
        pairs: u32 = 1, in 1..=10_000;
        /// The links between hosts and routers: one for all, or a list with one for each pair (used on both
        /// sides). Default: perfect wires.
        access: Option<OneOrMany> = None;
        /// The link between the two routers.
        bottleneck: Link;
    }
}

settings! {
    /// A chain of bottlenecks that a long flow shares with cross traffic on each.
    ///
    /// Bottleneck i leads from `router`i to `router`i+1 and is named `bottleneck`i. Host `left` is at the
    /// first router, `right` at the last; with `groups` there are `left`g-i and `right`g-i for pair i of
    /// group g, so that `left0-*` and `right0-*` are the first group. Host `cross`i enters before bottleneck
    /// i and host `sink`i is right behind it, so that a flow from `cross*` to `sink*` loads every bottleneck
    /// once; with several pairs, hosts i + hops, i + 2 hops, … are at bottleneck i, too. Access links are
    /// named after their ends, like `cross0-router0` and `router1-sink0`; up is from left to right.
    pub struct ParkingLot as "ParkingLot" {
        /// Number of bottlenecks.
        hops: u32, in 1..=1000;
        /// The links between hosts and routers. Default: perfect wires.
        access: Option<Link> = None;
        /// The links between routers: one for all, or a list with one for each hop.
        bottleneck: OneOrMany;
        /// Hosts whose flows cross all bottlenecks, in groups that differ in their round trip. Default: the
        /// pair `left` and `right`.
        groups: Vec<ParkingLotGroup> = Vec::new(), items 0..=1000;
        /// Hosts whose flows cross one bottleneck.
        cross: ParkingLotCross = ParkingLotCross::default();
    }
}

settings! {
    /// Pairs of hosts at both ends of a parking lot.
    pub struct ParkingLotGroup: Copy as "ParkingLotGroup" {
        /// Number of pairs.
        pairs: u32 = 1, in 1..=10_000;
        /// Round trip between two hosts of a pair without queues. The access links share equally what the
        /// bottlenecks leave of it. Default: it follows from the delay of `access`.
        rtt: Option<Duration> = None;
    }
}

settings! {
    /// Pairs of hosts at each bottleneck of a parking lot.
    pub struct ParkingLotCross: Copy as "ParkingLotCross" {
        /// Number of pairs at each bottleneck.
        pairs: u32 = 1, in 1..=10_000;
        /// Round trip between two hosts of a pair without queues. The access links share equally what the
        /// bottleneck leaves of it. Default: it follows from the delay of `access`.
        rtt: Option<Duration> = None;
    }
}

settings! {
    /// Two hosts, `client` and `server`, joined by several disjoint paths `path0`, `path1`, ….
    ///
    /// A flow over a transport with one path takes the first, or the one that its `path` names.
    pub struct Multipath as "Multipath" {
        /// The paths; up is from client to server.
        paths: Vec<Link>, items 1..=256;
    }
}

settings! {
    /// Named nodes and links; packets take the path with the fewest links.
    pub struct Graph as "Graph" {
        /// Names of all nodes.
        nodes: Vec<String>, items 2..=20_000;
        /// The nodes that never forward packets of others. Default: those with only one link.
        hosts: Option<Vec<String>> = None;
        /// The links between these nodes.
        links: Vec<GraphLink>, items 1..=40_000;
    }
}

/// One link for all, or a list with one for each.
#[derive(Clone, Debug, PartialEq)]
pub enum OneOrMany {
    /// The same for all.
    One(Box<Link>),
    /// One for each.
    Many(Vec<Link>),
}

impl Setting for OneOrMany {
    fn schema(schemas: &mut Schemas) -> Json {
        let mut list = Vec::<Link>::schema(schemas);
        list["maxItems"] = 10_000.into();
        json!({ "anyOf": [Link::schema(schemas), list] })
    }
    fn read(json: &Json, files: &mut Files) -> Result<Self, Error> {
        match json.is_array() {
            true => Setting::read(json, files).map(Self::Many),
            false => Setting::read(json, files).map(Self::One),
        }
    }
    fn write(&self) -> Json {
        match self {
            Self::One(link) => link.write(),
            Self::Many(links) => links.write(),
        }
    }
}

settings! {
    /// The part of the run that figures are of: rates, ratios and distributions (goodput, utilization, loss,
    /// Jain's index, queueing delays, round-trip times). Counts, samples and completion times are of all of it.
    pub struct Measure: Copy as "Measure" {
        /// When it begins: what is before is warm-up.
        from: Duration = Duration::ZERO;
        /// When it ends. Default: with the run.
        until: Option<Duration> = None;
    }
}

settings! {
    /// What is recorded besides the summary.
    pub struct Record as "Record", checked by Record::possible {
        /// Time between two samples of flows and links.
        interval: Duration = Duration::from_millis(100);
        /// Sample the state of flows: windows, round-trip times, rates.
        flows: bool = true;
        /// Sample the state of links: queues, drops, marks.
        links: bool = true;
        /// Record protocol events: losses, timeouts, recoveries.
        events: bool = true;
        /// Names of links whose packets are captured (pcapng); `*` at the end of a name stands for anything.
        captures: Vec<String> = Vec::new();
        /// At which end of these links. A program that follows connections takes what passes both for
        /// repetitions.
        capture_ends: CaptureEnds = CaptureEnds::From;
        /// Keep whole packets. Otherwise only headers are kept (with the true length), and whole QUIC datagrams
        /// of the simulator, which could not be decrypted otherwise.
        capture_payload: bool = false;
        /// Record every decision of MPTCP schedulers among the events: one for each segment.
        decisions: bool = false;
        /// Record the internal quantities of the congestion control of TCP flows, and of QUIC flows with one path: with
        /// each sample, and whenever its phase changes or the sender loses, recovers or finds a loss spurious.
        gauges: bool = false;
        /// Record every datagram of flows over UDP that arrives, with its one-way delay.
        datagrams: bool = false;
        /// Write a qlog trace (`*.sqlog`) of each end of each QUIC flow.
        qlog: bool = false;
        /// Carry real bytes and compare them at the receiver (slow). With the profile `linux-6` they are written in
        /// super-segments, so that a small send buffer holds up to one more.
        verify: bool = false;
    }
}

impl Record {
    fn possible(&self) -> Result<(), Error> {
        if self.interval.is_zero() {
            let help = "to sample nothing, write `flows = false` and `links = false`";
            return Err(Error::of("interval", "interval is zero").help(help));
        }
        Ok(())
    }
}

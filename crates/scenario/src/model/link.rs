//! Links as written.

use gargalo_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::{Packets, Probability, Quantity, QueueSize};

/// Defines a table with the fields of a link direction and some more, so that each is written once.
macro_rules! link_table {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $t:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $t,)*
            /// How fast bytes leave: a rate, `"unlimited"`, steps over time or a recorded trace.
            #[schemars(extend("default" = "unlimited"))]
            pub rate: Option<RateSpec>,
            /// Propagation delay of one direction: constant, or steps over time.
            #[schemars(extend("default" = "0s"))]
            pub delay: Option<DelaySpec>,
            /// Random variation of the delay: half the width of a uniform distribution, or a table
            /// that names another one. Packets keep their order. Default: none.
            pub jitter: Option<JitterSpec>,
            /// Packets lost beside congestion: a probability, or a model. Default: none.
            pub loss: Option<LossSpec>,
            /// Spans of time in which every packet that comes is lost, like `[["10s", "15s"]]`.
            #[schemars(extend("default" = []))]
            pub outages: Option<Vec<(Quantity<Duration>, Quantity<Duration>)>>,
            /// Drops what comes faster than a rate, in front of the queue. Default: none.
            pub policer: Option<Policer>,
            /// A middlebox at the link's entrance that takes Multipath TCP options out of packets, as some
            /// firewalls do. Default: none.
            pub strip_mptcp: Option<StripSpec>,
            /// Packets that change places. Default: none.
            pub reorder: Option<Reorder>,
            /// Probability that a packet is sent twice.
            #[schemars(extend("default" = 0))]
            pub duplicate: Option<Quantity<Probability>>,
            /// Largest packet, IP header included; larger ones are dropped.
            #[schemars(extend("default" = "1500B"))]
            pub mtu: Option<Quantity<Bytes>>,
            /// Whether the queue marks ECN-capable packets instead of dropping them, where the queue's
            /// own table does not say. Default: as the queue does. Tail drop cannot mark.
            pub ecn: Option<bool>,
            /// The queue in front of the link: a name, or a table with its parameters.
            #[schemars(extend("default" = "droptail"))]
            pub queue: Option<QueueSpec>,
        }

        impl $name {
            /// The fields that both directions share.
            pub fn direction(&self) -> Direction {
                Direction {
                    rate: self.rate.clone(),
                    delay: self.delay.clone(),
                    jitter: self.jitter.clone(),
                    loss: self.loss.clone(),
                    outages: self.outages.clone(),
                    policer: self.policer.clone(),
                    strip_mptcp: self.strip_mptcp.clone(),
                    reorder: self.reorder.clone(),
                    duplicate: self.duplicate,
                    mtu: self.mtu,
                    ecn: self.ecn,
                    queue: self.queue.clone(),
                }
            }
        }
    };
}

link_table! {
    /// What one direction of a link has that the other has not.
    Direction {}
}

link_table! {
    /// A link. What is not said is perfect: unlimited rate, no delay, no loss.
    Link {
        /// Overrides for packets from the first end to the second (client to server, left to right).
        up: Option<Box<Direction>>,
        /// Overrides for packets from the second end to the first.
        down: Option<Box<Direction>>,
    }
}

link_table! {
    /// A link of a graph.
    GraphLink {
        /// One end: the name of a node.
        from: String,
        /// The other end.
        to: String,
        /// Name of the link. Default: `from-to`.
        name: Option<String>,
        /// Overrides for packets from `from` to `to`.
        up: Option<Box<Direction>>,
        /// Overrides for packets from `to` to `from`.
        down: Option<Box<Direction>>,
    }
}

/// A token bucket (RFC 2697) that drops what finds it empty.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which tokens come.
    pub rate: Quantity<Rate>,
    /// Size of the bucket, which is full at first; at least the MTU.
    pub burst: Quantity<Bytes>,
}

/// How fast bytes leave.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RateSpec {
    /// No limit: packets leave as they come.
    Unlimited(Unlimited),
    /// Always the same rate.
    Constant(Quantity<Rate>),
    /// A rate that changes.
    Varying(RateMap),
}

/// The word `unlimited`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Unlimited {
    /// No limit.
    Unlimited,
}

/// A rate that changes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RateMap {
    /// A packet-delivery trace in mahimahi's format; the path is relative to the scenario file.
    Trace(String),
    /// Pairs of an instant and the rate from then on; the first instant is 0s.
    Steps(#[schemars(length(min = 1, max = 100_000))] Vec<(Quantity<Duration>, Quantity<Rate>)>),
}

/// Propagation delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DelaySpec {
    /// Always the same.
    Constant(Quantity<Duration>),
    /// A delay that changes.
    Varying(DelayMap),
}

/// A delay that changes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DelayMap {
    /// Pairs of an instant and the delay from then on; the first instant is 0s.
    Steps(
        #[schemars(length(min = 1, max = 100_000))] Vec<(Quantity<Duration>, Quantity<Duration>)>,
    ),
}

/// Random variation of the delay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JitterSpec {
    /// Uniform, at most that much more or less.
    Uniform(Quantity<Duration>),
    /// With a distribution.
    Shaped(JitterMap),
}

/// Random variation of the delay, by its distribution.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterMap {
    /// Half the width of a uniform distribution, the standard deviation of the others.
    pub scale: Quantity<Duration>,
    /// Its shape; all have mean zero.
    #[schemars(extend("default" = "uniform"))]
    pub distribution: Option<Shape>,
}

/// Shape of the jitter.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Shape {
    /// Between minus and plus the scale.
    Uniform,
    /// The bell.
    Normal,
    /// A heavy right tail.
    Pareto,
}

/// Which packets lose their Multipath TCP options.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StripSpec {
    /// A kind of packets.
    Word(StripName),
    /// All from some point on.
    Later(StripMap),
}

/// A kind of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StripName {
    /// No packet.
    None,
    /// Every packet.
    All,
    /// SYNs and their answers: the connection begins as plain TCP.
    Syn,
    /// All but these.
    Rest,
}

/// All packets from some point on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripMap {
    /// So much payload has passed in this direction.
    pub after: Quantity<Bytes>,
}

/// Packets lost beside congestion.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LossSpec {
    /// Each packet independently.
    Independent(Quantity<Probability>),
    /// By a model.
    Model(LossMap),
}

/// Packets lost beside congestion, by a model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossMap {
    /// Each packet is lost with this probability.
    Independent(Quantity<Probability>),
    /// Every n-th packet is lost.
    Periodic(#[schemars(range(min = 1))] u64),
    /// Bursts: a two-state Markov chain.
    GilbertElliott(GilbertElliott),
}

/// A two-state Markov chain (Gilbert 1960, Elliott 1963), in the parameters of `tc`'s `gemodel`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability to go from good to bad, per packet.
    pub p: Quantity<Probability>,
    /// Probability to go from bad to good, per packet.
    pub r: Quantity<Probability>,
    /// Probability that a packet survives in the bad state.
    #[schemars(extend("default" = 0))]
    pub h: Option<Quantity<Probability>>,
    /// Probability that a packet survives in the good state.
    #[schemars(extend("default" = 1))]
    pub k: Option<Quantity<Probability>>,
}

/// Packets that change places.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Probability that a packet is displaced.
    pub probability: Quantity<Probability>,
    /// Only every n-th packet may be displaced.
    #[schemars(extend("default" = 1))]
    pub gap: Option<u32>,
    /// Probability that a decision repeats the last one.
    #[schemars(extend("default" = 0))]
    pub correlation: Option<Quantity<Probability>>,
    /// A displaced packet arrives that much later.
    pub late: Option<Quantity<Duration>>,
    /// A displaced packet arrives that much earlier. Default, if `late` is not given either: as early
    /// as can be, without any propagation delay (as netem does).
    pub early: Option<Quantity<Duration>>,
}

/// The queue in front of a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum QueueSpec {
    /// With its usual parameters.
    Named(QueueName),
    /// With parameters.
    Model(QueueMap),
}

/// A queueing discipline by name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum QueueName {
    /// First in, first out.
    Droptail,
    /// Random Early Detection.
    Red,
    /// RFC 8289.
    Codel,
    /// RFC 8290.
    FqCodel,
    /// RFC 8033.
    Pie,
    /// Marking above a threshold (RFC 8257).
    Step,
    /// The coupled dual queue of L4S (RFC 9332).
    Dualpi2,
}

/// A queueing discipline with its parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueMap {
    /// First in, first out; what does not fit is dropped. In packets (default: 1000 packets), bytes,
    /// time, or multiples of BDP: the link's rate (the highest of steps, the mean of a trace) times
    /// the base round-trip time of the longest route through the link that a flow takes.
    Droptail(Quantity<QueueSize>),
    /// Random Early Detection (Floyd and Jacobson 1993).
    Red(Red),
    /// Controlled Delay (RFC 8289).
    Codel(CoDel),
    /// A queue per flow with CoDel on each (RFC 8290).
    FqCodel(FqCoDel),
    /// Proportional Integral controller Enhanced (RFC 8033).
    Pie(Pie),
    /// Tail drop that marks above a threshold, for DCTCP (RFC 8257).
    Step(Step),
    /// The coupled dual queue of L4S (RFC 9332).
    Dualpi2(DualPi2),
}

/// Random Early Detection (Floyd and Jacobson 1993).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Packets that may wait.
    #[schemars(extend("default" = "1000 packets"))]
    pub limit: Option<Quantity<Packets>>,
    /// Average queue in packets below which nothing is dropped.
    #[schemars(range(min = 0), extend("default" = 5))]
    pub min_threshold: Option<f64>,
    /// Average queue in packets from which the probability is `max_probability`.
    #[schemars(range(min = 0), extend("default" = 15))]
    pub max_threshold: Option<f64>,
    /// Drop probability at `max_threshold`.
    #[schemars(extend("default" = 0.1))]
    pub max_probability: Option<Quantity<Probability>>,
    /// Weight of a new sample in the average.
    #[schemars(extend("default" = 0.002))]
    pub weight: Option<Quantity<Probability>>,
    /// Grow to probability 1 between once and twice `max_threshold`.
    #[schemars(extend("default" = true))]
    pub gentle: Option<bool>,
    /// Mark ECN-capable packets instead of dropping them.
    #[schemars(extend("default" = false))]
    pub ecn: Option<bool>,
}

/// Controlled Delay (RFC 8289).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoDel {
    /// Acceptable standing delay.
    #[schemars(extend("default" = "5ms"))]
    pub target: Option<Quantity<Duration>>,
    /// A worst-case round-trip time.
    #[schemars(extend("default" = "100ms"))]
    pub interval: Option<Quantity<Duration>>,
    /// Packets that may wait.
    #[schemars(extend("default" = "1000 packets"))]
    pub limit: Option<Quantity<Packets>>,
    /// Mark ECN-capable packets instead of dropping them.
    #[schemars(extend("default" = false))]
    pub ecn: Option<bool>,
    /// Mark every ECN-capable packet that waited longer. Default: none.
    pub ce_threshold: Option<Quantity<Duration>>,
}

/// A queue per flow with CoDel on each (RFC 8290).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FqCoDel {
    /// Queues that flows are hashed to.
    #[schemars(range(min = 1, max = 65_536), extend("default" = 1024))]
    pub flows: Option<u32>,
    /// Bytes a queue may send in its turn.
    #[schemars(extend("default" = "1514B"))]
    pub quantum: Option<Quantity<Bytes>>,
    /// Packets that may wait in all queues.
    #[schemars(extend("default" = "10240 packets"))]
    pub limit: Option<Quantity<Packets>>,
    /// Bytes that may wait in all queues.
    #[schemars(extend("default" = "32MiB"))]
    pub memory_limit: Option<Quantity<Bytes>>,
    /// Packets dropped at most at once from the fattest queue.
    #[schemars(extend("default" = "64 packets"))]
    pub drop_batch: Option<Quantity<Packets>>,
    /// Acceptable standing delay.
    #[schemars(extend("default" = "5ms"))]
    pub target: Option<Quantity<Duration>>,
    /// A worst-case round-trip time.
    #[schemars(extend("default" = "100ms"))]
    pub interval: Option<Quantity<Duration>>,
    /// Mark ECN-capable packets instead of dropping them.
    #[schemars(extend("default" = true))]
    pub ecn: Option<bool>,
    /// Mark every ECN-capable packet that waited longer. Default: none.
    pub ce_threshold: Option<Quantity<Duration>>,
}

/// Proportional Integral controller Enhanced (RFC 8033).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Reference delay.
    #[schemars(extend("default" = "15ms"))]
    pub target: Option<Quantity<Duration>>,
    /// Time between two updates of the probability.
    #[schemars(extend("default" = "15ms"))]
    pub update: Option<Quantity<Duration>>,
    /// Weight of the deviation, per second.
    #[schemars(range(min = 0), extend("default" = 0.125))]
    pub alpha: Option<f64>,
    /// Weight of the trend, per second.
    #[schemars(range(min = 0), extend("default" = 1.25))]
    pub beta: Option<f64>,
    /// Time a burst passes without drops.
    #[schemars(extend("default" = "150ms"))]
    pub max_burst: Option<Quantity<Duration>>,
    /// Packets that may wait.
    #[schemars(extend("default" = "1000 packets"))]
    pub limit: Option<Quantity<Packets>>,
    /// Mark ECN-capable packets instead of dropping them.
    #[schemars(extend("default" = false))]
    pub ecn: Option<bool>,
    /// Drop even ECN-capable packets from this probability on.
    #[schemars(extend("default" = 0.1))]
    pub mark_threshold: Option<Quantity<Probability>>,
    /// How the delay is known.
    #[schemars(extend("default" = "timestamp"))]
    pub estimator: Option<PieEstimatorName>,
    /// Spread drops evenly.
    #[schemars(extend("default" = true))]
    pub derandomize: Option<bool>,
}

/// Tail drop that marks above a threshold, for DCTCP (RFC 8257).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Mark ECN-capable packets that find more than this waiting (K), in packets, bytes or multiples of
    /// BDP as with `droptail`; in time: that waited longer.
    #[schemars(extend("default" = "20 packets"))]
    pub mark_above: Option<Quantity<QueueSize>>,
    /// Packets that may wait.
    #[schemars(extend("default" = "1000 packets"))]
    pub limit: Option<Quantity<Packets>>,
    /// Drop packets that would be marked but are not ECN-capable.
    #[schemars(extend("default" = false))]
    pub drop_incapable: Option<bool>,
    /// Mark at all.
    #[schemars(extend("default" = true))]
    pub ecn: Option<bool>,
}

/// The coupled dual queue of L4S (RFC 9332): packets with ECT(1) or CE in one, all others in the other.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DualPi2 {
    /// Queueing delay that is steered for.
    #[schemars(extend("default" = "15ms"))]
    pub target: Option<Quantity<Duration>>,
    /// Time between two updates of the base probability.
    #[schemars(extend("default" = "16ms"))]
    pub update: Option<Quantity<Duration>>,
    /// Weight of the deviation, in Hz.
    #[schemars(range(min = 0), extend("default" = 0.16))]
    pub alpha: Option<f64>,
    /// Weight of the trend, in Hz.
    #[schemars(range(min = 0), extend("default" = 3.2))]
    pub beta: Option<f64>,
    /// Factor k: the low-latency queue marks with k times the base probability, the classic queue drops or
    /// marks with its square.
    #[schemars(range(min = 0.01, max = 100), extend("default" = 2))]
    pub coupling: Option<f64>,
    /// The low-latency queue marks packets that waited longer; in packets, bytes or multiples of BDP: that
    /// find more waiting in it.
    #[schemars(extend("default" = "1ms"))]
    pub step_threshold: Option<Quantity<QueueSize>>,
    /// With a threshold in time: the probability rises from 0 there to 1 so much later. RFC 9332 appendix A
    /// has 400us from 800us on.
    #[schemars(extend("default" = "0s"))]
    pub ramp: Option<Quantity<Duration>>,
    /// The threshold holds only while more packets than this are in the low-latency queue.
    #[schemars(extend("default" = "0 packets"))]
    pub min_step: Option<Quantity<Packets>>,
    /// Share of the link that the classic queue gets at least while both have packets.
    #[schemars(extend("default" = 0.1))]
    pub classic_protection: Option<Quantity<Probability>>,
    /// Drop in both queues when the low-latency queue would mark everything; otherwise queues grow.
    #[schemars(extend("default" = true))]
    pub drop_on_overload: Option<bool>,
    /// Decide by the base probability on arrival, not on departure.
    #[schemars(extend("default" = false))]
    pub drop_early: Option<bool>,
    /// ECT(0) goes to the low-latency queue too, for DCTCP.
    #[schemars(extend("default" = false))]
    pub any_ect: Option<bool>,
    /// Spread marks and drops evenly, as the RFC's pseudocode does, instead of drawing them.
    #[schemars(extend("default" = false))]
    pub derandomize: Option<bool>,
    /// Packets that may wait in both queues.
    #[schemars(extend("default" = "10000 packets"))]
    pub limit: Option<Quantity<Packets>>,
    /// Bytes that may wait in both queues. Default: no limit.
    pub memory_limit: Option<Quantity<Bytes>>,
    /// Mark at all; without, everything is in the classic queue and dropped (PI2).
    #[schemars(extend("default" = true))]
    pub ecn: Option<bool>,
}

/// How PIE knows the delay.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum PieEstimatorName {
    /// By the wait of the packet that left last.
    Timestamp,
    /// By bytes in the queue over the departure rate.
    DepartureRate,
}

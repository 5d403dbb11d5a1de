//! Flows and what their applications do, as written.

use gargalo_settings::{names, settings};
use gargalo_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Deserialize;

use super::distribution::SizeSpec;
use super::legacy::Legacy;
use super::media::{Media, Video, Voice};
use super::source::{Ftp, Mix, Web};
use super::transport::Transport;
use crate::quantity::{PerSecond, Quantity};

settings! {
    /// Data from one host to another; with `count` or `arrivals`, many of the same kind.
    pub struct Flow as "Flow" {
        /// The host that sends the data (with requests: that asks for it). `left*` puts copy i on host
        /// `left`i.
        from: String;
        /// The other host.
        to: String;
        /// When the flow starts, or arrivals begin.
        start: Duration = Duration::ZERO;
        /// When its application stops. Default: at the end of the run.
        stop: Option<Duration> = None;
        /// Number of copies. Default: 1, or with a `*` as many as there are hosts of that name.
        count: Option<u32> = None, in Some(1)..=Some(100_000);
        /// Name in results and pictures; results are grouped by it. Default: the congestion control, or
        /// `udp`.
        label: Option<String> = None;
        /// How data is carried.
        transport: Legacy<Transport>;
        /// What is carried. Default: bulk without end.
        workload: Option<Legacy<Workload>> = None;
        /// Makes the flow a template of which copies start at random.
        arrivals: Option<Arrivals> = None;
        /// What is kept of it: a row in the tables, or no more than totals in the summary. Default: `full`,
        /// for web, ftp and mix `summary`.
        record: Option<RecordName> = None;
    }
}

impl Flow {
    /// What is carried; `None`: bulk without end.
    pub fn workload(&self) -> Option<&Workload> {
        self.workload.as_ref().map(|w| &w.value)
    }
}

names! {
    /// What is kept of a flow.
    pub enum RecordName {
        /// A row, samples and events.
        Full = "full",
        /// Totals of all flows of the label: memory stays the same however many there are.
        Summary = "summary",
    }
}

settings! {
    /// Copies of a flow that start at random times (a Poisson process), each with its own connection.
    pub struct Arrivals: Copy as "Arrivals" {
        /// Mean number of new flows per time.
        rate: PerSecond;
    }
}

/// What is carried: one of the following.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Workload {
    /// One transfer, as fast as the network lets it.
    Bulk(Bulk),
    /// `from` asks, `to` answers with objects.
    Request(Request),
    /// Packets at a constant rate.
    Cbr(Cbr),
    /// A constant rate in on periods, silence in off periods.
    Onoff(OnOff),
    /// Web browsing: sessions of pages, each object a short flow.
    Web(Box<Web>),
    /// Files that begin at random, each a flow.
    Ftp(Ftp),
    /// Background traffic as a share of a link's capacity.
    Mix(Box<Mix>),
    /// One direction of a video call whose rate follows the network.
    Media(Media),
    /// One direction of a call.
    Voice(Voice),
    /// Adaptive streaming.
    Video(Video),
}

/// One transfer, as fast as the network lets it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Bytes to carry; decimal (1 MB is 1,000,000 bytes; MiB when meant). Default: until the flow stops.
    pub bytes: Option<Quantity<Bytes>>,
}

/// `from` asks, `to` answers with objects.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Number of objects. Default: as many as there are `sizes`, or 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub objects: Option<u32>,
    /// Size of every object: one for all, or a distribution from which each flow draws anew; or give
    /// `sizes`.
    pub size: Option<SizeSpec>,
    /// Size of each object, in order.
    #[schemars(length(min = 1, max = 1_000_000))]
    pub sizes: Option<Vec<Quantity<Bytes>>>,
    /// Size of a request.
    #[schemars(extend("default" = "100B"))]
    pub request_size: Option<Quantity<Bytes>>,
    /// Time between the end of an answer and the next request, with `order = "sequential"`.
    #[schemars(extend("default" = "0s"))]
    pub think_time: Option<Quantity<Duration>>,
    /// What is asked for when, and how the answers share a connection.
    #[schemars(extend("default" = "sequential"))]
    pub order: Option<OrderName>,
    /// With `order = "multiplexed"` on one byte stream: most bytes of an object in a frame, which has a
    /// header of 9 bytes besides (RFC 9113 §4.1). Over QUIC there are streams instead.
    #[schemars(extend("default" = "16KiB"))]
    pub frame: Option<Quantity<Bytes>>,
    /// The same as `order = "pipelined"`.
    #[schemars(extend("default" = false))]
    pub pipelined: Option<bool>,
    /// Connections in parallel, each a flow of its own; objects are dealt out in turn.
    #[schemars(range(min = 1, max = 1000), extend("default" = 1))]
    pub connections: Option<u32>,
}

/// What is asked for when, and how the answers share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OrderName {
    /// The next object is asked for when the one before has arrived (HTTP/1.1).
    Sequential,
    /// All are asked for at once and come one after another (HTTP/1.1 with pipelining).
    Pipelined,
    /// All are asked for at once and come in turns: over TCP in frames on its one byte stream (HTTP/2),
    /// over QUIC each on a stream of its own (HTTP/3).
    Multiplexed,
}

/// Packets at a constant rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Payload rate: constant, or steps over time.
    pub rate: CbrRate,
    /// Payload of a packet.
    #[schemars(extend("default" = "1000B"))]
    pub packet_size: Option<Quantity<Bytes>>,
}

/// Payload rate of an application.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CbrRate {
    /// Always the same.
    Constant(Quantity<Rate>),
    /// A rate that changes.
    Varying(CbrRateMap),
}

/// Payload rate that changes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CbrRateMap {
    /// Pairs of an instant of the run and the rate from then on; the first instant is 0s. A rate of zero is
    /// a pause.
    Steps(#[schemars(length(min = 1, max = 100_000))] Vec<(Quantity<Duration>, Quantity<Rate>)>),
}

/// A constant rate in on periods, silence in off periods.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Payload rate while on.
    pub rate: Quantity<Rate>,
    /// Payload of a packet.
    #[schemars(extend("default" = "1000B"))]
    pub packet_size: Option<Quantity<Bytes>>,
    /// Length of the on periods.
    pub on: PeriodSpec,
    /// Length of the off periods.
    pub off: PeriodSpec,
}

/// Length of a period.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PeriodSpec {
    /// Always the same.
    Fixed(Quantity<Duration>),
    /// Random.
    Random(PeriodMap),
}

/// Random length of a period.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PeriodMap {
    /// Exponentially distributed with this mean.
    Exponential(Quantity<Duration>),
}

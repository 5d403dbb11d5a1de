//! Media calls, voice and video as written.

use gargalo_units::{Bytes, Duration, Rate};
use schemars::JsonSchema;
use serde::Deserialize;

use super::flow::PeriodSpec;
use crate::quantity::{Probability, Quantity};

/// One direction of a video call over UDP whose rate follows the network by NADA (RFC 8698): `from` shows
/// itself, `to` watches and reports.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Lowest rate of the encoder, RTP headers included.
    #[schemars(extend("default" = "150kbit/s"))]
    pub min_rate: Option<Quantity<Rate>>,
    /// Highest rate of the encoder.
    #[schemars(extend("default" = "1.5Mbit/s"))]
    pub max_rate: Option<Quantity<Rate>>,
    /// Weight of the flow among others of its kind.
    #[schemars(range(min = 0.01, max = 100), extend("default" = 1))]
    pub priority: Option<f64>,
    /// Time between two reports of the receiver.
    #[schemars(extend("default" = "100ms"))]
    pub feedback: Option<Quantity<Duration>>,
    /// Reference congestion level (XREF): the queueing delay at `max_rate`.
    #[schemars(extend("default" = "10ms"))]
    pub reference: Option<Quantity<Duration>>,
    /// Frames a second.
    #[schemars(range(min = 1, max = 1000), extend("default" = 30))]
    pub frame_rate: Option<f64>,
    /// Largest payload of a packet, RTP header included.
    #[schemars(extend("default" = "1200B"))]
    pub packet_size: Option<Quantity<Bytes>>,
    /// How far frame sizes vary around their mean (scale of a Laplace distribution; RFC 8593).
    #[schemars(extend("default" = 0.15))]
    pub variation: Option<Quantity<Probability>>,
    /// The encoder takes a new rate so long after the last one.
    #[schemars(extend("default" = "200ms"))]
    pub reaction: Option<Quantity<Duration>>,
    /// Packets carry ECT(0), and marks count as signals.
    #[schemars(extend("default" = false))]
    pub ecn: Option<bool>,
}

/// One direction of a call over UDP: `from` speaks, `to` listens.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// How speech is coded: a packet every 20 ms.
    #[schemars(extend("default" = "g711"))]
    pub codec: Option<Codec>,
    /// Length of talk spurts. Default: exponential with mean 1.004 s (ITU-T P.59).
    pub talk: Option<PeriodSpec>,
    /// Length of pauses. Default: exponential with mean 1.587 s (ITU-T P.59).
    pub pause: Option<PeriodSpec>,
    /// When a packet is played.
    #[schemars(extend("default" = "adaptive"))]
    pub playout: Option<PlayoutSpec>,
}

/// How speech is coded.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Codec {
    /// ITU-T G.711, 64 kbit/s.
    #[default]
    G711,
    /// ITU-T G.729A, 8 kbit/s.
    G729,
}

/// When a packet is played.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PlayoutSpec {
    /// So long after the network delay of the first packet.
    Fixed(Quantity<Duration>),
    /// By name.
    Named(PlayoutName),
}

/// When a packet is played, by name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PlayoutName {
    /// Mean delay plus four mean deviations, set anew at each talk spurt (Ramjee et al., INFOCOM 1994).
    Adaptive,
}

/// Adaptive streaming over TCP: `to` plays what `from` has, one segment after another.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Playing time of a segment.
    #[schemars(extend("default" = "4s"))]
    pub segment: Option<Quantity<Duration>>,
    /// Rates it comes in, rising. Default: 235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300 and 5800
    /// kbit/s.
    #[schemars(length(min = 1, max = 100))]
    pub ladder: Option<Vec<Quantity<Rate>>>,
    /// How the rate of a segment is chosen.
    #[schemars(extend("default" = "throughput"))]
    pub selection: Option<SelectionSpec>,
    /// Most playing time that is buffered. Default: 60 s, with `buffer` selection 240 s.
    pub buffer: Option<Quantity<Duration>>,
    /// Playing begins, and goes on after standing still, with this much in the buffer. Default: two
    /// segments.
    pub startup: Option<Quantity<Duration>>,
    /// Playing time of the whole. Default: until the flow stops.
    pub length: Option<Quantity<Duration>>,
    /// Size of a request.
    #[schemars(extend("default" = "350B"))]
    pub request_size: Option<Quantity<Bytes>>,
}

/// How the rate of a segment is chosen.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SelectionSpec {
    /// By name, with the usual values.
    Named(SelectionName),
    /// With values.
    Table(SelectionMap),
}

/// How the rate of a segment is chosen, by name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SelectionName {
    /// From the throughput of the latest segments (Jiang et al., FESTIVE, CoNEXT 2012).
    Throughput,
    /// From the buffer alone (Huang et al., BBA-0, SIGCOMM 2014).
    Buffer,
}

/// How the rate of a segment is chosen, with values.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SelectionMap {
    /// From the throughput of the latest segments (Jiang et al., FESTIVE, CoNEXT 2012).
    Throughput(ByThroughput),
    /// From the buffer alone (Huang et al., BBA-0, SIGCOMM 2014).
    Buffer(ByBuffer),
}

/// The highest rate below a share of the harmonic mean of the throughput.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByThroughput {
    /// The share.
    #[schemars(range(min = 0.01, max = 10), extend("default" = 0.85))]
    pub efficiency: Option<f64>,
    /// Over so many segments.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 20))]
    pub window: Option<u32>,
}

/// A rate that grows with the buffer.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByBuffer {
    /// Below this much in the buffer the lowest rate.
    #[schemars(extend("default" = "90s"))]
    pub reservoir: Option<Quantity<Duration>>,
    /// So much above the reservoir the highest rate.
    #[schemars(extend("default" = "126s"))]
    pub cushion: Option<Quantity<Duration>>,
}

//! Sources of flows as written: web, ftp, and the mix of both with constant bit rate.

use gargalo_units::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use super::distribution::{CountSpec, SizeSpec, TimeSpec};
use crate::quantity::{Load, PerSecond, Probability, Quantity};

/// Web browsing: sessions that begin as a Poisson process, spread over the pairs of hosts. A session
/// is a number of pages with think time between them, a page a main object and embedded ones. `to`
/// asks, `from` has the objects, so that the load goes from `from` to `to`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Mean number of new sessions per time; or give `load`.
    pub sessions: Option<Quantity<PerSecond>>,
    /// Bits on the wire from `from` to `to`, headers included: a rate, or a share of the capacity of
    /// `link`. It is met over the time the flow lasts; sessions are under way from the beginning.
    pub load: Option<Quantity<Load>>,
    /// The link whose capacity counts. Default: the slowest on the way.
    pub link: Option<String>,
    /// Where the defaults of all that follows come from.
    #[schemars(extend("default" = "ngmn"))]
    pub model: Option<WebModel>,
    /// Pages of a session. Default: geometric with mean 5.
    pub pages: Option<CountSpec>,
    /// From one page's request to the next. Default: exponential with mean 30 s.
    pub think_time: Option<TimeSpec>,
    /// Size of the main object of a page.
    pub main_size: Option<SizeSpec>,
    /// Number of objects that a page embeds.
    pub embedded: Option<CountSpec>,
    /// Size of an embedded object.
    pub embedded_size: Option<SizeSpec>,
    /// From the main object's last byte to the request of the first embedded one. Default: exponential
    /// with mean 130 ms.
    pub parsing_time: Option<TimeSpec>,
    /// Size of a request.
    #[schemars(extend("default" = "350B"))]
    pub request_size: Option<Quantity<Bytes>>,
    /// Connections of a page at the same time.
    #[schemars(range(min = 1, max = 1000), extend("default" = 4))]
    pub connections: Option<u32>,
    /// Use connections for one object after another (HTTP/1.1); otherwise each object has a connection
    /// of its own (HTTP/1.0).
    #[schemars(extend("default" = false))]
    pub persistent: Option<bool>,
}

/// A published model of web traffic.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WebModel {
    /// NGMN, Radio Access Performance Evaluation Methodology, 2008 (3GPP2 C.R1002): log-normal sizes.
    #[default]
    Ngmn,
    /// Barford and Crovella, SIGMETRICS 1998 (SURGE): log-normal body, Pareto tail.
    Surge,
}

/// Files, each over a connection of its own, that begin as a Poisson process, spread over the pairs of
/// hosts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ftp {
    /// Mean number of new files per time; or give `load`.
    pub files: Option<Quantity<PerSecond>>,
    /// Bits on the wire from `from` to `to`, headers included: a rate, or a share of the capacity of
    /// `link`. It is met over the time the flow lasts.
    pub load: Option<Quantity<Load>>,
    /// The link whose capacity counts. Default: the slowest on the way.
    pub link: Option<String>,
    /// Size of a file. Default: Pareto with index 1.1 from 100 kB to 20 MB.
    pub size: Option<SizeSpec>,
}

/// Background traffic as a share of a link's capacity: constant bit rate over UDP, files and web, the
/// last two over the flow's transport.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Bits on the wire in each loaded direction, headers and acknowledgements included: a share of
    /// the link's capacity, or a rate.
    pub load: Quantity<Load>,
    /// The loaded link. Default: the slowest on the way.
    pub link: Option<String>,
    /// The loaded direction.
    #[schemars(extend("default" = "both"))]
    pub direction: Option<MixDirection>,
    /// Shares of the load. Default: 20% constant bit rate, 24% files, 56% web.
    pub shares: Option<Shares>,
    /// Payload of a constant-bit-rate packet.
    #[schemars(extend("default" = "1000B"))]
    pub packet_size: Option<Quantity<Bytes>>,
    /// The web traffic; its load follows from the share.
    pub web: Option<Web>,
    /// The files; their load follows from the share.
    pub ftp: Option<Ftp>,
}

/// Which direction of the link is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum MixDirection {
    /// Up and down.
    #[default]
    Both,
    /// Up: from the left, from the client.
    Up,
    /// Down.
    Down,
}

/// Shares of a load; together 1. What is not given is nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// Constant bit rate over UDP.
    pub cbr: Option<Quantity<Probability>>,
    /// Files.
    pub ftp: Option<Quantity<Probability>>,
    /// Web.
    pub web: Option<Quantity<Probability>>,
}

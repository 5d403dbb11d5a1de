//! Multipath TCP and its options as written.

use std::borrow::Cow;

use gargalo_units::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use super::transport::named_schema;
use super::{Congestion, Switch, Tcp};
use crate::quantity::Quantity;

/// Multipath TCP (RFC 8684). Each link of a host is an interface with an address of its own; packets
/// leave by the interface of their source address. Beside what follows it takes every option of TCP, for
/// its subflows; `receive_buffer` and `send_buffer` are those of the whole connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct Mptcp {
    /// Which subflow carries the next segment: a name, or a table of one name and its parameters, like
    /// `{ round-robin = { segments = 4 } }`.
    #[schemars(extend("default" = "window-aware"))]
    pub scheduler: Option<SchedulerName>,
    /// Which subflows there are. Default: `single-mesh`, or `full-mesh` if one of the hosts has a single
    /// link.
    pub path_manager: Option<PathManagerName>,
    /// When data on a slower path fills the window, send it again on a faster one that would idle.
    #[schemars(extend("default" = true))]
    pub opportunistic_retransmission: Option<bool>,
    /// Let a path that filled the window carry half as much for a while.
    #[schemars(extend("default" = true))]
    pub penalisation: Option<bool>,
    /// A path that the scheduler leaves out carries a copy of a segment that often, so that what is known of
    /// it does not age; false: never. Backups carry none.
    #[schemars(extend("default" = "1s"))]
    pub probe_interval: Option<Switch<Quantity<Duration>>>,
    /// Checksums over data and its mapping (RFC 8684 §3.3.1).
    #[schemars(extend("default" = false))]
    pub checksum: Option<bool>,
    /// Length of data sequence numbers on the wire.
    #[schemars(extend("default" = "short"))]
    pub data_numbers: Option<DataNumbersName>,
    /// Most subflows at a time.
    #[schemars(range(min = 1, max = 64), extend("default" = 32))]
    pub max_subflows: Option<u32>,
    /// Names of the links whose addresses take part from the beginning. Default: all links of the two
    /// hosts.
    #[schemars(length(min = 1, max = 64))]
    pub links: Option<Vec<String>>,
    /// Names of links whose subflows are backups: they carry data only when no other can.
    #[schemars(extend("default" = []), length(max = 64))]
    pub backup: Option<Vec<String>>,
    /// Routers that the client may send packets by, for the path manager `binder`.
    #[schemars(extend("default" = []), length(max = 64))]
    pub gateways: Option<Vec<String>>,
    /// Addresses that come and go, as in a hand-over.
    #[schemars(extend("default" = []), length(max = 1000))]
    pub changes: Option<Vec<AddressChange>>,
    /// Options of every subflow.
    #[serde(flatten)]
    pub tcp: Tcp,
}

/// A host gets or loses the address of one of its links.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddressChange {
    /// So long after the flow's start.
    pub after: Quantity<Duration>,
    /// Which of the flow's hosts.
    #[schemars(extend("default" = "from"))]
    pub host: Option<EndName>,
    /// Name of the link whose address comes.
    pub add: Option<String>,
    /// Name of the link whose address goes: nothing arrives there any more.
    pub remove: Option<String>,
}

/// One of a flow's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EndName {
    /// That the flow comes from.
    From,
    /// That it goes to.
    To,
}

/// Length of data sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DataNumbersName {
    /// 32 bits: 8 bytes of every packet less.
    Short,
    /// 64 bits, as Linux does.
    Long,
}

/// A scheduler and its parameters; names and parameters are those of the registry.
#[derive(Clone, Debug)]
pub struct SchedulerName(pub Congestion);

impl<'de> Deserialize<'de> for SchedulerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Congestion::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for SchedulerName {
    fn schema_name() -> Cow<'static, str> {
        "SchedulerName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = gargalo_mptcp::scheduler::SCHEDULERS.iter();
        let all = all.map(|e| (vec![e.name], e.summary, e.source, (e.params)()));
        named_schema("A scheduler", all)
    }
}

/// A path manager and its parameters; names and parameters are those of the registry.
#[derive(Clone, Debug)]
pub struct PathManagerName(pub Congestion);

impl<'de> Deserialize<'de> for PathManagerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Congestion::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for PathManagerName {
    fn schema_name() -> Cow<'static, str> {
        "PathManagerName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = gargalo_mptcp::path_manager::PATH_MANAGERS.iter();
        let all = all.map(|e| (vec![e.name], e.summary, e.source, (e.params)()));
        named_schema("A path manager", all)
    }
}

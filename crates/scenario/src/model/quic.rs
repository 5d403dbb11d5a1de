//! QUIC and its options as written.

use std::borrow::Cow;

use gargalo_units::{Bytes, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::{Congestion, Switch};
use crate::quantity::{Quantity, Window};

/// QUIC (RFC 9000): a production implementation in virtual time. What is not said is as the profile has it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quic {
    /// Congestion control of both ends: a name, or a table of one name and its parameters. `noq-cubic`,
    /// `noq-newreno` and `noq-bbr3` are the implementation's own.
    #[schemars(extend("default" = "cubic"))]
    pub congestion: Option<QuicCongestion>,
    /// Named set of defaults for all that follows.
    #[schemars(extend("default" = "rfc9000"))]
    pub profile: Option<QuicProfileName>,
    /// `0-rtt` sends data before the handshake is complete, with a ticket of an earlier connection of the
    /// same hosts.
    #[schemars(extend("default" = "1-rtt"))]
    pub handshake: Option<HandshakeName>,
    /// `null` has the same packets at the same times, but does not encrypt: for large sweeps.
    #[schemars(extend("default" = "tls"))]
    pub crypto: Option<CryptoName>,
    /// Initial congestion window, in packets or bytes.
    pub initial_window: Option<Quantity<Window>>,
    /// The congestion window never counts for more than this. Default: no such limit.
    pub max_window: Option<Quantity<Window>>,
    /// UDP payload of a full packet, before discovery finds room for more.
    pub datagram_size: Option<Quantity<Bytes>>,
    /// Discovery of larger datagrams (RFC 8899): true up to 1452 bytes, or up to a size.
    pub mtu_discovery: Option<Switch<Quantity<Bytes>>>,
    /// Spread packets over the round trip; false: only where the congestion control gives a rate.
    pub pacing: Option<bool>,
    /// Ask the peer to acknowledge less often (draft-ietf-quic-ack-frequency).
    pub ack: Option<AckMap>,
    /// Streams that a bulk transfer is spread over.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 1))]
    pub streams: Option<u32>,
    /// What the peer may send on a stream ahead of its reader.
    pub stream_window: Option<Quantity<Bytes>>,
    /// What the peer may send on all streams ahead of their reader.
    pub connection_window: Option<Quantity<Bytes>>,
    /// What the application may write ahead of acknowledgements.
    pub send_window: Option<Quantity<Bytes>>,
    /// A packet is lost when one this much later was acknowledged (RFC 9002 §6.1.1).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub packet_threshold: Option<u32>,
    /// Or after this share of a round trip (RFC 9002 §6.1.2).
    #[schemars(range(min = 1, max = 100))]
    pub time_threshold: Option<f64>,
    /// Explicit congestion notification.
    #[schemars(extend("default" = false))]
    pub ecn: Option<bool>,
    /// A silent connection is dropped after this.
    pub idle_timeout: Option<Quantity<Duration>>,
    /// Use disjoint paths between the hosts at once (draft-ietf-quic-multipath): true for up to eight,
    /// or how many at most.
    #[schemars(extend("default" = false))]
    pub multipath: Option<Switch<u32>>,
    /// The client's address changes (RFC 9000 §9).
    pub migration: Option<MigrationMap>,
}

/// When the peer acknowledges.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckMap {
    /// Each so many packets.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 2))]
    pub every: Option<u32>,
    /// Longest delay. Default: the peer's.
    pub max_delay: Option<Quantity<Duration>>,
    /// A gap of so many packets is acknowledged at once; 0: never.
    #[schemars(range(max = 10_000), extend("default" = 3))]
    pub reordering: Option<u32>,
}

/// The client moves.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationMap {
    /// So long after the flow's start.
    pub after: Quantity<Duration>,
    /// What changes: the address, or only the port as behind a NAT that forgot.
    #[schemars(extend("default" = "address"))]
    pub change: Option<ChangeName>,
}

/// What of the client's address changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ChangeName {
    /// Address and path.
    Address,
    /// The port alone.
    Port,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum HandshakeName {
    /// Data after a round trip.
    #[serde(rename = "1-rtt")]
    OneRtt,
    /// Data at once.
    #[serde(rename = "0-rtt")]
    ZeroRtt,
}

/// How packets are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CryptoName {
    /// TLS 1.3.
    Tls,
    /// The same sizes, not encrypted.
    Null,
}

/// A named set of QUIC defaults, as listed by `gargalo_quic::PROFILES`.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct QuicProfileName(pub String);

impl JsonSchema for QuicProfileName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "QuicProfileName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = gargalo_quic::PROFILES.iter().map(|p| p.name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// The congestion controls of the QUIC implementation itself.
pub(crate) const OWN: [&str; 3] = ["noq-bbr3", "noq-cubic", "noq-newreno"];

/// One of ours with its parameters, or one of the implementation's own.
#[derive(Clone, Debug)]
pub struct QuicCongestion(pub Congestion);

impl<'de> Deserialize<'de> for QuicCongestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Congestion::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for QuicCongestion {
    fn schema_name() -> Cow<'static, str> {
        "QuicCongestion".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let ours = generator.subschema_for::<Congestion>();
        json_schema!({
            "description": "A congestion control, ours or the implementation's own.",
            "anyOf": [ours, { "type": "string", "enum": OWN }]
        })
    }
}

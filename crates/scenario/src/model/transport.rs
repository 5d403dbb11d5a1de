//! Transports and their options as written.

use std::borrow::Cow;

use gargalo_cc::{ParamKind, ParamValue, Params};
use gargalo_units::{Bytes, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, json};

use super::tls::TlsSpec;
use crate::quantity::{Quantity, Window};

/// How data is carried: one of the following.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Transport {
    /// TCP.
    Tcp(Box<Tcp>),
    /// Multipath TCP.
    Mptcp(Box<super::Mptcp>),
    /// QUIC.
    Quic(Box<super::Quic>),
    /// UDP: datagrams without congestion control.
    Udp(Udp),
}

/// UDP: datagrams without congestion control; it has no options.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Udp {}

/// TCP. What is not said is as the profile has it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Congestion control of both ends: a name, or a table of one name and its parameters, like
    /// `{ cubic = { beta = 0.7 } }`.
    #[schemars(extend("default" = "cubic"))]
    pub congestion: Option<Congestion>,
    /// Named set of defaults for all that follows.
    #[schemars(extend("default" = "modern"))]
    pub profile: Option<ProfileName>,
    /// Payload of a full segment. Default: the profile's, or less if the route's MTU is smaller.
    pub mss: Option<Quantity<Bytes>>,
    /// Initial congestion window (RFC 6928), in packets or bytes.
    pub initial_window: Option<Quantity<Window>>,
    /// The largest window ever announced.
    pub receive_buffer: Option<Quantity<Bytes>>,
    /// What the application may write ahead of acknowledgements: bytes of the stream, sent or not. (Linux
    /// counts memory, which is more.) Default: the profile's, or `receive_buffer` if that is larger.
    pub send_buffer: Option<Quantity<Bytes>>,
    /// Timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Window scaling (RFC 7323).
    pub window_scaling: Option<bool>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: Option<bool>,
    /// Reports of duplicates (RFC 2883).
    pub dsack: Option<bool>,
    /// Explicit congestion notification; true is `classic`, with `congestion = "dctcp"` it is `dctcp`
    /// and with `"prague"` `l4s`, which are the defaults there.
    pub ecn: Option<Switch<EcnName>>,
    /// When the sender paces; false is `off`, true is `window`.
    pub pacing: Option<PacingSpec>,
    /// Delayed acknowledgements; false acknowledges each segment at once.
    pub delayed_ack: Option<Switch<DelayedAck>>,
    /// How losses are found.
    pub recovery: Option<RecoveryName>,
    /// Proportional rate reduction (RFC 6937).
    pub prr: Option<bool>,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_loss_probe: Option<bool>,
    /// Detection of spurious timeouts (RFC 5682).
    pub frto: Option<bool>,
    /// New data on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: Option<bool>,
    /// Least retransmission timeout.
    pub min_rto: Option<Quantity<Duration>>,
    /// Linux's rule: the timeout is at least the round-trip time plus `min_rto`.
    pub min_rto_above_srtt: Option<bool>,
    /// Largest retransmission timeout.
    pub max_rto: Option<Quantity<Duration>>,
    /// First timeout of the handshake (RFC 6298: 1 s).
    pub syn_timeout: Option<Quantity<Duration>>,
    /// How often a SYN is repeated.
    #[schemars(range(max = 255))]
    pub syn_retries: Option<u32>,
    /// How often a SYN-ACK is repeated.
    #[schemars(range(max = 255))]
    pub syn_ack_retries: Option<u32>,
    /// Timeouts in a row before the connection is given up.
    #[schemars(range(max = 255))]
    pub data_retries: Option<u32>,
    /// Length of TIME-WAIT.
    pub time_wait: Option<Quantity<Duration>>,
    /// Keep-alive probes (RFC 9293 §3.8.4). Default: never.
    pub keep_alive: Option<Switch<KeepAlive>>,
    /// Hold back small segments while data is outstanding (RFC 9293 §3.7.4).
    pub nagle: Option<bool>,
    /// Shrink the window after an idle period (RFC 5681 §4.1).
    pub slow_start_after_idle: Option<bool>,
    /// TLS 1.3 between TCP and the application, as flights of its handshake and headers of its records;
    /// true and `"1.3"` are the same.
    #[schemars(extend("default" = false))]
    pub tls: Option<TlsSpec>,
    /// How the receiving end misbehaves (RFC 9743 §7.6), in the simulator.
    #[schemars(extend("default" = "honest"))]
    pub receiver: Option<ReceiverName>,
}

/// What a receiver's acknowledgements say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ReceiverName {
    /// The truth.
    Honest,
    /// That everything up to the latest segment has come, lost or not: the sender never learns of a loss.
    Optimistic,
    /// The truth in four pieces for each (ACK division).
    DividesAcks,
    /// Nothing of Congestion Experienced marks.
    HidesEcn,
}

/// True, false, or something more precise.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Switch<T> {
    /// On with the usual values, or off.
    Set(bool),
    /// Precisely.
    To(T),
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EcnName {
    /// Not offered and not accepted.
    Off,
    /// RFC 3168.
    Classic,
    /// RFC 8257: the echo mirrors the marks.
    Dctcp,
    /// RFC 9331: ECT(1), for the low-latency queue of `dualpi2`; the echo mirrors the marks.
    L4s,
}

/// When the sender paces.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PacingSpec {
    /// Always or never.
    Set(bool),
    /// By name.
    Named(PacingName),
    /// At these multiples of window over round-trip time where the congestion control gives no rate.
    Window(PacingMap),
}

/// When the sender paces, by name.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PacingName {
    /// Never, even if the congestion control asks for a rate.
    Off,
    /// At the rate the congestion control asks for, if it does.
    Controller,
    /// Also at a multiple of window over round-trip time where the congestion control gives no rate.
    Window,
}

/// Multiples of window over round-trip time to pace at.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacingMap {
    /// In slow start.
    #[schemars(range(min = 0.1, max = 100), extend("default" = 2))]
    pub slow_start: Option<f64>,
    /// In congestion avoidance.
    #[schemars(range(min = 0.1, max = 100), extend("default" = 1.2))]
    pub avoidance: Option<f64>,
}

/// Delayed acknowledgements; what is not said is as the profile has it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayedAck {
    /// Acknowledge every so many full segments (RFC 5681 §4.2: 2).
    #[schemars(range(min = 1, max = 1000))]
    pub every: Option<u32>,
    /// Longest delay.
    pub timeout: Option<Quantity<Duration>>,
    /// So many first segments are acknowledged at once.
    #[schemars(range(max = 1_000_000))]
    pub quick: Option<u32>,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RecoveryName {
    /// By time (RFC 8985) beside the classic count of three.
    RackTlp,
    /// By selective acknowledgements (RFC 6675).
    Sack,
    /// By duplicate acknowledgements alone (RFC 6582).
    Newreno,
}

/// Keep-alive probes.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepAlive {
    /// Silence before the first probe.
    #[schemars(extend("default" = "2h"))]
    pub idle: Option<Quantity<Duration>>,
    /// Time between probes.
    #[schemars(extend("default" = "75s"))]
    pub interval: Option<Quantity<Duration>>,
    /// Unanswered probes before the connection is given up.
    #[schemars(range(min = 1, max = 255), extend("default" = 9))]
    pub probes: Option<u32>,
}

/// A named set of TCP defaults, as listed by `gargalo_tcp::PROFILES`.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct ProfileName(pub String);

impl JsonSchema for ProfileName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ProfileName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = gargalo_tcp::PROFILES.iter().map(|p| p.name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// A congestion control and its parameters; names and parameters are those of the registry.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// Name or alias.
    pub name: String,
    /// What was given.
    pub params: Params,
}

impl<'de> Deserialize<'de> for Congestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, table) = match Value::deserialize(deserializer)? {
            Value::String(name) => (name, Map::new()),
            Value::Object(map) if map.len() == 1 => match map.into_iter().next() {
                Some((name, Value::Object(table))) => (name, table),
                _ => return Err(de::Error::custom("parameters must be a table")),
            },
            _ => {
                return Err(de::Error::custom(
                    "a congestion control is a name or a table of one",
                ));
            }
        };
        let mut params = Params::new();
        for (key, value) in table {
            let value = match value {
                Value::Bool(b) => ParamValue::Bool(b),
                Value::String(s) => ParamValue::Text(s),
                Value::Number(n) => ParamValue::Number(n.as_f64().unwrap_or(f64::NAN)),
                _ => return Err(de::Error::custom(format!("{key} must be a plain value"))),
            };
            params.push(&key, value);
        }
        Ok(Self { name, params })
    }
}

impl JsonSchema for Congestion {
    fn schema_name() -> Cow<'static, str> {
        "Congestion".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = gargalo_cc::ALGORITHMS.iter().map(|a| {
            let names = std::iter::once(a.name).chain(a.aliases.iter().copied());
            (names.collect(), a.summary, a.source, (a.params)())
        });
        named_schema("A congestion control", all)
    }
}

/// A name of a registry, or a table of one name and its parameters; what is listed: names, summary,
/// source, parameters.
pub(super) fn named_schema<'a>(
    what: &str,
    all: impl Iterator<
        Item = (
            Vec<&'static str>,
            &'static str,
            &'static str,
            &'a [gargalo_cc::Param],
        ),
    >,
) -> Schema {
    let mut names = Vec::new();
    let mut tables = Vec::new();
    for (own, summary, source, params) in all {
        let params: Map<String, Value> = params
            .iter()
            .map(|p| (p.name.to_owned(), param_schema(p)))
            .collect();
        let table = json!({
            "type": "object", "description": format!("{summary} ({source})"),
            "properties": params, "additionalProperties": false
        });
        for name in own {
            names.push(name);
            tables.push(json!({
                "type": "object", "properties": { name: table.clone() },
                "required": [name], "additionalProperties": false
            }));
        }
    }
    json_schema!({
        "description": format!("{what}: its name, or a table of its name and parameters."),
        "anyOf": [{ "type": "string", "enum": names }, { "oneOf": tables }]
    })
}

fn param_schema(param: &gargalo_cc::Param) -> Value {
    let mut schema = match param.kind {
        ParamKind::Number {
            default,
            min,
            max,
            integer,
        } => {
            let kind = if integer { "integer" } else { "number" };
            json!({ "type": kind, "minimum": min, "maximum": max, "default": default })
        }
        ParamKind::Bool { default } => json!({ "type": "boolean", "default": default }),
        ParamKind::Choice { default, choices } => {
            json!({ "type": "string", "enum": choices, "default": default })
        }
        ParamKind::Duration { default, .. } => {
            json!({ "type": "string", "format": "duration", "default": default.to_string() })
        }
    };
    schema["description"] = format!("{}; {}", param.doc, param.valid()).into();
    schema
}

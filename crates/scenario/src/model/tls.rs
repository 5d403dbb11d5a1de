//! TLS over TCP as written.

use gargalo_units::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::Quantity;

/// TLS between TCP and the application.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TlsSpec {
    /// TLS 1.3 with the usual sizes, or none.
    Set(bool),
    /// By version.
    Version(TlsVersion),
    /// TLS 1.3, precisely.
    To(TlsMap),
}

/// Version of TLS.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TlsVersion {
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V13,
}

/// TLS 1.3 as flights of these sizes, headers of records included. Defaults are what rustls 0.23 sends with
/// a self-signed Ed25519 certificate of 289 bytes and one application protocol.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsMap {
    /// ClientHello. Default: 225 B, with `early_data` 330 B, since it then bears a ticket.
    pub client_hello: Option<Quantity<Bytes>>,
    /// From ServerHello to Finished; 3 to 4 kB with a usual chain of certificates. Default: 600 B, with
    /// `early_data` 232 B, since there is no certificate then.
    pub server_flight: Option<Quantity<Bytes>>,
    /// The client's Finished. Default: 80 B, with `early_data` 100 B, since EndOfEarlyData comes before it.
    pub client_finished: Option<Quantity<Bytes>>,
    /// Most data in a record; the receiver opens a record when it is whole. At most 16 KiB (RFC 8446 §5.1).
    #[schemars(extend("default" = "16KiB"))]
    pub record_size: Option<Quantity<Bytes>>,
    /// The client has a ticket of an earlier connection and sends data with its ClientHello (0-RTT).
    #[schemars(extend("default" = false))]
    pub early_data: Option<bool>,
}

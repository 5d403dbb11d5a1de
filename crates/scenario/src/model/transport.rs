//! Transports as written.

use gargalo_settings::{Switch, settings};
use gargalo_sim::Misbehaviour;
use gargalo_workload::tls::TlsVersion;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Mptcp, Written};

/// How data is carried: one of the following.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Transport {
    /// TCP.
    Tcp(Written<Tcp>),
    /// Multipath TCP.
    Mptcp(Written<Mptcp>),
    /// QUIC.
    Quic(Box<super::Quic>),
    /// UDP: datagrams without congestion control.
    Udp(Udp),
}

/// UDP: datagrams without congestion control; it has no options.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Udp {}

settings! {
    /// TCP. What is not said is as the profile has it; the defaults below are those of `modern`.
    pub struct Tcp as "Tcp" {
        /// Congestion control of both ends: a name, or a table of one name and its parameters, like
        /// `{ cubic = { beta = 0.7 } }`.
        congestion: gargalo_cc::chosen::Congestion = gargalo_cc::chosen::Congestion::default();
        /// TLS 1.3 between TCP and the application, as flights of its handshake and headers of its records;
        /// true and `"1.3"` are the same.
        tls: Switch<TlsVersion> = Switch::Off;
        /// How the receiving end misbehaves (RFC 9743 §7.6), in the simulator.
        receiver: Misbehaviour = Misbehaviour::None;
    } with {
        /// Options of both ends.
        config: gargalo_tcp::Config;
    }
}

/// A congestion control as written.
pub type Congestion = Written<gargalo_cc::chosen::Congestion>;

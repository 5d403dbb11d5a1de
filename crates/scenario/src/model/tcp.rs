//! TCP as written.

use gargalo_flow::Misbehaviour;
use gargalo_settings::{Switch, settings};
use gargalo_workload::tls::TlsVersion;

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

//! Transports as written.

use gargalo_quic::Config as Quic;
use gargalo_settings::{kinds, settings};

use super::{Mptcp, Tcp, Written};

kinds! {
    /// How data is carried: one of the following.
    pub enum Transport as "Transport" {
        tables {
            /// TCP (RFC 9293).
            "tcp" => Tcp(Written<Tcp>);
            /// Multipath TCP (RFC 8684): subflows over several paths.
            "mptcp" => Mptcp(Written<Mptcp>);
            /// QUIC (RFC 9000): streams over UDP, with one path or several.
            "quic" => Quic(Written<Quic>);
            /// UDP: datagrams without congestion control.
            "udp" => Udp(Udp);
        }
    }
}

settings! {
    /// UDP: datagrams without congestion control; it has no options.
    pub struct Udp: Copy as "Udp" {}
}

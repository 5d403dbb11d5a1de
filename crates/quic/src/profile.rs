//! Named sets of defaults.

use gargalo_cc::Params;
use gargalo_units::Bytes;

use crate::Config;

/// A named set of defaults of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Its values.
    pub config: fn() -> Config,
    /// Its congestion control, with parameters.
    pub congestion: fn() -> (&'static str, Params),
}

/// All profiles, the default first.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "rfc9000",
        summary: "the standard: initial window 10, CUBIC, pacing, datagrams of 1200 bytes and discovery of larger",
        source: "RFC 9000, 9002, 9438, 8899",
        config: Config::default,
        congestion: || ("cubic", Params::new()),
    },
    Profile {
        name: "google-v41",
        summary: "Google QUIC of 2018: initial window 32, CUBIC like two connections, hybrid slow start, datagrams of 1350 bytes",
        source: "Chromium's QUIC, version 41",
        config: google_v41,
        congestion: || {
            let params = Params::new()
                .with("connections", 2.0)
                .with("slow_start", "hystart");
            ("cubic", params)
        },
    },
];

/// Packet size, initial window and greatest window of Google QUIC v41.
fn google_v41() -> Config {
    const DATAGRAM: u16 = 1350;
    let packets = |n: u64| Bytes::new(n * u64::from(DATAGRAM));
    Config {
        datagram_size: DATAGRAM,
        mtu_discovery: None,
        initial_window: packets(32),
        max_window: Some(packets(2000)),
        ..Config::default()
    }
}

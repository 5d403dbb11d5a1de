//! Named sets of defaults.

use gargalo_cc::Params;
use gargalo_cc::chosen::Congestion;
use gargalo_settings::{Switch, Window, names};
use gargalo_units::Bytes;

use crate::Config;

names! {
    /// A named set of defaults of both ends.
    pub enum Profile {
        /// the standard: initial window 10, CUBIC, pacing, datagrams of 1200 bytes and discovery of larger
        ///
        /// RFC 9000, 9002, 9438, 8899
        Standard = "rfc9000",
        /// Google QUIC of 2018: initial window 32, CUBIC like two connections, hybrid slow start, datagrams of 1350
        /// bytes
        ///
        /// Chromium's QUIC, version 41
        GoogleV41 = "google-v41",
    }
}

impl Profile {
    /// Its options.
    pub fn config(self) -> Config {
        match self {
            Self::Standard => Config::default(),
            Self::GoogleV41 => {
                let params = Params::new().with("connections", 2.0);
                let params = params.with("slow_start", "hystart");
                Config {
                    profile: self,
                    congestion: Congestion::new("cubic", params),
                    datagram_size: 1350,
                    mtu_discovery: Switch::Off,
                    // 32 and 2000 datagrams of 1350 bytes, independently of `datagram_size`.
                    initial_window: Window::Bytes(Bytes::new(43_200)),
                    max_window: Some(Window::Bytes(Bytes::new(2_700_000))),
                    ..Config::default()
                }
            }
        }
    }
}

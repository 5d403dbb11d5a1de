//! Named sets of defaults.

use gargalo_settings::names;

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

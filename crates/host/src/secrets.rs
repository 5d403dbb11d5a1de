//! Values that are unpredictable without the seed, and reproducible with it.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;

use gargalo_units::{Instant, Seq};
use rand_pcg::Pcg64;
use siphasher::sip::{SipHasher13, SipHasher24};

use crate::connection::Tuple;

/// A 128-bit key of SipHash (Aumasson and Bernstein, INDOCRYPT 2012).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(u64, u64);

impl Key {
    fn derive(seed: u64, label: u8) -> Self {
        let word = |n: u8| {
            let mut h = SipHasher24::new_with_keys(seed, !seed);
            h.write(&[label, n]);
            h.finish()
        };
        Self(word(0), word(1))
    }

    /// A keyed hash of `value`.
    pub(crate) fn hash(self, value: &impl Hash) -> u64 {
        let mut h = SipHasher24::new_with_keys(self.0, self.1);
        value.hash(&mut h);
        h.finish()
    }
}

/// Hash state of tables whose keys peers choose.
impl BuildHasher for Key {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

/// The keys of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secrets {
    /// The key of the table of connections.
    pub(crate) table: Key,
    /// The key of cookies.
    pub(crate) cookie: Key,
    isn: Key,
    timestamp: Key,
    port: Key,
    flow_label: Key,
    random: Key,
    mptcp: Key,
    fast_open: Key,
}

impl Secrets {
    pub(crate) fn new(seed: u64) -> Self {
        let key = |label| Key::derive(seed, label);
        Self {
            table: key(0),
            cookie: key(1),
            isn: key(2),
            timestamp: key(3),
            port: key(4),
            flow_label: key(5),
            random: key(6),
            mptcp: key(7),
            fast_open: key(8),
        }
    }

    /// Initial sequence number (RFC 6528 §3): a clock that ticks every 4 µs plus a keyed hash of the
    /// connection.
    pub(crate) fn isn(&self, tuple: &Tuple, now: Instant) -> Seq {
        let clock = (now.as_nanos() / 4_000) as u32;
        Seq::new(clock) + self.isn.hash(tuple) as u32
    }

    /// Offset of the timestamp clock (RFC 7323 §7.1). The same for successive connections of one tuple,
    /// so that RFC 6191 can distinguish them.
    pub(crate) fn timestamp_offset(&self, tuple: &Tuple) -> u32 {
        self.timestamp.hash(tuple) as u32
    }

    /// The Fast Open cookie of a client (RFC 7413 §4.1.2).
    pub(crate) fn fast_open(&self, client: IpAddr) -> u64 {
        self.fast_open.hash(&client)
    }

    /// Start of the search for a port (RFC 6056 §3.3.3).
    pub(crate) fn port_offset(&self, tuple: &Tuple) -> u64 {
        self.port.hash(&(tuple.addresses, tuple.remote_port))
    }

    /// Start of the search for the `n`-th UDP port.
    pub(crate) fn udp_port_offset(&self, n: u64) -> u64 {
        self.port.hash(&n)
    }

    /// Flow label of IPv6 (RFC 6437 §3), 20 bits.
    pub(crate) fn flow_label(&self, tuple: &Tuple) -> u32 {
        self.flow_label.hash(tuple) as u32 & 0xf_ffff
    }

    /// The `n`-th candidate for the key of a Multipath TCP connection (RFC 8684 §3.1).
    pub(crate) fn mptcp_key(&self, serial: u64, n: u64) -> u64 {
        self.mptcp.hash(&(serial, n))
    }

    /// The key of a connection in a cookie.
    pub(crate) fn mptcp_cookie_key(&self, tuple: &Tuple, isn: Seq) -> u64 {
        self.mptcp.hash(&(*tuple, isn))
    }

    /// A random stream of its own for a controller, or a Multipath TCP connection.
    pub(crate) fn stream(&self, serial: u64) -> Pcg64 {
        let word = |n: u8| u128::from(self.random.hash(&(serial, n)));
        Pcg64::new((word(0) << 64) | word(1), (word(2) << 64) | word(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gargalo_units::Duration;
    use gargalo_wire::ip::Addresses;

    fn tuple(remote_port: u16) -> Tuple {
        Tuple {
            addresses: Addresses::V4 {
                src: [10, 0, 0, 1].into(),
                dst: [10, 0, 0, 2].into(),
            },
            local_port: 80,
            remote_port,
        }
    }

    #[test]
    fn sequence_numbers_advance_with_the_clock_and_differ_between_connections() {
        let s = Secrets::new(1);
        let t = Instant::from_nanos(1_000_000_000);
        let a = s.isn(&tuple(1), t);
        let later = s.isn(&tuple(1), t + Duration::from_secs(1));
        assert_eq!(later.distance(a), 250_000);
        assert_ne!(a, s.isn(&tuple(2), t));
        assert_ne!(a, Secrets::new(2).isn(&tuple(1), t));
    }

    #[test]
    fn the_offset_of_timestamps_outlives_a_connection() {
        let s = Secrets::new(1);
        assert_eq!(
            s.timestamp_offset(&tuple(1)),
            Secrets::new(1).timestamp_offset(&tuple(1))
        );
        assert_ne!(s.timestamp_offset(&tuple(1)), s.timestamp_offset(&tuple(2)));
        assert!(s.flow_label(&tuple(1)) < 1 << 20);
    }
}

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The addresses and ports of a subflow, as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addresses {
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
}

impl Addresses {
    /// The same addresses as seen from the peer.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
        }
    }

    /// A number that distinguishes most addresses by one comparison.
    #[inline]
    pub(crate) fn key(&self) -> u64 {
        let of = |a: &SocketAddr| match a {
            SocketAddr::V4(a) => u64::from(a.ip().to_bits()) | u64::from(a.port()) << 32,
            SocketAddr::V6(a) => {
                let ip = a.ip().to_bits();
                ip as u64 ^ (ip >> 64) as u64 ^ u64::from(a.port()) << 32
            }
        };
        of(&self.local).rotate_left(16) ^ of(&self.remote)
    }

    /// Whether both addresses are of one IP version.
    pub(crate) fn is_consistent(local: IpAddr, remote: IpAddr) -> bool {
        local.is_ipv4() == remote.is_ipv4()
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.local, self.remote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(local: &str, remote: &str) -> Addresses {
        Addresses {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }

    /// The same with one bit of an address, or of a port, inverted.
    fn changed(a: SocketAddr, bit: u32) -> Option<SocketAddr> {
        let (ip, port) = (a.ip(), a.port());
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        if bit >= bits {
            let other = port ^ 1u16.checked_shl(bit - bits)?;
            return Some(SocketAddr::new(ip, other));
        }
        let other = match ip {
            IpAddr::V4(ip) => IpAddr::V4((ip.to_bits() ^ 1 << bit).into()),
            IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() ^ 1 << bit).into()),
        };
        Some(SocketAddr::new(other, port))
    }

    #[test]
    fn the_key_depends_on_every_bit_of_addresses_and_ports() {
        for a in [
            of("10.0.0.1:40000", "10.0.0.2:80"),
            of("255.254.1.255:65535", "192.168.255.1:443"),
            of("[2001:db8::1]:40000", "[2001:db8:ffff::2]:80"),
            of("[fe80::ffff:1]:65535", "[::]:0"),
        ] {
            for bit in 0..144 {
                if let Some(local) = changed(a.local, bit) {
                    assert_ne!(Addresses { local, ..a }.key(), a.key(), "{a}, bit {bit}");
                }
                if let Some(remote) = changed(a.remote, bit) {
                    assert_ne!(Addresses { remote, ..a }.key(), a.key(), "{a}, bit {bit}");
                }
            }
            assert_ne!(a.reversed().key(), a.key());
        }
    }

    #[test]
    fn addresses_of_a_subflow_are_of_one_version() {
        let a = of("10.0.0.1:40000", "[2001:db8::1]:80");
        assert_eq!(a.to_string(), "10.0.0.1:40000 > [2001:db8::1]:80");
        let (four, six) = (a.local.ip(), a.remote.ip());
        assert!(Addresses::is_consistent(four, four) && Addresses::is_consistent(six, six));
        assert!(!Addresses::is_consistent(four, six) && !Addresses::is_consistent(six, four));
    }
}

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

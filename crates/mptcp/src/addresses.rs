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

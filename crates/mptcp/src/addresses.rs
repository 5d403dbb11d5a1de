use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Where a subflow's packets come from and go to, seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addresses {
    /// Ours.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

impl Addresses {
    /// Seen from the other end.
    pub const fn reversed(self) -> Self {
        Self {
            local: self.remote,
            remote: self.local,
        }
    }

    /// Whether packets of these addresses are of one IP version.
    pub(crate) fn is_consistent(local: IpAddr, remote: IpAddr) -> bool {
        local.is_ipv4() == remote.is_ipv4()
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.local, self.remote)
    }
}

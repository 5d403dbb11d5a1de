//! Path managers: a [`PathManager`] sees the addresses of both hosts and the subflows between them, and decides
//! which subflows are opened.

mod binder;
mod full_mesh;
mod ndiffports;
mod passive;
mod registry;
mod single_mesh;
#[cfg(test)]
mod testing;

pub use registry::{DEFAULT, PATH_MANAGERS, PathManagers, Registered};

use std::fmt::Debug;
use std::net::IpAddr;

use crate::Names;

/// The registry entry of a path manager.
pub type Entry = crate::registry::Entry<dyn PathManager>;

/// An address of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Its identifier in this connection; 0 is that of the initial subflow.
    pub id: u8,
    /// IP address of one of our interfaces.
    pub address: IpAddr,
    /// Subflows from it are backups.
    pub backup: bool,
}

/// An address of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Its identifier; 0 is that of the initial subflow.
    pub id: u8,
    /// IP address, to which subflows may be opened.
    pub address: IpAddr,
    /// The port to connect to.
    pub port: u16,
}

/// A subflow that exists or is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubflowView {
    /// Identifier of our address.
    pub local: u8,
    /// Identifier of the peer's address; `None`: it came from an address that was never announced.
    pub remote: Option<u8>,
    /// The gateway of its packets; `None`: the default one.
    pub gateway: Option<IpAddr>,
}

/// The input of a path manager's decision.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// We opened the connection: only such a host opens subflows, since the other may sit behind a NAT
    /// (RFC 8684 §3.2 leaves it free).
    pub is_client: bool,
    /// Our addresses, in the order of their identifiers.
    pub local: &'a [LocalAddress],
    /// The peer's addresses that accept subflows, in the order of their identifiers.
    pub remote: &'a [RemoteAddress],
    /// Gateways of our network, if the host knows any.
    pub gateways: &'a [IpAddr],
    /// Names of these addresses.
    pub names: &'a Names,
    /// All subflows, those that are being opened included.
    pub subflows: &'a [SubflowView],
}

impl View<'_> {
    /// Pairs of a local address and one of the peer that may reach each other: those of one family.
    pub fn pairs(&self) -> impl Iterator<Item = (&LocalAddress, &RemoteAddress)> {
        let fit = |l: &LocalAddress, r: &RemoteAddress| l.address.is_ipv4() == r.address.is_ipv4();
        let all = self.local.iter();
        all.flat_map(move |l| {
            self.remote
                .iter()
                .filter(move |r| fit(l, r))
                .map(move |r| (l, r))
        })
    }

    /// Subflows between two addresses.
    pub fn count(&self, local: u8, remote: u8) -> usize {
        let between = |s: &&SubflowView| s.local == local && s.remote == Some(remote);
        self.subflows.iter().filter(between).count()
    }
}

/// A subflow to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Identifier of our address.
    pub local: u8,
    /// Identifier of the peer's address.
    pub remote: u8,
    /// The gateway of its packets; `None`: the default one.
    pub gateway: Option<IpAddr>,
}

/// Decides which subflows are opened and whether our addresses are announced. It is called when the connection opens
/// and whenever an address or a subflow is added or removed. Requests that cannot be fulfilled now (a pair that has
/// just failed, too many subflows) are ignored.
pub trait PathManager: Debug + Send {
    /// The subflows to be opened.
    fn missing(&mut self, view: &View<'_>) -> Vec<Open>;
    /// Whether our other addresses are announced to the peer (ADD_ADDR).
    fn announces(&self) -> bool {
        false
    }
}

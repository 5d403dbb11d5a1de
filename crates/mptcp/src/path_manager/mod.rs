//! Which subflows there should be: a [`PathManager`] sees the addresses of both hosts and the subflows
//! between them, and names those to be opened.

mod binder;
mod full_mesh;
mod ndiffports;
mod passive;
mod registry;
mod single_mesh;
#[cfg(test)]
mod testing;

pub use registry::{
    DEFAULT, Entry, PATH_MANAGERS, PathManagerFactory, PathManagers, Registered, find,
};

use std::fmt::Debug;
use std::net::IpAddr;

use crate::Names;

/// An address of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Its identifier in this connection; 0 is that of the initial subflow.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// Subflows of it are backups.
    pub backup: bool,
}

/// An address of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Its identifier; 0 is that of the initial subflow.
    pub id: u8,
    /// The address.
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
    /// By way of this gateway.
    pub gateway: Option<IpAddr>,
}

/// What a path manager decides by.
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
    /// All subflows.
    pub subflows: &'a [SubflowView],
}

impl View<'_> {
    /// Addresses of ours and of the peer between which packets can pass as far as can be told: those of
    /// one family.
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
    /// By way of this gateway.
    pub gateway: Option<IpAddr>,
}

/// Decides which subflows are opened and whether our addresses are announced. Asked when the connection
/// is open and whenever an address or a subflow has come or gone; what it asks for and cannot be had at
/// present (a pair that failed a moment ago, too many subflows) is simply not done.
pub trait PathManager: Debug + Send {
    /// Subflows that are missing.
    fn missing(&mut self, view: &View<'_>) -> Vec<Open>;
    /// Whether our other addresses are announced to the peer (ADD_ADDR).
    fn announces(&self) -> bool {
        false
    }
}

//! Names of addresses: schedulers and path managers may decide by the names of links.

use std::net::IpAddr;
use std::sync::Arc;

use crate::Addresses;

/// Names of addresses of both hosts, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<[(IpAddr, Arc<str>)]>);

impl Names {
    /// The link of an address; the first entry is used.
    pub fn of(&self, address: IpAddr) -> Option<&Arc<str>> {
        let (_, name) = self.0.iter().find(|(a, _)| *a == address)?;
        Some(name)
    }

    pub(crate) fn label(&self, addresses: Addresses) -> Label {
        Label {
            link: self.of(addresses.local.ip()).cloned(),
            peer_link: self.of(addresses.remote.ip()).cloned(),
        }
    }
}

impl FromIterator<(IpAddr, Arc<str>)> for Names {
    fn from_iter<T: IntoIterator<Item = (IpAddr, Arc<str>)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

/// The names of a subflow's links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The link of the packets that we send.
    pub link: Option<Arc<str>>,
    /// The link of the packets that the peer sends.
    pub peer_link: Option<Arc<str>>,
}

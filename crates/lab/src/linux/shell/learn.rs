//! Learns return routes to nested shells: every source address seen inside gets a route.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::Result;
use crate::linux::header::read_header;
use gargalo_device::Place;
use gargalo_device::netlink::Netlink;

/// More addresses than this are a mistake or an attack.
const MOST: usize = 4096;

/// Adds a route to every source address seen inside that is not the link's own.
pub(super) struct Learner {
    netlink: Netlink,
    index: u32,
    known: BTreeSet<IpAddr>,
    latest: IpAddr,
}

impl Learner {
    /// Creates the learner for the calling thread's namespace and its device `index`.
    pub(super) fn new(index: u32, place: &Place) -> Result<Self> {
        let own = [place.v4.1.into(), place.v6.1.into()];
        Ok(Self {
            netlink: Netlink::open()?,
            index,
            known: own.into(),
            latest: own[0],
        })
    }

    /// Handles a datagram that left the inner network.
    #[inline]
    pub(super) fn seen(&mut self, datagram: &[u8]) {
        let Some(seen) = read_header(datagram) else {
            return;
        };
        if seen.src != self.latest {
            self.latest = seen.src;
            self.learn(seen.src);
        }
    }

    fn learn(&mut self, source: IpAddr) {
        let prefix = match source {
            IpAddr::V4(_) => 32,
            IpAddr::V6(a) if a.is_unicast_link_local() || a.is_unspecified() => return,
            IpAddr::V6(_) => 128,
        };
        if self.known.len() < MOST && self.known.insert(source) {
            // Without the route that program gets no responses; nothing else is affected.
            let _ = self.netlink.add_route(self.index, source, prefix, None);
        }
    }
}

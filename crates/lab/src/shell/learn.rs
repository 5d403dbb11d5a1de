//! Ways back to shells in shells: who sends from inside gets a route.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::Result;
use crate::glance::glance;
use gargalo_device::Place;
use gargalo_device::netlink::Netlink;

/// More addresses than this many are a mistake or an attack.
const MOST: usize = 4096;

/// Adds a route to every address seen inside that is not the link's own.
pub(super) struct Learner {
    netlink: Netlink,
    index: u32,
    known: BTreeSet<IpAddr>,
    latest: IpAddr,
}

impl Learner {
    /// For the calling thread's namespace and its device `index`.
    pub(super) fn new(index: u32, place: &Place) -> Result<Self> {
        let own = [place.v4.1.into(), place.v6.1.into()];
        Ok(Self {
            netlink: Netlink::open()?,
            index,
            known: own.into(),
            latest: own[0],
        })
    }

    /// A datagram came out.
    #[inline]
    pub(super) fn seen(&mut self, datagram: &[u8]) {
        let Some(seen) = glance(datagram) else { return };
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
            // Without it that program gets no answers; nothing else is harmed.
            let _ = self.netlink.add_route(self.index, source, prefix, None);
        }
    }
}

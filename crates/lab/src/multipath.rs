//! What a run is told about Multipath TCP, and what it tells; values without any system behind them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use gargalo_units::{Duration, Instant};

/// Multipath TCP in a run.
#[derive(Clone, Debug, Default)]
pub struct MultipathSpec {
    /// The flows that have it, by identifier; their transport is [TCP](gargalo_sim::TransportSpec::Tcp),
    /// whose configuration and congestion control every subflow has.
    pub flows: BTreeMap<u64, MptcpFlow>,
    /// What the kernel's path manager is told on hosts with the kernel's stack, by index of the node;
    /// those left out are told what the flows that they take part in suggest
    /// ([`KernelMptcp::suggested`]).
    pub kernels: BTreeMap<u32, KernelMptcp>,
    /// What is wrong with links.
    pub interference: Vec<Interference>,
}

/// Multipath TCP of a flow.
#[derive(Clone, Debug, Default)]
pub struct MptcpFlow {
    /// Our stack's connection; the flow's TCP stands in for its `tcp`. Of it the kernel heeds
    /// `path_manager`, as far as its own can do the same.
    pub config: Arc<gargalo_mptcp::Config>,
    /// Paths whose subflows are backups, by number: 0 is the one on which the connection is opened.
    pub backups: Vec<u32>,
}

/// What the kernel's path manager is told (`ip mptcp`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelMptcp {
    /// Most subflows beside the first one: at most 8.
    pub subflows: u32,
    /// Most announced addresses to connect to: at most 8.
    pub accepted: u32,
    /// Addresses, in this order.
    pub endpoints: Vec<KernelEndpoint>,
}

/// An address that the kernel's path manager knows (`ip mptcp endpoint add`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelEndpoint {
    /// Whose IPv4 address: number of an interface of the host.
    pub interface: u32,
    /// It is announced to the peer (ADD_ADDR).
    pub signal: bool,
    /// Subflows are opened from it to the peer's first address.
    pub subflow: bool,
    /// Its subflows are backups.
    pub backup: bool,
    /// Subflows are opened from it to every address of the peer; needs `subflow`.
    pub fullmesh: bool,
}

/// The kernel's own limit of both kinds (`MPTCP_PM_ADDR_MAX`).
const MOST: u32 = 8;

impl KernelMptcp {
    /// What makes a kernel do at a host what path manager `manager` does, for flows over `paths` that the
    /// host opens (`is_client`) or accepts. A full mesh ends at the kernel's limit of 8 further subflows.
    ///
    /// # Errors
    /// The name, when the kernel's path manager cannot do the same.
    pub fn suggested(
        manager: &str,
        is_client: bool,
        paths: &[u32],
        backups: &[u32],
    ) -> Result<Self, String> {
        let full = match manager {
            "full-mesh" => true,
            "single-mesh" => false,
            "default" => return Ok(Self::default()),
            other => return Err(other.to_owned()),
        };
        let endpoint = |(n, interface): (usize, &u32)| KernelEndpoint {
            interface: *interface,
            signal: !is_client,
            subflow: is_client && full,
            backup: backups.contains(&(n as u32)),
            fullmesh: is_client && full,
        };
        let all = paths.iter().enumerate();
        let endpoints = all.map(endpoint).filter(|e| {
            // The server's first address is known, and the client of a single mesh answers what is
            // announced from wherever its routes lead.
            let is_first = paths.first() == Some(&e.interface);
            if is_client { full } else { !is_first }
        });
        Ok(Self {
            subflows: MOST,
            accepted: if is_client { MOST } else { 0 },
            endpoints: endpoints.collect(),
        })
    }

    /// Takes in what another flow wants.
    pub(crate) fn merge(&mut self, other: Self) {
        self.subflows = self.subflows.max(other.subflows);
        self.accepted = self.accepted.max(other.accepted);
        for e in other.endpoints {
            match self
                .endpoints
                .iter_mut()
                .find(|o| o.interface == e.interface)
            {
                Some(own) => {
                    own.signal |= e.signal;
                    own.subflow |= e.subflow;
                    own.backup |= e.backup;
                    own.fullmesh |= e.fullmesh;
                }
                None => self.endpoints.push(e),
            }
        }
    }
}

/// Something on a link that does to packets what it should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interference {
    /// Index of the link.
    pub link: u32,
    /// Packets from its first node to its second are concerned.
    pub up: bool,
    /// Those in the other direction are.
    pub down: bool,
    /// What is done to them.
    pub deed: Deed,
}

/// What is done to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Multipath TCP options are replaced by no-operations, as some firewalls do.
    Strip(Strip),
    /// They are lost: the link is cut.
    Cut {
        /// From this time on,
        from: Instant,
        /// and until this one.
        until: Instant,
    },
}

/// Where Multipath TCP options are stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strip {
    /// Everywhere.
    All,
    /// In SYNs and their answers.
    Syn,
    /// In everything but these.
    Rest,
    /// In everything after so many bytes of payload have passed in a direction.
    After(u64),
}

/// A subflow as its host saw it at the end of its flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubflowReport {
    /// Address and port at the host.
    pub local: SocketAddr,
    /// Address and port at the peer.
    pub remote: SocketAddr,
    /// Payload bytes sent, repetitions included.
    pub sent_bytes: u64,
    /// Payload bytes received in order.
    pub received_bytes: u64,
    /// Packets that repeated something.
    pub retransmitted_packets: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
}

/// What became of a flow's Multipath TCP at one of its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipathReport {
    /// Which flow.
    pub flow: u64,
    /// 0 is the side that opened.
    pub side: usize,
    /// The connection was plain TCP in the end.
    pub fell_back: bool,
    /// Subflows that were there in the end.
    pub subflows: Vec<SubflowReport>,
    /// Our stack's counts.
    pub stats: Option<gargalo_mptcp::Stats>,
}

/// The kernel's counters of a host (`nstat`), those of Multipath TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCounters {
    /// Index of the node.
    pub host: u32,
    /// By name, without `MPTcpExt`: before and after the run.
    pub counts: BTreeMap<String, (u64, u64)>,
}

impl HostCounters {
    /// How much a counter grew; a name that the kernel does not have counts nothing.
    pub fn grew(&self, name: &str) -> u64 {
        let count = self.counts.get(name);
        count.map_or(0, |(before, after)| after.saturating_sub(*before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_what_the_path_manager_would_do() {
        let of = |manager, is_client| KernelMptcp::suggested(manager, is_client, &[0, 1, 2], &[2]);
        let client = of("full-mesh", true).unwrap();
        assert!(
            client
                .endpoints
                .iter()
                .all(|e| e.fullmesh && e.subflow && !e.signal)
        );
        assert_eq!((client.endpoints.len(), client.accepted), (3, 8));
        assert!(client.endpoints[2].backup && !client.endpoints[1].backup);
        assert_eq!(of("single-mesh", true).unwrap().endpoints, []);
        let server = of("single-mesh", false).unwrap();
        let told: Vec<_> = server
            .endpoints
            .iter()
            .map(|e| (e.interface, e.signal))
            .collect();
        assert_eq!(told, [(1, true), (2, true)]);
        assert_eq!(of("default", true).unwrap(), KernelMptcp::default());
        assert_eq!(of("ndiffports", true), Err("ndiffports".to_owned()));
    }

    #[test]
    fn two_flows_want_the_sum_of_both() {
        let mut all = KernelMptcp::suggested("single-mesh", false, &[0, 1], &[]).unwrap();
        all.merge(KernelMptcp::suggested("full-mesh", true, &[1, 2], &[0]).unwrap());
        assert_eq!((all.subflows, all.accepted, all.endpoints.len()), (8, 8, 2));
        assert!(all.endpoints[0].signal && all.endpoints[0].fullmesh && all.endpoints[0].backup);
    }
}

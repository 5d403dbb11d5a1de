//! Configuration and results of Multipath TCP in a run; plain values, available on every system.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gargalo_flow::{MptcpResult, MultipathResult, SubflowResult};

/// The Multipath TCP configuration of a run in real time, besides that of its flows.
#[derive(Clone, Debug, Default)]
pub struct MultipathSpec {
    /// Configuration of the kernel's path manager on hosts with the kernel's stack, by index of the node; for those
    /// left out it follows from the flows that they take part in ([`KernelMptcp::suggested`]).
    pub kernels: BTreeMap<u32, KernelMptcp>,
}

/// Configuration of the kernel's path manager (`ip mptcp`).
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
    /// The address: the IPv4 address of the host's interface of this number.
    pub interface: u32,
    /// The address is announced to the peer (ADD_ADDR).
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
    /// The configuration with which a kernel does what path manager `manager` does, for flows that the host opens
    /// (`is_client`) or accepts over interfaces with these numbers, backups or not. A full mesh ends at the kernel's
    /// limit of 8 additional subflows.
    ///
    /// # Errors
    /// Returns the name when the kernel's path manager has no equivalent.
    pub fn suggested(
        manager: &str,
        is_client: bool,
        interfaces: &[(u32, bool)],
    ) -> Result<Self, String> {
        let full = match manager {
            "default" => return Ok(Self::default()),
            // Only the client opens subflows, to addresses that it knows: the server does not need the behaviour of
            // its path manager.
            "ndiffports" | "binder" if !is_client => {
                return Ok(Self {
                    subflows: MOST,
                    ..Self::default()
                });
            }
            "full-mesh" => true,
            "single-mesh" => false,
            other if is_client => return Err(other.to_owned()),
            _ => false,
        };
        let endpoint = |(interface, backup): &(u32, bool)| KernelEndpoint {
            interface: *interface,
            signal: !is_client,
            subflow: is_client && full,
            backup: *backup,
            fullmesh: is_client && full,
        };
        // The server's first address is known, and the client of a single mesh connects to announced addresses from
        // the address that its routes select.
        let configured = match (is_client, full) {
            (true, true) => interfaces,
            (true, false) => &[],
            (false, _) => interfaces.get(1..).unwrap_or_default(),
        };
        Ok(Self {
            subflows: MOST,
            accepted: if is_client { MOST } else { 0 },
            endpoints: configured.iter().map(endpoint).collect(),
        })
    }

    /// Merges the configuration that another flow needs.
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

/// A subflow as its host saw it at the end of the flow, or at its own end.
#[derive(Clone, Debug)]
pub struct SubflowReport {
    /// Address and port at the host.
    pub local: SocketAddr,
    /// Address and port at the peer.
    pub remote: SocketAddr,
    /// Payload bytes received in order.
    pub received_bytes: u64,
    /// Its result. Kernel subflows are polled every 5 ms: times are late by at most that, and a subflow that has ended
    /// is known up to the last poll.
    pub result: SubflowResult,
}

/// The Multipath TCP results of a flow at one of its hosts.
#[derive(Clone, Debug)]
pub struct MultipathReport {
    /// Identifier of the flow.
    pub flow: u64,
    /// 0 is the side that opened the connection.
    pub side: usize,
    /// The connection had fallen back to plain TCP at its end.
    pub fell_back: bool,
    /// Subflows in the order of opening.
    pub subflows: Vec<SubflowReport>,
    /// Counters of our stack.
    pub stats: Option<gargalo_mptcp::Stats>,
    /// Most bytes in the reordering queue, at our stack.
    pub out_of_order_max: u64,
}

/// Combines the reports of both sides about a flow.
pub(crate) fn result(reports: &[MultipathReport], sender: usize) -> Option<MultipathResult> {
    let of = |side: usize| reports.iter().find(|r| r.side == side);
    let own = of(sender)?;
    let stats = own.stats.unwrap_or(gargalo_mptcp::Stats {
        fallbacks: own.fell_back.into(),
        ..gargalo_mptcp::Stats::default()
    });
    let far = of(1 - sender);
    Some(MultipathResult {
        subflows: own.subflows.iter().map(|s| s.result.clone()).collect(),
        mptcp: Some(MptcpResult {
            stats,
            duplicate_bytes: far.and_then(|r| r.stats).map_or(0, |s| s.duplicate_bytes),
            out_of_order_max: far.map_or(0, |r| r.out_of_order_max),
        }),
    })
}

/// The Multipath TCP counters of the kernel at a host (`nstat`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCounters {
    /// Index of the node.
    pub host: u32,
    /// By name, without `MPTcpExt`: before and after the run.
    pub counts: BTreeMap<String, (u64, u64)>,
}

impl HostCounters {
    /// How much a counter grew; 0 for a name that the kernel does not have.
    pub fn grew(&self, name: &str) -> u64 {
        let count = self.counts.get(name);
        count.map_or(0, |(before, after)| after.saturating_sub(*before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(u32, bool); 3] = [(0, false), (1, false), (2, true)];

    #[test]
    fn the_kernel_is_told_what_the_path_manager_would_do() {
        let of = |manager, is_client| KernelMptcp::suggested(manager, is_client, &ALL);
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
        let announced: Vec<_> = server
            .endpoints
            .iter()
            .map(|e| (e.interface, e.signal))
            .collect();
        assert_eq!(announced, [(1, true), (2, true)]);
        assert_eq!(of("default", true).unwrap(), KernelMptcp::default());
        for manager in ["ndiffports", "binder", "mine"] {
            assert_eq!(of(manager, true), Err(manager.to_owned()));
        }
        let server = of("ndiffports", false).unwrap();
        assert_eq!((server.subflows, server.endpoints.len()), (8, 0));
        // A path manager of the user is configured with all addresses.
        assert_eq!(of("mine", false), of("single-mesh", false));
    }

    #[test]
    fn two_flows_want_the_sum_of_both() {
        let mut all = KernelMptcp::suggested("single-mesh", false, &ALL[..2]).unwrap();
        all.merge(KernelMptcp::suggested("full-mesh", true, &[(1, true), (2, false)]).unwrap());
        assert_eq!((all.subflows, all.accepted, all.endpoints.len()), (8, 8, 2));
        assert!(all.endpoints[0].signal && all.endpoints[0].fullmesh && all.endpoints[0].backup);
    }
}

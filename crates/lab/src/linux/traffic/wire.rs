//! Wire bytes of each flow, counted where datagrams of hosts enter the network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gargalo_workload::wire::WireBytes;

use super::{FIRST_SERVER_PORT, PORTS, server_port};

/// Bytes on the wire with IP headers, by the server port, which is unique for each flow.
#[derive(Clone, Debug)]
pub struct WireCounter(Arc<[[AtomicU64; 2]]>);

impl Default for WireCounter {
    fn default() -> Self {
        let all = (0..PORTS).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]);
        Self(all.collect())
    }
}

impl WireCounter {
    /// Counts a datagram that a host has sent between these ports, source and destination.
    pub fn count(&self, (from, to): (u16, u16), bytes: usize) {
        let slot = |port: u16| {
            self.0
                .get(usize::from(port.checked_sub(FIRST_SERVER_PORT)?))
        };
        let counter = match (slot(to), slot(from)) {
            (Some([from_client, _]), _) => from_client,
            (None, Some([_, from_server])) => from_server,
            (None, None) => return,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes that both hosts of a flow have sent so far, in the direction of the data of `sender` and in the opposite
    /// one.
    pub fn of(&self, flow: u64, sender: usize) -> WireBytes {
        let slot = usize::from(server_port(flow) - FIRST_SERVER_PORT);
        let sent = self.0[slot].each_ref().map(|n| n.load(Ordering::Relaxed));
        WireBytes {
            forward: sent[sender],
            reverse: sent[1 - sender],
        }
    }
}

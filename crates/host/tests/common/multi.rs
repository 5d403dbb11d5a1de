//! Hosts with an address on each of several paths.

use std::net::IpAddr;
use std::sync::Arc;

use gargalo_host::{ConnectionId, HostConfig, MptcpOptions, SocketOptions};
use gargalo_mptcp::path_manager::Registered;

use super::{CLIENT, Network, SERVER, World, cubic, ms, server};

pub const PATHS: u8 = 3;

/// The address of a side on path `n`.
pub fn on(n: u8, side: usize) -> IpAddr {
    [10, 0, n, side as u8 + 1].into()
}

pub fn config(side: usize) -> HostConfig {
    HostConfig {
        seed: 3 + side as u64,
        ..HostConfig::new((0..PATHS).map(|n| on(n, side)))
    }
}

pub fn with(manager: &str) -> SocketOptions {
    let manager = Registered::new(manager, Default::default()).unwrap();
    SocketOptions {
        mptcp: Some(Arc::new(MptcpOptions {
            config: gargalo_mptcp::Config {
                path_manager: Arc::new(manager),
                ..Default::default()
            },
            ..Default::default()
        })),
        ..cubic()
    }
}

pub fn mptcp() -> SocketOptions {
    with("single-mesh")
}

pub fn world(network: Network) -> World {
    World::with([config(CLIENT), config(SERVER)], network)
}

/// Opens a connection and waits for all its joins.
pub fn open(w: &mut World, options: [&SocketOptions; 2]) -> [ConnectionId; 2] {
    w.hosts[SERVER]
        .listen(server(false), options[1].clone())
        .unwrap();
    let ids = w.connect(server(false), options[0]);
    w.run_for(ms(500));
    ids
}

pub fn subflows(w: &World, side: usize, id: ConnectionId) -> usize {
    let c = w.hosts[side].multipath(id).expect("multipath");
    c.subflow_addresses().count()
}

pub fn close(w: &mut World, ids: [ConnectionId; 2]) {
    for (side, id) in ids.into_iter().enumerate() {
        let now = w.now;
        w.hosts[side].close(now, id);
        w.hosts[side].release(id);
    }
}

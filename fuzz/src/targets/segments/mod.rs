//! Connections of TCP and Multipath TCP over a network that the input controls.

#[path = "../../../../crates/mptcp/tests/common/forge.rs"]
#[allow(dead_code, reason = "tests count what was done")]
mod forge;
mod play;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use arbitrary::Unstructured;
use bytes::Bytes as Content;
use gargalo_cc::{ControllerFactory, Params, Registered};
use gargalo_mptcp::{Addresses, Connection, Transmit, path_manager, scheduler};
use gargalo_tcp::{Chunk, Config, EcnMode, Endpoint, Error, Init, Nagle, State};
use gargalo_units::{Bytes, Instant, Seq};
use rand::SeedableRng;
use rand_pcg::Pcg64;

pub(crate) use play::change;
use play::{End, Play};

/// Buffer size of each side in bytes.
const BUFFER: u64 = 40_000;
/// Most subflows of a Multipath TCP connection.
const SUBFLOWS: u32 = 6;

/// Address of side 0 (client) or 1 (server) on a path.
fn address(side: usize, path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, 1 + side as u8))
}

fn addresses() -> Addresses {
    Addresses {
        local: SocketAddr::new(address(0, 0), 40_000),
        remote: SocketAddr::new(address(1, 0), 80),
    }
}

/// Returns one of the registered congestion controls.
fn congestion(choice: u8) -> Arc<dyn ControllerFactory> {
    let all = gargalo_cc::ALGORITHMS;
    let name = all[usize::from(choice) % all.len()].name;
    let registered = Registered::new(name, Params::new());
    Arc::new(registered.expect("a name of the registry, with its defaults"))
}

fn config(bits: u8) -> Config {
    let on = |bit: u8| bits >> bit & 1 == 0;
    Config {
        mss: 1000,
        receive_buffer: Bytes::new(BUFFER),
        send_buffer: Bytes::new(BUFFER),
        timestamps: on(0),
        sack: on(1),
        window_scaling: on(2),
        ecn: if on(3) {
            EcnMode::Off
        } else {
            EcnMode::Classic
        },
        nagle: if on(4) { Nagle::Off } else { Nagle::Minshall },
        frto: on(5),
        prr: on(6),
        tail_loss_probe: on(7),
        ..Config::default()
    }
}

/// Runs a TCP connection.
pub(crate) fn tcp(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let [client, server, control] = u.arbitrary().unwrap_or_default();
    let now = Instant::ZERO;
    let init = |side: usize| Init {
        local_port: [40_000, 80][side],
        remote_port: [80, 40_000][side],
        // Close to the wrap-around of sequence numbers.
        isn: Seq::new([u32::MAX - 500, 5_000][side]),
        ts_offset: [7, 900][side],
        is_ipv6: false,
        fast_open_cookie: None,
    };
    let controller = || {
        congestion(control).build(gargalo_cc::Init {
            now,
            mss: Bytes::new(1000),
            initial_window: Bytes::new(10_000),
            rng: Pcg64::seed_from_u64(1),
        })
    };
    if let (Ok(a), Ok(b)) = (controller(), controller()) {
        let a = Endpoint::connect(config(client), a, init(0), now);
        let b = Endpoint::listen(config(server), b, init(1), now);
        Play::new(u, [a, b]).run();
    }
}

/// Runs a Multipath TCP connection.
pub(crate) fn mptcp(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let [client, server, control, choice, bits] = u.arbitrary().unwrap_or_default();
    let config = |tcp: u8, side: u8| {
        let (schedulers, managers) = (scheduler::SCHEDULERS, path_manager::PATH_MANAGERS);
        let s = schedulers[usize::from(choice & 15) % schedulers.len()].name;
        let m = managers[usize::from(choice >> 4) % managers.len()].name;
        let scheduler = scheduler::Registered::new(s, Params::new());
        let manager = path_manager::Registered::new(m, Params::new());
        gargalo_mptcp::Config {
            tcp: Arc::new(self::config(tcp)),
            scheduler: Arc::new(scheduler.expect("a name of the registry")),
            path_manager: Arc::new(manager.expect("a name of the registry")),
            options: gargalo_mptcp::Options {
                checksum: bits >> side & 1 == 1,
                max_subflows: SUBFLOWS,
                ..Default::default()
            },
            ..gargalo_mptcp::Config::default()
        }
    };
    let init = |side: usize| gargalo_mptcp::Init {
        key: 0x9e37_79b9_7f4a_7c15 + side as u64,
        rng: Pcg64::seed_from_u64(side as u64),
        addresses: (0..2).map(|p| address(side, p)).collect(),
        backups: Vec::new(),
        gateways: Vec::new(),
        names: Default::default(),
    };
    let now = Instant::ZERO;
    let cc = congestion(control);
    let a = Connection::connect(config(client, 0), cc.clone(), init(0), addresses(), now);
    let b = Connection::listen(config(server, 1), cc, init(1));
    if let (Ok(a), Ok(b)) = (a, b) {
        Play::new(u, [a, b]).run();
    }
}

/// Implements the methods that both kinds of ends have under the same names.
macro_rules! forwarded {
    () => {
        fn poll_timeout(&self) -> Option<Instant> {
            self.poll_timeout()
        }
        fn handle_timeout(&mut self, now: Instant) {
            self.handle_timeout(now);
        }
        fn write(&mut self, data: Content) -> usize {
            self.write(data)
        }
        fn read(&mut self) -> Option<Chunk> {
            self.read(u64::MAX)
        }
        fn close(&mut self, now: Instant) {
            self.close(now);
        }
        fn abort(&mut self, now: Instant) {
            self.abort(now);
        }
        fn error(&self) -> Option<Error> {
            self.error()
        }
        fn state(&self) -> State {
            self.state()
        }
    };
}

impl End for Endpoint {
    fn handle(&mut self, now: Instant, t: Transmit) {
        self.handle(now, t.segment, t.ecn);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        let t = self.poll_transmit(now)?;
        let is_client = t.segment.dst_port == 80;
        Some(Transmit {
            addresses: if is_client {
                addresses()
            } else {
                addresses().reversed()
            },
            gateway: None,
            segment: t.segment,
            ecn: t.ecn,
        })
    }
    forwarded!();
    fn check(&mut self) {
        while self.poll_event().is_some() {}
        assert!(self.readable() <= 2 * BUFFER, "what waits for the reader");
        assert!(
            self.unacknowledged() <= 2 * BUFFER,
            "what waits for the network"
        );
    }
}

impl End for Connection {
    fn handle(&mut self, now: Instant, t: Transmit) {
        self.handle(now, t.addresses, t.segment, t.ecn);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.poll_transmit(now)
    }
    forwarded!();
    fn check(&mut self) {
        while self.poll_event().is_some() {}
        while self.poll_ended().is_some() {}
        assert!(self.out_of_order() <= 2 * BUFFER, "what came too early");
        assert!(self.readable() <= 2 * BUFFER, "what waits for the reader");
        assert!(
            self.unacknowledged() <= 2 * BUFFER,
            "what waits for the network"
        );
        assert!(self.subflow_addresses().count() <= SUBFLOWS as usize);
    }
}

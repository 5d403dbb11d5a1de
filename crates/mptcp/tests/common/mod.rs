//! Two hosts and the paths between them, in virtual time.
#![allow(dead_code, unused_imports)] // each test file uses its part

pub mod attack;
pub mod forge;
pub mod grid;
mod net;
pub mod networks;
pub mod pairs;

pub use net::{Middlebox, Net};

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use gargalo_cc::{ControllerFactory, Params, Registered};
use gargalo_mptcp::path_manager::PathManager;
use gargalo_mptcp::scheduler::Scheduler;
use gargalo_mptcp::{Config, Factory, Init};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand_pcg::Pcg64;

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
pub const fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

/// A path: the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub rate: Rate,
    /// Propagation delay in one direction.
    pub delay: Duration,
    /// Bytes that may wait for the link.
    pub queue: u64,
    pub loss: f64,
    /// Jitter of up to this, drawn per packet: packets are reordered.
    pub jitter: Duration,
    /// Fraction of duplicated packets.
    pub duplicate: f64,
    /// Outage between these instants.
    pub dead: (Instant, Instant),
    /// Whether the outage affects packets of the client, and of the server.
    pub silenced: [bool; 2],
}

impl Path {
    /// Rate in Mbit/s, one-way delay in ms, a queue of one bandwidth-delay product (at least 20 packets).
    pub fn new(mbps: u64, delay_ms: u64) -> Self {
        let (rate, delay) = (Rate::from_mbps(mbps), ms(delay_ms));
        Self {
            rate,
            delay,
            queue: (rate * (delay * 2)).get().max(30_000),
            loss: 0.0,
            jitter: Duration::ZERO,
            duplicate: 0.0,
            dead: (Instant::MAX, Instant::MAX),
            silenced: [true; 2],
        }
    }
    pub fn lossy(self, loss: f64) -> Self {
        Self { loss, ..self }
    }
    pub fn dead(self, from: u64, to: u64) -> Self {
        Self {
            dead: (at(from), at(to)),
            ..self
        }
    }
}

/// Address of side 0 (client) or 1 (server) on a path.
pub fn address(side: usize, path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, 1 + side as u8))
}

pub fn init(seed: u64, side: usize, paths: usize) -> Init {
    Init {
        key: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + side as u64 + 1,
        rng: Pcg64::new(u128::from(seed) + 1, 1 + side as u128),
        addresses: (0..paths).map(|p| address(side, p)).collect(),
        backups: Vec::new(),
        gateways: Vec::new(),
        names: Default::default(),
    }
}

pub fn congestion(name: &str) -> Arc<dyn ControllerFactory> {
    Arc::new(Registered::new(name, Params::new()).unwrap())
}

pub fn scheduler(name: &str) -> Arc<dyn Factory<dyn Scheduler>> {
    Arc::new(gargalo_mptcp::scheduler::Registered::new(name, Params::new()).unwrap())
}

pub fn manager(name: &str) -> Arc<dyn Factory<dyn PathManager>> {
    Arc::new(gargalo_mptcp::path_manager::Registered::new(name, Params::new()).unwrap())
}

/// With these buffers on both sides.
pub fn config(buffer: u64) -> Config {
    Config {
        tcp: Arc::new(gargalo_tcp::Config {
            receive_buffer: Bytes::new(buffer),
            ..gargalo_tcp::Config::default()
        }),
        ..Config::default()
    }
}

/// Byte `i` of the test stream.
pub fn byte(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub fn content(from: u64, len: usize) -> bytes::Bytes {
    (from..from + len as u64)
        .map(byte)
        .collect::<Vec<_>>()
        .into()
}
